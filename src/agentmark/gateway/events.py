"""Server-sent events, read from bytes as they come: a copy is parsed, the bytes themselves are not touched."""

from collections.abc import Iterator
from typing import Any

from agentmark.gateway.json_text import json_value

# A line that grows longer than this is no event that anybody sends.
MAX_LINE = 16 * 1024 * 1024
_DONE = b"[DONE]"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventReader:
    """Puts pieces of a stream together to the JSON objects that its events carry."""

    def __init__(self) -> None:
        # Pieces of a line that is not at its end, and their size.
        self._begun: list[bytes] = []
        self._size = 0
        self._data: list[bytes] = []
        # Whether the first line was read, which may begin with a mark.
        self._has_line = False
        # Whether the line after the last event was seen, with which chat completions end.
        self.is_done = False

    def feed(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """The objects of the events that this piece completes. JSON that is no object is passed over. What is no JSON
        is a ValueError: to whoever reads more leniently, it may be a call."""
        self._begun.append(piece)
        self._size += len(piece)
        if self._size > MAX_LINE:
            raise ValueError("a line of a stream that never ends")
        if b"\n" not in piece and b"\r" not in piece:
            return
        *lines, rest = b"".join(self._begun).split(b"\n")
        if b"\r" in rest or any(b"\r" in line[:-1] for line in lines):
            lines, rest = _lines([*lines, rest])
        self._begun, self._size = [rest], len(rest)
        if lines and not self._has_line:
            lines[0], self._has_line = lines[0].removeprefix(_BYTE_ORDER_MARK), True
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].strip())
            elif not line.rstrip(b"\r") and self._data:
                event = self._event()
                if event is not None:
                    yield event

    def end(self) -> Iterator[dict[str, Any]]:
        """What stands at the end without the empty line that ends an event."""
        yield from self.feed(b"\n\n")

    def _event(self) -> dict[str, Any] | None:
        data, self._data = b"\n".join(self._data), []
        if data == _DONE:
            self.is_done = True
            return None
        if not data:
            return None
        event = json_value(data)
        return event if isinstance(event, dict) else None


def _lines(parts: list[bytes]) -> tuple[list[bytes], bytes]:
    """Lines that may end with a carriage return alone, as the standard allows. One at the very end waits: a line feed
    may follow it."""
    text = b"\n".join(parts)
    is_open = text.endswith(b"\r")
    if is_open:
        text = text[:-1]
    *lines, rest = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return lines, rest + b"\r" if is_open else rest
