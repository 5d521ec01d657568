"""Rounding to weights: whatever is fast must be what long arithmetic says, to the unit."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import NAMES

from agentmark import BehaviorDistribution
from agentmark.core import rounding
from agentmark.core.distribution import TOTAL_WEIGHT, WEIGHT_BITS

DOUBT = 2.0**-18


def slow_reference(pairs: list[tuple[str, Any]]) -> dict[str, int]:
    """Spec, section 4, word for word, in fractions."""
    total = sum(Fraction(number) for _, number in pairs)
    exact = {name: Fraction(number) * TOTAL_WEIGHT / total for name, number in pairs}
    weights = {name: math.floor(share) for name, share in exact.items()}
    missing = TOTAL_WEIGHT - sum(weights.values())
    by_remainder = sorted(exact, key=lambda name: (weights[name] - exact[name], name.encode()))
    for name in by_remainder[:missing]:
        weights[name] += 1
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0].encode())))


def named(numbers: st.SearchStrategy[Any], *, most: int = 24) -> st.SearchStrategy[list[tuple[str, Any]]]:
    """Lists of these numbers under different names, not all zero."""
    pairs = st.lists(st.tuples(NAMES, numbers), min_size=1, max_size=most, unique_by=lambda pair: pair[0])
    return pairs.filter(lambda listed: any(number for _, number in listed))


# Shares that lie on an integer, beside one, and on the same remainder as others.
ON_THE_EDGE = st.builds(
    lambda units, ulps: math.ldexp(units, -WEIGHT_BITS) * (1 + ulps * 2.0**-52),
    st.integers(0, 40),
    st.integers(-3, 3),
)
FEW_VALUES = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1 / 3, 0.25])
FLOATS = st.one_of(
    st.floats(0, 1),
    st.floats(0, allow_nan=False, allow_infinity=False),
    st.floats(0, 5e-324 * 1000),
    ON_THE_EDGE,
    FEW_VALUES,
)
EXACT = st.one_of(
    st.integers(0, 60),
    st.integers(0, 1 << 70),
    st.fractions(min_value=0, max_denominator=1000),
    st.decimals(0, 10**6, allow_nan=False, allow_infinity=False),
)


@settings(max_examples=400)
@given(st.one_of(named(FLOATS), named(FEW_VALUES, most=60), named(ON_THE_EDGE)))
@example([("a", 1.0), ("b", -0.0)])
@example([("a", 1.7976931348623157e308), ("b", 1.7976931348623157e308)])
@example([("a", 5e-324), ("b", 1e-323)])
def test_floats_round_as_fractions_do(pairs: list[tuple[str, float]]) -> None:
    distribution = BehaviorDistribution.quantise(pairs)
    assert list(distribution.as_weights().items()) == list(slow_reference(pairs).items())
    assert BehaviorDistribution.quantise(dict(pairs)) == distribution


@settings(max_examples=300)
@given(st.one_of(named(EXACT), named(st.integers(0, 60)), named(st.one_of(EXACT, FLOATS))))
def test_all_exact_numbers_round_as_fractions_do(pairs: list[tuple[str, Any]]) -> None:
    distribution = BehaviorDistribution.quantise(pairs)
    assert list(distribution.as_weights().items()) == list(slow_reference(pairs).items())


@pytest.mark.parametrize("size", [200, 1000, 4096])
def test_long_lists_round_as_fractions_do(size: int) -> None:
    import random

    rng = random.Random(size)
    for spread in (1, 8):
        pairs = [(f"tool_{rng.randrange(10**9)}", rng.random() ** spread) for _ in range(size)]
        assert BehaviorDistribution.quantise(pairs).as_weights() == slow_reference(pairs)


def test_a_tie_that_floats_cannot_see_is_settled_exactly() -> None:
    """Two remainders further apart than nothing, and nearer than a double can tell: the larger goes up, whatever its
    name."""
    third = Fraction(1, 3)
    nearly = float(third)
    pairs = [("z", math.nextafter(nearly, 1)), ("a", nearly), ("b", nearly)]
    weights = BehaviorDistribution.quantise(pairs).as_weights()
    assert weights == slow_reference(pairs)
    assert weights["z"] == max(weights.values())


def test_usual_lists_need_no_long_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of some hundred lists may be in doubt; here none is, and the slow way is not gone."""
    import random

    rng = random.Random(5)
    asked: list[int] = []

    def counted(*arguments: Any) -> list[int]:
        asked.append(1)
        return slow(*arguments)

    slow = rounding.round_masses
    monkeypatch.setattr(rounding, "round_masses", counted)
    for _ in range(50):
        BehaviorDistribution.quantise({f"b{i}": rng.expovariate(1) for i in range(100)})
    assert len(asked) <= 2
    BehaviorDistribution.quantise({f"b{i}": 0.1 for i in range(10)})
    assert len(asked) > 0


@given(named(st.floats(1e-6, 1)))
def test_a_share_is_never_more_wrong_than_is_allowed_for(pairs: list[tuple[str, float]]) -> None:
    """The bound on which the fast way rests."""
    values = [value for _, value in pairs]
    total, exact = math.fsum(values), sum(map(Fraction, values))
    for value in values:
        share = value * (2.0**WEIGHT_BITS / total)
        assert abs(Fraction(share) - Fraction(value) * TOTAL_WEIGHT / exact) < DOUBT / 2


def test_numpy_floats_are_floats() -> None:
    import numpy

    values = [0.1, 0.7, 0.2000000001]
    plain = dict(zip("abc", values, strict=True))
    assert BehaviorDistribution.quantise(
        {name: numpy.float64(value) for name, value in plain.items()}
    ) == BehaviorDistribution.quantise(plain)
    assert (
        BehaviorDistribution.quantise({"a": Decimal("0.1"), "b": 0.9}).weight("a")
        == slow_reference([("a", Decimal("0.1")), ("b", 0.9)])["a"]
    )
