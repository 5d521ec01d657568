"""An upstream that keeps the bytes it is sent, and answers with the bytes it is told to."""

import socket
import threading
from collections.abc import Callable
from typing import Self


class RawUpstream:
    """Answers each request with what a function makes of it, as bytes on the wire. Used in a `with` block."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._answer = answer
        self.requests: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._open: list[socket.socket] = []

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._threads.append(threading.Thread(target=self._accept, daemon=True))
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while True:
                try:
                    request = _read_request(connection)
                    if not request:
                        return
                    self.requests.append(request)
                    answer = self._answer(request)
                    connection.sendall(answer)
                except OSError:
                    return
                if b"connection: close" in answer.lower():
                    return


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    lengths = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
    if lengths:
        while len(body) < lengths[0]:
            body += connection.recv(65536)
    elif b"transfer-encoding: chunked" in lines:
        while not body.endswith(b"0\r\n\r\n"):
            body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def http_answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
