"""Every identity of a registry against every step, with NumPy: the symbols of all identities by tables.

A symbol is linear in the payload, so that it is a sum of one table entry for each byte of the payload (two bytes, for a
large registry). What is prepared from the payloads is kept as long as the registry is asked.
"""

from collections.abc import Sequence
from typing import Any

from agentmark.core.symbols import Reading, SymbolSet

# From so many identities on, tables of two bytes pay.
MANY = 1 << 15
# Symbols that are held at once: as many as a core keeps close.
BLOCK = 1 << 17


class IdentityArrays:
    """The payloads of all identities, cut into pieces that index tables."""

    def __init__(self, payloads: Sequence[int], payload_len: int) -> None:
        import numpy

        self.count = len(payloads)
        self._bits = 16 if self.count >= MANY else 8
        width = -(-payload_len // self._bits)
        data = b"".join([payload.to_bytes(width * self._bits // 8, "little") for payload in payloads])
        pieces = numpy.frombuffer(data, dtype="<u2" if self._bits == 16 else "<u1").reshape(self.count, width)
        # One row for each piece, least significant first, as NumPy wants its indices.
        self._pieces = numpy.ascontiguousarray(pieces.T).astype(numpy.intp)

    def scores(self, readings: Sequence[SymbolSet], gains: Sequence[Sequence[int]]) -> Any:
        """For each row of gains (a gain for each step, in whole numbers) the sum over the steps that an identity agrees
        with, for every identity."""
        import numpy

        exact = sum([max(of_step) for of_step in zip(*gains, strict=True)], start=0)
        # Sums of whole numbers are exact as long as they fit the mantissa.
        kind = numpy.float32 if exact < 1 << 24 else numpy.float64
        weights = numpy.array(gains, dtype=kind).reshape(len(gains), len(readings))
        totals = numpy.zeros((len(gains), self.count), dtype=kind)
        tables = self._tables(readings)
        single = numpy.array([reading.symbol_count == 1 for reading in readings], dtype=bool)
        # What leaves one symbol is compared with it; sets are looked up.
        wanted = numpy.array(
            [reading.symbols.bit_length() - 1 for reading in readings],
            dtype=tables[0].dtype if tables else numpy.uint32,
        )
        several = numpy.flatnonzero(~single)
        members = _members([readings[i] for i in several.tolist()])
        for begin, end in self._blocks(len(readings)):
            symbols = self._symbols(readings, tables, begin, end)
            agree = symbols == wanted[:, None]
            if len(several):
                flat = symbols[several].astype(numpy.intp)
                flat += numpy.arange(len(several), dtype=numpy.intp)[:, None] << 8
                agree[several] = members.take(flat)
            totals[:, begin:end] = weights @ agree.astype(kind)
        return totals.astype(numpy.int64)

    def sums(self, readings: Sequence[Reading], values: Sequence[Sequence[float]]) -> Any:
        """The sum over steps of what each symbol is worth (`values`: of every symbol of a step), for every identity."""
        import numpy

        total = numpy.zeros(self.count)
        tables = self._tables(readings)
        for begin, end in self._blocks(len(readings)):
            symbols = self._symbols(readings, tables, begin, end)
            for step, worth in enumerate(values):
                total[begin:end] += numpy.array(worth)[symbols[step]]
        return total

    def _blocks(self, steps: int) -> list[tuple[int, int]]:
        size = max(1, BLOCK // max(steps, 1))
        return [(begin, min(begin + size, self.count)) for begin in range(0, self.count, size)]

    def _symbols(self, readings: Sequence[Reading], tables: Sequence[Any], begin: int, end: int) -> Any:
        import numpy

        symbols = numpy.empty((len(readings), end - begin), dtype=tables[0].dtype if tables else numpy.uint32)
        symbols[:] = numpy.array([reading.pad for reading in readings], dtype=symbols.dtype)[:, None]
        for piece, table in zip(self._pieces, tables, strict=True):
            symbols ^= table.take(piece[begin:end], axis=1)
        return symbols

    def _tables(self, readings: Sequence[Reading]) -> list[Any]:
        """For each piece of a payload: what every value of it adds to the symbol of every step."""
        import numpy

        widest = max([len(reading.rows) for reading in readings], default=0)
        kind: Any = numpy.uint8 if widest <= 8 else numpy.uint32
        tables = []
        size = self._bits // 8 * len(self._pieces)
        # Which rows have which payload bit, least significant first: steps x rows x bits.
        data = b"".join(
            [
                row.to_bytes(size, "little")
                for reading in readings
                for row in (*reading.rows, *[0] * (widest - len(reading.rows)))
            ]
        )
        rows = numpy.frombuffer(data, dtype=numpy.uint8).reshape(len(readings), widest, size)
        bits = numpy.unpackbits(rows, axis=2, bitorder="little").astype(kind)
        shifts = numpy.zeros((len(readings), widest, 1), dtype=kind)
        for step, reading in enumerate(readings):
            shifts[step, : len(reading.rows), 0] = range(len(reading.rows) - 1, -1, -1)
        adds = numpy.bitwise_or.reduce(bits << shifts, axis=1)
        for piece in range(len(self._pieces)):
            table = numpy.zeros((len(readings), 1), dtype=kind)
            for bit in range(piece * self._bits, (piece + 1) * self._bits):
                table = numpy.concatenate([table, table ^ adds[:, bit, None]], axis=1)
            tables.append(table)
        return tables


def _members(readings: Sequence[SymbolSet]) -> Any:
    """Which of 256 symbols each step leaves, one step behind the other."""
    import numpy

    data = b"".join([reading.symbols.to_bytes(32, "little") for reading in readings])
    return numpy.unpackbits(numpy.frombuffer(data, dtype=numpy.uint8), bitorder="little").astype(bool)


def largest(scores: Any, count: int) -> list[int]:
    """The places of the largest scores, largest first; of equals, the lowest place."""
    import numpy

    if count < len(scores):
        least = -numpy.partition(-scores, count - 1)[count - 1]
        above = numpy.flatnonzero(scores > least)
        chosen = numpy.concatenate([above, numpy.flatnonzero(scores == least)[: count - len(above)]])
    else:
        chosen = numpy.arange(len(scores))
    order = numpy.lexsort((chosen, -scores[chosen]))
    places: list[int] = chosen[order].tolist()
    return places
