"""Many episodes in an environment: pairing, resuming, and what is measured. The environment here is a stand-in."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from agentmark_lab.kit import campaign as campaign_module
from agentmark_lab.kit.agent_loop import BASELINE, EARLY_STOPPING, POLICIES, F, R
from agentmark_lab.kit.campaign import Campaign, Outcome, logged_episodes, run_campaign
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.equivalence import utility_table
from agentmark_lab.kit.options import Options
from agentmark_lab.kit.resume import resumable
from lab_support import silent

from agentmark.verify.verifier import Verifier

pytestmark = pytest.mark.usefixtures("corridors")

CAMPAIGN = Campaign("corridors", (0.1,), POLICIES, (1, 2))


def test_a_campaign_plays_every_cell_and_repeats(quick: Options) -> None:
    outcomes = run_campaign(CAMPAIGN, quick, silent)
    assert len(outcomes) == 12 * 2 * len(POLICIES)
    assert {outcome.policy for outcome in outcomes} == set(POLICIES)
    assert not any(outcome.wrong for outcome in outcomes)
    assert all(outcome.bits == 0 for outcome in outcomes if outcome.policy == BASELINE)
    assert sum(outcome.bits for outcome in outcomes if outcome.policy == R) > 0


def interrupted(folder: Path, options: Options, said: list[str]) -> list[Outcome]:
    """All of the campaign, by a run that is interrupted before its end."""
    outcomes: list[Outcome] = []
    with suppress(KeyboardInterrupt), resumable(folder):
        outcomes += run_campaign(CAMPAIGN, options, said.append)
        raise KeyboardInterrupt
    return outcomes


def test_an_interrupted_campaign_goes_on_where_it_was(quick: Options, tmp_path: Path) -> None:
    folder = tmp_path / "unfinished"
    whole = interrupted(folder, quick, [])
    places = sorted(folder.glob("*"))
    assert len(places) == 6
    kept = places[0].stat().st_mtime_ns
    places[1].unlink()
    said: list[str] = []
    again = interrupted(folder, quick, said)
    assert places[0].stat().st_mtime_ns == kept
    assert said[0] == "corridors: 5 of 6 chunks are done already"
    timeless = [[o.task, o.policy, o.seed, o.success, o.steps, o.bits] for o in again]
    assert timeless == [[o.task, o.policy, o.seed, o.success, o.steps, o.bits] for o in whole]


def test_what_other_code_played_is_played_again(
    quick: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a change in what plays counts: the table of the same outcomes may be drawn anew."""
    folder = tmp_path / "unfinished"
    interrupted(folder, quick, [])
    said: list[str] = []
    interrupted(folder, quick, said)
    assert said[0] == "corridors: 6 of 6 chunks are done already"
    monkeypatch.setattr(campaign_module, "code_digest", lambda modules: "another")
    said.clear()
    interrupted(folder, quick, said)
    assert said[0] == "corridors: 6 of 6 chunks were done by other code, and are done again"


def test_early_stopping_plays_like_any_policy(quick: Options) -> None:
    outcomes = run_campaign(Campaign("corridors", (0.3,), (BASELINE, EARLY_STOPPING), (1, 2)), quick, silent)
    by_policy = {policy: [o for o in outcomes if o.policy == policy] for policy in (BASELINE, EARLY_STOPPING)}
    assert len(by_policy[EARLY_STOPPING]) == 24
    # Its records hold the agent's list, whose entropy is the same for both.
    per_step = [sum([o.entropy for o in mine]) / sum([o.steps for o in mine]) for mine in by_policy.values()]
    assert per_step[0] == pytest.approx(per_step[1])


def test_a_campaign_is_the_same_in_worker_processes(quick: Options) -> None:
    """They learn where the work folder is from what they are handed."""
    campaign = Campaign("toolbench", (0.1,), (BASELINE,), (1,), tasks_a_group=1)
    try:
        one = run_campaign(campaign, quick, silent)
    except MissingError as missing:
        pytest.skip(str(missing))
    two = run_campaign(campaign, replace(quick, workers=2), silent)
    assert [(o.task, o.success, o.steps) for o in two] == [(o.task, o.success, o.steps) for o in one]
    logged = logged_episodes(campaign, replace(quick, workers=2), silent)
    assert [(episode.task, len(episode.records)) for episode in logged] == [(o.task, o.steps) for o in one]


def test_logs_are_those_of_the_episodes(quick: Options) -> None:
    outcomes = run_campaign(CAMPAIGN, quick, silent)
    logged = logged_episodes(CAMPAIGN, quick, silent)
    assert [(one.task, one.policy, len(one.records)) for one in logged] == [
        (o.task, o.policy, o.steps) for o in outcomes
    ]
    marked = next(one for one in logged if one.policy == F)
    pooled = Verifier(marked.key, payload_len=8).verify(marked.records, claim=marked.payload)
    assert pooled.counts["used"] == len(marked.records)
    assert pooled.agreeing == len(marked.records)


def test_a_quick_look_takes_some_of_every_group(quick: Options) -> None:
    look = Campaign("corridors", (0.1,), (BASELINE,), (1,), tasks_a_group=2)
    assert [o.group for o in run_campaign(look, quick, silent)] == ["C0", "C0", "C1", "C1"]


def test_marks_that_are_not_read_back_do_not_change_the_play(quick: Options) -> None:
    unread = run_campaign(Campaign("corridors", (0.1,), POLICIES, (1, 2), read=False), quick, silent)
    read = run_campaign(CAMPAIGN, quick, silent)
    assert [(o.task, o.policy, o.success, o.steps) for o in unread] == [
        (o.task, o.policy, o.success, o.steps) for o in read
    ]
    assert not any(o.read or o.bits for o in unread)
    row = {cells[1]: cells for cells in utility_table([*read, *unread], "t", "").rows}[R]
    alone = {cells[1]: cells for cells in utility_table(read, "t", "").rows}[R]
    # Twice the episodes, and the same bits: only what was read counts.
    assert (row[2], row[8:10], row[11:13]) == (2 * int(alone[2]), alone[8:10], alone[11:13])
