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
    try:
        file = Path(path).open("rb")
    except ValueError:
        # A zero byte, or text that the file system's encoding does not have.
        raise FileError(path, "is not a name that a file can have") from None
    with file:
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
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror}") from None
    except ValueError:
        raise FileError(path, "is not a name that a file can have") from None
