"""How much at once, and how much in a minute: for the whole gateway and for each tenant; and what is one at a time."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from agentmark.gateway.errors import GatewayError


class Limit:
    """So many requests at once, and so many a minute, with a minute's worth to begin with. For one event loop."""

    def __init__(
        self,
        *,
        concurrent: int | None = None,
        per_minute: int | None = None,
        status: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`status`: what is answered beyond it, 429 for a tenant's own limit, 503 for the gateway's."""
        self._concurrent = concurrent
        self._per_minute = per_minute
        self._status = status
        self._clock = clock
        self._left = float(per_minute or 0)
        self._at = clock()
        self.in_flight = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold a place while a request is answered; raises `GatewayError` if there is none."""
        if self._concurrent is not None and self.in_flight >= self._concurrent:
            raise GatewayError(self._status, "too many requests at once", "too many at once", retry_after_s=1)
        self._take()
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    def _take(self) -> None:
        if self._per_minute is None:
            return
        now = self._clock()
        rate = self._per_minute / 60
        self._left = min(float(self._per_minute), self._left + (now - self._at) * rate)
        self._at = now
        if self._left < 1:
            wait = math.ceil((1 - self._left) / rate)
            raise GatewayError(429, "more requests than the limit of a minute", "rate limit", retry_after_s=wait)
        self._left -= 1


class InTurn:
    """Requests of one name, one after the other; those of others beside them. For one event loop."""

    def __init__(self) -> None:
        # By name: who is answered, and how many are answered or wait.
        self._locks: dict[tuple[str, str], tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def one(self, name: tuple[str, str]) -> AsyncIterator[None]:
        """Wait until nobody of this name is answered, and be answered."""
        lock, count = self._locks.get(name) or (asyncio.Lock(), 0)
        self._locks[name] = lock, count + 1
        try:
            async with lock:
                yield
        finally:
            lock, count = self._locks[name]
            if count > 1:
                self._locks[name] = lock, count - 1
            else:
                del self._locks[name]
