from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from loopback_client import CHAT, chat_body
from raw_upstream import RawUpstream, http_answer
from running import eventually, gateway
from test_replies import JSON, STREAM, calls_at_once, reply_of

from agentmark.gateway.json_text import MAX_PARTS, TooManyPartsError, json_value, model_in
from agentmark.testing import Errand

LISTS = b"[" + b",".join([b"[]"] * 3_000_000) + b"]"


def peak_kb(process: int) -> int:
    """The most memory that a process has had."""
    return int(Path(f"/proc/{process}/status").read_text(encoding="ascii").partition("VmHWM:")[2].split()[0])


def test_a_text_is_read_to_a_limit_in_parts() -> None:
    assert len(json_value(b"[" + b"1," * MAX_PARTS + b"1]")) == MAX_PARTS + 1
    with pytest.raises(TooManyPartsError):
        json_value(b"[" + b"1," * (MAX_PARTS + 1) + b"1]")
    for text in (b"", b"{", b"NaN", b"[" * 100_000, b"\xff", b"1e999"):
        with pytest.raises(ValueError, match="no JSON"):
            json_value(text)
    assert model_in(b'{"pad": ' + LISTS + b', "model": "m"}') == "m"
    assert model_in(b'{"model": ["m"]}') is None
    assert model_in(b"[1]") is None


def test_a_request_made_to_cost_memory_passes_unread(tmp_path: Path) -> None:
    """It goes where its model goes, unmarked, and takes little more than its bytes."""
    with (
        RawUpstream(lambda _: http_answer(b"{}")) as usual,
        RawUpstream(lambda _: http_answer(reply_of("search"), JSON)) as wanted,
    ):
        rules = f'[[rules]]\nmodel = "claude-*"\nupstream = "{wanted.root_url}"\n'
        (tmp_path / "gateway.toml").write_text(rules, encoding="utf-8")
        body = b'{"model": "claude-x", "pad": ' + LISTS + b"}"
        with gateway(tmp_path, usual.root_url, "--config", str(tmp_path / "gateway.toml")) as running:
            before = peak_kb(running.process.pid)
            assert running.ask(CHAT, body).content == reply_of("search")
            assert running.ask("/decide", body).status == 400
            reason = "the request has more parts than are read"
            assert running.count("agentmark_unmarked_total", reason=reason) == 1
            assert peak_kb(running.process.pid) - before < 100_000
        assert wanted.requests[0].endswith(body)
        assert usual.requests == []


def test_a_reply_made_to_cost_memory_passes_unread(tmp_path: Path) -> None:
    body = b'{"pad": ' + LISTS + b"}"
    with RawUpstream(lambda _: http_answer(body, JSON)) as upstream, gateway(tmp_path, upstream.root_url) as running:
        before = peak_kb(running.process.pid)
        assert running.ask(CHAT, chat_body(Errand(1))).content == body
        assert [record.marked for record in running.records()] == [False]
        # Four samples of twelve megabytes.
        assert peak_kb(running.process.pid) - before < 250_000


def test_a_stream_that_goes_on_and_on_is_read_no_further_than_the_limit(tmp_path: Path) -> None:
    """It goes out as it comes, and what it does at its end nobody has seen."""
    first, _, rest = calls_at_once("search").partition(b"\n\n")
    body = first + b"\n\n" + b'data: {"choices": []}\n\n' * 100_000 + rest
    asked = chat_body(Errand(1), stream=True, parallel_tool_calls=False)
    with (
        RawUpstream(lambda _: http_answer(body, STREAM)) as upstream,
        gateway(tmp_path, upstream.root_url, "--max-reply", "1000000") as running,
    ):
        assert running.ask(CHAT, asked).content == body
        assert eventually(lambda: [record.enforced for record in running.records()] == [None, False])
