"""What clients send that no library of ours would: as bytes, over a connection of their own."""

import json
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn")

from loopback_client import CHAT, chat_body
from raw_upstream import RawUpstream, http_answer
from running import Running, eventually, gateway

from agentmark.testing import Errand, RefusingProvider

BODY = json.dumps(chat_body(Errand(1))).encode()
OFFER = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQB")


def post(*headers: str, path: str = CHAT, body: bytes = BODY, version: str = "1.1") -> bytes:
    lines = [f"POST {path} HTTP/{version}", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def connect(running: Running) -> socket.socket:
    at = urlsplit(running.root_url)
    return socket.create_connection((str(at.hostname), at.port or 0), timeout=10)


def answered(connection: socket.socket) -> tuple[bytes, bytes]:
    """The head of the next answer, and its body, which says how long it is."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data, b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < int(lengths[0].partition(b":")[2]):
        body += connection.recv(65536)
    return head, body


def said(running: Running, request: bytes) -> bytes:
    """All that comes until the connection is closed."""
    with connect(running) as connection:
        try:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))
        except ConnectionError:
            return b""


def is_cut_off_byte_by_byte(connection: socket.socket) -> bool:
    for byte in b"GET /v1/models HTTP/1.1" + b"A" * 100:
        try:
            connection.sendall(bytes([byte]))
        except ConnectionError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("pieces", [1, 2, 40])
def test_an_offer_of_another_protocol_costs_no_body(tmp_path: Path, pieces: int) -> None:
    """As Java's client makes it with every first request."""
    request = post(*OFFER)
    with (
        RefusingProvider() as provider,
        gateway(tmp_path, provider.root_url) as running,
        connect(running) as connection,
    ):
        for _ in range(2):
            size = len(request) // pieces + 1
            for at in range(0, len(request), size):
                connection.sendall(request[at : at + size])
                time.sleep(0.001)
            head, body = answered(connection)
            assert head.startswith(b"HTTP/1.1 200 ")
            assert json.loads(body)["choices"]
        assert len(running.records()) == 2
        assert running.count("agentmark_unmarked_total") == 0
        assert [request.body for request in provider.requests] == [json.loads(BODY)] * 8


@pytest.mark.parametrize(
    "request_bytes",
    [
        post("Transfer-Encoding: chunked", body=b"0\r\n\r\nGET /admin HTTP/1.1\r\n\r\n"),
        post("Transfer-Encoding: xchunked"),
        post("Content-Length: 3"),
        post("X-A: a\r\n b: c"),
        post("X-A: a\x00b"),
        post("X-A : b"),
        b"CONNECT other:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT other:443 HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"GET http://other HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET @other/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        *[
            b"%b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % line
            for line in (b"OPTIONS *", b"GET /v1/../../admin", b"GET /v1/%2e%2e/x", b"GET /..", b"GET /a/..%2fx")
        ],
    ],
)
def test_what_could_be_read_in_two_ways_or_leads_elsewhere_is_refused(tmp_path: Path, request_bytes: bytes) -> None:
    with RawUpstream(lambda _: http_answer(b"{}")) as upstream, gateway(tmp_path, upstream.root_url) as running:
        assert said(running, request_bytes).startswith(b"HTTP/1.1 400 ")
        assert upstream.requests == []
        assert running.ask("/healthz").status == 200


def test_a_whole_url_goes_to_the_upstream_and_nowhere_else(tmp_path: Path) -> None:
    with RawUpstream(lambda _: http_answer(b"{}")) as upstream, gateway(tmp_path, upstream.root_url) as running:
        for line in (b"GET http://other.example:99/v1/models?a=b", b"GET //other.example/v1/models?a=b"):
            assert b" 200 " in said(running, line + b" HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n")
        host = urlsplit(upstream.root_url).netloc.encode()
        assert all(b"\r\nhost: %b\r\n" % host in request for request in upstream.requests)
        assert [request.split(b" ")[1] for request in upstream.requests] == [
            b"/v1/models?a=b",
            b"//other.example/v1/models?a=b",
        ]


@pytest.mark.parametrize("head", [b"X-A: " + b"a" * 200_000, b"X-A: a\r\n" * 30_000, b"X-A: " + b"a" * 5_000_000])
def test_a_head_has_a_largest_size(tmp_path: Path, head: bytes) -> None:
    with RawUpstream(lambda _: http_answer(b"{}")) as upstream, gateway(tmp_path, upstream.root_url) as running:
        request = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n"
        with connect(running) as connection:
            # The rest may find nobody who reads it.
            with suppress(ConnectionError):
                connection.sendall(request)
            with suppress(ConnectionError):
                assert b" 431 " in connection.recv(65536)
        assert upstream.requests == []
        large = b"GET /v1/models HTTP/1.1\r\nConnection: close\r\nX: " + b"a" * 60_000 + b"\r\n\r\n"
        assert b" 200 " in said(running, large)


def test_a_head_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with (
        RawUpstream(lambda _: http_answer(b"{}")) as upstream,
        gateway(tmp_path, upstream.root_url, "--receive-s", "0.4") as running,
    ):
        begun = time.monotonic()
        for start in (b"", b"GET /v1/mod", post()[:50]):
            assert said(running, start) == b""
        # Not a byte at a time either; and not after a request that was whole.
        with connect(running) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert answered(connection)[1]
            assert is_cut_off_byte_by_byte(connection)
        assert time.monotonic() - begun < 8
        # A kept connection may be silent, and a reply may take its time.
        with connect(running) as connection:
            for _ in range(2):
                connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
                assert answered(connection)[1] == b"{}"
                time.sleep(0.6)


def test_trailers_are_no_headers(tmp_path: Path) -> None:
    with RefusingProvider() as provider, gateway(tmp_path, provider.root_url) as running:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode()
        trailers = b"0\r\nX-Agentmark-Session: mine\r\nAuthorization: Bearer sk-mine\r\n\r\n"
        assert b" 200 " in said(running, head + b"%x\r\n" % len(BODY) + BODY + b"\r\n" + trailers)
        assert [record.session for record in running.records()] != ["mine"]
        assert all("authorization" not in {name.lower() for name in asked.headers} for asked in provider.requests)


def test_an_older_client_gets_a_length_and_no_chunks(tmp_path: Path) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    with RawUpstream(lambda _: chunked) as upstream, gateway(tmp_path, upstream.root_url) as running:
        head, _, body = said(running, b"GET /v1/models HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
        assert body == b"abcde"
        assert b"content-length: 5" in head
        assert b"transfer-encoding" not in head
    broken = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n"
    with RawUpstream(lambda _: broken) as upstream, gateway(tmp_path, upstream.root_url) as running:
        assert b" 200 " not in said(running, b"GET /v1/models HTTP/1.0\r\n\r\n")


def test_an_empty_body_is_said_to_be_empty(tmp_path: Path) -> None:
    with RawUpstream(lambda _: http_answer(b"{}")) as upstream, gateway(tmp_path, upstream.root_url) as running:
        said(running, post("Connection: close", path="/v1/files", body=b""))
        assert b"\r\ncontent-length: 0\r\n" in upstream.requests[0]


def test_requests_in_a_row_are_answered_in_a_row(tmp_path: Path) -> None:
    answers = iter([b"one", b"two"])
    with RawUpstream(lambda _: http_answer(next(answers))) as upstream, gateway(tmp_path, upstream.root_url) as running:
        ask = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
        last = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        everything = said(running, ask + ask + last)
        assert everything.index(b"one") < everything.index(b"two") < everything.index(b'"ok"')


def test_who_hangs_up_ends_other_calls_too(tmp_path: Path) -> None:
    """A file that nobody waits for is fetched no further."""
    begun, ended = threading.Event(), threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nabc")
            begun.set()
            try:
                while connection.recv(65536):
                    pass
            except ConnectionError:
                pass
            ended.set()

    threading.Thread(target=serve, daemon=True).start()
    with listening, gateway(tmp_path, f"http://127.0.0.1:{listening.getsockname()[1]}") as running:
        with connect(running) as connection:
            connection.sendall(post(path="/v1/audio/speech"))
            assert begun.wait(10)
        assert ended.wait(10), "the upstream is still asked"
        assert eventually(lambda: running.count("agentmark_errors_total", reason="client gone") == 1)


def in_flight(running: Running) -> float:
    return running.count("agentmark_in_flight")


@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
def test_a_body_that_comes_byte_by_byte_is_not_waited_for(path: str, tmp_path: Path) -> None:
    """It would hold a place among the requests at once, for as long as its sender likes."""
    with (
        RawUpstream(lambda _: http_answer(b"{}")) as upstream,
        gateway(tmp_path, upstream.root_url, "--receive-s", "1.5") as running,
        connect(running) as connection,
    ):
        connection.sendall(post(path=path, body=b" " * 100_000)[: -100_000 + 1])
        connection.setblocking(False)
        heard = b""
        for _ in range(100):
            time.sleep(0.1)
            with suppress(BlockingIOError):
                heard = connection.recv(65536)
                break
            connection.send(b" ")
        assert b" 408 " in heard
        # One that comes in time may take longer than that in all.
        with connect(running) as other:
            body = b"{}" + b" " * 40_000
            request = post("Connection: close", path=path, body=body)
            for at in range(0, len(request), 8000):
                other.sendall(request[at : at + 8000])
                time.sleep(0.4)
            assert b" 200 " in other.recv(65536)


def test_a_client_that_does_not_read_is_not_waited_for(tmp_path: Path) -> None:
    with (
        RawUpstream(lambda _: http_answer(b"x" * 20_000_000)) as upstream,
        gateway(tmp_path, upstream.root_url, "--receive-s", "0.5") as running,
        connect(running) as connection,
    ):
        connection.sendall(b"GET /v1/files/a HTTP/1.1\r\nHost: x\r\n\r\n")
        assert eventually(lambda: len(upstream.requests) == 1)
        assert eventually(lambda: in_flight(running) == 0)
        assert running.count("agentmark_errors_total", reason="client gone") == 1


def test_what_has_no_end_is_not_collected_for_an_older_client(tmp_path: Path) -> None:
    endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    endless += (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 400
    with (
        RawUpstream(lambda _: endless) as upstream,
        gateway(tmp_path, upstream.root_url, "--max-reply", "1000000") as running,
    ):
        answer = said(running, b"GET /v1/files/a HTTP/1.0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert b"x-agentmark-error: reply too large" in answer


def test_a_reply_that_breaks_off_is_a_bad_gateway_to_an_older_client(tmp_path: Path) -> None:
    broken = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n"
    with RawUpstream(lambda _: broken) as upstream, gateway(tmp_path, upstream.root_url) as running:
        answer = said(running, b"GET /v1/models HTTP/1.0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert b"x-agentmark-error: upstream broke off" in answer


@pytest.mark.parametrize(
    ("version", "encoding"), [("1.1", "gzip, chunked"), ("1.1", "chunked, chunked"), ("1.0", "chunked")]
)
def test_a_body_whose_encoding_ends_here_is_not_passed_on_without_it(
    version: str, encoding: str, tmp_path: Path
) -> None:
    with RawUpstream(lambda _: http_answer(b"{}")) as upstream, gateway(tmp_path, upstream.root_url) as running:
        head = f"POST /v1/files HTTP/{version}\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: {encoding}\r\n\r\n"
        answer = said(running, head.encode() + b"2\r\n{}\r\n0\r\n\r\n")
        assert answer.startswith((b"HTTP/1.1 501 ", b"HTTP/1.1 400 "))
        assert upstream.requests == []


def test_what_is_for_this_hop_stays_here_beside_an_offer_too(tmp_path: Path) -> None:
    with RawUpstream(lambda _: http_answer(b"{}")) as upstream, gateway(tmp_path, upstream.root_url) as running:
        head = (
            b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close, X-Hop\r\nUpgrade: h2c\r\nX-Hop: 1\r\n"
        )
        assert b" 200 " in said(running, head + b"\r\n")
        assert b"x-hop" not in upstream.requests[0]
