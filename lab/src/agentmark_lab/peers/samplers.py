"""Samplers of the literature that hide bits in draws: Meteor and Discop, written from their papers, for comparison.

Each preserves the distribution. Their capacity is what one step carries when both sides know the list exactly and keep
their randomness in step; none of them can lose a step, which is what AgentMark's coding is for.
"""

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from agentmark.core.distribution import TOTAL_WEIGHT, WEIGHT_BITS, BehaviorDistribution


@dataclass(frozen=True, slots=True)
class Drawn:
    """What came up, and how many bits of the message it carries."""

    behavior: str
    bits: int


def meteor(distribution: BehaviorDistribution, message: int, mask: int) -> Drawn:
    """Meteor (Kaptchuk et al., CCS 2021): masked message bits are read as a point of the unit interval.

    `message` and `mask` have 32 bits; the behavior whose interval holds their sum modulo 2 is taken, and the bits that
    all points of the interval share are carried.
    """
    point = message ^ mask
    bounds = [0, *accumulate(distribution.weights)]
    place = _place(bounds, point)
    return Drawn(distribution.behaviors[place], _common_prefix(bounds[place], bounds[place + 1] - 1))


def meteor_capacity(distribution: BehaviorDistribution) -> float:
    """E[bits] of one step."""
    bounds = [0, *accumulate(distribution.weights)]
    return sum(
        [
            weight / TOTAL_WEIGHT * _common_prefix(low, low + weight - 1)
            for low, weight in zip(bounds, distribution.weights, strict=False)
            if weight
        ]
    )


def discop(distribution: BehaviorDistribution, message: int, draw: int) -> Drawn:
    """Discop (Ding et al., S&P 2023), plain: 2^k copies of the distribution, each rotated by a 2^k-th of the circle.

    k is the largest for which all copies give different behaviors; `message` says which copy is used.
    """
    bits = _rotations(distribution, draw)
    step = TOTAL_WEIGHT >> bits
    chosen = message >> (WEIGHT_BITS - bits) if bits else 0
    return Drawn(distribution.at((draw + chosen * step) % TOTAL_WEIGHT), bits)


def _rotations(distribution: BehaviorDistribution, draw: int) -> int:
    bounds = [0, *accumulate(distribution.weights)]
    bits = 0
    while bits < WEIGHT_BITS:
        copies = 2 << bits
        step = TOTAL_WEIGHT // copies
        places = [_place(bounds, (draw + i * step) % TOTAL_WEIGHT) for i in range(copies)]
        if len(set(places)) < copies:
            break
        bits += 1
    return bits


def discop_huffman(distribution: BehaviorDistribution, message: int, draws: Sequence[int]) -> Drawn:
    """Discop with recursion: a walk down a Huffman tree, at every fork two copies, half a circle apart.

    `draws` is a fresh uniform 32-bit number for each fork.
    """
    node = _huffman(distribution)
    bits = 0
    for draw in draws:
        if isinstance(node, str):
            break
        left, right, left_weight, weight = node
        # Points below the cut lead left. Both copies agree unless one lies below it and the other does not.
        cut = left_weight * TOTAL_WEIGHT // weight
        ways = [(draw + copy * (TOTAL_WEIGHT // 2)) % TOTAL_WEIGHT < cut for copy in (0, 1)]
        if ways[0] == ways[1]:
            goes_left = ways[0]
        else:
            goes_left = ways[message >> (WEIGHT_BITS - 1 - bits) & 1]
            bits += 1
        node = left if goes_left else right
    if not isinstance(node, str):
        raise ValueError("not enough draws for the depth of the tree")
    return Drawn(node, bits)


def discop_huffman_capacity(distribution: BehaviorDistribution) -> float:
    """E[bits]: a fork is worth twice the smaller of its two shares."""

    def below(node: "_Node", share: float) -> float:
        if isinstance(node, str):
            return 0.0
        left, right, left_weight, weight = node
        left_share = left_weight / weight
        here = 2 * min(left_share, 1 - left_share)
        return share * here + below(left, share * left_share) + below(right, share * (1 - left_share))

    return below(_huffman(distribution), 1.0)


_Node = str | tuple["_Node", "_Node", int, int]


def _huffman(distribution: BehaviorDistribution) -> _Node:
    """A fork is (left, right, weight of the left, weight of both). Ties are broken by the canonical order."""
    heap: list[tuple[int, int, _Node]] = [
        (weight, i, name)
        for i, (name, weight) in enumerate(zip(distribution.behaviors, distribution.weights, strict=True))
        if weight
    ]
    heapq.heapify(heap)
    fresh = len(distribution.behaviors)
    while len(heap) > 1:
        small_weight, _, small = heapq.heappop(heap)
        weight, _, large = heapq.heappop(heap)
        heapq.heappush(heap, (small_weight + weight, fresh, (small, large, small_weight, small_weight + weight)))
        fresh += 1
    return heap[0][2]


def _place(bounds: Sequence[int], point: int) -> int:
    return bisect_right(bounds, point) - 1


def _common_prefix(low: int, high: int) -> int:
    """How many leading bits, of 32, the two ends of an interval share."""
    return WEIGHT_BITS - (low ^ high).bit_length()
