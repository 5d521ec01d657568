"""An HTTP/1.1 client of a few parts: connections that are kept, bytes as the server sent them, and nothing else.

A marked request is several requests to the upstream, so this is what a gateway spends its time with. Clients that do
more (redirects, cookies, encodings, sessions) cost more, and what they add would be in the way here (ADR 25).
"""

import asyncio
import ssl
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httptools

# A connection that nobody used for so long may be closed at the other end just when it is used.
IDLE_S = 30.0
# What is read ahead of whoever reads, before the other end is told to wait.
READ_AHEAD = 256 * 1024
MAX_HEADERS_SIZE = 256 * 1024

Headers = list[tuple[bytes, bytes]]


class LostError(Exception):
    """The connection ended, or what came over it is no HTTP. `is_stale`: it was a kept one, and nothing had come."""

    def __init__(self, message: str, *, is_stale: bool = False) -> None:
        super().__init__(message)
        self.is_stale = is_stale


class SilentError(LostError):
    """Nothing came for too long."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where connections go."""

    host: str
    port: int
    is_secure: bool
    # As the header says it.
    name: bytes


class Client:
    """Connections to any number of servers. For one event loop."""

    def __init__(self, *, connect_s: float, silence_s: float) -> None:
        self._connect_s = connect_s
        self._silence_s = silence_s
        self._origins: dict[str, Origin] = {}
        self._idle: defaultdict[Origin, deque[Connection]] = defaultdict(deque)
        self._open: set[Connection] = set()
        self._secure: ssl.SSLContext | None = None
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._sweeping = asyncio.create_task(self._sweep())

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in list(self._open):
            connection.abort()

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes | AsyncIterator[bytes] | None
    ) -> "Response":
        """Ask, and return when the head of the response is there.

        A request that was sent over a kept connection, which turned out to be closed, is sent again over another; not
        one whose body comes in pieces, which are gone.
        """
        origin, path = self._split(url)
        while True:
            connection, is_kept = await self._connection(origin)
            response = connection.ask(method, path, headers, body)
            try:
                await response.head()
            except LostError as error:
                connection.abort()
                if error.is_stale and is_kept and (body is None or isinstance(body, bytes)):
                    continue
                raise
            except BaseException:
                connection.abort()
                raise
            return response

    def _split(self, url: str) -> tuple[Origin, bytes]:
        at = url.find("/", url.index("://") + 3)
        name, path = (url, "/") if at < 0 else (url[:at], url[at:])
        origin = self._origins.get(name)
        if origin is None:
            parts = urlsplit(name)
            is_secure = parts.scheme == "https"
            host = parts.hostname or ""
            port = parts.port or (443 if is_secure else 80)
            origin = self._origins[name] = Origin(host, port, is_secure, parts.netloc.encode("idna"))
        return origin, path.encode("latin-1")

    async def _connection(self, origin: Origin) -> tuple["Connection", bool]:
        """A kept connection, the last used first; or a new one."""
        idle = self._idle[origin]
        before = time.monotonic() - IDLE_S
        while idle:
            connection = idle.pop()
            if connection.is_open and connection.last_at > before:
                return connection, True
            connection.abort()
        async with asyncio.timeout(self._connect_s):
            _, made = await asyncio.get_running_loop().create_connection(
                lambda: Connection(self, origin),
                origin.host,
                origin.port,
                ssl=self._context() if origin.is_secure else None,
                server_hostname=origin.host if origin.is_secure else None,
            )
        return made, False

    def _context(self) -> ssl.SSLContext:
        if self._secure is None:
            self._secure = ssl.create_default_context()
            self._secure.set_alpn_protocols(["http/1.1"])
        return self._secure

    async def _sweep(self) -> None:
        """Give up connections on which nothing comes, and close those that nobody needs."""
        while True:
            await asyncio.sleep(min(1.0, self._silence_s / 4))
            now = time.monotonic()
            for connection in list(self._open):
                if connection.is_asking and now - connection.last_at > self._silence_s:
                    connection.lose(SilentError("the server is silent"))
                elif not connection.is_asking and now - connection.last_at > IDLE_S:
                    connection.abort()
            for idle in self._idle.values():
                while idle and not idle[0].is_open:
                    idle.popleft()

    # --- what connections say ---

    def opened(self, connection: "Connection") -> None:
        self._open.add(connection)

    def closed(self, connection: "Connection") -> None:
        self._open.discard(connection)

    def free(self, origin: Origin, connection: "Connection") -> None:
        self._idle[origin].append(connection)


class Connection(asyncio.Protocol):
    """One connection, which carries one request at a time."""

    def __init__(self, client: Client, origin: Origin) -> None:
        self._client = client
        self._origin = origin
        self._transport: asyncio.Transport | None = None
        self.parser: httptools.HttpResponseParser | None = None
        self._response: Response | None = None
        self._sending: asyncio.Task[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.last_at = time.monotonic()

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_asking(self) -> bool:
        return self._response is not None

    def ask(self, method: str, path: bytes, headers: Headers, body: bytes | AsyncIterator[bytes] | None) -> "Response":
        """Send a request. Its body, if it comes in pieces, is sent as they come."""
        response = self._response = Response(self, is_head=method == "HEAD")
        self.parser = httptools.HttpResponseParser(response)
        self.last_at = time.monotonic()
        lines = [method.encode("latin-1") + b" " + path + b" HTTP/1.1\r\nhost: " + self._origin.name]
        lines += [key + b": " + value for key, value in headers]
        is_whole = body is None or isinstance(body, bytes)
        if isinstance(body, bytes) and (body or method not in ("GET", "HEAD")):
            lines.append(b"content-length: %d" % len(body))
        is_chunked = not is_whole and not any(key == b"content-length" for key, _ in headers)
        if is_chunked:
            lines.append(b"transfer-encoding: chunked")
        head = b"\r\n".join(lines) + b"\r\n\r\n"
        if isinstance(body, bytes):
            self._write(head + body)
        else:
            self._write(head)
        if body is not None and not isinstance(body, bytes):
            self._sending = asyncio.get_running_loop().create_task(self._send_pieces(body, is_chunked=is_chunked))
        return response

    async def _send_pieces(self, body: AsyncIterator[bytes], *, is_chunked: bool) -> None:
        try:
            async for piece in body:
                await self._may_write.wait()
                self.last_at = time.monotonic()
                self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
            if is_chunked:
                self._write(b"0\r\n\r\n")
        except Exception as error:
            # Of whoever makes the pieces; the server waits for the rest in vain.
            self.lose(error)

    def _write(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            self.lose(LostError("the connection is closed", is_stale=True))
        else:
            self._transport.write(data)

    def hold(self, *, is_held: bool) -> None:
        """Tell the other end to wait, or to go on."""
        if self._transport is not None and not self._transport.is_closing():
            if is_held:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def done(self) -> None:
        """The response is at its end: the connection is kept, if it can be."""
        response, self._response = self._response, None
        is_sent = self._sending is None or self._sending.done()
        if response is not None and response.can_be_kept and is_sent and self.is_open:
            self.last_at = time.monotonic()
            self.hold(is_held=False)
            self._client.free(self._origin, self)
        else:
            self.abort()

    def lose(self, error: Exception) -> None:
        """The request comes to nothing."""
        response, self._response = self._response, None
        if response is not None:
            response.fail(error)
        self.abort()

    def abort(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
        if self._transport is not None:
            self._transport.abort()

    # --- what the transport says ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._client.opened(self)

    def data_received(self, data: bytes) -> None:
        self.last_at = time.monotonic()
        response, parser = self._response, self.parser
        if response is None or parser is None:
            # Nobody asked: whatever it is, it is not for the next request.
            self.abort()
            return
        response.has_begun = True
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, ValueError):
            if response.is_whole:
                # What came after the response is nobody's. It takes the connection with it, not the response.
                self._response = None
                self.abort()
            else:
                self.lose(LostError("what came is no HTTP"))
            return
        if response.is_whole:
            self.done()

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.closed(self)
        response = self._response
        if response is None:
            return
        if response.ends_with_connection and exc is None:
            response.on_message_complete()
            self._response = None
        else:
            self.lose(LostError("the connection was lost", is_stale=not response.has_begun))

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()


class Response:
    """What a server answers: its head, and its body as it comes. The parser calls the `on_` methods."""

    def __init__(self, connection: Connection, *, is_head: bool) -> None:
        self.status = 0
        self.raw_headers: Headers = []
        self.is_whole = False
        self.has_begun = False
        self._connection = connection
        self._is_head = is_head
        self._has_head = False
        self._has_length = False
        # Whether the server keeps the connection for more.
        self._is_kept = False
        self._size = 0
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    @property
    def can_be_kept(self) -> bool:
        return self.is_whole and self._has_length and self._is_kept and not self._is_head

    @property
    def ends_with_connection(self) -> bool:
        """Whether the end of the connection is the end of the body: nothing else was said of it."""
        return self._has_head and not self._has_length

    async def head(self) -> None:
        """Returns when status and headers are there."""
        while not self._has_head:
            if self._error is not None:
                raise self._error
            await self._more()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, as it comes; raises `LostError` if it breaks off."""
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                self._held -= len(piece)
                if not self._pieces and not self.is_whole:
                    self._connection.hold(is_held=False)
                yield piece
            if self.is_whole:
                return
            if self._error is not None:
                raise self._error
            await self._more()

    def close(self) -> None:
        """Let go of the rest: the connection goes with it."""
        if not self.is_whole:
            self._error = self._error or LostError("closed here")
            self._connection.abort()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._wake()

    async def _more(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    # --- what the parser says ---

    def on_message_begin(self) -> None:
        if self.is_whole:
            raise ValueError("a response that nobody asked for")

    def on_status(self, status: bytes) -> None:
        """Nobody needs the words."""

    def on_header(self, name: bytes, value: bytes) -> None:
        # After the body come trailers, which nobody passes on.
        if self._has_head:
            return
        self._size += len(name) + len(value)
        if self._size > MAX_HEADERS_SIZE:
            raise ValueError("headers without end")
        self.raw_headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser = self._connection.parser
        status = 0 if parser is None else parser.get_status_code()
        self._is_kept = parser is not None and parser.should_keep_alive()
        if 100 <= status < 200:
            # Not the answer yet.
            self.raw_headers.clear()
            return
        if not 200 <= status <= 599:
            raise ValueError("a status that HTTP does not have")
        encodings = [value.strip().lower() for name, value in self.raw_headers if name.lower() == b"transfer-encoding"]
        if encodings not in ([], [b"chunked"]):
            # It would have to be taken off here, and nobody asked for it.
            raise ValueError("a transfer encoding that is not read")
        self.status = status
        self._has_head = True
        names = {name.lower() for name, _ in self.raw_headers}
        is_bodiless = self._is_head or status in (204, 304)
        self._has_length = is_bodiless or b"content-length" in names or b"transfer-encoding" in names
        if self._is_head:
            self.is_whole = True
        self._wake()

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._held += len(body)
        if self._held > READ_AHEAD:
            self._connection.hold(is_held=True)
        self._wake()

    def on_message_complete(self) -> None:
        if self._has_head:
            self.is_whole = True
            self._wake()
