"""Incremental, mergeable elimination over F2 (Algorithm 6, App. E) with a consistency check."""

from collections.abc import Iterator
from typing import Self

from agentmark.core.errors import StateError
from agentmark.core.rlnc import Equation

_MAGIC = b"AMLS\x01"


class LinearSystem:
    """A m = y, one equation at a time. Rank and consistency do not depend on the order of the equations."""

    __slots__ = ("_pivots", "_solution", "contradictions", "equation_count", "payload_len")

    def __init__(self, payload_len: int) -> None:
        self.payload_len = payload_len
        self.equation_count = 0
        # How many equations disagreed with those before them; its being zero is what matters.
        self.contradictions = 0
        # Augmented rows (coefficients << 1) | parity, by bit length: each has a leading bit of its own.
        self._pivots: dict[int, int] = {}
        self._solution: int | None = None

    @property
    def rank(self) -> int:
        return len(self._pivots)

    @property
    def surplus(self) -> int:
        """Equations beyond the rank: each halves the chance that a log without our mark agrees."""
        return self.equation_count - self.rank

    @property
    def consistent(self) -> bool:
        return self.contradictions == 0

    def update(self, equation: Equation) -> bool:
        """Add one equation; False when it contradicts the others."""
        self.equation_count += 1
        if self._solution is not None:
            agrees = (equation.coefficients & self._solution).bit_count() & 1 == equation.parity
        else:
            agrees = self._insert(equation.coefficients << 1 | equation.parity)
        self.contradictions += not agrees
        return agrees

    def _insert(self, row: int) -> bool:
        """Reduce by the pivots; what is left is a new pivot, nothing (0), or the equation 0 = 1."""
        while row > 1:
            pivot = self._pivots.get(row.bit_length())
            if pivot is None:
                self._pivots[row.bit_length()] = row
                if self.rank == self.payload_len:
                    self._solution = self._back_substitute()
                return True
            row ^= pivot
        return row == 0

    def solution(self) -> int | None:
        """The payload when the rank is full, else None. Meaningful only while consistent."""
        if self.payload_len == 0:
            return 0
        return self._solution

    def _back_substitute(self) -> int:
        payload = 0
        for length in sorted(self._pivots):
            row = self._pivots[length]
            # Every lower bit of the payload is known by now, and the parity bit stands in as a constant.
            known = (row >> 1) & payload
            leading = 1 << (length - 2)
            if (known.bit_count() ^ row) & 1:
                payload |= leading
        return payload

    def pivots(self) -> Iterator[Equation]:
        """Independent equations that say all that the system says (while it is consistent)."""
        for length in sorted(self._pivots):
            yield Equation(self._pivots[length] >> 1, self._pivots[length] & 1)

    def merge(self, other: "LinearSystem") -> None:
        """Add everything another system has seen, as if its equations had come here."""
        if other.payload_len != self.payload_len:
            raise ValueError(f"payload_len {other.payload_len} cannot merge into {self.payload_len}")
        before = self.equation_count
        for equation in other.pivots():
            self.update(equation)
        self.equation_count = before + other.equation_count
        self.contradictions += other.contradictions

    def to_bytes(self) -> bytes:
        """Magic, four 64-bit integers, then the pivot rows; big-endian throughout."""
        width = (self.payload_len + 8) // 8
        head = (self.payload_len, self.equation_count, self.contradictions, self.rank)
        rows = [self._pivots[length].to_bytes(width, "big") for length in sorted(self._pivots)]
        return _MAGIC + b"".join([number.to_bytes(8, "big") for number in head]) + b"".join(rows)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        start = len(_MAGIC) + 32
        if len(data) < start or not data.startswith(_MAGIC):
            raise StateError("not a linear system of version 1")
        numbers = [int.from_bytes(data[i : i + 8], "big") for i in range(len(_MAGIC), start, 8)]
        payload_len, equation_count, contradictions, rank = numbers
        width = (payload_len + 8) // 8
        if len(data) != start + rank * width:
            raise StateError(f"linear system of rank {rank} is cut short or padded")
        system = cls(payload_len)
        for i in range(start, len(data), width):
            row = int.from_bytes(data[i : i + width], "big")
            if not 1 < row < 2 << payload_len or not system._insert(row):
                raise StateError("linear system holds a row that is not a pivot")
        if system.rank != rank:
            raise StateError("linear system holds dependent rows")
        system.equation_count = equation_count
        system.contradictions = contradictions
        return system
