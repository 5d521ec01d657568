"""AgentMark's own logs: JSON lines, plain or packed with gzip."""

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agentmark.chain.checkpoint import Checkpoint
from agentmark.log.lines import is_checkpoint, is_torn, parse_line
from agentmark.record import RecordError, StepRecord

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(slots=True)
class LogReader:
    """Streams the records of a log (plain or gzip). Iterate it; then see what it passed over.

    A line cut short by a crash is passed over and listed in `torn_lines`. Any other broken line raises, unless
    `skip_bad` is set: then it is listed in `bad_lines`, with its number and fault. The checkpoints of a chain are
    collected; a broken one is listed in `bad_checkpoints`, and never stops the records from being read.
    """

    path: str | os.PathLike[str]
    skip_bad: bool = False
    torn_lines: list[int] = field(default_factory=list)
    bad_lines: list[RecordError] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    bad_checkpoints: list[RecordError] = field(default_factory=list)
    # The line of the record that was read last.
    line: int = 0

    def __iter__(self) -> Iterator[StepRecord]:
        for passed_over in (self.torn_lines, self.bad_lines, self.checkpoints, self.bad_checkpoints):
            passed_over.clear()
        with Path(self.path).open("rb") as file:
            # Opened once and looked into, so that a pipe can be read as well.
            packed = file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
            yield from self.read(gzip.GzipFile(fileobj=file) if packed else file)

    def read(self, lines: Iterable[bytes]) -> Iterator[StepRecord]:
        """The records of lines that were unpacked already. EOFError among them is a packed log that was cut."""
        for number, line in self._numbered_lines(lines):
            stripped = line.strip()
            if not stripped:
                continue
            try:
                content = parse_line(stripped, where=f"{Path(self.path).name}:{number}", number=number)
                if isinstance(content, Checkpoint):
                    self.checkpoints.append(content)
                else:
                    self.line = number
                    yield content
            except RecordError as error:
                if is_torn(stripped, ended=line.endswith(b"\n")):
                    self.torn_lines.append(number)
                elif is_checkpoint(stripped):
                    self.bad_checkpoints.append(error)
                elif self.skip_bad:
                    self.bad_lines.append(error)
                else:
                    raise

    def _numbered_lines(self, lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        number = 0
        try:
            for number, line in enumerate(lines, start=1):
                yield number, line
        except (EOFError, zlib.error, gzip.BadGzipFile):
            # A packed log that was cut short: what could be unpacked has been read.
            self.torn_lines.append(number + 1)
