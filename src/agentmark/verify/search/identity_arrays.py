"""Every identity of a registry against every step, with NumPy: the symbols of all identities by tables.

A symbol is linear in the payload, so that it is a sum of one table entry for each byte of the payload (two bytes, for a
large registry). What is prepared from the payloads is kept as long as the registry is asked.
"""

from collections.abc import Sequence
from typing import Any

from agentmark.core.symbols import Reading, SymbolSet

# So few of the best are found one after the other.
FEW = 4
# From so many identities on, tables of two bytes pay.
MANY = 1 << 15
# Steps of so few kinds are counted kind by kind; of more, digit by digit of what they are worth.
FEW_KINDS = 8
# Steps that are asked at once, and symbols that are held at once: as many as a core keeps close.
STEPS = 64
BLOCK = 1 << 19


class IdentityArrays:
    """The payloads of all identities, cut into pieces that index tables."""

    def __init__(self, payloads: Sequence[int], payload_len: int) -> None:
        import numpy

        self.count = len(payloads)
        self._bits = 16 if self.count >= MANY else 8
        width = -(-payload_len // self._bits)
        if payload_len <= 64:
            data = numpy.array(payloads, dtype="<u8")
        else:
            data = numpy.frombuffer(
                b"".join([payload.to_bytes(width * self._bits // 8, "little") for payload in payloads]), numpy.uint8
            )
        pieces = data.view(f"<u{self._bits // 8}").reshape(self.count, -1)[:, :width]
        # One row for each piece, least significant first, as NumPy wants its indices.
        self._pieces = numpy.ascontiguousarray(pieces.T, dtype=numpy.intp)

    def scores(self, readings: Sequence[SymbolSet], gains: Sequence[Sequence[int]]) -> Any:
        """For each row of gains (a gain for each step, in whole numbers) the sum over the steps that an identity agrees
        with, for every identity."""
        import numpy

        totals = numpy.zeros((len(gains), self.count), dtype=numpy.int64)
        for first in range(0, len(readings), STEPS):
            part = readings[first : first + STEPS]
            of_part = [row[first : first + STEPS] for row in gains]
            tables = self._tables(part)
            # What leaves one symbol is compared with it; sets are looked up.
            wanted = numpy.array([reading.symbols.bit_length() - 1 for reading in part], dtype=_kind_of(part))
            several = [(i, _members(reading)) for i, reading in enumerate(part) if reading.symbol_count > 1]
            for begin, end in self._blocks(len(part)):
                symbols = self._symbols(part, tables, begin, end)
                agree = numpy.zeros((end - begin, STEPS), dtype=bool)
                numpy.equal(symbols, wanted, out=agree[:, : len(part)])
                for i, members in several:
                    own = symbols[:, i].astype(numpy.uint8, copy=False)
                    agree[:, i] = numpy.frombuffer(own.tobytes().translate(members), dtype=bool)
                _add_gains(totals[:, begin:end], agree, of_part)
        return totals

    def sums(self, readings: Sequence[Reading], values: Sequence[Sequence[float]]) -> Any:
        """The sum over steps of what each symbol is worth (`values`: of every symbol of a step), for every identity."""
        import numpy

        total = numpy.zeros(self.count)
        for first in range(0, len(readings), STEPS):
            part = readings[first : first + STEPS]
            tables = self._tables(part)
            worth = [numpy.array(of_step) for of_step in values[first : first + STEPS]]
            for begin, end in self._blocks(len(part)):
                symbols = self._symbols(part, tables, begin, end)
                for i, of_step in enumerate(worth):
                    total[begin:end] += of_step.take(symbols[:, i])
        return total

    def _blocks(self, steps: int) -> list[tuple[int, int]]:
        size = max(1, BLOCK // max(steps, 1))
        return [(begin, min(begin + size, self.count)) for begin in range(0, self.count, size)]

    def _symbols(self, readings: Sequence[Reading], tables: Sequence[Any], begin: int, end: int) -> Any:
        """The symbols of these identities at all steps: a row for each identity."""
        import numpy

        pads = numpy.array([reading.pad for reading in readings], dtype=_kind_of(readings))
        symbols = numpy.tile(pads, (end - begin, 1))
        for piece, table in zip(self._pieces, tables, strict=True):
            symbols ^= table.take(piece[begin:end], axis=0)
        return symbols

    def _tables(self, readings: Sequence[Reading]) -> list[Any]:
        """For each piece of a payload: what each value of it adds to the symbols of all steps, a row for each value."""
        import numpy

        kind = _kind_of(readings)
        widest = max([len(reading.rows) for reading in readings], default=0)
        size = self._bits // 8 * len(self._pieces)
        # The rows with the least significant bit of the payload first, those of a step with its last row first.
        data = b"".join(
            [
                row.to_bytes(size, "little")
                for reading in readings
                for row in (*reversed(reading.rows), *[0] * (widest - len(reading.rows)))
            ]
        )
        rows = numpy.frombuffer(data, dtype=numpy.uint8).reshape(len(readings), widest, size)
        bits = numpy.unpackbits(rows, axis=2, bitorder="little").astype(kind)
        adds = numpy.bitwise_or.reduce(bits << numpy.arange(widest, dtype=kind)[:, None], axis=1)
        tables = []
        for piece in range(len(self._pieces)):
            table = numpy.zeros((1, len(readings)), dtype=kind)
            for bit in range(piece * self._bits, (piece + 1) * self._bits):
                table = numpy.concatenate([table, table ^ adds[:, bit]])
            tables.append(table)
        return tables


def _add_gains(totals: Any, agree: Any, gains: Sequence[Sequence[int]]) -> None:
    """Add to the totals of each row of gains those of the steps that agree (`STEPS` flags for each identity)."""
    import numpy

    # A word holds the flags of all steps, so that steps are counted and not summed.
    words = numpy.packbits(agree.ravel(), bitorder="little").view("<u8")
    alike: dict[tuple[int, ...], int] = {}
    for step, of_step in enumerate(zip(*gains, strict=True)):
        alike[of_step] = alike.get(of_step, 0) | 1 << step
    if len(alike) <= FEW_KINDS:
        for of_step, steps in alike.items():
            counts = numpy.bitwise_count(words & numpy.uint64(steps))
            for row, gain in enumerate(of_step):
                totals[row] += counts * numpy.int32(gain)
        return
    # Binary digit by binary digit of what steps are worth: those that have it are counted, and count twice the next.
    for row, of_row in enumerate(gains):
        total = numpy.zeros(len(words), dtype=numpy.int32)
        for place in reversed(range(max(of_row).bit_length())):
            steps = sum([(gain >> place & 1) << step for step, gain in enumerate(of_row)])
            total <<= 1
            total += numpy.bitwise_count(words & numpy.uint64(steps))
        totals[row] += total


def _kind_of(readings: Sequence[Reading]) -> Any:
    """As many bits as the symbols of these steps need."""
    import numpy

    return numpy.uint8 if all(len(reading.rows) <= 8 for reading in readings) else numpy.uint32


def _members(reading: SymbolSet) -> bytes:
    """For each of 256 symbols whether the step leaves it."""
    return bytes([reading.symbols >> symbol & 1 for symbol in range(256)])


def largest(scores: Any, count: int) -> list[int]:
    """The places of the largest scores (whole numbers), largest first; of equals, the lowest place."""
    import numpy

    if count < len(scores):
        if count <= FEW:
            return _one_by_one(scores.copy(), count)
        least = numpy.partition(scores, len(scores) - count)[len(scores) - count]
        above = numpy.flatnonzero(scores > least)
        chosen = numpy.concatenate([above, numpy.flatnonzero(scores == least)[: count - len(above)]])
    else:
        chosen = numpy.arange(len(scores))
    order = numpy.lexsort((chosen, -scores[chosen]))
    places: list[int] = chosen[order].tolist()
    return places


def _one_by_one(scores: Any, count: int) -> list[int]:
    """Of equals, the first is found first."""
    places = []
    for _ in range(count):
        places.append(int(scores.argmax()))
        scores[places[-1]] = scores.min() - 1
    return places
