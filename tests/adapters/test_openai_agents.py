"""The adapter for the OpenAI Agents SDK, with the SDK's own scripted model."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import (
    Agent,
    ModelProvider,
    ModelSettings,
    RunConfig,
    Runner,
    ShellTool,
    WebSearchTool,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from harness import PAYLOAD, SPREAD, Shop, arguments, decider, records, run_page, verdict
from pydantic import BaseModel

from agentmark.adapters.openai_agents import AgentMarkModel, AgentMarkProvider, chat
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.situation import ANSWER
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import ScriptedElicitor

set_tracing_disabled(True)

ALL = ["search", "add", "price"]
FIRST_SEARCH_THEN_ANSWER = [
    {"search": 1, "add": 0, "price": 0, ANSWER: 0},
    {"search": 0, "add": 0, "price": 0, ANSWER: 1},
]


class Receipt(BaseModel):
    euros: int


def offered(call: Any) -> list[str]:
    return [tool.name for tool in call.tools] + [handoff.tool_name for handoff in call.handoffs]


def fake(script: list[str] | None = None, *, says: str = "Done.") -> ScriptedModel:
    """Calls the tool it is left with, and answers otherwise. A script goes before that."""
    left = list(script or [])

    def respond(call: Any) -> Any:
        only = offered(call)[0] if call.model_settings.tool_choice == "required" and len(offered(call)) == 1 else ANSWER
        name = left.pop(0) if left else only
        turn = len(call.input)
        if name == ANSWER:
            return [assistant_message(says)]
        return [function_call(name, arguments(name, turn), call_id=f"call-{turn}")]

    return ScriptedModel([ModelStep.respond(respond)] * 200)


def shopper(model: Any, shop: Shop, **settings: Any) -> Agent[None]:
    tools = [function_tool(tool) for tool in shop.tools]
    return Agent(name="shopper", instructions="Buy tea.", model=model, tools=tools, **settings)


def run(agent: Agent[None], task: str = "Go", *, stream: bool = False, **config: Any) -> tuple[Any, list[Any]]:
    """The run's result, and its raw events if it streams."""

    async def go() -> tuple[Any, list[Any]]:
        if not stream:
            return await Runner.run(agent, task, max_turns=200, run_config=RunConfig(**config)), []
        result = Runner.run_streamed(agent, task, max_turns=200, run_config=RunConfig(**config))
        events = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
        return result, [event.model_dump(exclude={"response": {"created_at"}}) for event in events]

    return asyncio.run(go())


def conversation(model: ScriptedModel) -> list[Any]:
    return [(call.system_instructions, call.input, call.output_schema) for call in model.calls]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_marked_agent_is_attributed_and_runs_as_the_unmarked_one_does(tmp_path: Path, stream: bool) -> None:
    log, model, shop = tmp_path / "run.jsonl", fake(), Shop()
    marked = shopper(AgentMarkModel(model, decider(log, ScriptedElicitor(SPREAD))), shop)
    ends = [run(marked, f"Task {i}", stream=stream) for i in range(6)]
    found = verdict(log)
    assert found.accepted
    assert found.payload == PAYLOAD
    assert found.contradicting == 0

    # The same choices, made by the model itself among all its tools: the same conversation, results and events.
    bare, other_shop = fake([record.behavior for record in records(log)]), Shop()
    unmarked = shopper(bare, other_shop)
    for i, (end, events) in enumerate(ends):
        result, raw = run(unmarked, f"Task {i}", stream=stream)
        assert result.final_output == end.final_output == "Done."
        assert result.to_input_list() == end.to_input_list()
        assert raw == events
    assert conversation(bare) == conversation(model)
    assert other_shop.cart == shop.cart
    assert all(offered(call) == ALL for call in bare.calls)
    assert {(tuple(offered(call)), call.model_settings.tool_choice) for call in model.calls} == {
        (("search",), "required"), (("add",), "required"), (("price",), "required"), (tuple(ALL), "none"),
    }  # fmt: skip


def test_what_the_elicitor_is_asked(tmp_path: Path) -> None:
    elicitor = ScriptedElicitor(FIRST_SEARCH_THEN_ANSWER)
    run(shopper(AgentMarkModel(fake(), decider(tmp_path / "log", elicitor)), Shop()))
    first, second = elicitor.situations
    assert first.names == [*ALL, ANSWER]
    assert first.candidates[0].description == "Search the catalogue."
    assert first.candidates[0].schema["properties"]["query"]["type"] == "string"
    assert first.messages == ({"role": "system", "content": "Buy tea."}, {"role": "user", "content": "Go"})
    assert second.messages[2:] == (
        {"role": "assistant", "content": "", "tool_calls": [{"name": "search", "arguments": '{"query":"tea 1"}'}]},
        {"role": "tool", "content": "tea 1: item 1"},
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_disobedient_model_costs_evidence_and_nothing_else(tmp_path: Path, stream: bool) -> None:
    log, shop = tmp_path / "run.jsonl", Shop()
    model = AgentMarkModel(fake(["search"] * 40 + [ANSWER]), decider(log, ScriptedElicitor(SPREAD)))
    run(shopper(model, shop), stream=stream)
    assert shop.searches == 40
    first = {record.step_index: record for record in records(log) if record.enforced is None}
    again = {record.step_index: record for record in records(log) if record.enforced is False}
    assert set(again) == {i for i, record in first.items() if record.behavior != ("search" if i < 40 else ANSWER)}
    assert {record.meta["did"] for record in again.values()} <= {"search", ANSWER}
    assert verdict(log).counts == {"not enforced": 2 * len(again), "used": 41 - len(again)}


def test_a_handoff_is_a_candidate_and_the_next_agent_is_marked_too(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    elicitor = ScriptedElicitor(
        [{"transfer_to_shopper": 1, "transfer_to_clerk": 0, ANSWER: 0}, FIRST_SEARCH_THEN_ANSWER[1]]
    )
    hand_off = ModelStep.respond(lambda call: [function_call(offered(call)[0], "{}", call_id="a")])
    model = ScriptedModel([hand_off, [assistant_message('{"euros": 7}')]])
    marked = AgentMarkModel(model, decider(log, elicitor))
    expert = shopper(marked, Shop(), output_type=Receipt)
    desk = Agent(name="desk", instructions="Ask an expert.", model=marked, handoffs=[Agent(name="clerk"), expert])
    result, _ = run(desk)
    assert result.final_output == Receipt(euros=7)
    assert result.last_agent is expert
    assert [(record.behavior, record.enforced) for record in records(log)] == [
        ("transfer_to_shopper", None), (ANSWER, None),
    ]  # fmt: skip
    assert elicitor.situations[0].names == ["transfer_to_clerk", "transfer_to_shopper", ANSWER]
    assert elicitor.situations[1].names == [*ALL, ANSWER]
    handed, answered = model.calls
    assert (offered(handed), handed.model_settings.tool_choice) == (["transfer_to_shopper"], "required")
    assert answered.output_schema.name() == "Receipt"


def test_tools_of_the_provider_stay_with_the_answer(tmp_path: Path) -> None:
    model, elicitor = fake(), ScriptedElicitor(FIRST_SEARCH_THEN_ANSWER)
    agent = shopper(AgentMarkModel(model, decider(tmp_path / "log", elicitor)), Shop())
    agent.tools.append(WebSearchTool())
    run(agent)
    assert elicitor.situations[0].names == [*ALL, ANSWER]
    assert [(offered(call), call.model_settings.tool_choice) for call in model.calls] == [
        (["search"], "required"), (["web_search"], None),
    ]  # fmt: skip


def test_a_shell_is_the_agents_own_unless_it_runs_in_a_container_of_the_providers(tmp_path: Path) -> None:
    here = ShellTool(executor=lambda request: "done")
    there = ShellTool(environment={"type": "container_auto"})
    for shell, names in ((here, [*ALL, "shell", ANSWER]), (there, [*ALL, ANSWER])):
        elicitor = ScriptedElicitor([{**dict.fromkeys([*ALL, "shell"], 0), ANSWER: 1}])
        model = fake()
        agent = shopper(AgentMarkModel(model, decider(tmp_path / "log", elicitor)), Shop())
        agent.tools.append(shell)
        run(agent)
        assert elicitor.situations[0].names == names
        assert shell in model.calls[0].tools
        assert model.calls[0].model_settings.tool_choice == ("none" if shell is here else None)


@pytest.mark.parametrize(("choice", "candidates"), [("search", None), ("none", None), ("required", ALL)])
def test_what_the_user_has_decided_stays_decided(tmp_path: Path, choice: str, candidates: list[str] | None) -> None:
    elicitor, model = ScriptedElicitor({name: int(name == "search") for name in SPREAD}), fake(["search", ANSWER])
    settings = ModelSettings(tool_choice=choice, parallel_tool_calls=False)
    agent = shopper(AgentMarkModel(model, decider(tmp_path / "log", elicitor)), Shop(), model_settings=settings)
    run(agent)
    assert elicitor.situations[0].names == (candidates or [*ALL, ANSWER])
    # The SDK lifts the choice once a tool was called; only the first call is the user's.
    assert len(elicitor.situations) == (2 if candidates else 1)
    assert all(call.model_settings.parallel_tool_calls is False for call in model.calls)
    if candidates is None:
        assert (offered(model.calls[0]), model.calls[0].model_settings.tool_choice) == (ALL, choice)


def test_without_a_list_the_agent_decides_for_itself(tmp_path: Path) -> None:
    log, model = tmp_path / "run.jsonl", fake(["price", ANSWER])
    run(shopper(AgentMarkModel(model, decider(log, ScriptedElicitor(["no list today", "nor now"]))), Shop()))
    assert [(offered(call), call.model_settings.tool_choice) for call in model.calls] == [(ALL, None)] * 2
    assert [(r.behavior, r.marked, r.reason) for r in records(log)] == [
        ("price", False, "elicitation failed: no list today"), (ANSWER, False, "elicitation failed: nor now"),
    ]  # fmt: skip
    closed = decider(log, ScriptedElicitor(["no list"]), session="closed", fail="closed")
    with pytest.raises(ElicitationError, match="no list"):
        run(shopper(AgentMarkModel(fake(), closed), Shop()))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_call_that_fails_is_not_in_the_evidence(tmp_path: Path, stream: bool) -> None:
    log, down = tmp_path / "run.jsonl", ScriptedModel([ModelStep.raise_error(ConnectionError("down"))])
    with pytest.raises(ConnectionError):
        run(shopper(AgentMarkModel(down, decider(log, ScriptedElicitor(SPREAD))), Shop()), stream=stream)
    assert [record.enforced for record in records(log)] == [None, False]


def test_a_stream_whose_last_event_holds_nothing(tmp_path: Path) -> None:
    """Some providers send each item, and end without repeating them."""
    log, inner = tmp_path / "run.jsonl", fake()

    class Terse(ScriptedModel):
        async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            async for event in inner.stream_response(*args, **kwargs):
                if event.type == "response.completed":
                    event.response.output = []
                yield event

    model = AgentMarkModel(Terse(), decider(log, ScriptedElicitor(FIRST_SEARCH_THEN_ANSWER)))
    run(shopper(model, Shop()), stream=True)
    assert [(record.behavior, record.enforced) for record in records(log)] == [("search", None), (ANSWER, None)]


class Named(ModelProvider):
    """A provider whose every name is one model."""

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model

    def get_model(self, model_name: str | None) -> ScriptedModel:
        return self.model


def test_models_that_agents_name_keep_the_settings_of_their_name(tmp_path: Path) -> None:
    log, model, bare = tmp_path / "run.jsonl", fake(), fake(["search", ANSWER])
    marked = AgentMarkProvider(decider(log, ScriptedElicitor(FIRST_SEARCH_THEN_ANSWER)), Named(model))
    run(shopper("gpt-5", Shop()), model_provider=marked)
    run(shopper("gpt-5", Shop()), model_provider=Named(bare))
    assert [record.behavior for record in records(log)] == ["search", ANSWER]
    assert bare.calls[0].model_settings.reasoning is not None
    for one, other in zip(model.calls, bare.calls, strict=True):
        one.model_settings.tool_choice = None
        assert one.model_settings == other.model_settings


def test_the_agents_own_model_is_asked_aside(tmp_path: Path) -> None:
    log, model = tmp_path / "run.jsonl", fake()
    side = fake(says=json.dumps({**dict.fromkeys(ALL, 0), ANSWER: 1}))
    result, _ = run(shopper(AgentMarkModel(model, decider(log, Verbalised(chat(side)))), Shop()))
    assert result.final_output == "Done."
    assert len(side.calls) == 1
    assert side.calls[0].tools == []
    assert len(model.calls) == 1
    (record,) = records(log)
    assert (record.behavior, record.meta["elicitor"], record.meta["model"]) == (ANSWER, "verbalised", "ScriptedModel")


def test_the_page_runs_as_pasted(tmp_path: Path) -> None:
    assert "Attributed to payload 0x2a" in run_page("openai-agents", tmp_path)
