import gzip
import json
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from loopback_client import CHAT, MESSAGES, chat_body, messages_body
from raw_upstream import RawUpstream, http_answer
from running import gateway

from agentmark.gateway.relay import url_at
from agentmark.testing import Errand, RefusingProvider
from agentmark.testing.refusing.profiles import Profile, Refused


def test_versions_meet_once() -> None:
    assert url_at("https://api.openai.com", "/v1/models") == "https://api.openai.com/v1/models"
    assert url_at("https://api.openai.com/v1", "/v1/models?a=b") == "https://api.openai.com/v1/models?a=b"
    assert url_at("https://host/api/v1/", "/v1/models") == "https://host/api/v1/models"
    assert url_at("https://host/api", "/v1/models") == "https://host/api/v1/models"
    assert url_at("https://host/api/v1", "/v1beta/x") == "https://host/api/v1/v1beta/x"


def test_other_routes_pass_byte_for_byte(tmp_path: Path) -> None:
    content = bytes(range(256)) * 300
    packed = gzip.compress(content)
    headers = ("Content-Encoding: gzip", "X-Ratelimit-Remaining: 7", "Set-Cookie: a=1", "Set-Cookie: b=2")

    def answer(request: bytes) -> bytes:
        return http_answer(packed, *headers, "Connection: keep-alive, X-Hop", "X-Hop: 1", "Content-Type: x/y")

    with RawUpstream(answer) as upstream, gateway(tmp_path, upstream.root_url) as running:
        connection = running.connect()
        sent = {
            "authorization": "Bearer sk-1",
            "anthropic-beta": "a,b",
            "accept-encoding": "gzip, br, zstd",
            "connection": "keep-alive, x-mine",
            "x-mine": "1",
            "te": "trailers",
            "x-agentmark-session": "s",
            "content-type": "application/octet-stream",
        }
        connection.request("PUT", "/v1/files/a%2Fb?x=%20y&x=2", content, sent)
        response = connection.getresponse()
        got = response.getheaders()
        assert response.read() == packed
        assert response.status == 200
        connection.close()
    [request] = upstream.requests
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert body == content
    assert head.startswith(b"PUT /v1/files/a%2Fb?x=%20y&x=2 HTTP/1.1\r\n")
    for line in (b"authorization: bearer sk-1", b"anthropic-beta: a,b", b"accept-encoding: gzip, br, zstd"):
        assert line in lines
    assert not [line for line in lines if line.startswith((b"x-mine", b"te:", b"x-agentmark", b"user-agent"))]
    assert [value for name, value in got if name.lower() == "set-cookie"] == ["a=1", "b=2"]
    names = {name.lower(): value for name, value in got}
    assert names["x-ratelimit-remaining"] == "7"
    assert names["content-encoding"] == "gzip"
    assert "x-hop" not in names


def test_a_packed_reply_is_read_from_a_copy_and_passed_on_packed(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": '{"query": "lamp"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reply = {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    packed = gzip.compress(json.dumps(reply).encode())
    answer = http_answer(packed, "Content-Encoding: gzip", "Content-Type: application/json")
    with RawUpstream(lambda _: answer) as upstream, gateway(tmp_path, upstream.root_url) as running:
        answered = running.ask(CHAT, chat_body(Errand(1)), headers={"accept-encoding": "br, gzip;q=0.5, zstd"})
        found = running.records()
    assert answered.content == packed
    assert answered.headers["content-encoding"] == "gzip"
    assert [record.behavior for record in found] == ["search"]
    assert all(b"accept-encoding: gzip;q=0.5\r\n" in request.lower() for request in upstream.requests)


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("stream", [False, True])
def test_errors_of_the_upstream_pass_with_their_headers(tmp_path: Path, path: str, stream: bool) -> None:
    limited = Profile(name="limited", always=Refused(429, "slow down", kind="rate_limit_error", retry_after_s=7))
    body = (chat_body if path == CHAT else messages_body)(Errand(1), stream=stream)
    with RefusingProvider(limited) as provider, gateway(tmp_path, provider.root_url) as running:
        answered = running.ask(path, body)
        direct = running.__class__(running.process, provider.root_url, tmp_path).ask(path, body)
        assert running.records() == []
    assert (answered.status, answered.body) == (429, direct.body)
    assert answered.headers["retry-after"] == "7"
    assert answered.headers["retry-after-ms"] == direct.headers["retry-after-ms"]


def test_an_upstream_that_is_down_is_an_error_in_the_words_of_the_api(tmp_path: Path) -> None:
    with RawUpstream(lambda _: b"") as gone:
        url = gone.root_url
    with gateway(tmp_path, url) as running:
        said = running.ask(CHAT, chat_body(Errand(1)))
        assert (said.status, said.body["error"]["type"]) == (502, "server_error")
        said = running.ask(MESSAGES, messages_body(Errand(1)))
        assert (said.status, said.body["type"], said.body["error"]["type"]) == (502, "error", "api_error")
        assert url not in said.content.decode()
        assert running.ask("/v1/models").status == 502
        assert running.ask("/healthz").status == 200
        assert running.ask("/readyz").body == {"status": "ready"}
