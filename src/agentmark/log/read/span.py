"""A range of a file, as a file of its own."""

import io
import os
from typing import Any


class FileSpan(io.RawIOBase):
    """The bytes from `start` up to `end`, and how many lines end in what was read of them."""

    def __init__(self, path: str | os.PathLike[str], start: int, end: int) -> None:
        super().__init__()
        self._file = io.FileIO(path)
        self._file.seek(start)
        self._left = end - start
        self.lines = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        self._left -= len(data)
        self.lines += data.count(b"\n")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()
