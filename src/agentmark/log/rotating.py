"""A log in several files: `run.jsonl` is being written, `run-000001.jsonl` and so on are full (POSIX)."""

import gzip
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentmark.errors import SettingError
from agentmark.log.append import ends_torn, locked, write_whole
from agentmark.log.sink import FileSink
from agentmark.log.sync import Fsync, Syncer, new_syncer
from agentmark.record import StepRecord

if TYPE_CHECKING:
    from agentmark.chain.writer import ChainWriter


class RotatingLog(FileSink):
    """Appends records, and begins a new file when the one being written is full or old.

    Threads and processes of one host may share it: every write holds a lock on `run.jsonl.lock`, and nobody writes to
    a file that was put aside. The names sort in the order of writing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int | None = None,
        max_age_s: float | None = None,
        keep: int | None = None,
        compress: bool = False,
        fsync: bool | Fsync | Syncer = False,
        chain: "ChainWriter | None" = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`keep` is how many full files stay, the newest ones; None keeps all. `compress` packs them with gzip."""
        if chain is not None:
            fault = "a chain runs through one file: write it with LogWriter, and begin a new log under another name"
            raise SettingError("chain", fault)
        if max_bytes is None and max_age_s is None:
            raise SettingError("max_bytes", "give it or max_age_s: nothing says when to rotate")
        for name, value in {"max_bytes": max_bytes, "max_age_s": max_age_s, "keep": keep}.items():
            if value is not None and value <= 0:
                raise SettingError(name, f"{value} is not above zero")
        self.path = Path(path)
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._keep = keep
        self._compress = compress
        self._syncer = new_syncer(fsync)
        self._clock = clock
        self._thread_lock = threading.Lock()
        self._descriptor: int | None = None
        self._lock_file: int | None = self._open_lock()
        self._process = os.getpid()

    def write(self, record: StepRecord) -> None:
        """Append one record, whole, to the file that is then current."""
        line = record.to_json().encode("utf-8") + b"\n"
        with self._locked():
            descriptor = self._current()
            full = None
            if self._is_due(descriptor, len(line)):
                self._syncer.finish(descriptor)
                full = self._put_aside()
                descriptor = self._current()
            write_whole(descriptor, b"\n" + line if ends_torn(descriptor) else line)
            self._syncer.wrote(descriptor)
        # Outside the lock: nobody writes to this file any more, and packing takes a while.
        if full is not None and self._compress:
            _pack(full)

    def close(self) -> None:
        """Close the files. The last one stays as it is, for the next writer. Again, it does nothing."""
        with self._thread_lock:
            # The numbers are the system's to give away from here on: whoever has them next must not get our lines.
            current, self._descriptor = self._descriptor, None
            lock, self._lock_file = self._lock_file, None
            try:
                if current is not None:
                    self._syncer.finish(current)
            finally:
                for descriptor in (current, lock):
                    if descriptor is not None:
                        os.close(descriptor)

    @property
    def _lock_descriptor(self) -> int:
        if self._lock_file is None:
            raise self._closed()
        return self._lock_file

    def _open_lock(self) -> int:
        # The lock file also holds since when the present file is being written, which file systems do not keep, and the
        # number that was given last.
        return os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o644)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._thread_lock:
            if self._lock_file is not None and os.getpid() != self._process:
                # A fork shares the open file, and with it the lock: it would not keep the two apart.
                self._process, self._lock_file = os.getpid(), self._open_lock()
            with locked(self._lock_descriptor, f"{self.path}.lock"):
                yield

    def _current(self) -> int:
        """The file that bears our name now: another process may have put aside the one we know."""
        if self._descriptor is not None:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._descriptor), self.path.stat()):
                    return self._descriptor
            closing, self._descriptor = self._descriptor, None
            os.close(closing)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        if os.fstat(self._descriptor).st_size == 0 or self._begun_at() is None:
            self._note(self._clock(), self._last_number())
        return self._descriptor

    def _note(self, begun_at: float, last_number: int) -> None:
        # Longer than any note before it, or as long: no moment in which the number is gone.
        os.pwrite(self._lock_descriptor, f"{begun_at:<32.6f} {last_number:<24}\n".encode(), 0)

    def _noted(self) -> list[str]:
        return os.pread(self._lock_descriptor, 64, 0).decode("ascii", "replace").split()

    def _begun_at(self) -> float | None:
        try:
            return float(self._noted()[0])
        except (IndexError, ValueError):
            return None

    def _last_number(self) -> int:
        """The number that was given last. Full files may have been moved away since, and must not meet their like."""
        try:
            return int(self._noted()[1])
        except (IndexError, ValueError):
            return 0

    def _is_due(self, descriptor: int, line_size: int) -> bool:
        size = os.fstat(descriptor).st_size
        if size == 0:
            return False
        if self._max_bytes is not None and size + line_size > self._max_bytes:
            return True
        begun_at = self._begun_at()
        return self._max_age_s is not None and begun_at is not None and self._clock() - begun_at >= self._max_age_s

    def _put_aside(self) -> Path:
        """Give the full file its number, and drop the oldest ones that are beyond what is kept."""
        numbered = full_files(self.path)
        number = 1 + max([self._last_number(), *numbered])
        self._note(self._begun_at() or self._clock(), number)
        full = self.path.with_name(f"{self.path.stem}-{number:06}{self.path.suffix}")
        self.path.rename(full)
        if self._syncer.policy != "never":
            _sync_folder(self.path.parent)
        if self._keep is not None:
            for old in sorted(numbered)[: len(numbered) + 1 - self._keep]:
                for file in numbered[old]:
                    file.unlink(missing_ok=True)
        return full


def full_files(path: Path) -> dict[int, list[Path]]:
    """The files that were put aside, by number. One may be there twice if packing it was cut short by a crash."""
    pattern = re.compile(rf"{re.escape(path.stem)}-(\d{{6,}}){re.escape(path.suffix)}(\.gz)?(\.tmp)?")
    numbered: dict[int, list[Path]] = {}
    for file in path.parent.iterdir():
        if match := pattern.fullmatch(file.name):
            numbered.setdefault(int(match[1]), []).append(file)
    return numbered


def _pack(full: Path) -> None:
    """Replace a file by its gzip. The packed one appears whole or not at all."""
    packed = full.with_name(full.name + ".gz")
    unfinished = packed.with_name(packed.name + ".tmp")
    # Another process may have dropped the file meanwhile, as beyond what is kept.
    with suppress(FileNotFoundError):
        with full.open("rb") as source, gzip.open(unfinished, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        if full.exists():
            unfinished.rename(packed)
            full.unlink(missing_ok=True)
        else:
            unfinished.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
