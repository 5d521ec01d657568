"""The LangChain adapter: on agents of LangChain's own making, with a model that does what it is told, and with
LangChain's own clients at a provider that refuses what today's providers refuse."""

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain")

from harness import PAYLOAD, SPREAD, Shop, arguments, decider, records, verdict
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelRetryMiddleware, wrap_model_call
from langchain.agents.structured_output import ToolStrategy
from langchain_anthropic import ChatAnthropic
from langchain_core.callbacks import StreamingStdOutCallbackHandler, get_usage_metadata_callback
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import StructuredTool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from local_agent import TOOLS, CallingModel, check_with_model, wants_model
from pydantic import BaseModel
from refusals import check, each_case, family

from agentmark.adapters.langchain import AgentMarkMiddleware, chat
from agentmark.decide.decider import Decider
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.situation import ANSWER
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import Errand, RefusingProvider, ScriptedElicitor

LONG_RUNS = {"recursion_limit": 400}
ALL = ["search", "add", "price"]
FIRST_ADD_THEN_ANSWER = [
    {"search": 0, "add": 1, "price": 0, ANSWER: 0},
    {"search": 0, "add": 0, "price": 0, ANSWER: 1},
]


class FakeModel(BaseChatModel):
    """Does what its `tool_choice` says, as a provider would; else what its script says, or its chance, or answers."""

    script: list[str]
    seen: list[Any]
    offers: list[Any]
    chance: Any = None
    says: str = "Done."
    kind: str = "fake"
    failures: list[Exception]

    @property
    def _llm_type(self) -> str:
        return self.kind

    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **kwargs: Any) -> Any:
        return self.bind(tools=[getattr(tool, "name", tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        offered, choice = kwargs.get("tools", []), kwargs.get("tool_choice")
        self.seen.append(plain(messages))
        self.offers.append((offered, choice))
        if self.failures:
            raise self.failures.pop(0)
        name = self._next(offered, choice)
        if name == ANSWER:
            said = AIMessage(self.says)
        else:
            args = {"euros": 7} if name == "Receipt" else arguments(name, len(messages))
            said = AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{len(messages)}"}])
        said.usage_metadata = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
        said.response_metadata = {"model_name": "fake"}
        return ChatResult(generations=[ChatGeneration(message=said)])

    def _next(self, offered: list[Any], choice: Any) -> str:
        if self.script:
            return self.script.pop(0)
        if choice in offered:
            return str(choice)
        if choice in ("none", {"type": "none"}) or not offered:
            return ANSWER
        if self.chance is not None:
            return str(self.chance.choices(list(SPREAD), SPREAD.values())[0])
        return ANSWER

    def _stream(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        said = self._generate(messages, **kwargs).generations[0].message
        calls = [{**call, "args": json.dumps(call["args"]), "index": 0} for call in said.tool_calls]
        yield ChatGenerationChunk(message=AIMessageChunk(content=said.content, tool_call_chunks=calls))


class Receipt(BaseModel):
    """What was bought."""

    euros: int


def fake(**settings: Any) -> FakeModel:
    return FakeModel(**{"script": [], "seen": [], "offers": [], "failures": [], **settings})


def plain(messages: list[BaseMessage]) -> list[Any]:
    return [(one.type, one.content, getattr(one, "tool_calls", None)) for one in messages]


def run(agent: Any, task: str, *, sync: bool = True, **config: Any) -> dict[str, Any]:
    ask = {"messages": [("user", task)]}
    config = {**LONG_RUNS, **config}
    return agent.invoke(ask, config) if sync else asyncio.run(agent.ainvoke(ask, config))


# --- no refusal breaks it --------------------------------------------------------------------------------------------


def model_at(provider: RefusingProvider) -> BaseChatModel:
    """LangChain's own client for the API that the profile speaks."""
    profile = provider.profile.name
    if family(profile) == "anthropic":
        return ChatAnthropic(model="claude-opus-5-5", base_url=provider.anthropic_url, api_key="k", max_tokens=2000)
    if family(profile) == "gemini":
        return ChatGoogleGenerativeAI(model="gemini-3-pro", base_url=provider.gemini_url, api_key="k", temperature=1)
    return ChatOpenAI(model="gpt-4o", base_url=provider.base_url, api_key="k", use_responses_api=profile == "no-n")


def do_errand(provider: RefusingProvider, errand: Errand, marked_by: Decider | None) -> str:
    middleware = [] if marked_by is None else [AgentMarkMiddleware(marked_by)]
    agent = create_agent(model_at(provider), list(errand.tools), middleware=middleware)
    ask = {"messages": [("user", errand.task)]}
    if provider.profile.name == "stream-cut":
        parts = list(agent.stream(ask, {"recursion_limit": 100}, stream_mode=["messages", "values"]))
        end = [part for kind, part in parts if kind == "values"][-1]
    else:
        end = agent.invoke(ask, {"recursion_limit": 100})
    return str(end["messages"][-1].text)


@each_case
def test_no_refusal_breaks_the_agent(profile: str, mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # The client for chat completions sends no reasoning back, as this provider wants it.
    hopeless = ["deepseek-wants-reasoning"]
    check("langchain", profile, mode, do_errand, tmp_path=tmp_path, caplog=caplog, hopeless=hopeless)


# --- proposals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_by_default_the_models_own_replies_carry_the_mark(tmp_path: Path, sync: bool) -> None:
    log, model, shop = tmp_path / "run.jsonl", fake(chance=random.Random(5)), Shop()
    agent = create_agent(model, shop.tools, system_prompt="Buy tea.", middleware=[AgentMarkMiddleware(decider(log))])
    for i in range(8):
        run(agent, f"Task {i}", sync=sync)
    found = verdict(log)
    assert found.accepted
    assert found.payload == PAYLOAD
    # The request is the agent's own, four times at each step.
    assert {(tuple(offered), choice) for offered, choice in model.offers} == {(tuple(ALL), None)}
    assert len(model.offers) == 4 * len(records(log))
    assert all(record.meta["elicitor"] == "proposals" for record in records(log))


def test_samples_stay_out_of_streams_and_of_the_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fake(script=["search"] * 4, callbacks=[StreamingStdOutCallbackHandler()])
    agent = create_agent(model, Shop().tools, middleware=[AgentMarkMiddleware(decider(tmp_path / "log"))])
    ask = {"messages": [("user", "Go")]}
    parts = list(agent.stream(ask, stream_mode=["messages", "values"]))
    shown = [part[0] for kind, part in parts if kind == "messages"]
    assert [(said.type, said.content) for said in shown] == [
        ("AIMessageChunk", ""), ("tool", "tea 1: item 1"), ("AIMessageChunk", "Done."),
    ]  # fmt: skip
    assert shown[0].tool_calls[0]["name"] == "search"
    history = [part for kind, part in parts if kind == "values"][-1]["messages"]
    assert [said.type for said in history] == ["human", "ai", "tool", "ai"]
    assert capsys.readouterr().out == "Done."


def test_samples_stay_out_of_streamed_events(tmp_path: Path) -> None:
    model = fake(script=["search"] * 4)
    agent = create_agent(model, Shop().tools, middleware=[AgentMarkMiddleware(decider(tmp_path / "log"))])

    async def go() -> list[str]:
        events = agent.astream_events({"messages": [("user", "Go")]}, version="v2")
        return [event["event"] async for event in events if "chat_model" in event["event"]]

    kinds = ["on_chat_model_start", "on_chat_model_stream", "on_chat_model_end"]
    assert asyncio.run(go()) == kinds * 2


def test_usage_counters_see_every_sample_and_messages_their_own_size(tmp_path: Path) -> None:
    agent = create_agent(fake(), Shop().tools, middleware=[AgentMarkMiddleware(decider(tmp_path / "log"))])
    with get_usage_metadata_callback() as counted:
        end = run(agent, "Go")
    assert counted.usage_metadata["fake"]["input_tokens"] == 40
    # What a message says of itself is how large the conversation is: middleware that shortens it reads that.
    assert end["messages"][-1].usage_metadata["input_tokens"] == 10
    assert records(tmp_path / "log")[0].meta["input_tokens"] == 40


def test_at_temperature_0_the_agent_goes_unmarked_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with RefusingProvider() as provider:
        model = ChatOpenAI(model="gpt-4o", base_url=provider.base_url, api_key="k", temperature=0)
        errand = Errand()
        middleware = [AgentMarkMiddleware(decider(tmp_path / "log"))]
        run(create_agent(model, list(errand.tools), middleware=middleware), errand.task)
        assert errand.done
        assert len(provider.requests) == len(records(tmp_path / "log"))
    assert not any(record.marked for record in records(tmp_path / "log"))
    assert "temperature 0" in caplog.text


def test_tools_of_the_provider_are_not_run_four_times_unasked(tmp_path: Path) -> None:
    model, hosted = fake(script=["add", ANSWER]), {"type": "web_search"}
    middleware = AgentMarkMiddleware(decider(tmp_path / "log"))
    run(create_agent(model, [*Shop().tools, hosted], middleware=[middleware]), "Go")
    assert model.offers == [([*ALL, hosted], None)] * 2
    assert [record.marked for record in records(tmp_path / "log")] == [False, False]
    assert "tools that run at the provider" in records(tmp_path / "log")[0].reason


def test_thirty_runs_at_once_are_thirty_sessions(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    agent = create_agent(
        fake(chance=random.Random(7)), Shop().tools, middleware=[AgentMarkMiddleware(decider(log))], name="shopper"
    )

    async def go() -> None:
        asks = [agent.ainvoke({"messages": [("user", f"Task {i}")]}, LONG_RUNS) for i in range(30)]
        await asyncio.gather(*asks)

    asyncio.run(go())
    made = records(log)
    assert len({record.session for record in made}) == 30
    assert len({record.meta["run_id"] for record in made}) == 30
    assert {record.meta["performed_by"] for record in made} == {"shopper"}
    assert verdict(log).payload == PAYLOAD


def test_a_thread_is_a_session_and_its_user_is_named(tmp_path: Path) -> None:
    agent = create_agent(
        fake(),
        Shop().tools,
        middleware=[AgentMarkMiddleware(decider(tmp_path / "log"))],
        checkpointer=InMemorySaver(),
    )
    for thread in ("a", "b", "a"):
        run(agent, "Go", configurable={"thread_id": thread, "user_id": "tenant 7"})
    made = records(tmp_path / "log")
    assert [record.meta["run_id"] for record in made] == ["a", "b", "a"]
    assert made[0].session == made[2].session != made[1].session
    assert made[0].meta["on_behalf_of"] == "tenant 7"


# --- a person's edit, and retries ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("stated", [False, True], ids=["proposals", "stated"])
def test_a_reviewers_edit_to_another_tool_is_recorded(tmp_path: Path, mode: Any, stated: bool) -> None:
    log, shop = tmp_path / "run.jsonl", Shop()
    model = fake(script=[] if stated else ["add"] * 4)
    elicitor = ScriptedElicitor(FIRST_ADD_THEN_ANSWER) if stated else None
    agent = create_agent(
        model,
        shop.tools,
        middleware=[
            HumanInTheLoopMiddleware({"add": True}, interrupt_mode=mode),
            AgentMarkMiddleware(decider(log, elicitor)),
        ],
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": "t"}}
    asked = agent.invoke({"messages": [("user", "Go")]}, config)
    edit = {"type": "edit", "edited_action": {"name": "search", "args": {"query": "cups"}}}
    if mode == "per_call":
        with pytest.raises(ValueError, match="add"):
            # There an edit cannot switch tools: LangChain refuses it.
            agent.invoke(Command(resume={asked["__interrupt__"][0].id: edit}), config)
        return
    agent.invoke(Command(resume={"decisions": [edit]}), config)
    assert (shop.cart, shop.searches) == ([], 1)
    first, taken_back, last = records(log)
    assert (first.behavior, first.enforced) == ("add", None)
    assert (taken_back.enforced, taken_back.meta["did"], taken_back.meta["edited"]) == (False, "search", True)
    assert (last.behavior, last.enforced) == (ANSWER, None)


@pytest.mark.parametrize("ours_is_outer", [False, True], ids=["retry outside", "retry inside"])
@pytest.mark.parametrize("stated", [False, True], ids=["proposals", "stated"])
def test_a_retry_repeats_the_decision(tmp_path: Path, ours_is_outer: bool, stated: bool) -> None:
    log = tmp_path / "run.jsonl"
    model = fake(failures=[ConnectionError("down")] * (1 if stated else 4))
    elicitor = ScriptedElicitor([SPREAD, FIRST_ADD_THEN_ANSWER[1]]) if stated else None
    ours = AgentMarkMiddleware(decider(log, elicitor))
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False, on_failure="error")
    agent = create_agent(model, Shop().tools, middleware=[ours, retry] if ours_is_outer else [retry, ours])
    run(agent, "Go")
    steps = [record.step_index for record in records(log)]
    assert steps == list(range(len(steps)))
    assert all(record.marked and record.enforced is None for record in records(log))


def test_a_call_that_fails_for_good_is_not_in_the_evidence(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    deciding = decider(log, ScriptedElicitor(SPREAD))
    agent = create_agent(
        fake(failures=[ConnectionError("down")]), Shop().tools, middleware=[AgentMarkMiddleware(deciding)]
    )
    with pytest.raises(ConnectionError):
        run(agent, "Go")
    deciding.close()
    assert [record.enforced for record in records(log)] == [None, False]


# --- stated lists ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_a_marked_agent_is_attributed_and_runs_as_the_unmarked_one_does(tmp_path: Path, sync: bool) -> None:
    log, model, shop = tmp_path / "run.jsonl", fake(), Shop()
    middleware = AgentMarkMiddleware(decider(log, ScriptedElicitor(SPREAD)))
    marked = create_agent(model, shop.tools, system_prompt="Buy tea.", middleware=[middleware])
    ends = [run(marked, f"Task {i}", sync=sync) for i in range(6)]
    found = verdict(log)
    assert found.accepted
    assert found.payload == PAYLOAD
    assert found.contradicting == 0
    assert {name for record in records(log) for name in record.distribution.behaviors} == set(SPREAD)

    # The same choices, made by the model itself: the same conversation, the same results, the same tools on offer.
    bare, other_shop = fake(script=[record.behavior for record in records(log)]), Shop()
    unmarked = create_agent(bare, other_shop.tools, system_prompt="Buy tea.")
    assert [plain(run(unmarked, f"Task {i}", sync=sync)["messages"]) for i in range(6)] == [
        plain(end["messages"]) for end in ends
    ]
    assert bare.seen == model.seen
    assert other_shop.cart == shop.cart
    assert all(offered == ALL for offered, _ in bare.offers + model.offers)
    assert {choice for _, choice in model.offers} == {*ALL, "none"}


def test_what_the_elicitor_is_asked(tmp_path: Path) -> None:
    elicitor = ScriptedElicitor(FIRST_ADD_THEN_ANSWER)
    agent = create_agent(
        fake(),
        Shop().tools,
        system_prompt="Buy tea.",
        middleware=[AgentMarkMiddleware(decider(tmp_path / "log", elicitor))],
    )
    run(agent, "Go")
    first, second = elicitor.situations
    assert first.names == [*ALL, ANSWER]
    assert first.candidates[0].description == "Search the catalogue."
    assert first.candidates[0].schema["properties"]["query"]["type"] == "string"
    assert first.messages == ({"role": "system", "content": "Buy tea."}, {"role": "user", "content": "Go"})
    call = {"id": "call-2", "name": "add", "arguments": {"item": "tea 2"}}
    assert second.messages[2:] == (
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "1 in the cart", "tool_call_id": "call-2"},
    )


def test_a_disobedient_model_costs_evidence_and_nothing_else(tmp_path: Path) -> None:
    log, shop = tmp_path / "run.jsonl", Shop()
    model = fake(script=["search"] * 60 + [ANSWER])
    agent = create_agent(model, shop.tools, middleware=[AgentMarkMiddleware(decider(log, ScriptedElicitor(SPREAD)))])
    run(agent, "Go")
    assert shop.searches == 60
    first = {record.step_index: record for record in records(log) if record.enforced is None}
    again = {record.step_index: record for record in records(log) if record.enforced is False}
    assert len(first) == 61
    assert set(again) == {i for i, record in first.items() if record.behavior != ("search" if i < 60 else ANSWER)}
    assert {record.meta["did"] for record in again.values()} <= {"search", ANSWER}
    # Both records of such a step are out, and only they.
    assert verdict(log).counts == {"not enforced": 2 * len(again), "used": 61 - len(again)}


@pytest.mark.parametrize("strategy", [ToolStrategy(Receipt), Receipt], ids=["tool", "auto"])
@pytest.mark.parametrize("stated", [False, True], ids=["proposals", "stated"])
def test_a_structured_answer_is_the_answer(tmp_path: Path, strategy: Any, stated: bool) -> None:
    log = tmp_path / "run.jsonl"
    model = fake(script=[] if stated else ["add"] * 4 + ["Receipt"] * 4)
    middleware = AgentMarkMiddleware(decider(log, ScriptedElicitor(FIRST_ADD_THEN_ANSWER) if stated else None))
    end = run(create_agent(model, Shop().tools, response_format=strategy, middleware=[middleware]), "Go")
    assert end["structured_response"] == Receipt(euros=7)
    offered = [*ALL, "Receipt"]
    assert model.offers == ([(offered, "add"), (offered, "Receipt")] if stated else [(offered, "any")] * 8)
    assert [(record.behavior, record.enforced) for record in records(log)] == [("add", None), (ANSWER, None)]


def test_a_model_that_takes_no_choice_is_instructed(tmp_path: Path) -> None:
    model = fake(profile={"tool_choice": False}, script=["add"])
    middleware = AgentMarkMiddleware(decider(tmp_path / "log", ScriptedElicitor(FIRST_ADD_THEN_ANSWER)))
    end = run(create_agent(model, Shop().tools, middleware=[middleware]), "Go")
    assert model.offers == [(ALL, None), (ALL, "none")]
    assert model.seen[0][-1][:2] == ("human", "Call add now.")
    assert [said.type for said in end["messages"]] == ["human", "ai", "tool", "ai"]


def test_for_anthropic_tools_are_forbidden_in_its_own_words(tmp_path: Path) -> None:
    model = fake(kind="anthropic-chat")
    middleware = AgentMarkMiddleware(decider(tmp_path / "log", ScriptedElicitor(FIRST_ADD_THEN_ANSWER)))
    run(create_agent(model, Shop().tools, middleware=[middleware]), "Go")
    assert model.offers == [(ALL, "add"), (ALL, {"type": "none"})]


def test_the_tools_of_the_provider_stay_with_the_answer(tmp_path: Path) -> None:
    model, hosted = fake(script=["add", ANSWER]), {"type": "web_search"}
    elicitor = ScriptedElicitor(FIRST_ADD_THEN_ANSWER)
    middleware = AgentMarkMiddleware(decider(tmp_path / "log", elicitor))
    run(create_agent(model, [*Shop().tools, hosted], middleware=[middleware]), "Go")
    assert elicitor.situations[0].names == [*ALL, ANSWER]
    assert model.offers == [([*ALL, hosted], "add"), ([*ALL, hosted], None)]
    assert model.seen[1][-1][:2] == ("human", "Answer now, without calling a tool.")


@pytest.mark.parametrize(("choice", "candidates"), [("search", None), ("none", None), ("any", ALL)])
def test_what_the_user_has_decided_stays_decided(tmp_path: Path, choice: str, candidates: list[str] | None) -> None:
    @wrap_model_call
    def decided(request: Any, handler: Any) -> Any:
        return handler(request.override(tool_choice=choice if len(request.messages) == 1 else "none"))

    elicitor, model = ScriptedElicitor(), fake(script=["search", ANSWER])
    middleware = [decided, AgentMarkMiddleware(decider(tmp_path / "log", elicitor))]
    run(create_agent(model, Shop().tools, middleware=middleware), "Go")
    assert [situation.names for situation in elicitor.situations] == ([candidates] if candidates else [])
    if candidates is None:
        assert model.offers[0] == (ALL, choice)
        assert records(tmp_path / "log") == []


def test_without_a_list_the_agent_decides_for_itself(tmp_path: Path) -> None:
    log, model = tmp_path / "run.jsonl", fake(script=["price", ANSWER])
    elicitor = ScriptedElicitor(["no list today", "nor now"])
    end = run(create_agent(model, Shop().tools, middleware=[AgentMarkMiddleware(decider(log, elicitor))]), "Go")
    assert end["messages"][-1].text == "Done."
    assert model.offers == [(ALL, None)] * 2
    assert [(r.behavior, r.marked, r.reason) for r in records(log)] == [
        ("price", False, "elicitation failed: no list today"), (ANSWER, False, "elicitation failed: nor now"),
    ]  # fmt: skip
    closed = AgentMarkMiddleware(decider(log, ScriptedElicitor(["no list"]), session="closed", fail="closed"))
    with pytest.raises(ElicitationError, match="no list"):
        run(create_agent(fake(), Shop().tools, middleware=[closed]), "Go")


@pytest.mark.parametrize("own", [True, False], ids=["the agent's own", "another"])
def test_a_model_is_asked_aside_and_off_the_stream(tmp_path: Path, own: bool) -> None:
    log, says = tmp_path / "run.jsonl", '{"search": 0, "add": 0, "price": 0, "(answer)": 1}'
    model = fake(says=says if own else "Done.")
    side = model if own else fake(says=says)
    elicitor = Verbalised() if own else Verbalised(chat(side))
    agent = create_agent(model, Shop().tools, middleware=[AgentMarkMiddleware(decider(log, elicitor))])
    chunks = [chunk.content for chunk, _ in agent.stream({"messages": [("user", "Go")]}, stream_mode="messages")]
    assert "".join(chunks) == model.says
    assert len(side.seen) == (2 if own else 1)
    assert model.seen[-1] == [("human", "Go", None)]
    (record,) = records(log)
    assert (record.behavior, record.meta["elicitor"], record.meta["model"]) == (ANSWER, "verbalised", "FakeModel")


def test_side_calls_keep_the_roles_of_the_conversation(tmp_path: Path) -> None:
    with RefusingProvider() as provider:
        model = ChatOpenAI(model="gpt-4o", base_url=provider.base_url, api_key="k")
        errand = Errand()
        middleware = [AgentMarkMiddleware(decider(tmp_path / "log", Verbalised()))]
        run(create_agent(model, list(errand.tools), middleware=middleware), errand.task)
        aside = [seen.body for seen in provider.requests if "response_format" in seen.body]
    assert errand.done
    assert aside[-1]["tool_choice"] == "none"
    roles = {message["role"] for message in aside[-1]["messages"]}
    assert {"assistant", "tool", "user"} <= roles
    assert all(message.get("tool_call_id") for message in aside[-1]["messages"] if message["role"] == "tool")


@wants_model
def test_a_real_model_is_attributed(tmp_path: Path) -> None:
    def run_task(server: CallingModel, deciding: Decider, task: str) -> None:
        model = ChatOpenAI(model=server.model, base_url=f"{server.root_url}/v1", api_key="k", temperature=1)
        tools = [StructuredTool.from_function(function, return_direct=True) for function in TOOLS]
        end = run(create_agent(model, tools, middleware=[AgentMarkMiddleware(deciding)]), task)
        assert end["messages"][-1].type == "tool"

    check_with_model("langchain", run_task, tmp_path / "run.jsonl")
