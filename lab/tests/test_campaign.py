"""Many episodes in an environment: pairing, resuming, and what is measured. The environment here is a stand-in."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from agentmark_lab.envs import base
from agentmark_lab.envs.base import Task
from agentmark_lab.kit import data
from agentmark_lab.kit.agent_loop import BASELINE, POLICIES, RED_GREEN, F, R, chooser_for, play
from agentmark_lab.kit.campaign import Campaign, Outcome, kept_episodes, run_campaign
from agentmark_lab.kit.draws import random_key
from agentmark_lab.kit.equivalence import Comparison, compare, utility_claims, utility_table
from agentmark_lab.kit.model_agent import SoftenedExpert
from scipy import stats as scipy_stats

from agentmark.verify.verifier import Verifier


class Corridor:
    """Walk right ten times without ever opening one of the trapdoors."""

    goal = "reach the end"
    observation = "a corridor"
    behaviors = ("right", "left", "trapdoor 1", "trapdoor 2", "trapdoor 3")

    def __init__(self) -> None:
        self.place, self.fallen = 0, False

    @property
    def done(self) -> bool:
        return self.fallen or self.success

    @property
    def success(self) -> bool:
        return self.place == 10

    def expert(self) -> str:
        return "right"

    def step(self, behavior: str) -> None:
        self.fallen = behavior.startswith("trapdoor")
        self.place = max(0, self.place + {"right": 1, "left": -1}.get(behavior, 0))


class Corridors:
    max_steps = 30

    def tasks(self) -> Sequence[Task]:
        return [Task(f"corridor-{i}", f"C{i % 2}") for i in range(12)]

    def start(self, task: Task, *, seed: int) -> Corridor:
        return Corridor()


@pytest.fixture(autouse=True)
def corridors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(base.ENVIRONMENTS, "corridors", f"{__name__}:Corridors")
    monkeypatch.setenv("AGENTMARK_WORK", str(tmp_path))


CAMPAIGN = Campaign("corridors", (0.1,), POLICIES, (1, 2), keep_logs=True)


def silent(_: str) -> None:
    pass


def test_a_campaign_plays_every_cell_and_repeats() -> None:
    outcomes = run_campaign(CAMPAIGN, workers=1, progress=silent)
    assert len(outcomes) == 12 * 2 * len(POLICIES)
    assert {outcome.policy for outcome in outcomes} == set(POLICIES)
    assert not any(outcome.wrong for outcome in outcomes)
    assert all(outcome.bits == 0 for outcome in outcomes if outcome.policy == BASELINE)
    assert sum(outcome.bits for outcome in outcomes if outcome.policy == R) > 0


def test_an_interrupted_campaign_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = run_campaign(CAMPAIGN, workers=1, progress=silent)
    places = sorted((tmp_path / "corridors").glob("*.json"))
    assert len(places) == 6
    kept = places[0].stat().st_mtime_ns
    places[1].unlink()
    said: list[str] = []
    again = run_campaign(CAMPAIGN, workers=1, progress=said.append)
    assert places[0].stat().st_mtime_ns == kept
    assert said[0] == "corridors: 5 of 6 chunks are done already"
    timeless = [[o.task, o.policy, o.seed, o.success, o.steps, o.bits] for o in again]
    assert timeless == [[o.task, o.policy, o.seed, o.success, o.steps, o.bits] for o in whole]


def test_logs_are_kept_an_episode_each() -> None:
    outcomes = run_campaign(CAMPAIGN, workers=1, progress=silent)
    kept = kept_episodes(CAMPAIGN, policy=F)
    assert [len(one.records) for one in kept] == [o.steps for o in outcomes if o.policy == F]
    pooled = Verifier(kept[0].key, payload_len=8).verify(kept[0].records, claim=kept[0].payload)
    assert pooled.counts["used"] == len(kept[0].records)
    assert pooled.agreeing == len(kept[0].records)


def test_a_quick_look_takes_some_of_every_group() -> None:
    quick = Campaign("corridors", (0.1,), (BASELINE,), (1,), tasks_a_group=2)
    assert [o.group for o in run_campaign(quick, workers=1, progress=silent)] == ["C0", "C0", "C1", "C1"]


def test_marks_that_are_not_read_back_do_not_change_the_play() -> None:
    unread = run_campaign(Campaign("corridors", (0.1,), POLICIES, (1, 2), read=False), workers=1, progress=silent)
    read = run_campaign(CAMPAIGN, workers=1, progress=silent)
    assert [(o.task, o.policy, o.success, o.steps) for o in unread] == [
        (o.task, o.policy, o.success, o.steps) for o in read
    ]
    assert not any(o.read or o.bits for o in unread)
    row = {cells[1]: cells for cells in utility_table([*read, *unread], "t", "").rows}[R]
    alone = {cells[1]: cells for cells in utility_table(read, "t", "").rows}[R]
    # Twice the episodes, and the same bits: only what was read counts.
    assert (row[2], row[7:9], row[10:12]) == (2 * int(alone[2]), alone[7:9], alone[10:12])


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
    assert all(claim.holds for claim in utility_claims(many(20_000), "x"))
    assert not utility_claims(many(100), "x")[0].holds
    assert utility_claims(many(100), "x", margin=0.2)[0].holds
    assert len(utility_table(many(50), "t", "").rows) == 4


def test_a_list_that_cannot_be_used_costs_a_step() -> None:
    class Mute(SoftenedExpert):
        def weights(self, episode: object) -> None:  # type: ignore[override]
            return None

    rng = Random(1)
    chooser = chooser_for(F, key=random_key(rng), payload=1, payload_len=8, rng=rng)
    played = play(Corridor(), Mute(0.1), chooser, max_steps=7)
    assert (played.success, played.lost, played.steps, played.records) == (False, 7, 7, ())


def test_missing_data_names_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENTMARK_DATA", str(tmp_path))
    with pytest.raises(data.MissingError, match=r"nothing/here \(looked in .*\) is missing: run make x, or set"):
        data.find_data("nothing/here", remedy="run make x")
    (tmp_path / "here").mkdir()
    assert data.find_data("here", remedy="") == tmp_path / "here"
