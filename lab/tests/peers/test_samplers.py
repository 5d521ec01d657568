"""Meteor and Discop as their papers have them: decodable, and worth what their closed forms say."""

from random import Random
from statistics import fmean

import pytest
from agentmark_lab.peers.samplers import discop, discop_huffman, discop_huffman_capacity, meteor, meteor_capacity
from hypothesis import given
from hypothesis import strategies as st

from agentmark import BehaviorDistribution
from agentmark.core.distribution import TOTAL_WEIGHT, WEIGHT_BITS
from agentmark.core.theory import entropy

WORDS = st.integers(0, TOTAL_WEIGHT - 1)
LISTS = st.lists(st.integers(0, 1000), min_size=2, max_size=12).filter(any).map(
    lambda masses: BehaviorDistribution.quantise({f"b{i}": mass for i, mass in enumerate(masses)})
)  # fmt: skip


@given(LISTS, WORDS, WORDS)
def test_meteor_bits_can_be_read_back(distribution: BehaviorDistribution, message: int, mask: int) -> None:
    drawn = meteor(distribution, message, mask)
    place = distribution.behaviors.index(drawn.behavior)
    low = sum(distribution.weights[:place])
    shift = WEIGHT_BITS - drawn.bits
    assert (low ^ mask) >> shift == message >> shift


@given(LISTS, WORDS, WORDS)
def test_discop_bits_can_be_read_back(distribution: BehaviorDistribution, message: int, draw: int) -> None:
    drawn = discop(distribution, message, draw)
    copies = [distribution.at((draw + i * (TOTAL_WEIGHT >> drawn.bits)) % TOTAL_WEIGHT) for i in range(1 << drawn.bits)]
    assert copies.count(drawn.behavior) == 1
    assert copies.index(drawn.behavior) == message >> (WEIGHT_BITS - drawn.bits)


@pytest.mark.parametrize("masses", [(1, 1), (5, 3, 2), (8, 1, 1, 1, 1), tuple(range(1, 15))])
def test_capacities_are_those_of_the_samplers(masses: tuple[int, ...]) -> None:
    distribution = BehaviorDistribution.quantise({f"b{i}": mass for i, mass in enumerate(masses)})
    rng = Random(1)

    def word() -> int:
        return rng.getrandbits(WEIGHT_BITS)

    meteors = [meteor(distribution, word(), word()).bits for _ in range(20_000)]
    huffmans = [
        discop_huffman(distribution, word(), [word() for _ in masses]).bits for _ in range(20_000)
    ]  # fmt: skip
    assert fmean(meteors) == pytest.approx(meteor_capacity(distribution), abs=0.05)
    assert fmean(huffmans) == pytest.approx(discop_huffman_capacity(distribution), abs=0.05)


@given(LISTS)
def test_no_sampler_carries_more_than_the_entropy(distribution: BehaviorDistribution) -> None:
    assert meteor_capacity(distribution) <= entropy(distribution) + 1e-9
    assert discop_huffman_capacity(distribution) <= entropy(distribution) + 1e-9


def test_a_huffman_walk_needs_a_draw_for_each_fork() -> None:
    distribution = BehaviorDistribution.quantise({"a": 1, "b": 1, "c": 1})
    with pytest.raises(ValueError, match="not enough draws"):
        discop_huffman(distribution, 0, [])
