"""The same options in several orders: where an option stands must not decide how likely it is."""

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from agentmark.core.distribution import Rational
from agentmark.errors import SettingError

Option = TypeVar("Option")


def checked_orders(orders: int) -> int:
    if type(orders) is not int or orders < 1:
        raise SettingError("orders", f"{orders!r} is not a number from 1")
    return orders


def shuffled(options: Sequence[Option], orders: int, rng: random.Random) -> list[list[Option]]:
    """So many orders, each drawn by itself."""
    return [rng.sample(options, len(options)) for _ in range(orders)]


def rotated(options: Sequence[Option], orders: int, rng: random.Random) -> list[list[Option]]:
    """One order drawn at random, and turned: with as many orders as options, each stands in each place once."""
    shown, count = rng.sample(options, len(options)), len(options)
    turns = min(orders, count)
    offsets = [turn * count // turns for turn in range(turns)]
    return [shown[offset:] + shown[:offset] for offset in offsets]


def mean_list(lists: Sequence[Mapping[str, Rational]]) -> dict[str, Fraction]:
    """The mean of lists of the same names, exactly. Each is divided by its sum first, so that each counts alike."""
    totals: dict[str, Fraction] = {}
    for weights in lists:
        exact = {name: Fraction(*weight.as_integer_ratio()) for name, weight in weights.items()}
        whole = sum(exact.values()) * len(lists)
        for name, weight in exact.items():
            totals[name] = totals.get(name, Fraction(0)) + weight / whole
    return totals
