"""What goes wrong beside the gateway: upstreams that fail in every way, clients that go away, databases that take no
record. The agent gets what it would have got, or a clear error; no step is said to be marked that was not."""

import asyncio
import json
import resource
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench.loopback import TOOLS, chat_request, load, messages_request, read_reply
from gateway_process import MODES, Gateway, free_port, is_evidence, unique_contexts
from plain_agent import APIS, PATHS, Answer, PlainAgent, ask, headers_for

from agentmark.testing import Errand, RefusingProvider
from agentmark.testing.server import Asked, LoopbackServer, Said

PATIENCE_S = 30


def first_request(api: str, *, stream: bool = False) -> bytes:
    return json.dumps(PlainAgent("", api, Errand(0), stream=stream).body()).encode()


def same(through: Answer, direct: Answer) -> None:
    """What an agent can see is the same."""
    assert (through.status, through.body, through.is_whole) == (direct.status, direct.body, direct.is_whole)
    for name in ("content-type", "retry-after", "retry-after-ms", "x-request-id"):
        assert through.headers.get(name) == direct.headers.get(name), name


def nothing_is_claimed(gateway: Gateway) -> None:
    assert [record.session for record in gateway.records() if is_evidence(record)] == []


# --- the upstream ----------------------------------------------------------------------------------------------------

FAULTS: dict[str, Callable[[], Said]] = {
    "429": lambda: Said.json(
        429, {"error": {"message": "slow down"}}, {"Retry-After": "7", "Retry-After-Ms": "20", "X-Request-Id": "r-1"}
    ),
    "500": lambda: Said.json(500, {"error": {"message": "we failed", "type": "server_error"}}, {"X-Request-Id": "r-2"}),
    "html": lambda: Said(502, b"<html><h1>Bad gateway</h1></html>", "text/html"),
    "no JSON": lambda: Said(200, b'{"id": "chatcmpl-1", "choices": [{"index": 0, "mess'),
    "no UTF-8": lambda: Said(200, b'{"choices": "\xff\xfe"}'),
    "another shape": lambda: Said(200, b'[1, 2, {"choices": 7}]'),
    "a strange shape": lambda: Said.json(200, {"choices": [{"message": {"tool_calls": [{"function": 7}, None, 3]}}]}),
    "nothing": lambda: Said(200, b""),
    "deep": lambda: Said(200, b"[" * 100_000 + b"]" * 100_000),
}


@pytest.mark.parametrize("mode", MODES)
def test_an_upstream_that_fails_is_heard_in_its_own_words(mode: str, tmp_path: Path) -> None:
    said: list[Said] = []
    with (
        LoopbackServer(lambda _: said[-1]) as upstream,
        Gateway(tmp_path, upstream.root_url, mode=mode) as gateway,
    ):
        for name, fault in FAULTS.items():
            said.append(fault())
            for api in APIS:
                for stream in (False, True):
                    body, headers = first_request(api, stream=stream), headers_for(api, "k")
                    direct = ask(upstream.root_url, PATHS[api], body, headers)
                    session = f"{name}, {api}, {'streamed' if stream else 'whole'}"
                    through = ask(gateway.url, PATHS[api], body, {**headers, "x-agentmark-session": session})
                    assert direct.status, name
                    try:
                        same(through, direct)
                    except AssertionError as error:
                        raise AssertionError(f"{session}: {through}") from error
        assert gateway.get("/readyz").status == 200
    nothing_is_claimed(gateway)


@pytest.mark.parametrize("mode", MODES)
def test_an_upstream_that_is_down_is_said_and_comes_back(mode: str, tmp_path: Path) -> None:
    port = free_port()
    with Gateway(tmp_path, f"http://127.0.0.1:{port}", mode=mode) as gateway:
        for api in APIS:
            answer = ask(gateway.url, PATHS[api], first_request(api), headers_for(api, "k"))
            assert answer.status in (502, 503), answer
            assert "error" in answer.data
            assert answer.is_whole
        assert gateway.get("/healthz").status == 200
    nothing_is_claimed(gateway)


def test_an_upstream_that_is_slow_is_not_waited_for_beyond_the_limit(tmp_path: Path) -> None:
    def slow(_: Asked) -> Said:
        time.sleep(3)
        return Said.json(200, {})

    with (
        LoopbackServer(slow) as upstream,
        Gateway(tmp_path, upstream.root_url, options=["--upstream-s", "0.5"]) as gateway,
    ):
        answer = ask(gateway.url, PATHS["chat"], first_request("chat"), headers_for("chat", "k"))
        assert answer.status == 504, answer
        assert gateway.get("/readyz").status == 200
    nothing_is_claimed(gateway)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_is_cut_is_no_whole_reply(api: str, mode: str, tmp_path: Path) -> None:
    """Half of a stream must not look like all of it, nor count as a step that the agent took."""
    with RefusingProvider() as provider:
        whole = ask(provider.root_url, PATHS[api], first_request(api, stream=True), headers_for(api, "k")).body

    def cut(asked: Asked) -> Said:
        if not (asked.body or {}).get("stream"):
            return Said.json(500, {"error": {"message": "streams only"}})
        return Said(200, iter([whole[:100], whole[100 : len(whole) // 2]]), "text/event-stream", cut=True)

    with LoopbackServer(cut) as upstream, Gateway(tmp_path, upstream.root_url, mode=mode) as gateway:
        answer = ask(gateway.url, PATHS[api], first_request(api, stream=True), headers_for(api, "k"))
        assert not (answer.status == 200 and answer.is_whole), answer
    nothing_is_claimed(gateway)


def test_a_request_that_is_too_large_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    asked: list[Asked] = []

    def answer(request: Asked) -> Said:
        asked.append(request)
        return Said.json(200, {})

    with (
        LoopbackServer(answer) as upstream,
        Gateway(tmp_path, upstream.root_url, options=["--max-request", "20000"]) as gateway,
    ):
        large = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 30000}]}).encode()
        for api in APIS:
            refused = ask(gateway.url, PATHS[api], large, headers_for(api, "k"))
            assert refused.status == 413, refused
            assert "error" in refused.data
        # So is one that does not say how long it is.
        chunked = b"".join([b"4e20\r\n" + b"x" * 20000 + b"\r\n"] * 3) + b"0\r\n\r\n"
        assert raw(gateway.port, b"POST /v1/chat/completions HTTP/1.1", b"Transfer-Encoding: chunked", chunked) == 413
        assert asked == []
        assert ask(gateway.url, PATHS["chat"], first_request("chat")).status == 200


def raw(port: int, line: bytes, header: bytes, body: bytes) -> int:
    """The status of a request that no library would send."""

    async def send() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(line + b"\r\nHost: 127.0.0.1\r\n" + header + b"\r\n\r\n" + body)
        try:
            return (await asyncio.wait_for(read_reply(reader), PATIENCE_S))[0]
        finally:
            writer.close()

    return asyncio.run(send())


@pytest.mark.parametrize("mode", MODES)
def test_a_reply_that_is_too_large_to_read_breaks_nothing(mode: str, tmp_path: Path) -> None:
    """It is handed on as it is, or refused with a clear error: never cut in silence, and never claimed."""
    large = json.dumps({"choices": [{"message": {"role": "assistant", "content": "x" * 300_000}}]}).encode()
    with (
        LoopbackServer(lambda _: Said(200, large)) as upstream,
        Gateway(tmp_path, upstream.root_url, mode=mode, options=["--max-reply", "100000"]) as gateway,
    ):
        answer = ask(gateway.url, PATHS["chat"], first_request("chat"), headers_for("chat", "k"))
        assert answer.is_whole
        assert answer.body == large if answer.status == 200 else answer.status in (502, 503), answer.status
    nothing_is_claimed(gateway)


# --- the client ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_ends_the_calls_made_for_it(mode: str, stream: bool, tmp_path: Path) -> None:
    begun, ended = threading.Semaphore(0), threading.Semaphore(0)
    finished: list[bool] = []

    def endless() -> Iterator[bytes]:
        begun.release()
        try:
            end = time.monotonic() + PATIENCE_S
            while time.monotonic() < end:
                yield b": still thinking\n\n"
                time.sleep(0.02)
            finished.append(True)
        finally:
            ended.release()

    kind = "text/event-stream" if stream else "application/json"
    with (
        LoopbackServer(lambda _: Said(200, endless(), kind)) as upstream,
        Gateway(tmp_path, upstream.root_url, mode=mode) as gateway,
    ):
        body = first_request("chat", stream=stream)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)

        async def ask_and_leave() -> None:
            _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(head + body)
            await asyncio.to_thread(begun.acquire, True, PATIENCE_S)
            writer.transport.abort()

        asyncio.run(ask_and_leave())
        assert ended.acquire(timeout=PATIENCE_S / 2), "the upstream is still asked"
        assert finished == []
        assert gateway.get("/readyz").status == 200
    nothing_is_claimed(gateway)


def test_parallel_requests_of_one_session_have_contexts_of_their_own(tmp_path: Path, fast_upstream: int) -> None:
    """200 at once, all with the same body."""
    with Gateway(tmp_path, f"http://127.0.0.1:{fast_upstream}") as gateway:
        seen = asyncio.run(
            load(
                gateway.port,
                PATHS["chat"],
                lambda _: chat_request("Buy a lamp."),
                requests=200,
                clients=200,
                headers={"x-agentmark-session": "one session"},
            )
        )
    assert seen.statuses == {200: 200}
    records = gateway.records()
    assert unique_contexts(records) == 200
    assert {record.session for record in records} == {"one session"}
    # Equal draws for equal requests would show: all 200 would choose the same.
    assert len({record.behavior for record in records}) == len(TOOLS)


# --- the database ----------------------------------------------------------------------------------------------------


def statuses(gateway: Gateway, count: int, session: str) -> list[tuple[str, Answer]]:
    """What comes of requests, each in a session of its own."""
    answers = []
    for number in range(count):
        name = f"{session}-{number}"
        headers = {**headers_for("messages", "k"), "x-agentmark-session": name}
        answers.append((name, ask(gateway.url, PATHS["messages"], messages_request(f"Buy lamp {number}."), headers)))
    return answers


def every_mark_is_recorded(gateway: Gateway, answers: list[tuple[str, Answer]], *, fail: str) -> None:
    """An answer is recorded, or is a clear error, or (fail open) is one that nobody claims to be marked."""
    recorded = {record.session for record in gateway.records() if is_evidence(record)}
    for session, answer in answers:
        if answer.status == 200:
            assert session in recorded or fail == "open", session
        else:
            assert answer.status == 503, answer
            assert "store" in answer.data["error"]["message"] or "record" in answer.data["error"]["message"], answer


@pytest.mark.parametrize("fail", ["open", "closed"])
def test_a_database_that_is_locked_costs_no_record_in_silence(fail: str, tmp_path: Path, fast_upstream: int) -> None:
    options = ["--fail", fail, "--store-s", "0.5"]
    with Gateway(tmp_path, f"http://127.0.0.1:{fast_upstream}", options=options) as gateway:
        before = statuses(gateway, 3, "before")
        other = sqlite3.connect(tmp_path / gateway.store, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        locked = statuses(gateway, 3, "locked")
        ready = gateway.get("/readyz").status
        metrics = gateway.get("/metrics").body.decode()
        other.execute("ROLLBACK")
        other.close()
        after = statuses(gateway, 3, "after")
    assert ready == 503
    assert {answer.status for _, answer in before + after} == {200}
    assert {answer.status for _, answer in locked} == ({503} if fail == "closed" else {200})
    every_mark_is_recorded(gateway, before + after, fail="closed")
    every_mark_is_recorded(gateway, locked, fail=fail)
    assert not {record.session for record in gateway.records() if is_evidence(record)} & {name for name, _ in locked}
    if fail == "open":
        assert 'outcome="marked"' in metrics
        assert sum(counts(metrics, "agentmark_steps_total", 'outcome="marked"')) == 3, metrics


def counts(metrics: str, name: str, label: str) -> list[float]:
    lines = [line for line in metrics.splitlines() if line.startswith(name) and label in line]
    return [float(line.rpartition(" ")[2]) for line in lines]


@pytest.mark.parametrize("fail", ["open", "closed"])
def test_a_full_disk_costs_no_record_in_silence(fail: str, tmp_path: Path, fast_upstream: int) -> None:
    """The files of this process may have 2 MB each: SQLite is told that no more can be written."""
    limits = {resource.RLIMIT_FSIZE: 2_000_000}
    options = ["--fail", fail, "--store-s", "0.5"]
    with Gateway(tmp_path, f"http://127.0.0.1:{fast_upstream}", options=options, limited_to=limits) as gateway:
        answers = statuses(gateway, 20, "room")
        while gateway.get("/readyz").status == 200:
            assert len(answers) < 2000, "2 MB hold no 2,000 records"
            answers += statuses(gateway, 20, f"filling {len(answers)}")
        full = statuses(gateway, 3, "full")
    recorded = {record.session for record in gateway.records()}
    assert len(recorded) > 20
    assert not recorded & {session for session, _ in full}
    every_mark_is_recorded(gateway, answers[:20], fail="closed")
    every_mark_is_recorded(gateway, answers + full, fail=fail)
