"""AgentMark-R, one step: an exponential race between the behaviors, run under a symbol of eight coded bits.

Every behavior b draws a clock -ln(u_b) / weight_b, with u_b keyed by the step key and the name of b, and moved by the
symbol. The first clock to ring wins, with probability weight_b / total whatever the symbol is (spec, section 7).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from hashlib import blake2b
from math import ceil, exp, floor, fsum, log
from struct import Struct
from typing import NamedTuple, Self

from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.prf import R_CLOCK, R_STEP
from agentmark.core.rlnc import StepBits, row_parities
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT, SoftSymbols, SymbolSet

# Where a step's bits hold what (spec, section 7).
PAD_START, ROWS_START = 0, SYMBOL_BITS
CLOCK_SIZE = 8

# Two maths libraries may differ in the last bits of a logarithm. Closer than this, the race is not decided by it:
# the step goes unmarked. A library would have to be wrong by a thousand ulps to reach it.
TIE_GAP = 2.0**-40
# A clock is left without its logarithm only if it is this far from making a difference: what the last bits of a
# logarithm or an exponential may be off is a thousandth of it.
SAFE_GAP = 2.0**-40
# A rival so much lighter than the behavior is asked first whether it can matter at all.
LIGHT_RATIO = 1 / 64
# Ratios of weights are told apart to a factor of e^(1/16) before logarithms are taken.
RATIOS_PER_E = 16


def _field_products() -> tuple[bytes, ...]:
    """g * s in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1, as a row of 256 bytes for each g."""
    doubled = bytes([g << 1 & 0xFF ^ (0x1B if g & 0x80 else 0) for g in range(256)])
    ones = int.from_bytes(bytes(range(256)), "big")
    rows = [bytes(256)]
    for g in range(1, 256):
        row = rows[g >> 1].translate(doubled)
        # (g + 1) s = g s xor s.
        rows.append((int.from_bytes(row, "big") ^ ones).to_bytes(256, "big") if g & 1 else row)
    return tuple(rows)


PRODUCTS = _field_products()
# The g' with g g' = 1. Zero has none, and is never asked for.
_INVERSES = bytes([row.find(1) % 256 for row in PRODUCTS])
# t / 256: the place in the unit interval to which the symbol moves u.
_PLACES = tuple([t / SYMBOL_COUNT for t in range(SYMBOL_COUNT)])
_LAST_PLACE = _PLACES[-1]
_BELOW_MASK = (1 << 45) - 1

# 256 small numbers side by side in one integer. A lane has a flag above its number: with the flags set, one subtraction
# compares all lanes, and leaves the flags of those that are not smaller.
LANE_BITS = 16


_pack_lanes = Struct(f"<{SYMBOL_COUNT}H").pack


def _lanes(numbers: Iterable[int]) -> int:
    """The first number in the lowest lane."""
    return int.from_bytes(_pack_lanes(*numbers), "little")


_ONES = _lanes([1] * SYMBOL_COUNT)
_FLAGS = _ONES << LANE_BITS - 1
_ZERO_DIGITS = ord("0") * _ONES


@cache
def _product_lanes(factor: int) -> int:
    """The multiples of a factor, by what it is multiplied with, and the flags."""
    return _lanes(PRODUCTS[factor]) | _FLAGS


class ClockDraw(NamedTuple):
    """The keyed bits of one behavior: where its u lies under symbol 0, and how symbols move it.

    Under symbol s, u lies at place `top xor step * s` of 256, and `below` within it. Since the step is not zero, each
    place is taken under exactly one symbol.
    """

    top: int
    step: int
    below: float

    @classmethod
    def of_bits(cls, bits: int) -> Self:
        """64 bits: 52 of u, four that are not used, and the step, where 0 counts as 1."""
        return cls(bits >> 56, bits & 0xFF or 1, (bits >> 11 & _BELOW_MASK | 1) * 2.0**-53)

    def uniform(self, symbol: int) -> float:
        """(2x + 1) / 2^53: exact in a double, and never 0 or 1."""
        return _PLACES[self.top ^ PRODUCTS[self.step][symbol]] + self.below

    def uniforms(self) -> list[float]:
        """Under every symbol."""
        top, step, below = self
        return [_PLACES[top ^ moved] + below for moved in PRODUCTS[step]]


def clock_draw(step_key: bytes, behavior: str) -> ClockDraw:
    """What the race draws for one behavior."""
    return ClockDraw.of_bits(_clock_bits(step_key)(behavior))


def _clock_draws(step_key: bytes) -> Callable[[str], ClockDraw]:
    bits_of = _clock_bits(step_key)
    return lambda behavior: ClockDraw.of_bits(bits_of(behavior))


def _clock_bits(step_key: bytes) -> Callable[[str], int]:
    """PRF(step key, R clock, name, 8) by name. Key and label are absorbed once and copied, which saves a third."""
    copy = blake2b(R_CLOCK + b"\0", key=step_key, digest_size=CLOCK_SIZE).copy

    def bits(behavior: str) -> int:
        state = copy()
        state.update(behavior.encode())
        return int.from_bytes(state.digest(), "big")

    return bits


def step_bits(step_key: bytes) -> StepBits:
    """Pad and rows of one step."""
    return StepBits(step_key, R_STEP)


def pad_bits(bits: StepBits) -> int:
    """Z_t, eight bits."""
    return bits.run(PAD_START, SYMBOL_BITS)


def coefficient_rows(bits: StepBits, payload_len: int) -> list[int]:
    """A_t, eight rows."""
    return bits.rows(ROWS_START, payload_len, SYMBOL_BITS)


def coded_symbol(step_key: bytes, *, payload: int, payload_len: int) -> int:
    """s_t = A_t m xor Z_t, eight bits."""
    bits = step_bits(step_key)
    return row_parities(coefficient_rows(bits, payload_len), payload) ^ pad_bits(bits)


def race_clocks(distribution: BehaviorDistribution, step_key: bytes, symbol: int) -> list[float]:
    """One clock for each behavior of positive weight, in canonical order; those of weight zero come last and do
    not run."""
    bits_of = _clock_bits(step_key)
    # g * symbol, by g: the product does not depend on the order.
    moved = PRODUCTS[symbol]
    clocks = []
    for behavior, weight in zip(distribution.behaviors, distribution.weights, strict=True):
        if weight == 0:
            break
        # `ClockDraw.uniform` is written out: a list is long, and only one symbol is asked for.
        bits = bits_of(behavior)
        u = _PLACES[bits >> 56 ^ moved[bits & 0xFF or 1]] + (bits >> 11 & _BELOW_MASK | 1) * 2.0**-53
        clocks.append(-log(u) / weight)
    return clocks


def race_winner(clocks: list[float]) -> int | None:
    """Index of the first clock to ring; None when the second is closer than the tie gap."""
    if len(clocks) == 1:
        return 0
    first, second = sorted(clocks)[:2]
    if second - first <= first * TIE_GAP:
        return None
    return clocks.index(first)


def encode(distribution: BehaviorDistribution, step_key: bytes, *, payload: int, payload_len: int) -> str | None:
    """The behavior that wins under the payload's symbol, or None for a tie (about one step in 2^40)."""
    symbol = coded_symbol(step_key, payload=payload, payload_len=payload_len)
    winner = race_winner(race_clocks(distribution, step_key, symbol))
    return None if winner is None else distribution.behaviors[winner]


def decode(distribution: BehaviorDistribution, step_key: bytes, behavior: str, *, payload_len: int) -> SymbolSet | None:
    """The symbols under which this behavior wins, or None when there are none."""
    symbols = winning_symbols(distribution, step_key, behavior)
    if symbols == 0:
        return None
    bits = step_bits(step_key)
    return SymbolSet(tuple(coefficient_rows(bits, payload_len)), pad_bits(bits), symbols)


def winning_symbols(distribution: BehaviorDistribution, step_key: bytes, behavior: str) -> int:
    """The set of symbols under which this behavior wins. Heavier rivals come first: they leave least to the others."""
    own_weight = distribution.weight(behavior)
    if own_weight == 0:
        return 0
    draw_of = _clock_draws(step_key)
    own = draw_of(behavior)
    pairs = zip(distribution.behaviors, distribution.weights, strict=True)
    rivals = ((draw_of(name), weight) for name, weight in pairs if weight and name != behavior)
    return _symbols_at(_unbeaten_places(own, own_weight, rivals), own)


def _unbeaten_places(own: ClockDraw, own_weight: float, rivals: Iterable[tuple[ClockDraw, float]]) -> int:
    """Run all 256 races at once, a lane for each place of the own u; flags are left where no rival rings first.

    Which of two clocks rings first can nearly always be told from the two places and the ratio of the weights, for all
    lanes by one subtraction; what is left are a few logarithms a rival.
    """
    own_top, own_step, own_below = own
    factors = PRODUCTS[_INVERSES[own_step]]
    alive = _FLAGS
    light = own_weight * LIGHT_RATIO
    for (top, step, below), weight in rivals:
        if weight < light:
            last_alive = (alive & -alive).bit_length() // LANE_BITS - 1
            if _LAST_PLACE + below < _harmless_below(weight, -log(_PLACES[last_alive] + own_below) / own_weight):
                continue
        # In the behavior's own places: where it is at place o, the rival is at `offset xor factor * o`.
        factor = factors[step]
        moved = PRODUCTS[factor]
        offset = top ^ moved[own_top]
        rival_places = _product_lanes(factor) ^ offset * _ONES
        sure, possible = _winning_places(floor(log(weight / own_weight) * RATIOS_PER_E))
        alive &= ~(rival_places - sure)
        unsure = alive & rival_places - possible
        while unsure:
            flag = unsure & -unsure
            unsure ^= flag
            place = flag.bit_length() // LANE_BITS - 1
            own_clock = -log(_PLACES[place] + own_below) / own_weight
            if own_clock >= -log(_PLACES[moved[place] ^ offset] + below) / weight:
                alive ^= flag
        if not alive:
            break
    return alive


def _symbols_at(alive: int, own: ClockDraw) -> int:
    """The set of symbols under which the behavior is at one of these places."""
    digits = ((alive >> LANE_BITS - 1) + _ZERO_DIGITS).to_bytes(LANE_BITS // 8 * SYMBOL_COUNT, "little")
    places = (_product_lanes(own.step) ^ own.top * _ONES ^ _FLAGS).to_bytes(LANE_BITS // 8 * SYMBOL_COUNT, "little")
    # By place, then by symbol; the digits of a number begin with the highest.
    return int(places[-2::-2].translate(digits[::2]), 2)


@cache
def _winning_places(bucket: int) -> tuple[int, int]:
    """For each of the own places, from which place on a rival rings first: surely, and possibly.

    For every ratio of weights, rival to own, in this bucket, and wherever within their places both u lie.
    """
    least, most = exp(bucket / RATIOS_PER_E), exp((bucket + 1) / RATIOS_PER_E)
    sure = [ceil(SYMBOL_COUNT * ((o + 1) / SYMBOL_COUNT) ** least * (1 + SAFE_GAP)) for o in range(SYMBOL_COUNT)]
    possible = [floor(SYMBOL_COUNT * (o / SYMBOL_COUNT) ** most * (1 - SAFE_GAP)) for o in range(SYMBOL_COUNT)]
    return _lanes(sure), _lanes(possible)


def _harmless_below(weight: float, latest: float) -> float:
    """A uniform below this rings later than `latest` at this weight, whatever the last bits of a logarithm are.

    A light rival hardly ever rings so early that it matters, and one comparison says so for all symbols. That is what
    keeps a list of thousands of names, which anyone can put into a log, cheap to read.
    """
    return exp(-weight * latest) * (1 - SAFE_GAP)


# What a step is worth when the probability of its choice was not logged: a spread over what it may have been. Choices
# that were certain say nothing; the noise rates of the evidence stand for them.
UNKNOWN_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55)
# ln of the likelihood of a win that cannot have been.
LOST = float("-inf")


def decode_partial(
    partial_weights: Mapping[str, int], step_key: bytes, behavior: str, *, payload_len: int
) -> SoftSymbols:
    """Read a step of whose list only a part is left: some rivals, the chosen one's own weight, or neither.

    Under a symbol, the behavior wins if its clock beats the rivals that are known (seen) and those that are not (who
    all ring later than time x with probability exp(-rest * x)). Divided by its mean over all symbols, that is an
    e-value.
    """
    rivals = {name: weight for name, weight in partial_weights.items() if weight and name != behavior}
    # What the logged rivals leave: the behavior's own mass, and that of the rivals that were not logged.
    left = (TOTAL_WEIGHT - sum(rivals.values())) / TOTAL_WEIGHT
    own = partial_weights.get(behavior)
    if own is not None:
        shares = [own / TOTAL_WEIGHT]
    else:
        shares = [share for share in UNKNOWN_SHARES if share <= left]
        if rivals:
            # The most it can have been, so that no guess makes a rival seem to win that did not.
            shares.append(left)
    draw_of = _clock_draws(step_key)
    own_draw = draw_of(behavior)
    heaviest_first = sorted(rivals.items(), key=lambda rival: -rival[1])
    known = [(draw_of(name), weight / TOTAL_WEIGHT) for name, weight in heaviest_first]
    logs = [log(u) for u in own_draw.uniforms()]
    exponents = []
    for share in shares:
        if share > 0:
            unbeaten = _symbols_at(_unbeaten_places(own_draw, share, known), own_draw)
            exponents.append(_win_exponents(logs, unbeaten, share, left))
    bits = step_bits(step_key)
    return SoftSymbols(tuple(coefficient_rows(bits, payload_len)), pad_bits(bits), _relative_likelihoods(exponents))


def _win_exponents(logs: list[float], unbeaten: int, share: float, left: float) -> list[float]:
    """ln of the likelihood that the behavior wins, under each symbol, if this was its share."""
    rate = share - left
    return [rate * (-ln / share) if unbeaten >> symbol & 1 else LOST for symbol, ln in enumerate(logs)]


def _relative_likelihoods(exponents: list[list[float]]) -> tuple[float, ...]:
    """Sums of exponentials, divided by their mean; relative to the largest, so that none comes out as 0/0."""
    top = max([max(some) for some in exponents], default=LOST)
    if top == LOST:
        return (0.0,) * SYMBOL_COUNT
    terms = [[exp(exponent - top) for exponent in some] for some in exponents]
    sums = terms[0] if len(terms) == 1 else [fsum(some) for some in zip(*terms, strict=True)]
    mean = fsum(sums) / SYMBOL_COUNT
    return tuple([total / mean for total in sums])
