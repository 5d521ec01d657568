"""What a step says, as bytes and back: strictly, for states that are kept or handed on."""

import sys
from array import array
from collections.abc import Iterable, Sequence
from math import fsum, isfinite
from struct import Struct
from typing import Any

from agentmark.core.distribution import MAX_BEHAVIORS
from agentmark.core.errors import StateError
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT, Reading, SoftSymbols, SymbolSet

_COUNT = Struct(">I")
_DOUBLE = Struct(">d")
# One byte tells which kind of reading follows; the order of the members is the format.
_NO_READING, _SYMBOL_SET, _SOFT_SYMBOLS = range(3)
# As many rows as the largest bin of a list needs.
MOST_ROWS = MAX_BEHAVIORS.bit_length()
# Rounding may lift the mean of soft values above 1 by this much.
MEAN_SLACK = 1e-9


def count_bytes(count: int) -> bytes:
    return _COUNT.pack(count)


def framed(data: bytes) -> bytes:
    return _COUNT.pack(len(data)) + data


def framed_number(number: int) -> bytes:
    return framed(number.to_bytes(-(-number.bit_length() // 8), "big"))


def reading_parts(reading: Reading | None) -> list[bytes]:
    """What a step says, or that it says nothing, in parts to be joined."""
    if reading is None:
        return [bytes([_NO_READING])]
    shared = [_COUNT.pack(len(reading.rows)), *map(framed_number, reading.rows), framed_number(reading.pad)]
    if isinstance(reading, SymbolSet):
        return [bytes([_SYMBOL_SET]), *shared, framed_number(reading.symbols)]
    return [bytes([_SOFT_SYMBOLS]), *shared, *map(_DOUBLE.pack, reading.values)]


def read_reading(source: "Source", payload_len: int, where: str) -> Reading | None:
    """The reading that stands next; StateError for what no step can say. `where` names its record."""
    kind = source.byte()
    if kind == _NO_READING:
        return None
    count = source.count()
    if count > MOST_ROWS:
        raise StateError(f"record {where}: {count} rows are not those of a step")
    rows = tuple([source.framed_number() for _ in range(count)])
    pad = source.framed_number()
    _check_rows(rows, pad, payload_len, soft=kind == _SOFT_SYMBOLS, where=where)
    if kind == _SYMBOL_SET:
        return _set(rows, pad, source.framed_number(), where)
    if kind == _SOFT_SYMBOLS:
        return _soft(rows, pad, tuple([_DOUBLE.unpack(source.take(8))[0] for _ in range(1 << count)]), where)
    raise StateError(f"record {where}: a reading of unknown kind {kind}")


def _check_rows(rows: Sequence[int], pad: int, payload_len: int, *, soft: bool, where: str) -> None:
    count = len(rows)
    if count > MOST_ROWS or (soft and count != SYMBOL_BITS):
        raise StateError(f"record {where}: {count} rows are not those of a step")
    if any(row >> payload_len for row in rows) or pad >> count:
        raise StateError(f"record {where}: a row or pad is too long")


def _set(rows: tuple[int, ...], pad: int, symbols: int, where: str) -> SymbolSet:
    # The highest symbol must be one of 2^count; compared by lengths, so that no count makes a huge number.
    if symbols == 0 or (symbols.bit_length() - 1).bit_length() > len(rows):
        raise StateError(f"record {where}: a set of symbols that no step leaves")
    return SymbolSet(rows, pad, symbols)


def _soft(rows: tuple[int, ...], pad: int, values: tuple[float, ...], where: str) -> SoftSymbols:
    # Each step's e-value has mean 1 at most (law L8): evidence that was made up would not.
    valid = all(isfinite(value) and value >= 0 for value in values)
    if not valid or fsum(values) > len(values) * (1 + MEAN_SLACK):
        raise StateError(f"record {where}: values that are no e-values")
    return SoftSymbols(rows, pad, values)


# Many readings, as columns: what is said of all steps stands together, so that an engine over columns can take it as
# it is. Little-endian throughout.

PACKED = b"AMRD\x01"
PACKED_HEAD = Struct("<QI")
EQUATIONS, SYMBOLS, SOFT = range(3)
SET_SIZE = SYMBOL_COUNT // 8


def row_size(payload_len: int) -> int:
    """Bytes of one packed row: whole words of 64 bits."""
    return 8 * -(-payload_len // 64)


def pack_readings(readings: Iterable[Reading], payload_len: int) -> bytes:
    """Magic, number of steps N, payload length (<QI); then, of each step, kind (0: one symbol, 1: a set of symbols, 2:
    values of symbols), number of rows (both uint8[N]), pad and symbol (uint32[N], the symbol 0 unless it is the one).
    Then all rows (`row_size` bytes each), the sets (bit s of 256: symbol s), the values (256 doubles each)."""
    log = list(readings)
    kinds, widths, pads, symbols = bytearray(), bytearray(), array("I"), array("I")
    rows: list[bytes] = []
    sets: list[bytes] = []
    values: list[bytes] = []
    size = row_size(payload_len)
    for reading in log:
        symbol = 0
        if not isinstance(reading, SymbolSet):
            kinds.append(SOFT)
            values.append(_little("d", reading.values))
        elif reading.symbol_count == 1:
            kinds.append(EQUATIONS)
            symbol = reading.symbols.bit_length() - 1
        else:
            kinds.append(SYMBOLS)
            sets.append(reading.symbols.to_bytes(SET_SIZE, "little"))
        widths.append(len(reading.rows))
        pads.append(reading.pad)
        symbols.append(symbol)
        rows += [row.to_bytes(size, "little") for row in reading.rows]
    head = PACKED + PACKED_HEAD.pack(len(log), payload_len)
    return (
        head
        + bytes(kinds)
        + bytes(widths)
        + _little("I", pads)
        + _little("I", symbols)
        + b"".join(rows + sets + values)
    )


def unpack_readings(data: bytes, payload_len: int) -> list[Reading]:
    """The readings that these bytes are of; StateError if they are of none, or of another payload length."""
    if not data.startswith(PACKED):
        raise StateError("not readings of version 1")
    source = Source(data, len(PACKED))
    count, length = PACKED_HEAD.unpack(source.take(PACKED_HEAD.size))
    if length != payload_len:
        raise StateError(f"readings of {length} bits where {payload_len} were expected")
    kinds, widths = source.take(count), source.take(count)
    pads, symbols = _numbers("I", source.take(4 * count)), _numbers("I", source.take(4 * count))
    if any(kind > SOFT for kind in kinds):
        raise StateError("readings of an unknown kind")
    size = row_size(payload_len)
    rows = [int.from_bytes(source.take(size), "little") for _ in range(sum(widths))]
    sets = iter([int.from_bytes(source.take(SET_SIZE), "little") for _ in range(kinds.count(SYMBOLS))])
    values = iter([_numbers("d", source.take(8 * SYMBOL_COUNT)) for _ in range(kinds.count(SOFT))])
    source.expect_end()
    readings: list[Reading] = []
    at = 0
    for i, kind in enumerate(kinds):
        own = tuple(rows[at : at + widths[i]])
        at += widths[i]
        _check_rows(own, pads[i], payload_len, soft=kind == SOFT, where=f"{i + 1} of packed readings")
        if kind != EQUATIONS and symbols[i]:
            raise StateError(f"record {i + 1} of packed readings: a symbol beside several")
        if kind == SOFT:
            readings.append(_soft(own, pads[i], tuple(next(values)), f"{i + 1} of packed readings"))
        else:
            possible = 1 << symbols[i] if kind == EQUATIONS and symbols[i] >> len(own) == 0 else 0
            readings.append(
                _set(own, pads[i], next(sets) if kind == SYMBOLS else possible, f"{i + 1} of packed readings")
            )
    return readings


def _little(typecode: str, numbers: Iterable[float]) -> bytes:
    column = array(typecode, numbers)
    if sys.byteorder != "little":
        column.byteswap()
    return column.tobytes()


def _numbers(typecode: str, data: bytes) -> "array[Any]":
    column = array(typecode, data)
    if sys.byteorder != "little":
        column.byteswap()
    return column


class Source:
    """Bytes, taken from the front. What is cut short or padded is refused."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise StateError("log state is cut short")
        self._at += size
        return self._data[self._at - size : self._at]

    def byte(self) -> int:
        return self.take(1)[0]

    def count(self) -> int:
        number: int = _COUNT.unpack(self.take(_COUNT.size))[0]
        return number

    def framed(self) -> bytes:
        return self.take(self.count())

    def framed_number(self) -> int:
        digits = self.framed()
        if digits.startswith(b"\0"):
            raise StateError("log state holds a number with leading zeros")
        return int.from_bytes(digits, "big")

    def expect_end(self) -> None:
        if self._at != len(self._data):
            raise StateError("log state is padded")
