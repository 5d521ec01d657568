"""Marked and control agents: how far apart they are, and what a judge is told."""

from collections import Counter
from random import Random

import pytest
from agentmark_lab.envs.oasis import Act
from agentmark_lab.experiments.social.oasis import jensen_shannon, permutation_test, total_variation
from scipy.spatial.distance import jensenshannon


def test_distances():
    one, other = Counter(a=3, b=1), Counter(a=1, c=3)
    assert total_variation(one, other) == pytest.approx(0.75)
    assert jensen_shannon(one, other) == pytest.approx(jensenshannon([3, 1, 0], [1, 0, 3], base=2) ** 2)
    assert total_variation(one, one) == jensen_shannon(one, one) == 0


def acts(rng: Random, likely: str, refused: float) -> list[Act]:
    return [Act(rng.choice([likely, "x", "y"]), {}, "no" if rng.random() < refused else None) for _ in range(10)]


def test_the_permutation_test_sees_a_difference_and_only_then():
    rng = Random(1)
    same = permutation_test([(acts(rng, "x", 0.1), acts(rng, "x", 0.1)) for _ in range(30)], 400, rng)
    assert same.p_variation > 0.05
    assert same.variation == pytest.approx(same.variation_by_chance, abs=0.1)
    other = permutation_test([(acts(rng, "x", 0.5), acts(rng, "z", 0.1)) for _ in range(30)], 400, rng)
    assert other.p_variation == other.p_divergence == other.p_refused == pytest.approx(1 / 401)
    assert other.refused[0] > other.refused[1]
