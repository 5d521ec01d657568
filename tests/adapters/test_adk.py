"""The ADK adapter, under a real runner, agents and tools: with a model of ADK's own base class, and with its real
clients over HTTP."""

import asyncio
import gc
import random
import warnings
from collections.abc import AsyncIterator, Iterator
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
    from google.adk.models import BaseLlm, Gemini, LlmRequest, LlmResponse
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.plugins import BasePlugin
    from google.adk.runners import InMemoryRunner
    from google.genai import types
    from pydantic import Field

from harness import PAYLOAD, decider, records, verdict
from refusals import check, each_case, family

from agentmark.adapters.adk import AgentMarkPlugin, chat
from agentmark.decide.decider import Decider
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.proposals import Proposals
from agentmark.elicit.situation import ANSWER
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import Errand, RefusingProvider, ScriptedElicitor

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Clients of frameworks are closed by the collector: here, where warnings of it are ignored."""
    yield
    gc.collect()


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
    """Does what the choice or the last message tells it, else what its script says, else any of its ways; remembers
    what it was shown."""

    model: str = "scripted"
    script: list[str] | None = None
    target: str = "buyer"
    fails_at: int = -1
    chance: Any = Field(default_factory=lambda: random.Random(1))
    contents: list[Any] = Field(default_factory=list)
    systems: list[Any] = Field(default_factory=list)
    offered: list[list[str]] = Field(default_factory=list)
    modes: list[tuple[Any, Any]] = Field(default_factory=list)

    def way(self, names: list[str], calling: Any, step: int) -> str:
        if self.script:
            return self.script[step]
        if calling and calling.mode == "NONE":
            return ANSWER
        allowed = (calling and calling.allowed_function_names) or names
        required = calling is not None and calling.mode == "ANY"
        return str(self.chance.choice(allowed if required else [*allowed, ANSWER]))

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        config = llm_request.config
        step = len(self.offered)
        names = [function.name for tool in config.tools or () for function in tool.function_declarations or ()]
        calling = config.tool_config.function_calling_config if config.tool_config else None
        self.contents.append([content.model_dump(exclude_none=True) for content in llm_request.contents])
        self.systems.append(config.system_instruction)
        self.offered.append(names)
        self.modes.append((calling and calling.mode.value, calling and calling.allowed_function_names))
        if step == self.fails_at:
            raise OSError("gone")
        name = self.way(names, calling, step)
        turn = len(llm_request.contents)
        if name == ANSWER:
            parts = [types.Part(text=f"That was turn {turn}.")]
        else:
            args = {"agent_name": self.target} if name == "transfer_to_agent" else {"item": f"item {turn}"}
            call = types.FunctionCall(name=name, args=args, id=f"call {turn}")
            parts = [types.Part(text="Let me see."), types.Part(function_call=call)]
        if stream:
            for part in parts:
                yield LlmResponse(content=types.ModelContent(parts=[part]), partial=True)
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=100, candidates_token_count=10, total_token_count=110
        )
        whole = types.ModelContent(parts=parts)
        yield LlmResponse(content=whole, partial=False if stream else None, usage_metadata=usage)


def scripted(script: list[str] | None = None, **options: Any) -> Scripted:
    return Scripted(script=script, **options)


def agent_on(model: BaseLlm, name: str = "shop", **options: Any) -> LlmAgent:
    return LlmAgent(name=name, model=model, instruction="Keep the shop stocked.", tools=TOOLS, **options)


def runs(
    agent: Any, count: int, decided_by: Decider | None = None, *, stream: bool = False, others: Any = ()
) -> list[Any]:
    """Every complete event of several runs: who did what, and what came of it."""

    async def run() -> list[Any]:
        plugins = [*others, *([] if decided_by is None else [AgentMarkPlugin(decided_by)])]
        runner = InMemoryRunner(app=App(name="shop", root_agent=agent, plugins=plugins))
        config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
        events = []
        for _ in range(count):
            session = await runner.session_service.create_session(app_name="shop", user_id="u")
            message = types.UserContent("Restock.")
            run = runner.run_async(user_id="u", session_id=session.id, new_message=message, run_config=config)
            events += [event async for event in run]
        complete = [event for event in events if not event.partial]
        return [(event.author, event.content and event.content.model_dump(exclude_none=True)) for event in complete]

    return asyncio.run(run())


def chosen(log: Path) -> list[str]:
    return [record.behavior for record in records(log) if record.enforced is not False]


# --- samples -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_marked_agent_is_identified_and_is_handed_samples_of_its_own_model(tmp_path: Path, stream: bool) -> None:
    log, model = tmp_path / "run.jsonl", scripted()
    marked = runs(agent_on(model), 20, decider(log), stream=stream)
    done = chosen(log)
    assert len(done) == len(records(log)) > 20
    assert verdict(log).payload == PAYLOAD
    assert set(model.modes) == {(None, None)}

    plain = scripted(done)
    assert runs(agent_on(plain), 20, stream=stream) == marked
    assert [shown for shown in plain.contents for _ in range(4)] == model.contents
    assert [shown for shown in plain.systems for _ in range(4)] == model.systems
    assert plain.offered * 4 == model.offered


def test_callbacks_of_others_run_once_and_on_what_is_handed_on(tmp_path: Path) -> None:
    seen: list[str] = []

    class Watch(BasePlugin):
        async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
            seen.append(f"{self.name} before")
            llm_request.append_instructions([f"By {self.name}."])

        async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
            assert isinstance(callback_context._invocation_context.agent, LlmAgent)
            seen.append(f"{self.name} after")

    def own_before(callback_context: Any, llm_request: LlmRequest) -> None:
        # The agent is there for every callback, whatever stands in for it.
        assert isinstance(callback_context._invocation_context.agent, LlmAgent)
        assert callback_context.agent_name == "shop"
        seen.append("own before")
        llm_request.append_instructions(["By the agent."])

    def own_after(callback_context: Any, llm_response: LlmResponse) -> None:
        seen.append("own after")

    model = scripted(["stock"] * 4 + [ANSWER] * 4)
    agent = agent_on(model, before_model_callback=own_before, after_model_callback=own_after)

    async def run() -> None:
        plugins = [Watch("first"), AgentMarkPlugin(decider(tmp_path / "log")), Watch("last")]
        runner = InMemoryRunner(app=App(name="shop", root_agent=agent, plugins=plugins))
        session = await runner.session_service.create_session(app_name="shop", user_id="u")
        message = types.UserContent("Restock.")
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass

    asyncio.run(run())
    turn = ["first before", "last before", "own before", "first after", "last after", "own after"]
    assert seen == turn * 2
    assert len(model.systems) == 8
    assert all("By last." in system and "By the agent." in system for system in model.systems)


def test_a_callback_that_answers_in_the_models_place_leaves_nothing_to_decide(tmp_path: Path) -> None:
    answers = [LlmResponse(content=types.ModelContent("Closed today.")), None]

    def in_its_place(callback_context: Any, llm_request: LlmRequest) -> LlmResponse | None:
        return answers.pop(0)

    log, model = tmp_path / "run.jsonl", scripted([ANSWER] * 4)
    agent = agent_on(model, before_model_callback=in_its_place)
    events = runs(agent, 2, decider(log))
    assert [event[1]["parts"][0]["text"] for event in events] == ["Closed today.", "That was turn 1."]
    assert chosen(log) == [ANSWER]


def test_usage_is_that_of_the_whole_turn(tmp_path: Path) -> None:
    seen: list[Any] = []

    def look(callback_context: Any, llm_response: LlmResponse) -> None:
        seen.append(llm_response.usage_metadata)

    agent = agent_on(scripted([ANSWER] * 4), after_model_callback=look)
    runs(agent, 1, decider(tmp_path / "log"))
    (usage,) = seen
    # By the prompt's count ADK tells how long the context is.
    assert (usage.prompt_token_count, usage.total_token_count) == (100, 440)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"temperature": 0}, "not sampled: at temperature 0 every sample would be the same"),
        ({"tools": [types.Tool(google_search=types.GoogleSearch())]}, "not sampled: tools that run at the provider"),
    ],
    ids=["temperature 0", "hosted tools"],
)
def test_what_cannot_be_sampled_is_left_to_the_agent_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, config: Any, reason: str
) -> None:
    hosted = config.pop("tools", [])

    def add_tools(callback_context: Any, llm_request: LlmRequest) -> None:
        llm_request.config.tools = [*llm_request.config.tools, *hosted]

    log, model = tmp_path / "run.jsonl", scripted(["stock", ANSWER])
    own = types.GenerateContentConfig(**config)
    runs(agent_on(model, generate_content_config=own, before_model_callback=add_tools), 1, decider(log))
    assert len(model.offered) == 2
    assert [(record.behavior, record.marked) for record in records(log)] == [("stock", False), (ANSWER, False)]
    assert str(records(log)[0].reason).startswith(reason)
    assert "a step goes unmarked" in caplog.text


# --- runs ----------------------------------------------------------------------------------------------------------


def test_each_run_has_a_session_and_says_who_acts_for_whom(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    async def all_at_once() -> list[str]:
        app = App(name="shop", root_agent=agent_on(scripted()), plugins=[AgentMarkPlugin(decider(log))])
        runner = InMemoryRunner(app=app)

        async def one_run(user: str) -> str:
            session = await runner.session_service.create_session(app_name="shop", user_id=user)
            message = types.UserContent("Restock.")
            run = runner.run_async(user_id=user, session_id=session.id, new_message=message)
            events = [event async for event in run]
            return f"{session.id}/{events[0].invocation_id}"

        return await asyncio.gather(*[one_run(f"user {i}") for i in range(30)])

    run_ids = asyncio.run(all_at_once())
    written = records(log)
    assert {record.meta["run_id"] for record in written} == set(run_ids)
    assert len({(record.session, record.meta["run_id"], record.meta["on_behalf_of"]) for record in written}) == 30
    assert {record.meta["performed_by"] for record in written} == {"shop"}


def test_an_edit_of_what_the_model_called_is_recorded(tmp_path: Path) -> None:
    def review(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        if not llm_response.get_function_calls():
            return None
        changed = types.Part.from_function_call(name="price", args={"item": "tea"})
        return LlmResponse(content=types.ModelContent(parts=[changed]))

    log = tmp_path / "run.jsonl"
    by = decider(log)
    runs(agent_on(scripted(["order"] * 4 + [ANSWER] * 4), after_model_callback=review), 1, by)
    first, edited, last = records(log)
    assert (first.behavior, edited.behavior, last.behavior) == ("order", "order", ANSWER)
    assert (edited.enforced, edited.meta["did"], edited.meta["edited"]) == (False, "price", True)
    assert by.stats.edited == 1


# --- stated lists --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_with_a_stated_list_the_agent_does_what_was_chosen(tmp_path: Path, stream: bool) -> None:
    log, model, elicitor = tmp_path / "run.jsonl", scripted(), ScriptedElicitor(SPREAD)
    marked = runs(agent_on(model), 8, decider(log, elicitor), stream=stream)
    done = chosen(log)
    assert len(done) == len(records(log)) > 20
    assert model.modes == [("NONE", None) if name == ANSWER else ("ANY", [name]) for name in done]
    assert model.offered == [["stock", "price", "order"]] * len(done)
    assert verdict(log).payload == PAYLOAD

    plain = scripted(done)
    assert runs(agent_on(plain), 8, stream=stream) == marked
    assert (plain.contents, plain.systems) == (model.contents, model.systems)

    first = elicitor.situations[0]
    assert first.names == ["stock", "price", "order", ANSWER]
    assert first.candidates[0].description == "How many of an item are in stock."
    assert first.candidates[0].schema["required"] == ["item"]
    assert "Keep the shop stocked." in first.messages[0]["content"]
    later = next(situation for situation in elicitor.situations if len(situation.messages) > 2)
    assert later.messages[2]["tool_calls"][0]["arguments"] == {"item": "item 1"}
    assert later.messages[3]["role"] == "tool"
    assert later.messages[3]["tool_call_id"] == later.messages[2]["tool_calls"][0]["id"]


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
    transfer = next(way for way in elicitor.situations[0].candidates if way.name == "transfer_to_agent")
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

    with pytest.raises(ElicitationError, match="no list today"):
        runs(agent_on(scripted(script)), 1, decider(tmp_path / "closed.jsonl", no_list, fail="closed"))


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
    assert [situation.names for situation in elicitor.situations] == ([] if candidates is None else [candidates] * 2)
    if candidates is None:
        assert model.modes == [(calling["mode"], calling.get("allowed_function_names"))] * 2
        assert records(log) == []


def test_live_runs_are_left_alone(tmp_path: Path) -> None:
    """There ADK calls plugins to screen what the user says, with the config that the whole session shares."""
    plugin = AgentMarkPlugin(decider(tmp_path / "run.jsonl"))
    agent = agent_on(scripted())
    for queue, cfc in ((object(), False), (None, True), (None, False)):
        context = SimpleNamespace(live_request_queue=queue, run_config=SimpleNamespace(support_cfc=cfc), agent=agent)
        callback_context = SimpleNamespace(_invocation_context=context)
        asyncio.run(plugin.before_model_callback(callback_context=callback_context, llm_request=LlmRequest()))
        assert (context.agent is agent) == (queue is not None or cfc)


def test_a_call_that_fails_has_done_nothing(tmp_path: Path) -> None:
    log = tmp_path / "failed.jsonl"
    with pytest.raises(OSError, match="gone"), decider(log, ScriptedElicitor(SPREAD)) as by:
        runs(agent_on(scripted(fails_at=0)), 1, by)
    assert [record.enforced for record in records(log)] == [None, False]


def test_the_agents_own_model_is_asked_on_the_side(tmp_path: Path) -> None:
    class Talkative(Scripted):
        asked: list[Any] = Field(default_factory=list)

        async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> Any:
            if "how likely" not in str(llm_request.contents[-1]):
                async for response in super().generate_content_async(llm_request, stream):
                    yield response
            else:
                self.asked.append(llm_request)
                stated = '{"stock": 0, "price": 0, "order": 0, "(answer)": 1}'
                yield LlmResponse(content=types.ModelContent(stated))

    log, model = tmp_path / "run.jsonl", Talkative()
    events = runs(agent_on(model), 1, decider(log, Verbalised()))
    assert [event[1]["parts"] for event in events] == [[{"text": "That was turn 1."}]]
    (aside,) = model.asked
    # The agent's own request, with the question after it, and its tools not to be called.
    assert aside.config.system_instruction == model.systems[0]
    assert [content.model_dump(exclude_none=True) for content in aside.contents[:-1]] == model.contents[0]
    assert aside.config.tool_config.function_calling_config.mode == "NONE"
    assert records(log)[0].meta["elicitor"] == "verbalised"
    other = Talkative()
    runs(agent_on(scripted()), 1, decider(log, Verbalised(chat(other)), session="other"))
    assert len(other.asked) == 1


# --- real clients --------------------------------------------------------------------------------------------------


def model_at(provider: RefusingProvider) -> BaseLlm:
    """ADK's client for the API that a provider speaks."""
    speaks = family(provider.profile.name)
    if speaks == "anthropic":
        return LiteLlm("anthropic/claude-opus-5-5", api_key="key", api_base=provider.anthropic_url)
    if speaks == "gemini":
        return Gemini(model="gemini-3-pro", base_url=provider.gemini_url)
    return LiteLlm("openai/gpt-4.1", api_key="key", api_base=provider.base_url, num_retries=3)


def do_errand(
    provider: RefusingProvider, errand: Errand, decided_by: Decider | None, *, stream: bool = False
) -> str | None:
    agent = LlmAgent(name="shop", model=model_at(provider), instruction="Run errands.", tools=list(errand.tools))

    async def run() -> str:
        plugins = [] if decided_by is None else [AgentMarkPlugin(decided_by)]
        runner = InMemoryRunner(app=App(name="shop", root_agent=agent, plugins=plugins))
        session = await runner.session_service.create_session(app_name="shop", user_id="u")
        config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
        message = types.UserContent(errand.task)
        said = ""
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message, run_config=config):
            if event.is_final_response() and event.content and not event.partial:
                said = "".join([part.text or "" for part in event.content.parts or ()])
        return said

    return asyncio.run(run())


@each_case
def test_no_refusal_breaks_the_agent(
    profile: str, mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "key")
    check("adk", profile, mode, do_errand, tmp_path=tmp_path, caplog=caplog)


@pytest.mark.parametrize("profile", ["plain", "claude-preserved-thinking", "gemini-wants-signatures"])
@pytest.mark.parametrize("elicitor", [Proposals(), Verbalised()], ids=["proposals", "stated"])
def test_streams_of_every_client_are_read_and_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, elicitor: Any
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "key")
    errand = Errand(3)
    with RefusingProvider(profile) as provider, decider(tmp_path / "log", elicitor, fallback=Proposals()) as by:
        assert errand.finished(do_errand(provider, errand, by, stream=True))
        assert by.stats.marked == by.stats.steps > 3


@pytest.mark.parametrize("profile", ["plain", "gemini-logprobs-400"])
def test_forcing_leaves_the_tools_alone_on_the_wire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "key")
    certain = iter(["search", "price", ANSWER])

    def weights(situation: Any) -> dict[str, int]:
        name = next(certain)
        return {known: int(known == name) for known in situation.names}

    errand = Errand(1)
    with RefusingProvider(profile) as provider:
        do_errand(provider, errand, decider(tmp_path / "log", ScriptedElicitor(weights)))
        bodies = [asked.body for asked in provider.requests]
    assert all(body["tools"] == bodies[0]["tools"] for body in bodies)
    # Several calls of the chosen tool are obedience.
    assert list(dict.fromkeys([name for name, _ in errand.calls])) == ["search", "price"]
    if profile == "plain":
        assert [body["tool_choice"] for body in bodies] == [
            {"type": "function", "function": {"name": "search"}},
            {"type": "function", "function": {"name": "price"}},
            "none",
        ]
    else:
        configs = [body["toolConfig"]["functionCallingConfig"] for body in bodies]
        assert [(config["mode"], config.get("allowedFunctionNames")) for config in configs] == [
            ("ANY", ["search"]), ("ANY", ["price"]), ("NONE", None),
        ]  # fmt: skip
