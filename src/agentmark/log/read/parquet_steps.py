"""Parquet in AgentMark's own layout: a row a record, a column a field (docs/convert.md; extra: parquet)."""

from collections.abc import Iterator
from itertools import groupby, islice
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from agentmark.core.distribution import first_repeated
from agentmark.core.strict_json import RepeatedNameError, StrictJsonError, parse_json
from agentmark.log.parquet import DIGEST, LAYOUT, LAYOUT_KEY, LAYOUT_VERSION, TEXT, TEXTS, TRUTH, WHOLE, WHOLES
from agentmark.log.read.events import BadEntry, Entry
from agentmark.log.read.files import shown
from agentmark.log.read.meter import Meter, values_in
from agentmark.log.read.parquet_pages import BadPageError, Column, columns_of, pages_of
from agentmark.record import RECORD_VERSION, RecordError, RecordVersionError, StepRecord

# Columns without which a row is no record, however the table came to be.
_TELLING = frozenset({"scheme", "context", "names", "weights", "choice", "marked"})
FREE_TEXT = ("meta", "raw_context")

_BATCH = 1 << 16
# Rows that are turned into objects at a time, if they are short.
_MANY = 1024
# What an entry of a list takes: its place in the table of names, its weight, and where lists begin.
_ENTRY_BYTES = 16


def is_steps(schema: Any) -> bool:
    """Whether a table means to be one of ours: it says so, or it has our columns because somebody wrote it anew."""
    return LAYOUT_KEY.encode() in (schema.metadata or {}) or _TELLING.issubset(schema.names)


def step_batches(path: Path, meter: Meter) -> Iterator[Any]:
    """The rows, some thousands at a time, texts as dictionaries. What is no table of ours raises for the file."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        _check_schema(file.schema_arrow, shown(path))
        texts = _text_leaves(file.schema)
    groups = _count_groups(path, meter)
    # Each text is held once in a batch, however many rows have it.
    with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
        if groups != file.num_row_groups:
            raise BadPageError
        # Group by group: a dictionary is that of one.
        for group in range(groups):
            for batch in file.iter_batches(batch_size=_BATCH, row_groups=[group], columns=list(LAYOUT)):
                # A damaged page can say that a row has a text which the dictionary does not have.
                batch.validate(full=True)
                yield batch


def _check_schema(schema: Any, name: str) -> None:
    version = (schema.metadata or {}).get(LAYOUT_KEY.encode(), LAYOUT_VERSION.encode()).decode("utf-8", "replace")
    if version != LAYOUT_VERSION:
        raise RecordVersionError(name, LAYOUT_KEY, version, f"version {LAYOUT_VERSION}")
    for column in LAYOUT:
        if column not in schema.names:
            raise RecordError(name, column, "is missing")
    for column in schema.names:
        if column not in LAYOUT:
            raise RecordError(name, str(column), "is not a field of version 1; free data goes under meta")
    if len(set(schema.names)) != len(schema.names):
        raise RecordError(name, str(first_repeated(schema.names)), "appears twice in one table")
    for column, kind in LAYOUT.items():
        found = schema.field(column).type
        if not _is_of(found, kind):
            raise RecordError(name, column, f"holds {found}, not {kind}")


def _text_leaves(schema: Any) -> list[str]:
    """Where texts stand. What the entries of a list are called is up to whoever wrote the file."""
    leaves = [schema.column(number).path for number in range(len(schema))]
    if len(leaves) != len(LAYOUT):
        raise BadPageError
    return [leaf for leaf in leaves if LAYOUT.get(leaf.split(".")[0]) in (TEXT, TEXTS)]


def _is_of(found: Any, kind: str) -> bool:
    from pyarrow import types

    if kind in (TEXTS, WHOLES):
        if not types.is_list(found):
            return False
        return _is_of(found.value_type, TEXT if kind == TEXTS else WHOLE)
    return bool(
        (kind == TEXT and types.is_string(found.value_type if types.is_dictionary(found) else found))
        or (kind == WHOLE and types.is_integer(found))
        or (kind == TRUTH and types.is_boolean(found))
        or (kind == DIGEST and (types.is_fixed_size_binary(found) or types.is_binary(found)))
    )


def _count_groups(path: Path, meter: Meter) -> int:
    """Count what every page unpacks to, by its header, and what has to be held of a row group; how many there are."""
    count = 0
    with path.open("rb") as opened, mmap(opened.fileno(), 0, access=ACCESS_READ) as data:
        for group, chunks in groupby(columns_of(data), key=lambda chunk: chunk.group):
            held = sum([_count_pages(data, chunk, meter) for chunk in chunks])
            meter.hold_parsed(held, shown(path), f"row group {group + 1}")
            count = group + 1
    return count


def _count_pages(data: mmap, chunk: Column, meter: Meter) -> int:
    held = 0
    for page in pages_of(data, chunk.start, chunk.length):
        meter.unpack(page.unpacked_size)
        meter.count_values(1 + page.value_count)
        held += page.unpacked_size + _ENTRY_BYTES * page.value_count
    return held


def read_batch(batch: Any, first: int, name: str, meter: Meter) -> Iterator[Entry | BadEntry]:
    """The rows of a batch, one by one; the first of them has this number."""
    few = max(1, min(_MANY, meter.limits.held_bytes // max(1, _longest_row(batch))))
    for begin in range(0, batch.num_rows, few):
        part = batch.slice(begin, few)
        if few == 1:
            meter.hold_parsed(_longest_row(part), f"{name} row {first + begin}", "row")
        for offset, row in enumerate(_rows(part)):
            where = f"{name} row {first + begin + offset}"
            for column in FREE_TEXT:
                if row[column] is not None:
                    text = row[column].encode("utf-8", "surrogatepass")
                    meter.check(text, where, column)
                    meter.count_values(values_in(text))
            meter.count_row()
            try:
                yield Entry(StepRecord.from_dict(_content(row, where), where=where))
            except RecordError as error:
                yield BadEntry(error)


def _longest_row(batch: Any) -> int:
    """No row takes more bytes as objects than this: text that many rows have is one text here, and many there."""
    from pyarrow import compute

    longest = 0
    for column, kind in LAYOUT.items():
        values, times = batch.column(column), 1
        if kind in (TEXTS, WHOLES):
            times = compute.max(values.value_lengths()).as_py() or 0
            values = values.flatten()
        if kind in (TEXT, TEXTS):
            times *= 4 * (compute.max(compute.binary_length(values.dictionary)).as_py() or 0)
        longest += 64 + times
    return longest


def _rows(batch: Any) -> Iterator[dict[str, Any]]:
    columns = [_objects(batch.column(column), kind) for column, kind in LAYOUT.items()]
    return (dict(zip(LAYOUT, row, strict=True)) for row in zip(*columns, strict=True))


def _objects(column: Any, kind: str) -> list[Any]:
    """A column as objects. Lists are cut from their values, which pyarrow itself would make one by one."""
    if kind not in (TEXTS, WHOLES):
        found: list[Any] = (column.dictionary_decode() if kind == TEXT else column).to_pylist()
        return found
    values = iter(_objects(column.flatten(), TEXT if kind == TEXTS else WHOLE))
    lengths = column.value_lengths().to_pylist()
    return [None if length is None else list(islice(values, length)) for length in lengths]


def _content(row: dict[str, Any], where: str) -> dict[str, Any]:
    """A row as what its line would hold, so that it is judged by the same checks, in the same words."""
    content = {"agentmark": RECORD_VERSION, **row}
    names, weights = content.pop("names"), row["weights"]
    if (names is None) != (weights is None) or (names is not None and len(names) != len(weights)):
        counts = ["no" if part is None else f"{len(part)}" for part in (weights, names)]
        raise RecordError(where, "weights", f"{counts[0]} weights for {counts[1]} names")
    if names is not None:
        repeated = first_repeated(names)
        if repeated is not None:
            raise RecordError(where, str(repeated), "appears twice in one object")
        content["weights"] = dict(zip(names, weights, strict=True))
    for column in ("context", "prev"):
        if row[column] is not None:
            content[column] = row[column].hex()
    for column in FREE_TEXT:
        if row[column] is not None:
            content[column] = free_data(row[column], column, where)
    return content


def free_data(text: str, column: str, where: str) -> Any:
    """What a text of meta, or of a raw context, says."""
    try:
        return parse_json(text)
    except RepeatedNameError as error:
        raise RecordError(where, error.name, "appears twice in one object") from None
    except StrictJsonError:
        raise RecordError(where, column, "is not valid JSON") from None
