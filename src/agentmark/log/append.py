"""Lines at the end of a file: whole, one writer at a time, and never grown onto what a crash has left."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


def write_whole(descriptor: int, line: bytes) -> None:
    """Write all of it: one call, unless the disk takes less at a time."""
    while line:
        line = line[os.write(descriptor, line) :]


def ends_torn(descriptor: int) -> bool:
    """Whether a crash has left half a line at the end of the file."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


@contextmanager
def locked(descriptor: int) -> Iterator[None]:
    """Keep other processes out that ask for the same lock (POSIX)."""
    # Imported here: a log that needs no lock is written on other systems too.
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
