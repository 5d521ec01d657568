"""Uvicorn's HTTP/1.1 connection of a client, with what it lacks: heads of requests have a limit in size and in time, an
offer to change the protocol costs no body, trailers are no headers, and who does not read is not waited for.
"""

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# What servers before this one take too, with room: a path, credentials and a client's own headers.
MAX_HEAD_SIZE = 128 * 1024
_TOO_LARGE = b"The head of the request is too large."
_OFFERS = (b"upgrade", b"http2-settings")


class _TooLargeError(Exception):
    """The head of a request is larger than the limit."""


def client_protocol(head_s: float) -> type[asyncio.Protocol]:
    """The protocol of a gateway that waits so long for the head of a request, and for a client to read on."""
    return type("ClientProtocol", (ClientProtocol,), {"head_s": head_s})


class ClientProtocol(HttpToolsProtocol):
    """One connection of a client."""

    head_s = 60.0
    _waiting: asyncio.TimerHandle | None = None
    # Runs while the client takes nothing of what it is sent.
    _unread: asyncio.TimerHandle | None = None
    # Whether a request is being read, whether its head is whole, and how much came of one that is not.
    _is_reading = False
    _has_head = False
    _head_size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.head_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_unread()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._go_on_without_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            if isinstance(error.__context__, _TooLargeError):
                self._refuse(431, _TOO_LARGE)
            else:
                self._refuse(400, b"Invalid HTTP request received.")
        if not self._has_head and self._head_size + len(data) > MAX_HEAD_SIZE:
            self._refuse(431, _TOO_LARGE)
        elif not self._has_head and self._is_reading:
            self._head_size += len(data)
            if self._waiting is None:
                self._wait()

    # --- what the parser says ---

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_reading, self._has_head, self._head_size = True, False, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        # After the body come trailers. Nobody before this gateway has looked at them, so they say nothing here.
        if not self._has_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            # The parser leaves off here, and a request without the offer is read in its place.
            return
        self._has_head = True
        self._stop_waiting()
        if len(self.url) + sum([len(name) + len(value) for name, value in self.headers]) > MAX_HEAD_SIZE:
            # It came at once.
            raise _TooLargeError
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_reading = False
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _go_on_without_upgrade(self, rest: bytes) -> None:
        """Read the request as one that offers no other protocol. A server need not take an offer (RFC 9110, section
        7.8), but the parser would take the body for the other protocol: clients that offer HTTP/2 in each first
        request, as Java's does, would lose it."""
        method: bytes = self.parser.get_method()
        if method == b"CONNECT":
            self._refuse(400, b"Invalid HTTP request received.")
            return
        version = self.parser.get_http_version().encode("ascii")
        lines = [method + b" " + self.url + b" HTTP/" + version]
        lines += [name + b": " + value for name, value in self.headers if name not in _OFFERS and name != b"connection"]
        said = [word.strip() for name, value in self.headers if name == b"connection" for word in value.split(b",")]
        kept = [word for word in said if word and word.lower() not in _OFFERS]
        lines.append(b"connection: " + b", ".join(kept or [b"keep-alive"]))
        self.parser = httptools.HttpRequestParser(self)
        # As the server sets it: what comes after a last request is passed over.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    # --- limits ---

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.head_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _stop_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.close()

    def _refuse(self, status: int, words: bytes) -> None:
        if self.transport.is_closing():
            return
        phrase = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}[status]
        head: list[Any] = [b"HTTP/1.1 %d %b" % (status, phrase), b"content-type: text/plain; charset=utf-8"]
        head += [b"content-length: %d" % len(words), b"connection: close"]
        self.transport.write(b"\r\n".join(head) + b"\r\n\r\n" + words)
        self.transport.close()
