"""The LangChain adapter, on agents of LangChain's own making and a model that does what it is told."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain")

from harness import PAYLOAD, SPREAD, Shop, arguments, decider, records, run_page, verdict
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import BaseModel

from agentmark.adapters.langchain import AgentMarkMiddleware, chat
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.situation import ANSWER
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import ScriptedElicitor

LONG_RUNS = {"recursion_limit": 400}


class FakeModel(BaseChatModel):
    """Calls the tool it is forced or left to call, and answers when it is offered none. A script goes before that."""

    script: list[str]
    seen: list[Any]
    offers: list[Any]
    says: str = "Done."
    kind: str = "fake"

    @property
    def _llm_type(self) -> str:
        return self.kind

    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **kwargs: Any) -> Any:
        return self.bind(tools=[getattr(tool, "name", tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        offered, forced = kwargs.get("tools", []), kwargs.get("tool_choice")
        self.seen.append(plain(messages))
        self.offers.append((offered, forced))
        if self.script:
            name = self.script.pop(0)
        else:
            name = forced if forced in offered else offered[0] if len(offered) == 1 else ANSWER
        if name == ANSWER:
            return ChatResult(generations=[ChatGeneration(message=AIMessage(self.says))])
        args = {"euros": 7} if name == "Receipt" else arguments(name, len(messages))
        call = {"name": name, "args": args, "id": f"call-{len(messages)}"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])

    def _stream(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        said = self._generate(messages, **kwargs).generations[0].message
        chunks = [{**call, "args": str(call["args"]).replace("'", '"'), "index": 0} for call in said.tool_calls]
        yield ChatGenerationChunk(message=AIMessageChunk(content=said.content, tool_call_chunks=chunks))


class Receipt(BaseModel):
    """What was bought."""

    euros: int


def fake(**settings: Any) -> FakeModel:
    return FakeModel(**{"script": [], "seen": [], "offers": [], **settings})


def plain(messages: list[BaseMessage]) -> list[Any]:
    return [(one.type, one.content, getattr(one, "tool_calls", None)) for one in messages]


def run(agent: Any, task: str, *, sync: bool = True) -> dict[str, Any]:
    ask = {"messages": [("user", task)]}
    return agent.invoke(ask, LONG_RUNS) if sync else asyncio.run(agent.ainvoke(ask, LONG_RUNS))


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

    # The same choices, made by the model itself among all its tools: the same conversation, the same results.
    bare, other_shop = fake(script=[record.behavior for record in records(log)]), Shop()
    unmarked = create_agent(bare, other_shop.tools, system_prompt="Buy tea.")
    assert [plain(run(unmarked, f"Task {i}", sync=sync)["messages"]) for i in range(6)] == [
        plain(end["messages"]) for end in ends
    ]
    assert bare.seen == model.seen
    assert other_shop.cart == shop.cart
    assert all(offered == ["search", "add", "price"] for offered, _ in bare.offers)
    assert {(tuple(offered), forced) for offered, forced in model.offers} == {
        (("search",), "search"), (("add",), "add"), (("price",), "price"), ((), None),
    }  # fmt: skip


def test_what_the_elicitor_is_asked(tmp_path: Path) -> None:
    elicitor = ScriptedElicitor(
        [{"search": 1, "add": 0, "price": 0, ANSWER: 0}, {"search": 0, "add": 0, "price": 0, ANSWER: 1}]
    )
    agent = create_agent(
        fake(),
        Shop().tools,
        system_prompt="Buy tea.",
        middleware=[AgentMarkMiddleware(decider(tmp_path / "log", elicitor))],
    )
    run(agent, "Go")
    first, second = elicitor.situations
    assert first.names == ["search", "add", "price", ANSWER]
    assert first.candidates[0].description == "Search the catalogue."
    assert first.candidates[0].schema["properties"]["query"]["type"] == "string"
    assert first.messages == ({"role": "system", "content": "Buy tea."}, {"role": "user", "content": "Go"})
    assert second.messages[2:] == (
        {"role": "assistant", "content": "", "tool_calls": [{"name": "search", "arguments": {"query": "tea 2"}}]},
        {"role": "tool", "content": "tea 2: item 1"},
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
def test_a_structured_answer_is_the_answer(tmp_path: Path, strategy: Any) -> None:
    log, model = tmp_path / "run.jsonl", fake()
    script = [{"search": 1, "add": 0, "price": 0, ANSWER: 0}, {"search": 0, "add": 0, "price": 0, ANSWER: 1}]
    middleware = AgentMarkMiddleware(decider(log, ScriptedElicitor(script)))
    end = run(create_agent(model, Shop().tools, response_format=strategy, middleware=[middleware]), "Go")
    assert end["structured_response"] == Receipt(euros=7)
    assert model.offers == [(["search"], "search"), (["Receipt"], "any")]
    assert [(record.behavior, record.enforced) for record in records(log)] == [("search", None), (ANSWER, None)]


def test_a_model_that_cannot_be_forced_is_offered_one_tool(tmp_path: Path) -> None:
    model = fake(profile={"tool_choice": False})
    script = [{"search": 0, "add": 1, "price": 0, ANSWER: 0}, {"search": 0, "add": 0, "price": 0, ANSWER: 1}]
    middleware = AgentMarkMiddleware(decider(tmp_path / "log", ScriptedElicitor(script)))
    run(create_agent(model, Shop().tools, middleware=[middleware]), "Go")
    assert model.offers == [(["add"], None), ([], None)]


def test_for_anthropic_the_tools_stay_defined_and_forbidden(tmp_path: Path) -> None:
    model = fake(kind="anthropic-chat")
    script = [{"search": 0, "add": 1, "price": 0, ANSWER: 0}, {"search": 0, "add": 0, "price": 0, ANSWER: 1}]
    middleware = AgentMarkMiddleware(decider(tmp_path / "log", ScriptedElicitor(script)))
    run(create_agent(model, Shop().tools, middleware=[middleware]), "Go")
    assert model.offers == [(["add"], "add"), (["search", "add", "price"], {"type": "none"})]


def test_the_tools_of_the_provider_stay_with_the_answer(tmp_path: Path) -> None:
    model, hosted = fake(), {"type": "web_search"}
    script = [{"search": 0, "add": 1, "price": 0, ANSWER: 0}, {"search": 0, "add": 0, "price": 0, ANSWER: 1}]
    elicitor = ScriptedElicitor(script)
    middleware = AgentMarkMiddleware(decider(tmp_path / "log", elicitor))
    model.script = ["add", ANSWER]
    run(create_agent(model, [*Shop().tools, hosted], middleware=[middleware]), "Go")
    assert elicitor.situations[0].names == ["search", "add", "price", ANSWER]
    assert model.offers == [(["add"], "add"), ([hosted], None)]


@pytest.mark.parametrize(
    ("choice", "candidates"), [("search", None), ("none", None), ("any", ["search", "add", "price"])]
)
def test_what_the_user_has_decided_stays_decided(tmp_path: Path, choice: str, candidates: list[str] | None) -> None:
    @wrap_model_call
    def decided(request: Any, handler: Any) -> Any:
        return handler(request.override(tool_choice=choice if len(request.messages) == 1 else "none"))

    elicitor, model = ScriptedElicitor(), fake(script=["search", ANSWER])
    middleware = [decided, AgentMarkMiddleware(decider(tmp_path / "log", elicitor))]
    run(create_agent(model, Shop().tools, middleware=middleware), "Go")
    assert [situation.names for situation in elicitor.situations] == ([candidates] if candidates else [])
    if candidates is None:
        assert model.offers[0] == (["search", "add", "price"], choice)
        assert records(tmp_path / "log") == []


def test_without_a_list_the_agent_decides_for_itself(tmp_path: Path) -> None:
    log, model = tmp_path / "run.jsonl", fake(script=["price", ANSWER])
    elicitor = ScriptedElicitor(["no list today", "nor now"])
    end = run(create_agent(model, Shop().tools, middleware=[AgentMarkMiddleware(decider(log, elicitor))]), "Go")
    assert end["messages"][-1].text == "Done."
    assert model.offers == [(["search", "add", "price"], None)] * 2
    assert [(r.behavior, r.marked, r.reason) for r in records(log)] == [
        ("price", False, "elicitation failed: no list today"), (ANSWER, False, "elicitation failed: nor now"),
    ]  # fmt: skip
    closed = AgentMarkMiddleware(decider(log, ScriptedElicitor(["no list"]), session="closed", fail="closed"))
    with pytest.raises(ElicitationError, match="no list"):
        run(create_agent(fake(), Shop().tools, middleware=[closed]), "Go")


def test_a_call_that_fails_is_not_in_the_evidence(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    @wrap_model_call
    def down(request: Any, handler: Any) -> Any:
        raise ConnectionError("down")

    middleware = [AgentMarkMiddleware(decider(log, ScriptedElicitor(SPREAD))), down]
    with pytest.raises(ConnectionError):
        run(create_agent(fake(), Shop().tools, middleware=middleware), "Go")
    assert [record.enforced for record in records(log)] == [None, False]


def test_the_agents_own_model_is_asked_aside_and_off_the_stream(tmp_path: Path) -> None:
    log, model = tmp_path / "run.jsonl", fake()
    side = fake(says='{"search": 0, "add": 0, "price": 0, "(answer)": 1}')
    middleware = AgentMarkMiddleware(decider(log, Verbalised(chat(side))))
    agent = create_agent(model, Shop().tools, middleware=[middleware])
    chunks = [chunk.content for chunk, _ in agent.stream({"messages": [("user", "Go")]}, stream_mode="messages")]
    assert "".join(chunks) == "Done."
    assert len(side.seen) == 1
    assert model.seen == [[("human", "Go", None)]]
    (record,) = records(log)
    assert (record.behavior, record.meta["elicitor"], record.meta["model"]) == (ANSWER, "verbalised", "FakeModel")


def test_the_page_runs_as_pasted(tmp_path: Path) -> None:
    assert "Attributed to payload 0x2a" in run_page("langchain", tmp_path)
