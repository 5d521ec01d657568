"""Does anything change in any task? The test against its own definition, without an effect, and with red-green's."""

from itertools import combinations
from random import Random
from statistics import fmean, pvariance

import pytest
from agentmark_lab.kit.task_test import _squared, mean_p_value, task_test
from scipy import stats as scipy_stats

Pair = tuple[list[float], list[float]]


@pytest.mark.parametrize("values", [[0.0, 1, 1, 2, 7.5, 3, 3, 0], [0.0, 0, 0, 1, 1, 1], [1.0, 1, 1, 5]])
def test_mean_and_variance_over_all_deals(values: list[float]) -> None:
    """The closed form against every way to deal the values to two policies."""
    places = range(len(values))
    found = [
        _squared([values[i] for i in mine], [values[i] for i in places if i not in mine])
        for mine in combinations(places, len(values) // 2)
    ]
    squares = [one[0] for one in found if one]
    assert len(squares) == len(found)
    assert fmean(squares) == pytest.approx(1)
    assert {round(one[1], 9) for one in found if one} == {round(pvariance(squares), 9)}


def drawn(rng: Random, tasks: int, trials: int, change: float) -> list[Pair]:
    """Success by task: the second policy wins less or more often by so much, in turn."""
    pairs: list[Pair] = []
    for i in range(tasks):
        share = rng.choice([0.5, 0.7, 0.9])
        other = share - change if i % 2 else share + change / 5
        pairs.append(
            ([float(rng.random() < share) for _ in range(trials)], [rng.random() < other for _ in range(trials)])
        )
    return pairs


def test_without_a_change_it_is_as_rare_as_it_says() -> None:
    """H0: no task changes. 600 experiments of 60 tasks with 8 trials; p below 0.05 in one of twenty, below 0.001 hardly
    ever; four standard errors."""
    rng = Random(1)
    found = [task_test(drawn(rng, 60, 8, 0)).p_value for _ in range(600)]
    assert abs(sum([p < 0.05 for p in found]) / 600 - 0.05) < 4 * (0.05 * 0.95 / 600) ** 0.5
    assert sum([p < 0.001 for p in found]) <= 6


def test_losses_in_some_tasks_are_seen() -> None:
    """As many tasks and trials as on BFCL; half the tasks lose 30 points, the others gain 6. Power: 20 of 20."""
    rng = Random(2)
    found = [task_test(drawn(rng, 200, 30, 0.3)).p_value for _ in range(20)]
    assert max(found) < 0.001


def test_where_nothing_varies_there_is_nothing_to_test() -> None:
    assert task_test([([1.0, 1.0], [1.0, 1.0])]).p_value == 1
    assert task_test([]).p_value == 1
    assert mean_p_value([0.5, 0.5, 0.5]) == 1


def test_the_mean_s_p_value_is_student_s() -> None:
    values = [0.1, 0.2, 0.3, -0.1, 0.4, 0.0]
    assert mean_p_value(values) == pytest.approx(scipy_stats.ttest_1samp(values, 0).pvalue)
