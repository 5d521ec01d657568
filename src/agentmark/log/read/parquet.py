"""Parquet: our own tables, data frames of Phoenix, bulk exports of LangSmith (extra: parquet)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from agentmark.errors import MissingExtraError
from agentmark.log.read.events import Event
from agentmark.log.read.files import shown
from agentmark.log.read.format import Format, FormatTable
from agentmark.log.read.meter import TABLE_FOLD, Meter
from agentmark.log.read.parquet_pages import BadPageError, Column, columns_of, pages_of
from agentmark.log.read.parquet_steps import is_steps, read_batch, step_batches
from agentmark.record import RecordError

# The columns in which a record may stand. The others are not read: that they are there is all that is known of them.
_COLUMNS = ("attributes.agentmark.record", "attributes.agentmark", "attributes", "extra")

# Rows that are turned into objects at a time.
_BATCH = 64
# What a value takes beside its own bytes while a page is read: its place in the dictionary, and in lists.
_VALUE_BYTES = 16


class Parquet(Format):
    """A table whose rows are of another format, in their order."""

    name = "Parquet"
    accepted = "Parquet of AgentMark's own, of Phoenix or LangSmith rows"
    magic = (b"PAR1",)

    def read_file(self, path: Path, table: FormatTable, meter: Meter) -> Iterator[Event]:
        with readable(path):
            if holds_steps(path):
                meter.lists_are_shared()
                first = 1
                for batch in step_batches(path, meter):
                    yield from read_batch(batch, first, shown(path), meter)
                    first += batch.num_rows
                return
            for number, row in enumerate(_rows(path, meter), start=1):
                meter.count_row()
                yield from table.read_row(row, f"{shown(path)} row {number}")


def size_to_read(path: Path) -> int:
    """What a file counts for when it is asked how much work its records may be: its size on disk, and more for a table,
    in which a list that many steps share stands once."""
    with path.open("rb") as file:
        is_table = file.read(4) in Parquet.magic
    return path.stat().st_size * (TABLE_FOLD if is_table else 1)


def holds_steps(path: Path) -> bool:
    """Whether the table is one of our own."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        return is_steps(file.schema_arrow)


def _rows(path: Path, meter: Meter) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        plan = _plan(path, file, meter)
    with pyarrow.parquet.ParquetFile(path, read_dictionary=plan.texts) as file:
        yield from _rows_of(file, plan, shown(path), meter)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """While a Parquet file is read: what cannot be read of it is an error that names the file."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet") from None
    try:
        yield
    except BadPageError:
        raise RecordError(
            shown(path), "Parquet", "cannot be read: its columns and pages are not where it says"
        ) from None
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, RecordError):
            raise
        said = str(error).splitlines()
        raise RecordError(shown(path), "Parquet", f"cannot be read: {said[0] if said else 'it is damaged'}") from None


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to read a file so that no value is held more often than it has to be."""

    # A row in which every column is empty.
    empty: dict[str, None]
    columns: list[str]
    # Columns of text, whose dictionaries are kept as they are: a value that many rows have is then held once.
    texts: list[str]
    batch: int


def _plan(path: Path, file: Any, meter: Meter) -> _Plan:
    """Count what the columns to read unpack to, by the headers of their pages, and what has to be held at once.

    Held are, of each column, its dictionary and a page. Text of Python may take four times as much.
    """
    names = file.schema_arrow.names
    columns = [name for name in _COLUMNS if name in names]
    texts, spread = set(), 1
    with path.open("rb") as opened, mmap(opened.fileno(), 0, access=ACCESS_READ) as data:
        for group, chunks in groupby(columns_of(data), key=lambda chunk: chunk.group):
            held = copied = 0
            for chunk in chunks:
                if not any(chunk.path == name or chunk.path.startswith(f"{name}.") for name in columns):
                    continue
                size = _count_pages(data, chunk, meter)
                held += size.dictionary + size.page
                if _is_repeated(file, chunk):
                    held += size.dictionary * size.values
                elif chunk.path not in columns:
                    copied += size.dictionary
                elif chunk.is_text:
                    texts.add(chunk.path)
            meter.hold_parsed(4 * held, shown(path), f"row group {group + 1}")
            spread = max(spread, copied)
    batch = max(1, min(_BATCH, meter.limits.held_bytes // spread))
    return _Plan(dict.fromkeys(names), columns, sorted(texts), batch)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What is the largest of a column: its dictionary, one of its other pages, and the number of values on one."""

    dictionary: int
    page: int
    values: int


def _is_repeated(file: Any, chunk: Column) -> bool:
    if chunk.number >= len(file.schema):
        raise BadPageError
    return bool(file.schema.column(chunk.number).max_repetition_level)


def _count_pages(data: mmap, chunk: Column, meter: Meter) -> _Sizes:
    dictionary = largest = values = 0
    for page in pages_of(data, chunk.start, chunk.length):
        meter.unpack(page.unpacked_size)
        meter.count_values(1 + page.value_count)
        size = page.unpacked_size + _VALUE_BYTES * page.value_count
        if page.is_dictionary:
            dictionary = max(dictionary, size)
        else:
            largest, values = max(largest, size), max(values, page.value_count)
    return _Sizes(dictionary, largest, values)


def _rows_of(file: Any, plan: _Plan, name: str, meter: Meter) -> Iterator[dict[str, Any]]:
    if not plan.columns:
        yield from (dict(plan.empty) for _ in range(file.metadata.num_rows))
        return
    for batch in file.iter_batches(batch_size=plan.batch, columns=plan.columns):
        # Rows that have the same long text are made one by one.
        long = sum([column.nbytes * batch.num_rows for column in batch.columns]) > meter.limits.held_bytes
        for part in [batch.slice(i, 1) for i in range(batch.num_rows)] if long else [batch]:
            for row in part.to_pylist():
                _count_texts(row, name, meter)
                yield plan.empty | row


def _count_texts(row: dict[str, Any], name: str, meter: Meter) -> None:
    inner = [value.values() for value in row.values() if isinstance(value, dict)]
    for text in [*row.values(), *[value for values in inner for value in values]]:
        if isinstance(text, str):
            meter.unpack(len(text))
            meter.parse(text.encode("utf-8", "surrogatepass"), name, "value")
