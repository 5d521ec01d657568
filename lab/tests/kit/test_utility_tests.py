"""What a mark passes and a biasing watermark fails: in a world where the truth is known."""

from random import Random

import pytest
from agentmark_lab.kit.agent_loop import BASELINE, CONTROLS, EARLY_STOPPING, RED_GREEN, F, R
from agentmark_lab.kit.campaign import Campaign, Outcome, run_campaign
from agentmark_lab.kit.options import Options
from agentmark_lab.kit.plan import Level, Measure
from agentmark_lab.kit.utility_tests import COLUMNS, FAILS, PASSES, judge, judged_table, power_table
from lab_support import silent

LEVEL = Level(0.15, 40, 0, Measure(0.1, 0.6), Measure(0.7, 4.0))


def played(task: str, seed: int, policy: str, *, success: bool, steps: int) -> Outcome:
    return Outcome(task, "g", seed, 0.15, policy, success, steps, 0, 5.0, 25, 0, 0, False, False, False, 0, 0, 0)


def made_up(loss: float, longer: float, *, tasks: int = 60, trials: int = 40, in_turn: bool = False) -> list[Outcome]:
    """Episodes of the baseline and of a policy that loses so often more and takes so many steps more; `in_turn`: in
    every second task, and gains as much in the others."""
    rng = Random(f"{loss} {longer}")
    outcomes = []
    for number in range(tasks):
        sign = -1 if in_turn and number % 2 else 1
        for seed in range(trials):
            for policy, lost, more in ((BASELINE, 0.0, 0.0), (F, sign * loss, sign * longer)):
                outcomes.append(
                    played(
                        str(number),
                        seed,
                        policy,
                        success=rng.random() < 0.7 - lost,
                        steps=round(rng.gauss(12 + more, 3)),
                    )
                )
    return outcomes


def test_no_change_passes_all_three() -> None:
    found = judge(made_up(0, 0), F, LEVEL, "first")
    assert (found.same_success, found.same_steps, found.is_seen, found.passes) == (True, True, False, True)


def test_a_loss_of_success_fails() -> None:
    found = judge(made_up(0.15, 0), F, LEVEL, "first")
    assert (found.same_success, found.same_steps, found.is_seen) == (False, True, True)


def test_longer_episodes_fail_where_success_sees_nothing() -> None:
    """As on ALFWorld: every game is won, and takes longer."""
    found = judge(made_up(0, 1.5), F, LEVEL, "first")
    assert (found.same_success, found.same_steps, found.is_seen) == (True, False, True)
    assert min(found.p_values, key=lambda name: found.p_values[name]).startswith("steps")


def test_gains_and_losses_that_cancel_are_seen_by_task_only() -> None:
    found = judge(made_up(0.2, 0, in_turn=True), F, LEVEL, "first")
    assert found.same_success
    assert found.p_values["success"] > 0.001
    assert found.p_values["success by task"] < 0.001
    assert found.is_seen


@pytest.mark.usefixtures("corridors")
def test_the_marks_pass_and_what_biases_the_list_fails(quick: Options) -> None:
    """The policies themselves, in the stand-in. H0: nothing changes. Twelve corridors, 150 trials of each policy."""
    campaign = Campaign("corridors", (0.15,), (BASELINE, F, R, *CONTROLS), tuple(range(150)), read=False)
    outcomes = run_campaign(campaign, quick, silent)
    level = Level(0.15, 150, 0, Measure(0.1, 0.7), Measure(0.7, 5.0))
    judged = {policy: judge(outcomes, policy, level, "first") for policy in (F, R, *CONTROLS)}
    assert judged[F].passes
    assert judged[R].passes
    for policy in CONTROLS:
        assert not judged[policy].passes
        assert judged[policy].is_seen
    assert judged[RED_GREEN].success.difference < -0.1
    # Early stopping does better than the agent it is to stand for: what is likeliest becomes likelier.
    assert judged[EARLY_STOPPING].success.difference > 0.05
    table = judged_table(list(judged.values()), "")
    assert all(len(row) == len(COLUMNS) for row in table.rows)
    assert [row[-1] for row in table.rows] == [PASSES, PASSES, FAILS, FAILS]
    assert len(power_table([judged[F]], 12).rows) == 2
