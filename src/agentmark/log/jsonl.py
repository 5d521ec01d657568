"""JSON lines, appended so that a crash costs at most the line being written."""

import logging
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agentmark.chain.checkpoint import Checkpoint
from agentmark.chain.writer import ChainWriter, Settlement
from agentmark.errors import SettingError
from agentmark.log.append import ends_torn, locked, write_whole
from agentmark.log.lines import bounded_lines, parse_line, reader_of
from agentmark.log.signer_file import SignerFile, StateNews, signer_file_beside
from agentmark.log.sink import FileSink
from agentmark.log.sizes import MAX_LINE
from agentmark.log.sync import Fsync, Syncer, new_syncer
from agentmark.record import RecordError, StepRecord

logger = logging.getLogger("agentmark.log")


class LogWriter(FileSink):
    """Appends records. Each goes out in one write, so that several processes may share a file on a local disk."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool | Fsync | Syncer = False,
        chain: ChainWriter | None = None,
        signer_file: str | os.PathLike[str] | None = None,
    ) -> None:
        """`fsync`: never (False), always (True), or at intervals. With a `chain` each record names the one before it;
        what the log holds already is then read here, once. `signer_file` is where a signer keeps what it wrote, by
        default beside the log.
        """
        if chain is not None and not chain.is_new:
            raise SettingError("chain", "serves a log already; make one for each")
        if signer_file is not None and (chain is None or chain.signing_key is None):
            raise SettingError("signer_file", "is that of a chain with a signing key; give both")
        self.path = Path(path)
        self._syncer = new_syncer(fsync)
        self._file: int | None = None
        # A crash may have left half a line. The next record then begins by closing it.
        self._torn = False
        self._lock = threading.Lock()
        self._chain = chain
        self._signer: SignerFile | None = None
        # Whole, because a forked process may work elsewhere when it opens them anew, and without links, so that all who
        # write to one log meet in one state.
        self._log_path = self.path if chain is None else self.path.resolve()
        self._signer_path = None if signer_file is None else Path(signer_file).resolve()
        # Up to which byte of the log the chain knows it.
        self._known_size = 0
        self._trouble = _Trouble(self.path)
        # A fork shares the open file, and with it the lock, which then keeps nobody apart.
        self._is_forked = False
        self._open()
        if chain is not None:
            _chained.add(self)

    def write(self, record: StepRecord) -> None:
        """Append one record; it is with the operating system on return, and on the disk if `fsync` was asked for."""
        if self._chain is None:
            self._append(_line_of(record))
            return
        with self._locked() as chain:
            self._catch_up(chain)
            self._append_record(chain, record)
            if chain.checkpoint_is_due:
                self._append_checkpoint(chain)

    def checkpoint(self) -> None:
        """Sign what was written to a chained log by now, if there is a signing key and anything is new."""
        if self._chain is not None:
            with self._locked() as chain:
                self._catch_up(chain)
                self._append_checkpoint(chain)

    def close(self) -> None:
        """Close the log; a chained one with a last checkpoint. Again, it does nothing."""
        if self._file is None:
            self._is_forked = False
            return
        try:
            self.checkpoint()
            self._syncer.finish(*self._descriptors)
            self._trouble.sum_up()
        finally:
            self._let_go()

    @property
    def _descriptor(self) -> int:
        if self._file is None:
            raise self._closed()
        return self._file

    @property
    def _descriptors(self) -> list[int]:
        """The signer's notes first: a record must not outlast a power cut without its note."""
        return [*([] if self._signer is None else [self._signer.descriptor]), self._descriptor]

    # Opening, also in a forked process.

    def _open(self) -> None:
        self._file = os.open(self._log_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._torn = ends_torn(self._file)
            self._known_size = 0
            if self._chain is not None:
                self._begin_chain(self._chain, self._file)
        except BaseException:
            self._let_go()
            raise

    def _begin_chain(self, chain: ChainWriter, descriptor: int) -> None:
        if chain.signing_key is not None:
            path = self._signer_path or signer_file_beside(self._log_path, chain.signing_key)
            self._signer = SignerFile(path, chain.signing_key)
        with locked(descriptor, str(self.path)):
            self._catch_up(chain)

    def _let_go(self) -> None:
        # The numbers are the system's to give away from here on: whoever has them next must not get our lines.
        closing, self._file = self._file, None
        if closing is not None:
            os.close(closing)
        if self._signer is not None:
            self._signer.close()

    def _leave_to_parent(self) -> None:
        """In a forked process: drop what is shared with the parent. It is opened anew when it is first used."""
        # A thread of the parent's may have held it, and is not here to let it go.
        self._lock = threading.Lock()
        if self._file is not None and self._chain is not None:
            self._is_forked = True
            # While a copy is open anywhere, a parent that was killed would go on holding the lock.
            self._let_go()
            self._chain = self._chain.anew()

    @contextmanager
    def _locked(self) -> Iterator[ChainWriter]:
        """One at a time, among threads and processes: a link is only true if nobody writes between read and write."""
        with self._lock:
            if self._is_forked:
                self._open()
                self._is_forked = False
            while True:
                with locked(self._descriptor, str(self.path)):
                    if self._bears_its_name():
                        assert self._chain is not None
                        yield self._chain
                        return
                self._follow_name()

    def _bears_its_name(self) -> bool:
        """False once the log was moved away or replaced: whoever opens it by name then has another file, and lock."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._descriptor), self._log_path.stat())
        return False

    def _follow_name(self) -> None:
        """Go on in the file that bears the name of the log now, so that all who write to it meet there."""
        moved = os.open(self._log_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        closing, self._file = self._descriptor, moved
        os.close(closing)
        self._trouble.tell_of_move()
        self._known_size = 0
        self._torn = ends_torn(moved)
        assert self._chain is not None
        if self._chain.signing_key is None:
            # Links alone begin anew in another file.
            self._chain = self._chain.anew()
        else:
            self._chain.read_again()

    # What others wrote.

    def _catch_up(self, chain: ChainWriter) -> None:
        """Read what the log has gained: all of it at opening, later what other writers appended."""
        # Notes come before records: whoever wrote a record has noted it.
        news = self._take_notes(chain)
        is_opening = self._known_size == 0
        size = os.fstat(self._descriptor).st_size
        if size < self._known_size:
            self._begin_again(chain)
        if size != self._known_size:
            self._read_on(chain, size)
            self._torn = ends_torn(self._descriptor)
        elif news is None and not chain.is_unsettled:
            return
        settlement = chain.settle()
        self._trouble.tell(settlement)
        if self._signer is not None:
            lags = news is not None and news.anew and not chain.agrees_with(news.state)
            if lags and not is_opening:
                self._trouble.tell_of_state()
            if lags or (news is not None and not news.whole):
                self._signer.replace(chain.state)
            elif settlement.withdrawn is not None:
                self._signer.append(settlement.withdrawn)

    def _take_notes(self, chain: ChainWriter) -> StateNews | None:
        news = None if self._signer is None else self._signer.news()
        if news is not None and news.anew:
            chain.remember(news.state)
        elif news is not None:
            for note in news.state.notes:
                chain.note(note)
        return news

    def _begin_again(self, chain: ChainWriter) -> None:
        """The log has become shorter than we know it. The sessions go on from what is remembered: so the cut shows."""
        self._trouble.tell_of_cut()
        if chain.signing_key is None:
            self._known_size = os.fstat(self._descriptor).st_size
            self._torn = ends_torn(self._descriptor)
        else:
            chain.read_again()
            self._known_size = 0

    def _read_on(self, chain: ChainWriter, size: int) -> None:
        """Find the lines behind those that are known, up to this byte."""
        with reader_of(self._descriptor, self._known_size) as file:
            for line in bounded_lines(file):
                with suppress(RecordError):
                    chain.found(parse_line(line.strip(), where=str(self.path)))
                if file.tell() >= size:
                    break
        self._known_size = size

    # Appending, with or without a chain.

    def _append_record(self, chain: ChainWriter, record: StepRecord) -> None:
        linked = chain.link(record)
        line = _line_of(linked.record)
        if len(line) > MAX_LINE:
            fault = f"makes a line of {len(line)} bytes; a chained log takes {MAX_LINE}"
            raise RecordError(str(self.path), "record", fault)
        if self._signer is not None:
            # Noted first: what a crash leaves in the log is then known to be ours, and nothing else is.
            self._signer.append(linked.note)
            chain.note(linked.note)
        self._append_chained(chain, line)
        chain.appended(linked)

    def _append_checkpoint(self, chain: ChainWriter) -> None:
        checkpoint = chain.checkpoint()
        if checkpoint is None:
            return
        self._append_chained(chain, _line_of(checkpoint))
        chain.appended(checkpoint)
        if self._signer is not None:
            # The log holds it under our signature now: the notes have done their work.
            self._signer.append(chain.state)

    def _append_chained(self, chain: ChainWriter, line: bytes) -> None:
        self._append(line)
        end = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        if self._signer is not None and end - len(line) > self._known_size:
            # Somebody may have written between our look and our line, without the lock.
            self._read_on(chain, end - len(line))
        self._known_size = end

    def _append(self, line: bytes) -> None:
        if self._torn:
            line = b"\n" + line
        # Until the whole line is out, what follows must not grow onto it: a full disk may pass.
        self._torn = True
        write_whole(self._descriptor, line)
        self._torn = False
        self._syncer.wrote(*self._descriptors)


def _line_of(content: StepRecord | Checkpoint) -> bytes:
    return content.to_json().encode("utf-8") + b"\n"


class _Trouble:
    """What a signer finds wrong with its log: told once when it is first met, and in all at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._foreign = 0
        self._lost = 0
        self._told = (0, 0)
        self._told_of_state = False
        self._told_of_cut = False
        self._told_of_move = False

    def tell_of_state(self) -> None:
        """A signer at work knows better than the file it keeps."""
        if not self._told_of_state:
            logger.warning("%s: the .signer file was cut back or replaced. It is written anew from memory.", self._path)
        self._told_of_state = True

    def tell_of_cut(self) -> None:
        if not self._told_of_cut:
            logger.warning(
                "%s: has become shorter while it was being written: it was cut back or replaced, and goes on as what "
                "it was.",
                self._path,
            )
        self._told_of_cut = True

    def tell_of_move(self) -> None:
        if not self._told_of_move:
            logger.warning(
                "%s: was moved away or replaced while it was being written. What follows goes into the file that bears "
                "its name now. To begin a new log, close this one, and move its .signer file with it.",
                self._path,
            )
        self._told_of_move = True

    def tell(self, found: Settlement) -> None:
        is_first = (found.foreign and not self._foreign) or (found.lost and not self._lost) or found.cut
        self._foreign += found.foreign
        self._lost += found.lost
        if not is_first:
            return
        self._told = self._foreign, self._lost
        if found.cut:
            logger.warning(
                "%s: the last checkpoint that this signing key wrote is not there: the log was cut back or replaced, "
                "and goes on as what it was. If it was moved away on purpose, move its .signer file with it.",
                self._path,
            )
        if found.foreign:
            logger.warning(
                "%s: holds %d linked records that nobody wrote with this signing key. They are not vouched for, and "
                "the chain goes on beside them. After a change of keys, name the former one as predecessor.",
                self._path,
                found.foreign,
            )
        if found.lost:
            logger.warning(
                "%s: %d records that were written with this signing key are not there any more.",
                self._path,
                found.lost,
            )

    def sum_up(self) -> None:
        if (self._foreign, self._lost) != self._told:
            logger.warning(
                "%s: in all, met %d linked records of others, and missed %d of its own.",
                self._path,
                self._foreign,
                self._lost,
            )


# Those that have a lock, and a place in a chain, to lose in a forked process.
_chained: "weakref.WeakSet[LogWriter]" = weakref.WeakSet()


def _after_fork() -> None:
    for writer in list(_chained):
        writer._leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
