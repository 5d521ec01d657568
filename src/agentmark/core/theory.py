"""Closed forms: what the theorems promise, as code that the statistical tests compare with the samplers."""

from collections.abc import Mapping
from functools import lru_cache
from math import comb, exp, fsum, lgamma, log, log2

from agentmark.core.cyclic_shift import short_len
from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.recombination import bin_weights
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT

SMALLEST_RATE = 1e-300


def entropy(distribution: BehaviorDistribution) -> float:
    """H(P_t) in bits."""
    shares = [weight / TOTAL_WEIGHT for weight in distribution.weights if weight]
    return -sum([share * log2(share) for share in shares])


def bin_capacity(bin_size: int) -> float:
    """E[c | n] = k + t / 2^k for uniform coded bits. App. B's k + 2t/n exceeds log2 n (docs/paper-map.md, slip 1)."""
    length = short_len(bin_size)
    return length + (bin_size - (1 << length)) / (1 << length)


def capacity(distribution: BehaviorDistribution) -> float:
    """E[c_t] of AgentMark-F: the bins' capacities, weighted by their masses q_k."""
    masses = enumerate(bin_weights(distribution.weights), start=1)
    return sum([mass * bin_capacity(size) for size, mass in masses if mass]) / TOTAL_WEIGHT


def race_capacity(distribution: BehaviorDistribution) -> float:
    """A little less than E[-log2 q_t] of AgentMark-R: exact if the 256 races were independent.

    A behavior of probability p would then win Binomial(256, p) of them. Its clocks are spread more evenly than that
    (ADR 21), so that a step carries up to 3 % of the entropy more: 0.2 % for a coin, 1.7 % for .91 and nine of .01.
    """
    return sum([_race_share(weight / TOTAL_WEIGHT) for weight in distribution.weights if weight])


@lru_cache(maxsize=4096)
def _race_share(probability: float) -> float:
    terms = [
        worth * probability**wins * (1 - probability) ** (SYMBOL_COUNT - wins)
        for wins, worth in enumerate(_WIN_WORTH, start=1)
    ]
    return fsum(terms)


# What it is worth that `wins` of the 256 symbols lead to a behavior, times the number of ways in which they can.
_WIN_WORTH = [
    comb(SYMBOL_COUNT, wins) * wins / SYMBOL_COUNT * (SYMBOL_BITS - log2(wins)) for wins in range(1, SYMBOL_COUNT + 1)
]


def false_positive_rate(surplus: float) -> float:
    """Chance that `equations - rank` surplus equations agree by luck: 2^-surplus, exactly for F, at most for R."""
    # Never zero: what underflows is still an upper bound.
    rate: float = 2.0 ** -min(max(surplus, 0.0), 1000.0)
    return max(rate, SMALLEST_RATE)


def rank_distribution(rows: int, payload_len: int) -> list[float]:
    """Pr[rank = r] for a uniform `rows` x `payload_len` matrix over F2, r = 0 .. min(rows, payload_len)."""
    chances = [1.0]
    for _ in range(rows):
        grown = [0.0] * (len(chances) + 1)
        for rank, chance in enumerate(chances):
            # A new row lies in the span of rank r with probability 2^(r - L).
            inside = 2.0 ** (rank - payload_len)
            grown[rank] += chance * inside
            grown[rank + 1] += chance * (1 - inside)
        chances = grown[: payload_len + 1]
    return chances


def full_rank_probability(rows: int, payload_len: int) -> float:
    """Pr[rank = L], exactly."""
    chances = rank_distribution(rows, payload_len)
    return chances[payload_len] if len(chances) > payload_len else 0.0


def full_rank_bound(rows: int, payload_len: int) -> float:
    """The paper's bound of section 4.4: Pr[rank = L | R = r] >= 1 - 2^-(r - L)."""
    return max(0.0, 1 - 2.0 ** (payload_len - rows)) if rows >= payload_len else 0.0


def success_bound(equation_counts: Mapping[int, float], payload_len: int) -> float:
    """Section 4.4: Pr[decoded] >= sum over r of Pr[R = r] (1 - 2^-(r - L))."""
    return sum([chance * full_rank_bound(rows, payload_len) for rows, chance in equation_counts.items()])


def consistency_probability(rows: int, payload_len: int) -> float:
    """Pr[A x = y has a solution] for uniform A and y: the mean of 2^-(rows - rank). Table 8 needs no simulation."""
    chances = rank_distribution(rows, payload_len)
    return sum([chance * 2.0 ** (rank - rows) for rank, chance in enumerate(chances)])


def gamma_tail_bits(shape: int, value: float) -> float:
    """-log2 Pr[Gamma(shape, 1) >= value] for a whole shape: exp(-x) times the first `shape` terms of e^x."""
    if value <= 0 or shape == 0:
        return 0.0
    logs = [k * log(value) - lgamma(k + 1) for k in range(shape)]
    top = max(logs)
    return max(0.0, (value - top - log(fsum([exp(term - top) for term in logs]))) / log(2))


def equations_until_full_rank(rank: int, payload_len: int) -> float:
    """Expected further equations until the rank is full: each is new with probability 1 - 2^(rank - L)."""
    return sum([1 / (1 - 2.0 ** (r - payload_len)) for r in range(rank, payload_len)])
