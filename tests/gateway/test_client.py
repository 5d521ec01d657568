import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("httptools")

from raw_upstream import RawUpstream, http_answer

from agentmark.gateway.client import Client, LostError, SilentError
from agentmark.testing import RefusingProvider


def with_client(do: Callable[[Client], Awaitable[Any]], *, silence_s: float = 10.0) -> Any:
    async def run() -> Any:
        client = Client(connect_s=5.0, silence_s=silence_s)
        await client.start()
        try:
            return await do(client)
        finally:
            await client.close()

    return asyncio.run(run())


async def body_of(response: Any) -> bytes:
    return b"".join([piece async for piece in response.pieces()])


def test_connections_are_kept_and_used_again() -> None:
    with RefusingProvider() as provider:

        async def ask(client: Client) -> None:
            for _ in range(5):
                response = await client.send("GET", f"{provider.root_url}/v1/models", [], None)
                assert (response.status, b"agentmark" in await body_of(response)) == (200, True)
            # Those that are asked at once need one each; one that was let go of unread is gone.
            both = [client.send("GET", f"{provider.root_url}/v1/models", [], None) for _ in range(2)]
            for response in await asyncio.gather(*both):
                await body_of(response)

        with_client(ask)
        assert provider.connections == 2


def test_a_kept_connection_that_was_closed_meanwhile_costs_nothing() -> None:
    """What was sent into it is sent again; but not on a new connection, where closing is the server's answer."""
    answers = iter([http_answer(b"one"), b"", http_answer(b"two")])

    def answer(request: bytes) -> bytes:
        said = next(answers)
        if not said:
            raise OSError("hang up")
        return said

    with RawUpstream(answer) as upstream:

        async def ask(client: Client) -> list[bytes]:
            return [await body_of(await client.send("POST", f"{upstream.root_url}/x", [], b"body")) for _ in range(2)]

        assert with_client(ask) == [b"one", b"two"]
        assert len(upstream.requests) == 3

    def hang_up(request: bytes) -> bytes:
        raise OSError("hang up")

    with RawUpstream(hang_up) as upstream:

        async def in_vain(client: Client) -> None:
            with pytest.raises(LostError):
                await client.send("POST", f"{upstream.root_url}/x", [], b"body")

        with_client(in_vain)
        assert len(upstream.requests) == 1


@pytest.mark.parametrize(
    ("method", "answer", "body"),
    [
        (
            "GET",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nx: y\r\n\r\n",
            b"abcde",
        ),
        ("GET", b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nuntil the end", b"until the end"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", b""),
        ("GET", b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", b"ok"),
    ],
)
def test_bodies_end_where_they_say(method: str, answer: bytes, body: bytes) -> None:
    with RawUpstream(lambda _: answer) as upstream:

        async def ask(client: Client) -> None:
            for _ in range(2):
                response = await client.send(method, f"{upstream.root_url}/x", [(b"a", b"b")], None)
                assert await body_of(response) == body
                assert (b"link", b"a") not in response.raw_headers
                assert (b"x", b"y") not in response.raw_headers

        with_client(ask)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
        b"nonsense\r\n\r\n",
    ],
)
def test_what_breaks_off_is_an_error_and_never_a_whole_body(answer: bytes) -> None:
    with RawUpstream(lambda _: answer) as upstream:

        async def ask(client: Client) -> None:
            with pytest.raises(LostError):
                await body_of(await client.send("GET", f"{upstream.root_url}/x", [], None))

        with_client(ask)


def test_silence_is_given_up() -> None:
    with RawUpstream(lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc") as upstream:

        async def ask(client: Client) -> None:
            with pytest.raises(SilentError):
                await body_of(await client.send("GET", f"{upstream.root_url}/x", [], None))

        with_client(ask, silence_s=0.3)


def test_a_body_in_pieces_is_sent_as_it_comes() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"abc", b"defg"):
            await asyncio.sleep(0)
            yield piece

    with RawUpstream(lambda _: http_answer(b"ok")) as upstream:

        async def ask(client: Client) -> None:
            await body_of(await client.send("POST", f"{upstream.root_url}/x", [], pieces()))
            await body_of(await client.send("POST", f"{upstream.root_url}/x", [(b"content-length", b"7")], pieces()))

        with_client(ask)
    chunked, counted = upstream.requests
    assert chunked.endswith(b"\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
    assert counted.endswith(b"content-length: 7\r\n\r\nabcdefg")
