"""Processes that share the work of an audit. One worker is this process itself.

A job is a function of a module and its argument; it runs in a process that was given the keys when it was started, and
finds them by `held()`. What goes wrong in it comes back as text: an error need not be one that can be sent.
"""

import gc
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import connection, get_context, parent_process
from typing import Any, Self, TypeVar

from agentmark.core.errors import AgentMarkError

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")

# How often whoever watches is told while nothing is finished.
POLL_S = 0.2
# Jobs make objects by the million that stay, and collecting looks at all of them, time and again.
COLLECT_EVERY = 100_000
# Jobs for each worker that are sent to it before it has done the ones before.
IN_ADVANCE = 3


class WorkerError(AgentMarkError, RuntimeError):
    """A worker process that ended before its work was done. The audit can be taken up again."""

    def __init__(self, fault: str) -> None:
        super().__init__(
            f"{fault}. What is finished is kept: --resume goes on from there; fewer --workers take less memory"
        )


class JobError(AgentMarkError, RuntimeError):
    """What a job could not do, in its own words."""


@dataclass(frozen=True, slots=True)
class _Failure:
    text: str
    expected: bool


@dataclass(slots=True)
class _Held:
    """What this process was given for its jobs."""

    given: Any = None
    # Two counters that processes share; without one, those of this process.
    shared: Any = None
    counted: tuple[int, int] = (0, 0)


_HELD = _Held()


def held() -> Any:
    """What the workers were given, in the process of a job."""
    return _HELD.given


def count(done: int, records: int = 0) -> None:
    """So much more is done of a job, and so many records, for whoever watches all of them."""
    if _HELD.shared is None:
        _HELD.counted = _HELD.counted[0] + done, _HELD.counted[1] + records
        return
    with _HELD.shared.get_lock():
        _HELD.shared[0] += done
        _HELD.shared[1] += records


class Workers:
    """A pool of so many processes, each with what it is given. As a context manager it ends them all at once."""

    def __init__(self, workers: int, given: Any = None) -> None:
        """`given` is what `held` hands to jobs. It reaches a process through the pipe that starts it."""
        self._workers = workers
        self._given = given
        self._pool: ProcessPoolExecutor | None = None
        self._shared: Any = None

    def __enter__(self) -> Self:
        if self._workers == 1:
            _HELD.given, _HELD.shared, _HELD.counted = self._given, None, (0, 0)
        else:
            # A spawned process inherits nothing: no threads, no state, the same on every platform.
            context = get_context("spawn")
            self._shared = context.Array("q", 2)
            self._pool = ProcessPoolExecutor(
                self._workers, context, initializer=_begin, initargs=(self._given, self._shared)
            )
        return self

    def __exit__(self, *_: object) -> None:
        _HELD.given = None
        if self._pool is not None:
            self._end()

    @property
    def counted(self) -> tuple[int, int]:
        """What the jobs have counted so far: how much is done, and of how many records."""
        return _HELD.counted if self._shared is None else (self._shared[0], self._shared[1])

    def map(
        self, function: Callable[[Job], Outcome], jobs: Sequence[Job], watch: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[Job, Outcome]]:
        """Each job with what came of it, as they are done. `watch` is called now and then while they are."""
        if self._pool is None:
            for job in jobs:
                yield job, function(job)
                watch()
            return
        waiting: dict[Future[Any], Job] = {}
        left = iter(jobs)
        try:
            while True:
                # A few are waiting, so that nobody is idle; not all, which would be sent and held at once.
                for job in islice(left, IN_ADVANCE * self._workers - len(waiting)):
                    waiting[self._pool.submit(_attempt, function, job)] = job
                if not waiting:
                    return
                done, _ = wait(waiting, POLL_S, FIRST_COMPLETED)
                for future in done:
                    yield waiting.pop(future), _outcome(future.result())
                watch()
        except BrokenProcessPool:
            raise WorkerError("a worker process was ended from outside, as happens when memory runs out") from None

    def _end(self) -> None:
        """At once: a pool that is left to itself finishes what has begun."""
        assert self._pool is not None
        # Its own processes alone: whoever asked for the audit may have others.
        children = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for child in children:
            child.terminate()
        for child in children:
            child.join()
        self._pool = None


def _begin(given: Any, shared: Any) -> None:
    """A worker whose parent was killed must not work on for nobody. An interrupt is for the parent, which ends all."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(COLLECT_EVERY, 20, 20)
    _HELD.given, _HELD.shared = given, shared
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _attempt(function: Callable[[Any], Any], job: Any) -> Any:
    try:
        return function(job)
    except AgentMarkError as error:
        return _Failure(str(error), expected=True)
    except OSError as error:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return _Failure(f"{where}{error.strerror or error}", expected=True)
    except MemoryError:
        return _Failure("a worker ran out of memory", expected=True)
    except Exception:
        return _Failure(traceback.format_exc(), expected=False)


def _outcome(result: Any) -> Any:
    if isinstance(result, _Failure):
        if result.expected:
            raise JobError(result.text)
        raise RuntimeError(f"in a worker:\n{result.text}")
    return result


def default_workers() -> int:
    """The cores that this process may use."""
    with suppress(AttributeError):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
