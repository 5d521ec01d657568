"""An HTTP server on the loopback, in a thread of its own: what the providers of this room stand on."""

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: its path with the query, its headers, and its body, None if it is no JSON object."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Body | None


@dataclass(frozen=True, slots=True)
class Said:
    """One response: whole, or a stream of pieces that are sent as they come."""

    status: int
    content: bytes | Iterable[bytes]
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    # A stream that ends so has broken off: the connection is closed before the end is said.
    cut: bool = False

    @classmethod
    def json(cls, status: int, content: object, headers: Mapping[str, str] | None = None) -> Self:
        return cls(status, json.dumps(content).encode("utf-8"), headers=headers or {})


class LoopbackServer:
    """Answers every request with what a function makes of it; used in a `with` block.

    Speaks HTTP/1.1 and keeps connections open, as providers do. Clients may hang up at any time.
    """

    def __init__(self, answer: Callable[[Asked], Said]) -> None:
        self._server = _Server(answer)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def connections(self) -> int:
        """How many connections were opened so far."""
        return self._server.connections

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Agents that ask several times at once connect at once.
    request_queue_size = 128

    def __init__(self, answer: Callable[[Asked], Said]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.connections = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)
            self.connections += 1

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)

    def hang_up(self) -> None:
        """End the connections that clients keep for later: a provider that is gone answers nobody."""
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is no fault of ours; anything else is, and is shown."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body leave together; otherwise small replies wait for the client's delayed acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.opened(self.connection)

    def finish(self) -> None:
        self.server.closed(self.connection)
        super().finish()

    def do_POST(self) -> None:
        self._respond(self.server.answer(self._asked("POST")))

    def do_GET(self) -> None:
        self._respond(self.server.answer(self._asked("GET")))

    def _asked(self, method: str) -> Asked:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(content)
        except ValueError:
            body = None
        return Asked(method, self.path, dict(self.headers.items()), body if isinstance(body, dict) else None)

    def _respond(self, said: Said) -> None:
        self.send_response(said.status)
        self.send_header("Content-Type", said.kind)
        for name, value in said.headers.items():
            self.send_header(name, value)
        if isinstance(said.content, bytes):
            self.send_header("Content-Length", str(len(said.content)))
            self.end_headers()
            self.wfile.write(said.content)
        else:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in said.content:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.flush()
            if said.cut:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Silence: tests have their own output."""
