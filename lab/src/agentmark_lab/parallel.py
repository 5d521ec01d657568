"""Chunks of work over processes. A chunk brings its own seed, so the outcome does not depend on the workers."""

import os
import pickle
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TypeVar

import agentmark

PROGRESS_INTERVAL_S = 5.0

Chunk = TypeVar("Chunk")
Outcome = TypeVar("Outcome")
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Kept:
    """Where outcomes are kept, and under which code they were found: with another they count for nothing."""

    folder: Path
    code: str

    def place(self, label: str, chunk: object) -> Path:
        return self.folder / f"{sha256(repr((self.code, label, chunk)).encode()).hexdigest()[:32]}.pickle"


_kept: ContextVar[_Kept | None] = ContextVar("kept", default=None)


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Within, chunks that are done are kept in this folder, so that the run can be interrupted and taken up again. Once
    it has come to its end the folder is removed: whoever runs it again, runs it anew."""
    token = _kept.set(_Kept(folder, _code_digest()))
    try:
        yield
    finally:
        _kept.reset(token)
    shutil.rmtree(folder, ignore_errors=True)


def map_chunks(
    function: Callable[[Chunk], Outcome],
    chunks: Sequence[Chunk],
    *,
    workers: int,
    progress: Progress,
    label: str,
    keep: bool = True,
) -> list[Outcome]:
    """The outcomes in the order of the chunks. One worker means this process. `keep`: see `resumable`."""
    kept = _kept.get() if keep else None
    if kept is not None:
        done = sum([kept.place(label, chunk).exists() for chunk in chunks])
        if done:
            progress(f"{label}: {done} of {len(chunks)} chunks are done already")
        function = partial(_found_or_done, function, kept, label)
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


def _found_or_done(function: Callable[[Chunk], Outcome], kept: _Kept, label: str, chunk: Chunk) -> Outcome:
    place = kept.place(label, chunk)
    if place.exists():
        found: Outcome = pickle.loads(place.read_bytes())
        return found
    outcome = function(chunk)
    # Another run of the same experiment may have come to its end meanwhile, and removed the folder.
    place.parent.mkdir(parents=True, exist_ok=True)
    partial_file = place.with_suffix(f".partial-{os.getpid()}")
    partial_file.write_bytes(pickle.dumps(outcome))
    partial_file.replace(place)
    return outcome


def _code_digest() -> str:
    digest = sha256()
    for file in sorted(Path(agentmark.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


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
