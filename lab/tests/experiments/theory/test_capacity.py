"""The closed form of independent clocks, two ways; and what races really carry."""

import random
from math import log2

import pytest
from agentmark_lab.kit.races import bits_of_race, race_bits, winners
from scipy.stats import binom

from agentmark import BehaviorDistribution
from agentmark.core import scheme_r, theory


@pytest.mark.parametrize("probability", [2.0**-32, 1e-6, 0.01, 0.3, 0.5, 0.9, 1 - 2.0**-32, 1.0])
def test_race_capacity_two_ways(probability):
    weight = round(probability * 2**32)
    rest = {"b": 2**32 - weight} if weight < 2**32 else {}
    distribution = BehaviorDistribution.from_weights({"a": weight, **rest})
    bits = sum(
        binom.pmf(wins, 256, w / 2**32) * wins / 256 * (8 - log2(wins))
        for w in distribution.weights
        for wins in range(1, 257)
    )
    assert theory.race_capacity(distribution) == pytest.approx(bits, rel=1e-9, abs=1e-12)


def test_a_race_carries_what_its_256_steps_carry():
    distribution = BehaviorDistribution.quantise({"a": 5, "b": 3, "c": 2, "never": 0})
    steps = []
    for symbol in range(256):
        clocks = scheme_r.race_clocks(distribution, bytes(32), symbol)
        winner = distribution.behaviors[clocks.index(min(clocks))]
        steps.append(8 - log2(scheme_r.winning_symbols(distribution, bytes(32), winner).bit_count()))
    assert bits_of_race(distribution, bytes(32)) == pytest.approx(sum(steps) / 256)
    twin = random.Random(1)
    expected = [bits_of_race(distribution, twin.randbytes(32)) for _ in range(3)]
    assert race_bits(distribution, random.Random(1), races=3) == pytest.approx(sum(expected) / 3)


@pytest.mark.parametrize("weights", [{"only": 1}, {f"b{i}": 1.001**i for i in range(300)}, {"a": 1e6, "b": 1, "c": 1}])
def test_the_winners_are_those_that_the_scheme_reads(weights):
    distribution = BehaviorDistribution.quantise(weights)
    winner = winners(distribution, b"k" * 32)
    for index, behavior in enumerate(distribution.behaviors):
        symbols = sum([1 << symbol for symbol in range(256) if winner[symbol] == index])
        assert scheme_r.winning_symbols(distribution, b"k" * 32, behavior) == symbols
