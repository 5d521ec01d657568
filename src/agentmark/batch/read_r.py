"""AgentMark-R over columns: what `core.scheme_r.decode` says of each step, for all steps at once.

All 256 races of a step are run on bytes: a clock's u lies at one of 256 places, and the places of two clocks with the
ratio of their weights nearly always tell which rings first. What they leave open takes logarithms. Where even those are
close, the plain function is asked: NumPy's logarithm may differ from that of `math` in the last bit.
"""

from dataclasses import dataclass
from functools import cache

from agentmark.batch.arrays import Bools, Int64s, NDArray, np
from agentmark.batch.hashing import Steps, UInt64s, clock_words, code_rows, first_words, further_words, step_keys
from agentmark.batch.read_f import chunks
from agentmark.core.prf import R_STEP
from agentmark.core.scheme_r import PRODUCTS, ROWS_START, SAFE_GAP, TIE_GAP
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT

# Races that are run together, a byte for each: few enough for the cache.
RACES = 1 << 18
# Ratios of weights are told apart to a factor of e^(1/64) before logarithms are taken; none is beyond e^23.
RATIOS_PER_E = 64
LARGEST_LOG = 23
# Two clocks closer than this are left to the plain function: wider than the gap of a tie, and a thousand times what
# two maths libraries may differ by.
NEAR_GAP = 2 * TIE_GAP

_BELOW_BITS = 45


@dataclass(frozen=True, slots=True, kw_only=True)
class RReadings:
    """Of each step whether there are symbols under which its choice wins; of those where there are, the symbols as bits
    of four words, the pad, and the eight rows. Steps that are `near` a tie are left to the plain function."""

    possible: Bools
    near: Bools
    symbols: UInt64s
    pad: NDArray[np.uint8]
    rows: UInt64s


def read_r(steps: Steps) -> RReadings:
    """All races of all steps, steps of equally many options together."""
    total = len(steps)
    keys = step_keys(steps)
    symbols = np.zeros((total, SYMBOL_COUNT // 64), dtype=np.uint64)
    near = np.zeros(total, dtype=np.bool_)
    for rows, options in chunks(steps.options, lambda options: max(RACES // (SYMBOL_COUNT * options), 1)):
        runs = rows[steps.position[rows] < options]
        listed = steps.listed(runs, options)
        clocks = clock_words([keys[row] for row in runs.tolist()], steps.names.texts, steps.name[listed])
        symbols[runs], near[runs] = winning_symbols(clocks, steps.weight[listed], steps.position[runs])
    possible = symbols.any(axis=1) & ~near
    keys = [key for key, is_possible in zip(keys, possible.tolist(), strict=True) if is_possible]
    words = first_words(keys, R_STEP)
    pad = (words[:, 1] >> np.uint64(64 - SYMBOL_BITS)).astype(np.uint8)
    words = further_words(words, keys, R_STEP, np.full(len(keys), ROWS_START + SYMBOL_BITS * steps.payload_len))
    code = code_rows(words, ROWS_START, steps.payload_len, SYMBOL_BITS if keys else 0)
    return RReadings(possible=possible, near=near, symbols=symbols[possible], pad=pad, rows=code)


def winning_symbols(clocks: UInt64s, weights: Int64s, position: Int64s) -> tuple[UInt64s, Bools]:
    """For each step the symbols under which the option at `position` rings first, and whether that is too close to
    call. `clocks` are the 64 keyed bits of each option."""
    draws = _Draws(clocks, weights.astype(np.float64), position)
    wins = np.ones((len(position), SYMBOL_COUNT), dtype=np.bool_)
    near = np.zeros(len(position), dtype=np.bool_)
    if clocks.shape[1] > 1 and len(position):
        places = draws.rival_places()
        open_to, unsure_from = thresholds()
        bucket = draws.ratio_buckets()
        np.all(places <= open_to[bucket], axis=1, out=wins)
        unsure = places >= unsure_from[bucket]
        unsure &= wins[:, None, :]
        step, rival, place = np.unravel_index(np.flatnonzero(unsure), unsure.shape)
        lost, close = draws.in_doubles(step, rival, place, places[step, rival, place])
        wins[step[lost], place[lost]] = False
        near[step[close]] = True
    by_symbol = wins.ravel()[draws.own_places() + SYMBOL_COUNT * draws.line[:, None]]
    return np.packbits(by_symbol, axis=1, bitorder="little").view("<u8").astype(np.uint64), near


class _Draws:
    """The keyed bits of steps of one number of options: those of the choice, and those of its rivals.

    Under symbol s, a clock's u lies at place `top xor factor * s` of 256, and `below` within it. Each place is taken
    under one symbol, so races can as well be told apart by the place of the choice's own u.
    """

    def __init__(self, clocks: UInt64s, weights: NDArray[np.float64], position: Int64s) -> None:
        line = np.arange(len(position))
        self.line = line
        top = (clocks >> np.uint64(56)).astype(np.uint8)
        factor = np.maximum(clocks & np.uint64(0xFF), 1).astype(np.uint8)
        # 2 (v mod 2^44) + 1 over 2^53, exact in a double.
        below = (clocks >> np.uint64(11) & np.uint64((1 << _BELOW_BITS) - 1) | np.uint64(1)) * 2.0**-53
        self.own_top, self.own_factor = top[line, position], factor[line, position]
        self.own_below, self.own_weight = below[line, position], weights[line, position]
        # The first option takes the place of the choice among the rivals.
        for column in (top, factor, below, weights):
            column[line, position] = column[:, 0]
        self.top, self.factor, self.below, self.weight = top[:, 1:], factor[:, 1:], below[:, 1:], weights[:, 1:]

    def own_places(self) -> NDArray[np.uint8]:
        """The place of the choice's u under each symbol."""
        places: NDArray[np.uint8] = PRODUCT_TABLE[self.own_factor] ^ self.own_top[:, None]
        return places

    def rival_places(self) -> NDArray[np.uint8]:
        """The place of each rival's u, by that of the choice's own: [step, rival, own place]."""
        factor = PRODUCT_TABLE[INVERSES[self.own_factor][:, None], self.factor]
        offset = self.top ^ PRODUCT_TABLE[factor, self.own_top[:, None]]
        places: NDArray[np.uint8] = PRODUCT_TABLE[factor]
        places ^= offset[:, :, None]
        return places

    def ratio_buckets(self) -> Int64s:
        ratios = np.log(self.weight / self.own_weight[:, None])
        buckets: Int64s = (np.floor(ratios * RATIOS_PER_E) + LARGEST_LOG * RATIOS_PER_E).astype(np.int64)
        return buckets

    def in_doubles(
        self, step: Int64s, rival: Int64s, place: Int64s, rival_place: NDArray[np.uint8]
    ) -> tuple[Bools, Bools]:
        """Whether the choice at this place loses against this rival, and whether it is close; by logarithms."""
        own = -np.log(place * 2.0**-8 + self.own_below[step]) / self.own_weight[step]
        other = -np.log(rival_place * 2.0**-8 + self.below[step, rival]) / self.weight[step, rival]
        return own >= other, np.abs(own - other) <= other * NEAR_GAP


@cache
def thresholds() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """For each bucket of ratios, rival to choice, and each place of the choice: beyond which place a rival surely rings
    first, and from which on it may. For every ratio in the bucket, and wherever within their places both u lie."""
    buckets = np.arange(-LARGEST_LOG * RATIOS_PER_E, LARGEST_LOG * RATIOS_PER_E)[:, None]
    place = np.arange(SYMBOL_COUNT)
    with np.errstate(under="ignore"):
        high = ((place + 1) / SYMBOL_COUNT) ** np.exp(buckets / RATIOS_PER_E)
        low = (place / SYMBOL_COUNT) ** np.exp((buckets + 1) / RATIOS_PER_E)
    open_to = np.clip(np.ceil(SYMBOL_COUNT * high * (1 + SAFE_GAP)) - 1, 0, SYMBOL_COUNT - 1)
    unsure_from = np.floor(SYMBOL_COUNT * low * (1 - SAFE_GAP))
    return open_to.astype(np.uint8), unsure_from.astype(np.uint8)


PRODUCT_TABLE = np.frombuffer(b"".join(PRODUCTS), np.uint8).reshape(SYMBOL_COUNT, SYMBOL_COUNT)
# What a factor has to be multiplied by to give 1; zero has none, and is none.
INVERSES = np.argmax(PRODUCT_TABLE == 1, axis=1).astype(np.uint8)
