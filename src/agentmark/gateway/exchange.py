"""One request and its answer on the connection of a client, as the parts of the gateway see them."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from agentmark.gateway.errors import ClientGoneError, GatewayError
from agentmark.gateway.headers import Headers, first

# Segments with which a path climbs, however they are written.
_DOTS = re.compile(r"(?:^|[/\\])\.\.(?:[/\\;]|$)")
_BODILESS = (204, 304)
# Bytes a second below which a body is not waited for, once its patience is used up.
SLOWEST = 4096

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def knows_chunks(scope: Scope) -> bool:
    """Whether a client can say, and be told, where what has no length ends: from HTTP/1.1 on."""
    return scope.get("http_version") not in ("0.9", "1.0")


class Asked:
    """What a client asks. Its body is read once: whole, or in pieces that are passed on."""

    def __init__(self, scope: Scope, receive: Receive, *, most: int, patience_s: float) -> None:
        self.method: str = scope["method"]
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        # As the client wrote it: a path that is decoded and encoded again may be another.
        self.path = raw_path.partition(b"?")[0].decode("latin-1")
        self.query: bytes = scope.get("query_string", b"")
        self.headers: Headers = scope["headers"]
        self._receive = receive
        self._most = most
        self._patience_s = patience_s
        self._knows_chunks = knows_chunks(scope)
        self._is_read = asyncio.Event()
        # For how long the body was waited for, and how much of it came.
        self._waited_s = 0.0
        self._size = 0

    @property
    def is_anthropic(self) -> bool:
        """Whether the client speaks Anthropic's API, for errors in its words."""
        if self.path.endswith(("/chat/completions", "/responses")):
            return False
        return self.path.endswith("/messages") or first(self.headers, b"anthropic-version") is not None

    @property
    def target(self) -> str:
        """Path and query, as they go to the upstream."""
        return f"{self.path}?{self.query.decode('latin-1')}" if self.query else self.path

    @property
    def has_body(self) -> bool:
        length = first(self.headers, b"content-length")
        return first(self.headers, b"transfer-encoding") is not None or (length is not None and length != b"0")

    def check(self) -> None:
        """Refuse what cannot be sent on, before it is read: a body that says it is too large, or is in an encoding that
        ends here; a path that would not stay where it is put at the upstream; a method that shows all that the upstream
        is sent."""
        if self.method == "TRACE":
            raise GatewayError(405, "TRACE is not passed on", "bad method")
        if not self.path.startswith("/") or (".." in unquote(self.path) and _DOTS.search(unquote(self.path))):
            raise GatewayError(400, "the path of the request is none, or climbs", "bad path")
        encodings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if encodings and (encodings != [b"chunked"] or not self._knows_chunks):
            raise GatewayError(501, "this transfer encoding is not read", "bad encoding")
        length = first(self.headers, b"content-length") or b"0"
        if not length.isdigit() or int(length) > self._most:
            raise self._too_large()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        while True:
            message = await self._receive_soon()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            piece: bytes = message.get("body", b"")
            if self._size > self._most:
                raise self._too_large()
            if piece:
                yield piece
            if not message.get("more_body", False):
                self._is_read.set()
                return

    async def whole(self) -> bytes:
        """The whole body."""
        message = await self._receive_soon()
        if message["type"] == "http.request" and not message.get("more_body", False):
            # Most come in one piece.
            self._is_read.set()
            body: bytes = message.get("body", b"")
            if len(body) > self._most:
                raise self._too_large()
            return body
        first_piece: bytes = message.get("body", b"")
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        content = bytearray(first_piece)
        async for piece in self.pieces():
            content += piece
        return bytes(content)

    async def until_gone(self) -> None:
        """Returns when the client has hung up, which is looked for when its body was read."""
        if self.has_body:
            await self._is_read.wait()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return

    async def _receive_soon(self) -> MutableMapping[str, Any]:
        """The next piece of the body. One that comes byte by byte is waited for no longer than one that does not come:
        it would hold a place for days."""
        loop = asyncio.get_running_loop()
        left = self._patience_s + self._size / SLOWEST - self._waited_s
        begun = loop.time()
        try:
            async with asyncio.timeout(min(left, self._patience_s)):
                message = await self._receive()
        except TimeoutError:
            raise GatewayError(408, "the request did not come in time", "slow request") from None
        self._waited_s += loop.time() - begun
        self._size += len(message.get("body", b""))
        return message

    def _too_large(self) -> GatewayError:
        return GatewayError(413, f"the request is larger than {self._most} bytes", "request too large")


class Answering:
    """The answer, as it goes out."""

    def __init__(self, send: Send, *, knows_chunks: bool, most: int) -> None:
        """`knows_chunks`: whether the client can be told of the end of what has no length; to one that cannot, no more
        than `most` of it is sent."""
        self._send = send
        self._knows_chunks = knows_chunks
        self._most = most
        # What is held back until its length is known, for a client that has to be told.
        self._held: tuple[Headers, bytearray] | None = None
        self.status: int | None = None
        self.is_at_end = False
        # Told once, when the first byte goes out.
        self.on_start: Callable[[], None] | None = None

    @property
    def is_begun(self) -> bool:
        return self.status is not None and self._held is None

    async def start(self, status: int, headers: Headers) -> None:
        self.status = status
        if self.on_start is not None:
            self.on_start()
        names = {name for name, _ in headers}
        if status in _BODILESS:
            # Such an answer may say how long another would be, which the server would wait for.
            headers = [pair for pair in headers if pair[0] != b"content-length"]
        elif not self._knows_chunks and b"content-length" not in names:
            self._held = headers, bytearray()
            return
        self._held = None
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def more(self, piece: bytes) -> None:
        if self._held is not None:
            self._held[1].extend(piece)
            if len(self._held[1]) > self._most:
                raise GatewayError(502, "the reply is too long for a client of HTTP/1.0", "reply too large")
            return
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self, piece: bytes = b"") -> None:
        if self._held is not None and self.status is not None:
            headers, content = self._held
            piece = bytes(content) + piece
            length = (b"content-length", str(len(piece)).encode("ascii"))
            self._held = None
            await self._send({"type": "http.response.start", "status": self.status, "headers": [*headers, length]})
        await self._send({"type": "http.response.body", "body": piece, "more_body": False})
        self.is_at_end = True

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        length = (b"content-length", str(len(body)).encode("ascii"))
        await self.start(status, [*[pair for pair in headers if pair[0] != b"content-length"], length])
        await self.end(body)
