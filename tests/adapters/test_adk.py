"""The ADK adapter, under a real runner, agents and tools, with a scripted model of ADK's own base class."""

import asyncio
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("google.adk")
    from google.adk.agents import LlmAgent, ParallelAgent, RunConfig
    from google.adk.agents.run_config import StreamingMode
    from google.adk.apps import App
    from google.adk.models import BaseLlm, LlmRequest, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types
    from pydantic import Field

from harness import PAYLOAD, decider, records, run_page, verdict

from agentmark.adapters.adk import AgentMarkPlugin, chat
from agentmark.decide.decider import Decider
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.situation import ANSWER
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import ScriptedElicitor

pytestmark = pytest.mark.filterwarnings("ignore")

SPREAD = {"stock": 3, "price": 3, "order": 3, ANSWER: 2, "transfer_to_agent": 2}


def stock(item: str) -> int:
    """How many of an item are in stock."""
    return len(item) * 7


def price(item: str) -> float:
    """What an item costs."""
    return len(item) / 4


def order(item: str) -> str:
    """Order an item."""
    return f"ordered: {item}"


TOOLS = [stock, price, order]


class Scripted(BaseLlm):
    """Does what the request lets it do first, or what its script says; remembers what it was shown."""

    model: str = "scripted"
    script: list[str] | None = None
    target: str = "buyer"
    fails_at: int = -1
    contents: list[Any] = Field(default_factory=list)
    systems: list[Any] = Field(default_factory=list)
    offered: list[list[str]] = Field(default_factory=list)
    modes: list[tuple[Any, Any]] = Field(default_factory=list)

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        config = llm_request.config
        step = len(self.offered)
        names = [one.name for tool in config.tools or () for one in tool.function_declarations or ()]
        calling = config.tool_config.function_calling_config if config.tool_config else None
        self.contents.append([content.model_dump(exclude_none=True) for content in llm_request.contents])
        self.systems.append(config.system_instruction)
        self.offered.append(names)
        self.modes.append((calling and calling.mode.value, calling and calling.allowed_function_names))
        if step == self.fails_at:
            raise OSError("gone")
        name = self.script[step] if self.script else ANSWER if calling and calling.mode == "NONE" else names[0]
        if name == ANSWER:
            parts = [types.Part(text=f"That was step {step}.")]
        else:
            args = {"agent_name": self.target} if name == "transfer_to_agent" else {"item": f"item {step}"}
            call = types.FunctionCall(name=name, args=args, id=f"call {step}")
            parts = [types.Part(text="Let me see."), types.Part(function_call=call)]
        if stream:
            for part in parts:
                yield LlmResponse(content=types.ModelContent(parts=[part]), partial=True)
        yield LlmResponse(content=types.ModelContent(parts=parts), partial=False if stream else None)


def scripted(script: list[str] | None = None, **options: Any) -> Scripted:
    return Scripted(script=script, **options)


def agent_on(model: BaseLlm, name: str = "shop", **options: Any) -> LlmAgent:
    return LlmAgent(name=name, model=model, instruction="Keep the shop stocked.", tools=TOOLS, **options)


def runs(agent: Any, count: int, decided_by: Decider | None = None, *, stream: bool = False) -> list[Any]:
    """Every complete event of several runs: who did what, and what came of it."""

    async def run() -> list[Any]:
        plugins = [] if decided_by is None else [AgentMarkPlugin(decided_by)]
        runner = InMemoryRunner(app=App(name="shop", root_agent=agent, plugins=plugins))
        config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
        events = []
        for _ in range(count):
            session = await runner.session_service.create_session(app_name="shop", user_id="u")
            message = types.UserContent("Restock.")
            run = runner.run_async(user_id="u", session_id=session.id, new_message=message, run_config=config)
            events += [event async for event in run]
        assert all(not plugin._open for plugin in plugins)
        complete = [event for event in events if not event.partial]
        return [(one.author, one.content and one.content.model_dump(exclude_none=True)) for one in complete]

    return asyncio.run(run())


def chosen(log: Path) -> list[str]:
    return [record.behavior for record in records(log) if record.enforced is not False]


@pytest.mark.parametrize("stream", [False, True])
def test_a_marked_agent_is_identified_and_does_what_the_unmarked_one_does(tmp_path: Path, stream: bool) -> None:
    log, model, elicitor = tmp_path / "run.jsonl", scripted(), ScriptedElicitor(SPREAD)
    marked = runs(agent_on(model), 8, decider(log, elicitor), stream=stream)
    done = chosen(log)
    assert len(done) == len(records(log)) > 20
    assert [(mode, names) for mode, names in model.modes] == [
        ("NONE", None) if name == ANSWER else ("ANY", [name]) for name in done
    ]
    assert all(offered == [name] for offered, name in zip(model.offered, done, strict=True) if name != ANSWER)
    assert verdict(log).payload == PAYLOAD

    plain = scripted(done)
    assert runs(agent_on(plain), 8, stream=stream) == marked
    assert (plain.contents, plain.systems) == (model.contents, model.systems)
    assert plain.offered == [["stock", "price", "order"]] * len(done)

    first = elicitor.situations[0]
    assert first.names == ["stock", "price", "order", ANSWER]
    assert first.candidates[0].description == "How many of an item are in stock."
    assert first.candidates[0].schema["required"] == ["item"]
    assert "Keep the shop stocked." in first.messages[0]["content"]
    later = next(one for one in elicitor.situations if len(one.messages) > 2)
    assert later.messages[2]["tool_calls"][0]["arguments"] == {"item": "item 0"}
    assert "result" in later.messages[3]["content"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_disobedient_model_is_believed_and_its_steps_are_erased(tmp_path: Path, stream: bool) -> None:
    log, script = tmp_path / "run.jsonl", ["order"] * 30 + [ANSWER]
    events = runs(agent_on(scripted(script)), 1, decider(log, ScriptedElicitor(SPREAD)), stream=stream)
    assert events == runs(agent_on(scripted(script)), 1, stream=stream)
    erased = [record.step_index for record in records(log) if record.enforced is False]
    assert erased == [step for step, name in enumerate(chosen(log)) if name != script[step]]
    assert len(erased) > 15
    assert not verdict(log).accepted


def test_a_transfer_is_a_choice_and_the_next_agent_is_marked_too(tmp_path: Path) -> None:
    def shop(model: Scripted) -> LlmAgent:
        buyer = agent_on(model, "buyer", description="Buys.", disallow_transfer_to_parent=True)
        return agent_on(model, sub_agents=[buyer])

    log, model = tmp_path / "run.jsonl", scripted()
    elicitor = ScriptedElicitor(SPREAD)
    marked = runs(shop(model), 6, decider(log, elicitor))
    done = chosen(log)
    assert "transfer_to_agent" in done
    assert {author for author, _ in marked} == {"shop", "buyer"}
    transfer = next(one for one in elicitor.situations[0].candidates if one.name == "transfer_to_agent")
    assert transfer.schema["properties"]["agent_name"]["enum"] == ["buyer"]
    plain = scripted(done)
    assert runs(shop(plain), 6) == marked
    assert (plain.contents, plain.systems) == (model.contents, model.systems)


def test_agents_that_run_at_once_do_not_mix_up_their_decisions(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    class Waiting(ScriptedElicitor):
        async def aelicit(self, situation: Any) -> Any:
            await asyncio.sleep(0.001)
            return self.elicit(situation)

    models = [scripted(), scripted()]
    agents = [agent_on(model, f"shop{i}") for i, model in enumerate(models)]
    runs(ParallelAgent(name="both", sub_agents=agents), 4, decider(log, Waiting(SPREAD)))
    assert len(models[0].offered) + len(models[1].offered) == len(records(log)) == len(chosen(log)) > 10


def test_without_a_list_the_model_decides_or_the_run_ends(tmp_path: Path) -> None:
    log, script = tmp_path / "open.jsonl", ["stock", ANSWER]
    model, plain = scripted(script), scripted(script)
    no_list = ScriptedElicitor(lambda situation: "no list today")
    assert runs(agent_on(model), 1, decider(log, no_list)) == runs(agent_on(plain), 1)
    assert (model.offered, model.modes) == (plain.offered, plain.modes)
    assert [(record.behavior, record.marked) for record in records(log)] == [(name, False) for name in script]
    assert "no list today" in str(records(log)[0].reason)

    with pytest.raises(RuntimeError, match="no list today") as caught:
        runs(agent_on(scripted(script)), 1, decider(tmp_path / "closed.jsonl", no_list, fail="closed"))
    assert isinstance(caught.value.__cause__, ElicitationError)


@pytest.mark.parametrize(
    ("calling", "candidates"),
    [
        ({"mode": "ANY"}, ["stock", "price", "order"]),
        ({"mode": "ANY", "allowed_function_names": ["price", "order"]}, ["price", "order"]),
        ({"mode": "AUTO"}, ["stock", "price", "order", ANSWER]),
        ({"mode": "ANY", "allowed_function_names": ["price"]}, None),
        ({"mode": "NONE"}, None),
    ],
)
def test_the_users_own_tool_choice_stands(
    tmp_path: Path, calling: dict[str, Any], candidates: list[str] | None
) -> None:
    log, model, elicitor = tmp_path / "run.jsonl", scripted(["price", ANSWER]), ScriptedElicitor()
    config = types.GenerateContentConfig(
        tool_config=types.ToolConfig(function_calling_config=types.FunctionCallingConfig(**calling))
    )
    before = config.model_copy(deep=True)
    runs(agent_on(model, generate_content_config=config), 1, decider(log, elicitor))
    assert config == before
    assert [one.names for one in elicitor.situations] == ([] if candidates is None else [candidates] * 2)
    if candidates is None:
        assert model.modes == [(calling["mode"], calling.get("allowed_function_names"))] * 2
        assert records(log) == []


def test_live_runs_are_left_alone(tmp_path: Path) -> None:
    """There ADK calls plugins to screen what the user says, with the config that the whole session shares."""
    log = tmp_path / "run.jsonl"
    plugin = AgentMarkPlugin(decider(log, ScriptedElicitor(SPREAD)))
    declared = types.Tool(function_declarations=[types.FunctionDeclaration(name=name) for name in ("stock", "order")])
    for queue in (object(), None):
        request = LlmRequest(contents=[], config=types.GenerateContentConfig(tools=[declared]))
        before = request.model_copy(deep=True)
        context = SimpleNamespace(
            actions=object(), invocation_id="1", _invocation_context=SimpleNamespace(live_request_queue=queue)
        )
        asyncio.run(plugin.before_model_callback(callback_context=context, llm_request=request))
        assert (request == before) == (queue is not None)
    assert len(records(log)) == 1


def test_a_call_that_fails_or_is_never_made_has_done_nothing(tmp_path: Path) -> None:
    log = tmp_path / "failed.jsonl"
    with pytest.raises(OSError, match="gone"):
        runs(agent_on(scripted(fails_at=0)), 1, decider(log, ScriptedElicitor(SPREAD)))
    assert [record.enforced for record in records(log)] == [None, False]

    def in_its_place(callback_context: Any, llm_request: LlmRequest) -> LlmResponse:
        return LlmResponse(content=types.ModelContent("Closed today."))

    log = tmp_path / "replaced.jsonl"
    runs(agent_on(scripted(), before_model_callback=in_its_place), 1, decider(log, ScriptedElicitor(SPREAD)))
    assert [record.enforced for record in records(log)] == [None, False]


def test_the_agents_own_model_can_be_asked_on_the_side(tmp_path: Path) -> None:
    class Talkative(Scripted):
        async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> Any:
            if llm_request.config.tools:
                async for response in super().generate_content_async(llm_request, stream):
                    yield response
            else:
                assert "probability" in llm_request.config.system_instruction
                assert [content.role for content in llm_request.contents] == ["user", "model", "user"]
                yield LlmResponse(content=types.ModelContent('{"stock": 0, "price": 0, "order": 0, "(answer)": 1}'))

    log, model = tmp_path / "run.jsonl", Talkative()
    events = runs(agent_on(model), 1, decider(log, Verbalised(chat(model))))
    assert [event[1]["parts"] for event in events] == [[{"text": "That was step 0."}]]
    assert records(log)[0].meta == {"elicitor": "verbalised", "model": "scripted"}


def test_the_page_runs(tmp_path: Path) -> None:
    assert "Attributed" in run_page("adk", tmp_path)
