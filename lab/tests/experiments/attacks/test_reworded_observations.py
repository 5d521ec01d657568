"""Observations in a model's own words: the log that is read has the lists after rewording."""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from agentmark_lab.envs.base import Task
from agentmark_lab.experiments.attacks import reworded_observations as rewording
from agentmark_lab.experiments.attacks.mismatch import Tally, identify
from agentmark_lab.experiments.attacks.reworded_observations import Step, reworded_log
from agentmark_lab.kit.draws import random_key
from agentmark_lab.kit.models import ModelSpec

from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.statistics import dirichlet, named
from agentmark.embed.embedder import Embedder
from agentmark.testing import FakeProvider
from agentmark.testing.provider import chat_answer
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


def test_names_of_things_that_are_left() -> None:
    rng = Random(4)
    before = drawn(rng)
    assert Step(before, {}, "You see a bed 1, a desk 2.", "There is a Desk 2 and a lamp 1.").names_kept == 0.5
    assert Step(before, {}, "Nothing happens.", "Nothing.").names_kept is None


LIST = {"right": 0.7, "left": 0.2, "trapdoor 1": 0.1, "trapdoor 2": 0, "trapdoor 3": 0}


@pytest.fixture
def in_corridors(corridors: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewording, "ENVIRONMENT", "corridors")


def chunk_for(provider: FakeProvider, work: Path, steps: int = 3) -> rewording.Chunk:
    model = ModelSpec("m", provider.base_url, "verbalised")
    return rewording.Chunk(model, Task("corridor-0", "C0"), Task("corridor-1", "C1"), seed=1, steps=steps, work=work)


@pytest.mark.usefixtures("in_corridors")
def test_a_step_is_asked_about_in_other_words_and_the_options_stay_in_order(tmp_path: Path) -> None:
    with FakeProvider({"/v1/chat/completions": chat_answer(json.dumps(LIST))}) as provider:
        outcome = rewording.run_chunk(chunk_for(provider, tmp_path, steps=1))
        again = rewording.run_chunk(chunk_for(provider, tmp_path, steps=1))
    # The other game looks the same, and is not asked about again.
    rewrite, original, reworded, reordered = [_text(body) for _, body in provider.requests]
    assert rewrite.startswith("You are a helpful assistant. Rewrite the following text")
    assert rewrite.endswith("Input Text: a corridor")
    # What the model wrote stands where the observation stood, and nothing else changes but that.
    said = json.dumps(LIST)
    assert original.count("a corridor") == 1
    assert reworded == original.replace("a corridor", said)
    assert reordered != original
    assert sorted(reordered) == sorted(original)
    assert set(outcome.steps[0].after) == set(rewording.CONDITIONS)
    assert outcome.lost == 0
    # All of it was kept.
    assert len(provider.requests) == 4
    assert again.steps == outcome.steps


@pytest.mark.usefixtures("in_corridors")
@pytest.mark.parametrize("said", ["", "no list at all"])
def test_words_or_lists_that_cannot_be_used_are_counted(said: str, tmp_path: Path) -> None:
    with FakeProvider({"/v1/chat/completions": chat_answer(said)}) as provider:
        outcome = rewording.run_chunk(chunk_for(provider, tmp_path))
    assert (outcome.steps, outcome.lost) == ([], 3)


def _text(body: Mapping[str, Any]) -> str:
    return "\n".join([message["content"] for message in body["messages"]])
