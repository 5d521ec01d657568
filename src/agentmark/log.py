"""Logs of step records: JSON lines, appended so that a crash costs at most the line being written."""

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from agentmark.core.errors import RecordError
from agentmark.record import StepRecord

_GZIP_MAGIC = b"\x1f\x8b"


class LogWriter:
    """Appends records. Each goes out in one write, so that several processes may share a file on a local disk."""

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = False) -> None:
        self.path = Path(path)
        self._fsync = fsync
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        if self._ends_torn():
            # A crash left half a line. Close it, so that the next record does not grow onto it.
            os.write(self._descriptor, b"\n")

    def write(self, record: StepRecord) -> None:
        """Append one record; it is with the operating system on return, and on the disk if `fsync` was asked for."""
        line = record.to_json().encode("utf-8") + b"\n"
        written = os.write(self._descriptor, line)
        while written < len(line):
            written += os.write(self._descriptor, line[written:])
        if self._fsync:
            os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)

    def _ends_torn(self) -> bool:
        size = os.fstat(self._descriptor).st_size
        return size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(slots=True)
class LogReader:
    """Streams the records of a log (plain or gzip). Iterate it; then see what it passed over.

    A line cut short by a crash is passed over and listed in `torn_lines`. Any other broken line raises, unless
    `skip_bad` is set: then it is listed in `bad_lines`, with its number and fault.
    """

    path: str | os.PathLike[str]
    skip_bad: bool = False
    torn_lines: list[int] = field(default_factory=list)
    bad_lines: list[RecordError] = field(default_factory=list)

    def __iter__(self) -> Iterator[StepRecord]:
        self.torn_lines.clear()
        self.bad_lines.clear()
        with _open(Path(self.path)) as file:
            for number, line in enumerate(file, start=1):
                stripped = line.strip()
                if not stripped:
                    continue
                try:
                    yield StepRecord.from_json(stripped, where=f"{Path(self.path).name}:{number}")
                except RecordError as error:
                    if _is_torn(stripped):
                        self.torn_lines.append(number)
                    elif self.skip_bad:
                        self.bad_lines.append(error)
                    else:
                        raise


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        magic = file.read(len(_GZIP_MAGIC))
    if magic == _GZIP_MAGIC:
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return path.open("rb")


def _is_torn(line: bytes) -> bool:
    """True for the beginning of a record: the text ends before its JSON object does."""
    if not line.startswith(b'{"agentmark":'):
        return False
    try:
        # A cut may fall inside a character; the bytes before it still show where the JSON ends.
        text = line.decode("utf-8", errors="ignore")
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text) or error.msg.startswith("Unterminated string") or not text.endswith("}")
    return False
