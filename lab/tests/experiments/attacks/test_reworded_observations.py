"""Observations in a model's own words: the log that is read has the lists after rewording."""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from re import findall
from typing import Any

import pytest
from agentmark_lab.envs import base
from agentmark_lab.envs.base import Task
from agentmark_lab.experiments.attacks import reworded_observations as rewording
from agentmark_lab.experiments.attacks.mismatch import Tally, identify
from agentmark_lab.experiments.attacks.reworded_observations import (
    ADDS,
    ALIKE,
    CUT_OFF,
    LOSES,
    PROMPT,
    Rewriting,
    changed,
    fault_of,
    games,
    reworded_log,
)
from agentmark_lab.kit.draws import random_key
from agentmark_lab.kit.models import ModelSpec
from agentmark_lab.kit.options import ModelChoice, Options

from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.statistics import dirichlet, named
from agentmark.embed.embedder import Embedder
from agentmark.testing import FakeProvider
from agentmark.testing.provider import Answer, chat_answer
from agentmark.verify.verifier import Verifier


def drawn(rng: Random, size: int = 8) -> BehaviorDistribution:
    return BehaviorDistribution.quantise(named(dirichlet(rng, 0.5, size)))


def test_a_log_is_marked_with_the_first_list_and_read_with_the_second() -> None:
    rng = Random(3)
    key, payload = random_key(rng), 0xA5
    pairs = [(one, drawn(rng) if i % 5 == 0 else one) for i, one in enumerate([drawn(rng) for _ in range(100)])]
    log = reworded_log(pairs, Embedder(key, payload, payload_len=8, scheme="R"), rng, steps=120)
    assert {record.distribution for record in log} <= {after for _, after in pairs}
    tallies = {10: Tally(), 120: Tally()}
    identify(log, payload, Verifier(key, payload_len=8), 0.3, tallies)
    # A fifth of the lists is another's: the identity is still named.
    assert (tallies[120].identified, tallies[120].accepted, tallies[120].trials) == (1, 1, 1)
    assert tallies[10].trials == 1


SAID = "You arrive at shelf 3. On the shelf 3, you see a bowl 1, and a desklamp 1."


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("Upon reaching Shelf 3, one notices a bowl 1 and a desklamp 1.", None),
        ("Upon reaching shelf 3, one notices a bowl 1 and a desk lamp 1.", None),
        ("A bowl and a desklamp 1 are on shelf 3.", LOSES),
        ("Upon reaching shelf 3, one notices a bowl 1 and a desklamp 12.", LOSES),
        ("Upon reaching shelf 3, one notices a bowl 1, a desklamp 1 and a floor lamp 2.", ADDS),
        ("Upon reaching shelf 3, one notices a bowl 1, a desklamp 1 and a mug 2.", ADDS),
        ("You arrive at shelf 3. On shelf 3, you see a bowl 1, and a desklamp 1.", ALIKE),
        # The same words in another order are the same words.
        ("On the shelf 3, you see a desklamp 1, and a bowl 1. You arrive at shelf 3.", ALIKE),
        ("", CUT_OFF),
    ],
)
def test_words_that_lose_or_add_a_thing_or_are_almost_the_same_are_not_used(words: str, fault: str | None) -> None:
    assert fault_of(SAID, words) == fault


def test_how_much_of_the_words_is_new() -> None:
    assert changed("You see a bed 1.", "You see a bed 1.") == 0
    assert changed("You see a bed 1.", "There stands one bed 1.") == 1
    assert changed("You see a bed 1.", "You notice a bed 1.") == pytest.approx(1 / 3)
    assert changed("You see a desklamp 1.", "You see a Desk Lamp 1.") == 0


def test_games_are_taken_of_each_kind_in_turn() -> None:
    tasks = [Task(f"{group}{i}", group) for group, count in (("A", 1), ("B", 3), ("C", 2)) for i in range(count)]
    assert [task.id for task in games(tasks, None)] == ["A0", "B0", "C0", "B1", "C1", "B2"]
    assert [task.id for task in games(tasks, 2)] == ["A0", "B0", "C0", "B1", "C1"]


LIST = {"right": 0.7, "left": 0.2, "trapdoor 1": 0.1, "trapdoor 2": 0, "trapdoor 3": 0}


@pytest.fixture
def on_shelves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base.ENVIRONMENTS, "shelves", "corridors:ShelvedCorridors")
    monkeypatch.setattr(rewording, "ENVIRONMENT", "shelves")


def chunk_for(provider: FakeProvider, work: Path, steps: int = 3) -> rewording.Chunk:
    model = ModelSpec("m", provider.base_url, "verbalised")
    return rewording.Chunk(model, Task("corridor-0", "C0"), Task("corridor-1", "C1"), seed=1, steps=steps, work=work)


def a_model(*rewritings: str) -> Answer:
    """States one list whatever it is shown, and these words in turn, the last for good."""
    left = list(rewritings)

    def says(body: Mapping[str, Any]) -> str:
        if not _text(body).startswith(PROMPT):
            return json.dumps(LIST)
        return left.pop(0) if len(left) > 1 else left[0]

    return chat_answer(says)


@pytest.mark.usefixtures("on_shelves")
def test_steps_at_which_there_is_something_to_see_are_asked_about_in_other_words(tmp_path: Path) -> None:
    rewriting = "Shelf 1 was reached; it holds mug 1."
    with FakeProvider({"/v1/chat/completions": a_model(rewriting)}) as provider:
        outcome = rewording.run_chunk(chunk_for(provider, tmp_path, steps=1))
        again = rewording.run_chunk(chunk_for(provider, tmp_path, steps=1))
    rewrite, original, reworded, reordered = [_text(body) for _, body in provider.requests]
    assert rewrite.startswith(PROMPT)
    seen = "You arrive at shelf 1. On the shelf 1, you see a mug 1."
    assert rewrite.endswith(f"Input Text: {seen}")
    # What the model wrote stands where the observation stood, and nothing else changes but that.
    assert original.count(seen) == 1
    assert reworded == original.replace(seen, rewriting)
    assert reordered != original
    assert sorted(reordered) == sorted(original)
    [step] = outcome.steps
    assert (step.said, step.reworded, set(step.after)) == (seen, rewriting, set(rewording.CONDITIONS))
    assert outcome.rewritings == [Rewriting(rewriting, ())]
    # The other game looks the same, and is not asked about again. All of it was kept.
    assert len(provider.requests) == 4
    assert again.steps == outcome.steps


@pytest.mark.usefixtures("on_shelves")
def test_other_lists_are_asked_for_at_one_step_of_a_game(tmp_path: Path) -> None:
    found = {place: f"Shelf {place} was reached; it holds mug 1." for place in (1, 3, 5)}
    with FakeProvider({"/v1/chat/completions": a_model(*found.values())}) as provider:
        outcome = rewording.run_chunk(chunk_for(provider, tmp_path))
    assert [step.reworded for step in outcome.steps] == list(found.values())
    assert [len(step.after) for step in outcome.steps] == [3, 1, 1]
    assert len(outcome.pairs(rewording.REORDERED)) == 1
    assert len(outcome.pairs(rewording.REWORDED)) == 3


@pytest.mark.usefixtures("on_shelves")
def test_words_are_drawn_until_some_can_be_used(tmp_path: Path) -> None:
    said = ["You arrive at a shelf.", "Shelf 1 was reached; it holds mug 1 and mug 2.", "Shelf 1 now shows mug 1."]
    with FakeProvider({"/v1/chat/completions": a_model(*said)}) as provider:
        outcome = rewording.run_chunk(chunk_for(provider, tmp_path, steps=1))
    assert outcome.rewritings == [Rewriting(said[2], (LOSES, ADDS))]
    assert [body["temperature"] for _, body in provider.requests[:3]] == [0.0, 1.0, 1.0]


@pytest.mark.usefixtures("on_shelves")
def test_words_that_never_can_be_used_are_counted(tmp_path: Path) -> None:
    with FakeProvider({"/v1/chat/completions": a_model("no list at all")}) as provider:
        outcome = rewording.run_chunk(chunk_for(provider, tmp_path))
    tries = 1 + rewording.DRAWN
    assert outcome.rewritings == [Rewriting(None, (LOSES,) * tries)] * 3
    assert (outcome.steps, outcome.lost) == ([], 0)
    assert len(provider.requests) == 3 * tries


@pytest.mark.usefixtures("on_shelves")
def test_lists_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    says = "Shelf 1 was reached; it holds mug 1."
    with FakeProvider({"/v1/chat/completions": chat_answer(says)}) as provider:
        outcome = rewording.run_chunk(chunk_for(provider, tmp_path, steps=1))
    assert (outcome.steps, outcome.lost) == ([], 1)


@pytest.mark.usefixtures("on_shelves")
def test_the_result_says_how_many_steps_it_has_of_those_that_were_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewording, "GRIDS", {"R": (5,), "F": (5,)})
    monkeypatch.setattr(rewording, "LOGS", {"R": 4, "F": 4})
    monkeypatch.setattr(rewording, "STEPS_A_GAME", 4)

    def says(body: Mapping[str, Any]) -> str:
        text = _text(body)
        if not text.startswith(PROMPT):
            return json.dumps(LIST)
        [shelf] = set(findall(r"shelf \d+", text))
        # At the third shelf nothing usable is ever said.
        return f"Reached {shelf}, which holds mug 1." if shelf != "shelf 5" else "Nothing."

    with FakeProvider({"/v1/chat/completions": chat_answer(says)}) as provider:
        model = ModelChoice("m", provider.base_url)
        findings = rewording.run(Options(work=tmp_path, model=model, tasks=1), lambda said: None)
    # Two kinds, one game of each, four steps where something is seen: one is never reworded.
    assert "m: 6 steps of 2 games were reworded (aim: 500)." in [claim.text for claim in findings.claims]
    same, _, words = findings.tables
    assert [(row[1], row[2]) for row in same.rows[1:]] == [
        (rewording.REWORDED, 6),
        (rewording.REORDERED, 2),
        (rewording.ELSEWHERE, 2),
    ]
    made = dict(zip(words.columns, words.rows[0], strict=True))
    assert [made[name] for name in ("observations", "greedy words used", "none of use", "tries")] == [8, 6, 2, 24]
    assert made[f"refused: {LOSES}"] == 18


def _text(body: Mapping[str, Any]) -> str:
    return "\n".join([message["content"] for message in body["messages"]])
