"""Random linear network coding over F2 (section 4.4, App. E): rows and pad from the step key."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmark.core.prf import BLOCK_SIZE, prf

BLOCK_BITS = 8 * BLOCK_SIZE


@dataclass(frozen=True, slots=True)
class Equation:
    """<a_{t,j}, m> = y_{t,j}. Coefficients as an integer of `payload_len` bits, m_1 most significant."""

    coefficients: int
    parity: int


class StepBits:
    """The keyed bits of one step: blocks 0, 1, 2, ... under one label, joined, and hashed only as far as they are read.

    Each scheme says which of them are its draw, its pad and its rows (spec, section 5). For usual payloads block 0
    holds them all: eight rows of up to 63 bits for R.
    """

    __slots__ = ("_block_count", "_joined", "_label", "_step_key")

    def __init__(self, step_key: bytes, label: bytes) -> None:
        self._step_key = step_key
        self._label = label
        self._joined = int.from_bytes(prf(step_key, label, b"\0\0\0\0"), "big")
        self._block_count = 1

    def run(self, start: int, length: int) -> int:
        """Bits `start` to `start + length - 1` as an integer, the first most significant."""
        while start + length > BLOCK_BITS * self._block_count:
            block = prf(self._step_key, self._label, self._block_count.to_bytes(4, "big"))
            self._joined = self._joined << BLOCK_BITS | int.from_bytes(block, "big")
            self._block_count += 1
        return self._joined >> (BLOCK_BITS * self._block_count - start - length) & (1 << length) - 1

    def rows(self, start: int, payload_len: int, count: int) -> list[int]:
        """a_{t,1} .. a_{t,count}: consecutive runs of `payload_len` bits from `start` on."""
        together = self.run(start, payload_len * count)
        mask = (1 << payload_len) - 1
        return [together >> payload_len * (count - 1 - j) & mask for j in range(count)]


def row_parities(rows: Sequence[int], payload: int) -> int:
    """y_t = A_t m as one integer, the first row's parity most significant."""
    bits = 0
    for row in rows:
        bits = bits << 1 | (row & payload).bit_count() & 1
    return bits
