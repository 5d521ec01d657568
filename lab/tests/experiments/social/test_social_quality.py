"""The judge of social quality: what it is shown, what is kept, and that a blind judge is found out."""

from dataclasses import replace
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
    asked = str(request.messages[1]["content"])
    strange = "nobody" in asked and asked.endswith("character stability:")
    dull = not ("like_post" in asked and "repost" in asked) and asked.endswith("language diversity:")
    return "2" if strange or dull else "7"


def blind(request: ChatRequest) -> str:
    return "7"


def nobody(number: int) -> Shown:
    """An agent whose own scores are those of the agent that is shown in its place."""
    return replace(shown(CONTROL, number), profile="You are nobody.")


def all_shown() -> list[Shown]:
    found = []
    for number in range(6):
        control = shown(CONTROL, number, "like_post", "repost", "follow")
        found += [shown(MARKED, number, "repost", "like_post"), control, *spoiled(control, nobody(number))]
    return found


def test_a_trajectory_is_spoiled_in_both_ways_and_else_left_as_it_was() -> None:
    control = shown(CONTROL, 1, "like_post", "repost")
    miscast, stuck = spoiled(control, nobody(2))
    assert (miscast.group, miscast.profile, miscast.trajectory) == (MISCAST, "You are nobody.", control.trajectory)
    # It is compared with the one whose persona is shown.
    assert (miscast.pair, stuck.pair) == ("agent 2", "agent 1")
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
        return "nothing of use" if len(asked) <= 2 else attentive(request)

    judge = Judge(FunctionChat("judge", complete=complete))
    monkeypatch.setattr(social_quality, "open_judge", lambda choice: judge)
    first = scored(all_shown(), CHOICE, tmp_path, lambda said: None)
    again = scored(all_shown(), CHOICE, tmp_path, lambda said: None)
    # Those of one persona follow each other, and nobody comes first.
    assert {one.shown.group for one in first if one.scores is None} == {MISCAST}
    assert [one.scores for one in again] == [one.scores for one in first]
    # Six marked agents did the same under personas of their own; so did the others.
    # Where no probabilities are reported, each dimension is asked about twice.
    assert len(asked) == 2 * len(DIMENSIONS) * len({(one.profile, str(one.trajectory.acts)) for one in all_shown()})
