"""Parts of an audit on disk: each file holds what some shards say, sorted by the part that it belongs to.

    magic | blocks | for each part the place of its last block | number of parts | magic
    block: length, place of the block before it of the same part (0: none), content

A file is written under another name and renamed when it is finished, so that one that is there is whole. Whoever reads
one part touches its own blocks and nothing else.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

from agentmark.core.errors import AgentMarkError

_MAGIC = b"AMSP\x01"
_BLOCK = struct.Struct(">QQ")
_PLACE = struct.Struct(">Q")
_END = struct.Struct(">I5s")


class SpillError(AgentMarkError, ValueError):
    """A file of an audit's working folder that is not what was written there."""

    def __init__(self, path: str | os.PathLike[str], fault: str) -> None:
        super().__init__(f"{os.fspath(path)}: {fault}; remove the working folder and begin anew")
        self.path = os.fspath(path)
        self.fault = fault


class SpillWriteError(AgentMarkError, RuntimeError):
    """Parts that cannot be written: a full disk, say. No fault of the files that are read."""

    def __init__(self, path: str | os.PathLike[str], error: OSError) -> None:
        super().__init__(
            f"{os.fspath(path)}: cannot be written: {error.strerror or error}. What is finished is kept: make room, "
            "and --resume goes on"
        )


def part_of(name: str, part_count: int) -> int:
    """Which part a group belongs to: the same on every machine and in every run."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % part_count


class SpillWriter:
    """Writes a spill file. Leaving it as a context manager without an error finishes it; else nothing is left."""

    def __init__(self, path: Path, part_count: int) -> None:
        self.path = path
        self._temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        self._last = [0] * part_count
        self._file = self._temporary.open("wb")
        self._file.write(_MAGIC)
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
        except OSError as fault:
            raise SpillWriteError(self.path, fault) from None
        finally:
            # What is still to be written of a file that is given up may not fit either.
            with suppress(OSError):
                self._file.close()
            self._temporary.unlink(missing_ok=True)

    def write(self, part: int, content: bytes) -> None:
        """Add a block to a part, behind those that it has."""
        place = self._file.tell()
        self._file.write(_BLOCK.pack(len(content), self._last[part]))
        self._file.write(content)
        self._last[part] = place

    def mark(self) -> tuple[int, list[int]]:
        """Where it stands, for `back_to`."""
        return self._file.tell(), list(self._last)

    def back_to(self, mark: tuple[int, list[int]]) -> None:
        """Drop what was written since."""
        self._file.seek(mark[0])
        self._file.truncate()
        self._last = mark[1]

    def _finish(self) -> None:
        for place in self._last:
            self._file.write(_PLACE.pack(place))
        self._file.write(_END.pack(len(self._last), _MAGIC))
        self.size = self._file.tell()
        self._file.close()
        self._temporary.replace(self.path)


def read_blocks(path: Path, part: int) -> Iterator[bytes]:
    """The blocks of one part, in the order in which they were written."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        if end < len(_MAGIC) + _END.size:
            raise SpillError(path, "is cut short")
        file.seek(end - _END.size)
        part_count, magic = _END.unpack(file.read(_END.size))
        table = end - _END.size - part_count * _PLACE.size
        if magic != _MAGIC or part >= part_count or table < len(_MAGIC):
            raise SpillError(path, "is no file of parts")
        file.seek(table + part * _PLACE.size)
        (place,) = _PLACE.unpack(file.read(_PLACE.size))
        places: list[tuple[int, int]] = []
        while place:
            if place >= table or (places and place >= places[-1][0]):
                raise SpillError(path, "is damaged")
            file.seek(place)
            length, before = _BLOCK.unpack(file.read(_BLOCK.size))
            places.append((place, length))
            place = before
        for place, length in reversed(places):
            file.seek(place + _BLOCK.size)
            content = file.read(length)
            if len(content) != length:
                raise SpillError(path, "is cut short")
            yield content
