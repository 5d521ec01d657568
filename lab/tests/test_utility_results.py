"""The committed results on utility: of the plan that is committed, in the trials that it planned, and with tables that
the outcomes of every task give again."""

from pathlib import Path
from statistics import fmean

import pytest
from agentmark_lab.experiments.utility.trials import COMPARED
from agentmark_lab.kit.agent_loop import BASELINE, CONTROLS, EARLY_STOPPING, RED_GREEN, F, R
from agentmark_lab.kit.equivalence import points
from agentmark_lab.kit.experiment import Cell, Result
from agentmark_lab.kit.plan import Plan
from agentmark_lab.kit.utility_tests import FAILS, PASSES

RESULTS = Path(__file__).parents[2] / "results"
PLAYED = ["agentdojo", "alfworld", "bfcl", "scienceworld", "toolbench"]


@pytest.fixture(params=PLAYED)
def result(request: pytest.FixtureRequest) -> Result:
    return Result.load(RESULTS / f"{request.param}.json")


def tallies(cell: str) -> dict[str, tuple[int, int, int]]:
    """Of each policy: successes, trials and steps."""
    found = {}
    for policy, text in zip(COMPARED, cell.split(", "), strict=True):
        won, _, rest = text.partition("/")
        trials, _, steps = rest.partition(" ")
        found[policy] = (int(won), int(trials), int(steps))
    return found


def test_it_is_of_the_plan_as_it_stands(result: Result) -> None:
    plan = Plan.of(result.name)
    assert result.data["plan"]["sha256"] == plan.digest, "the plan was changed after it was played"
    assert any(plan.digest in table.note for table in result.tables)
    assert {*result.data["playing_code"]} == {*plan.environments}
    assert all(len(digest) == 64 for digest in result.data["playing_code"].values())


def test_every_policy_played_every_planned_trial_and_no_other(result: Result) -> None:
    plan = Plan.of(result.name)
    outcomes = result.data["outcomes"]
    assert outcomes["policies"] == list(COMPARED)
    for level in plan.levels:
        by_set = outcomes[str(level.epsilon)]
        assert {*by_set} == {*plan.sets}
        for tasks in by_set.values():
            assert len(tasks) == plan.tasks
            for cell in tasks.values():
                assert {trials for _, trials, _ in tallies(cell).values()} == {level.trials}


def test_the_differences_in_the_table_are_those_of_the_outcomes(result: Result) -> None:
    [table] = [table for table in result.tables if "verdict" in table.columns]
    plan = Plan.of(result.name)
    assert len(table.rows) == len(plan.levels) * len(plan.sets) * 4
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        tasks = [tallies(cell) for cell in result.data["outcomes"][cells["epsilon"]][cells["trials"]].values()]
        policy = cells["policy"]
        success = fmean([task[policy][0] / task[policy][1] - task[BASELINE][0] / task[BASELINE][1] for task in tasks])
        steps = fmean([task[policy][2] / task[policy][1] - task[BASELINE][2] / task[BASELINE][1] for task in tasks])
        assert cells["success, points (90 % interval)"].startswith(f"{points(success)} (")
        shown = str(cells["steps (90 % interval)"]).partition(" ")[0]
        # To as many places as the table gives.
        assert shown == f"{steps:+.{len(shown.partition('.')[2])}f}"


def test_what_biases_the_list_fails_in_every_set(result: Result) -> None:
    [table] = [table for table in result.tables if "verdict" in table.columns]
    verdicts: dict[str, set[Cell]] = {policy: set() for policy in (F, R, *CONTROLS)}
    for row in table.rows:
        verdicts[str(row[table.columns.index("policy")])].add(row[-1])
    assert verdicts[RED_GREEN] == {FAILS}
    # Where few trials were played, early stopping is not shown to be the same, and that is all that shows.
    assert PASSES not in verdicts[EARLY_STOPPING]
    # Whether a mark is shown to be the same is an aim, which a plan may miss; that it is told apart is a failure.
    assert FAILS not in verdicts[F] | verdicts[R]
