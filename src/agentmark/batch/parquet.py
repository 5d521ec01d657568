"""Parquet of our own layout into columns, as strict as the plain reader of the same table.

The table is in columns already, and every text of a row group is looked at once, however many rows have it. A row that
is not certain to be a record is left to the plain reader, which says what it is.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from sys import getsizeof
from typing import Any

from agentmark.batch.arrays import Bools, Bytes, Int32s, Int64s, np, sizes_of, starts_of
from agentmark.batch.columns import NO_LINE, SCHEME_NAMES, UNCHECKED, ColumnBuilder, StepColumns
from agentmark.batch.laws import Arrays, check_lists, in_order, joined, only, repeated_names, sums_of_lists
from agentmark.core.canonical import MAX_SAFE_INTEGER, canonical_bytes
from agentmark.core.context import context_digest
from agentmark.core.errors import ContextError
from agentmark.core.payload import MAX_PAYLOAD_LEN
from agentmark.core.prf import DIGEST_SIZE
from agentmark.log.read.events import BadEntry, Entry, FormatKnown
from agentmark.log.read.files import shown
from agentmark.log.read.limits import LimitError
from agentmark.log.read.meter import EVENT_VALUES, RECORD_UNIT, ROW_VALUES, Meter, memory_of, memory_of_value, values_in
from agentmark.log.read.open import count_event
from agentmark.log.read.parquet import Parquet, readable
from agentmark.log.read.parquet_steps import free_data, read_batch, step_batches
from agentmark.log.read.summary import Tally
from agentmark.record import RecordError


def read_parquet_chunks(path: Path, meter: Meter, tally: Tally, *, skip_bad: bool, rows: int) -> Iterator[StepColumns]:
    """The records of a table of ours, so many rows at a time or a few more; the tally takes note of the rest.

    What stops the reading is raised behind the rows that came before it.
    """
    reader = _TableReader(shown(path), meter, tally, skip_bad=skip_bad)
    try:
        count_event(FormatKnown(Parquet.name), meter, tally, skip_bad=skip_bad)
        meter.lists_are_shared()
        meter.read(path.stat().st_size)
        with readable(path):
            for batch in step_batches(path, meter):
                reader.take_batch(batch)
                if len(reader) >= rows:
                    yield reader.columns()
        if len(reader):
            yield reader.columns()
    except Exception:
        if len(reader):
            yield reader.columns()
        raise


class _TableReader:
    """Reads batch after batch into the columns of one chunk after the other."""

    def __init__(self, name: str, meter: Meter, tally: Tally, *, skip_bad: bool) -> None:
        self._name = name
        self._meter = meter
        self._tally = tally
        self._skip_bad = skip_bad
        self._builder = ColumnBuilder(name)
        # The number of the next row.
        self._next = 1
        # Whether texts of rows that were not taken may stand in the tables.
        self._has_leftovers = False

    def __len__(self) -> int:
        return len(self._builder)

    def columns(self) -> StepColumns:
        columns = self._builder.columns()
        if self._has_leftovers:
            columns = columns.take(np.arange(len(columns), dtype=np.int64))
        self._builder, self._has_leftovers = ColumnBuilder(self._name), False
        return columns

    def take_batch(self, batch: Any) -> None:
        first, self._next = self._next, self._next + batch.num_rows
        found = None if batch.num_rows == 0 else _found(batch, self._builder, self._meter.longest_free_line)
        if found is not None and self._take_found(batch, first, found):
            return
        self._has_leftovers = True
        for event in read_batch(batch, first, self._name, self._meter):
            count_event(event, self._meter, self._tally, skip_bad=self._skip_bad)
            if isinstance(event, Entry):
                self._builder.add(event.record, None)

    def _take_found(self, batch: Any, first: int, found: "_Found") -> bool:
        """False if the meter would not take all of it: then nothing was counted or kept."""
        good = found.good.copy()
        others = np.flatnonzero(~good)
        self._has_leftovers |= len(others) > 0
        records = int(np.count_nonzero(good)) + int((found.memory[good] // RECORD_UNIT).sum())
        values = batch.num_rows * (ROW_VALUES + EVENT_VALUES) + int(found.values.sum())
        events: list[Entry | BadEntry] = []
        last: BadEntry | None = None
        # What these cost is counted with the others.
        free = Meter(self._name, self._meter.limits)
        free.read(1 << 62)
        for row in others.tolist():
            try:
                event = next(read_batch(batch.slice(row, 1), first + row, self._name, free))
            except LimitError:
                return False
            if isinstance(event, BadEntry) and not self._skip_bad:
                good[row:] = False
                last = event
                break
            events.append(event)
            if isinstance(event, Entry):
                records += 1 + memory_of(event.record) // RECORD_UNIT
        if not self._meter.take(values, records):
            return False
        arrays = only(found.arrays, good)
        self._tally.record_count += len(arrays["step"])
        kept = []
        for row, event in zip(others.tolist(), events, strict=False):
            self._tally.count(event)
            if isinstance(event, Entry):
                self._builder.add(event.record, None)
                kept.append(row)
        if kept:
            order = np.argsort(np.concatenate([np.flatnonzero(good), kept]), kind="stable")
            arrays = in_order(joined(arrays, self._builder.take_rows()), order)
        self._builder.add_arrays(arrays)
        if last is not None:
            raise last.error
        return True


class _Found:
    """The rows of a batch as columns; which of them keep to the laws of a record; what they cost."""

    def __init__(self, arrays: Arrays, good: Bools, memory: Int64s, values: Int64s) -> None:
        self.arrays = arrays
        self.good = good
        self.memory = memory
        self.values = values


def _found(batch: Any, builder: ColumnBuilder, longest: int) -> _Found | None:
    """None where a batch holds what none of ours does, so that its rows have to be read one by one."""
    import pyarrow

    try:
        return _read(batch, builder, longest)
    except (pyarrow.ArrowException, ValueError):
        return None


def _read(batch: Any, builder: ColumnBuilder, longest: int) -> _Found | None:
    count = batch.num_rows
    column = {name: batch.column(name) for name in batch.schema.names}
    lists = _lists(column["names"], column["weights"], builder)
    if lists is None:
        return None
    scheme, session, key_id = (_Texts(column[name]) for name in ("scheme", "session", "key_id"))
    choice, reason = _Texts(column["choice"]), _Texts(column["reason"])
    meta, raw_context = _FreeData(column["meta"], longest), _FreeData(column["raw_context"], longest)
    if meta.is_long or raw_context.is_long:
        return None
    payload_len, step = _wholes(column["payload_len"]), _wholes(column["step"])
    context, prev = _Digests(column["context"]), _Digests(column["prev"])
    marked = column["marked"].fill_null(False).to_numpy(zero_copy_only=False)
    enforced = column["enforced"].cast("int8").fill_null(UNCHECKED).to_numpy(zero_copy_only=False)
    known_schemes = {name: code for code, name in enumerate(SCHEME_NAMES)}
    scheme_code = scheme.coded(lambda text: known_schemes.get(text, -1))
    arrays: Arrays = {
        "session": session.coded(builder.sessions.__getitem__),
        "key_id": key_id.coded(builder.key_ids.__getitem__),
        "line": np.full(count, NO_LINE, np.int64),
        "scheme": scheme_code.astype(np.uint8),
        "payload_len": np.clip(payload_len, -1, MAX_PAYLOAD_LEN + 1).astype(np.int32),
        "step": step,
        "context": context.digests,
        "marked": marked,
        "enforced": enforced,
        "partial": column["partial"].fill_null(False).to_numpy(zero_copy_only=False),
        "choice": choice.coded(builder.names.__getitem__),
        "mismatch": raw_context.mismatches(context.digests),
        **lists,
    }
    start = starts_of(arrays["length"])
    good = check_lists(arrays, builder.names) & ~repeated_names(start, arrays["name"], len(builder.names))
    good &= session.filled & key_id.filled & choice.filled & (scheme_code >= 0) & scheme.filled
    good &= (reason.filled | reason.absent) & (marked | reason.filled)
    good &= (payload_len >= 0) & (payload_len <= MAX_PAYLOAD_LEN) & (step >= 0) & (step <= MAX_SAFE_INTEGER)
    good &= context.good & (prev.good | prev.absent) & meta.good & raw_context.good
    good &= np.logical_not([column["marked"].is_null().to_numpy(zero_copy_only=False)])[0]
    memory = session.coded(len) + key_id.coded(len) + reason.coded(len) + meta.memory + raw_context.memory
    names = sizes_of(getsizeof, list(builder.names))
    listed = sums_of_lists(start, names[arrays["name"]] + 100)
    memory = memory + np.where(arrays["partial"], 0, listed)
    texts = list(builder.names)
    for row in np.flatnonzero(arrays["partial"] & arrays["listed"] & good).tolist():
        entries = slice(start[row], start[row + 1])
        codes, weights = arrays["name"][entries].tolist(), arrays["weight"][entries].tolist()
        memory[row] += memory_of_value({texts[code]: weight for code, weight in zip(codes, weights, strict=True)})
    return _Found(arrays, good, memory, meta.values + raw_context.values)


def _lists(names: Any, weights: Any, builder: ColumnBuilder) -> Arrays | None:
    """The lists of a batch; None where names and weights do not go together, or one is null."""
    lengths = names.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    listed = names.is_valid().to_numpy(zero_copy_only=False)
    if not (
        np.array_equal(lengths, weights.value_lengths().fill_null(0).to_numpy(zero_copy_only=False))
        and np.array_equal(listed, weights.is_valid().to_numpy(zero_copy_only=False))
    ):
        return None
    name, weight = names.flatten(), weights.flatten()
    if name.null_count or weight.null_count:
        return None
    return {
        "listed": listed,
        "length": lengths,
        "name": _Texts(name).coded(builder.names.__getitem__),
        "weight": _wholes(weight).copy(),
    }


def _wholes(column: Any) -> Int64s:
    """Integers; -1, which is none that a record has, for null. What does not fit raises."""
    wholes: Int64s = column.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return wholes


class _Texts:
    """A column of text: the few texts that it has, and which of them each row has."""

    def __init__(self, column: Any) -> None:
        self.absent: Bools = column.is_null().to_numpy(zero_copy_only=False)
        codes = column.indices.fill_null(0).to_numpy(zero_copy_only=False)[~self.absent]
        used = np.zeros(len(column.dictionary), bool)
        used[codes] = True
        self.texts: list[str] = column.dictionary.filter(_arrow_mask(used)).to_pylist()
        if None in self.texts:
            raise ValueError("a text that is null")
        # The place among the texts of each row that has one.
        self._places = (np.cumsum(used) - 1)[codes]

    def coded(self, code_of: Callable[[str], int]) -> Int32s:
        """What is said of the text of each row; 0 where there is none."""
        codes = np.zeros(len(self.absent), np.int32)
        codes[~self.absent] = np.fromiter(map(code_of, self.texts), np.int32, len(self.texts))[self._places]
        return codes

    def spread(self, values: Any) -> Any:
        """For each row what stands for its text; nothing (0, False) where there is none."""
        spread = np.zeros(len(self.absent), np.asarray(values).dtype)
        spread[~self.absent] = np.asarray(values)[self._places]
        return spread

    @property
    def filled(self) -> Bools:
        return np.asarray(self.coded(bool), bool)


def _arrow_mask(mask: Bools) -> Any:
    import pyarrow

    return pyarrow.array(mask)


class _FreeData:
    """A column of JSON text: meta, or raw contexts."""

    def __init__(self, column: Any, longest: int) -> None:
        self._texts = _Texts(column)
        encoded = [text.encode("utf-8") for text in self._texts.texts]
        self.is_long = any(len(text) >= longest for text in encoded)
        if self.is_long:
            return
        self._data = list(map(_parsed, self._texts.texts))
        sound = np.array([data is not _BROKEN for data in self._data], bool)
        self.good: Bools = self._texts.absent | self._texts.spread(sound)
        self.values: Int64s = self._texts.spread(sizes_of(values_in, encoded))
        self.memory: Int64s = self._texts.spread(
            sizes_of(lambda data: memory_of_value(data) if data and data is not _BROKEN else 0, self._data)
        )

    def mismatches(self, contexts: Bytes) -> Bools:
        """For each row, whether this is a raw context, and not that of the digest."""
        is_context = [isinstance(data, dict) for data in self._data]
        digests = [context_digest(data) if isinstance(data, dict) else bytes(DIGEST_SIZE) for data in self._data]
        there = np.flatnonzero(self._texts.spread(np.array(is_context, bool)))
        found = np.zeros(len(contexts), bool)
        if len(there):
            places = self._texts.spread(np.arange(len(digests)))[there]
            wanted = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, DIGEST_SIZE)[places]
            found[there] = np.any(wanted != contexts[there], axis=1)
        return found


_BROKEN = object()


def _parsed(text: str) -> object:
    """An object, or nothing where the text says null; else what is no free data of a record."""
    try:
        data = free_data(text, "?", "?")
        if data is not None and not isinstance(data, dict):
            return _BROKEN
        canonical_bytes(data)
    except (RecordError, ContextError):
        return _BROKEN
    return data


class _Digests:
    """A column of digests."""

    def __init__(self, column: Any) -> None:
        self.absent: Bools = column.is_null().to_numpy(zero_copy_only=False)
        if column.type.byte_width == DIGEST_SIZE:
            data = np.frombuffer(column.fill_null(bytes(DIGEST_SIZE)).buffers()[1], np.uint8)
            begin = column.offset if column.null_count == 0 else 0
            self.digests = data.reshape(-1, DIGEST_SIZE)[begin : begin + len(column)]
            self.good = ~self.absent
            return
        texts = [text if text is not None and len(text) == DIGEST_SIZE else None for text in column.to_pylist()]
        self.good = np.array([text is not None for text in texts], bool)
        joined_texts = b"".join([text or bytes(DIGEST_SIZE) for text in texts])
        self.digests = np.frombuffer(joined_texts, np.uint8).reshape(-1, DIGEST_SIZE)
