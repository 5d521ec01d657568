"""The LiteLLM adapter: the real proxy, in this process, before a provider on the loopback; and as a library."""

import asyncio
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# The list of prices would be fetched from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    litellm = pytest.importorskip("litellm")
    proxy_server = pytest.importorskip("litellm.proxy.proxy_server")
    from fastapi.testclient import TestClient

from harness import PAYLOAD, decider, records, run_page, verdict

from agentmark.adapters.litellm import AgentMarkLogger, chat
from agentmark.decide.decider import Decider
from agentmark.elicit.situation import ANSWER
from agentmark.elicit.verbalised import Verbalised
from agentmark.testing import FakeProvider, ScriptedElicitor
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


class Model:
    """What the provider says: what the request demands, or what its script says. Remembers every request."""

    def __init__(self, script: list[str] | None = None) -> None:
        self.script = script
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> dict[str, Any] | list[dict[str, Any]] | Refusal:
        step = len(self.bodies)
        self.bodies.append(body)
        choice = body.get("tool_choice")
        demanded = choice["function"]["name"] if isinstance(choice, dict) else ANSWER
        name = demanded if self.script is None else self.script[step]
        if name == "fail":
            return Refusal(400, "gone")
        said: dict[str, Any] = {"role": "assistant", "content": f"That was step {step}."}
        if name != ANSWER:
            function = {"name": name, "arguments": json.dumps({"item": f"item {step}"})}
            calls = [{"index": 0, "id": f"call {step}", "type": "function", "function": function}]
            said = {"role": "assistant", "content": None, "tool_calls": calls}
        reason = "stop" if name == ANSWER else "tool_calls"
        if not body.get("stream"):
            return self.body("chat.completion", {"message": said, "finish_reason": reason})
        deltas = [{"role": "assistant", "content": "Hm. "}, said] if name == ANSWER else [said]
        if name != ANSWER:
            begun = {**calls[0], "function": {**function, "arguments": ""}}
            rest = {"index": 0, "function": {"arguments": function["arguments"]}}
            deltas = [{"role": "assistant", "tool_calls": [begun]}, {"tool_calls": [rest]}]
        chunks = [self.body("chat.completion.chunk", {"delta": delta, "finish_reason": None}) for delta in deltas]
        return [*chunks, self.body("chat.completion.chunk", {"delta": {}, "finish_reason": reason})]

    @staticmethod
    def body(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
        usage = {} if kind.endswith("chunk") else {"usage": dict.fromkeys(["prompt_tokens", "completion_tokens"], 1)}
        return {"id": "x", "object": kind, "created": 0, "model": "m", "choices": [{"index": 0, **choice}], **usage}


class Upstream:
    """The provider, and the model that stands behind it just now."""

    model = Model()


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider({"/v1/chat/completions": lambda body: Upstream.model(body)}) as provider:
        yield provider


@pytest.fixture(scope="module")
def client(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    where = {"model": "openai/m", "api_base": provider.base_url, "api_key": "k", "max_retries": 0}
    config = {"model_list": [{"model_name": "shop", "litellm_params": where}], "router_settings": {"num_retries": 0}}
    path = tmp_path_factory.mktemp("proxy") / "config.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML.
    asyncio.run(proxy_server.initialize(config=str(path)))
    return TestClient(proxy_server.app, raise_server_exceptions=False)


@pytest.fixture(autouse=True)
def _no_callbacks_left() -> Iterator[None]:
    before = list(litellm.callbacks)
    yield
    litellm.callbacks = before


def through_proxy(client: TestClient, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """The message that the proxy answers with, put together from its chunks if it streams."""
    response = client.post("/chat/completions", json={"model": "shop", **body}, headers=headers)
    assert response.status_code == 200, response.text
    if not body.get("stream"):
        return response.json()["choices"][0]["message"]
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
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Restock."}]
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


def behind(model: Model) -> Model:
    Upstream.model = model
    return model


def chosen(log: Path) -> list[str]:
    return [record.behavior for record in records(log) if record.enforced is not False]


@pytest.mark.parametrize("stream", [False, True])
def test_a_marked_agent_is_identified_and_does_what_the_unmarked_one_does(
    client: TestClient, tmp_path: Path, stream: bool
) -> None:
    log, model, elicitor = tmp_path / "run.jsonl", behind(Model()), ScriptedElicitor(SPREAD)
    logger = marked_by(decider(log, elicitor))
    marked = agent(client, 8, stream=stream)
    done = chosen(log)
    assert len(done) == len(records(log)) == len(model.bodies) > 20
    assert verdict(log).payload == PAYLOAD
    for body, name in zip(model.bodies, done, strict=True):
        offered = [tool["function"]["name"] for tool in body["tools"]]
        assert offered == (list(SHOP) if name == ANSWER else [name])
        assert body["tool_choice"] == ("none" if name == ANSWER else {"type": "function", "function": {"name": name}})

    litellm.callbacks = [one for one in litellm.callbacks if one is not logger]
    plain = behind(Model(done))
    assert agent(client, 8, stream=stream) == marked
    assert [body["messages"] for body in plain.bodies] == [body["messages"] for body in model.bodies]
    assert all(body["tools"] == TOOLS and "tool_choice" not in body for body in plain.bodies)

    first = elicitor.situations[0]
    assert first.names == [*SHOP, ANSWER]
    assert (first.candidates[0].description, first.candidates[0].schema) == ("stock of an item", SCHEMA)
    assert first.messages == ({"role": "user", "content": "Restock."},)
    assert not logger._open


@pytest.mark.parametrize("stream", [False, True])
def test_a_disobedient_model_is_believed_and_its_steps_are_erased(
    client: TestClient, tmp_path: Path, stream: bool
) -> None:
    log, script = tmp_path / "run.jsonl", ["order"] * 30 + [ANSWER]
    behind(Model(script))
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

    litellm.callbacks = [one for one in litellm.callbacks if one is not logger]
    marked_by(decider(tmp_path / "closed.jsonl", no_list, fail="closed"))
    model = behind(Model(script))
    refused = client.post("/chat/completions", json={"model": "shop", "messages": [], "tools": TOOLS})
    assert refused.status_code == 500
    assert "no list today" in refused.text
    assert model.bodies == []


@pytest.mark.parametrize(
    ("options", "candidates"),
    [
        ({"tool_choice": "required"}, list(SHOP)),
        ({"tool_choice": "auto"}, [*SHOP, ANSWER]),
        ({"tool_choice": "none"}, None),
        ({"tool_choice": {"type": "function", "function": {"name": "price"}}}, None),
        ({"tool_choice": "required", "tools": TOOLS[:1]}, None),
        ({"tools": None}, None),
    ],
)
def test_the_users_own_tool_choice_stands(
    client: TestClient, tmp_path: Path, options: dict[str, Any], candidates: list[str] | None
) -> None:
    log, elicitor, model = tmp_path / "run.jsonl", ScriptedElicitor(), behind(Model(["price"]))
    marked_by(decider(log, elicitor))
    body = {key: value for key, value in {"tools": TOOLS, **options}.items() if value is not None}
    through_proxy(client, {"messages": [{"role": "user", "content": "Price?"}], **body})
    assert [one.names for one in elicitor.situations] == ([] if candidates is None else [candidates])
    if candidates is None:
        assert {key: model.bodies[0][key] for key in body} == body
        assert records(log) == []


def test_a_call_that_fails_has_done_nothing(client: TestClient, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    behind(Model(["fail", "fail"]))
    logger = marked_by(decider(log, ScriptedElicitor(SPREAD)))
    asked = {"messages": [{"role": "user", "content": "Restock."}], "tools": TOOLS}
    assert client.post("/chat/completions", json={"model": "shop", **asked}).status_code == 400
    with pytest.raises(litellm.BadRequestError, match="gone"):
        asyncio.run(logger.acompletion(model="openai/m", **asked, **at(client)))
    assert [record.enforced for record in records(log)] == [None, False] * 2
    assert not logger._open


def at(client: TestClient) -> dict[str, Any]:
    params = proxy_server.llm_router.model_list[0]["litellm_params"]
    return {"api_base": params["api_base"], "api_key": "k", "max_retries": 0}


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


def test_calls_under_one_id_at_once_are_not_mixed_up(tmp_path: Path) -> None:
    """Clients may choose the id. The second call is left alone; the first is judged as ever."""

    async def run() -> list[Any]:
        logger = AgentMarkLogger(decider(tmp_path / "run.jsonl", ScriptedElicitor(SPREAD)))
        data = {"litellm_call_id": "1", "messages": [], "tools": TOOLS}
        forced = [await logger.async_pre_call_hook(None, None, data, "acompletion") for _ in range(2)]
        await logger.async_post_call_failure_hook(data, OSError(), None)
        forced.append(await logger.async_pre_call_hook(None, None, data, "aresponses"))
        return [*forced, await logger.async_pre_call_hook(None, None, data, "acompletion")]

    forced = asyncio.run(run())
    assert [one is None for one in forced] == [False, True, True, False]
    assert [record.enforced for record in records(tmp_path / "run.jsonl")] == [None, False, None]


@pytest.mark.parametrize("stream", [False, True])
def test_as_a_library(client: TestClient, tmp_path: Path, stream: bool) -> None:
    log, model = tmp_path / "run.jsonl", behind(Model())
    logger = AgentMarkLogger(decider(log, ScriptedElicitor(SPREAD)))

    async def call() -> list[str | None]:
        asked = {"messages": [{"role": "user", "content": "Restock."}], "tools": TOOLS, "stream": stream}
        response = await logger.acompletion(model="openai/m", **asked, **at(client))
        said = [chunk.choices[0].delta async for chunk in response] if stream else [response.choices[0].message]
        return [call.function.name for one in said for call in one.tool_calls or () if call.function.name] or [ANSWER]

    async def cut_off() -> None:
        chunks = await logger.acompletion(model="openai/m", messages=[], tools=TOOLS, stream=True, **at(client))
        await anext(chunks)
        await chunks.aclose()

    done = [asyncio.run(call()) for _ in range(12)]
    assert done == [[name] for name in chosen(log)]
    assert len(records(log)) == len(model.bodies) == 12
    asyncio.run(cut_off())
    assert [record.enforced for record in records(log)][-2:] == [None, False]


def test_tools_that_run_at_the_provider_stay(tmp_path: Path) -> None:
    hosted = {"type": "web_search"}
    for weights in ({ANSWER: 1, "stock": 0, "price": 0, "order": 0}, {ANSWER: 0, "stock": 1, "price": 0, "order": 0}):
        logger = AgentMarkLogger(decider(tmp_path / "run.jsonl", ScriptedElicitor(weights)))
        data = {"litellm_call_id": "1", "messages": [], "tools": [hosted, *TOOLS]}
        forced = asyncio.run(logger.async_pre_call_hook(None, None, data, "acompletion"))
        assert forced is not None
        assert forced["tools"] == ([hosted] if weights[ANSWER] else [hosted, TOOLS[0]])
        assert ("tool_choice" in forced) != bool(weights[ANSWER])


@pytest.mark.parametrize("stream", [False, True])
def test_a_custom_tool_is_the_agents_own(tmp_path: Path, stream: bool) -> None:
    log, sql = tmp_path / "run.jsonl", {"type": "custom", "custom": {"name": "sql", "description": "Any query."}}
    logger = AgentMarkLogger(decider(log, ScriptedElicitor({"sql": 1, "stock": 0, ANSWER: 0})))
    call = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}

    async def run() -> Any:
        data = {"litellm_call_id": "1", "messages": [], "tools": [sql, TOOLS[0]]}
        forced = await logger.async_pre_call_hook(None, None, data, "acompletion")
        if stream:
            chunk = litellm.ModelResponseStream(choices=[{"index": 0, "delta": said, "finish_reason": "tool_calls"}])

            async def chunks() -> Any:
                yield chunk

            _ = [one async for one in logger.async_post_call_streaming_iterator_hook(None, chunks(), data)]
        else:
            response = litellm.ModelResponse(choices=[{"message": said, "finish_reason": "tool_calls"}])
            await logger.async_post_call_success_hook(data, None, response)
        return forced

    forced = asyncio.run(run())
    assert forced["tools"] == [sql]
    assert forced["tool_choice"] == {"type": "custom", "custom": {"name": "sql"}}
    assert [(record.behavior, record.enforced) for record in records(log)] == [("sql", None)]


def test_any_model_of_litellms_can_be_asked_on_the_side(client: TestClient, tmp_path: Path) -> None:
    said = json.dumps({"stock": 0, "price": 0, "order": 1, ANSWER: 0})
    elicitor = Verbalised(chat("openai/other", mock_response=said))
    log, model = tmp_path / "run.jsonl", behind(Model())
    marked_by(decider(log, elicitor))
    message = through_proxy(client, {"messages": [{"role": "user", "content": "Restock."}], "tools": TOOLS})
    assert message["tool_calls"][0]["function"]["name"] == "order"
    assert len(model.bodies) == 1
    assert records(log)[0].meta["model"] == "openai/other"


def test_the_proxy_finds_the_plugin_in_its_config(client: TestClient, provider: FakeProvider, tmp_path: Path) -> None:
    (tmp_path / "shop_hooks.py").write_text(
        "from harness import decider\nfrom pathlib import Path\n"
        "from agentmark.adapters.litellm import AgentMarkLogger\nfrom agentmark.testing import ScriptedElicitor\n"
        "handler = AgentMarkLogger(decider(Path(__file__).with_name('run.jsonl'), ScriptedElicitor()))\n"
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


def test_the_page_runs(tmp_path: Path) -> None:
    assert "Attributed" in run_page("litellm", tmp_path)
