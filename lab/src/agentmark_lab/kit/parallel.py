"""Chunks of work over processes. A chunk brings its own seed, so the outcome does not depend on the workers."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import active_children, get_context
from typing import TypeVar

from agentmark_lab.kit.options import Progress
from agentmark_lab.kit.resume import kept_here

PROGRESS_INTERVAL_S = 5.0

Chunk = TypeVar("Chunk")
Outcome = TypeVar("Outcome")


def map_chunks(
    function: Callable[[Chunk], Outcome],
    chunks: Sequence[Chunk],
    *,
    workers: int,
    progress: Progress,
    label: str,
    code: str | None = None,
) -> list[Outcome]:
    """The outcomes in the order of the chunks. One worker means this process. Within `resumable` each is kept, under
    the digest of the code that its outcome depends on: of the whole library and lab, unless `code` names it."""
    kept = kept_here()
    if kept is not None:
        kept = kept if code is None else replace(kept, code=code)
        states = kept.states(label, chunks)
        if states.done:
            progress(f"{label}: {states.done} of {len(chunks)} chunks are done already")
        if states.stale:
            progress(f"{label}: {states.stale} of {len(chunks)} chunks were done by other code, and are done again")
        function = partial(kept.found_or_done, function, label)
    if workers == 1:
        return list(_reported(map(function, chunks), len(chunks), progress, label))
    # A spawned process inherits nothing: no threads, no state, the same on every platform.
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_stop_without, initargs=(os.getpid(),)) as pool:
        try:
            return list(_reported(pool.map(function, chunks), len(chunks), progress, label))
        except KeyboardInterrupt:
            # The pool would wait for the chunks that have begun.
            for child in active_children():
                child.terminate()
            raise


def _stop_without(parent: int) -> None:
    """A worker whose parent was killed would finish its chunk for nobody, which can take minutes. An interrupt is for
    the parent, which stops its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _reported(outcomes: Iterable[Outcome], total: int, progress: Progress, label: str) -> Iterator[Outcome]:
    progress(f"{label}: {total} chunks")
    last = time.monotonic()
    for done, outcome in enumerate(outcomes, start=1):
        if time.monotonic() - last >= PROGRESS_INTERVAL_S:
            last = time.monotonic()
            progress(f"{label}: {done} of {total} chunks")
        yield outcome
