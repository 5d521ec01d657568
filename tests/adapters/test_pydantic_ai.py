"""The Pydantic AI adapter, with the framework's own function model."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from harness import PAYLOAD, SPREAD, Shop, arguments, decider, records, run_page, verdict
from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.capabilities import AbstractCapability, NativeTool
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ToolOrOutput
from pydantic_ai.usage import UsageLimits

from agentmark.adapters.pydantic_ai import AgentMarkCapability, chat
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.situation import ANSWER, Situation
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import ScriptedElicitor

ALL = ["search", "add", "price"]
LONG_RUNS = UsageLimits(request_limit=None)


class Receipt(BaseModel):
    """What was bought."""

    euros: int


class Fake:
    """Calls the tool it is forced or left to call, and answers otherwise. A script goes before that."""

    def __init__(self, script: list[str] | None = None, *, says: str = "Done.", **profile: Any) -> None:
        self.script = list(script or [])
        self.says = says
        self.seen: list[Any] = []
        self.offers: list[Any] = []
        self.model = FunctionModel(self.respond, stream_function=self.stream, profile=ModelProfile(**profile))

    def decide(self, messages: list[ModelMessage], info: AgentInfo) -> str:
        offered = [tool.name for tool in (*info.function_tools, *info.output_tools)]
        forced = (info.model_settings or {}).get("tool_choice")
        self.seen.append((info.instructions, plain(messages)))
        self.offers.append((offered, forced))
        if self.script:
            return self.script.pop(0)
        return forced[0] if isinstance(forced, list) else offered[0] if len(offered) == 1 else ANSWER

    def respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        name = self.decide(messages, info)
        if name == ANSWER:
            return ModelResponse(parts=[TextPart(self.says)])
        args = {"euros": 7} if name == "final_result" else arguments(name, len(messages))
        return ModelResponse(parts=[ToolCallPart(name, args, tool_call_id=f"call-{len(messages)}")])

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        (part,) = self.respond(messages, info).parts
        if isinstance(part, TextPart):
            yield part.content
        else:
            yield {0: DeltaToolCall(part.tool_name, json.dumps(part.args), tool_call_id=part.tool_call_id)}


def plain(messages: list[ModelMessage]) -> Any:
    """Messages without their times and run ids."""
    volatile = {"timestamp", "run_id", "usage", "conversation_id", "provider_details"}

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: strip(one) for name, one in value.items() if name not in volatile}
        return [strip(one) for one in value] if isinstance(value, list) else value

    return strip(ModelMessagesTypeAdapter.dump_python(messages, mode="json"))


def shopper(fake: Fake, shop: Shop, **settings: Any) -> Agent[None, Any]:
    return Agent(fake.model, tools=shop.tools, instructions="Buy tea.", **settings)


def in_turn(*names: str) -> ScriptedElicitor:
    """An elicitor that is certain, each time of the next of these."""
    left = iter(names)

    def certain(situation: Situation) -> dict[str, int]:
        name = next(left)
        return {one: int(one == name) for one in situation.names}

    return ScriptedElicitor(certain)


def run(agent: Agent[None, Any], task: str = "Go", *, stream: bool = False) -> tuple[Any, list[ModelMessage]]:
    """The run's output and its messages."""

    async def go() -> tuple[Any, list[ModelMessage]]:
        if not stream:
            result = await agent.run(task, usage_limits=LONG_RUNS)
            return result.output, result.all_messages()
        async with agent.run_stream(task, usage_limits=LONG_RUNS) as streamed:
            texts = [text async for text in streamed.stream_text(delta=True)]
        return "".join(texts), streamed.all_messages()

    return asyncio.run(go())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_marked_agent_is_attributed_and_runs_as_the_unmarked_one_does(tmp_path: Path, stream: bool) -> None:
    log, fake, shop = tmp_path / "run.jsonl", Fake(), Shop()
    marked = shopper(fake, shop, capabilities=[AgentMarkCapability(decider(log, ScriptedElicitor(SPREAD)))])
    ends = [run(marked, f"Task {i}", stream=stream) for i in range(6)]
    found = verdict(log)
    assert found.accepted
    assert found.payload == PAYLOAD
    assert found.contradicting == 0

    # The same choices, made by the model itself among all its tools: the same conversation, the same results.
    bare, other_shop = Fake([record.behavior for record in records(log)]), Shop()
    unmarked = shopper(bare, other_shop)
    for i, (output, messages) in enumerate(ends):
        other_output, other_messages = run(unmarked, f"Task {i}", stream=stream)
        assert output == other_output == "Done."
        assert plain(messages) == plain(other_messages)
    assert bare.seen == fake.seen
    assert other_shop.cart == shop.cart
    assert all(offered == ALL for offered, _ in bare.offers)
    assert {(tuple(offered), str(forced)) for offered, forced in fake.offers} == {
        (("search",), "['search']"), (("add",), "['add']"), (("price",), "['price']"), (tuple(ALL), "none"),
    }  # fmt: skip


def test_what_the_elicitor_is_asked(tmp_path: Path) -> None:
    elicitor = in_turn("search", ANSWER)
    run(shopper(Fake(), Shop(), capabilities=[AgentMarkCapability(decider(tmp_path / "log", elicitor))]))
    first, second = elicitor.situations
    assert first.names == [*ALL, ANSWER]
    assert first.candidates[0].description == "Search the catalogue."
    assert first.candidates[0].schema["properties"]["query"]["type"] == "string"
    assert first.messages == ({"role": "system", "content": "Buy tea."}, {"role": "user", "content": "Go"})
    assert second.messages[2:] == (
        {"role": "assistant", "content": "", "tool_calls": [{"name": "search", "arguments": {"query": "tea 1"}}]},
        {"role": "tool", "content": "tea 1: item 1"},
    )


def test_a_disobedient_model_costs_evidence_and_nothing_else(tmp_path: Path) -> None:
    log, shop, fake = tmp_path / "run.jsonl", Shop(), Fake(["search"] * 40 + [ANSWER])
    run(shopper(fake, shop, capabilities=[AgentMarkCapability(decider(log, ScriptedElicitor(SPREAD)))]))
    assert shop.searches == 40
    first = {record.step_index: record for record in records(log) if record.enforced is None}
    again = {record.step_index: record for record in records(log) if record.enforced is False}
    assert set(again) == {i for i, record in first.items() if record.behavior != ("search" if i < 40 else ANSWER)}
    assert {record.meta["did"] for record in again.values()} <= {"search", ANSWER}
    assert verdict(log).counts == {"not enforced": 2 * len(again), "used": 41 - len(again)}


@pytest.mark.parametrize(
    ("output_type", "candidates"),
    [(Receipt, [*ALL, "final_result"]), ([Receipt, str], [*ALL, "final_result", ANSWER])],
    ids=["structured", "structured or text"],
)
def test_output_tools_are_candidates(tmp_path: Path, output_type: Any, candidates: list[str]) -> None:
    log, fake, elicitor = tmp_path / "run.jsonl", Fake(), in_turn("search", "final_result")
    capability = AgentMarkCapability(decider(log, elicitor))
    output, _ = run(shopper(fake, Shop(), output_type=output_type, capabilities=[capability]))
    assert output == Receipt(euros=7)
    assert elicitor.situations[0].names == candidates
    assert fake.offers == [(["search"], ["search"]), (["final_result"], ["final_result"])]
    assert [(record.behavior, record.enforced) for record in records(log)] == [("search", None), ("final_result", None)]
    if ANSWER in candidates:
        text = Fake()
        again = AgentMarkCapability(decider(log, in_turn(ANSWER), session="text"))
        assert run(shopper(text, Shop(), output_type=output_type, capabilities=[again]))[0] == "Done."
        assert text.offers == [(ALL, "none")]


def test_structured_output_in_the_models_own_format_is_the_answer(tmp_path: Path) -> None:
    profile = {"supports_json_schema_output": True, "default_structured_output_mode": "native"}
    fake, elicitor = Fake(says='{"euros": 7}', **profile), in_turn("price", ANSWER)
    capability = AgentMarkCapability(decider(tmp_path / "log", elicitor))
    output, _ = run(shopper(fake, Shop(), output_type=Receipt, capabilities=[capability]))
    assert output == Receipt(euros=7)
    assert elicitor.situations[0].names == [*ALL, ANSWER]


@pytest.mark.parametrize(
    ("profile", "settings", "forced"),
    [
        ({"supports_forced_tool_choice": False}, {}, None),
        ({"supports_forced_tool_choice_with_thinking": False, "supports_thinking": True}, {"thinking": "high"}, None),
        ({"supports_forced_tool_choice_with_thinking": False, "supports_thinking": True}, {}, ["add"]),
        ({"forced_tool_choice_disables_thinking": True, "thinking_enabled_by_default": True}, {}, None),
    ],
)
def test_models_are_forced_only_where_it_costs_nothing(
    tmp_path: Path, profile: Any, settings: Any, forced: Any
) -> None:
    fake, capability = Fake(**profile), AgentMarkCapability(decider(tmp_path / "log", in_turn("add", ANSWER)))
    run(shopper(fake, Shop(), capabilities=[capability], model_settings=settings))
    assert fake.offers == [(["add"], forced), (ALL, "none")]


def test_a_fallback_model_is_offered_one_tool_and_not_forced(tmp_path: Path) -> None:
    fake, elicitor = Fake(), in_turn("add", "final_result")
    capability = AgentMarkCapability(decider(tmp_path / "log", elicitor))
    agent = Agent(FallbackModel(fake.model), tools=Shop().tools, output_type=Receipt, capabilities=[capability])
    assert run(agent)[0] == Receipt(euros=7)
    assert elicitor.situations[0].names == [*ALL, "final_result"]
    assert fake.offers == [(["add"], None), (["final_result"], None)]


def test_tools_of_the_provider_stay_with_the_answer(tmp_path: Path) -> None:
    fake, seen = Fake(), []

    class Watch(AbstractCapability[Any]):
        async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
            seen.append(len(request_context.model_request_parameters.native_tools))
            return request_context

    capabilities = [AgentMarkCapability(decider(tmp_path / "log", in_turn("search", ANSWER))), Watch()]
    run(shopper(fake, Shop(), capabilities=[*capabilities, NativeTool(WebSearchTool())]))
    assert fake.offers == [(["search"], ["search"]), ([], None)]
    assert seen == [1, 1]


@pytest.mark.parametrize(
    ("choice", "candidates"),
    [
        (["search"], None),
        ("none", None),
        ("required", ALL),
        (["add", "price"], ["add", "price"]),
        (ToolOrOutput(["add"]), ["add", ANSWER]),
    ],
)
def test_what_the_user_has_decided_stays_decided(tmp_path: Path, choice: Any, candidates: list[str] | None) -> None:
    class Decided(AbstractCapability[Any]):
        def get_model_settings(self) -> Any:
            return lambda ctx: {"tool_choice": choice if ctx.run_step == 1 else "none"}

    fake, elicitor = Fake(["price", ANSWER]), ScriptedElicitor()
    capabilities = [Decided(), AgentMarkCapability(decider(tmp_path / "log", elicitor))]
    run(shopper(fake, Shop(), capabilities=capabilities))
    assert [situation.names for situation in elicitor.situations] == ([candidates] if candidates else [])
    if candidates is None:
        assert fake.offers[0] == (ALL, choice)
        assert records(tmp_path / "log") == []


def test_without_a_list_the_agent_decides_for_itself(tmp_path: Path) -> None:
    log, fake = tmp_path / "run.jsonl", Fake(["price", ANSWER])
    capability = AgentMarkCapability(decider(log, ScriptedElicitor(["no list today", "nor now"])))
    run(shopper(fake, Shop(), capabilities=[capability]))
    assert fake.offers == [(ALL, None)] * 2
    assert [(r.behavior, r.marked, r.reason) for r in records(log)] == [
        ("price", False, "elicitation failed: no list today"), (ANSWER, False, "elicitation failed: nor now"),
    ]  # fmt: skip
    closed = decider(log, ScriptedElicitor(["no list"]), session="closed", fail="closed")
    with pytest.raises(ElicitationError, match="no list"):
        run(shopper(Fake(), Shop(), capabilities=[AgentMarkCapability(closed)]))


def test_a_call_that_fails_is_not_in_the_evidence(tmp_path: Path) -> None:
    def down(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise ConnectionError("down")

    log = tmp_path / "run.jsonl"
    capability = AgentMarkCapability(decider(log, ScriptedElicitor(SPREAD)))
    with pytest.raises(ConnectionError):
        run(Agent(FunctionModel(down), tools=Shop().tools, capabilities=[capability]))
    assert [record.enforced for record in records(log)] == [None, False]


def test_the_agents_own_model_is_asked_aside(tmp_path: Path) -> None:
    log, fake = tmp_path / "run.jsonl", Fake()

    side = Fake(says=json.dumps({**dict.fromkeys(ALL, 0), ANSWER: 1}))
    output, _ = run(
        shopper(fake, Shop(), capabilities=[AgentMarkCapability(decider(log, Verbalised(chat(side.model))))])
    )
    assert output == "Done."
    assert len(side.seen) == 1
    assert len(fake.seen) == 1
    (record,) = records(log)
    assert (record.behavior, record.meta["elicitor"]) == (ANSWER, "verbalised")
    assert record.meta["input_tokens"] > 0


def test_the_page_runs_as_pasted(tmp_path: Path) -> None:
    assert "Attributed to payload 0x2a" in run_page("pydantic-ai", tmp_path)
