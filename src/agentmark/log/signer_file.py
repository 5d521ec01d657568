"""The file in which the writers with one signing key keep what they wrote to a log, beside it or elsewhere (POSIX)."""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agentmark.chain.state import Note, SignerState, StateSeal, Withdrawal
from agentmark.errors import SettingError
from agentmark.keys.signing import SigningKey
from agentmark.log.append import write_whole
from agentmark.log.lines import reader_of
from agentmark.log.sizes import MAX_LINE

# Beyond this, the next checkpoint begins a new file. Not each of them: putting one in the place of another makes some
# file systems write it to the disk at once, which takes longer than the hundred records between.
MAX_SIZE = 1 << 20


def signer_file_beside(log: Path, key: SigningKey) -> Path:
    """One for each key: a writer with another must not take the state of this one for broken, and replace it."""
    return log.with_name(f"{log.name}.{key.public_key[:16]}.signer")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateNews:
    """What was not known of a state file before: further notes, or a state that stands for all before it."""

    state: SignerState
    # Whether it states all, and not only what has come to what we knew.
    anew: bool
    # Whether anything is there that is not ours, or that a crash cut short: nothing can be appended to that.
    whole: bool


class SignerFile:
    """Notes what is about to be written, for the writers to come. Use it only while the log is locked."""

    def __init__(self, path: Path, key: SigningKey) -> None:
        self.path = path
        self._name = str(path)
        self._seal = StateSeal(key)
        self._file: int | None = None
        self._identity: tuple[int, int] | None = None
        # Up to which byte of the open file its lines are known; None if that is not certain.
        self._known_size: int | None = 0

    @property
    def descriptor(self) -> int:
        assert self._file is not None, "no state before the first `replace` or `news`"
        return self._file

    def news(self) -> StateNews | None:
        """What other writers have noted; None for nothing."""
        size = self._size()
        if size is not None and self._known_size is not None:
            if size == self._known_size:
                return None
            if size > self._known_size:
                return self._read(anew=False, begin=self._known_size)
        self.close()
        try:
            # Not through a link to a file of somebody else's, and without waiting should it be a pipe.
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return StateNews(state=SignerState(), anew=True, whole=False)
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            return StateNews(state=SignerState(), anew=True, whole=False)
        self._identify()
        self._seal.rewind()
        return self._read(anew=True, begin=0)

    def append(self, content: SignerState | Note | Withdrawal) -> None:
        """Note what is about to be written. A state goes into the place of the whole file when that has grown large."""
        if isinstance(content, SignerState) and (self._known_size is None or self._known_size > MAX_SIZE):
            self.replace(content)
            return
        line = self._seal.seal(content)
        # On a full disk it is not: what is there has to be read again before anything can follow.
        known, self._known_size = self._known_size, None
        write_whole(self.descriptor, line)
        self._known_size = None if known is None else known + len(line)

    def replace(self, state: SignerState) -> None:
        """Put a new file in the place of the old one, in one step. Only its owner can read or write it."""
        draft = self.path.with_name(self.path.name + ".tmp")
        for name in (self.path, draft):
            if name.is_dir() and not name.is_symlink():
                raise SettingError(str(name), "is a folder where a signer keeps its state; move it away")
        with suppress(FileNotFoundError):
            draft.unlink()
        self.close()
        self._file = os.open(draft, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self._seal.rewind()
        first = self._seal.seal(state)
        write_whole(self._file, first)
        draft.replace(self.path)
        self._identify()
        self._known_size = len(first)

    def close(self) -> None:
        if self._file is not None:
            closing, self._file = self._file, None
            os.close(closing)

    def _identify(self) -> None:
        status = os.fstat(self.descriptor)
        self._identity = status.st_dev, status.st_ino

    def _size(self) -> int | None:
        """The size of the file that we have open; None if another bears its name: a writer may have replaced it."""
        with suppress(OSError):
            status = os.lstat(self._name)
            if self._file is not None and self._identity == (status.st_dev, status.st_ino):
                return status.st_size
        return None

    def _read(self, *, anew: bool, begin: int) -> StateNews:
        state = SignerState()
        notes: list[Note | Withdrawal] = []
        known = begin
        with reader_of(self.descriptor, begin) as file:
            # A line of ours is never longer, and what follows one that is not ours is not read.
            while line := file.readline(MAX_LINE + 1):
                content = self._seal.open(line)
                if content is None or (known == 0 and not isinstance(content, SignerState)):
                    break
                known += len(line)
                if isinstance(content, SignerState):
                    state, notes, anew = content, [], True
                else:
                    notes.append(content)
        self._known_size = known
        whole = 0 < known == os.fstat(self.descriptor).st_size
        return StateNews(state=replace(state, notes=tuple(notes)), anew=anew, whole=whole)
