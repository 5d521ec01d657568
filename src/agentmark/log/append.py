"""Lines at the end of a file: whole, and never grown onto what a crash has left."""

import os


def write_whole(descriptor: int, line: bytes) -> None:
    """Write all of it: one call, unless the disk takes less at a time."""
    while line:
        line = line[os.write(descriptor, line) :]


def ends_torn(descriptor: int) -> bool:
    """Whether a crash has left half a line at the end of the file."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
