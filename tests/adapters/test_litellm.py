"""The LiteLLM adapter: the real proxy, in this process, before a provider on the loopback; and as a library."""

import asyncio
import gc
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

# The list of prices would be fetched from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    litellm = pytest.importorskip("litellm")
    proxy_server = pytest.importorskip("litellm.proxy.proxy_server")
    from fastapi.testclient import TestClient
    from litellm.integrations.custom_logger import CustomLogger

from harness import PAYLOAD, decider, records, verdict
from refusals import MODES, check, each_case, family

from agentmark import DisclosedSteps, MarkingKey, Verifier, disclose
from agentmark.adapters.litellm import AgentMarkLogger, chat
from agentmark.decide.decider import SAMPLES, Decider
from agentmark.elicit.proposals import Proposals
from agentmark.elicit.situation import ANSWER
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import Errand, FakeProvider, RefusingProvider, ScriptedElicitor
from agentmark.testing.provider import Refusal

pytestmark = pytest.mark.filterwarnings("ignore")
# Its sessions outlive the event loops of the test client, and complain.
litellm.disable_aiohttp_transport = True

SPREAD = {"stock": 3, "price": 3, "order": 3, ANSWER: 2}
SHOP = {
    "stock": lambda item: str(len(item) * 7),
    "price": lambda item: str(len(item) / 4),
    "order": lambda item: f"ordered: {item}",
}
SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": f"{name} of an item", "parameters": SCHEMA}}
    for name in SHOP
]
ASKED = {"messages": [{"role": "user", "content": "Restock."}], "tools": TOOLS}


class Model:
    """What the provider says: what the request demands, else what its script says, else what it likes. Remembers every
    request, and gives as many choices as are asked for unless it refuses to."""

    def __init__(self, script: list[str] | None = None, *, several: str = "given", obeys: bool = True) -> None:
        self.script = script
        self.several = several
        self.obeys = obeys
        self.bodies: list[dict[str, Any]] = []
        self._rng = Random(7)

    def __call__(self, body: dict[str, Any]) -> dict[str, Any] | list[dict[str, Any]] | Refusal:
        self.bodies.append(body)
        count = body.get("n") or 1
        if count > 1 and self.several == "refused":
            return Refusal(400, "Only n = 1 is supported.")
        choices = [self._choice(body) for _ in range(count if self.several == "given" else 1)]
        if "fail" in choices:
            return Refusal(400, "gone")
        if not body.get("stream"):
            listed = [
                {"index": index, "message": _message(name, body), "finish_reason": _reason(name)}
                for index, name in enumerate(choices)
            ]
            used = {
                "prompt_tokens": 100,
                "completion_tokens": 10 * len(choices),
                "total_tokens": 100 + 10 * len(choices),
            }
            return _body("chat.completion", listed, usage=used)
        return self._chunks(choices[0], body)

    def _choice(self, body: dict[str, Any]) -> str:
        choice = body.get("tool_choice")
        if self.obeys and (choice == "none" or isinstance(choice, dict)):
            return ANSWER if choice == "none" else str(choice["function"]["name"])
        if self.script is not None:
            return self.script[len(self.bodies) - 1]
        return self._rng.choices(list(SPREAD), list(SPREAD.values()))[0]

    def _chunks(self, name: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        said = _message(name, body)
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "Hm. "}, said]
        if name != ANSWER:
            [call] = said["tool_calls"]
            begun = {**call, "index": 0, "function": {**call["function"], "arguments": ""}}
            rest = {"index": 0, "function": {"arguments": call["function"]["arguments"]}}
            deltas = [{"role": "assistant", "tool_calls": [begun]}, {"tool_calls": [rest]}]
        pieces = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        pieces.append({"index": 0, "delta": {}, "finish_reason": _reason(name)})
        chunks = [_body("chat.completion.chunk", [piece]) for piece in pieces]
        if (body.get("stream_options") or {}).get("include_usage"):
            used = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            chunks.append(_body("chat.completion.chunk", [], usage=used))
        return chunks


def _message(name: str, body: dict[str, Any]) -> dict[str, Any]:
    """What a choice says. It depends on the conversation alone, so that agents that do the same are told the same."""
    step = len([said for said in body["messages"] if said["role"] == "tool"])
    if name == ANSWER:
        return {"role": "assistant", "content": f"That was step {step}."}
    function = {"name": name, "arguments": json.dumps({"item": f"item {step}"})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{step}", "type": "function", "function": function}],
    }


def _reason(name: str) -> str:
    return "stop" if name == ANSWER else "tool_calls"


def _body(kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"id": "x", "object": kind, "created": 0, "model": "m", "choices": choices, **more}


class Upstream:
    """The provider, and the model that stands behind it just now."""

    model = Model()


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider({"/v1/chat/completions": lambda body: Upstream.model(body)}) as provider:
        yield provider


@pytest.fixture(scope="module")
def client(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    where = {"model": "openai/gpt-4o", "api_base": provider.base_url, "api_key": "k", "max_retries": 0}
    config = {
        "model_list": [{"model_name": "shop", "litellm_params": where}],
        "router_settings": {"num_retries": 0},
    }
    path = tmp_path_factory.mktemp("proxy") / "config.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML.
    asyncio.run(proxy_server.initialize(config=str(path)))
    return TestClient(proxy_server.app, raise_server_exceptions=False)


# LiteLLM copies its callbacks into lists by what they are told, and stops at thirty.
CALLBACKS = (
    "callbacks",
    "input_callback",
    "success_callback",
    "failure_callback",
    "_async_success_callback",
    "_async_failure_callback",
)


@pytest.fixture(autouse=True)
def _no_callbacks_left() -> Iterator[None]:
    before = {name: list(getattr(litellm, name)) for name in CALLBACKS}
    yield
    for name, listed in before.items():
        setattr(litellm, name, listed)


@pytest.fixture(scope="module", autouse=True)
def _no_connections_left() -> Iterator[None]:
    """LiteLLM keeps a client for each event loop and closes none: they go before somebody counts them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        litellm.in_memory_llm_clients_cache.flush_cache()
        gc.collect()


def through_proxy(client: TestClient, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """The message that the proxy answers with, put together from its chunks if it streams."""
    response = client.post("/chat/completions", json={"model": "shop", **body}, headers=headers)
    assert response.status_code == 200, response.text
    if not body.get("stream"):
        said = response.json()
        assert [choice["index"] for choice in said["choices"]] == [0]
        return said["choices"][0]["message"]
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
    message: dict[str, Any] = {"role": "assistant", "content": "".join([one.get("content") or "" for one in deltas])}
    calls = [call for one in deltas for call in one.get("tool_calls") or ()]
    if calls:
        arguments = "".join([call["function"].get("arguments") or "" for call in calls])
        function = {"name": calls[0]["function"]["name"], "arguments": arguments}
        message["tool_calls"] = [{"id": calls[0]["id"], "type": "function", "function": function}]
    return message


def agent(client: TestClient, count: int, **options: Any) -> list[Any]:
    """Runs of a small agent with real tools: its conversations."""
    conversations = []
    for _ in range(count):
        messages: list[dict[str, Any]] = list(ASKED["messages"])
        while messages[-1]["role"] != "assistant" or messages[-1].get("tool_calls"):
            said = through_proxy(client, {"messages": messages, "tools": TOOLS, **options})
            messages.append({name: said[name] for name in ("role", "content", "tool_calls") if said.get(name)})
            for call in said.get("tool_calls") or ():
                result = SHOP[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        conversations.append(messages)
    return conversations


def marked_by(decided_by: Any) -> AgentMarkLogger:
    logger = AgentMarkLogger(decided_by)
    litellm.callbacks = [*litellm.callbacks, logger]
    return logger


def unmarked_again(logger: AgentMarkLogger) -> None:
    litellm.callbacks = [callback for callback in litellm.callbacks if callback is not logger]


def behind(model: Model) -> Model:
    Upstream.model = model
    return model


def chosen(log: Path) -> list[str]:
    return [record.behavior for record in records(log) if record.enforced is not False]


def at(client: TestClient) -> dict[str, Any]:
    params = proxy_server.llm_router.model_list[0]["litellm_params"]
    return {"model": "openai/gpt-4o", "api_base": params["api_base"], "api_key": "k", "max_retries": 0}


class Log(CustomLogger):
    """What LiteLLM's callbacks are told: a call, what it used, and what it cost."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[int, int, float]] = []
        self.failures = 0

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        usage = response_obj.usage
        self.calls.append((usage.prompt_tokens, usage.completion_tokens, kwargs["response_cost"]))

    async def async_log_failure_event(self, *_: Any, **__: Any) -> None:
        self.failures += 1


def calls_logged(log: Log, count: int) -> list[tuple[int, int, float]]:
    """LiteLLM logs behind the reply."""

    async def wait() -> None:
        for _ in range(100):
            if len(log.calls) >= count:
                break
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)

    asyncio.run(wait())
    return log.calls


# --- the proxy, by samples -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_marked_agent_is_identified_and_does_what_the_unmarked_one_does(
    client: TestClient, tmp_path: Path, stream: bool
) -> None:
    log, model = tmp_path / "run.jsonl", behind(Model())
    logger = marked_by(decider(log))
    marked = agent(client, 12, stream=stream)
    done = chosen(log)
    assert len(done) == len(records(log)) > 30
    assert verdict(log).payload == PAYLOAD
    # One request a step where it can ask for all samples at once, and else as many as there are samples.
    assert len(model.bodies) == (4 if stream else 1) * len(done)
    assert {body.get("n") for body in model.bodies} == {None if stream else 4}

    unmarked_again(logger)
    plain = behind(Model(done))
    assert agent(client, 12, stream=stream) == marked
    # What is asked is what the agent asks, but for how many replies.
    asked = model.bodies[::4] if stream else model.bodies
    for body, bare in zip(asked, plain.bodies, strict=True):
        assert {name: value for name, value in body.items() if name != "n"} == bare


def test_with_a_marking_key_anyone_reads_the_identity_from_a_disclosure(client: TestClient, tmp_path: Path) -> None:
    pytest.importorskip("nacl")
    log, key = tmp_path / "run.jsonl", MarkingKey(bytes(range(7, 39)))
    behind(Model())
    marked_by(decider(log, key=key))
    agent(client, 12)
    written = records(log)
    assert {record.key_id for record in written} == {key.id}
    assert Verifier(key).verify(written).payload == PAYLOAD
    steps = DisclosedSteps(disclose(written, key))
    assert Verifier(steps).verify(written).payload == PAYLOAD


@pytest.mark.parametrize("several", ["refused", "ignored"])
def test_who_gives_no_several_replies_is_asked_one_by_one_from_then_on(
    client: TestClient, tmp_path: Path, several: str
) -> None:
    log, model = tmp_path / "run.jsonl", behind(Model(several=several))
    marked_by(decider(log))
    for _ in range(3):
        through_proxy(client, ASKED)
    assert [body.get("n") for body in model.bodies] == [4, *[None] * (12 if several == "refused" else 11)]
    assert [(record.marked, record.meta["samples"]) for record in records(log)] == [(True, 4)] * 3


def test_the_turn_is_one_call_with_the_usage_and_the_price_of_all(client: TestClient, tmp_path: Path) -> None:
    seen = Log()
    litellm.callbacks = [*litellm.callbacks, seen]
    behind(Model(several="refused"))
    marked_by(decider(tmp_path / "run.jsonl"))
    response = client.post("/chat/completions", json={"model": "shop", **ASKED})
    usage = response.json()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (400, 40, 440)
    [(read, written, price)] = calls_logged(seen, 1)
    assert (read, written, seen.failures) == (400, 40, 0)
    bare = litellm.cost_per_token("openai/gpt-4o", prompt_tokens=400, completion_tokens=40)
    assert price == pytest.approx(sum(bare)) == pytest.approx(float(response.headers["x-litellm-response-cost"]))
    behind(Model())
    usage = client.post("/chat/completions", json={"model": "shop", **ASKED}).json()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (400, 40)
    fresh = marked_by(decider(tmp_path / "other.jsonl"))
    litellm.callbacks = [seen, fresh]
    usage = client.post("/chat/completions", json={"model": "shop", **ASKED}).json()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (100, 40)


def test_a_streamed_turn_says_what_all_of_it_used(client: TestClient, tmp_path: Path) -> None:
    behind(Model())
    marked_by(decider(tmp_path / "run.jsonl"))
    body = {"model": "shop", **ASKED, "stream": True, "stream_options": {"include_usage": True}}
    lines = client.post("/chat/completions", json=body).text.splitlines()
    pieces = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    used = [piece["usage"] for piece in pieces if piece.get("usage")]
    assert [(one["prompt_tokens"], one["completion_tokens"]) for one in used] == [(400, 40)]


def test_at_temperature_0_nothing_is_sampled_and_the_log_says_so(client: TestClient, tmp_path: Path) -> None:
    log, model = tmp_path / "run.jsonl", behind(Model(["price"]))
    marked_by(decider(log))
    through_proxy(client, {**ASKED, "temperature": 0})
    assert len(model.bodies) == 1
    [record] = records(log)
    assert (record.behavior, record.marked) == ("price", False)
    assert "temperature 0" in str(record.reason)


def test_tools_that_run_at_the_provider_are_not_run_four_times(client: TestClient, tmp_path: Path) -> None:
    log, model = tmp_path / "run.jsonl", behind(Model(["price"]))
    marked_by(decider(log))
    through_proxy(client, {**ASKED, "web_search_options": {}})
    assert len(model.bodies) == 1
    assert "run at the provider" in str(records(log)[0].reason)


def test_who_asks_for_several_replies_is_left_alone(
    client: TestClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, model = tmp_path / "run.jsonl", behind(Model())
    own = decider(log)
    marked_by(own)
    response = client.post("/chat/completions", json={"model": "shop", "n": 2, **ASKED}).json()
    assert len(response["choices"]) == 2
    assert [body["n"] for body in model.bodies] == [2]
    assert records(log) == []
    assert own.stats.unmarked == {"the agent asks for several replies at once": 1}
    assert "several replies" in caplog.text


def test_a_cache_of_litellms_does_not_answer_for_samples(tmp_path: Path, client: TestClient) -> None:
    log, model = tmp_path / "run.jsonl", behind(Model(several="refused"))
    marked_by(decider(log))
    litellm.cache = litellm.Cache(type="local")
    try:
        for _ in range(2):
            asyncio.run(litellm.acompletion(caching=True, **at(client), **ASKED))
    finally:
        litellm.cache = None
    assert len(model.bodies) == 1 + 4 + 4
    assert len(records(log)) == 2


# --- the proxy, by stated lists ------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_stated_list_is_followed_with_every_tool_on_offer(client: TestClient, tmp_path: Path, stream: bool) -> None:
    log, model, elicitor = tmp_path / "run.jsonl", behind(Model()), ScriptedElicitor(SPREAD)
    logger = marked_by(decider(log, elicitor))
    marked = agent(client, 8, stream=stream)
    done = chosen(log)
    assert len(done) == len(records(log)) == len(model.bodies) > 20
    assert verdict(log).payload == PAYLOAD
    for body, name in zip(model.bodies, done, strict=True):
        assert body["tools"] == TOOLS
        assert body["tool_choice"] == ("none" if name == ANSWER else {"type": "function", "function": {"name": name}})

    unmarked_again(logger)
    plain = behind(Model(done))
    assert agent(client, 8, stream=stream) == marked
    assert [body["messages"] for body in plain.bodies] == [body["messages"] for body in model.bodies]
    assert all(body["tools"] == TOOLS and "tool_choice" not in body for body in plain.bodies)

    first = elicitor.situations[0]
    assert first.names == [*SHOP, ANSWER]
    assert (first.candidates[0].description, first.candidates[0].schema) == ("stock of an item", SCHEMA)
    assert first.messages == ({"role": "user", "content": "Restock."},)


@pytest.mark.parametrize("stream", [False, True])
def test_a_disobedient_model_is_believed_and_its_steps_are_erased(
    client: TestClient, tmp_path: Path, stream: bool
) -> None:
    log, script = tmp_path / "run.jsonl", ["order"] * 30 + [ANSWER]
    behind(Model(script, obeys=False))
    marked_by(decider(log, ScriptedElicitor(SPREAD)))
    assert agent(client, 1, stream=stream)[0][2]["content"] == "ordered: item 0"
    erased = [record.step_index for record in records(log) if record.enforced is False]
    assert erased == [step for step, name in enumerate(chosen(log)) if name != script[step]]
    assert len(erased) > 15
    assert not verdict(log).accepted


def test_without_a_list_the_model_decides_or_the_call_is_refused(client: TestClient, tmp_path: Path) -> None:
    log, script = tmp_path / "open.jsonl", ["stock", ANSWER]
    no_list = ScriptedElicitor(lambda situation: "no list today")
    model = behind(Model(script))
    logger = marked_by(decider(log, no_list))
    agent(client, 1)
    assert all(body["tools"] == TOOLS and "tool_choice" not in body for body in model.bodies)
    assert [(record.behavior, record.marked) for record in records(log)] == [(name, False) for name in script]
    assert "no list today" in str(records(log)[0].reason)

    unmarked_again(logger)
    marked_by(decider(tmp_path / "closed.jsonl", no_list, fail="closed"))
    model = behind(Model(script))
    refused = client.post("/chat/completions", json={"model": "shop", **ASKED})
    assert refused.status_code == 500
    assert "no list today" in refused.text
    assert model.bodies == []


def test_a_refused_choice_is_asked_again_as_the_agent_asked(client: TestClient, tmp_path: Path) -> None:
    class Refuses(Model):
        def __call__(self, body: dict[str, Any]) -> Any:
            said = super().__call__(body)
            return Refusal(400, "this model does not support tool_choice") if "tool_choice" in body else said

    log, model = tmp_path / "run.jsonl", behind(Refuses())
    marked_by(decider(log, ScriptedElicitor({"order": 1, "stock": 0, "price": 0, ANSWER: 0}), fallback=Proposals()))
    for _ in range(2):
        through_proxy(client, ASKED)
    named, told, *later = model.bodies
    assert named["tool_choice"] == {"type": "function", "function": {"name": "order"}}
    assert told["messages"][-1] == {"role": "user", "content": "Call order now."}
    assert all("tool_choice" not in body and body["tools"] == TOOLS for body in [told, *later])


# --- what the agent decided ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "candidates"),
    [
        ({"tool_choice": "required"}, list(SHOP)),
        ({"tool_choice": "auto"}, [*SHOP, ANSWER]),
        ({"tool_choice": {"type": "auto"}}, [*SHOP, ANSWER]),
        ({"tool_choice": "none"}, None),
        ({"tool_choice": {"type": "function", "function": {"name": "price"}}}, None),
        ({"tool_choice": "required", "tools": TOOLS[:1]}, None),
        ({"tools": None}, None),
    ],
)
def test_the_users_own_tool_choice_stands(
    client: TestClient, tmp_path: Path, options: dict[str, Any], candidates: list[str] | None
) -> None:
    log, elicitor, model = tmp_path / "run.jsonl", ScriptedElicitor(), behind(Model(["price"], obeys=False))
    marked_by(decider(log, elicitor))
    body = {key: value for key, value in {"tools": TOOLS, **options}.items() if value is not None}
    through_proxy(client, {"messages": [{"role": "user", "content": "Price?"}], **body})
    assert [one.names for one in elicitor.situations] == ([] if candidates is None else [candidates])
    assert len(model.bodies) == 1
    if candidates is None:
        assert {key: model.bodies[0][key] for key in body} == body
        assert records(log) == []


def test_a_call_that_fails_is_the_agents_own_error(client: TestClient, tmp_path: Path) -> None:
    for name, elicitor in (("samples", None), ("stated", ScriptedElicitor(SPREAD))):
        own = decider(tmp_path / f"{name}.jsonl", elicitor)
        behind(Model(["fail"] * 20, obeys=False))
        logger = marked_by(own)
        assert client.post("/chat/completions", json={"model": "shop", **ASKED}).status_code == 400
        with pytest.raises(litellm.BadRequestError, match="gone"):
            asyncio.run(logger.acompletion(**ASKED, **at(client)))
        own.close()
        unmarked_again(logger)
    assert records(tmp_path / "samples.jsonl") == []
    assert [record.enforced for record in records(tmp_path / "stated.jsonl")] == [None, False]


def test_a_routers_fallback_is_marked_where_it_goes(provider: FakeProvider, tmp_path: Path) -> None:
    """What fails at one deployment is tried at the next, by the router, with samples of that one."""
    log, model = tmp_path / "run.jsonl", behind(Model())
    marked_by(decider(log))
    where = {"api_base": provider.base_url, "api_key": "k", "max_retries": 0}
    with RefusingProvider("bad-key") as gone:
        router = litellm.Router(
            model_list=[
                {"model_name": "a", "litellm_params": {**where, "model": "openai/a", "api_base": gone.base_url}},
                {"model_name": "b", "litellm_params": {**where, "model": "openai/b"}},
            ],
            fallbacks=[{"a": ["b"]}],
            num_retries=0,
        )
        asyncio.run(router.acompletion(model="a", **ASKED))
        assert len(gone.requests) == 1
    assert [body["model"] for body in model.bodies] == ["b"]
    assert [record.meta["model"] for record in records(log)] == ["openai/b"]


# --- tenants and runs ----------------------------------------------------------------------------------------------


def test_tenants_have_deciders_of_their_own(client: TestClient, tmp_path: Path) -> None:
    log, callers = tmp_path / "run.jsonl", []

    def of(caller: Any) -> Decider:
        callers.append(caller)
        return own

    own = decider(log, ScriptedElicitor(SPREAD))
    behind(Model())
    marked_by(of)
    agent(client, 1)
    assert len(callers) == len(records(log))
    assert {type(caller).__name__ for caller in callers} == {"UserAPIKeyAuth"}


def test_records_say_who_called_and_in_which_run(client: TestClient, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    behind(Model())
    marked_by(decider(log))
    through_proxy(client, {**ASKED, "user": "ann", "metadata": {"session_id": "chat 1", "agent_name": "buyer"}})
    through_proxy(client, {**ASKED, "user": "ann"}, **{"x-litellm-session-id": "chat 2"})
    through_proxy(client, ASKED)
    through_proxy(client, ASKED)
    said = [record.meta for record in records(log)]
    assert [one.get("run_id") for one in said] == ["chat 1", "chat 2", None, None]
    assert [one.get("on_behalf_of") for one in said[:2]] == ["ann", "ann"]
    assert said[0]["performed_by"] == "buyer"
    sessions = [record.session for record in records(log)]
    assert len(set(sessions)) == 3
    assert sessions[2] == sessions[3]


def test_thirty_runs_at_once_are_thirty_sessions(client: TestClient, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    behind(Model())
    logger = AgentMarkLogger(decider(log))

    async def run(number: int) -> None:
        for _ in range(3):
            await logger.acompletion(**ASKED, **at(client), metadata={"session_id": f"run {number}"})
            await asyncio.sleep(0)

    async def all_runs() -> None:
        await asyncio.gather(*[run(number) for number in range(30)])

    asyncio.run(all_runs())
    by_run: dict[str, list[Any]] = {}
    for record in records(log):
        by_run.setdefault(record.meta["run_id"], []).append(record)
    assert len(by_run) == 30
    assert all(len({record.session for record in taken}) == 1 for taken in by_run.values())
    assert len({record.session for record in records(log)}) == 30
    assert all([record.step_index for record in taken] == [0, 1, 2] for taken in by_run.values())


def test_a_routers_retry_repeats_the_decision(provider: FakeProvider, tmp_path: Path) -> None:
    class Falters(Model):
        def __call__(self, body: dict[str, Any]) -> Any:
            said = super().__call__(body)
            return Refusal(503, "busy") if len(self.bodies) == 1 else said

    log, elicitor, model = tmp_path / "run.jsonl", ScriptedElicitor(SPREAD), behind(Falters())
    marked_by(decider(log, elicitor))
    where = {"model": "openai/a", "api_base": provider.base_url, "api_key": "k", "max_retries": 0}
    router = litellm.Router([{"model_name": "a", "litellm_params": where}], num_retries=2, retry_after=0)
    asyncio.run(router.acompletion(model="a", **ASKED, metadata={"session_id": "s"}))
    assert len(elicitor.situations) == 1
    assert len(model.bodies) == 2
    assert model.bodies[0] == model.bodies[1]
    assert [(record.marked, record.enforced) for record in records(log)] == [(True, None)]


def test_a_call_that_somebody_changed_is_out_of_the_evidence(client: TestClient, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    behind(Model(["stock"] * 9))
    logger = AgentMarkLogger(decider(log))

    async def run() -> None:
        session = {"metadata": {"session_id": "s"}}
        said = (await logger.acompletion(**ASKED, **at(client), **session)).choices[0].message.model_dump()
        said["tool_calls"][0]["function"]["name"] = "price"
        result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "4"}
        messages = [*ASKED["messages"], said, result]
        await logger.acompletion(messages=messages, tools=TOOLS, **at(client), **session)

    asyncio.run(run())
    first, edited, _ = records(log)
    assert (first.behavior, first.enforced) == ("stock", None)
    assert (edited.enforced, edited.meta["did"], edited.meta["edited"]) == (False, "price", True)


# --- as a library --------------------------------------------------------------------------------------------------


async def shown(response: Any) -> list[str]:
    """What a reply does, in pieces or whole."""
    if not hasattr(response, "__aiter__"):
        said = [response.choices[0].message]
    else:
        said = [choice.delta async for chunk in response for choice in chunk.choices]
    return [call.function.name for one in said for call in one.tool_calls or () if call.function.name] or [ANSWER]


@pytest.mark.parametrize("elicitor", [None, ScriptedElicitor(SPREAD)], ids=["samples", "stated"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_as_a_library(client: TestClient, tmp_path: Path, stream: bool, elicitor: Any) -> None:
    log = tmp_path / "run.jsonl"
    behind(Model())
    own = decider(log, elicitor)
    logger = AgentMarkLogger(own)
    seen = Log()
    litellm.callbacks = [*litellm.callbacks, seen]

    async def call() -> list[str]:
        usage = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        return await shown(await logger.acompletion(**ASKED, **usage, **at(client)))

    async def calls() -> list[list[str]]:
        done = [await call() for _ in range(12)]
        await asyncio.sleep(0.3)
        return done

    done = asyncio.run(calls())
    assert done == [[name] for name in chosen(log)]
    assert len(records(log)) == 12
    # To LiteLLM's callbacks a turn is one call, with the usage of all of it.
    samples = 4 if elicitor is None else 1
    read = 100 if elicitor is None and not stream else 100 * samples
    assert [(read, written) for read, written, _ in seen.calls] == [(read, 10 * samples)] * 12


def test_a_stream_is_passed_on_when_its_only_call_begins(client: TestClient, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    behind(Model(["stock"] * 4))
    logger = AgentMarkLogger(decider(log))

    async def run() -> list[str]:
        one_call = {"parallel_tool_calls": False, "stream": True}
        response = await logger.acompletion(**ASKED, **one_call, **at(client))
        assert not response._turn.reply.is_at_end
        return await shown(response)

    assert asyncio.run(run()) == ["stock"]
    assert chosen(log) == ["stock"]


@pytest.mark.parametrize("ending", ["closed", "unread", "dropped", "broken"])
def test_a_stream_that_is_not_read_to_its_end_has_done_nothing(client: TestClient, tmp_path: Path, ending: str) -> None:
    log = tmp_path / "run.jsonl"
    behind(Model())
    logger = AgentMarkLogger(decider(log, ScriptedElicitor(SPREAD)))

    async def run() -> None:
        response = await logger.acompletion(**ASKED, stream=True, **at(client))
        if ending != "unread":
            await anext(response)
        if ending == "closed":
            await response.aclose()
        if ending == "broken":

            async def breaks() -> Any:
                raise OSError("gone")
                yield

            response._pieces = breaks()
            with pytest.raises(OSError, match="gone"):
                await anext(response)
        del response
        gc.collect()

    asyncio.run(run())
    gc.collect()
    assert [record.enforced for record in records(log)] == [None, False]


@pytest.mark.parametrize("stream", [False, True])
def test_a_custom_tool_is_the_agents_own(tmp_path: Path, stream: bool) -> None:
    log, sql = tmp_path / "run.jsonl", {"type": "custom", "custom": {"name": "sql", "description": "Any query."}}
    call = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    bodies = []

    def answer(body: dict[str, Any]) -> Any:
        bodies.append(body)
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
        if not stream:
            choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
            return _body("chat.completion", [choice], usage={"prompt_tokens": 1, "completion_tokens": 1})
        return [_body("chat.completion.chunk", [{"index": 0, "delta": said, "finish_reason": "tool_calls"}])]

    logger = AgentMarkLogger(decider(log, ScriptedElicitor({"sql": 1, "stock": 0, ANSWER: 0})))

    async def run(base_url: str) -> None:
        where = {"model": "openai/gpt-5", "api_base": base_url, "api_key": "k"}
        response = await logger.acompletion(messages=[], tools=[sql, TOOLS[0]], stream=stream, **where)
        if stream:
            _ = [chunk async for chunk in response]

    with FakeProvider({"/v1/chat/completions": answer}) as upstream:
        asyncio.run(run(upstream.base_url))
    assert bodies[0]["tools"] == [sql, TOOLS[0]]
    # LiteLLM sends no choice of a custom tool, so the model is told.
    assert bodies[0]["messages"][-1]["content"] == "Call sql now."
    assert [(record.behavior, record.enforced) for record in records(log)] == [("sql", None)]


# --- side calls ----------------------------------------------------------------------------------------------------


def test_the_agents_own_model_is_asked_aside_with_its_own_credentials(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    said = json.dumps({"stock": 0, "price": 0, "order": 1, ANSWER: 0})
    bodies: list[dict[str, Any]] = []
    keys = []

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        bodies.append(body)
        forced = isinstance(body.get("tool_choice"), dict)
        message = _message("order", body) if forced else {"role": "assistant", "content": said}
        used = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        return _body("chat.completion", [{"index": 0, "message": message, "finish_reason": "stop"}], usage=used)

    logger = AgentMarkLogger(decider(log, Verbalised()))
    thought = {**_message("stock", ASKED), "reasoning_content": "They may be out of tea."}
    result = {"role": "tool", "tool_call_id": "call_0", "content": "7"}
    messages = [*ASKED["messages"], thought, result]
    with FakeProvider({"/v1/chat/completions": answer}, on_headers=lambda said: keys.append(said)) as upstream:
        where = {"model": "deepseek/deepseek-chat", "api_base": upstream.base_url, "api_key": "the agent's"}
        reply = asyncio.run(logger.acompletion(messages=messages, tools=TOOLS, **where))
    aside, asked = bodies
    assert {headers["Authorization"] for headers in keys} == {"Bearer the agent's"}
    assert [one["role"] for one in aside["messages"][:3]] == ["user", "assistant", "tool"]
    # Side calls begin as the agent's own requests do, and send back what the model thought.
    assert aside["messages"][:3] == asked["messages"]
    assert aside["messages"][1]["reasoning_content"] == thought["reasoning_content"]
    assert aside["tools"] == asked["tools"] == TOOLS
    assert aside["tool_choice"] == "none"
    assert records(log)[0].meta["model"] == "deepseek/deepseek-chat"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (14, 6)


def test_any_model_of_litellms_can_be_asked_on_the_side(client: TestClient, tmp_path: Path) -> None:
    said = json.dumps({"stock": 0, "price": 0, "order": 1, ANSWER: 0})
    elicitor = Verbalised(chat("openai/other", mock_response=said))
    log, model = tmp_path / "run.jsonl", behind(Model())
    marked_by(decider(log, elicitor))
    message = through_proxy(client, ASKED)
    assert message["tool_calls"][0]["function"]["name"] == "order"
    assert len(model.bodies) == 1
    assert records(log)[0].meta["model"] == "openai/other"


# --- the whole -----------------------------------------------------------------------------------------------------


def test_the_proxy_finds_the_plugin_in_its_config(client: TestClient, provider: FakeProvider, tmp_path: Path) -> None:
    (tmp_path / "shop_hooks.py").write_text(
        "from harness import decider\nfrom pathlib import Path\n"
        "from agentmark.adapters.litellm import AgentMarkLogger\n"
        "handler = AgentMarkLogger(decider(Path(__file__).with_name('run.jsonl')))\n"
    )
    where = {"model": "openai/m", "api_base": provider.base_url, "api_key": "k", "max_retries": 0}
    config = {
        "model_list": [{"model_name": "shop", "litellm_params": where}],
        "litellm_settings": {"callbacks": "shop_hooks.handler"},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    asyncio.run(proxy_server.initialize(config=str(tmp_path / "config.yaml")))
    behind(Model())
    agent(client, 1)
    assert records(tmp_path / "run.jsonl")[-1].behavior == ANSWER


def reached(provider: RefusingProvider) -> dict[str, Any]:
    """The provider of a profile as LiteLLM reaches it, by the API that it speaks."""
    profile = provider.profile.name
    api = family(profile)
    if api == "anthropic":
        where = {"model": "anthropic/claude-sonnet-4-5", "api_base": provider.anthropic_url}
    elif api == "gemini":
        where = {"model": "gemini/gemini-2.5-flash", "api_base": provider.gemini_url}
    elif profile.startswith("deepseek"):
        where = {"model": "deepseek/deepseek-chat", "api_base": provider.base_url}
    else:
        where = {"model": "openai/gpt-4o", "api_base": provider.base_url}
    return {**where, "api_key": "k", "max_retries": 2}


async def do(errand: Errand, ask: Any, *, stream: bool) -> str | None:
    """An agent's loop."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": errand.task}]
    for _ in range(40):
        response = await ask(messages=messages, tools=errand.chat_tools, stream=stream)
        if stream:
            response = litellm.stream_chunk_builder([chunk async for chunk in response], messages=messages)
        [choice] = response.choices
        messages.append(choice.message.model_dump(exclude_none=True))
        if not choice.message.tool_calls:
            return choice.message.content
        for call in choice.message.tool_calls:
            result = errand.call(call.function.name, json.loads(call.function.arguments or "{}"))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return None


def by_callback(provider: RefusingProvider, errand: Errand, marked: Decider | None) -> str | None:
    """As the proxy does it: a router, and the plugin among the callbacks."""
    before = list(litellm.callbacks)
    if marked is not None:
        litellm.callbacks = [*before, AgentMarkLogger(marked)]

    async def run() -> str | None:
        router = litellm.Router([{"model_name": "m", "litellm_params": reached(provider)}], num_retries=1)

        async def ask(**request: Any) -> Any:
            return await router.acompletion(model="m", **request)

        return await do(errand, ask, stream=provider.profile.name == "stream-cut")

    try:
        return asyncio.run(run())
    finally:
        litellm.callbacks = before


def by_program(provider: RefusingProvider, errand: Errand, marked: Decider | None) -> str | None:
    ask = litellm.acompletion if marked is None else AgentMarkLogger(marked).acompletion

    async def asked(**request: Any) -> Any:
        return await ask(**reached(provider), **request)

    # Clients are kept by event loop, and a new loop may look like one that is gone.
    litellm.in_memory_llm_clients_cache.flush_cache()
    return asyncio.run(do(errand, asked, stream=True))


@each_case
def test_no_refusal_breaks_the_agent(profile: str, mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    row = check("litellm", profile, mode, by_callback, tmp_path=tmp_path, caplog=caplog)
    # Where it fails with the mark it fails without: every agent with these keys, and one whose streams break.
    assert row.finished or profile in ("bad-key", "no-such-model", "stream-cut")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("profile", ["plain", "claude-preserved-thinking", "deepseek-wants-reasoning"])
def test_no_refusal_breaks_a_program_that_streams(profile: str, mode: str, tmp_path: Path) -> None:
    with RefusingProvider(profile) as provider, decider(tmp_path / "run.jsonl", MODES[mode](), fallback=SAMPLES) as own:
        errand = Errand(1)
        assert errand.finished(by_program(provider, errand, own))
        assert own.stats.marked_share == 1
        # A step at which forcing was found to be refused was left to the model, which may go another way.
        assert own.stats.disobeyed <= 1
