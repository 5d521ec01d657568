"""Streamed replies that are read ahead: until a sample has shown what it does, or until its first event is there.

A sample's stream is read before it is known whether it will be used. What was read is kept, and comes first when the
stream is passed on.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Generic, TypeVar

Event = TypeVar("Event")
# Takes in an event; says whether enough was seen.
Sees = Callable[[Any], bool]


class Buffered(Generic[Event]):
    """A stream with its beginning read ahead. Iterate over it once: the part that was read, then the rest."""

    def __init__(self, source: Iterator[Event]) -> None:
        self._source = iter(source)
        self._read: list[Event] = []
        self.is_at_end = False

    def read_until(self, sees: Sees) -> None:
        """Read on until `sees` says so of an event, or to the end."""
        for event in self._source:
            self._read.append(event)
            if sees(event):
                return
        self.is_at_end = True

    def __iter__(self) -> Iterator[Event]:
        read, self._read = self._read, []
        yield from read
        yield from self._source

    def close(self) -> None:
        """Let go of the rest: where the source can be closed, its connection is."""
        self._read = []
        close = getattr(self._source, "close", None)
        if close is not None:
            close()


class AsyncBuffered(Generic[Event]):
    """The same for streams that are awaited."""

    def __init__(self, source: AsyncIterator[Event]) -> None:
        self._source = aiter(source)
        self._read: list[Event] = []
        self.is_at_end = False

    async def read_until(self, sees: Sees) -> None:
        """Read on until `sees` says so of an event, or to the end."""
        async for event in self._source:
            self._read.append(event)
            if sees(event):
                return
        self.is_at_end = True

    async def __aiter__(self) -> AsyncIterator[Event]:
        read, self._read = self._read, []
        for event in read:
            yield event
        async for event in self._source:
            yield event

    async def aclose(self) -> None:
        """Let go of the rest: where the source can be closed, its connection is."""
        self._read = []
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()
