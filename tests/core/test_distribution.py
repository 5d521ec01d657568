"""Quantisation and order: laws L1 and L2, and what bad weights get."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import NAMES, weight_lists

from agentmark import BehaviorDistribution, DistributionError
from agentmark.core.distribution import TOTAL_WEIGHT


@given(weight_lists())
def test_weights_sum_to_the_total_and_stay_within_one_of_the_exact_share(weights: dict[str, float]) -> None:
    distribution = BehaviorDistribution.quantise(weights)
    total = sum(map(Fraction, weights.values()))
    assert sum(distribution.weights) == TOTAL_WEIGHT
    for name, weight in weights.items():
        assert abs(distribution.weight(name) - Fraction(weight) * TOTAL_WEIGHT / total) < 1
        if weight == 0:
            assert distribution.weight(name) == 0


@given(weight_lists(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(weights: dict[str, float], rng: object) -> None:
    pairs = list(weights.items())
    rng.shuffle(pairs)  # type: ignore[attr-defined]
    assert BehaviorDistribution.quantise(pairs) == BehaviorDistribution.quantise(weights)


@given(st.lists(NAMES, min_size=2, max_size=12, unique=True))
def test_ties_are_ordered_by_the_bytes_of_the_names(names: list[str]) -> None:
    distribution = BehaviorDistribution.from_weights(
        {name: TOTAL_WEIGHT if i == 0 else 0 for i, name in enumerate(names)}
    )
    assert list(distribution.behaviors[1:]) == sorted(names[1:], key=str.encode)


@given(weight_lists())
def test_quantised_weights_are_a_fixed_point(weights: dict[str, float]) -> None:
    distribution = BehaviorDistribution.quantise(weights)
    assert BehaviorDistribution.quantise(distribution.as_weights()) == distribution
    assert BehaviorDistribution.from_weights(distribution.as_weights()) == distribution


def test_any_exact_number_will_do() -> None:
    same = [
        {"a": 0.25, "b": 0.75},
        {"a": 1, "b": 3},
        {"a": Fraction(1, 4), "b": Fraction(3, 4)},
        {"a": Decimal("0.25"), "b": Decimal("0.75")},
    ]
    assert len({BehaviorDistribution.quantise(weights) for weights in same}) == 1


def test_numpy_numbers_will_do() -> None:
    import numpy

    weights = {"a": numpy.int64(1), "b": numpy.float32(3.0)}
    assert BehaviorDistribution.quantise(weights) == BehaviorDistribution.quantise({"a": 1, "b": 3})


def test_float_addition_decides_nothing() -> None:
    """0.1 + 0.2 + ... differs between summation orders and Python versions; the exact sum does not."""
    weights = {f"b{i}": 0.1 for i in range(10)}
    distribution = BehaviorDistribution.quantise(weights)
    assert sorted(set(distribution.weights)) == [TOTAL_WEIGHT // 10, TOTAL_WEIGHT // 10 + 1]
    # 2^32 = 6 mod 10: six names get the extra unit, the first ones by name.
    assert distribution.behaviors[:6] == ("b0", "b1", "b2", "b3", "b4", "b5")


@pytest.mark.parametrize(
    ("weights", "field", "fault"),
    [
        ({}, "behaviors", "empty"),
        ({"a": -0.1, "b": 1.0}, "weights['a']", "negative"),
        ({"a": float("nan"), "b": 1.0}, "weights['a']", "not finite"),
        ({"a": float("inf"), "b": 1.0}, "weights['a']", "not finite"),
        ({"a": 0.0, "b": 0}, "weights", "all are zero"),
        ({"a": "0.5", "b": 0.5}, "weights['a']", "not a number"),
        ({"a": None, "b": 0.5}, "weights['a']", "not a number"),
        ({"a": True, "b": 0.5}, "weights['a']", "not a number"),
        ({"": 1.0}, "behaviors", "empty"),
        ({7: 1.0}, "behaviors", "not text"),
        ({"\ud800": 1.0}, "behaviors", "surrogate"),
        ([("a", 0.5), ("a", 0.5)], "behaviors", "twice"),
        ({f"b{i}": 1 for i in range(4097)}, "behaviors", "more than 4096"),
        (None, "weights", "neither an object nor a list"),
        ([("a",)], "weights", "neither an object nor a list"),
    ],
)
def test_unusable_weights_raise_and_name_the_field(weights: object, field: str, fault: str) -> None:
    with pytest.raises(DistributionError, match=fault) as caught:
        BehaviorDistribution.quantise(weights)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize(
    "weights",
    [{"a": TOTAL_WEIGHT - 1}, {"a": TOTAL_WEIGHT + 1, "b": -1}, {"a": float(TOTAL_WEIGHT)}, {"a": True}, {}],
)
def test_integers_that_were_never_quantised_are_refused(weights: dict[str, int]) -> None:
    with pytest.raises(DistributionError):
        BehaviorDistribution.from_weights(weights)


def test_inverse_sampling_covers_each_weight_exactly() -> None:
    distribution = BehaviorDistribution.from_weights({"a": 3, "b": TOTAL_WEIGHT - 4, "c": 1, "z": 0})
    edges = [0, TOTAL_WEIGHT - 5, TOTAL_WEIGHT - 4, TOTAL_WEIGHT - 2, TOTAL_WEIGHT - 1]
    assert [distribution.at(draw) for draw in edges] == ["b", "b", "a", "a", "c"]
    with pytest.raises(DistributionError, match="draw"):
        distribution.at(TOTAL_WEIGHT)
