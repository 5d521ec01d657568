"""JSON lines, appended so that a crash costs at most the line being written."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agentmark.chain.checkpoint import Checkpoint
from agentmark.chain.writer import ChainWriter
from agentmark.errors import SettingError
from agentmark.log.append import ends_torn, locked, write_whole
from agentmark.log.lines import lines_within, parse_line
from agentmark.log.sink import FileSink
from agentmark.log.sync import Fsync, Syncer, new_syncer
from agentmark.record import RecordError, StepRecord


class LogWriter(FileSink):
    """Appends records. Each goes out in one write, so that several processes may share a file on a local disk."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool | Fsync | Syncer = False,
        chain: ChainWriter | None = None,
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
        self._torn = ends_torn(self._descriptor)
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
            raise self._closed()
        return self._file

    # Appending, with or without a chain.

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One at a time, among threads and processes: a link is only true if nobody writes between read and write."""
        with self._lock, locked(self._descriptor):
            yield

    def _catch_up(self, chain: ChainWriter) -> None:
        """Observe what the log has gained: all of it at opening, later what other writers appended."""
        size = os.fstat(self._descriptor).st_size
        if size == self._known_size:
            return
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(self._known_size)
            for line in lines_within(file):
                with suppress(RecordError):
                    chain.observe(parse_line(line.strip(), where=str(self.path)))
        self._known_size = size
        self._torn = ends_torn(self._descriptor)

    def _append_observed(self, chain: ChainWriter, line: StepRecord | Checkpoint) -> None:
        self._append(line)
        # Where our line ends. What others slipped in before it without the lock is not chained, and needs no notice.
        self._known_size = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        chain.observe(line)

    def _append_checkpoint(self, chain: ChainWriter) -> None:
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
