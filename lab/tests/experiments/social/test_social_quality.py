"""The judge of social quality: what it is shown, what is kept, and that a blind judge is found out."""

import json
from pathlib import Path

import pytest
from agentmark_lab.envs.oasis import Act, Trajectory
from agentmark_lab.experiments.social import social_quality
from agentmark_lab.experiments.social.social_quality import (
    CONTROL,
    MARKED,
    MISCAST,
    STUCK,
    Scored,
    Shown,
    compared,
    quality,
    scored,
    spoiled,
)
from agentmark_lab.kit.model_judge import DIMENSIONS, Judge
from agentmark_lab.kit.options import JudgeChoice

from agentmark.elicit.chat import ChatRequest, FunctionChat

CHOICE = JudgeChoice("http://127.0.0.1:1/v1", "a/judge", None)
NOTE = "P_t: a policy."


def shown(group: str, number: int, *behaviors: str) -> Shown:
    acts = [Act(name, {"post_id": place}, None) for place, name in enumerate(behaviors)]
    return Shown("twitter, F", group, f"agent {number}", f"You are number {number}.", Trajectory("x", [], acts))


def attentive(request: ChatRequest) -> str:
    """Marks down what does not fit: nobody's persona, and one behavior only."""
    asked = str(request.messages)
    strange = 5 if "nobody" in asked else 0
    dull = 0 if "like_post" in asked and "repost" in asked else 4
    scores = dict.fromkeys(DIMENSIONS, 7.0)
    scores["character stability"] -= strange
    scores["language diversity"] -= dull
    return json.dumps(scores)


def blind(request: ChatRequest) -> str:
    return json.dumps(dict.fromkeys(DIMENSIONS, 7.0))


def all_shown() -> list[Shown]:
    found = []
    for number in range(6):
        control = shown(CONTROL, number, "like_post", "repost", "follow")
        found += [shown(MARKED, number, "repost", "like_post"), control, *spoiled(control, "You are nobody.")]
    return found


def test_a_trajectory_is_spoiled_in_both_ways_and_else_left_as_it_was() -> None:
    control = shown(CONTROL, 1, "like_post", "repost")
    miscast, stuck = spoiled(control, "You are nobody.")
    assert (miscast.group, miscast.profile, miscast.trajectory) == (MISCAST, "You are nobody.", control.trajectory)
    assert (stuck.group, stuck.profile) == (STUCK, control.profile)
    assert [act.behavior for act in stuck.trajectory.acts] == ["like_post", "like_post"]


def test_an_attentive_judge_is_told_from_a_blind_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, complete, notices in (("attentive", attentive, True), ("blind", blind, False)):
        judge = Judge(FunctionChat(name, complete=complete))
        monkeypatch.setattr(social_quality, "open_judge", lambda choice, judge=judge: judge)
        found = scored(all_shown(), CHOICE, tmp_path / name, lambda said: None)
        claims, tables = quality(found, CHOICE, NOTE)
        assert [claim.holds for claim in claims] == [True, notices, notices]
        assert [table.title for table in tables] == [
            "The judge's five dimensions (Fig. 3)",
            "What this judge notices",
        ]
        assert len(tables[0].rows) == len(DIMENSIONS)


def test_a_judge_who_prefers_one_group_is_seen() -> None:
    better = dict.fromkeys(DIMENSIONS, 8.0)
    worse = dict.fromkeys(DIMENSIONS, 6.0)
    found = [Scored(shown(MARKED, number), worse) for number in range(5)]
    found += [Scored(shown(CONTROL, number), better) for number in range(5)]
    claims, _ = quality(found, CHOICE, NOTE)
    assert not claims[0].holds
    assert {one.difference for one in compared(found, [MARKED], confidence=0.95)} == {-2.0}


def test_pairs_in_which_one_was_not_scored_do_not_count() -> None:
    fine = dict.fromkeys(DIMENSIONS, 8.0)
    found = [Scored(shown(group, number), fine) for group in (MARKED, CONTROL) for number in range(3)]
    found.append(Scored(shown(MARKED, 3), fine))
    found.append(Scored(shown(CONTROL, 3), None))
    assert {one.pairs for one in compared(found, [MARKED], confidence=0.95)} == {3}
    assert compared(found[:1], [MARKED], confidence=0.95) == []


def test_what_the_judge_has_said_is_not_asked_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[ChatRequest] = []

    def complete(request: ChatRequest) -> str:
        asked.append(request)
        return "nothing of use" if len(asked) == 1 else attentive(request)

    judge = Judge(FunctionChat("judge", complete=complete))
    monkeypatch.setattr(social_quality, "open_judge", lambda choice: judge)
    first = scored(all_shown(), CHOICE, tmp_path, lambda said: None)
    again = scored(all_shown(), CHOICE, tmp_path, lambda said: None)
    assert first[0].scores is None
    assert [one.scores for one in again] == [one.scores for one in first]
    # Six marked agents did the same under personas of their own; so did the others.
    assert len(asked) == len({(one.profile, str(one.trajectory.acts)) for one in all_shown()})
