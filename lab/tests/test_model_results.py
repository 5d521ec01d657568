"""The committed result of a language model on tasks that it can do: of the plan that is committed, in the trials that
it planned, and with a table that the outcomes of every task give again."""

from pathlib import Path
from statistics import fmean

import pytest
from agentmark_lab.experiments.models.model_plan import ModelPlan
from agentmark_lab.experiments.models.model_trials import BENT, MARKED, POLICIES, REFERENCES
from agentmark_lab.kit.equivalence import points
from agentmark_lab.kit.experiment import Cell, Result
from agentmark_lab.kit.utility_tests import FAILS, PASSES

RESULT = Path(__file__).parents[2] / "results" / "model_utility.json"


@pytest.fixture(scope="module")
def result() -> Result:
    return Result.load(RESULT)


@pytest.fixture(scope="module")
def plan() -> ModelPlan:
    return ModelPlan.of("model_utility")


def tallies(result: Result, place: str, trials: str) -> list[dict[str, tuple[int, int, int]]]:
    """Of each task of a place, in a set of trials, and each policy: successes, trials and steps."""
    found = []
    for outcome in result.data["outcomes"][place][trials]:
        cells = {policy: text.replace("/", " ").split() for policy, text in outcome["outcomes"].items()}
        found.append({policy: (int(won), int(trials), int(steps)) for policy, (won, trials, steps) in cells.items()})
    return found


def test_it_is_of_the_plan_as_it_stands(result: Result, plan: ModelPlan) -> None:
    assert result.data["plan"]["sha256"] == plan.digest, "the plan was changed after it was played"
    assert any(plan.digest in table.note for table in result.tables)
    assert {*result.data["playing_code"]} == {place.environment for place in plan.places}


def test_every_policy_played_every_planned_trial(result: Result, plan: ModelPlan) -> None:
    assert [*result.data["outcomes"]] == [f"{plan.model} on {place.title}" for place in plan.places]
    for place in plan.places:
        name = f"{plan.model} on {place.title}"
        assert [*result.data["outcomes"][name]] == [*plan.sets]
        for label, outcomes in result.data["outcomes"][name].items():
            assert [one["task"] for one in outcomes] == [task.id for task in place.tasks]
            for task in tallies(result, name, label):
                assert [*task] == list(POLICIES)
                assert {trials for _, trials, _ in task.values()} == {place.trials}


def rows(result: Result) -> list[dict[str, Cell]]:
    [table] = [table for table in result.tables if "verdict" in table.columns]
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_the_differences_in_the_table_are_those_of_the_outcomes(result: Result, plan: ModelPlan) -> None:
    assert len(rows(result)) == len(plan.places) * len(plan.sets) * len(REFERENCES)
    for row in rows(result):
        policy, reference = str(row["policy"]), str(row["against"])
        assert reference == REFERENCES[policy]
        tasks = tallies(result, f"{plan.model} on {row['place']}", str(row["trials"]))
        success = fmean([task[policy][0] / task[policy][1] - task[reference][0] / task[reference][1] for task in tasks])
        steps = fmean([task[policy][2] / task[policy][1] - task[reference][2] / task[reference][1] for task in tasks])
        assert str(row["success, points (90 % interval)"]).startswith(f"{points(success)} (")
        shown = str(row["steps (90 % interval)"]).partition(" ")[0]
        # To as many places as the table gives.
        assert shown == f"{steps:+.{len(shown.partition('.')[2])}f}"


def test_no_mark_is_told_apart_and_nothing_that_bends_passes(result: Result) -> None:
    """Whether a mark is shown to be the same is an aim, which a plan may miss."""
    assert FAILS not in {row["verdict"] for row in rows(result) if row["policy"] in MARKED}
    assert PASSES not in {row["verdict"] for row in rows(result) if row["policy"] in BENT}
