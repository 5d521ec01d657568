"""Differential recombination (Algorithm 3, App. A) on integer weights, and the keyed choice of a bin."""

from collections.abc import Sequence
from typing import NamedTuple

from agentmark.core.distribution import TOTAL_WEIGHT


class UniformBin(NamedTuple):
    """T_k, the top-k behaviors, all alike; `shift` turns its code by a keyed amount."""

    size: int
    shift: int


def slice_heights(weights: Sequence[int]) -> list[int]:
    """d_k = p_k - p_{k+1}, with p_{n+1} = 0. Weights come in canonical order, so none is negative."""
    following = [*weights[1:], 0]
    return [weight - below for weight, below in zip(weights, following, strict=True)]


def bin_weights(weights: Sequence[int]) -> list[int]:
    """q_k = k * d_k: the mass of bin k. They sum to the total weight."""
    return [size * height for size, height in enumerate(slice_heights(weights), start=1)]


def select_bin(weights: Sequence[int], draw: int) -> UniformBin:
    """One uniform draw over the total weight gives both K and the shift R, exactly.

    Bin k owns k * d_k consecutive draws. The offset among them, divided by d_k, is uniform on 0..k-1:
    no second draw, no rejection, no rounding (ADR 2).
    """
    if not 0 <= draw < TOTAL_WEIGHT:
        raise ValueError(f"draw {draw} outside [0, {TOTAL_WEIGHT})")
    offset = draw
    last = len(weights)
    for size, weight in enumerate(weights, start=1):
        height = weight - (weights[size] if size < last else 0)
        mass = size * height
        if offset < mass:
            return UniformBin(size, offset // height)
        offset -= mass
    raise ValueError(f"weights sum to {sum(weights)}, not to {TOTAL_WEIGHT}")
