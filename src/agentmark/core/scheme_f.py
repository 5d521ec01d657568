"""AgentMark-F, one step (Algorithms 1 and 2): recombine, choose a bin, code within it."""

from dataclasses import dataclass

from agentmark.core.cyclic_shift import CodeWord, cyclic_shift_decode, cyclic_shift_encode, short_len
from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.prf import F_DRAW, F_PAD, F_ROWS, prf
from agentmark.core.recombination import UniformBin, select_bin
from agentmark.core.rlnc import Equation, coefficient_rows, pad_bits, row_parities


@dataclass(frozen=True, slots=True)
class Embedding:
    """What one step carries: the behavior b^_t and s_t, the masked bits that led to it."""

    behavior: str
    embedded_bits: CodeWord

    @property
    def capacity(self) -> int:
        """c_t, in bits."""
        return self.embedded_bits.length


def draw_bin(distribution: BehaviorDistribution, step_key: bytes) -> UniformBin:
    """Lines 1 to 3 of both algorithms: 32 keyed bits are an exact draw over the total weight of 2^32."""
    draw = int.from_bytes(prf(step_key, F_DRAW, size=4), "big")
    return select_bin(distribution.weights, draw)


def encode(distribution: BehaviorDistribution, step_key: bytes, *, payload: int, payload_len: int) -> Embedding:
    """Algorithm 1. The bits are y_t xor Z_t (App. C), with y_t = A_t m from the RLNC rows of section 4.4."""
    chosen = draw_bin(distribution, step_key)
    count = short_len(chosen.size) + 1
    if chosen.size == 1:
        return Embedding(distribution.behaviors[0], CodeWord(0, 0))
    rows = coefficient_rows(step_key, F_ROWS, payload_len, count)
    coded_bits = row_parities(rows, payload) ^ pad_bits(step_key, F_PAD, count)
    position, embedded_bits = cyclic_shift_encode(coded_bits, chosen.size, chosen.shift)
    return Embedding(distribution.behaviors[position], embedded_bits)


def decode(
    distribution: BehaviorDistribution, step_key: bytes, behavior: str, *, payload_len: int
) -> list[Equation] | None:
    """Algorithm 2: c_t equations on the payload, or None when this key cannot have chosen this behavior."""
    chosen = draw_bin(distribution, step_key)
    position = distribution.position(behavior)
    if position >= chosen.size:
        return None
    code = cyclic_shift_decode(position, chosen.size, chosen.shift)
    if code.length == 0:
        return []
    rows = coefficient_rows(step_key, F_ROWS, payload_len, code.length)
    unmasked = code.bits ^ pad_bits(step_key, F_PAD, code.length)
    return [Equation(row, unmasked >> (code.length - 1 - j) & 1) for j, row in enumerate(rows)]
