"""What a step of AgentMark-R carries on a list. Its clocks are spread evenly over the symbols (ADR 21), and that has no
closed form: `theory.race_capacity` says a little less."""

from math import log, log2
from random import Random
from statistics import fmean

from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.scheme_r import PRODUCTS, clock_draw
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT


def race_bits(distribution: BehaviorDistribution, rng: Random, *, races: int = 1) -> float:
    """An unbiased estimate of E[-log2 q_t]: random step keys, and for each the exact mean over all symbols."""
    return fmean([bits_of_race(distribution, rng.randbytes(32)) for _ in range(races)])


def bits_of_race(distribution: BehaviorDistribution, step_key: bytes) -> float:
    """What a step with this key carries, -log2 q_t, in the mean over its 256 symbols."""
    wins = [0] * len(distribution)
    for winner in winners(distribution, step_key):
        wins[winner] += 1
    return sum([count / SYMBOL_COUNT * (SYMBOL_BITS - log2(count)) for count in wins if count])


def winners(distribution: BehaviorDistribution, step_key: bytes) -> list[int]:
    """Who rings first under each symbol, as an index into the list.

    The heaviest go first. Most of a thousand others ring later everywhere, even from their best place, and are passed
    over. Two clocks closer than a tie gap, one step in 2^40, are not told apart.
    """
    winner, earliest = [0] * SYMBOL_COUNT, [float("inf")] * SYMBOL_COUNT
    latest = max(earliest)
    for index, (behavior, weight) in enumerate(zip(distribution.behaviors, distribution.weights, strict=True)):
        if weight == 0:
            break
        draw = clock_draw(step_key, behavior)
        # g * s, by s, has each value once: where it stands is the symbol that moves u to a place.
        moved = PRODUCTS[draw.step]
        for place in reversed(range(SYMBOL_COUNT)):
            clock = -log(place / SYMBOL_COUNT + draw.below) / weight
            if clock >= latest:
                break
            symbol = moved.index(place ^ draw.top)
            if clock < earliest[symbol]:
                winner[symbol], earliest[symbol] = index, clock
        latest = max(earliest)
    return winner
