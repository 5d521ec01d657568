"""Chunks of work over processes. A chunk brings its own seed, so the outcome does not depend on the workers."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from agentmark.lab.experiment import Progress

PROGRESS_INTERVAL_S = 5.0

Chunk = TypeVar("Chunk")
Outcome = TypeVar("Outcome")


def map_chunks(
    function: Callable[[Chunk], Outcome], chunks: Sequence[Chunk], *, workers: int, progress: Progress, label: str
) -> list[Outcome]:
    """The outcomes in the order of the chunks. One worker means this process."""
    if workers == 1:
        return list(_reported(map(function, chunks), len(chunks), progress, label))
    # A spawned process inherits nothing: no threads, no state, the same on every platform.
    with ProcessPoolExecutor(max_workers=workers, mp_context=get_context("spawn")) as pool:
        return list(_reported(pool.map(function, chunks), len(chunks), progress, label))


def _reported(outcomes: Iterable[Outcome], total: int, progress: Progress, label: str) -> Iterator[Outcome]:
    progress(f"{label}: {total} chunks")
    last = time.monotonic()
    for done, outcome in enumerate(outcomes, start=1):
        if time.monotonic() - last >= PROGRESS_INTERVAL_S:
            last = time.monotonic()
            progress(f"{label}: {done} of {total} chunks")
        yield outcome
