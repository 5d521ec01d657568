"""The smolagents adapter, under real agents with real tools and a scripted model of smolagents' own base class."""

import copy
import gc
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

# The list of prices would be fetched from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
pytest.importorskip("smolagents")

from harness import PAYLOAD, decider, records, verdict
from refusals import check, each_case, family
from smolagents import (
    AgentGenerationError,
    CodeAgent,
    LiteLLMModel,
    LogLevel,
    OpenAIServerModel,
    Tool,
    ToolCallingAgent,
    tool,
)
from smolagents.models import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
    Model,
)
from smolagents.monitoring import TokenUsage

from agentmark.adapters.smolagents import AgentMarkModel, chat
from agentmark.decide.decider import Decider
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import Errand, FakeProvider, RefusingProvider, ScriptedElicitor
from agentmark.testing.provider import Refusal

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def _no_connections_left() -> Iterator[None]:
    """smolagents closes none of its clients: they go before somebody counts them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


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
    """Calls the tool that the choice names, else that of a script, else one that it likes. What it says depends on the
    conversation alone. Remembers what it was asked."""

    def __init__(
        self, script: list[str] | None = None, *, as_text: bool = False, obeys: bool = True, **settings: Any
    ) -> None:
        super().__init__(model_id="scripted", **settings)
        self.script = script
        self.as_text = as_text
        self.obeys = obeys
        self.seen: list[list[dict[str, Any]]] = []
        self.offered: list[list[str]] = []
        self.choices: list[Any] = []
        self._rng = Random(3)

    def _call(self, messages: list[Any], options: dict[str, Any]) -> ChatMessageToolCallFunction:
        body = self._prepare_completion_kwargs(messages, **options)
        self.seen.append([{"role": m.role, "content": copy.deepcopy(m.content)} for m in messages])
        self.offered.append([offered["function"]["name"] for offered in body["tools"]])
        self.choices.append(body["tool_choice"])
        name = self._name(body["tool_choice"])
        text = f"item {len([m for m in messages if m.role == MessageRole.TOOL_RESPONSE])}"
        return ChatMessageToolCallFunction({"answer": text} if name == "final_answer" else {"item": text}, name)

    def _name(self, choice: Any) -> str:
        if isinstance(choice, dict) and self.obeys:
            return str(choice["function"]["name"])
        if self.script is not None:
            return self.script[len(self.seen) - 1]
        return self._rng.choices(list(SPREAD), list(SPREAD.values()))[0]

    def generate(self, messages: list[Any], *_: Any, **options: Any) -> ChatMessage:
        call, usage = self._call(messages, options), TokenUsage(100, 10)
        if self.as_text:
            said = f'Action:\n{{"name": "{call.name}", "arguments": {str(call.arguments).replace(chr(39), chr(34))}}}'
            return ChatMessage(MessageRole.ASSISTANT, said, token_usage=usage)
        made = [ChatMessageToolCall(call, id="call", type="function")]
        return ChatMessage(MessageRole.ASSISTANT, "", made, token_usage=usage)


class Streaming(Scripted):
    def generate_stream(self, messages: list[Any], *_: Any, **options: Any) -> Iterator[Any]:
        call = self._call(messages, options)
        arguments = str(call.arguments).replace("'", '"')
        yield ChatMessageStreamDelta(content="Let me see.")
        for text, name in ((arguments[:5], call.name), (arguments[5:], "")):
            part = ChatMessageToolCallFunction(text, name)
            yield ChatMessageStreamDelta(tool_calls=[ChatMessageToolCallStreamDelta(0, "c", "function", part)])
        yield ChatMessageStreamDelta(content="", token_usage=TokenUsage(100, 10))


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


def chosen(log: Path) -> list[str]:
    return [record.behavior for record in records(log) if record.enforced is not False]


# --- samples -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("as_text", "stream"), [(False, False), (True, False), (False, True)], ids=["whole", "in text", "streamed"]
)
def test_a_marked_agent_is_identified_and_does_what_the_unmarked_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_text: bool, stream: bool
) -> None:
    monkeypatch.setattr("smolagents.models.uuid.uuid4", lambda: "the id of a call in text")
    log = tmp_path / "run.jsonl"
    model = Streaming() if stream else Scripted(as_text=as_text)
    marked = runs(AgentMarkModel(model, decider(log)), 16, stream_outputs=stream)
    done = chosen(log)
    assert len(done) == len(records(log)) > 40
    assert verdict(log).payload == PAYLOAD
    # Four times what the agent asks, and nothing else.
    assert model.offered == [list(SPREAD)] * 4 * len(done)
    assert set(model.choices) == {"required"}

    plain = Streaming(done) if stream else Scripted(done, as_text=as_text)
    assert runs(plain, 16, stream_outputs=stream) == marked
    assert plain.seen == model.seen[::4]


@pytest.mark.parametrize("stream", [False, True])
def test_the_agents_own_counts_are_those_of_the_whole_turn(tmp_path: Path, stream: bool) -> None:
    for elicitor, times in ((None, 4), (ScriptedElicitor(SPREAD), 1)):
        model = AgentMarkModel(Streaming(), decider(tmp_path / f"{times}.jsonl", elicitor))
        agent = agent_on(model, stream_outputs=stream)
        result = agent.run("Restock.", return_full_result=True)
        steps = len(agent.memory.steps) - 1
        assert (result.token_usage.input_tokens, result.token_usage.output_tokens) == (
            100 * times * steps,
            10 * times * steps,
        )
        assert agent.monitor.total_input_token_count == 100 * times * steps


def test_a_stream_is_passed_on_when_its_only_call_begins(tmp_path: Path) -> None:
    log, closed = tmp_path / "run.jsonl", []

    class Watched(Streaming):
        def generate_stream(self, messages: list[Any], *args: Any, **options: Any) -> Iterator[Any]:
            options.pop("parallel_tool_calls", None)
            try:
                yield from super().generate_stream(messages, *args, **options)
                closed.append(False)
            except GeneratorExit:
                closed.append(True)
                raise

    model = Watched(["stock"] * 4)
    marked = AgentMarkModel(model, decider(log))
    options = {"tools_to_call_from": [stock, price, order], "parallel_tool_calls": False}
    deltas = list(marked.generate_stream([], **options))
    # Three are let go when theirs begins; the fourth is read to its end.
    assert sorted(closed) == [False, True, True, True]
    assert chosen(log) == ["stock"]
    called = [part.function.arguments for delta in deltas for part in delta.tool_calls or ()]
    assert "".join(called) == '{"item": "item 0"}'


def test_at_temperature_0_nothing_is_sampled_and_the_log_says_so(tmp_path: Path) -> None:
    log, model = tmp_path / "run.jsonl", Scripted(["price"], temperature=0)
    AgentMarkModel(model, decider(log)).generate([], tools_to_call_from=[stock, price])
    assert len(model.seen) == 1
    [record] = records(log)
    assert (record.behavior, record.marked) == ("price", False)
    assert "temperature 0" in str(record.reason)


# --- stated lists --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"tool_choice": "auto"}], ids=["", "own choice"])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_stated_list_is_followed_with_every_tool_on_offer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_text: bool, settings: dict[str, Any]
) -> None:
    monkeypatch.setattr("smolagents.models.uuid.uuid4", lambda: "the id of a call in text")
    log, model = tmp_path / "run.jsonl", Scripted(as_text=as_text, **settings)
    elicitor = ScriptedElicitor(SPREAD)
    marked = runs(AgentMarkModel(model, decider(log, elicitor)), 8)
    done = [record.behavior for record in records(log)]
    assert len(done) > 20
    assert model.offered == [list(SPREAD)] * len(done)
    assert model.choices == [{"type": "function", "function": {"name": name}} for name in done]
    assert model.kwargs == settings
    assert verdict(log).payload == PAYLOAD

    plain = Scripted(done, as_text=as_text, **settings)
    assert runs(plain, 8) == marked
    assert plain.seen == model.seen

    first = elicitor.situations[0]
    assert first.names == list(SPREAD)
    assert first.candidates[0].description == "How many of an item are in stock."
    assert first.candidates[0].schema["required"] == ["item"]
    assert "Restock." in str(first.messages[-1]["content"])


def test_calls_and_results_keep_their_roles(tmp_path: Path) -> None:
    elicitor = ScriptedElicitor(
        [
            {"stock": 1, "price": 0, "order": 0, "final_answer": 0},
            {"stock": 0, "price": 0, "order": 0, "final_answer": 1},
        ]
    )
    agent_on(AgentMarkModel(Scripted(), decider(tmp_path / "run.jsonl", elicitor))).run("Restock.")
    system, task, _, called, result = elicitor.situations[1].messages
    assert (system["role"], task["role"]) == ("system", "user")
    assert called["tool_calls"] == [{"id": "call", "name": "stock", "arguments": {"item": "item 0"}}]
    assert (result["role"], result["tool_call_id"]) == ("tool", "call")
    assert "42" in result["content"]


def test_a_disobedient_model_is_believed_and_its_steps_are_erased(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    script = ["order"] * 30 + ["final_answer"]
    model = AgentMarkModel(Scripted(script, obeys=False), decider(log, ScriptedElicitor(SPREAD)))
    agent = agent_on(model)
    assert agent.run("Restock.") == "item 30"
    assert agent.memory.steps[1].observations == "ordered: item 0"
    erased = [record for record in records(log) if record.enforced is False]
    disobeyed = [did for did, behavior in zip(script, chosen(log), strict=True) if did != behavior]
    assert [record.meta["did"] for record in erased] == disobeyed
    assert len(disobeyed) > 15
    assert not verdict(log).accepted


@pytest.mark.parametrize("script", [None, ["order", "order", "order", "final_answer"]], ids=["obedient", "disobedient"])
def test_streams_pass_through_and_are_judged_at_their_end(tmp_path: Path, script: list[str] | None) -> None:
    log, model = tmp_path / "run.jsonl", Streaming(script, obeys=script is None)
    marked = AgentMarkModel(model, decider(log, ScriptedElicitor(SPREAD)))
    answers = runs(marked, 1, stream_outputs=True)
    done = script or chosen(log)
    erased = [record.step_index for record in records(log) if record.enforced is False]
    assert erased == [step for step, behavior in enumerate(chosen(log)) if behavior != done[step]]
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
    # One that nobody begins to read is not asked for, and decides nothing.
    model.generate_stream([], tools_to_call_from=[stock, price, order])
    assert len(records(log)) == 2


def test_without_a_list_the_model_decides_or_the_run_ends(tmp_path: Path) -> None:
    log, script = tmp_path / "open.jsonl", ["stock", "final_answer"]
    model = Scripted(script)
    answers = runs(AgentMarkModel(model, decider(log, ScriptedElicitor(lambda situation: "no list today"))), 1)
    plain = Scripted(script)
    assert answers == runs(plain, 1)
    assert (model.seen, model.offered, model.choices) == (plain.seen, plain.offered, plain.choices)
    assert [(record.behavior, record.marked) for record in records(log)] == [(name, False) for name in script]
    assert "no list today" in records(log)[0].reason

    closed = decider(tmp_path / "closed.jsonl", ScriptedElicitor(lambda situation: "no list today"), fail="closed")
    with pytest.raises(AgentGenerationError, match="no list today") as caught:
        runs(AgentMarkModel(Scripted(script), closed), 1)
    assert isinstance(caught.value.__cause__, ElicitationError)


# --- what the agent decided, and who it is -------------------------------------------------------------------------


def test_what_leaves_nothing_to_decide_passes_through(tmp_path: Path) -> None:
    """Code agents and plans offer no tools; a tool choice of the user's own stands."""
    log = tmp_path / "run.jsonl"

    class Coder(Model):
        def generate(self, messages: list[Any], **options: Any) -> ChatMessage:
            assert "tools_to_call_from" not in options
            return ChatMessage(MessageRole.ASSISTANT, "<code>\nfinal_answer(price('four'))\n</code>")

    model = AgentMarkModel(Coder(model_id="coder"), decider(log))
    assert CodeAgent(tools=[price], model=model, verbosity_level=LogLevel.OFF).run("Price?") == 1.0
    choice = {"type": "function", "function": {"name": "stock"}}
    forced = Scripted(tool_choice=choice)
    AgentMarkModel(forced, model.decider).generate([], tools_to_call_from=[stock, price])
    assert (forced.offered, forced.choices) == ([["stock", "price"]], [choice])
    assert records(log) == []
    assert model.model_id == "coder"


def test_a_reply_without_a_call_and_a_model_that_fails_are_the_agents_own_troubles(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    class Babbling(Scripted):
        def generate(self, messages: list[Any], *_: Any, **options: Any) -> ChatMessage:
            self.seen.append([])
            if len(self.seen) == 1:
                return ChatMessage(MessageRole.ASSISTANT, "I would rather not.")
            raise OSError("gone")

    own = decider(log, ScriptedElicitor(SPREAD))
    with pytest.raises(AgentGenerationError, match="gone"):
        runs(AgentMarkModel(Babbling(), own), 1)
    own.close()
    assert [record.enforced for record in records(log)] == [None, False, None, False]
    assert [record.meta.get("did") for record in records(log) if record.enforced is False] == ["(other)", None]


def test_thirty_runs_at_once_are_thirty_sessions(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    shared = AgentMarkModel(Scripted(), decider(log), meta={"on_behalf_of": "tenant 7"})
    begun = threading.Barrier(30)

    def run(number: int) -> None:
        begun.wait()
        agent_on(shared, name=f"buyer_{number}", description="Buys.").run("Restock.")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_run: dict[str, list[Any]] = {}
    for record in records(log):
        by_run.setdefault(record.meta["run_id"], []).append(record)
    assert len(by_run) == len({record.session for record in records(log)}) == 30
    for taken in by_run.values():
        assert len({record.session for record in taken}) == len({record.meta["performed_by"] for record in taken}) == 1
        assert sorted([record.step_index for record in taken]) == list(range(len(taken)))
        assert {record.meta["on_behalf_of"] for record in taken} == {"tenant 7"}


def test_an_agent_that_runs_again_begins_another_session(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    agent = agent_on(AgentMarkModel(Scripted(["final_answer"] * 99), decider(log)))
    agent.run("Restock.")
    agent.run("Again.", reset=False)
    agent.run("Anew.")
    assert len({record.session for record in records(log)}) == len(records(log)) == 3
    assert {record.meta["performed_by"] for record in records(log)} == {"ToolCallingAgent"}


def test_a_call_that_somebody_changed_is_out_of_the_evidence(tmp_path: Path) -> None:
    """A step callback is where a person's correction enters an agent's memory."""
    log = tmp_path / "run.jsonl"

    def correct(step: Any, **_: Any) -> None:
        if step.step_number == 1:
            step.tool_calls[0].name = "order"

    script = ["stock"] * 4 + ["final_answer"] * 4
    agent_on(AgentMarkModel(Scripted(script), decider(log)), step_callbacks=[correct]).run("Restock.")
    first, edited, last = records(log)
    assert [record.behavior for record in (first, last)] == ["stock", "final_answer"]
    assert (edited.enforced, edited.meta["did"], edited.meta["edited"]) == (False, "order", True)


# --- real clients --------------------------------------------------------------------------------------------------


def test_smolagents_retries_within_the_decision(tmp_path: Path) -> None:
    """Its models try again by themselves where the rate is limited: the request, and what was decided, are the same."""
    log, bodies = tmp_path / "run.jsonl", []

    def answer(body: dict[str, Any]) -> Any:
        bodies.append(body)
        if len(bodies) == 1:
            return Refusal(429, "too many requests")
        function = {"name": body["tool_choice"]["function"]["name"], "arguments": '{"item": "tea"}'}
        call = {"id": "1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        used = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        kind = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
        return {**kind, "choices": [choice], "usage": used}

    with FakeProvider({"/v1/chat/completions": answer}) as provider:
        model = OpenAIServerModel("m", provider.base_url, "k", client_kwargs={"max_retries": 0})
        model.retryer.wait_seconds = 0.0
        elicitor = ScriptedElicitor(SPREAD)
        AgentMarkModel(model, decider(log, elicitor)).generate(
            [ChatMessage(MessageRole.USER, [{"type": "text", "text": "Restock."}])],
            tools_to_call_from=[stock, price, order],
        )
    assert bodies[0] == bodies[1]
    assert len(elicitor.situations) == 1
    assert [(record.marked, record.enforced) for record in records(log)] == [(True, None)]


def test_the_agents_own_model_is_asked_aside(tmp_path: Path) -> None:
    with RefusingProvider("plain") as provider:
        model = OpenAIServerModel("m", provider.base_url, "the agent's")
        own = decider(tmp_path / "run.jsonl", Verbalised())
        errand = Errand(0)
        said = buyer(AgentMarkModel(model, own), errand).run(errand.task)
        assert errand.finished(said)
        assert {seen.headers["Authorization"] for seen in provider.requests} == {"Bearer the agent's"}
        aside = [seen.body for seen in provider.requests[::2]]
        asked = [seen.body for seen in provider.requests[1::2]]
    assert all(body["tool_choice"] == "none" and "response_format" in body for body in aside)
    assert all(body["tools"] == bare["tools"] for body, bare in zip(aside, asked, strict=True))
    # A side call begins as the agent's own request does.
    for body, bare in zip(aside, asked, strict=True):
        assert body["messages"][: len(bare["messages"]) - 1] == bare["messages"][:-1]
    assert all(record.marked and record.meta["model"] == "m" for record in records(tmp_path / "run.jsonl"))


def test_another_model_can_be_asked_aside(tmp_path: Path) -> None:
    class Talkative(Model):
        def generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatMessage:
            return ChatMessage(MessageRole.ASSISTANT, '{"stock": 0, "price": 0, "order": 0, "final_answer": 1}')

    log, model = tmp_path / "run.jsonl", Scripted()
    elicitor = Verbalised(chat(Talkative(model_id="talkative")))
    assert runs(AgentMarkModel(model, decider(log, elicitor)), 1)[0][0] == "item 0"
    assert len(model.seen) == 1
    assert records(log)[0].meta["model"] == "talkative"


def buyer(model: Any, errand: Errand) -> ToolCallingAgent:
    return ToolCallingAgent(
        tools=[errand_tool(errand, schema) for schema in errand.schemas],
        model=model,
        verbosity_level=LogLevel.OFF,
        max_steps=60,
    )


def errand_tool(errand: Errand, schema: dict[str, Any]) -> Tool:
    """A function of an errand as a tool of smolagents."""
    parameters = schema["parameters"]

    inputs = {name: {"type": "string", "description": name} for name in parameters["properties"]}
    for name in inputs.keys() - set(parameters["required"]):
        inputs[name]["nullable"] = True
    members = {
        "name": schema["name"],
        "description": schema["description"],
        "inputs": inputs,
        "output_type": "string",
        "skip_forward_signature_validation": True,
        "forward": lambda self, **arguments: errand.call(schema["name"], arguments),
    }
    made: Tool = type("ErrandTool", (Tool,), members)()
    return made


def reached(provider: RefusingProvider) -> Any:
    """The provider of a profile by the client that smolagents has for it. Some refuse that a call is required, which
    smolagents asks for unless it is told otherwise."""
    profile, api = provider.profile.name, family(provider.profile.name)
    if api == "anthropic":
        return LiteLLMModel("anthropic/claude-sonnet-4-5", provider.anthropic_url, "k", tool_choice="auto")
    if api == "gemini":
        return LiteLLMModel("gemini/gemini-2.5-flash", provider.gemini_url, "k")
    if profile.startswith("deepseek"):
        return OpenAIServerModel("deepseek-chat", provider.base_url, "k", tool_choice="auto")
    return OpenAIServerModel("gpt-4o", provider.base_url, "k")


def do(provider: RefusingProvider, errand: Errand, marked: Decider | None) -> str | None:
    model = reached(provider)
    model.retryer.wait_seconds = 0.0
    agent = buyer(model if marked is None else AgentMarkModel(model, marked), errand)
    agent.stream_outputs = provider.profile.name == "stream-cut"
    return str(agent.run(errand.task))


@each_case
def test_no_refusal_breaks_the_agent(profile: str, mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    row = check("smolagents", profile, mode, do, tmp_path=tmp_path, caplog=caplog)
    # Where it fails with the mark it fails without: every agent with these keys, and one whose streams break.
    assert row.finished or profile in ("bad-key", "no-such-model", "stream-cut")
