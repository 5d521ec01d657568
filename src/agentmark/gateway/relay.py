"""Requests that are passed on as they are: every byte of the body, every header that is not for one hop."""

from dataclasses import replace
from urllib.parse import urlsplit

from agentmark.gateway.exchange import Answering, Asked
from agentmark.gateway.headers import first
from agentmark.gateway.upstream import Target, Upstreams


def url_at(upstream: str, target: str) -> str:
    """The URL of a path at an upstream. A version at the end of the one and at the beginning of the other is one."""
    base = upstream.rstrip("/")
    prefix = urlsplit(base).path
    version = prefix.rpartition("/")[2]
    if version and target.startswith(f"/{version}/"):
        base = base[: -len(version) - 1]
    return f"{base}{target}"


async def relay(asked: Asked, out: Answering, upstreams: Upstreams, target: Target, body: bytes | None = None) -> None:
    """Ask the upstream once, and pass on what it says. `body`: what was read of the request already, all of it."""
    length = first(asked.headers, b"content-length")
    if body is None and asked.has_body:
        if length is not None:
            target = replace(target, headers=[*target.headers, (b"content-length", length)])
        reply = await upstreams.send(asked.method, target, asked.pieces())
    else:
        if body is None and length is not None:
            # Said to be empty, which some servers want to hear.
            body = b""
        reply = await upstreams.send(asked.method, target, body)
    try:
        await out.start(reply.status, reply.headers)
        async for piece in reply.pieces():
            await out.more(piece)
        await out.end()
    finally:
        if not reply.is_at_end:
            reply.close()
