"""What many steps say, as arrays: the columnar side of `verify.readings`.

A table holds the rows of the code as words and, for each step, its one symbol (F) or its set of symbols (R). Readings
of other kinds (parts of lists, very long lists and payloads) stand in it as the plain objects they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from math import log2
from struct import Struct
from typing import Any, Generic, Self, TypeVar

from agentmark.batch.arrays import Bools, Bytes, Int32s, Int64s, NDArray, np, spread
from agentmark.batch.hashing import UInt64s
from agentmark.core.errors import StateError
from agentmark.core.payload import MAX_PAYLOAD_LEN
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT, Reading, SymbolSet
from agentmark.verify.reading_bytes import Source, read_reading, reading_parts
from agentmark.verify.readings import EValues, Shape, bits_of_shapes, shape_of

# What kind of reading an entry is; the numbers are part of the format.
ONE_SYMBOL, SYMBOL_SET, PLAIN = range(3)
SET_WORDS = SYMBOL_COUNT // 64
# The most rows that an entry of one symbol has, in arrays.
MAX_WIDTH = 16

_MAGIC = b"AMRT\x01"
_CHECK_SIZE = 16
_COUNTS = Struct("<QQQQ")
_SHAPES = SYMBOL_COUNT + 1

Number = TypeVar("Number", int, float)


class Column(Sequence[Number], Generic[Number]):
    """An array of numbers that hands out Python's own."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Number]:
        return iter(self.array.tolist())

    def __getitem__(self, index: Any) -> Any:
        return Column(self.array[index]) if isinstance(index, slice) else self.array[index].item()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Column):
            return np.array_equal(self.array, other.array)
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


class SymbolTable:
    """Readings, one an entry. It holds no key, but what it holds opens the steps in it: keep it, and its bytes, as
    confidential as the keys."""

    def __init__(
        self,
        *,
        kind: Bytes,
        payload_len: Int32s,
        width: Bytes,
        pad: Bytes,
        symbol: NDArray[np.uint16],
        words: UInt64s,
        sets: UInt64s,
        plain: Sequence[Reading] = (),
    ) -> None:
        """`kind`: ONE_SYMBOL, SYMBOL_SET or PLAIN, and `sets` and `plain` hold those of the last two, in their order.
        `width`: how many rows an entry has, none for a plain one; `words` are the rows of all, each of as many words as
        its payload length takes, the most significant first."""
        self.kind = kind
        self.payload_len = payload_len
        self.width = width
        self.pad = pad
        self.symbol = symbol
        self.words = words
        self.sets = sets
        self.plain = plain

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def row_words(self) -> Int64s:
        """How many words a row of each entry has."""
        return -(-self.payload_len.astype(np.int64) // 64)

    @cached_property
    def word_start(self) -> Int64s:
        """Where the words of each entry begin; at the end, how many there are."""
        return _starts(self.width * self.row_words)

    @cached_property
    def set_of(self) -> Int64s:
        """Where in `sets` the set of an entry is, if it has one."""
        return np.cumsum(self.kind == SYMBOL_SET) - 1

    @cached_property
    def plain_of(self) -> Int64s:
        return np.cumsum(self.kind == PLAIN) - 1

    @cached_property
    def symbol_count(self) -> Int64s:
        """How many symbols an entry leaves; 0 for a plain one."""
        counts: Int64s = (self.kind == ONE_SYMBOL).astype(np.int64)
        counts[self.kind == SYMBOL_SET] = np.bitwise_count(self.sets).sum(axis=1, dtype=np.int64)
        return counts

    def take(self, entries: Int64s) -> "SymbolTable":
        """These entries, in this order."""
        kind = self.kind[entries]
        width = self.width[entries]
        return SymbolTable(
            kind=kind,
            payload_len=self.payload_len[entries],
            width=width,
            pad=self.pad[entries],
            symbol=self.symbol[entries],
            words=self.words[spread(self.word_start[entries], width * self.row_words[entries])],
            sets=self.sets[self.set_of[entries[kind == SYMBOL_SET]]],
            plain=[self.plain[i] for i in self.plain_of[entries[kind == PLAIN]].tolist()],
        )

    @classmethod
    def concat(cls, tables: Sequence["SymbolTable"]) -> "SymbolTable":
        """The entries of all, in their order."""
        columns = {name: np.concatenate([getattr(table, name) for table in tables]) for name in _COLUMNS}
        return cls(plain=[reading for table in tables for reading in table.plain], **columns)

    @classmethod
    def empty(cls) -> "SymbolTable":
        columns: dict[str, Any] = {name: np.zeros(0, kind) for name, kind in _COLUMNS.items()}
        columns["sets"] = columns["sets"].reshape(0, SET_WORDS)
        return cls(**columns)

    @classmethod
    def of_plain(cls, readings: Sequence[Reading], payload_lens: Sequence[int]) -> "SymbolTable":
        """Objects as they are."""
        count = len(readings)
        return cls(
            kind=np.full(count, PLAIN, np.uint8),
            payload_len=np.array(payload_lens, np.int32),
            width=np.zeros(count, np.uint8),
            pad=np.zeros(count, np.uint8),
            symbol=np.zeros(count, np.uint16),
            words=np.zeros(0, np.uint64),
            sets=np.zeros((0, SET_WORDS), np.uint64),
            plain=list(readings),
        )

    def readings(self) -> list[Reading]:
        """Every entry as the object that the plain reader makes."""
        rows = self._row_numbers()
        sets = self.sets.astype("<u8").tobytes()
        size = 8 * SET_WORDS
        made: list[Reading] = []
        at = set_at = plain_at = 0
        columns = zip(self.kind.tolist(), self.width.tolist(), self.pad.tolist(), self.symbol.tolist(), strict=True)
        for kind, width, pad, symbol in columns:
            if kind == PLAIN:
                made.append(self.plain[plain_at])
                plain_at += 1
                continue
            if kind == ONE_SYMBOL:
                symbols = 1 << symbol
            else:
                symbols = int.from_bytes(sets[size * set_at : size * (set_at + 1)], "little")
                set_at += 1
            made.append(SymbolSet(tuple(rows[at : at + width]), pad, symbols))
            at += width
        return made

    def _row_numbers(self) -> list[int]:
        """Every row of the code as a number."""
        if bool(np.all(self.row_words == 1)):
            numbers: list[int] = self.words.tolist()
            return numbers
        sizes = np.repeat(8 * self.row_words, self.width)
        data = self.words.astype(">u8").tobytes()
        borders = _starts(sizes).tolist()
        return [int.from_bytes(data[begin:end], "big") for begin, end in pairwise(borders)]

    def to_bytes(self) -> bytes:
        """Magic, a check of all that follows, the numbers of entries, words, sets and plain readings; the columns in
        the order of `_COLUMNS`, little-endian; the plain readings."""
        parts = [_COUNTS.pack(len(self), len(self.words), len(self.sets), len(self.plain))]
        for name, kind in _COLUMNS.items():
            parts.append(getattr(self, name).astype(kind, copy=False).tobytes())
        for reading in self.plain:
            parts += reading_parts(reading)
        body = b"".join(parts)
        return _MAGIC + blake2b(body, digest_size=_CHECK_SIZE).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> "SymbolTable":
        """The table that these bytes are of; StateError if they are of none, or hold what no step can say."""
        head = len(_MAGIC) + _CHECK_SIZE
        if not data.startswith(_MAGIC) or len(data) < head:
            raise StateError("not a table of readings of version 1")
        if blake2b(data[head:], digest_size=_CHECK_SIZE).digest() != data[len(_MAGIC) : head]:
            raise StateError("a table of readings is damaged")
        source = Source(data, head)
        count, word_count, set_count, plain_count = _COUNTS.unpack(source.take(_COUNTS.size))
        sizes = {"words": word_count, "sets": SET_WORDS * set_count}
        columns: dict[str, Any] = {}
        for name, kind in _COLUMNS.items():
            dtype = np.dtype(kind)
            taken = source.take(dtype.itemsize * sizes.get(name, count))
            columns[name] = np.frombuffer(taken, dtype).astype(dtype.newbyteorder("="), copy=False)
        columns["sets"] = columns["sets"].reshape(-1, SET_WORDS)
        table = cls(**columns)
        table._check(plain_count)
        places = np.flatnonzero(table.kind == PLAIN)
        plain = []
        for entry, payload_len in zip(places.tolist(), table.payload_len[places].tolist(), strict=True):
            reading = read_reading(source, payload_len, f"{entry + 1} of a table of readings")
            if reading is None:
                raise StateError("a table of readings: an entry says nothing")
            plain.append(reading)
        source.expect_end()
        table.plain = plain
        return table

    def _check(self, plain_count: int) -> None:
        """Refuse what no step says."""
        sound = (
            bool(np.all(self.kind <= PLAIN))
            and bool(np.all((self.payload_len >= 0) & (self.payload_len <= MAX_PAYLOAD_LEN)))
            and np.count_nonzero(self.kind == SYMBOL_SET) == len(self.sets)
            and np.count_nonzero(self.kind == PLAIN) == plain_count
            and bool(np.all(self.width <= MAX_WIDTH))
            and bool(np.all(self.width[self.kind == SYMBOL_SET] == SYMBOL_BITS))
            and not np.any(self.width[self.kind == PLAIN])
            and int(self.word_start[-1]) == len(self.words)
            and bool(np.all(self.symbol.astype(np.int64) >> self.width == 0))
            and not np.any(self.pad[self.kind != SYMBOL_SET])
            and not np.any(self.symbol[self.kind != ONE_SYMBOL])
            and bool(np.all(self.sets.any(axis=1)))
        )
        if not sound:
            raise StateError("a table of readings holds what no step says")
        # Of the first word of each row, only the bits that the payload length leaves.
        sizes = np.repeat(self.row_words, self.width)
        lengths = np.repeat(self.payload_len, self.width)[sizes > 0]
        first = self.words[_starts(sizes)[:-1][sizes > 0]]
        spare = (-lengths % 64).astype(np.uint64)
        if np.any(first & ~(np.uint64(0xFFFFFFFFFFFFFFFF) >> spare)):
            raise StateError("a table of readings: a row is too long")


# The columns as they stand in bytes. The order is the format.
_COLUMNS = {
    "kind": "<u1",
    "payload_len": "<i4",
    "width": "<u1",
    "pad": "<u1",
    "symbol": "<u2",
    "words": "<u8",
    "sets": "<u8",
}


def _starts(lengths: NDArray[Any]) -> Int64s:
    """Where each of these begins if they stand one behind the other; at the end, where the last ends."""
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


class ColumnReadings:
    """Some entries of a table as `verify.readings.Readings`: it answers for all of them at once."""

    def __init__(self, table: SymbolTable, entries: Int64s | None = None) -> None:
        """`entries`: which of the table, in this order; by default all."""
        self._whole = table
        self._entries = entries

    def __len__(self) -> int:
        return len(self._whole) if self._entries is None else len(self._entries)

    def __iter__(self) -> Iterator[Reading]:
        return iter(self._table.readings())

    def __getitem__(self, index: int, /) -> Reading:
        place = range(len(self))[index]
        return self.take([place])._table.readings()[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnReadings) and self._table.readings() == other._table.readings()

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def _table(self) -> SymbolTable:
        """These entries and no others."""
        return self._whole if self._entries is None else self._whole.take(self._entries)

    def take(self, indices: Sequence[int], /) -> "ColumnReadings":
        chosen = indices.array if isinstance(indices, Column) else np.asarray(indices, dtype=np.int64)
        return ColumnReadings(self._whole, chosen if self._entries is None else self._entries[chosen])

    @cached_property
    def _plain(self) -> list[tuple[int, Reading]]:
        places = np.flatnonzero(self._table.kind == PLAIN).tolist()
        return list(zip(places, self._table.plain, strict=True))

    @cached_property
    def _shape_codes(self) -> Int64s:
        """Rows and symbols of each step as one number."""
        codes = self._table.width.astype(np.int64) * _SHAPES + self._table.symbol_count
        for place, reading in self._plain:
            rows, symbols = shape_of(reading)
            codes[place] = rows * _SHAPES + symbols
        return codes

    @cached_property
    def shapes(self) -> Mapping[Shape, int]:
        counts = np.bincount(self._shape_codes)
        return {divmod(code, _SHAPES): int(counts[code]) for code in np.flatnonzero(counts).tolist()}

    @property
    def evidence_bits(self) -> float:
        return bits_of_shapes(self.shapes, [soft.evidence_bits for soft in self._soft])

    @property
    def most_bits(self) -> float:
        return bits_of_shapes(self.shapes, [soft.most_bits for soft in self._soft])

    @property
    def _soft(self) -> list[Reading]:
        return [reading for _, reading in self._plain if not isinstance(reading, SymbolSet)]

    @cached_property
    def _gains(self) -> NDArray[np.float64]:
        """1 / q_t of each shape, by its code."""
        gains = np.zeros(max(self._shape_codes.max(initial=0) + 1, 1))
        for rows, symbols in self.shapes:
            if symbols:
                gains[rows * _SHAPES + symbols] = 1 / (symbols / (1 << rows))
        return gains

    def e_values(self, payload: int, /) -> EValues:
        allowed = self._allowed(payload)
        values = np.where(allowed, self._gains[self._shape_codes], 0.0)
        hard = np.bincount(self._shape_codes[allowed], minlength=len(self._gains))
        counts: dict[float, int] = {}
        for code in np.flatnonzero(hard).tolist():
            gain = self._gains[code].item()
            counts[gain] = counts.get(gain, 0) + int(hard[code])
        for place, reading in self._plain:
            value = values[place] = reading.e_value(payload)
            if value > 0:
                counts[value] = counts.get(value, 0) + 1
        contradicting = np.flatnonzero(values <= 0)
        if len(contradicting):
            counts[0.0] = len(contradicting)
        return EValues(counts, Column[float](values), Column[int](contradicting))

    def _allowed(self, payload: int) -> Bools:
        """Which steps allow this payload; False for plain readings, which are asked by themselves."""
        table = self._table
        symbols = self._symbols(payload) ^ table.pad
        allowed: Bools = (table.kind == ONE_SYMBOL) & (symbols == table.symbol)
        places = np.flatnonzero(table.kind == SYMBOL_SET)
        of_sets = symbols[places]
        words = table.sets[np.arange(len(places)), of_sets >> 6]
        allowed[places] = (words >> (of_sets & 63).astype(np.uint64) & np.uint64(1)).astype(np.bool_)
        return allowed

    def _symbols(self, payload: int) -> Int64s:
        """A_t m of each step, the first row's parity most significant."""
        rows, starts, shifts = self._rows
        symbols = np.zeros(len(self), dtype=np.int64)
        if len(rows) == 0:
            return symbols
        size = rows.shape[1]
        parts = np.array([payload >> 64 * (size - 1 - i) & 0xFFFFFFFFFFFFFFFF for i in range(size)], dtype=np.uint64)
        met = rows & parts
        folded = met[:, 0] if size == 1 else np.bitwise_xor.reduce(met, axis=1)
        parities = (np.bitwise_count(folded) & 1).astype(np.int64) << shifts
        has_rows = self._table.width > 0
        symbols[has_rows] = np.add.reduceat(parities, starts[has_rows])
        return symbols

    @cached_property
    def _rows(self) -> tuple[UInt64s, Int64s, Int64s]:
        """The rows of all steps, each of as many words as the longest has; where those of each step begin; and by how
        much the parity of each is shifted in its symbol."""
        table = self._table
        width = table.width.astype(np.int64)
        starts = _starts(width)
        sizes = np.repeat(table.row_words, width)
        most = int(sizes.max(initial=0))
        if bool(np.all(sizes == most)):
            rows = table.words.reshape(len(sizes), most)
        else:
            # Rows of other payload lengths: as numbers, with zeros in front.
            rows = np.zeros((len(sizes), most), dtype=np.uint64)
            line = np.repeat(np.arange(len(sizes)), sizes)
            rows[line, spread(most - sizes, sizes)] = table.words
        shifts = np.repeat(starts[1:], width) - 1 - np.arange(len(sizes))
        if most == 0:
            rows, shifts = rows[:0], shifts[:0]
        return rows, starts[:-1], shifts

    def single(self) -> Sequence[int]:
        return Column[int](np.flatnonzero(self._shape_codes % _SHAPES == 1))

    def by_symbols(self, most: int, /) -> Sequence[int]:
        counts = self._shape_codes % _SHAPES
        places = np.flatnonzero(counts > 1)
        return Column[int](places[np.argsort(counts[places], kind="stable")[:most]])

    def by_evidence(self, most: int, /, *, single: bool = False) -> Sequence[int]:
        said = np.zeros(len(self._gains))
        for rows, symbols in self.shapes:
            if symbols:
                said[rows * _SHAPES + symbols] = rows - log2(symbols)
        bits = said[self._shape_codes]
        for place, reading in self._plain:
            bits[place] = reading.evidence_bits
        places = np.flatnonzero(self._shape_codes % _SHAPES == 1) if single else np.arange(len(self))
        return Column[int](places[np.argsort(-bits[places], kind="stable")[:most]])

    def to_bytes(self) -> bytes:
        """These steps alone, as a table."""
        return self._table.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        return cls(SymbolTable.from_bytes(data))
