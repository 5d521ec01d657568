"""AgentMark-R, one step: an exponential race between the behaviors, run under a symbol of eight coded bits.

Every behavior b draws a clock -ln(u_b) / weight_b, with u_b keyed by the step key, the symbol and the name of b.
The first clock to ring wins, with probability weight_b / total whatever the symbol is (spec, section 7).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from math import exp, fsum, log
from struct import Struct

from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.prf import BLOCK_SIZE, R_CLOCK, R_PAD, R_ROWS
from agentmark.core.rlnc import coefficient_rows, pad_bits, row_parities
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT, SoftSymbols, SymbolSet

LANES = BLOCK_SIZE // 8

# Two maths libraries may differ in the last bits of a logarithm. Closer than this, the race is not decided by it:
# the step goes unmarked. A library would have to be wrong by a thousand ulps to reach it.
TIE_GAP = 2.0**-40
# With more symbols left than this, all 256 lanes of a rival at once cost less than one by one.
MANY_ALIVE = 24
# A lane is left without its logarithm only if it is this far from making a difference: what the last bits of a
# logarithm or an exponential may be off is a thousandth of it.
SAFE_GAP = 2.0**-40
# Beyond this exponent an exponential is too small to compare by.
LARGEST_EXPONENT = 200.0

_unpack_lanes = Struct(f">{LANES}Q").unpack
_unpack_all = Struct(f">{SYMBOL_COUNT}Q").unpack
_BLOCKS = [bytes((block,)) for block in range(SYMBOL_COUNT // LANES)]


def coded_symbol(step_key: bytes, *, payload: int, payload_len: int) -> int:
    """s_t = A_t m xor Z_t, eight bits."""
    rows = coefficient_rows(step_key, R_ROWS, payload_len, SYMBOL_BITS)
    return row_parities(rows, payload) ^ pad_bits(step_key, R_PAD, SYMBOL_BITS)


def unit_uniform(lane: int) -> float:
    """The top 52 of 64 bits as (2x + 1) / 2^53: exact in a double, and never 0 or 1."""
    return (2 * (lane >> 12) + 1) * 2.0**-53


def behavior_lane(step_key: bytes, symbol: int, behavior: str) -> int:
    """The 64 keyed bits of one behavior under one symbol."""
    block, lane = divmod(symbol, LANES)
    return _lane_source(step_key)(block, behavior.encode())[lane]


def race_clocks(distribution: BehaviorDistribution, step_key: bytes, symbol: int) -> list[float]:
    """One clock for each behavior of positive weight, in canonical order; those of weight zero come last and do
    not run."""
    lanes_of = _lane_source(step_key)
    block, lane = divmod(symbol, LANES)
    clocks = []
    for behavior, weight in zip(distribution.behaviors, distribution.weights, strict=True):
        if weight == 0:
            break
        clocks.append(-log(unit_uniform(lanes_of(block, behavior.encode())[lane])) / weight)
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
    rows = coefficient_rows(step_key, R_ROWS, payload_len, SYMBOL_BITS)
    return SymbolSet(tuple(rows), pad_bits(step_key, R_PAD, SYMBOL_BITS), symbols)


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
    logs = _log_uniforms(step_key, behavior)
    latest = -min(logs) / min([share for share in shares if share > 0], default=1.0)
    first_rival = _first_rivals(step_key, rivals, latest)
    exponents = [_win_exponents(logs, first_rival, share, left) for share in shares if share > 0]
    rows = coefficient_rows(step_key, R_ROWS, payload_len, SYMBOL_BITS)
    return SoftSymbols(tuple(rows), pad_bits(step_key, R_PAD, SYMBOL_BITS), _relative_likelihoods(exponents))


def _win_exponents(logs: list[float], first_rival: list[float], share: float, left: float) -> list[float]:
    """ln of the likelihood that the behavior wins, under each symbol, if this was its share."""
    rate = share - left
    clocks = [-ln / share for ln in logs]
    return [rate * clock if clock < rival else LOST for clock, rival in zip(clocks, first_rival, strict=True)]


def _relative_likelihoods(exponents: list[list[float]]) -> tuple[float, ...]:
    """Sums of exponentials, divided by their mean; relative to the largest, so that none comes out as 0/0."""
    top = max([max(some) for some in exponents], default=LOST)
    if top == LOST:
        return (0.0,) * SYMBOL_COUNT
    terms = [[exp(exponent - top) for exponent in some] for some in exponents]
    sums = terms[0] if len(terms) == 1 else [fsum(some) for some in zip(*terms, strict=True)]
    mean = fsum(sums) / SYMBOL_COUNT
    return tuple([total / mean for total in sums])


def _log_uniforms(step_key: bytes, behavior: str) -> list[float]:
    """ln(u_b) for every symbol."""
    return _logs(_all_lanes(step_key)(behavior.encode()))


def _logs(lanes: Iterable[int]) -> list[float]:
    """`unit_uniform` is written out: calling it 256 times would take half as long again."""
    return [log((lane >> 11 | 1) * 2.0**-53) for lane in lanes]


def _all_lanes(step_key: bytes) -> Callable[[bytes], tuple[int, ...]]:
    """The lanes of a name under all 256 symbols."""
    start = blake2b(R_CLOCK + b"\0", key=step_key).copy

    def lanes(name: bytes) -> tuple[int, ...]:
        digests = []
        for block in _BLOCKS:
            state = start()
            state.update(block + name)
            digests.append(state.digest())
        return _unpack_all(b"".join(digests))

    return lanes


def _harmless_below(share: float, latest: float) -> int:
    """Lanes below this ring later than `latest` at this share, whatever the last bits of a logarithm are.

    A light rival hardly ever rings so early that it matters, and one comparison says so for all its lanes. That is what
    keeps a list of thousands of names, which anyone can put into a log, from costing thousands of logarithms a name.
    """
    exponent = share * latest
    return int(exp(-exponent) * (1 - SAFE_GAP) * 2.0**64) if exponent < LARGEST_EXPONENT else 0


def _first_rivals(step_key: bytes, rivals: Mapping[str, int], latest: float) -> list[float]:
    """The time at which the first known rival rings, for every symbol; only those that ring by `latest` matter."""
    lanes_of = _all_lanes(step_key)
    first = [float("inf")] * SYMBOL_COUNT
    for name, weight in rivals.items():
        share = weight / TOTAL_WEIGHT
        lanes = lanes_of(name.encode())
        if max(lanes) < _harmless_below(share, latest):
            continue
        first = [min(so_far, -ln / share) for so_far, ln in zip(first, _logs(lanes), strict=True)]
    return first


def winning_symbols(distribution: BehaviorDistribution, step_key: bytes, behavior: str) -> int:
    """Run all 256 races. Heavier rivals come first, so that few symbols are left for the light ones."""
    position = distribution.position(behavior)
    own_weight = distribution.weights[position]
    if own_weight == 0:
        return 0
    lanes_under = _lanes_under(step_key)
    own_clocks = [-ln / own_weight for ln in _log_uniforms(step_key, behavior)]
    alive = list(range(SYMBOL_COUNT))
    latest = max(own_clocks)
    for rival, (name, weight) in enumerate(zip(distribution.behaviors, distribution.weights, strict=True)):
        if rival == position or weight == 0:
            continue
        lanes = lanes_under(alive, name.encode())
        harmless = _harmless_below(weight, latest)
        if max(lanes) < harmless:
            continue
        alive = [
            symbol
            for symbol, lane in zip(alive, lanes, strict=True)
            if lane < harmless or own_clocks[symbol] < -log((lane >> 11 | 1) * 2.0**-53) / weight
        ]
        if not alive:
            return 0
        latest = max([own_clocks[symbol] for symbol in alive])
    return sum([1 << symbol for symbol in alive])


def _lanes_under(step_key: bytes) -> Callable[[list[int], bytes], Sequence[int]]:
    """The lanes of a name under some symbols, in their order."""
    lanes_of, all_lanes_of = _lane_source(step_key), _all_lanes(step_key)

    def lanes(symbols: list[int], name: bytes) -> Sequence[int]:
        if len(symbols) > MANY_ALIVE:
            every = all_lanes_of(name)
            return every if len(symbols) == SYMBOL_COUNT else [every[symbol] for symbol in symbols]
        blocks = {block: lanes_of(block, name) for block in {symbol // LANES for symbol in symbols}}
        return [blocks[symbol // LANES][symbol % LANES] for symbol in symbols]

    return lanes


def _lane_source(step_key: bytes) -> Callable[[int, bytes], tuple[int, ...]]:
    """PRF(step key, R clock, block || name) as eight 64-bit lanes: symbols 8 * block to 8 * block + 7.

    The key and the label are absorbed once and copied, which saves a third of the time over `prf`.
    """
    keyed = blake2b(R_CLOCK + b"\0", key=step_key)

    def lanes(block: int, name: bytes) -> tuple[int, ...]:
        state = keyed.copy()
        state.update(bytes((block,)) + name)
        return _unpack_lanes(state.digest())

    return lanes
