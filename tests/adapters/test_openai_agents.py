"""The adapter for the OpenAI Agents SDK: with the SDK's own scripted model, and with its own clients at a provider that
refuses what today's providers refuse."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import (
    Agent,
    ModelProvider,
    ModelRetrySettings,
    ModelSettings,
    ModelTracing,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    ShellTool,
    Usage,
    WebSearchTool,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from harness import PAYLOAD, SPREAD, Shop, arguments, decider, records, verdict
from local_agent import TOOLS, CallingModel, check_with_model, wants_model
from openai import AsyncOpenAI
from pydantic import BaseModel
from refusals import check, each_case, family

from agentmark.adapters.openai_agents import AgentMarkModel, AgentMarkProvider, chat
from agentmark.decide.decider import Decider
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.situation import ANSWER
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import Errand, RefusingProvider, ScriptedElicitor

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


def fake(
    script: list[str] | None = None, *, says: str = "Done.", chance: random.Random | None = None, failures: int = 0
) -> ScriptedModel:
    """Does what its `tool_choice` says, as a provider would; else what its script says, or its chance, or answers."""
    left = list(script or [])

    def respond(call: Any) -> Any:
        choice = call.model_settings.tool_choice
        if left:
            name = left.pop(0)
        elif choice in offered(call):
            name = choice
        elif choice == "none" or chance is None:
            name = ANSWER
        else:
            name = chance.choices(list(SPREAD), SPREAD.values())[0]
        turn = len(call.input)
        if name == ANSWER:
            return [assistant_message(says)]
        return [function_call(name, arguments(name, turn), call_id=f"call-{turn}")]

    down = [ModelStep.raise_error(ConnectionError("down"))] * failures
    usage = Usage(requests=1, input_tokens=10, output_tokens=2, total_tokens=12)
    return ScriptedModel([*down, *[ModelStep.respond(respond)] * 4000], default_usage=usage)


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
    assert all(offered(call) == ALL for call in bare.calls + model.calls)
    assert {call.model_settings.tool_choice for call in model.calls} == {*ALL, "none"}


def test_what_the_elicitor_is_asked(tmp_path: Path) -> None:
    elicitor = ScriptedElicitor(FIRST_SEARCH_THEN_ANSWER)
    run(shopper(AgentMarkModel(fake(), decider(tmp_path / "log", elicitor)), Shop()))
    first, second = elicitor.situations
    assert first.names == [*ALL, ANSWER]
    assert first.candidates[0].description == "Search the catalogue."
    assert first.candidates[0].schema["properties"]["query"]["type"] == "string"
    assert first.messages == ({"role": "system", "content": "Buy tea."}, {"role": "user", "content": "Go"})
    assert second.messages[2:] == (
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call-1", "name": "search", "arguments": '{"query":"tea 1"}'}],
        },
        {"role": "tool", "content": "tea 1: item 1", "tool_call_id": "call-1"},
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
    hand_off = ModelStep.respond(lambda call: [function_call(call.model_settings.tool_choice, "{}", call_id="a")])
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
    assert offered(handed) == ["transfer_to_clerk", "transfer_to_shopper"]
    assert answered.output_schema.name() == "Receipt"


def test_tools_of_the_provider_stay_with_the_answer(tmp_path: Path) -> None:
    model, elicitor = fake(), ScriptedElicitor(FIRST_SEARCH_THEN_ANSWER)
    agent = shopper(AgentMarkModel(model, decider(tmp_path / "log", elicitor)), Shop())
    agent.tools.append(WebSearchTool())
    run(agent)
    assert elicitor.situations[0].names == [*ALL, ANSWER]
    assert [call.model_settings.tool_choice for call in model.calls] == ["search", None]
    assert all(offered(call) == [*ALL, "web_search"] for call in model.calls)
    assert model.calls[1].input[-1] == {"role": "user", "content": "Answer now, without calling a tool."}


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
    weights = [{name: int(name == "search") for name in ALL}, {**dict.fromkeys(ALL, 0), ANSWER: 1}]
    elicitor, model = ScriptedElicitor(weights if candidates else weights[1]), fake(["search", ANSWER])
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
    log, deciding = tmp_path / "run.jsonl", decider(tmp_path / "run.jsonl", ScriptedElicitor(SPREAD))
    with pytest.raises(ConnectionError):
        run(shopper(AgentMarkModel(fake(failures=1), deciding), Shop()), stream=stream)
    deciding.close()
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


@pytest.mark.parametrize("own", [True, False], ids=["the agent's own", "another"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_model_is_asked_aside(tmp_path: Path, own: bool, stream: bool) -> None:
    log, says = tmp_path / "run.jsonl", json.dumps({**dict.fromkeys(ALL, 0), ANSWER: 1})
    model = fake(says=says if own else "Done.")
    side = model if own else fake(says=says)
    elicitor = Verbalised() if own else Verbalised(chat(side))
    result, _ = run(shopper(AgentMarkModel(model, decider(log, elicitor)), Shop()), stream=stream)
    assert result.final_output == (says if own else "Done.")
    assert len(side.calls) == (2 if own else 1)
    aside = side.calls[0]
    assert (offered(aside), aside.model_settings.tool_choice) == (ALL, "none")
    assert aside.output_schema.json_schema()["type"] == "object"
    # What was asked aside of the agent's own model is in the SDK's count.
    assert result.context_wrapper.usage.input_tokens == (20 if own else 10)
    (record,) = records(log)
    assert (record.behavior, record.meta["elicitor"], record.meta["model"]) == (ANSWER, "verbalised", "ScriptedModel")


# --- no refusal breaks it --------------------------------------------------------------------------------------------

# These are asked by Responses, the others by chat completions.
BY_RESPONSES = ("plain", "gpt-5-logprobs-403", "azure-logprobs-422", "no-json-schema", "rate-limited", "stream-cut")


def do_errand(provider: RefusingProvider, errand: Errand, marked_by: Decider | None) -> str:
    profile = provider.profile.name

    async def go() -> str:
        async with AsyncOpenAI(base_url=provider.base_url, api_key="k") as client:
            kind = OpenAIResponsesModel if profile in BY_RESPONSES else OpenAIChatCompletionsModel
            name = "claude-opus-5-5" if family(profile) == "anthropic" else "gpt-4o"
            model: Any = kind(name, openai_client=client)
            if marked_by is not None:
                model = AgentMarkModel(model, marked_by)
            agent = Agent(name="shopper", model=model, tools=[function_tool(tool) for tool in errand.tools])
            if profile != "stream-cut":
                return str((await Runner.run(agent, errand.task, max_turns=60)).final_output)
            result = Runner.run_streamed(agent, errand.task, max_turns=60)
            async for _ in result.stream_events():
                pass
            return str(result.final_output)

    return asyncio.run(go())


@each_case
def test_no_refusal_breaks_the_agent(profile: str, mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # The client for chat completions sends no reasoning back, as this provider wants it.
    hopeless = ["deepseek-wants-reasoning"]
    check("openai-agents", profile, mode, do_errand, tmp_path=tmp_path, caplog=caplog, hopeless=hopeless)


# --- proposals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_by_default_the_models_own_replies_carry_the_mark(tmp_path: Path, stream: bool) -> None:
    log, model = tmp_path / "run.jsonl", fake(chance=random.Random(5))
    marked = shopper(AgentMarkModel(model, decider(log)), Shop())
    ends = [run(marked, f"Task {i}", stream=stream) for i in range(8)]
    found = verdict(log)
    assert found.accepted
    assert found.payload == PAYLOAD
    # The request is the agent's own, four times at each step; the agent sees one reply.
    assert {(tuple(offered(call)), call.model_settings.tool_choice) for call in model.calls} == {(tuple(ALL), None)}
    assert len(model.calls) == 4 * len(records(log))
    for result, events in ends:
        turns = len(result.raw_responses)
        assert not stream or [event["type"] for event in events].count("response.completed") == turns
        # The SDK's count has every sample.
        assert result.context_wrapper.usage.input_tokens == 40 * turns
        if not stream:
            assert len(result.context_wrapper.usage.request_usage_entries) == 4 * turns


def test_tools_of_the_provider_and_kept_conversations_are_not_sampled_unasked(tmp_path: Path) -> None:
    log, model = tmp_path / "run.jsonl", fake()
    agent = shopper(AgentMarkModel(model, decider(log)), Shop())

    async def kept() -> None:
        await Runner.run(agent, "Go", conversation_id="conv_1")

    asyncio.run(kept())
    agent.tools.append(WebSearchTool())
    run(agent)
    assert len(model.calls) == 2
    assert [record.marked for record in records(log)] == [False, False]
    assert "the provider keeps the conversation" in records(log)[0].reason
    assert "tools that run at the provider" in records(log)[1].reason


def test_thirty_runs_at_once_are_thirty_sessions(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    agent = shopper(AgentMarkModel(fake(chance=random.Random(7)), decider(log)), Shop())

    async def go() -> None:
        await asyncio.gather(*[Runner.run(agent, f"Task {i}", max_turns=200) for i in range(30)])

    asyncio.run(go())
    made = records(log)
    assert len({record.session for record in made}) == 30
    assert len({record.meta["run_id"] for record in made}) == 30
    assert {record.meta["performed_by"] for record in made} == {"shopper"}
    assert verdict(log).payload == PAYLOAD


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_retry_of_the_sdks_repeats_the_decision(tmp_path: Path, stream: bool) -> None:
    log, elicitor = tmp_path / "run.jsonl", ScriptedElicitor([SPREAD, FIRST_SEARCH_THEN_ANSWER[1]])
    model = AgentMarkModel(fake(failures=1), decider(log, elicitor))
    retry = ModelRetrySettings(
        max_retries=2, backoff={"initial_delay": 0.0, "jitter": False}, policy=lambda context: True
    )
    run(shopper(model, Shop(), model_settings=ModelSettings(retry=retry)), stream=stream)
    steps = [record.step_index for record in records(log)]
    assert steps == list(range(len(steps)))
    assert all(record.marked and record.enforced is None for record in records(log))


def test_a_stream_that_is_not_read_to_its_end_is_no_evidence(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    model = AgentMarkModel(fake(), decider(log, ScriptedElicitor(FIRST_SEARCH_THEN_ANSWER)))

    async def go() -> None:
        tools = [function_tool(tool) for tool in Shop().tools]
        given = (None, "Go", ModelSettings(), tools, None, [], ModelTracing.DISABLED)
        rest = {"previous_response_id": None, "conversation_id": None, "prompt": None}
        stream = model.stream_response(*given, **rest)
        async for _ in stream:
            break
        await stream.aclose()

    asyncio.run(go())
    assert [record.enforced for record in records(log)] == [None, False]


@wants_model
def test_a_real_model_is_attributed(tmp_path: Path) -> None:
    def run_task(server: CallingModel, deciding: Decider, task: str) -> None:
        async def go() -> None:
            async with AsyncOpenAI(base_url=f"{server.root_url}/v1", api_key="k") as client:
                model = AgentMarkModel(OpenAIChatCompletionsModel(server.model, openai_client=client), deciding)
                tools = [function_tool(function) for function in TOOLS]
                settings = ModelSettings(temperature=1)
                agent = Agent(
                    name="guide",
                    model=model,
                    tools=tools,
                    model_settings=settings,
                    tool_use_behavior="stop_on_first_tool",
                )
                result = await Runner.run(agent, task)
                assert str(result.final_output).startswith("You ")

        asyncio.run(go())

    check_with_model("openai-agents", run_task, tmp_path / "run.jsonl")
