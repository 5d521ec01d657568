"""Group commit: what many callers want written goes into one transaction, on a thread of its own.

While one transaction is on its way to the disk, all that comes in waits for the next. So a single caller waits for one
write to the disk, and a thousand callers wait for one or two.
"""

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from agentmark.store.database import Connection, Database, DatabaseError
from agentmark.store.errors import StoreBusyError, StoreClosedError, StoreError
from agentmark.store.rows import Entry
from agentmark.store.tables import write

# Calls that go into one transaction.
MAX_BATCH = 500
# Between tries, while the database is locked or away.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
# How often housekeeping is looked after.
HOUSEKEEPING_S = 5.0

SILENT = "does not answer: its server hangs, or the way to it is cut"


@dataclass(slots=True, eq=False)
class _Waiting:
    """One call, from when it is put in line until it is settled."""

    entry: Entry
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[None]"
    deadline: float
    # Whether it is in a transaction now, and whether one that it was in may have come through.
    is_taken: bool = False
    may_be_there: bool = False
    fault: str = ""


class Writing:
    """Writes entries in the order in which they came. Its calls are made on event loops, the writing on a thread."""

    def __init__(
        self,
        database: Database,
        *,
        patience_s: float,
        max_waiting: int,
        keep_house: Callable[[Connection], bool],
    ) -> None:
        self._database = database
        self._patience_s = patience_s
        self._max_waiting = max_waiting
        self._keep_house = keep_house
        self._line: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="agentmark-store", daemon=True)
        # Of the thread alone.
        self._connection: Connection | None = None
        self._house_due_at = time.monotonic() + HOUSEKEEPING_S
        # Read by others, for metrics.
        self.records = self.commits = 0
        self.failures: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """How many calls stand in line."""
        return len(self._line)

    def start(self) -> None:
        self._thread.start()

    async def write(self, entry: Entry) -> None:
        """Put in line, and wait until it is on the disk."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(entry, loop, loop.create_future(), time.monotonic() + self._patience_s)
        self._put(waiting)
        # The thread gives up in time, unless the database neither answers nor hangs up.
        clock = loop.call_later(2 * self._patience_s, self._give_up, waiting)
        try:
            await waiting.future
        except StoreError as error:
            self.failures[type(error).__name__] += 1
            raise
        finally:
            clock.cancel()

    def close(self) -> None:
        """Write what stands in line, within the patience of each, and end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread.ident is not None:
            # One that hangs in a call of the database is left behind: it ends with the process.
            self._thread.join(timeout=3 * self._patience_s)
        with self._changed:
            left = list(self._line)
            self._line.clear()
        self._settle([(waiting, self._failure(waiting, "was closed before it answered")) for waiting in left])

    def _put(self, waiting: _Waiting) -> None:
        name = self._database.name
        with self._changed:
            if self._is_closing:
                raise StoreClosedError(name, "is closed")
            is_full = len(self._line) >= self._max_waiting
            if not is_full:
                self._line.append(waiting)
                self._changed.notify()
        if is_full:
            self.failures[StoreBusyError.__name__] += 1
            raise StoreBusyError(name, f"{self._max_waiting} calls wait for it: it is too slow for what comes in")

    def _give_up(self, waiting: _Waiting) -> None:
        """The thread hangs in a call that does not come back."""
        with self._changed:
            with suppress(ValueError):
                self._line.remove(waiting)
            error = self._failure(waiting, SILENT, unsure=waiting.is_taken)
            connection = self._connection if waiting.is_taken else None
        if not waiting.future.done():
            waiting.future.set_exception(error)
        if connection is not None:
            connection.abort()

    def _failure(self, waiting: _Waiting, fault: str, *, unsure: bool = False) -> StoreError:
        unsure = unsure or waiting.may_be_there
        more = "; it may have been written all the same" if unsure else ""
        return StoreError(self._database.name, f"{waiting.fault or fault}{more}", written=None if unsure else False)

    # --- on the thread ---

    def _work(self) -> None:
        pause_s = 0.0
        while True:
            batch = self._take(pause_s)
            if batch is None:
                break
            is_well = self._write(batch) if batch else self._look_after_house()
            pause_s = 0.0 if is_well else min(max(2 * pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        if self._connection is not None:
            self._connection.close()

    def _take(self, pause_s: float) -> list[_Waiting] | None:
        """What is to be written now; empty if there is time for other things; None at the end."""
        with self._changed:
            if pause_s:
                self._changed.wait_for(lambda: self._is_closing, timeout=pause_s)
            elif not self._line and not self._is_closing:
                self._changed.wait(timeout=max(0.0, self._house_due_at - time.monotonic()))
            self._drop_late()
            if not self._line:
                return None if self._is_closing else []
            batch = [self._line.popleft() for _ in range(min(len(self._line), MAX_BATCH))]
            for waiting in batch:
                waiting.is_taken = True
            return batch

    def _drop_late(self) -> None:
        """Those that were tried, and whose time is over. One that was never tried gets its try."""
        now = time.monotonic()
        late = {waiting for waiting in self._line if waiting.fault and waiting.deadline <= now}
        if late:
            self._line = deque([waiting for waiting in self._line if waiting not in late])
            self._settle([(waiting, self._failure(waiting, "")) for waiting in late])

    def _write(self, batch: list[_Waiting]) -> bool:
        """Write a batch; False if the database is not well."""
        try:
            if self._connection is None:
                self._connection = self._database.connect()
            outcomes = self._written(self._connection, batch)
        except DatabaseError as fault:
            self._failed(batch, fault)
            return False
        self._settle(list(zip(batch, outcomes, strict=True)))
        return self._look_after_house()

    def _written(self, connection: Connection, batch: Sequence[_Waiting]) -> list[StoreError | None]:
        name = self._database.name
        try:
            outcomes = write(
                connection,
                name,
                [waiting.entry for waiting in batch],
                may_be_there=[waiting.may_be_there for waiting in batch],
            )
        except DatabaseError as fault:
            if not fault.of_entry:
                raise
            if len(batch) == 1:
                return [StoreError(name, str(fault))]
            # One of them holds what the database does not take: the others must not suffer for it.
            return [outcome for waiting in batch for outcome in self._written(connection, [waiting])]
        self.commits += 1
        self.records += sum(len(w.entry.records) for w, outcome in zip(batch, outcomes, strict=True) if not outcome)
        return outcomes

    def _failed(self, batch: Sequence[_Waiting], fault: DatabaseError) -> None:
        """Back into the line, in front, if it may yet be written; else the callers are told."""
        if fault.broken and self._connection is not None:
            self._connection.close()
            self._connection = None
        for waiting in batch:
            waiting.fault = str(fault)
            waiting.may_be_there = waiting.may_be_there or fault.unsure
            waiting.is_taken = False
        if fault.passing:
            with self._changed:
                self._line.extendleft([waiting for waiting in reversed(batch) if not waiting.future.done()])
        else:
            self._settle([(waiting, self._failure(waiting, str(fault))) for waiting in batch])

    def _settle(self, outcomes: Sequence[tuple[_Waiting, StoreError | None]]) -> None:
        """Tell the callers: each event loop once for all of its own."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Waiting, StoreError | None]]] = {}
        for waiting, outcome in outcomes:
            by_loop.setdefault(waiting.loop, []).append((waiting, outcome))
        for loop, told in by_loop.items():
            # A loop that is closed has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_tell, told)

    def _look_after_house(self) -> bool:
        """A part of what is due, between two commits. Nobody waits for it: if it fails, the next call says why."""
        if not self._is_house_due():
            return True
        has_more = False
        try:
            if self._connection is None:
                self._connection = self._database.connect()
            has_more = self._keep_house(self._connection)
        except DatabaseError as fault:
            if fault.broken and self._connection is not None:
                self._connection.close()
                self._connection = None
        self._house_due_at = time.monotonic() + (0.0 if has_more else HOUSEKEEPING_S)
        return True

    def _is_house_due(self) -> bool:
        return time.monotonic() >= self._house_due_at


def _tell(outcomes: Sequence[tuple[_Waiting, StoreError | None]]) -> None:
    for waiting, outcome in outcomes:
        if waiting.future.done():
            continue
        if outcome is None:
            waiting.future.set_result(None)
        else:
            waiting.future.set_exception(outcome)
