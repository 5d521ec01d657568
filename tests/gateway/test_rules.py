"""Which rule a request falls under, whatever else clients have sent before."""

import json
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from loopback_client import CHAT, chat_body
from raw_upstream import RawUpstream, http_answer
from running import gateway

from agentmark.gateway.app import api_at
from agentmark.gateway.metrics import MAX_NAMES
from agentmark.gateway.settings import Rule, Settings
from agentmark.testing import Errand

# What one server or another takes for the route of chat completions.
SPELLINGS = (
    "/chat/completions",
    "/v1/chat/completions/",
    "//v1/chat/completions",
    "/v1//chat/./completions",
    "/v1/chat/completion%73",
    "/v1/chat%2Fcompletions",
    "/V1/Chat/Completions",
    "/v1/chat/completions;a=b",
    "/v1/chat/completions%20",
    "/v2/chat/completions",
    "/api/v1/chat/completions",
    "/v1beta/openai/chat/completions",
    "/openai/deployments/d/chat/completions",
)


@pytest.mark.parametrize("path", SPELLINGS)
def test_a_route_that_decides_does_so_however_it_is_spelled(path: str) -> None:
    api = api_at("POST", path)
    assert api is not None
    assert api.PATH == CHAT


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions/chatcmpl-1",
        "/v1/messages/count_tokens",
        "/v1/messages/batches",
        "/v1/responses/resp_1/cancel",
        "/v1/threads/thread_1/messages",
        "/messages/threads",
        "/v1/embeddings",
        "/v1/chatcompletions",
    ],
)
def test_other_routes_do_not(path: str) -> None:
    assert api_at("POST", path) is None


def test_a_path_passes_as_it_was_written_and_is_marked(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    reply = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [call]}}]}).encode()
    with RawUpstream(lambda _: http_answer(reply)) as upstream, gateway(tmp_path, upstream.root_url) as running:
        for path in SPELLINGS:
            running.ask(path, chat_body(Errand(1)))
        assert [asked.split(b" ")[1].decode() for asked in upstream.requests[::4]] == list(SPELLINGS)
        assert [record.marked for record in running.records()] == [True] * len(SPELLINGS)


@pytest.mark.parametrize("path", ["/v1/files/a", "//v1/files/a", "/v1/./files/a", "/v1/%66iles/a", "/v1;x/files/a"])
def test_a_rule_is_not_evaded_by_another_spelling(path: str) -> None:
    rule = Rule(path="/v1/files*", upstream="https://files.example")
    settings = Settings(upstream="https://usual.example", identity="a", rules=(rule,))
    assert settings.way(path, "").upstream == "https://files.example"
    assert settings.way("/v1/models", "").upstream == "https://usual.example"


def test_the_credential_of_the_upstream_is_not_shown_by_trace(tmp_path: Path) -> None:
    with RawUpstream(lambda asked: http_answer(asked)) as upstream, gateway(tmp_path, upstream.root_url) as running:
        answered = running.ask("/v1/models", method="TRACE")
        assert (answered.status, answered.headers["x-agentmark-error"]) == (405, "bad method")
        assert upstream.requests == []


def test_models_that_nobody_has_do_not_lead_others_astray(tmp_path: Path) -> None:
    """Labels of counts are bounded. Where a request goes, with its credential, does not hang on them."""
    with (
        RawUpstream(lambda _: http_answer(b"{}")) as usual,
        RawUpstream(lambda _: http_answer(b"{}")) as wanted,
    ):
        rules = f'[[rules]]\nmodel = "claude-*"\nupstream = "{wanted.root_url}"\nmode = "off"\n'
        (tmp_path / "gateway.toml").write_text(rules, encoding="utf-8")
        with gateway(tmp_path, usual.root_url, "--config", str(tmp_path / "gateway.toml")) as running:
            for number in range(MAX_NAMES + 1):
                running.ask(CHAT, {"model": f"none-{number}", "messages": []})
            before = len(usual.requests)
            body = chat_body(Errand(1)) | {"model": "claude-opus"}
            assert running.ask(CHAT, body).status == 200
            assert [json.loads(asked.partition(b"\r\n\r\n")[2]) for asked in wanted.requests] == [body]
            assert len(usual.requests) == before
            assert running.count("agentmark_unmarked_total", model="(other)", reason="marking is off here") == 1
