"""What each row of many records says: `verify.intake.read_record` over columns, to the bit.

Steps of F and R whose whole list is logged are read by arrays. What is rare is read as the plain path reads it: parts
of lists, lists and payloads of unusual length, and races that end closer than the last bit of a logarithm may decide.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct
from typing import Any, cast

from agentmark.batch.arrays import Bools, Bytes, Int32s, Int64s, NDArray, np
from agentmark.batch.columns import SCHEME_NAMES, StepColumns
from agentmark.batch.copies import copies
from agentmark.batch.hashing import Names, Steps, words_of_row
from agentmark.batch.native import Kernel, built_kernel
from agentmark.batch.read_f import read_f
from agentmark.batch.read_r import read_r
from agentmark.core.distribution import TOTAL_WEIGHT
from agentmark.core.errors import StateError
from agentmark.core.schemes import SCHEMES, SchemeF, SchemeR
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT, Reading
from agentmark.disclosure.check import DisclosedSteps
from agentmark.errors import SettingError
from agentmark.keys.shared import SharedKey
from agentmark.verify.intake import READ_OUTCOMES, Outcome, read_record, reading_cost
from agentmark.verify.keyring import Keyring
from agentmark.verify.packed import PackedReadings
from agentmark.verify.reading_bytes import EQUATIONS, SET_SIZE, SYMBOLS, Source, pack_readings
from agentmark.verify.readings import ReadingList, Readings
from agentmark.verify.work import Work

# What is longer is read by the plain path: hardly anybody has such lists, or such payloads.
MAX_OPTIONS = 256
MAX_BITS = 512
# Steps that are hashed and read together: what is held for them meanwhile is a few megabytes.
PIECE = 16384

_MAGIC = b"AMRC\x01"
_CHECK_SIZE = 16
_COUNT = Struct("<Q")
_NO_ENTRY = -1
_NOWHERE = np.iinfo(np.int64).max
_NO_SETS = np.zeros((0, SET_SIZE), np.uint8)
_NO_VALUES = np.zeros((0, SYMBOL_COUNT), np.float64)
_CODES = {outcome: code for code, outcome in enumerate(READ_OUTCOMES)}
_F, _R = SCHEME_NAMES.index(SchemeF.name), SCHEME_NAMES.index(SchemeR.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingColumns:
    """What became of each row, and what those say that were used. It holds no key, but what it holds opens the steps in
    it: keep it, and its bytes, as confidential as the keys."""

    # An index into READ_OUTCOMES.
    outcome: Bytes
    payload_len: Int32s
    # Where the row's reading stands among those of its payload length; copies of a step share one. -1 for a row that
    # was not used.
    entry: Int64s
    # 1 over the probability of the choice; 0 where not the whole list was logged.
    odds: NDArray[np.float64]
    # By payload length.
    tables: Mapping[int, PackedReadings]

    def __len__(self) -> int:
        return len(self.outcome)

    @classmethod
    def concat(cls, parts: Sequence["ReadingColumns"]) -> "ReadingColumns":
        """The rows of all parts, in their order."""
        if len(parts) == 1:
            return parts[0]
        pieces: dict[int, list[PackedReadings]] = defaultdict(list)
        sizes: Counter[int] = Counter()
        entries = [np.zeros(0, np.int64)]
        for part in parts:
            entry = part.entry
            moved = {length: sizes[length] for length in part.tables if sizes[length]}
            for length, before in moved.items():
                entry = np.where((part.payload_len == length) & (entry != _NO_ENTRY), entry + before, entry)
            entries.append(entry)
            for length, table in part.tables.items():
                pieces[length].append(table)
                sizes[length] += len(table)
        return cls(
            outcome=np.concatenate([np.zeros(0, np.uint8), *[part.outcome for part in parts]]),
            payload_len=np.concatenate([np.zeros(0, np.int32), *[part.payload_len for part in parts]]),
            entry=np.concatenate(entries),
            odds=np.concatenate([np.zeros(0), *[part.odds for part in parts]]),
            tables={length: PackedReadings.concat(tables, length) for length, tables in pieces.items()},
        )

    def reading(self, row: int) -> Reading | None:
        """The object that the plain reader makes of this row."""
        entry = int(self.entry[row])
        return None if entry == _NO_ENTRY else self.tables[int(self.payload_len[row])][entry]

    def readings(self, rows: Int64s) -> Readings:
        """What these rows say, in this order; all of them are used ones, and have one payload length if they are to
        answer together."""
        lengths = np.unique(self.payload_len[rows]).tolist()
        if len(lengths) == 1:
            return self.packed(rows, lengths[0])
        said = [self.reading(row) for row in rows.tolist()]
        return ReadingList([reading for reading in said if reading is not None])

    def packed(self, rows: Int64s, payload_len: int) -> PackedReadings:
        """The same for used rows of this payload length."""
        return self.tables[payload_len].take(cast("Sequence[int]", self.entry[rows]))

    def to_bytes(self) -> bytes:
        """Magic, a check of all that follows, the number of rows, their outcomes, payload lengths, entries and odds;
        then each table with its payload length and size. Little-endian."""
        parts = [_COUNT.pack(len(self)), self.outcome.tobytes()]
        parts += [self.payload_len.astype("<i4").tobytes(), self.entry.astype("<i8").tobytes()]
        parts.append(self.odds.astype("<f8").tobytes())
        for length, table in sorted(self.tables.items()):
            data = table.to_bytes(length)
            parts += [_COUNT.pack(length), _COUNT.pack(len(data)), data]
        body = b"".join(parts)
        return _MAGIC + blake2b(body, digest_size=_CHECK_SIZE).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> "ReadingColumns":
        """What these bytes are of; StateError if they are of no such columns."""
        start = len(_MAGIC) + _CHECK_SIZE
        if not data.startswith(_MAGIC) or len(data) < start + _COUNT.size:
            raise StateError("not columns of readings of version 1")
        if blake2b(data[start:], digest_size=_CHECK_SIZE).digest() != data[len(_MAGIC) : start]:
            raise StateError("columns of readings are damaged")
        source = Source(data, start)
        count = _COUNT.unpack(source.take(_COUNT.size))[0]
        outcome = np.frombuffer(source.take(count), np.uint8)
        payload_len = np.frombuffer(source.take(4 * count), "<i4").astype(np.int32)
        entry = np.frombuffer(source.take(8 * count), "<i8").astype(np.int64)
        odds = np.frombuffer(source.take(8 * count), "<f8").astype(np.float64)
        if not bool(np.all(np.isfinite(odds) & ((odds == 0) | (odds >= 1)))):
            raise StateError("columns of readings: odds that no choice has")
        used = outcome == _CODES[Outcome.USED]
        if bool(np.any(outcome >= len(READ_OUTCOMES))) or not np.array_equal(entry != _NO_ENTRY, used):
            raise StateError("columns of readings: an outcome and a reading contradict each other")
        tables = {}
        for length in np.unique(payload_len[used]).tolist():
            if _COUNT.unpack(source.take(_COUNT.size))[0] != length:
                raise StateError("columns of readings: those of a payload length are missing")
            table = PackedReadings.from_bytes(source.take(_COUNT.unpack(source.take(_COUNT.size))[0]), length)
            entries = entry[used & (payload_len == length)]
            if bool(np.any((entries < 0) | (entries >= len(table)))):
                raise StateError("columns of readings: a row has no reading")
            tables[length] = table
        source.expect_end()
        return cls(outcome=outcome, payload_len=payload_len, entry=entry, odds=odds, tables=tables)


def read_columns(columns: StepColumns, keys: Keyring, *, work: Work | None = None) -> ReadingColumns:
    """What each row says under the key that is meant to read it (spec, section 9, steps 1 and 5).

    A step that stands in them many times is read once; with `work`, rows that are beyond it are not. Where the native
    kernel was built, it reads; where not, NumPy does, and says the same.
    """
    return read_with(built_kernel(), columns, keys, work=work)


def read_with(
    kernel: Kernel | None, columns: StepColumns, keys: Keyring, *, work: Work | None = None
) -> ReadingColumns:
    """The same with this kernel, or without one."""
    reader = _Reader(columns, keys, kernel)
    copied, original = copies(columns)
    reader.to_read[copied] = False
    if work is not None:
        reader.spend(work)
    reader.read()
    reader.outcome[copied] = reader.outcome[original]
    reader.entry[copied] = reader.entry[original]
    return ReadingColumns(
        outcome=reader.outcome,
        payload_len=columns.payload_len,
        entry=reader.entry,
        odds=reader.odds(),
        tables=reader.tables(),
    )


class _Reader:
    """One pass over columns: which rows are left to be read, and what was read so far."""

    def __init__(self, columns: StepColumns, keys: Keyring, kernel: Kernel | None) -> None:
        self._columns = columns
        self._read_f = read_f if kernel is None else kernel.read_f
        self._read_r = read_r if kernel is None else kernel.read_r
        self._keys = keys
        held = [keys.key_of(key_id) for key_id in columns.key_ids]
        has_key = np.array([key is not None for key in held], dtype=np.bool_)[columns.key_id]
        if any(isinstance(key, DisclosedSteps) for key in held):
            raise SettingError("keys", "a disclosure proves records one by one, not in columns")
        # In bulk the step keys of shared keys are made; those of marking keys come from another function.
        self._held = [key for key in held if isinstance(key, SharedKey)]
        self._is_shared = np.array([isinstance(key, SharedKey) for key in held], dtype=np.bool_)[columns.key_id]
        # Which of the keys held a key id stands for.
        self._place_of_key = np.cumsum([isinstance(key, SharedKey) for key in held], dtype=np.int32) - 1
        self.to_read: Bools = has_key & columns.marked
        self.outcome: Bytes = np.full(len(columns), _CODES[Outcome.USED], dtype=np.uint8)
        self.outcome[~columns.marked] = _CODES[Outcome.UNMARKED]
        self.outcome[~has_key] = _CODES[Outcome.OTHER_KEY]
        self.entry: Int64s = np.full(len(columns), _NO_ENTRY, dtype=np.int64)
        # What was read so far, by payload length, in pieces.
        self._pieces_read: dict[int, list[PackedReadings]] = defaultdict(list)
        self._counts: Counter[int] = Counter()
        self._options = _sums_of_lists(columns, columns.weight > 0)
        self._position = self._positions()

    def spend(self, work: Work) -> None:
        """Take what each row costs, in their order; those that the work does not reach for are not read."""
        rows = np.flatnonzero(self.to_read)
        taken = np.array(work.take_each(self._costs(rows).tolist()), dtype=np.bool_)
        refused = rows[~taken]
        self.outcome[refused] = _CODES[Outcome.NOT_READ]
        self.to_read[refused] = False

    def _costs(self, rows: Int64s) -> NDArray[np.float64]:
        """What `reading_cost` says of each row: it depends on sizes alone, so it is asked once for each of them."""
        columns = self._columns
        lengths = np.array([len(name) for name in columns.names], dtype=np.int64)
        letters = _sums_of_lists(columns, np.where(columns.weight > 0, lengths[columns.name], 0))
        sizes = np.stack(
            [columns.scheme, columns.partial, columns.payload_len, self._options, letters], axis=1, dtype=np.int64
        )[rows]
        _, first, of_row = np.unique(sizes, axis=0, return_index=True, return_inverse=True)
        costs = [reading_cost(columns.record(row)) for row in rows[first].tolist()]
        return np.array(costs, dtype=np.float64)[of_row]

    def read(self) -> None:
        columns = self._columns
        for code, name in enumerate(SCHEME_NAMES):
            if not SCHEMES[name].reads_partial_lists:
                parts = self.to_read & columns.partial & (columns.scheme == code)
                self.outcome[parts] = _CODES[Outcome.UNREADABLE]
                self.to_read &= ~parts
        fits = self._is_shared & ~columns.partial
        fits &= (columns.payload_len <= MAX_BITS) & (self._options <= MAX_OPTIONS)
        plain = [np.flatnonzero(self.to_read & ~fits)]
        position = self._position
        names = Names(columns.names)
        for rows, scheme, payload_len in self._pieces(np.flatnonzero(self.to_read & fits)):
            steps = Steps(
                keys=self._held,
                key=self._place_of_key[columns.key_id[rows]],
                payload_len=payload_len,
                context=columns.context[rows],
                list_start=columns.list_start[rows],
                options=self._options[rows],
                position=position[rows],
                weight=columns.weight,
                name=columns.name,
                names=names,
            )
            if scheme == _F:
                self._take_in_f(rows, steps)
            else:
                plain.append(self._take_in_r(rows, steps))
        self._read_plainly(np.concatenate(plain))

    def tables(self) -> dict[int, PackedReadings]:
        """What was read, by payload length."""
        return {length: PackedReadings.concat(pieces, length) for length, pieces in self._pieces_read.items()}

    def odds(self) -> NDArray[np.float64]:
        """1 over the probability of each choice; 0 where not the whole list was logged."""
        columns = self._columns
        odds = np.zeros(len(columns))
        whole = np.flatnonzero(columns.listed & ~columns.partial & (self._position != _NOWHERE))
        chosen = columns.weight[columns.list_start[whole] + self._position[whole]]
        # One that has no weight was not chosen from this list, and says nothing.
        odds[whole[chosen > 0]] = 1 / (chosen[chosen > 0] / TOTAL_WEIGHT)
        return odds

    def _positions(self) -> Int64s:
        """Where in its list the choice of each row stands, if it is there."""
        columns = self._columns
        sizes = np.diff(columns.list_start)
        hits = np.flatnonzero(columns.name == np.repeat(columns.choice, sizes))
        # The names of a list are all different: a row has one hit at most.
        rows = np.searchsorted(columns.list_start, hits, side="right") - 1
        position = np.full(len(columns), _NOWHERE)
        position[rows] = hits - columns.list_start[rows]
        return position

    def _pieces(self, rows: Int64s) -> Iterator[tuple[Int64s, int, int]]:
        """Rows of one scheme and one payload length, with both; not too many at once."""
        codes = self._columns.scheme[rows].astype(np.int64) * (MAX_BITS + 1) + self._columns.payload_len[rows]
        for code in np.unique(codes).tolist():
            alike = rows[codes == code]
            scheme, payload_len = divmod(code, MAX_BITS + 1)
            for at in range(0, len(alike), PIECE):
                yield alike[at : at + PIECE], scheme, payload_len

    def _take_in_f(self, rows: Int64s, steps: Steps) -> None:
        read = self._read_f(steps)
        count = int(np.count_nonzero(read.possible))
        said = PackedReadings(
            steps.payload_len,
            {
                "kinds": np.full(count, EQUATIONS, np.uint8),
                "widths": read.width[read.possible],
                "pads": np.zeros(count, np.uint32),
                "symbols": read.symbol[read.possible].astype(np.uint32),
                "rows": read.rows,
                "sets": _NO_SETS,
                "values": _NO_VALUES,
            },
        )
        self._add(rows[read.possible], steps.payload_len, said)
        self.outcome[rows[~read.possible]] = _CODES[Outcome.IMPOSSIBLE]

    def _take_in_r(self, rows: Int64s, steps: Steps) -> Int64s:
        """The rows that are too close to call are handed back."""
        read = self._read_r(steps)
        sets = read.symbols.astype("<u8", copy=False).view(np.uint8)
        # A step that leaves one symbol says equations, as one of F does.
        single = np.bitwise_count(read.symbols).sum(axis=1) == 1
        symbols = np.zeros(len(sets), np.uint32)
        symbols[single] = np.argmax(np.unpackbits(sets[single], axis=1, bitorder="little"), axis=1)
        said = PackedReadings(
            steps.payload_len,
            {
                "kinds": np.where(single, EQUATIONS, SYMBOLS).astype(np.uint8),
                "widths": np.full(len(sets), SYMBOL_BITS, np.uint8),
                "pads": read.pad.astype(np.uint32),
                "symbols": symbols,
                "rows": read.rows.reshape(SYMBOL_BITS * len(sets), words_of_row(steps.payload_len)),
                "sets": sets[~single],
                "values": _NO_VALUES,
            },
        )
        self._add(rows[read.possible], steps.payload_len, said)
        self.outcome[rows[~read.possible & ~read.near]] = _CODES[Outcome.IMPOSSIBLE]
        return rows[read.near]

    def _read_plainly(self, rows: Int64s) -> None:
        said: dict[int, dict[int, Reading]] = defaultdict(dict)
        for row in np.sort(rows).tolist():
            record = self._columns.record(row)
            step = read_record(record, self._keys)
            self.outcome[row] = _CODES[step.outcome]
            if step.reading is not None:
                said[record.payload_len][row] = step.reading
        for length, readings in said.items():
            packed = PackedReadings.from_bytes(pack_readings(readings.values(), length), length)
            self._add(np.fromiter(readings, np.int64, len(readings)), length, packed)

    def _add(self, rows: Int64s, payload_len: int, said: PackedReadings) -> None:
        self.entry[rows] = np.arange(len(rows)) + self._counts[payload_len]
        self._counts[payload_len] += len(rows)
        self._pieces_read[payload_len].append(said)


def _sums_of_lists(columns: StepColumns, values: NDArray[Any]) -> Int64s:
    """The sum of these values over the list of each row."""
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=sums[1:])
    return np.diff(sums[columns.list_start])
