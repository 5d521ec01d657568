"""Replies as no fake makes them, byte by byte: what comes through is the same, and a copy is read all the same."""

import gzip
import itertools
import json
import zlib
from collections.abc import Callable
from http.client import IncompleteRead
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from loopback_client import CHAT, RESPONSES, chat_body, responses_body
from raw_upstream import RawUpstream, http_answer
from running import gateway

from agentmark.testing import Errand

STREAM, JSON = "Content-Type: text/event-stream", "Content-Type: application/json"
NAMES = ("search", "look", "buy")


def stream_of(name: str, *, end: str = "\n", is_done: bool = True, last: str = "tool_calls") -> bytes:
    """A streamed chat completion that calls a tool."""

    def chunk(delta: object, reason: str | None = None) -> str:
        said = {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        return json.dumps(said, ensure_ascii=False)

    call = {"index": 0, "id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}}
    events = [chunk({"role": "assistant", "content": "日本語"}), chunk({"tool_calls": [call]}), chunk({}, last)]
    if is_done:
        events.append("[DONE]")
    return "".join([f"data: {event}{end}{end}" for event in events]).encode()


def calls_at_once(name: str) -> bytes:
    """The same without the event that only names the role."""
    return stream_of(name).partition(b"\n\n")[2]


def reply_of(name: str) -> bytes:
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode()


def older_reply_of(name: str) -> bytes:
    """As it was before a message could make several calls; some servers still say it so."""
    message = {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": "{}"}}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "function_call"}]}).encode()


def chunked(body: bytes, *headers: str, size: int = 7, status: str = "200 OK") -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", "Transfer-Encoding: chunked", *headers]).encode() + b"\r\n\r\n"
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return head + b"".join([b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]) + b"0\r\n\r\n"


def in_two(packed: Callable[[bytes], bytes], body: bytes) -> bytes:
    return packed(body[:100]) + packed(body[100:])


GZIP = "Content-Encoding: gzip"
MARKED: dict[str, tuple[bool, Callable[[str], tuple[bytes, tuple[str, ...]]]]] = {
    "lines that end with CR": (True, lambda name: (stream_of(name, end="\r"), (STREAM,))),
    "lines that end with CRLF": (True, lambda name: (stream_of(name, end="\r\n"), (STREAM,))),
    "no [DONE]": (True, lambda name: (stream_of(name, is_done=False), (STREAM,))),
    "no empty line at the end": (True, lambda name: (stream_of(name, is_done=False)[:-2], (STREAM,))),
    "no line end at all after [DONE]": (True, lambda name: (stream_of(name)[:-2], (STREAM,))),
    "a packed stream": (True, lambda name: (gzip.compress(stream_of(name)), (STREAM, GZIP))),
    "a stream packed twice over": (True, lambda name: (in_two(gzip.compress, stream_of(name)), (STREAM, GZIP))),
    "padding after what is packed": (True, lambda name: (gzip.compress(stream_of(name)) + bytes(8), (STREAM, GZIP))),
    "deflate": (False, lambda name: (zlib.compress(reply_of(name)), (JSON, "Content-Encoding: deflate"))),
    "packed in two": (False, lambda name: (in_two(gzip.compress, reply_of(name)), (JSON, GZIP))),
    "a stream nobody asked for": (False, lambda name: (stream_of(name), (STREAM,))),
    "no stream": (True, lambda name: (reply_of(name), (JSON,))),
    "a mark before the first event": (True, lambda name: (b"\xef\xbb\xbf" + calls_at_once(name), (STREAM,))),
    "events of nothing": (True, lambda name: (b"data:\n\n" + stream_of(name), (STREAM,))),
    "the older way to call": (False, lambda name: (older_reply_of(name), (JSON,))),
}


# What reads as no call here, and as one to whoever reads it more leniently; what is no reply, or more than one.
NO_NUMBER = calls_at_once("search").replace(b'"index": 0, "id"', b'"score": NaN, "index": 0, "id"')
HALF_A_PAIR = calls_at_once("search").replace(b'"{}"', b'"\\ud83d"')
NO_TEXT = calls_at_once("search").replace(b'"{}"', b'"\xff"')
SECOND = calls_at_once("search").replace(b'{"index": 0, "delta"', b'{"index": 1, "delta"')
ANSWER = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}


def reply_with(*choices: object, **members: object) -> bytes:
    return json.dumps({"choices": choices, **members}).encode()


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("kind", MARKED)
def test_a_reply_in_any_dress_is_marked_and_passes_as_it_is(kind: str, size: int, tmp_path: Path) -> None:
    is_streamed, make = MARKED[kind]
    names, made = itertools.cycle(NAMES), []

    def answer(_: bytes) -> bytes:
        body, headers = make(next(names))
        made.append(body)
        return chunked(body, *headers, size=size)

    with RawUpstream(answer) as upstream, gateway(tmp_path, upstream.root_url, "--fail", "closed") as running:
        answered = running.ask(CHAT, chat_body(Errand(1), stream=is_streamed))
        [record] = running.records()
    assert (answered.status, len(made)) == (200, 4)
    assert answered.content in made
    assert record.marked
    assert record.behavior in (*NAMES, "(other)")


BOMB = gzip.compress(b'{"choices": "' + b"a" * 20_000_000 + b'"}')
HALF = stream_of("search")[:200]
SAID_BADLY = b'data: {"error": {"message": "overloaded"}}\n\n'
UNMARKED: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "an encoding nobody asked for": (b"\x0b\x02junk", (JSON, "Content-Encoding: br")),
    "a stream in such an encoding": (b"\x0b\x02junk", (STREAM, "Content-Encoding: br")),
    "packed, it says": (reply_of("search"), (JSON, GZIP)),
    "a stream that is packed, it says": (stream_of("search"), (STREAM, GZIP)),
    "packed without end": (BOMB, (JSON, GZIP)),
    "a stream packed without end": (BOMB, (STREAM, GZIP)),
    "a stream that is an error": (SAID_BADLY, (STREAM,)),
    "a stream that ends in an error": (HALF + b"\n\n" + SAID_BADLY + b"data: [DONE]\n\n", (STREAM,)),
    "a call, and then an error": (stream_of("search", is_done=False) + SAID_BADLY, (STREAM,)),
    "a stream that stops": (HALF, (STREAM,)),
    "an empty stream": (b"", (STREAM,)),
    "a call beside what is no number": (NO_NUMBER, (STREAM,)),
    "a call beside half a character": (HALF_A_PAIR, (STREAM,)),
    "a call beside what is no text": (NO_TEXT, (STREAM,)),
    "a second reply in a stream": (stream_of("look", is_done=False) + SECOND, (STREAM,)),
    "a stream that ends as failed": (stream_of("search", last="error"), (STREAM,)),
    "two replies": (reply_with(ANSWER, {**ANSWER, "index": 1}), (JSON,)),
    "an error beside a reply": (reply_with(ANSWER, error={"code": 502}), (JSON,)),
    "a reply that failed": (reply_with({**ANSWER, "finish_reason": "error"}), (JSON,)),
    "a reply with an error": (reply_with({**ANSWER, "error": {"code": 502}}), (JSON,)),
}


@pytest.mark.parametrize("fail", ["open", "closed"])
@pytest.mark.parametrize("kind", UNMARKED)
def test_what_cannot_be_read_passes_whole_and_is_not_claimed(kind: str, fail: str, tmp_path: Path) -> None:
    body, headers = UNMARKED[kind]
    with (
        RawUpstream(lambda _: chunked(body, *headers, size=50_000)) as upstream,
        gateway(tmp_path, upstream.root_url, "--fail", fail, "--max-reply", "1000000") as running,
    ):
        answered = running.ask(CHAT, chat_body(Errand(1), stream=True))
        resident = Path(f"/proc/{running.process.pid}/status").read_text(encoding="ascii")
        assert running.count("agentmark_unmarked_total") + running.count("agentmark_errors_total") == 1
        records = running.records()
    if fail == "open" or answered.status == 200:
        assert (answered.status, answered.content) == (200, body)
    else:
        # What was asked for: no reply without a mark. It is said as such, not as a fault.
        assert (answered.status, answered.headers["x-agentmark-error"]) == (503, "no list")
    assert not [record for record in records if record.marked]
    peak = int(resident.partition("VmHWM:")[2].split()[0])
    assert peak < 150_000, "kB"


@pytest.mark.parametrize("status", ["cancelled", "failed", "in_progress", "queued"])
def test_a_response_that_came_to_nothing_is_no_answer(status: str, tmp_path: Path) -> None:
    body = json.dumps({"id": "r", "status": status, "error": None, "output": []}).encode()
    with (
        RawUpstream(lambda _: http_answer(body, JSON)) as upstream,
        gateway(tmp_path, upstream.root_url) as running,
    ):
        assert running.ask(RESPONSES, responses_body(Errand(1))).content == body
        assert not [record for record in running.records() if record.marked]
        assert running.count("agentmark_unmarked_total") == 1


def test_a_stream_that_is_cut_is_cut_at_the_client(tmp_path: Path) -> None:
    cut = chunked(HALF, STREAM)[:-5] + b"8\r\nabc"
    answer = cut.replace(b"200 OK\r\n", b"200 OK\r\nConnection: close\r\n")
    with RawUpstream(lambda _: answer) as upstream, gateway(tmp_path, upstream.root_url) as running:
        with pytest.raises(IncompleteRead):
            running.ask(CHAT, chat_body(Errand(1), stream=True))
        assert not running.records()


def test_statuses_that_http_does_not_have_are_a_bad_gateway(tmp_path: Path) -> None:
    for status in ("600 Odd", "999 Odd", "099 Odd"):
        with (
            RawUpstream(lambda _, said=status: http_answer(b"{}", status=said)) as upstream,  # type: ignore[misc]
            gateway(tmp_path, upstream.root_url) as running,
        ):
            for path in (CHAT, "/v1/files"):
                assert running.ask(path, chat_body(Errand(1))).status == 502
            assert running.records() == []


@pytest.mark.parametrize("encoding", ["gzip, chunked", "gzip", "identity"])
def test_a_reply_whose_encoding_ends_here_is_not_passed_on_without_it(encoding: str, tmp_path: Path) -> None:
    head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: {encoding}\r\n\r\n".encode()
    with (
        RawUpstream(lambda _: head + b"2\r\n{}\r\n0\r\n\r\n") as upstream,
        gateway(tmp_path, upstream.root_url) as running,
    ):
        assert running.ask("/v1/files").status == 502


def test_an_answer_without_a_body_may_say_how_long_another_would_be(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\nETag: x\r\n\r\n"
    with RawUpstream(lambda _: answer) as upstream, gateway(tmp_path, upstream.root_url) as running:
        connection = running.connect()
        for _ in range(2):
            # On the same connection: it is not given up.
            connection.request("GET", "/v1/files/a", headers={"If-None-Match": "x"})
            response = connection.getresponse()
            assert (response.status, response.read(), response.getheader("etag")) == (304, b"", "x")
        connection.close()
        assert "Exception" not in running.log_text


@pytest.mark.parametrize("more", [http_answer(b"EVIL"), b"\r\n\r\n", b"junk"])
def test_what_comes_after_a_reply_is_nobodys(more: bytes, tmp_path: Path) -> None:
    names = itertools.cycle(NAMES)
    answers: list[bytes] = []

    def answer(_: bytes) -> bytes:
        answers.append(reply_of(next(names)))
        return http_answer(answers[-1], JSON) + more

    with RawUpstream(answer) as upstream, gateway(tmp_path, upstream.root_url) as running:
        for _ in range(3):
            assert running.ask(CHAT, chat_body(Errand(1))).content in answers
        assert [record.marked for record in running.records()] == [True] * 3


@pytest.mark.parametrize(
    "last", [SAID_BADLY, b"", b'data: {"x": NaN}\n\ndata: [DONE]\n\n', b"data: NaN", b"data: [DONE]\n\n"]
)
def test_a_call_that_was_handed_on_as_it_came_counts_if_its_stream_came_to_its_end(last: bytes, tmp_path: Path) -> None:
    """Where one call is all there can be, the stream goes out from its beginning, before anyone knows its end."""
    names = itertools.cycle(NAMES)
    made: list[bytes] = []

    def answer(_: bytes) -> bytes:
        call = stream_of(next(names), is_done=False).split(b"\n\n")
        made.append(b"\n\n".join(call[:2]) + b"\n\n" + last)
        return chunked(made[-1], STREAM, size=20)

    body = chat_body(Errand(1), stream=True, parallel_tool_calls=False)
    with RawUpstream(answer) as upstream, gateway(tmp_path, upstream.root_url) as running:
        answered = running.ask(CHAT, body)
        records = running.records()
    assert answered.content in made
    assert [record.enforced for record in records] == ([None] if last == b"data: [DONE]\n\n" else [None, False])
