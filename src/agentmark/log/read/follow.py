"""A log of JSON lines that is still being written: what is new in it, each time one asks."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from agentmark.chain.checkpoint import Checkpoint
from agentmark.log.lines import is_torn, parse_line, parsed_size
from agentmark.log.sizes import MAX_LINE, MAX_PARSED
from agentmark.record import RecordError, StepRecord

_PORTION = 1 << 20


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the log that its reader should know, in a sentence."""

    sentence: str


class Lines:
    """Bytes as they come, cut into lines. The last one waits until its line feed is there."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rest = b""
        self._number = 0
        self._too_long = False

    @property
    def is_within_a_line(self) -> bool:
        return bool(self._rest) or self._too_long

    def feed(self, data: bytes) -> Iterator[StepRecord | Note]:
        """The records of the lines that these bytes end. What is not one is passed over, with a note."""
        *whole, rest = (self._rest + data).split(b"\n")
        for line in whole:
            self._number += 1
            if self._too_long or len(line) > MAX_LINE:
                self._too_long = False
                yield Note(f"{self._where}: passed over: longer than {MAX_LINE >> 20} MiB")
            elif parsed_size(line) > MAX_PARSED:
                yield Note(f"{self._where}: passed over: takes more than {MAX_PARSED >> 20} MiB when it is parsed")
            elif line.strip():
                yield from self._read(line.strip())
        self._too_long = self._too_long or len(rest) > MAX_LINE
        self._rest = b"" if self._too_long else rest

    def end(self) -> Iterator[StepRecord | Note]:
        """Nothing more will come: what stands without its line feed is a record, or was cut short."""
        if self.is_within_a_line:
            yield from self.feed(b"\n")

    def restart(self) -> None:
        self._rest, self._number, self._too_long = b"", 0, False

    @property
    def _where(self) -> str:
        return f"{self._name}:{self._number}"

    def _read(self, line: bytes) -> Iterator[StepRecord | Note]:
        try:
            content = parse_line(line, where=self._where, number=self._number)
        except RecordError as error:
            torn = is_torn(line, ended=True)
            yield Note(f"{self._where}: is cut short" if torn else f"passed over: {error}")
            return
        if not isinstance(content, Checkpoint):
            yield content


class GrowingLog:
    """A file of JSON lines that others append to, replace or cut. It need not be there yet."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lines = Lines(self.path.name)
        self._file: BufferedReader | None = None

    def poll(self) -> Iterator[StepRecord | Note]:
        """What has come since the last time: records, and notes on what was passed over or happened to the file."""
        if self._file is None and not self._open():
            return
        yield from self._read_on()
        if self._was_replaced():
            # What was still written to the old file is read; then the new one, from its beginning.
            yield from self._read_on()
            yield from self._lines.end()
            self.close()
            self._lines.restart()
            yield Note(f"{self.path}: was replaced by another file, which is read from its beginning")
            if self._open():
                yield from self._read_on()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def is_within_a_line(self) -> bool:
        """Whether the file ends in a line that is not complete yet."""
        return self._lines.is_within_a_line

    def _open(self) -> bool:
        try:
            self._file = self.path.open("rb")
        except FileNotFoundError:
            return False
        return True

    def _read_on(self) -> Iterator[StepRecord | Note]:
        file = self._file
        if file is None:
            return
        if os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)
            self._lines.restart()
            yield Note(f"{self.path}: became shorter, and is read from its beginning")
        while data := file.read(_PORTION):
            yield from self._lines.feed(data)

    def _was_replaced(self) -> bool:
        if self._file is None:
            return False
        try:
            now = self.path.stat()
        except FileNotFoundError:
            # Moved away, and nothing in its place yet: the old file may still grow.
            return False
        old = os.fstat(self._file.fileno())
        return (now.st_dev, now.st_ino) != (old.st_dev, old.st_ino)
