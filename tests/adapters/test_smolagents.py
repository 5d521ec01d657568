"""The smolagents adapter, under real agents with real tools and a scripted model of smolagents' own base class."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("smolagents")

from harness import PAYLOAD, decider, records, run_page, verdict
from smolagents import AgentGenerationError, CodeAgent, LogLevel, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
    Model,
)

from agentmark.adapters.smolagents import AgentMarkModel, chat
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import ScriptedElicitor

SPREAD = {"stock": 3, "price": 3, "order": 3, "final_answer": 2}


@tool
def stock(item: str) -> int:
    """How many of an item are in stock.

    Args:
        item: its name
    """
    return len(item) * 7


@tool
def price(item: str) -> float:
    """What an item costs.

    Args:
        item: its name
    """
    return len(item) / 4


@tool
def order(item: str) -> str:
    """Order an item.

    Args:
        item: its name
    """
    return f"ordered: {item}"


class Scripted(Model):
    """Calls the first tool on offer, or those of a script; remembers every message and tool that it was shown."""

    def __init__(self, script: list[str] | None = None, *, as_text: bool = False) -> None:
        super().__init__(model_id="scripted")
        self.script = script
        self.as_text = as_text
        self.seen: list[list[dict[str, Any]]] = []
        self.offered: list[list[str]] = []

    def _call(self, messages: list[Any], tools: list[Any]) -> ChatMessageToolCallFunction:
        self.seen.append([{"role": m.role, "content": copy.deepcopy(m.content)} for m in messages])
        self.offered.append([one.name for one in tools])
        step = len(self.seen) - 1
        name = self.offered[-1][0] if self.script is None else self.script[step]
        text = f"item {step}"
        return ChatMessageToolCallFunction({"answer": text} if name == "final_answer" else {"item": text}, name)

    def generate(self, messages: list[Any], *_: Any, tools_to_call_from: Any = (), **__: Any) -> ChatMessage:
        call = self._call(messages, tools_to_call_from)
        if self.as_text:
            said = f'Action:\n{{"name": "{call.name}", "arguments": {str(call.arguments).replace(chr(39), chr(34))}}}'
            return ChatMessage(MessageRole.ASSISTANT, said)
        return ChatMessage(
            MessageRole.ASSISTANT, "", [ChatMessageToolCall(call, id=f"call {len(self.seen)}", type="function")]
        )


class Streaming(Scripted):
    def generate_stream(self, messages: list[Any], *_: Any, tools_to_call_from: Any = (), **__: Any) -> Iterator[Any]:
        call = self._call(messages, tools_to_call_from)
        arguments = str(call.arguments).replace("'", '"')
        yield ChatMessageStreamDelta(content="Let me see.")
        for text, name in ((arguments[:5], call.name), (arguments[5:], "")):
            part = ChatMessageToolCallFunction(text, name)
            yield ChatMessageStreamDelta(tool_calls=[ChatMessageToolCallStreamDelta(0, "c", "function", part)])


def agent_on(model: Any, **options: Any) -> ToolCallingAgent:
    return ToolCallingAgent(
        tools=[stock, price, order], model=model, verbosity_level=LogLevel.OFF, max_steps=40, **options
    )


def runs(model: Any, count: int, **options: Any) -> list[Any]:
    """What agents answered and observed on the way."""
    seen = []
    for _ in range(count):
        agent = agent_on(model, **options)
        seen.append([agent.run("Restock."), *[getattr(step, "observations", None) for step in agent.memory.steps]])
    return seen


@pytest.mark.parametrize("as_text", [False, True])
def test_a_marked_agent_is_identified_and_does_what_the_unmarked_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_text: bool
) -> None:
    monkeypatch.setattr("smolagents.models.uuid.uuid4", lambda: "the id of a call in text")
    log, model = tmp_path / "run.jsonl", Scripted(as_text=as_text)
    elicitor = ScriptedElicitor(SPREAD)
    marked = runs(AgentMarkModel(model, decider(log, elicitor)), 8)
    done = [record.behavior for record in records(log)]
    assert len(done) > 20
    assert model.offered == [[name] for name in done]
    assert verdict(log).payload == PAYLOAD

    plain = Scripted(done, as_text=as_text)
    assert runs(plain, 8) == marked
    assert plain.seen == model.seen
    assert [list(offered) for offered in plain.offered] == [list(SPREAD)] * len(done)

    first = elicitor.situations[0]
    assert first.names == list(SPREAD)
    assert first.candidates[0].description == "How many of an item are in stock."
    assert first.candidates[0].schema["required"] == ["item"]
    assert "Restock." in str(first.messages[-1]["content"])


def test_a_disobedient_model_is_believed_and_its_steps_are_erased(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    script = ["order"] * 30 + ["final_answer"]
    model = AgentMarkModel(Scripted(script), decider(log, ScriptedElicitor(SPREAD)))
    agent = agent_on(model)
    assert agent.run("Restock.") == "item 30"
    assert agent.memory.steps[1].observations == "ordered: item 0"
    erased = [record for record in records(log) if record.enforced is False]
    chosen = [record.behavior for record in records(log) if record.enforced is not False]
    assert len(erased) == sum(did != behavior for did, behavior in zip(script, chosen, strict=True)) > 15
    assert {record.meta["did"] for record in erased} == {"order", "final_answer"}
    assert not verdict(log).accepted


@pytest.mark.parametrize("script", [None, ["order", "order", "order", "final_answer"]], ids=["obedient", "disobedient"])
def test_streams_pass_through_and_are_judged_at_their_end(tmp_path: Path, script: list[str] | None) -> None:
    log, model = tmp_path / "run.jsonl", Streaming(script)
    marked = AgentMarkModel(model, decider(log, ScriptedElicitor(SPREAD)))
    answers = runs(marked, 1, stream_outputs=True)
    chosen = [record.behavior for record in records(log) if record.enforced is not False]
    done = script or chosen
    erased = [record.step_index for record in records(log) if record.enforced is False]
    assert erased == [step for step, behavior in enumerate(chosen) if behavior != done[step]]
    assert bool(erased) == bool(script)
    plain = Streaming(done)
    assert runs(plain, 1, stream_outputs=True) == answers
    assert plain.seen == model.seen
    assert not hasattr(AgentMarkModel(Scripted(), marked.decider), "generate_stream")


def test_a_stream_that_is_cut_off_has_done_nothing(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    model = AgentMarkModel(Streaming(), decider(log, ScriptedElicitor(SPREAD)))
    stream = model.generate_stream([], tools_to_call_from=[stock, price, order])
    next(stream)
    stream.close()
    assert [record.enforced for record in records(log)] == [None, False]


def test_without_a_list_the_model_decides_or_the_run_ends(tmp_path: Path) -> None:
    log, script = tmp_path / "open.jsonl", ["stock", "final_answer"]
    model = Scripted(script)
    answers = runs(AgentMarkModel(model, decider(log, ScriptedElicitor(lambda situation: "no list today"))), 1)
    plain = Scripted(script)
    assert answers == runs(plain, 1)
    assert (model.seen, model.offered) == (plain.seen, plain.offered)
    assert [(record.behavior, record.marked) for record in records(log)] == [(name, False) for name in script]
    assert "no list today" in records(log)[0].reason

    closed = decider(tmp_path / "closed.jsonl", ScriptedElicitor(lambda situation: "no list today"), fail="closed")
    with pytest.raises(AgentGenerationError, match="no list today") as caught:
        runs(AgentMarkModel(Scripted(script), closed), 1)
    assert isinstance(caught.value.__cause__, ElicitationError)


def test_what_leaves_nothing_to_decide_passes_through(tmp_path: Path) -> None:
    """Code agents and plans offer no tools; a tool choice of the user's own stands."""
    log = tmp_path / "run.jsonl"

    class Coder(Model):
        def generate(self, messages: list[Any], **options: Any) -> ChatMessage:
            assert "tools_to_call_from" not in options
            return ChatMessage(MessageRole.ASSISTANT, "<code>\nfinal_answer(price('four'))\n</code>")

    model = AgentMarkModel(Coder(model_id="coder"), decider(log, ScriptedElicitor()))
    assert CodeAgent(tools=[price], model=model, verbosity_level=LogLevel.OFF).run("Price?") == 1.0
    forced = Scripted()
    forced.kwargs["tool_choice"] = {"type": "function", "function": {"name": "stock"}}
    AgentMarkModel(forced, model.decider).generate([], tools_to_call_from=[stock, price])
    assert forced.offered == [["stock", "price"]]
    assert records(log) == []
    assert model.model_id == "coder"


def test_a_reply_that_cannot_be_read_and_a_model_that_fails_have_done_nothing(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    class Babbling(Scripted):
        def generate(self, messages: list[Any], *_: Any, **options: Any) -> ChatMessage:
            self.seen.append([])
            if len(self.seen) == 1:
                return ChatMessage(MessageRole.ASSISTANT, "I would rather not.")
            raise OSError("gone")

    with pytest.raises(AgentGenerationError, match="gone"):
        runs(AgentMarkModel(Babbling(), decider(log, ScriptedElicitor(SPREAD))), 1)
    assert [record.enforced for record in records(log)] == [None, False, None, False]
    assert not [record for record in records(log) if "did" in record.meta]


def test_the_agents_own_model_can_be_asked_on_the_side(tmp_path: Path) -> None:
    class Talkative(Scripted):
        def generate(self, messages: list[Any], *_: Any, tools_to_call_from: Any = (), **__: Any) -> ChatMessage:
            if tools_to_call_from:
                return super().generate(messages, tools_to_call_from=tools_to_call_from)
            return ChatMessage(MessageRole.ASSISTANT, '{"stock": 0, "price": 0, "order": 0, "final_answer": 1}')

    model = Talkative()
    elicitor = Verbalised(chat(model))
    assert runs(AgentMarkModel(model, decider(tmp_path / "run.jsonl", elicitor)), 1)[0][0] == "item 0"
    assert len(model.seen) == 1
    assert records(tmp_path / "run.jsonl")[0].meta == {"elicitor": "verbalised", "model": "scripted"}


def test_the_page_runs(tmp_path: Path) -> None:
    assert "Attributed" in run_page("smolagents", tmp_path)
