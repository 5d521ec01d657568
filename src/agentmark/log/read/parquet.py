"""Parquet: data frames of Phoenix, bulk exports of LangSmith (extra: parquet)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentmark.errors import MissingExtraError
from agentmark.log.read.events import Event
from agentmark.log.read.format import Format, FormatTable
from agentmark.log.read.packing import MAX_HELD, too_large
from agentmark.record import RecordError


class Parquet(Format):
    """A table whose rows are of another format, in their order."""

    name = "Parquet"
    accepted = "Parquet of Phoenix or LangSmith rows"
    magic = (b"PAR1",)

    def read_file(self, path: Path, table: FormatTable) -> Iterator[Event]:
        for number, row in enumerate(_rows(path), start=1):
            yield from table.read_row(row, f"{path.name} row {number}")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet") from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for i in range(file.metadata.num_row_groups):
                if file.metadata.row_group(i).total_byte_size > MAX_HELD:
                    raise too_large(path.name, "row group")
            for batch in file.iter_batches(batch_size=1000):
                yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, RecordError):
            raise
        raise RecordError(path.name, "Parquet", f"cannot be read: {str(error).splitlines()[0]}") from None
