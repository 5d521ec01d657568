"""Records go out on a thread of their own: a sink that hangs holds up the agent once, and not for good (law L11)."""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import Context, copy_context
from dataclasses import dataclass, field

from agentmark.core.errors import AgentMarkError
from agentmark.decide.forks import renew_in_forks
from agentmark.log.sink import Sink
from agentmark.record import StepRecord

# How long a step waits until its record is written.
PATIENCE_S = 5.0
# Records that stand in line for a sink that is behind; what comes after is lost, and counted.
MAX_WAITING = 1000
# A thread that had nothing to write for so long ends; the next record starts another.
IDLE_S = 5.0


class LateRecordError(AgentMarkError, TimeoutError):
    """A record is not written yet: its sink does not answer. It stands in line."""


class LostRecordError(AgentMarkError, TimeoutError):
    """A record will not be written: its sink has not answered for too long."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A record in line, and who called: a tracer finds its span in the caller's context."""

    record: StepRecord
    context: Context = field(default_factory=copy_context)
    done: "Future[None]" = field(default_factory=Future)


class Writing:
    """Writes to one sink, one record after the other, in the order in which they came. Thread-safe.

    As a rule a record is written when `write` returns. If the sink takes longer than an agent can wait, the record
    stays in line, and those behind it are not waited for until the sink has caught up.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        lost: Callable[[StepRecord, BaseException], None],
        patience_s: float = PATIENCE_S,
        most: int = MAX_WAITING,
    ) -> None:
        """`lost` is told of records that nobody waited for any more, and that failed."""
        self._sink = sink
        self._lost = lost
        self._patience_s = patience_s
        self._most = most
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        """Begin with an empty line. What stands in it at a fork is the parent's to write."""
        self._line: queue.Queue[_Waiting] = queue.Queue(self._most)
        self._late: set[_Waiting] = set()
        self._thread: threading.Thread | None = None
        # The one guards the three above; the other is held while the sink writes.
        self._lock = threading.Lock()
        self._at_work = threading.Lock()

    def write(self, record: StepRecord) -> None:
        """Write, and wait for it. Raises what the sink raised; `LateRecordError` if it takes too long."""
        waiting = self._put(record)
        wait([waiting.done], timeout=self._time_left(waiting))
        self._settle(waiting)

    async def awrite(self, record: StepRecord) -> None:
        """The same, without holding up the event loop."""
        waiting = self._put(record)
        # Neither the time limit nor a caller that is cancelled takes the record out of the line.
        await asyncio.wait([asyncio.wrap_future(waiting.done)], timeout=self._time_left(waiting))
        self._settle(waiting)

    def close(self) -> None:
        """Give what stands in line a last chance. What is left of it then is lost."""
        with self._lock:
            late = list(self._late)
        wait([waiting.done for waiting in late], timeout=self._patience_s)
        with self._lock:
            left = [waiting for waiting in late if waiting in self._late]
            self._late.difference_update(left)
        for waiting in left:
            self._lost(waiting.record, LostRecordError("the sink did not answer before the log was closed"))

    def _put(self, record: StepRecord) -> _Waiting:
        waiting = _Waiting(record)
        with self._lock:
            try:
                self._line.put_nowait(waiting)
            except queue.Full:
                raise LostRecordError(f"{self._most} records wait for a sink that does not answer") from None
            if self._late:
                self._late.add(waiting)
            has_thread = self._thread is not None or self._start()
        if not has_thread:
            self._write_all()
        return waiting

    def _start(self) -> bool:
        """Start the thread; False where none can be started: then the record is worth the wait."""
        thread = threading.Thread(target=self._work, name="agentmark-log", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._thread = thread
        return True

    def _work(self) -> None:
        while True:
            try:
                self._write_one(self._line.get(timeout=IDLE_S))
            except queue.Empty:
                with self._lock:
                    if self._line.empty():
                        self._thread = None
                        return

    def _write_all(self) -> None:
        while True:
            try:
                self._write_one(self._line.get_nowait())
            except queue.Empty:
                return

    def _write_one(self, waiting: _Waiting) -> None:
        error: BaseException | None = None
        with self._at_work:
            try:
                waiting.context.run(self._sink.write, waiting.record)
            except BaseException as raised:
                error = raised
        with self._lock:
            was_late = waiting in self._late
            self._late.discard(waiting)
            if error is None:
                waiting.done.set_result(None)
            else:
                waiting.done.set_exception(error)
        if was_late and error is not None:
            self._lost(waiting.record, error)

    def _time_left(self, waiting: _Waiting) -> float:
        """A sink that is known to be behind is not waited for."""
        return 0.0 if waiting in self._late else self._patience_s

    def _settle(self, waiting: _Waiting) -> None:
        with self._lock:
            if not waiting.done.done():
                self._late.add(waiting)
                raise LateRecordError("the sink does not answer: the record stands in line")
        waiting.done.result()
