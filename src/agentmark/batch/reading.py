"""What each row of many records says: `verify.intake.read_record` over columns, to the bit.

Steps of F and R whose whole list is logged are read by arrays. What is rare is read as the plain path reads it: parts
of lists, lists and payloads of unusual length, and races that end closer than the last bit of a logarithm may decide.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct
from typing import Any

from agentmark.batch.arrays import Bools, Bytes, Int64s, NDArray, np, row_of_each
from agentmark.batch.columns import SCHEME_NAMES, StepColumns
from agentmark.batch.copies import copies
from agentmark.batch.hashing import Names, Steps
from agentmark.batch.native import Kernel, built_kernel
from agentmark.batch.read_f import read_f
from agentmark.batch.read_r import read_r
from agentmark.batch.symbols import ONE_SYMBOL, SET_WORDS, SYMBOL_SET, ColumnReadings, SymbolTable
from agentmark.core.errors import StateError
from agentmark.core.schemes import SCHEMES, SchemeF, SchemeR
from agentmark.core.symbols import SYMBOL_BITS, Reading
from agentmark.verify.intake import READ_OUTCOMES, Outcome, read_record, reading_cost
from agentmark.verify.keyring import Keyring
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
_CODES = {outcome: code for code, outcome in enumerate(READ_OUTCOMES)}
_F, _R = SCHEME_NAMES.index(SchemeF.name), SCHEME_NAMES.index(SchemeR.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingColumns:
    """What became of each row, and what those say that were used. As confidential as the keys (`SymbolTable`)."""

    # An index into READ_OUTCOMES.
    outcome: Bytes
    # Which entry of the table is the row's reading; copies of a step share one. -1 for a row that was not used.
    entry: Int64s
    table: SymbolTable

    def __len__(self) -> int:
        return len(self.outcome)

    def reading(self, row: int) -> Reading | None:
        """The object that the plain reader makes of this row."""
        entry = int(self.entry[row])
        return None if entry == _NO_ENTRY else ColumnReadings(self.table)[entry]

    def readings(self, rows: Int64s) -> ColumnReadings:
        """What these rows say, in this order; all of them are used ones."""
        return ColumnReadings(self.table, self.entry[rows])

    def to_bytes(self) -> bytes:
        """Magic, a check of all that follows, the number of rows, their outcomes and entries; the table."""
        parts = [_COUNT.pack(len(self)), self.outcome.tobytes(), self.entry.astype("<i8", copy=False).tobytes()]
        body = b"".join([*parts, self.table.to_bytes()])
        return _MAGIC + blake2b(body, digest_size=_CHECK_SIZE).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> "ReadingColumns":
        """What these bytes are of; StateError if they are of no such columns."""
        start = len(_MAGIC) + _CHECK_SIZE + _COUNT.size
        if not data.startswith(_MAGIC) or len(data) < start:
            raise StateError("not columns of readings of version 1")
        body = data[len(_MAGIC) + _CHECK_SIZE :]
        if blake2b(body, digest_size=_CHECK_SIZE).digest() != data[len(_MAGIC) : len(_MAGIC) + _CHECK_SIZE]:
            raise StateError("columns of readings are damaged")
        count = _COUNT.unpack_from(body)[0]
        if count > (len(data) - start) // 9:
            raise StateError("columns of readings are cut short")
        outcome = np.frombuffer(data, np.uint8, count, start)
        entry = np.frombuffer(data, "<i8", count, start + count).astype(np.int64)
        table = SymbolTable.from_bytes(data[start + 9 * count :])
        used = outcome == _CODES[Outcome.USED]
        sound = (
            bool(np.all(outcome < len(READ_OUTCOMES)))
            and bool(np.all((entry >= 0) == used))
            and bool(np.all((entry >= _NO_ENTRY) & (entry < len(table))))
        )
        if not sound:
            raise StateError("columns of readings: an outcome and a reading contradict each other")
        return cls(outcome=outcome, entry=entry, table=table)


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
    return ReadingColumns(outcome=reader.outcome, entry=reader.entry, table=reader.table())


class _Reader:
    """One pass over columns: which rows are left to be read, and what was read so far."""

    def __init__(self, columns: StepColumns, keys: Keyring, kernel: Kernel | None) -> None:
        self._columns = columns
        self._read_f = read_f if kernel is None else kernel.read_f
        self._read_r = read_r if kernel is None else kernel.read_r
        self._keys = keys
        held = [keys.key_of(key_id) for key_id in columns.key_ids]
        has_key = np.array([key is not None for key in held], dtype=np.bool_)[columns.key_id]
        self._held = [key for key in held if key is not None]
        # Which of the keys held a key id stands for.
        self._place_of_key = np.cumsum([key is not None for key in held], dtype=np.int32) - 1
        self.to_read: Bools = has_key & columns.marked
        self.outcome: Bytes = np.full(len(columns), _CODES[Outcome.USED], dtype=np.uint8)
        self.outcome[~columns.marked] = _CODES[Outcome.UNMARKED]
        self.outcome[~has_key] = _CODES[Outcome.OTHER_KEY]
        self.entry: Int64s = np.full(len(columns), _NO_ENTRY, dtype=np.int64)
        self._tables: list[SymbolTable] = []
        self._entries = 0
        self._options = _sums_of_lists(columns, columns.weight > 0)

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
        fits = ~columns.partial & (columns.payload_len <= MAX_BITS) & (self._options <= MAX_OPTIONS)
        plain = [np.flatnonzero(self.to_read & ~fits)]
        position = self._positions()
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

    def table(self) -> SymbolTable:
        return SymbolTable.concat([SymbolTable.empty(), *self._tables])

    def _positions(self) -> Int64s:
        """Where in its list the choice of each row stands, if it is there."""
        columns = self._columns
        row = row_of_each(columns.list_start)
        hits = np.flatnonzero(columns.name == columns.choice[row])
        position = np.full(len(columns), np.iinfo(np.int64).max)
        position[row[hits]] = hits - columns.list_start[row[hits]]
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
        possible = read.possible
        count = int(np.count_nonzero(possible))
        table = SymbolTable(
            kind=np.full(count, ONE_SYMBOL, np.uint8),
            payload_len=np.full(count, steps.payload_len, np.int32),
            width=read.width[possible],
            pad=np.zeros(count, np.uint8),
            symbol=read.symbol[possible],
            words=read.rows.ravel(),
            sets=np.zeros((0, SET_WORDS), np.uint64),
        )
        self._add(rows[possible], rows[~possible], table)

    def _take_in_r(self, rows: Int64s, steps: Steps) -> Int64s:
        """The rows that are too close to call are handed back."""
        read = self._read_r(steps)
        count = len(read.pad)
        table = SymbolTable(
            kind=np.full(count, SYMBOL_SET, np.uint8),
            payload_len=np.full(count, steps.payload_len, np.int32),
            width=np.full(count, SYMBOL_BITS, np.uint8),
            pad=read.pad,
            symbol=np.zeros(count, np.uint16),
            words=read.rows.ravel(),
            sets=read.symbols,
        )
        self._add(rows[read.possible], rows[~read.possible & ~read.near], table)
        return rows[read.near]

    def _read_plainly(self, rows: Int64s) -> None:
        said: list[Reading] = []
        used: list[int] = []
        for row in np.sort(rows).tolist():
            step = read_record(self._columns.record(row), self._keys)
            self.outcome[row] = _CODES[step.outcome]
            if step.reading is not None:
                said.append(step.reading)
                used.append(row)
        places = np.array(used, dtype=np.int64)
        table = SymbolTable.of_plain(said, self._columns.payload_len[places].tolist())
        self._add(places, np.zeros(0, dtype=np.int64), table)

    def _add(self, used: Int64s, impossible: Int64s, table: SymbolTable) -> None:
        self.outcome[impossible] = _CODES[Outcome.IMPOSSIBLE]
        self.entry[used] = np.arange(self._entries, self._entries + len(used))
        self._entries += len(used)
        self._tables.append(table)


def _sums_of_lists(columns: StepColumns, values: NDArray[Any]) -> Int64s:
    """The sum of these values over the list of each row."""
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=sums[1:])
    return np.diff(sums[columns.list_start])
