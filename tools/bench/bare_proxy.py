"""A proxy that does nothing but pass on.

    python -m bench.bare_proxy PORT UPSTREAM_PORT [TIMES]       (from the folder tools)

With TIMES it asks the upstream so often, all at once, and passes the last reply on: what samples cost without a mark.
It stands on uvicorn, as the gateway does, and on aiohttp's client, as others would.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import uvicorn


def app_for(upstream: str, times: int) -> Callable[..., Awaitable[None]]:
    session: aiohttp.ClientSession | None = None

    async def app(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> None:
        nonlocal session
        if scope["type"] != "http":
            return
        if session is None:
            session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False)
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        headers = [pair for pair in headers if pair[0] not in ("host", "content-length", "connection")]
        url = upstream + scope["path"]

        async def ask_in_vain() -> None:
            async with session.request(scope["method"], url, data=body, headers=headers) as response:
                await response.read()

        await asyncio.gather(*[ask_in_vain() for _ in range(times - 1)])
        async with session.request(scope["method"], url, data=body, headers=headers) as response:
            said = [(name.lower(), value) for name, value in response.raw_headers]
            await send({"type": "http.response.start", "status": response.status, "headers": said})
            async for piece in response.content.iter_any():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    return app


if __name__ == "__main__":
    uvicorn.run(
        app_for(f"http://127.0.0.1:{sys.argv[2]}", int(sys.argv[3]) if len(sys.argv) > 3 else 1),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="error",
        access_log=False,
        lifespan="off",
    )
