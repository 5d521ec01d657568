"""The Pydantic AI adapter, with the framework's own function model, and with its real clients over HTTP."""

import asyncio
import gc
import json
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from harness import PAYLOAD, SPREAD, Shop, arguments, decider, records, verdict
from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessage, ModelResponse, RunContext, TextPart, ToolCallPart
from pydantic_ai.capabilities import AbstractCapability, NativeTool
from pydantic_ai.concurrency import ConcurrencyLimit
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.messages import ModelMessagesTypeAdapter, PartDeltaEvent, PartStartEvent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.concurrency import ConcurrencyLimitedModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ToolOrOutput
from pydantic_ai.usage import RequestUsage, UsageLimits
from refusals import check, each_case, family

from agentmark.adapters.pydantic_ai import AgentMarkCapability, chat
from agentmark.decide.decider import Decider
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.proposals import Proposals
from agentmark.elicit.situation import ANSWER, Situation
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import Errand, RefusingProvider, ScriptedElicitor

# Clients that a failed run leaves behind are closed when they are collected.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Clients of frameworks are closed by the collector: here, where warnings of it are ignored."""
    yield
    gc.collect()


ALL = ["search", "add", "price"]
LONG_RUNS = UsageLimits(request_limit=None)


class Receipt(BaseModel):
    """What was bought."""

    euros: int


class Fake:
    """A model that calls the tool it is told to call, by its choice or by the last message, and any of them or the
    answer if it is told nothing. A script goes before that."""

    def __init__(self, script: list[str] | None = None, *, says: str = "Done.", **profile: Any) -> None:
        self.script = list(script or [])
        self.says = says
        self.chance = random.Random(1)
        self.seen: list[Any] = []
        self.offers: list[Any] = []
        self.model = FunctionModel(self.respond, stream_function=self.stream, profile=ModelProfile(**profile))

    def decide(self, messages: list[ModelMessage], info: AgentInfo) -> str:
        offered = [tool.name for tool in (*info.function_tools, *info.output_tools)]
        choice = (info.model_settings or {}).get("tool_choice")
        told = str(getattr(messages[-1].parts[-1], "content", ""))
        self.seen.append((info.instructions, plain(messages)))
        self.offers.append((offered, choice))
        if self.script:
            return self.script.pop(0)
        if choice == "none" or told == "Answer now, without calling a tool.":
            return ANSWER
        if told.startswith("Call ") and told.endswith(" now."):
            return told.removeprefix("Call ").removesuffix(" now.")
        allowed = choice if isinstance(choice, list) else [*offered, *([ANSWER] if info.allow_text_output else [])]
        return self.chance.choice(allowed)

    def respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        name = self.decide(messages, info)
        if name == ANSWER:
            return ModelResponse(parts=[TextPart(self.says)], usage=RequestUsage(input_tokens=100, output_tokens=10))
        args = {"euros": 7} if name == "final_result" else arguments(name, len(messages))
        call = ToolCallPart(name, args, tool_call_id=f"call-{len(messages)}")
        return ModelResponse(parts=[call], usage=RequestUsage(input_tokens=100, output_tokens=10))

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        (part,) = self.respond(messages, info).parts
        if isinstance(part, TextPart):
            for letter in part.content:
                yield letter
        else:
            yield {0: DeltaToolCall(part.tool_name, json.dumps(part.args), tool_call_id=part.tool_call_id)}


def plain(messages: list[ModelMessage]) -> Any:
    """Messages without their times and run ids."""
    volatile = {"timestamp", "run_id", "usage", "conversation_id", "provider_details"}

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: strip(member) for name, member in value.items() if name not in volatile}
        return [strip(member) for member in value] if isinstance(value, list) else value

    return strip(ModelMessagesTypeAdapter.dump_python(messages, mode="json"))


def shopper(fake: Fake, shop: Shop, **settings: Any) -> Agent[None, Any]:
    return Agent(fake.model, tools=shop.tools, instructions="Buy tea.", **settings)


def in_turn(*names: str) -> ScriptedElicitor:
    """An elicitor that is certain, each time of the next of these."""
    left = iter(names)

    def certain(situation: Situation) -> dict[str, int]:
        name = next(left)
        return {known: int(known == name) for known in situation.names}

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


each_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


# --- samples -------------------------------------------------------------------------------------------------------


@each_way
def test_a_marked_agent_is_attributed_and_is_handed_samples_of_its_own_model(tmp_path: Path, stream: bool) -> None:
    log, fake, shop = tmp_path / "run.jsonl", Fake(), Shop()
    marked = shopper(fake, shop, capabilities=[AgentMarkCapability(decider(log))])
    ends = [run(marked, f"Task {i}", stream=stream) for i in range(30)]
    found = verdict(log)
    assert found.accepted
    assert found.payload == PAYLOAD
    assert found.contradicting == 0
    assert all(offer == (ALL, None) for offer in fake.offers)

    # The same replies by the model alone: the same conversation, and the same results.
    bare, other_shop = Fake([record.behavior for record in records(log)]), Shop()
    unmarked = shopper(bare, other_shop)
    for i, (output, messages) in enumerate(ends):
        other_output, other_messages = run(unmarked, f"Task {i}", stream=stream)
        assert output == other_output == "Done."
        assert plain(messages) == plain(other_messages)
    assert [asked for asked in bare.seen for _ in range(4)] == fake.seen
    assert bare.offers * 4 == fake.offers
    assert other_shop.cart == shop.cart


def test_usage_is_that_of_the_whole_turn_and_no_request_is_counted_twice(tmp_path: Path) -> None:
    fake = Fake(["search"] * 4 + [ANSWER] * 4)
    agent = shopper(fake, Shop(), capabilities=[AgentMarkCapability(decider(tmp_path / "log"))])
    result = asyncio.run(agent.run("Go", usage_limits=UsageLimits(request_limit=2)))
    assert (result.usage.requests, result.usage.input_tokens, result.usage.output_tokens) == (2, 800, 80)
    # A reply's own count tells how long the context is, and stays.
    assert [said.usage.input_tokens for said in result.all_messages() if said.kind == "response"] == [100, 100]


def test_hooks_run_once_for_a_turn_and_see_the_reply_alone(tmp_path: Path) -> None:
    seen: list[str] = []

    class Watch(AbstractCapability[Any]):
        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            seen.append("before")
            return request_context

        async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
            seen.append("after")
            return response

    fake = Fake(["search"] * 4 + [ANSWER] * 4)
    run(shopper(fake, Shop(), capabilities=[Watch(), AgentMarkCapability(decider(tmp_path / "log"))]))
    assert seen == ["before", "after"] * 2
    assert len(fake.seen) == 8


def test_a_reply_that_makes_one_call_at_most_is_passed_on_as_soon_as_it_begins(tmp_path: Path) -> None:
    """Its arguments are streamed after the choice; the other samples are let go."""
    written: list[str] = []

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        if len(messages) > 1:
            yield "Done."
            return
        yield {0: DeltaToolCall("search", "{", tool_call_id="c")}
        for letter in '"query": "tea"}':
            await asyncio.sleep(0)
            written.append(letter)
            yield {0: DeltaToolCall(json_args=letter)}

    async def go(settings: Any) -> list[int]:
        agent = Agent(
            FunctionModel(stream_function=stream),
            tools=Shop().tools,
            model_settings=settings,
            capabilities=[AgentMarkCapability(decider(tmp_path / "log"))],
        )
        async with agent.run_stream_events("Go") as events:
            parts = PartStartEvent | PartDeltaEvent
            return [len(written) async for event in events if isinstance(event, parts)]

    live = asyncio.run(go({"parallel_tool_calls": False}))
    assert live[0] == 0
    assert len(written) < 2 * 15
    written.clear()
    whole = asyncio.run(go({}))
    assert whole[0] == len(written) == 4 * 15


def test_a_model_that_limits_its_callers_serves_samples_too(tmp_path: Path) -> None:
    """Its limiter goes by the task that came in: whoever opens a stream must close it."""
    limited = ConcurrencyLimitedModel(Fake().model, limiter=ConcurrencyLimit(max_running=2))
    agent = Agent(limited, tools=Shop().tools, capabilities=[AgentMarkCapability(decider(tmp_path / "log"))])
    for stream in (False, True):
        assert run(agent, stream=stream)[0] == "Done."


@pytest.mark.parametrize(
    ("settings", "capabilities", "reason"),
    [
        ({"temperature": 0}, [], "not sampled: at temperature 0 every sample would be the same"),
        ({}, [NativeTool(WebSearchTool())], "not sampled: tools that run at the provider would run once for each"),
    ],
    ids=["temperature 0", "hosted tools"],
)
def test_what_cannot_be_sampled_is_left_to_the_agent_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: Any, capabilities: list[Any], reason: str
) -> None:
    log, fake = tmp_path / "run.jsonl", Fake(["search", ANSWER])
    own = AgentMarkCapability(decider(log))
    run(shopper(fake, Shop(), model_settings=settings, capabilities=[own, *capabilities]))
    assert len(fake.seen) == 2
    assert [(record.behavior, record.marked) for record in records(log)] == [("search", False), (ANSWER, False)]
    assert str(records(log)[0].reason).startswith(reason)
    assert "a step goes unmarked" in caplog.text


# --- runs ----------------------------------------------------------------------------------------------------------


def test_each_run_has_a_session_and_says_who_acts_for_whom(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    capability = AgentMarkCapability(decider(log), on_behalf_of=lambda run: run.deps)
    agent = Agent(Fake().model, tools=Shop().tools, name="shopper", deps_type=str, capabilities=[capability])

    async def all_at_once() -> list[Any]:
        runs = [agent.run("Go", deps=f"tenant {i}", usage_limits=LONG_RUNS) for i in range(30)]
        return await asyncio.gather(*runs)

    results = asyncio.run(all_at_once())
    written = records(log)
    assert len({record.session for record in written}) == 30
    assert {record.meta["run_id"] for record in written} == {result.run_id for result in results}
    assert len({(record.meta["run_id"], record.session, record.meta["on_behalf_of"]) for record in written}) == 30
    assert {record.meta["performed_by"] for record in written} == {"shopper"}
    assert verdict(log).payload == PAYLOAD


def test_an_edit_of_what_the_model_called_is_recorded(tmp_path: Path) -> None:
    """As a reviewer makes it who changes a reply before it is acted upon."""

    class Reviewer(AbstractCapability[Any]):
        async def after_model_request(self, ctx: RunContext[Any], *, request_context: Any, response: Any) -> Any:
            if ctx.run_step > 1:
                return response
            return ModelResponse([ToolCallPart("price", {}, tool_call_id="call-1")], usage=response.usage)

    log, shop = tmp_path / "run.jsonl", Shop()
    by = decider(log)
    run(shopper(Fake(["search"] * 4 + [ANSWER] * 4), shop, capabilities=[AgentMarkCapability(by), Reviewer()]))
    first, edited, last = records(log)
    assert (first.behavior, edited.behavior, last.behavior) == ("search", "search", ANSWER)
    assert (edited.enforced, edited.meta["did"], edited.meta["edited"]) == (False, "price", True)
    assert by.stats.edited == 1


class Again(AbstractCapability[Any]):
    """Tries a request again that failed."""

    async def on_model_request_error(self, ctx: Any, *, request_context: Any, error: Exception) -> Any:
        raise RetryModelRequest(request_context.model) from error


def test_a_retry_repeats_what_was_decided(tmp_path: Path) -> None:
    fake, failures = Fake(), [ConnectionError("down"), ConnectionError("down")]

    def shaky(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        response = fake.respond(messages, info)
        if failures:
            raise failures.pop()
        return response

    log, elicitor = tmp_path / "run.jsonl", in_turn("add", ANSWER)
    capabilities = [AgentMarkCapability(decider(log, elicitor)), Again()]
    run(Agent(FunctionModel(shaky), tools=Shop().tools, capabilities=capabilities))
    assert [choice for _, choice in fake.offers] == [["add"]] * 3 + ["none"]
    assert [(record.behavior, record.enforced) for record in records(log)] == [("add", None), (ANSWER, None)]
    assert len(elicitor.situations) == 2


# --- stated lists --------------------------------------------------------------------------------------------------


@each_way
def test_with_a_stated_list_the_agent_does_what_was_chosen(tmp_path: Path, stream: bool) -> None:
    log, fake, shop = tmp_path / "run.jsonl", Fake(), Shop()
    marked = shopper(fake, shop, capabilities=[AgentMarkCapability(decider(log, ScriptedElicitor(SPREAD)))])
    ends = [run(marked, f"Task {i}", stream=stream) for i in range(6)]
    found = verdict(log)
    assert found.accepted
    assert found.payload == PAYLOAD
    assert found.contradicting == 0

    bare, other_shop = Fake([record.behavior for record in records(log)]), Shop()
    unmarked = shopper(bare, other_shop)
    for i, (output, messages) in enumerate(ends):
        other_output, other_messages = run(unmarked, f"Task {i}", stream=stream)
        assert output == other_output == "Done."
        assert plain(messages) == plain(other_messages)
    assert bare.seen == fake.seen
    assert other_shop.cart == shop.cart
    assert {(tuple(offered), str(choice)) for offered, choice in fake.offers} == {
        (tuple(ALL), choice) for choice in ("['search']", "['add']", "['price']", "none")
    }


def test_a_forced_stream_is_live_and_one_that_is_left_is_taken_out_of_the_evidence(tmp_path: Path) -> None:
    log, fake = tmp_path / "run.jsonl", Fake(says="A long answer.")
    agent = shopper(fake, Shop(), capabilities=[AgentMarkCapability(decider(log, in_turn(ANSWER)))])

    async def leave_early() -> str:
        async with agent.run_stream("Go") as streamed:
            async for text in streamed.stream_text(delta=True, debounce_by=None):
                await streamed.cancel()
                return text
        return ""

    assert asyncio.run(leave_early()) == "A"
    assert [(record.behavior, record.enforced) for record in records(log)] == [(ANSWER, None), (ANSWER, False)]


def test_what_the_elicitor_is_asked(tmp_path: Path) -> None:
    elicitor = in_turn("search", ANSWER)
    run(shopper(Fake(), Shop(), capabilities=[AgentMarkCapability(decider(tmp_path / "log", elicitor))]))
    first, second = elicitor.situations
    assert first.names == [*ALL, ANSWER]
    assert first.candidates[0].description == "Search the catalogue."
    assert first.candidates[0].schema["properties"]["query"]["type"] == "string"
    assert first.messages == ({"role": "system", "content": "Buy tea."}, {"role": "user", "content": "Go"})
    assert second.messages[2:] == (
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call-1", "name": "search", "arguments": {"query": "tea 1"}}],
        },
        {"role": "tool", "content": "tea 1: item 1", "tool_call_id": "call-1"},
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
    assert fake.offers == [([*ALL, "final_result"], ["search"]), ([*ALL, "final_result"], ["final_result"])]
    assert [(record.behavior, record.enforced) for record in records(log)] == [("search", None), ("final_result", None)]
    if ANSWER in candidates:
        text = Fake()
        again = AgentMarkCapability(decider(log, in_turn(ANSWER), session="text"))
        assert run(shopper(text, Shop(), output_type=output_type, capabilities=[again]))[0] == "Done."
        # No choice forbids output tools along with the others: the model is told in words.
        assert text.offers == [([*ALL, "final_result"], None)]
        assert "Answer now, without calling a tool." in str(text.seen)


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
    assert fake.offers == [(ALL, forced), (ALL, "none")]
    assert ("Call add now." in str(fake.seen)) == (forced is None)


def test_a_fallback_model_is_forced_as_any_other(tmp_path: Path) -> None:
    fake, elicitor = Fake(), in_turn("add", "final_result")
    capability = AgentMarkCapability(decider(tmp_path / "log", elicitor))
    agent = Agent(FallbackModel(fake.model), tools=Shop().tools, output_type=Receipt, capabilities=[capability])
    assert run(agent)[0] == Receipt(euros=7)
    assert elicitor.situations[0].names == [*ALL, "final_result"]
    assert fake.offers == [([*ALL, "final_result"], ["add"]), ([*ALL, "final_result"], ["final_result"])]


def test_tools_of_the_provider_stay_on_offer(tmp_path: Path) -> None:
    fake, seen = Fake(), []

    class Watch(AbstractCapability[Any]):
        async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
            seen.append(len(request_context.model_request_parameters.native_tools))
            return request_context

    capabilities = [AgentMarkCapability(decider(tmp_path / "log", in_turn("search", ANSWER))), Watch()]
    run(shopper(fake, Shop(), capabilities=[*capabilities, NativeTool(WebSearchTool())]))
    # "none" would forbid them as well: the model is told to answer in words.
    assert fake.offers == [(ALL, ["search"]), (ALL, None)]
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
    with pytest.raises(ConnectionError), decider(log, ScriptedElicitor(SPREAD)) as by:
        run(Agent(FunctionModel(down), tools=Shop().tools, capabilities=[AgentMarkCapability(by)]))
    assert [record.enforced for record in records(log)] == [None, False]


def test_the_agents_own_model_is_asked_aside(tmp_path: Path) -> None:
    """By the same object, with what the side call costs in the run's usage, and nothing of it in the conversation."""

    class Stating(Fake):
        def respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            if "how likely" not in str(messages[-1]).lower() and "probability" not in str(messages).lower():
                return super().respond(messages, info)
            stated = json.dumps({**dict.fromkeys(ALL, 0), ANSWER: 1})
            return ModelResponse([TextPart(stated)], usage=RequestUsage(input_tokens=1000, output_tokens=5))

    log, fake = tmp_path / "run.jsonl", Stating()
    agent = shopper(fake, Shop(), capabilities=[AgentMarkCapability(decider(log, Verbalised()))])
    result = asyncio.run(agent.run("Go"))
    assert result.output == "Done."
    assert [said.kind for said in result.all_messages()] == ["request", "response"]
    assert (result.usage.requests, result.usage.input_tokens) == (1, 1100)
    (record,) = records(log)
    assert (record.behavior, record.meta["elicitor"]) == (ANSWER, "verbalised")
    assert record.meta["input_tokens"] == 1000

    # Another model may be asked in its place.
    side = Fake(says=json.dumps({**dict.fromkeys(ALL, 0), ANSWER: 1}))
    other = AgentMarkCapability(decider(log, Verbalised(chat(side.model)), session="other"))
    assert run(shopper(Fake(), Shop(), capabilities=[other]))[0] == "Done."
    assert len(side.seen) == 1


# --- real clients --------------------------------------------------------------------------------------------------


def model_at(provider: RefusingProvider, *, responses: bool = False) -> Any:
    """The framework's client for the API that a provider speaks."""
    speaks = family(provider.profile.name)
    if speaks == "anthropic":
        own = AnthropicProvider(api_key="key", base_url=provider.anthropic_url)
        return AnthropicModel("claude-opus-5-5", provider=own)
    if speaks == "gemini":
        return GoogleModel("gemini-3-pro", provider=GoogleProvider(api_key="key", base_url=provider.gemini_url))
    kind = OpenAIResponsesModel if responses else OpenAIChatModel
    return kind("gpt-4.1", provider=OpenAIProvider(api_key="key", base_url=provider.base_url))


def do_errand(provider: RefusingProvider, errand: Errand, decided_by: Decider | None, **options: Any) -> str | None:
    capabilities = [] if decided_by is None else [AgentMarkCapability(decided_by)]
    # The models of this profile are asked by Responses.
    responses = options.pop("responses", provider.profile.name.startswith("gpt-5"))
    agent = Agent(model_at(provider, responses=responses), tools=errand.tools, capabilities=capabilities)
    if not options.pop("stream", False):
        return str(run(agent, errand.task)[0])

    async def watch(context: Any, events: Any) -> None:
        async for _ in events:
            pass

    return asyncio.run(agent.run(errand.task, event_stream_handler=watch, usage_limits=LONG_RUNS)).output


@each_case
def test_no_refusal_breaks_the_agent(profile: str, mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    check("pydantic-ai", profile, mode, do_errand, tmp_path=tmp_path, caplog=caplog)


@pytest.mark.parametrize(
    ("profile", "responses"),
    [("plain", False), ("plain", True), ("claude-preserved-thinking", False), ("gemini-wants-signatures", False)],
)
@pytest.mark.parametrize("elicitor", [Proposals(), Verbalised()], ids=["proposals", "stated"])
def test_streams_of_every_client_are_read_and_passed_on(
    tmp_path: Path, profile: str, responses: bool, elicitor: Any
) -> None:
    log, errand = tmp_path / "run.jsonl", Errand(3)
    with RefusingProvider(profile) as provider, decider(log, elicitor, fallback=Proposals()) as by:
        assert errand.finished(do_errand(provider, errand, by, stream=True, responses=responses))
        assert by.stats.marked == by.stats.steps > 3


def test_a_sample_that_breaks_off_costs_that_sample(tmp_path: Path) -> None:
    errand = Errand(3)
    with RefusingProvider("stream-cut") as provider, decider(tmp_path / "run.jsonl") as by:
        assert errand.finished(do_errand(provider, errand, by, stream=True))
        assert by.stats.marked == by.stats.steps


@pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
def test_forcing_leaves_the_tools_alone_on_the_wire(tmp_path: Path, responses: bool) -> None:
    """By name, and, where that is refused, as the one tool that is allowed."""
    errand, log = Errand(1), tmp_path / "run.jsonl"
    with RefusingProvider("plain") as provider:
        by = decider(log, in_turn("search", "price", ANSWER))
        upstream = (f"{'OpenAIResponsesModel' if responses else 'OpenAIChatModel'} {provider.base_url}/", "gpt-4.1")
        do_errand(provider, errand, by, responses=responses)
        by.refusals.learn(upstream, [by.refusals.rungs(upstream)[0]], "refused")
        by.elicitor = in_turn("price", ANSWER)
        do_errand(provider, errand, by, responses=responses)
        bodies = [asked.body for asked in provider.requests]
    assert all(body["tools"] == bodies[0]["tools"] for body in bodies)
    assert len(bodies[0]["tools"]) == len(errand.tools)
    kinds = [
        choice if isinstance(choice, str) else choice["type"] for choice in [body["tool_choice"] for body in bodies]
    ]
    assert kinds[:4] == ["function", "function", "none", "allowed_tools"]
    # Several calls of the chosen tool are obedience.
    assert {name for name, _ in errand.calls} == {"search", "price"}
    assert (errand.calls[0][0], errand.calls[-1][0]) == ("search", "price")
