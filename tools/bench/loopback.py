"""For loads on the loopback: an upstream that answers in microseconds, and clients that count them.

    python -m bench.loopback PORT       serve an upstream there (from the folder tools)

Both speak just enough HTTP/1.1 for the gateway and its clients: bodies with a length, connections that are kept. What
the upstream says is chat completions (with `n`) or Anthropic's Messages, whole or streamed: a call of one of four
tools, drawn anew for each reply; or, where it is asked for probabilities on chat completions, the list of them.
"""

import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

# What a model would do next, and how likely.
TOOLS = {"search": 4, "add": 3, "price": 2, "ship": 1}
_NAMES, _WEIGHTS = list(TOOLS), list(TOOLS.values())
_COUNT = re.compile(rb'"n":\s*(\d+)')
# A request that leaves one way to go, and a question about the next step.
_FORCED = re.compile(rb'"tool_choice":\s*\{[^{}]*(?:\{[^{}]*)?"name":\s*"(\w+)"')
_ASKED = re.compile(rb"probabilit", re.IGNORECASE)
_STATED = json.dumps({**{name: weight / 10 for name, weight in TOOLS.items()}, "(answer)": 0})
_STREAM = re.compile(rb'"stream":\s*true')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:\s*chunked", re.IGNORECASE)


def chat_request(task: str, *, stream: bool = False) -> bytes:
    """What an agent asks, in the shape of chat completions."""
    parameters = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
    tools = [
        {"type": "function", "function": {"name": name, "description": f"{name} an item", "parameters": parameters}}
        for name in TOOLS
    ]
    messages = [{"role": "system", "content": "You run errands."}, {"role": "user", "content": task}]
    body = {"model": "gpt-4o", "messages": messages, "tools": tools, **({"stream": True} if stream else {})}
    return json.dumps(body).encode()


def messages_request(task: str, *, stream: bool = False) -> bytes:
    """The same in the shape of Anthropic's Messages."""
    schema = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
    tools = [{"name": name, "description": f"{name} an item", "input_schema": schema} for name in TOOLS]
    body = {
        "model": "claude-sonnet-5",
        "max_tokens": 500,
        "messages": [{"role": "user", "content": task}],
        "tools": tools,
        **({"stream": True} if stream else {}),
    }
    return json.dumps(body).encode()


# --- the upstream ----------------------------------------------------------------------------------------------------


class Model:
    """Draws what is called next."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self._forced: str | None = None

    def reply(self, path: bytes, body: bytes) -> tuple[str, bytes]:
        """The kind of content, and the content."""
        is_stream = _STREAM.search(body) is not None
        forced = _FORCED.search(body)
        self._forced = forced[1].decode() if forced else None
        if b"/messages" in path:
            return self._messages(is_stream)
        if _ASKED.search(body):
            return self._list()
        found = _COUNT.search(body)
        count = int(found[1]) if found else 1
        if is_stream:
            return self._chunks(count)
        choices = [
            {"index": index, "message": self._message(), "finish_reason": "tool_calls"} for index in range(count)
        ]
        usage = {"prompt_tokens": 100, "completion_tokens": 20 * count, "total_tokens": 100 + 20 * count}
        reply = {"id": self._id("chatcmpl"), "object": "chat.completion", "created": 1, "model": "gpt-4o"}
        return "application/json", json.dumps({**reply, "choices": choices, "usage": usage}).encode()

    def _id(self, kind: str) -> str:
        return f"{kind}-{self._rng.getrandbits(64):016x}"

    def _name(self) -> str:
        return self._forced or self._rng.choices(_NAMES, _WEIGHTS)[0]

    def _list(self) -> tuple[str, bytes]:
        message = {"role": "assistant", "content": _STATED}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        usage = {"prompt_tokens": 200, "completion_tokens": 40, "total_tokens": 240}
        reply = {"id": self._id("chatcmpl"), "object": "chat.completion", "created": 1, "model": "gpt-4o"}
        return "application/json", json.dumps({**reply, "choices": choices, "usage": usage}).encode()

    def _message(self) -> dict[str, object]:
        function = {"name": self._name(), "arguments": '{"item": "lamp"}'}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": self._id("call"), "type": "function", "function": function}],
        }

    def _chunks(self, count: int) -> tuple[str, bytes]:
        head = {"id": self._id("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
        said = []
        for index in range(count):
            message = self._message()
            calls = [{"index": 0, **call} for call in message["tool_calls"]]  # type: ignore[attr-defined]
            said.append({**head, "choices": [{"index": index, "delta": {**message, "tool_calls": calls}}]})
            said.append({**head, "choices": [{"index": index, "delta": {}, "finish_reason": "tool_calls"}]})
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in said]
        return "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode()

    def _messages(self, is_stream: bool) -> tuple[str, bytes]:
        block = {"type": "tool_use", "id": self._id("toolu"), "name": self._name(), "input": {"item": "lamp"}}
        reply: dict[str, object] = {
            "id": self._id("msg"),
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5",
            "content": [block],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }
        if not is_stream:
            return "application/json", json.dumps(reply).encode()
        part = {"type": "input_json_delta", "partial_json": '{"item": "lamp"}'}
        events: list[dict[str, object]] = [
            {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": {**block, "input": {}}},
            {"type": "content_block_delta", "index": 0, "delta": part},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
            {"type": "message_stop"},
        ]
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        return "text/event-stream", "".join(lines).encode()


class _Upstream(asyncio.Protocol):
    """One connection: requests with a length or in chunks, answered in their order."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._buffer[: end + 2]
            taken = _body_end(self._buffer, head, end + 4)
            if taken is None:
                return
            body, after = taken
            self._buffer = self._buffer[after:]
            kind, content = self._model.reply(head.split(b" ", 2)[1], body)
            said = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n".encode()
            if self._transport is not None:
                self._transport.write(said + content)


def _body_end(buffer: bytes, head: bytes, start: int) -> tuple[bytes, int] | None:
    """The body that begins at `start` and where it ends; None if it is not there yet."""
    if _CHUNKED.search(head):
        body, place = [], start
        while True:
            line_end = buffer.find(b"\r\n", place)
            if line_end < 0:
                return None
            size = int(buffer[place:line_end], 16)
            if len(buffer) < line_end + 4 + size:
                return None
            if not size:
                return b"".join(body), line_end + 4
            body.append(buffer[line_end + 2 : line_end + 2 + size])
            place = line_end + 4 + size
    found = _LENGTH.search(head)
    length = int(found[1]) if found else 0
    return (buffer[start : start + length], start + length) if len(buffer) >= start + length else None


async def serve(port: int, seed: int = 0) -> None:
    model = Model(seed)
    server = await asyncio.get_running_loop().create_server(lambda: _Upstream(model), "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


# --- the clients -----------------------------------------------------------------------------------------------------


@dataclass
class Load:
    """What clients saw."""

    # Seconds from a request to the last byte of its reply, in the order of their ends.
    latencies: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    seconds: float = 0.0

    def quantile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


async def load(
    port: int,
    path: str,
    body_of: Callable[[int], bytes],
    *,
    requests: int,
    clients: int,
    headers: Mapping[str, str] | None = None,
    each: Callable[[int], None] | None = None,
) -> Load:
    """So many requests by so many clients, each of which asks again when it has its answer."""
    seen = Load()
    numbers = iter(range(requests))
    extra = "".join([f"{name}: {value}\r\n" for name, value in (headers or {}).items()])
    begun = time.perf_counter()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for number in numbers:
                body = body_of(number)
                head = (
                    f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n{extra}"
                    f"Content-Length: {len(body)}\r\n\r\n"
                )
                asked = time.perf_counter()
                writer.write(head.encode() + body)
                status, _ = await read_reply(reader)
                seen.latencies.append(time.perf_counter() - asked)
                seen.statuses[status] = seen.statuses.get(status, 0) + 1
                if each is not None:
                    each(len(seen.latencies))
        finally:
            writer.close()

    await asyncio.gather(*[client() for _ in range(clients)])
    seen.seconds = time.perf_counter() - begun
    return seen


async def read_reply(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status and the body of one reply."""
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    if _CHUNKED.search(head):
        body = []
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readexactly(2)
        return status, b"".join(body)
    found = _LENGTH.search(head)
    return status, await reader.readexactly(int(found[1]) if found else 0)


def main(arguments: Sequence[str]) -> None:
    asyncio.run(serve(int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0))


if __name__ == "__main__":
    main(sys.argv[1:])
