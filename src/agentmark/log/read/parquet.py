"""Parquet: data frames of Phoenix, bulk exports of LangSmith (extra: parquet)."""

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from agentmark.errors import MissingExtraError
from agentmark.log.read.events import Event
from agentmark.log.read.format import Format, FormatTable
from agentmark.log.read.meter import Meter
from agentmark.log.read.parquet_pages import BadPageError, pages_of
from agentmark.record import RecordError

# Rows that are turned into objects at a time.
_BATCH = 64
# What a value takes beside its own bytes while a page is read: its place in the dictionary, and in lists.
_VALUE_BYTES = 16


class Parquet(Format):
    """A table whose rows are of another format, in their order."""

    name = "Parquet"
    accepted = "Parquet of Phoenix or LangSmith rows"
    magic = (b"PAR1",)

    def read_file(self, path: Path, table: FormatTable, meter: Meter) -> Iterator[Event]:
        for number, row in enumerate(_rows(path, meter), start=1):
            meter.count_row()
            yield from table.read_row(row, f"{path.name} row {number}")


def _rows(path: Path, meter: Meter) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet") from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            texts = _check_pages(path, file.metadata, meter)
        with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
            yield from _rows_of(file, path.name, meter)
    except BadPageError:
        raise RecordError(path.name, "Parquet", "cannot be read: its pages are not where it says") from None
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, RecordError):
            raise
        said = str(error).splitlines()
        raise RecordError(path.name, "Parquet", f"cannot be read: {said[0] if said else 'it is damaged'}") from None


def _rows_of(file: Any, name: str, meter: Meter) -> Iterator[dict[str, Any]]:
    for batch in file.iter_batches(batch_size=_BATCH):
        # A dictionary holds a value once, however many rows have it: their rows are made one by one if they are long.
        long = sum([column.nbytes * batch.num_rows for column in batch.columns]) > meter.limits.held_bytes
        for part in [batch.slice(i, 1) for i in range(batch.num_rows)] if long else [batch]:
            for row in part.to_pylist():
                _count(row, name, meter)
                yield row


def _count(row: dict[str, Any], name: str, meter: Meter) -> None:
    texts = [value for value in row.values() if isinstance(value, str)]
    meter.unpack(sum(map(len, texts)))
    for text in texts:
        if "agentmark" in text:
            # Only such a one is looked into.
            meter.parse(text.encode("utf-8", "surrogatepass"), name, "value")


def _check_pages(path: Path, metadata: Any, meter: Meter) -> list[str]:
    """Count all that the file says it unpacks to, and what has to be held at once; the columns of text.

    Held are, of each column, its dictionary and a page. Text of Python may take four times as much.
    """
    texts = set()
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            held = 0
            for i in range(group.num_columns):
                column = group.column(i)
                dictionary = largest = 0
                for page in pages_of(data, _start_of(column), column.total_compressed_size):
                    meter.unpack(page.unpacked_size)
                    meter.count_values(1 + page.value_count)
                    size = page.unpacked_size + _VALUE_BYTES * page.value_count
                    if page.is_dictionary:
                        dictionary = max(dictionary, size)
                    else:
                        largest = max(largest, size)
                held += dictionary + largest
                if column.physical_type == "BYTE_ARRAY":
                    texts.add(column.path_in_schema)
            meter.hold_parsed(4 * held, path.name, f"row group {number + 1}")
    return sorted(texts)


def _start_of(column: Any) -> int:
    start = int(column.data_page_offset)
    dictionary = column.dictionary_page_offset if column.has_dictionary_page else None
    return min(start, int(dictionary)) if dictionary else start
