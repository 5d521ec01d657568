"""The way to the upstream: one pool of connections, and replies that can be read, passed on and let go of."""

import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentmark.gateway.client import Client, LostError, Response, SilentError
from agentmark.gateway.errors import GatewayError
from agentmark.gateway.events import EventReader
from agentmark.gateway.headers import Headers, first, for_client
from agentmark.gateway.json_text import json_value
from agentmark.gateway.replies import has_failed, is_of_another_choice
from agentmark.wire.apis import Api, ReplyStream

_GZIP = b"\x1f"


class RefusedError(Exception):
    """The upstream answered with an error. Its own words are for the client, and for nobody's log."""

    def __init__(self, reply: "Reply") -> None:
        super().__init__(f"HTTP {reply.status}")
        self.reply = reply
        self.status_code = reply.status

    @property
    def body(self) -> str:
        """What it says, for whoever has to tell a refusal of the choice from others."""
        return self.reply.decoded()[:20_000].decode("utf-8", "replace")


class BrokenReplyError(Exception):
    """A reply that broke off before its end."""

    def __init__(self, reply: "Reply") -> None:
        super().__init__("the reply broke off")
        self.reply = reply


class OversizeError(Exception):
    """A reply larger than what is kept in memory. It is let go of."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: the whole URL, and the headers for the upstream."""

    url: str
    headers: Headers
    # The upstream itself, as the settings name it: what refusals are remembered for.
    name: str


class Upstreams:
    """Connections to any number of upstreams. One for each worker; open it in its event loop."""

    def __init__(self, *, connect_s: float, silence_s: float, max_reply: int) -> None:
        self._max_reply = max_reply
        self._client = Client(connect_s=connect_s, silence_s=silence_s)

    async def start(self) -> None:
        await self._client.start()

    async def close(self) -> None:
        await self._client.close()

    async def send(self, method: str, target: Target, body: bytes | AsyncIterator[bytes] | None) -> "Reply":
        """Ask, and return when the reply's head is there."""
        try:
            return Reply(await self._client.send(method, target.url, target.headers, body), most=self._max_reply)
        except (TimeoutError, SilentError):
            raise GatewayError(504, "the upstream did not answer in time", "upstream timeout") from None
        except (LostError, OSError, ValueError):
            # The error may name hosts and paths: those are the operator's to know, and in the settings.
            raise GatewayError(502, "the upstream cannot be reached", "upstream unreachable") from None


class Reply:
    """One reply of an upstream: its head, what was read of it so far, and the rest on its connection."""

    def __init__(self, response: Response, *, most: int) -> None:
        """`most`: the size, unpacked, of what is read of it."""
        self.status = response.status
        self.headers = for_client(response.raw_headers)
        kind = first(self.headers, b"content-type") or b""
        self.is_stream = kind.partition(b";")[0].strip().lower() == b"text/event-stream"
        self.content = bytearray()
        self.is_at_end = False
        # Whether it was read as a sample, to where it had shown what it does.
        self.is_sample = False
        self.shown: ReplyStream | None = None
        self.usage: tuple[int | None, int | None] = (None, None)
        self._response = response
        # Whether a stream holds what nobody here can read, or says that the provider failed on the way.
        self.is_unreadable = False
        self.has_failed = False
        self._most = most
        self._events = EventReader()
        self._unpacked = self._unpacking()
        self._parsed: Mapping[str, Any] | None = None
        # What the stream was last read as.
        self._api: Api | None = None

    async def read_whole(self, most: int) -> None:
        """Read to the end, to be passed on later."""
        async for piece in self._pieces():
            self.content += piece
            if len(self.content) > most:
                self.close()
                raise OversizeError

    async def read_until(self, sees: Callable[[ReplyStream], bool], api: Api, most: int) -> None:
        """Read a stream until it has shown enough, or to its end."""
        self.shown = api.stream()
        async for piece in self._pieces():
            self.content += piece
            if not self.is_unreadable:
                self._try_to_look_at(piece, api)
            if len(self.content) > most:
                self.close()
                raise OversizeError
            if not self.is_unreadable and sees(self.shown):
                return

    async def pieces(self) -> AsyncIterator[bytes]:
        """All of it: what was read, and then the rest as it comes."""
        if self.content:
            yield bytes(self.content)
        async for piece in self.rest():
            yield piece

    async def rest(self) -> AsyncIterator[bytes]:
        """What was not read so far, as it comes."""
        if not self.is_at_end:
            async for piece in self._pieces():
                yield piece

    def look_at(self, piece: bytes, api: Api) -> None:
        """Read a copy of a piece of a stream, to know what the reply does."""
        if self.shown is None:
            self.shown = api.stream()
        for event in self._events.feed(self._unpacked.more(piece)):
            self._add(event, self.shown, api)
        self._api = api

    @property
    def is_finished(self) -> bool:
        """Whether the provider has said that a stream is at its end, and nothing went wrong before."""
        is_over = self._events.is_done or (self.shown is not None and self.shown.finished)
        return is_over and not self.has_failed

    def parsed(self) -> Mapping[str, Any]:
        """A whole reply as the API's JSON. A ValueError if it is none."""
        if self._parsed is None:
            found = json_value(self.decoded())
            if not isinstance(found, dict):
                raise ValueError("a reply that is no JSON object")
            self._parsed = found
        return self._parsed

    def decoded(self) -> bytes:
        """What was read so far without its encoding; nothing if it cannot be read."""
        try:
            return self._unpacking().more(bytes(self.content))
        except (zlib.error, ValueError):
            return b""

    def close(self) -> None:
        """Let go of it. One that was not read to its end takes its connection with it."""
        self._response.close()

    async def _pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.pieces():
                yield piece
        except LostError:
            raise BrokenReplyError(self) from None
        self.is_at_end = True
        if self.shown is not None and self._api is not None and not self.is_unreadable:
            # Some leave out the empty line after the last event.
            self._try_to_add(self._events.end(), self.shown, self._api)

    def _try_to_look_at(self, piece: bytes, api: Api) -> None:
        try:
            self.look_at(piece, api)
        except Exception:
            # Whatever a provider sent, the agent gets its bytes; the turn counts a reply that cannot be read.
            self.is_unreadable = True

    def _try_to_add(self, events: Iterator[Mapping[str, Any]], shown: ReplyStream, api: Api) -> None:
        try:
            for event in events:
                self._add(event, shown, api)
        except ValueError:
            self.is_unreadable = True

    def _add(self, event: Mapping[str, Any], shown: ReplyStream, api: Api) -> None:
        if is_of_another_choice(event):
            raise ValueError("a stream of several replies")
        if has_failed(event):
            self.has_failed = True
        shown.add(event)
        self._note_usage(event, api)

    def _unpacking(self) -> "_Unpacking":
        return _Unpacking(first(self.headers, b"content-encoding"), self._most)

    def _note_usage(self, event: Mapping[str, Any], api: Api) -> None:
        """Streams speak of their cost in one event or in two; the later one says the more."""
        for holder in (event, event.get("message"), event.get("response")):
            if isinstance(holder, Mapping) and "usage" in holder:
                read, written = api.tokens(holder)
                self.usage = (self.usage[0] if read is None else read, self.usage[1] if written is None else written)


class _Unpacking:
    """Takes the encoding off a copy, piece by piece: so many bytes of it, since a few can unpack to any number."""

    def __init__(self, encoding: bytes | None, most: int) -> None:
        name = (encoding or b"identity").strip().lower()
        self._is_known = name in (b"identity", b"", b"gzip", b"x-gzip", b"deflate")
        self._inflating = zlib.decompressobj(wbits=47) if name in (b"gzip", b"x-gzip", b"deflate") else None
        self._left = most

    def more(self, piece: bytes) -> bytes:
        if not self._is_known:
            raise ValueError("a reply in an encoding that was not asked for")
        if self._inflating is None:
            self._left -= len(piece)
            if self._left < 0:
                raise ValueError("a reply larger than the limit")
            return piece
        unpacked = []
        while piece:
            if self._inflating.eof:
                # Some pack piece by piece, one file after the other. What else may follow is padding.
                if not piece.startswith(_GZIP):
                    break
                self._inflating = zlib.decompressobj(wbits=47)
            part = self._inflating.decompress(piece, self._left + 1)
            self._left -= len(part)
            if self._left < 0:
                raise ValueError("a reply that unpacks to more than the limit")
            unpacked.append(part)
            piece = self._inflating.unused_data
        return b"".join(unpacked)


class Clock:
    """How long a request waited for its upstream, with calls at once counted once."""

    def __init__(self) -> None:
        self._waiting = 0
        self._since = 0.0
        self.seconds = 0.0

    def begin(self) -> None:
        if not self._waiting:
            self._since = time.perf_counter()
        self._waiting += 1

    def end(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self.seconds += time.perf_counter() - self._since
