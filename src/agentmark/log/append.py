"""Lines at the end of a file: whole, one writer at a time, and never grown onto what a crash has left."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from agentmark.core.errors import AgentMarkError

# How long a writer waits for the lock, and between two tries. An honest one holds it for a fraction of a millisecond,
# and at opening for as long as reading the log takes.
LOCK_PATIENCE_S = 30.0
LOCK_PAUSE_S = 0.002


class LockHeldError(AgentMarkError, TimeoutError):
    """Somebody keeps the lock on a log, and what was to be written is not."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where}: another process has held the lock on this file for {LOCK_PATIENCE_S:g} seconds. "
            "Whoever can read the file can do so; `lslocks` or `fuser` says which process it is."
        )
        self.where = where


def write_whole(descriptor: int, line: bytes) -> None:
    """Write all of it: one call, unless the disk takes less at a time."""
    while line:
        line = line[os.write(descriptor, line) :]


def ends_torn(descriptor: int) -> bool:
    """Whether a crash has left half a line at the end of the file."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


@contextmanager
def locked(descriptor: int, where: str) -> Iterator[None]:
    """Keep other processes out that ask for the same lock (POSIX)."""
    # Imported here: a log that needs no lock is written on other systems too.
    import fcntl

    deadline = time.monotonic() + LOCK_PATIENCE_S
    # Tried again and again: a call that waits would wait for ever, for anybody who can open the file to read it.
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockHeldError(where) from None
        time.sleep(LOCK_PAUSE_S)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
