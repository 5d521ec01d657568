"""What a step of AgentMark-R carries on a list. Its clocks are spread evenly over the symbols (ADR 21), and that has no
closed form: `theory.race_capacity` says a little less."""

from math import log2
from random import Random
from statistics import fmean

from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.scheme_r import winning_symbols
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT


def race_bits(distribution: BehaviorDistribution, rng: Random, *, races: int = 1) -> float:
    """An unbiased estimate of E[-log2 q_t]: random step keys, and for each the exact mean over all symbols."""
    return fmean([bits_of_race(distribution, rng.randbytes(32)) for _ in range(races)])


def bits_of_race(distribution: BehaviorDistribution, step_key: bytes) -> float:
    """What a step with this key carries, -log2 q_t, in the mean over its 256 symbols."""
    bits, left = 0.0, SYMBOL_COUNT
    for behavior in distribution.behaviors:
        wins = winning_symbols(distribution, step_key, behavior).bit_count()
        if wins:
            bits += wins / SYMBOL_COUNT * (SYMBOL_BITS - log2(wins))
        left -= wins
        if left == 0:
            break
    return bits
