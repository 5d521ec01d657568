"""Connections are kept and shared, each by those who may share it."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentmark.elicit import connections
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.errors import UpstreamError
from agentmark.errors import SettingError
from agentmark.testing import FakeProvider
from agentmark.testing.provider import Refusal

ECHO: dict[str, Any] = {"/v1/echo": lambda body: body}


def endpoint(provider: FakeProvider, **options: Any) -> Endpoint:
    return Endpoint(provider.base_url, "m", **{"timeout_s": 10, "max_delay_s": 0.2, **options})


async def ask(asked: Endpoint, count: int) -> list[dict[str, Any]]:
    return await asyncio.gather(*[asked.apost("echo", {"i": i}, method="t") for i in range(count)])


def test_plain_callers_share_a_connection() -> None:
    with FakeProvider(ECHO) as provider:
        for i in range(5):
            # A second endpoint at the same place shares it too.
            assert endpoint(provider).post("echo", {"i": i}, method="t")["i"] == i
    assert provider.connections == 1


def test_an_event_loop_keeps_its_own_and_leaves_none_open() -> None:
    async def twice(asked: Endpoint) -> None:
        for _ in range(3):
            assert [reply["i"] for reply in await ask(asked, 4)] == list(range(4))

    with FakeProvider(ECHO) as provider, warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        asyncio.run(twice(endpoint(provider)))
        assert provider.connections <= 4
        before = provider.connections
        asyncio.run(twice(endpoint(provider)))
        assert before < provider.connections <= before + 4
        gc.collect()
        asyncio.run(asyncio.sleep(0))
    # What ended is forgotten when the next loop comes.
    with FakeProvider(ECHO) as provider:
        asyncio.run(twice(endpoint(provider)))
        assert len([loop for loop in connections._clients._by_loop if not loop.is_closed()]) == 0
        assert len(connections._clients._by_loop) == 1


def test_a_loop_that_nobody_shut_down_does_no_harm() -> None:
    with FakeProvider(ECHO) as provider:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(ask(endpoint(provider), 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            loop.close()
            assert len(asyncio.run(ask(endpoint(provider), 2))) == 2
            del loop
            gc.collect()


def test_many_at_once_wait_for_no_thread() -> None:
    """Two hundred requests in flight at once: the default thread pool of a loop would hold six."""
    arrived = threading.Barrier(201, timeout=30)

    def wait(body: dict[str, Any]) -> dict[str, Any]:
        arrived.wait()
        return body

    async def all_at_once(asked: Endpoint) -> list[dict[str, Any]]:
        flying = asyncio.create_task(ask_slow(asked))
        await asyncio.to_thread(arrived.wait)
        return await flying

    async def ask_slow(asked: Endpoint) -> list[dict[str, Any]]:
        return await asyncio.gather(*[asked.apost("slow", {"i": i}, method="t") for i in range(200)])

    with FakeProvider({"/v1/slow": wait}) as provider:
        replies = asyncio.run(all_at_once(endpoint(provider, timeout_s=60)))
    assert [reply["i"] for reply in replies] == list(range(200))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_connections_of_its_own() -> None:
    with FakeProvider(ECHO) as provider:
        asked = endpoint(provider)
        asked.post("echo", {"i": 0}, method="t")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            right = all(asked.post("echo", {"i": i}, method="t")["i"] == i for i in range(3))
            os._exit(0 if right else 1)
        assert [asked.post("echo", {"i": -i}, method="t")["i"] for i in range(3)] == [0, -1, -2]
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert provider.connections == 2


def test_cookies_are_not_kept() -> None:
    """Two keys at one host are two users."""
    seen: list[str | None] = []
    cookie = Refusal(400, "no", {"Set-Cookie": "who=first"})
    with FakeProvider({"/v1/echo": cookie}, on_headers=lambda headers: seen.append(headers.get("Cookie"))) as provider:
        for _ in range(2):
            with pytest.raises(UpstreamError):
                endpoint(provider).post("echo", {}, method="t")
    assert seen == [None, None]


def test_a_redirect_is_not_followed() -> None:
    with FakeProvider(ECHO) as elsewhere:
        away = Refusal(307, "moved", {"Location": f"{elsewhere.base_url}/echo"})
        with FakeProvider({"/v1/echo": away}) as provider, pytest.raises(UpstreamError, match="HTTP 307"):
            endpoint(provider, api_key="sk-secret").post("echo", {}, method="t")
    assert elsewhere.requests == []


# --- how long, how often -------------------------------------------------------------------------------------------


class Flaky:
    """Refuses so many times, and then echoes."""

    def __init__(self, *refusals: Refusal) -> None:
        self.refusals = list(refusals)
        self.times: list[float] = []

    def __call__(self, body: dict[str, Any]) -> Any:
        self.times.append(time.monotonic())
        return self.refusals.pop(0) if self.refusals else body


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_what_passes_is_tried_again_after_the_providers_delay(status: int, is_async: bool) -> None:
    flaky = Flaky(*[Refusal(status, "later", {"Retry-After-Ms": "150"})] * 2)
    with FakeProvider({"/v1/echo": flaky}) as provider:
        asked = endpoint(provider)
        if is_async:
            reply = asyncio.run(asked.apost("echo", {"i": 1}, method="t"))
        else:
            reply = asked.post("echo", {"i": 1}, method="t")
    assert reply["i"] == 1
    first, second, third = flaky.times
    assert second - first >= 0.15
    assert third - second >= 0.15


@pytest.mark.parametrize(
    ("refusal", "options", "tries"),
    [
        (Refusal(429, "slow down"), {}, 3),
        (Refusal(429, "slow down"), {"retries": 0}, 1),
        (Refusal(429, "slow down", {"Retry-After": "3600"}), {}, 1),
        (Refusal(429, "no credit left", {"x-should-retry": "false"}), {}, 1),
        (Refusal(400, "bad"), {}, 1),
        (Refusal(501, "no such thing"), {}, 1),
    ],
)
def test_what_does_not_pass_is_told(refusal: Refusal, options: dict[str, Any], tries: int) -> None:
    with (
        FakeProvider({"/v1/echo": refusal}) as provider,
        pytest.raises(UpstreamError, match=f"HTTP {refusal.status}: {refusal.message}") as caught,
    ):
        endpoint(provider, **{"max_delay_s": 0.01, **options}).post("echo", {}, method="t")
    assert caught.value.status == refusal.status
    assert len(provider.requests) == tries


@contextmanager
def odd_server(answer: Any) -> Iterator[Endpoint]:
    """A server that does with a request what it is told to, byte by byte."""
    tries = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            tries.append(1)
            answer(self, len(tries))

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Endpoint(f"http://127.0.0.1:{server.server_port}/v1", "m", timeout_s=0.5, max_delay_s=0.01)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def hang_up(handler: BaseHTTPRequestHandler, attempt: int) -> None:
    if attempt == 1:
        handler.close_connection = True
        return
    handler.send_response(200)
    handler.send_header("Content-Length", "2")
    handler.end_headers()
    handler.wfile.write(b"{}")


def trickle(handler: BaseHTTPRequestHandler, _: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(100):
        time.sleep(0.1)
        try:
            handler.wfile.write(b" ")
        except OSError:
            return


@pytest.mark.parametrize("is_async", [False, True])
def test_a_connection_that_breaks_is_tried_again(is_async: bool) -> None:
    with odd_server(hang_up) as asked:
        call = asyncio.run(asked.apost("x", {}, method="t")) if is_async else asked.post("x", {}, method="t")
    assert call == {}


@pytest.mark.parametrize("is_async", [False, True])
def test_a_reply_that_never_ends_is_given_up_in_time(is_async: bool) -> None:
    def ask(asked: Endpoint) -> object:
        return asyncio.run(asked.apost("x", {}, method="t")) if is_async else asked.post("x", {}, method="t")

    begun = time.monotonic()
    with odd_server(trickle) as asked, pytest.raises(UpstreamError, match=r"no whole reply within 0\.5 s"):
        ask(asked)
    assert time.monotonic() - begun < 5


def test_a_reply_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_REPLY_BYTES", 1000)
    with FakeProvider({"/v1/echo": lambda body: {"x": "y" * 2000}}) as provider:
        with pytest.raises(UpstreamError, match="longer than"):
            endpoint(provider).post("echo", {}, method="t")
        with pytest.raises(UpstreamError, match="longer than"):
            asyncio.run(endpoint(provider).apost("echo", {}, method="t"))


@pytest.mark.parametrize(
    "statement",
    [
        "from agentmark.elicit import Endpoint, elicitor_for; elicitor_for(Endpoint('http://127.0.0.1/v1', 'm'))",
        "from agentmark.elicit import Endpoint, HttpChat; HttpChat(Endpoint('http://127.0.0.1/v1', 'm'))",
        "from agentmark.elicit import Decisions, Endpoint; Decisions(Endpoint('http://127.0.0.1/v1', 'm'))",
    ],
)
def test_without_the_http_client_its_extra_is_named_before_anything_is_asked(statement: str) -> None:
    blocked = "import sys; sys.modules['httpx2'] = None; "
    done = subprocess.run([sys.executable, "-c", blocked + statement], capture_output=True, text=True, check=False)
    assert "pip install '.[http]'" in done.stderr


@pytest.mark.parametrize("api_key", ["sk-secret ", " sk-secret", ""])
def test_a_key_that_the_client_would_refuse_and_quote_is_refused_here(api_key: str) -> None:
    with pytest.raises(SettingError, match="api_key") as raised:
        Endpoint("http://127.0.0.1:9/v1", "m", api_key=api_key)
    assert "secret" not in str(raised.value)
