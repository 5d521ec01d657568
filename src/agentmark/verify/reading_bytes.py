"""What a step says, as bytes and back: strictly, for states that are kept or handed on."""

from math import fsum, isfinite
from struct import Struct

from agentmark.core.distribution import MAX_BEHAVIORS
from agentmark.core.errors import StateError
from agentmark.core.symbols import SYMBOL_BITS, Reading, SoftSymbols, SymbolSet

_COUNT = Struct(">I")
_DOUBLE = Struct(">d")
# One byte tells which kind of reading follows; the order of the members is the format.
_NO_READING, _SYMBOL_SET, _SOFT_SYMBOLS = range(3)
# Rounding may lift the mean of soft values above 1 by this much.
_MEAN_SLACK = 1e-9


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
    if count > MAX_BEHAVIORS.bit_length() or (kind == _SOFT_SYMBOLS and count != SYMBOL_BITS):
        raise StateError(f"record {where}: {count} rows are not those of a step")
    rows = tuple([source.framed_number() for _ in range(count)])
    pad = source.framed_number()
    if any(row >> payload_len for row in rows) or pad >> count:
        raise StateError(f"record {where}: a row or pad is too long")
    if kind == _SYMBOL_SET:
        symbols = source.framed_number()
        # The highest symbol must be one of 2^count; compared by lengths, so that no count makes a huge number.
        if symbols == 0 or (symbols.bit_length() - 1).bit_length() > count:
            raise StateError(f"record {where}: a set of symbols that no step leaves")
        return SymbolSet(rows, pad, symbols)
    if kind == _SOFT_SYMBOLS:
        values = tuple([_DOUBLE.unpack(source.take(8))[0] for _ in range(1 << count)])
        # Each step's e-value has mean 1 at most (law L8): evidence that was made up would not.
        valid = all(isfinite(value) and value >= 0 for value in values)
        if not valid or fsum(values) > len(values) * (1 + _MEAN_SLACK):
            raise StateError(f"record {where}: values that are no e-values")
        return SoftSymbols(rows, pad, values)
    raise StateError(f"record {where}: a reading of unknown kind {kind}")


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
