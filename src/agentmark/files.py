"""Files that are read whole and are small by nature: keys, registries, reports, lists. And files written in one go."""

import os
import stat
from pathlib import Path

from agentmark.core.errors import AgentMarkError


class FileError(AgentMarkError, ValueError):
    """A file that cannot be what was meant: a device, far too large, a name that no file can have."""

    def __init__(self, path: str | os.PathLike[str], fault: str) -> None:
        super().__init__(f"{os.fspath(path)}: {fault}")
        self.path = os.fspath(path)
        self.fault = fault


def read_small_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """All bytes of a file, or of a pipe that ends; refused beyond `limit` bytes, of which no more than that are read.

    What the system refuses (no such file, a folder, no right to read it) is an OSError, as from `open`.
    """
    _check_name(path)
    with Path(path).open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise FileError(path, "is a device, not a file")
        # One byte more than may be there, so that a pipe or a file that grows cannot go on for ever.
        content = file.read(limit + 1)
    if len(content) > limit:
        raise FileError(path, f"is larger than {limit:,} bytes, the most that such a file may have")
    return content


def write_text_file(path: str | os.PathLike[str], text: str) -> None:
    """Write text to a file, in place of what it held."""
    write_file(path, text.encode("utf-8"))


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes to a file, in place of what it held."""
    _check_name(path)
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror}") from None


def _check_name(path: str | os.PathLike[str]) -> None:
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise FileError(path, "is not a name that a file can have")
