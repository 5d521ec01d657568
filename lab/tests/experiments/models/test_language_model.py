"""A language model in any environment."""

import json
from pathlib import Path

import pytest
from agentmark_lab.envs.base import Task
from agentmark_lab.experiments.models import language_model
from agentmark_lab.kit.agent_loop import BASELINE, F, R
from agentmark_lab.kit.experiment import perform
from agentmark_lab.kit.models import ModelSpec
from agentmark_lab.kit.options import ModelChoice, Options
from corridors import Corridors

from agentmark.testing import FakeProvider
from agentmark.testing.provider import chat_answer

LIST = {"right": 0.8, "left": 0.1, "trapdoor 1": 0.1, "trapdoor 2": 0, "trapdoor 3": 0}


@pytest.mark.usefixtures("corridors")
def test_a_model_behind_a_url_plays_in_any_environment(tmp_path: Path) -> None:
    with FakeProvider({"/v1/chat/completions": chat_answer(json.dumps(LIST))}) as provider:
        model = ModelChoice("some-model", provider.base_url)
        options = Options(work=tmp_path, environment="corridors", tasks=3, model=model)
        result = perform(language_model, options, print)
    # A result of its own, beside the usual one, and the command that repeats it.
    assert result.name == "language_model-corridors"
    assert " --environment corridors --tasks 3 --model " in result.command
    rows = {row[1]: row for row in result.tables[0].rows}
    # Two groups of three.
    assert rows[BASELINE][2] == rows[F][2] == rows[R][2] == 6
    # Without induction the reply is no name: every step of it is lost.
    assert rows[language_model.NO_INDUCTION][7] == 6 * Corridors.max_steps
    # The logs are left as an agent would leave them.
    assert (tmp_path / "language_model" / "corridors" / "some-model" / "AgentMark-R.jsonl").exists()


@pytest.mark.usefixtures("corridors")
def test_without_induction_the_model_sees_what_the_agent_sees(tmp_path: Path) -> None:
    with FakeProvider({"/v1/chat/completions": chat_answer("right")}) as provider:
        chunk = language_model.Chunk(
            ModelSpec("m", provider.base_url, "verbalised"),
            "corridors",
            Task("corridor-0", "C0"),
            seed=1,
            runs=1,
            work=tmp_path,
            judge=None,
        )
        outcome = language_model.run_chunk(chunk)
    asked = ["\n".join([message["content"] for message in body["messages"]]) for _, body in provider.requests]
    first = next(text for text in asked if text.startswith("You are an agent. Reply with the name"))
    assert "a corridor" in first
    # It does as it says; a list it never stated.
    rows = {row.policy: row for row in outcome.rows}
    assert (rows[language_model.NO_INDUCTION].success, rows[language_model.NO_INDUCTION].steps) == (True, 10)
    assert rows[BASELINE].lost == Corridors.max_steps
