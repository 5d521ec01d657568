"""Lists of the embedder and of the verifier: what is the same."""

from random import Random

from agentmark_lab.experiments.attacks.mismatch import kl_bits, match_of
from agentmark_lab.kit.draws import random_key

from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.statistics import dirichlet, named


def drawn(rng: Random, size: int = 8) -> BehaviorDistribution:
    return BehaviorDistribution.quantise(named(dirichlet(rng, 0.5, size)))


def test_nothing_changes_if_the_lists_are_the_same() -> None:
    rng = Random(1)
    pairs = [(one, one) for one in [drawn(rng) for _ in range(50)]]
    match = match_of(pairs, random_key(rng), rng)
    assert (match.behavior_f, match.behavior_r, match.bits_f, match.agree_f, match.divergence) == (1, 1, 1, 1, 0)


def test_lists_that_have_nothing_to_do_with_each_other_match_by_chance() -> None:
    rng = Random(2)
    pairs = [(drawn(rng), drawn(rng)) for _ in range(2000)]
    match = match_of(pairs, random_key(rng), rng)
    # H0: the payload satisfies what is read as often as any other would; 2,000 steps, within four standard errors.
    assert abs(match.agree_f - match.chance_f) < 4 * (0.25 / 1000) ** 0.5
    assert match.behavior_r < 0.5
    assert match.divergence > 1


def test_divergence_is_in_bits() -> None:
    half = BehaviorDistribution.quantise({"a": 1, "b": 1})
    quarter = BehaviorDistribution.quantise({"a": 1, "b": 3})
    assert abs(kl_bits(half, quarter) - 0.2075) < 1e-4
    assert kl_bits(half, half) == 0
