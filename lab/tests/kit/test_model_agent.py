"""Lists are kept by what was asked, and nonsense is counted."""

import json
from pathlib import Path
from random import Random

from agentmark_lab.envs.base import Task
from agentmark_lab.kit.model_agent import ElicitedLists, ModelAgent
from agentmark_lab.kit.models import ModelSpec
from corridors import Corridors

from agentmark.testing import FakeProvider, ScriptedElicitor
from agentmark.testing.provider import chat_answer


def test_a_list_is_asked_for_once_a_run(tmp_path: Path) -> None:
    elicitor = ScriptedElicitor()
    episode = Corridors(tmp_path).start(Task("c", "g"), seed=1)
    for _ in range(2):
        lists = ElicitedLists(elicitor, tmp_path)
        weights = ModelAgent(lists, label="m").weights(episode)
        assert weights == dict.fromkeys(episode.behaviors, 1.0)
    assert len(elicitor.situations) == 1
    assert (lists.effort.calls, lists.effort.cached) == (1, 1)
    ModelAgent(ElicitedLists(elicitor, tmp_path, run=1), label="m").weights(episode)
    assert len(elicitor.situations) == 2


def test_the_agent_tells_the_model_what_it_did(tmp_path: Path) -> None:
    elicitor = ScriptedElicitor()
    agent = ModelAgent(ElicitedLists(elicitor, tmp_path), label="m", history=1)
    episode = Corridors(tmp_path).start(Task("c", "g"), seed=1)
    agent.weights(episode)
    for behavior in ("left", "right"):
        episode.step(behavior)
        agent.acted(behavior, episode)
    agent.weights(episode)
    first, second = [[message["content"] for message in asked.messages] for asked in elicitor.situations]
    assert first == ["reach the end", "a corridor"]
    assert second == ["reach the end", "I do: right", "a corridor"]


def test_nonsense_is_counted_and_never_replaced(tmp_path: Path) -> None:
    lists = ElicitedLists(ScriptedElicitor(["no list", "no list"]), tmp_path)
    agent = ModelAgent(lists, label="m")
    assert agent.weights(Corridors(tmp_path).start(Task("c", "g"), seed=1)) is None
    assert lists.effort.unusable == 1


def test_a_model_behind_a_url_is_asked_as_the_paper_asks(tmp_path: Path) -> None:
    weights = {"right": 1, "left": 0, "trapdoor 1": 0, "trapdoor 2": 0, "trapdoor 3": 0}
    said = "Thought: hm.\n" + json.dumps({"action_weights": weights, "action_args": {}})
    with FakeProvider({"/v1/chat/completions": chat_answer(said)}) as provider:
        spec = ModelSpec("m", provider.base_url, "verbalised/toolbench", 0.7)
        lists = ElicitedLists(spec.open_elicitor(Random(1)), tmp_path)
        assert ModelAgent(lists, label="m").weights(Corridors(tmp_path).start(Task("c", "g"), seed=1)) == weights
    body = provider.requests[0][1]
    assert body["temperature"] == 0.7
    assert body["messages"][0]["content"].startswith("You are a tool-use agent.")
