"""AgentMark-F, one step (Algorithms 1 and 2): recombine, choose a bin, code within it."""

from dataclasses import dataclass

from agentmark.core.cyclic_shift import CodeWord, cyclic_shift_decode, cyclic_shift_encode, short_len
from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.prf import F_STEP
from agentmark.core.recombination import UniformBin, select_bin
from agentmark.core.rlnc import Equation, StepBits, row_parities

# Where a step's bits hold what (spec, section 6). A bin of 4096 behaviors takes 13 of the 16 bits for the pad.
DRAW_BITS = 32
PAD_START, PAD_BITS = 32, 16
ROWS_START = 48


@dataclass(frozen=True, slots=True)
class Embedding:
    """What one step carries: the behavior b^_t and s_t, the masked bits that led to it."""

    behavior: str
    embedded_bits: CodeWord

    @property
    def capacity(self) -> int:
        """c_t, in bits."""
        return self.embedded_bits.length


def step_bits(step_key: bytes) -> StepBits:
    """Draw, pad and rows of one step."""
    return StepBits(step_key, F_STEP)


def draw_bin(distribution: BehaviorDistribution, bits: StepBits) -> UniformBin:
    """Lines 1 to 3 of both algorithms: 32 keyed bits are an exact draw over the total weight of 2^32."""
    return select_bin(distribution.weights, bits.run(0, DRAW_BITS))


def pad_bits(bits: StepBits, count: int) -> int:
    """Z_t[1:count], first bit most significant."""
    return bits.run(PAD_START, count)


def coefficient_rows(bits: StepBits, payload_len: int, count: int) -> list[int]:
    """The first rows of A_t."""
    return bits.rows(ROWS_START, payload_len, count)


def encode(distribution: BehaviorDistribution, step_key: bytes, *, payload: int, payload_len: int) -> Embedding:
    """Algorithm 1. The bits are y_t xor Z_t (App. C), with y_t = A_t m from the RLNC rows of section 4.4."""
    bits = step_bits(step_key)
    chosen = draw_bin(distribution, bits)
    if chosen.size == 1:
        return Embedding(distribution.behaviors[0], CodeWord(0, 0))
    count = short_len(chosen.size) + 1
    coded_bits = row_parities(coefficient_rows(bits, payload_len, count), payload) ^ pad_bits(bits, count)
    position, embedded_bits = cyclic_shift_encode(coded_bits, chosen.size, chosen.shift)
    return Embedding(distribution.behaviors[position], embedded_bits)


def decode(
    distribution: BehaviorDistribution, step_key: bytes, behavior: str, *, payload_len: int
) -> list[Equation] | None:
    """Algorithm 2: c_t equations on the payload, or None when this key cannot have chosen this behavior."""
    read = decode_rows(distribution, step_key, behavior, payload_len=payload_len)
    if read is None:
        return None
    rows, parities = read
    last = len(rows) - 1
    return [Equation(row, parities >> (last - j) & 1) for j, row in enumerate(rows)]


def decode_rows(
    distribution: BehaviorDistribution, step_key: bytes, behavior: str, *, payload_len: int
) -> tuple[list[int], int] | None:
    """The same as c_t rows and their parities, the first row's most significant."""
    bits = step_bits(step_key)
    chosen = draw_bin(distribution, bits)
    position = distribution.position(behavior)
    if position >= chosen.size:
        return None
    code = cyclic_shift_decode(position, chosen.size, chosen.shift)
    if code.length == 0:
        return [], 0
    return coefficient_rows(bits, payload_len, code.length), code.bits ^ pad_bits(bits, code.length)
