"""HTTP over kept connections: one client of this process for plain callers, one of each event loop for async callers.

A connection must not outlive its loop, nor be shared with a forked child, which would read the parent's replies.
"""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agentmark.errors import MissingExtraError

if TYPE_CHECKING:
    import ssl

    import httpx2

MAX_REPLY_BYTES = 16 << 20
MAX_CONNECTIONS, MAX_IDLE_CONNECTIONS = 256, 32


@dataclass(frozen=True, slots=True)
class Sent:
    """One request. `timeout_s` is for the whole exchange, `connect_timeout_s` for its first part."""

    url: str
    headers: Mapping[str, str]
    content: bytes
    timeout_s: float
    connect_timeout_s: float


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back, whatever its status. `content` is None if it is longer than `MAX_REPLY_BYTES`."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why nothing came back. A connection that broke is worth another try; a model that took too long is not."""

    fault: str
    again: bool


def require_http() -> None:
    """Say at once, not at the first decision, that the HTTP client is not installed."""
    if find_spec("httpx2") is None:
        raise MissingExtraError("httpx2", "http")


def send(request: Sent) -> Answered | Unanswered:
    """Send one request and read its reply."""
    import httpx2

    deadline = time.monotonic() + request.timeout_s
    try:
        with _clients.of_process().stream("POST", request.url, **_options(request)) as response:
            parts = _Parts()
            for part in response.iter_bytes():
                if time.monotonic() > deadline:
                    return _too_slow(request)
                if not parts.add(part):
                    break
            return Answered(response.status_code, response.headers, parts.joined())
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return _unanswered(request, error)


async def asend(request: Sent) -> Answered | Unanswered:
    """The same on the running event loop."""
    import httpx2

    try:
        async with asyncio.timeout(request.timeout_s):
            client = await _clients.of_loop()
            async with client.stream("POST", request.url, **_options(request)) as response:
                parts = _Parts()
                async for part in response.aiter_bytes():
                    if not parts.add(part):
                        break
                return Answered(response.status_code, response.headers, parts.joined())
    except TimeoutError:
        return _too_slow(request)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return _unanswered(request, error)


class _Parts:
    """A reply as it arrives, up to the limit."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> bool:
        self._parts.append(part)
        self._size += len(part)
        return self._size <= MAX_REPLY_BYTES

    def joined(self) -> bytes | None:
        return b"".join(self._parts) if self._size <= MAX_REPLY_BYTES else None


class _Clients:
    """The clients of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[httpx2.AsyncClient, AsyncIterator[None]]]
        self._by_loop = WeakKeyDictionary()
        self._left_to_parent: list[object] = []

    def of_process(self) -> "httpx2.Client":
        import httpx2

        with self._lock:
            if self._client is None:
                self._client = httpx2.Client(**_settings())
            return self._client

    async def of_loop(self) -> "httpx2.AsyncClient":
        """The running loop's client. A generator of the loop's closes it: loops finish theirs before they end."""
        import httpx2

        loop = asyncio.get_running_loop()
        with self._lock:
            for ended in [known for known in self._by_loop if known.is_closed()]:
                del self._by_loop[ended]
            if loop in self._by_loop:
                return self._by_loop[loop][0]
            client = httpx2.AsyncClient(**_settings())
            closing = _closes(client)
            self._by_loop[loop] = client, closing
        await anext(closing)
        return client

    def forget(self) -> None:
        """In a forked child: the connections are the parent's. Closing them here could end them there."""
        self._left_to_parent += [self._client, *self._by_loop.values()]
        self._client, self._by_loop, self._lock = None, WeakKeyDictionary(), threading.Lock()


async def _closes(client: "httpx2.AsyncClient") -> AsyncIterator[None]:
    try:
        yield
    finally:
        # The loop is about to end: what cannot be closed any more ends with it.
        with suppress(Exception):
            await client.aclose()


def _settings() -> dict[str, Any]:
    import httpx2

    return {
        # A redirect would carry the API key to another host.
        "follow_redirects": False,
        "limits": httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_IDLE_CONNECTIONS),
        # Reading the machine's certificates takes a tenth of a second: once for all clients.
        "verify": _certificates(),
        # Two keys at one host are two users: what a cookie remembers of one must not be told of the other.
        "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    }


@cache
def _certificates() -> "ssl.SSLContext":
    import httpx2

    return httpx2.create_ssl_context()


def _options(request: Sent) -> dict[str, Any]:
    import httpx2

    # No limit on the wait for a free connection: those that are in use have their own.
    timeout = httpx2.Timeout(request.timeout_s, connect=request.connect_timeout_s, pool=None)
    return {"content": request.content, "headers": dict(request.headers), "timeout": timeout}


def _unanswered(request: Sent, error: Exception) -> Unanswered:
    import httpx2

    if isinstance(error, httpx2.ReadTimeout | httpx2.WriteTimeout):
        return _too_slow(request)
    again = isinstance(error, httpx2.TransportError | OSError) and not isinstance(error, httpx2.UnsupportedProtocol)
    return Unanswered(f"{request.url}: {error!r}", again)


def _too_slow(request: Sent) -> Unanswered:
    return Unanswered(f"{request.url}: no whole reply within {request.timeout_s:g} s", again=False)


_clients = _Clients()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clients.forget)
