"""Does the mark hurt the agent? Pairs, clusters and the equivalence test."""

from dataclasses import replace
from random import Random

import pytest
from agentmark_lab.kit.agent_loop import BASELINE, RED_GREEN, F, R
from agentmark_lab.kit.campaign import Outcome
from agentmark_lab.kit.equivalence import Comparison, compare, length, utility_table
from scipy import stats as scipy_stats


def outcome(task: str, policy: str, success: bool, seed: int = 1) -> Outcome:
    return Outcome(task, "g", seed, 0.1, policy, success, 5, 0, 5.0, 25, 0, 0, False, False, False, 0, 0, 0)


def test_pairs_are_by_task_and_seed_and_a_task_is_one_cluster() -> None:
    outcomes = []
    for kind, (base_won, marked_won) in {"a": (1, 1), "b": (1, 0), "c": (0, 1), "d": (1, 1)}.items():
        for task in [f"{kind}{i}" for i in range(5)]:
            for seed in (1, 2):
                outcomes += [outcome(task, BASELINE, bool(base_won), seed), outcome(task, F, bool(marked_won), seed)]
    found = compare(outcomes, F)
    assert (found.tasks, found.episodes, found.difference) == (20, 40, 0.0)
    # Twenty values, ten of them 0, five -1, five +1: standard error sqrt((10 / 19) / 20).
    assert found.interval.high == pytest.approx(scipy_stats.t.ppf(0.975, 19) * (10 / 19 / 20) ** 0.5)
    assert not found.equivalent()


def test_a_single_task_that_differs_makes_the_interval_wider_not_narrower() -> None:
    def differing(wins: int, losses: int) -> Comparison:
        outcomes = []
        for i in range(274):
            base, marked = (False, True) if i < wins else (True, i >= wins + losses)
            outcomes += [outcome(str(i), BASELINE, base), outcome(str(i), F, marked)]
        return compare(outcomes, F)

    none, one, nine = differing(0, 0).interval, differing(1, 0).interval, differing(9, 0).interval
    assert none.low == one.low == nine.low
    assert none.high < one.high < nine.high
    assert one.high == pytest.approx(scipy_stats.binomtest(1, 274).proportion_ci().high, rel=1e-6)
    assert differing(0, 1).interval.low == pytest.approx(-one.high)
    assert not differing(9, 0).is_normal
    assert differing(5, 5).is_normal


def test_a_trial_that_one_policy_has_not_played_is_left_out() -> None:
    outcomes = [outcome(task, policy, True) for task in "abc" for policy in (BASELINE, F)]
    found = compare([*outcomes, outcome("a", BASELINE, False, seed=2), outcome("d", BASELINE, False)], F)
    assert (found.tasks, found.episodes, found.difference) == (3, 3, 0.0)


@pytest.mark.slow
def test_power_of_the_equivalence_test() -> None:
    """H0: the stated chance is that with which two equal policies are shown to be equivalent. 400 experiments of 2,000
    pairs at 90 % success, whose standard error is sqrt(0.18 / 2000), 0.95 points; within four standard errors."""
    rng = Random(5)
    draws = [Random(rng.random()) for _ in range(400)]
    found = []
    for draw in draws:
        pairs = [(str(i), policy, draw.random() < 0.9) for i in range(2000) for policy in (BASELINE, F)]
        found.append(compare([outcome(*pair) for pair in pairs], F))
    power = found[0].power()
    assert found[0].standard_error == pytest.approx((0.18 / 2000) ** 0.5, rel=0.1)
    shown = sum([comparison.equivalent() for comparison in found]) / len(found)
    assert abs(shown - power) < 4 * (power * (1 - power) / len(found)) ** 0.5 + 0.05
    enough = found[0].pairs_for(0.9)
    assert enough == pytest.approx(0.18 * ((1.645 + 1.645) / 0.02) ** 2, rel=0.2)


def test_no_difference_at_all_is_no_proof_of_equivalence_in_few_tasks() -> None:
    def agreeing(tasks: int) -> list[Outcome]:
        return [outcome(str(i), policy, True) for i in range(tasks) for policy in (BASELINE, F)]

    few = compare(agreeing(24), F)
    # The share of tasks that may differ although none of 24 did: 0.025^(1/24) is left.
    assert few.interval.high == pytest.approx(1 - 0.025 ** (1 / 24), rel=1e-6)
    assert not few.equivalent()
    assert compare(agreeing(200), F).equivalent()


def test_equivalence_is_shown_only_with_enough_tasks() -> None:
    def many(tasks: int) -> list[Outcome]:
        rng = Random(1)
        return [
            outcome(str(i), policy, rng.random() < 0.9) for i in range(tasks) for policy in (BASELINE, F, R, RED_GREEN)
        ]

    assert not compare(many(100), F).equivalent()
    assert compare(many(20_000), F).equivalent()
    assert compare(many(100), F).equivalent(0.2)
    assert len(utility_table(many(50), "t", "").rows) == 4


def test_length_is_compared_like_success_over_all_episodes() -> None:
    rng = Random(3)
    outcomes = []
    for task in map(str, range(50)):
        for policy, longer in ((BASELINE, 0), (F, 2)):
            outcomes += [
                replace(outcome(task, policy, seed % 2 == 0, seed), steps=10 + rng.randrange(5) + longer)
                for seed in range(4)
            ]
    found = compare(outcomes, F, length)
    assert found.difference == pytest.approx(2, abs=0.5)
    low, high = scipy_stats.t.interval(0.90, 49, loc=found.difference, scale=found.standard_error)
    assert (found.tost_interval.low, found.tost_interval.high) == pytest.approx((low, high))
    assert not found.equivalent(2)
    assert found.equivalent(3)
