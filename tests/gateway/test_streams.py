"""Streams of all three APIs, compared with the bytes that the provider sent."""

import json
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn")

from loopback_client import CHAT, MESSAGES, RESPONSES, chat_body, messages_body, responses_body
from raw_upstream import RawUpstream, http_answer
from running import gateway

from agentmark.testing import Errand, RefusingProvider

BODIES = {CHAT: chat_body, RESPONSES: responses_body, MESSAGES: messages_body}


@pytest.mark.parametrize("size", [1, 13, 4096])
@pytest.mark.parametrize("mode", ["proposals", "stated"])
@pytest.mark.parametrize("path", BODIES)
def test_a_stream_passes_byte_for_byte_however_it_is_cut(tmp_path: Path, path: str, mode: str, size: int) -> None:
    said: list[bytes] = []

    def answer(request: bytes) -> bytes:
        """The provider's answer, in chunks of this size."""
        body = request.partition(b"\r\n\r\n")[2]
        connection = HTTPConnection(urlsplit(provider.root_url).netloc, timeout=20)
        connection.request("POST", path, body, {"anthropic-version": "2023-06-01"})
        response = connection.getresponse()
        content, kind = response.read(), response.getheader("content-type") or ""
        connection.close()
        if not kind.startswith("text/event-stream"):
            return http_answer(content, f"Content-Type: {kind}", status=str(response.status))
        said.append(content)
        lines = ["HTTP/1.1 200 OK", f"Content-Type: {kind}", "Transfer-Encoding: chunked", "X-Request-Id: r"]
        pieces = [content[at : at + size] for at in range(0, len(content), size)]
        chunks = b"".join([b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces])
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + chunks + b"0\r\n\r\n"

    with (
        RefusingProvider() as provider,
        RawUpstream(answer) as upstream,
        gateway(tmp_path, upstream.root_url, "--mode", mode) as running,
    ):
        answered = running.ask(path, BODIES[path](Errand(1), stream=True))
        [record] = running.records()
    assert answered.status == 200
    assert answered.headers["x-request-id"] == "r"
    assert len(said) == (4 if mode == "proposals" else 1)
    assert answered.content in said
    assert record.marked
    names = (record.behavior or "").split(" + ")
    assert all(json.dumps(name).encode() in answered.content for name in names if not name.startswith("("))
