"""Which models are asked, and how: presets are the paper's."""

import json
import pickle
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from agentmark_lab.kit.models import ModelSpec, models_here
from agentmark_lab.kit.options import JudgeChoice, ModelChoice, Options

from agentmark.elicit.situation import Situation
from agentmark.testing import FakeProvider
from agentmark.testing.provider import chat_answer


def test_the_papers_settings() -> None:
    deepseek = Options(model=ModelChoice("deepseek", api_key="secret"))
    (spec,) = models_here(deepseek, "toolbench")
    assert (spec.name, spec.elicitor, spec.temperature) == ("deepseek-chat", "verbalised/toolbench", 0.7)
    assert spec.api_key == "secret"
    for split in ("alfworld-id", "alfworld-ood"):
        (spec,) = models_here(deepseek, split)
        assert (spec.elicitor, spec.temperature) == ("verbalised/alfworld", 1.0)
    # The paper has no prompt for others.
    assert models_here(deepseek, "bfcl")[0].elicitor == "verbalised"
    stated = Options(model=ModelChoice("some-model", "http://127.0.0.1:1/v1"))
    assert models_here(stated, "toolbench") == [ModelSpec("some-model", "http://127.0.0.1:1/v1")]


def test_a_key_is_used_and_never_shown() -> None:
    stated = Options(model=ModelChoice("m", "http://127.0.0.1:1/v1", "secret"), judge=JudgeChoice("u", "j", "secret"))
    (spec,) = models_here(stated, "toolbench")
    assert "secret" not in f"{stated} {stated!r} {spec!r} {stated.model}"
    said = json.dumps({"a": 0.5, "b": 0.5})
    seen: list[Mapping[str, str]] = []
    with FakeProvider({"/v1/chat/completions": chat_answer(said)}, on_headers=seen.append) as provider:
        choice = ModelChoice("m", provider.base_url, "secret")
        # As a worker process has it.
        (spec,) = models_here(pickle.loads(pickle.dumps(Options(model=choice))), "toolbench")
        replace(spec, elicitor="verbalised").open_elicitor(Random(1)).elicit(Situation.of(["a", "b"], "which?"))
    assert seen[0]["Authorization"] == "Bearer secret"
