"""Logs of step records: JSON lines, appended so that a crash costs at most the line being written."""

import gzip
import json
import os
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from agentmark.checkpoint import CHECKPOINT_MEMBER, Checkpoint
from agentmark.core.errors import RecordError, SettingError
from agentmark.record import StepRecord
from agentmark.sinks.sync import Fsync, Syncer

if TYPE_CHECKING:
    from agentmark.chain import ChainWriter

_GZIP_MAGIC = b"\x1f\x8b"


class LogWriter:
    """Appends records. Each goes out in one write, so that several processes may share a file on a local disk."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool | Fsync | Syncer = False,
        chain: "ChainWriter | None" = None,
    ) -> None:
        """`fsync`: never (False), always (True), or at intervals. With a `chain` each record names the one before it;
        what the log holds already is then read here, once.
        """
        if chain is not None and not chain.is_new:
            raise SettingError("chain", "serves a log already; make one for each")
        self.path = Path(path)
        self._syncer = new_syncer(fsync)
        self._file: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        # A crash may have left half a line. The next record then begins by closing it.
        self._torn = self._ends_torn()
        self._chain = chain
        # Up to which byte of the log the chain knows it.
        self._known_size = 0
        self._lock = threading.Lock()
        if chain is not None:
            with self._locked():
                self._catch_up(chain)

    def write(self, record: StepRecord) -> None:
        """Append one record; it is with the operating system on return, and on the disk if `fsync` was asked for."""
        if self._chain is None:
            self._append(record)
            return
        with self._locked():
            self._catch_up(self._chain)
            self._append_observed(self._chain, self._chain.link(record))
            if self._chain.checkpoint_is_due:
                self._append_checkpoint(self._chain)

    def checkpoint(self) -> None:
        """Sign what a chained log holds by now, if there is a signing key and anything is new."""
        if self._chain is not None:
            with self._locked():
                self._catch_up(self._chain)
                self._append_checkpoint(self._chain)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One at a time, among threads and processes: a link is only true if nobody writes between read and write."""
        import fcntl

        with self._lock:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _catch_up(self, chain: "ChainWriter") -> None:
        """Observe what the log has gained: all of it at opening, later what other writers appended."""
        size = os.fstat(self._descriptor).st_size
        if size == self._known_size:
            return
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(self._known_size)
            for line in file:
                with suppress(RecordError):
                    chain.observe(_parse(line.strip(), where=str(self.path)))
        self._known_size = size
        self._torn = self._ends_torn()

    def _append_observed(self, chain: "ChainWriter", line: StepRecord | Checkpoint) -> None:
        self._append(line)
        # Where our line ends. What others slipped in before it without the lock is not chained, and needs no notice.
        self._known_size = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        chain.observe(line)

    def _append_checkpoint(self, chain: "ChainWriter") -> None:
        checkpoint = chain.checkpoint()
        if checkpoint is not None:
            self._append_observed(chain, checkpoint)

    def _append(self, content: StepRecord | Checkpoint) -> None:
        line = content.to_json().encode("utf-8") + b"\n"
        if self._torn:
            line = b"\n" + line
        # Until the whole line is out, what follows must not grow onto it: a full disk may pass.
        self._torn = True
        write_whole(self._descriptor, line)
        self._torn = False
        self._syncer.wrote(self._descriptor)

    def close(self) -> None:
        """Close the log; a chained one with a last checkpoint. Again, it does nothing."""
        if self._file is None:
            return
        try:
            self.checkpoint()
            self._syncer.finish(self._descriptor)
        finally:
            # The number is the system's to give away from here on: whoever has it next must not get our lines.
            closing, self._file = self._descriptor, None
            os.close(closing)

    @property
    def _descriptor(self) -> int:
        if self._file is None:
            raise SettingError(str(self.path), "is closed")
        return self._file

    def _ends_torn(self) -> bool:
        return ends_torn(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def new_syncer(fsync: bool | Fsync | Syncer) -> Syncer:
    """The policy that a writer was asked for; True and False stand for always and never."""
    if isinstance(fsync, Syncer):
        return fsync
    return Syncer(fsync if isinstance(fsync, str) else "always" if fsync else "never")


def write_whole(descriptor: int, line: bytes) -> None:
    """Write all of it: one call, unless the disk takes less at a time."""
    while line:
        line = line[os.write(descriptor, line) :]


def ends_torn(descriptor: int) -> bool:
    """Whether a crash has left half a line at the end of the file."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


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
                content = _parse(stripped, where=f"{Path(self.path).name}:{number}", number=number)
                if isinstance(content, Checkpoint):
                    self.checkpoints.append(content)
                else:
                    self.line = number
                    yield content
            except RecordError as error:
                if is_torn(stripped, ended=line.endswith(b"\n")):
                    self.torn_lines.append(number)
                elif _is_checkpoint(stripped):
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


def _parse(line: bytes, *, where: str, number: int | None = None) -> StepRecord | Checkpoint:
    if _is_checkpoint(line):
        return Checkpoint.from_json(line, where=where, line=number)
    return StepRecord.from_json(line, where=where)


def _is_checkpoint(line: bytes) -> bool:
    """Whether the line means to be a checkpoint. Only one that holds the name at all is looked into."""
    name = f'"{CHECKPOINT_MEMBER}"'.encode()
    if name not in line:
        return False
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return line.startswith(b"{" + name)
    return isinstance(content, dict) and CHECKPOINT_MEMBER in content and "agentmark" not in content


LINE_BEGINNING = b'{"agentmark'


def is_torn(line: bytes, *, ended: bool) -> bool:
    """True for the beginning of a record: the text ends before its JSON object does.

    A last line without its line feed may be cut anywhere; one that was closed later must begin as our records do.
    """
    ours = line.startswith(LINE_BEGINNING) or LINE_BEGINNING.startswith(line)
    if not (ours or (not ended and line.startswith(b"{"))):
        return False
    # A cut may fall inside a character; the bytes before it still show where the JSON ends.
    text = line.decode("utf-8", errors="ignore")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text) or error.msg.startswith("Unterminated string") or not text.endswith("}")
    except (ValueError, RecursionError):
        return False
    return False
