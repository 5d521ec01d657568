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


def coefficient_rows(step_key: bytes, label: bytes, payload_len: int, count: int) -> list[int]:
    """a_{t,1} .. a_{t,count}: consecutive runs of `payload_len` bits of one labelled counter-mode stream."""
    needed = payload_len * count
    blocks = -(-needed // BLOCK_BITS)
    stream = int.from_bytes(b"".join([prf(step_key, label, i.to_bytes(4, "big")) for i in range(blocks)]), "big")
    stream >>= BLOCK_BITS * blocks - needed
    mask = (1 << payload_len) - 1
    return [(stream >> payload_len * (count - 1 - j)) & mask for j in range(count)]


def pad_bits(step_key: bytes, label: bytes, count: int) -> int:
    """Z_t[1:count], first bit most significant."""
    return int.from_bytes(prf(step_key, label), "big") >> (BLOCK_BITS - count)


def row_parities(rows: Sequence[int], payload: int) -> int:
    """y_t = A_t m as one integer, the first row's parity most significant."""
    bits = 0
    for row in rows:
        bits = bits << 1 | (row & payload).bit_count() & 1
    return bits
