"""Which files a command is to read: those that were named, and those in the folders that were."""

import contextlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agentmark.errors import SettingError
from agentmark.files import FileError

_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class FoundLogs:
    """The files to read, and what in the folders cannot be one."""

    files: tuple[Path, ...]
    faults: tuple[FileError, ...] = ()

    @property
    def passed_over(self) -> tuple[str, ...]:
        """What cannot be read, in sentences."""
        return tuple(map(str, self.faults))


def log_files(paths: Iterable[Path]) -> list[Path]:
    """The files of `find_logs`. What cannot be read in a folder is an error."""
    return list(find_logs(paths).files)


def find_logs(paths: Iterable[Path], *, skip_bad: bool = False) -> FoundLogs:
    """Folders replaced by the files in them and in the folders below, in the order of their paths.

    Hidden files and folders, and what writers leave beside a log, are left out. What is in a folder and is no file (a
    pipe, a device, a broken link, a folder that may not be read) is never opened: it raises, unless `skip_bad` is set.
    A file that was named is handed on, whatever it is.
    """
    files: list[Path] = []
    faults: list[FileError] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        found = _Walk(path)
        if found.faults and not skip_bad:
            raise found.faults[0]
        if not found.files and not found.faults:
            raise SettingError(str(path), "is a folder without any file in it or below it (hidden ones do not count)")
        files += sorted(found.files)
        faults += found.faults
    if not files:
        raise SettingError("logs", f"nothing is left to read: {'; '.join(map(str, faults))}")
    return FoundLogs(tuple(files), tuple(faults))


# A file or folder itself, whatever it is called.
_Inode = tuple[int, int]


class _Walk:
    """The files of a folder and below it. Each folder is read once, and a link never leads back up."""

    def __init__(self, top: Path) -> None:
        self.files: list[Path] = []
        self.faults: list[FileError] = []
        self._seen = _above(top)
        self._links: list[tuple[Path, os.stat_result]] = []
        self._read_folder(top)
        # Links come last: what they lead to may have been read under its own name.
        while self._links:
            path, status = self._links.pop(0)
            if _inode(status) not in self._seen:
                self._take(path, status)

    def _read_folder(self, top: Path) -> None:
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                status = folder.stat()
                inside = sorted(folder.iterdir())
            except OSError as error:
                self._fail(folder, f"cannot be read: {error.strerror}")
                continue
            self._seen.add(_inode(status))
            waiting += [path for path in inside if not _is_beside(path) and self._look_at(path)]

    def _look_at(self, path: Path) -> bool:
        """Whether this is a folder to read. A link waits until all else is read."""
        link = path.is_symlink()
        try:
            status = path.stat()
        except OSError as error:
            self._fail(path, "is a link to nothing" if link else f"cannot be read: {error.strerror}")
            return False
        if link:
            self._links.append((path, status))
            return False
        if stat.S_ISDIR(status.st_mode):
            return _inode(status) not in self._seen
        self._take(path, status)
        return False

    def _take(self, path: Path, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            self._read_folder(path)
        elif stat.S_ISREG(status.st_mode):
            self._seen.add(_inode(status))
            self.files.append(path)
        else:
            kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "no file")
            self._fail(path, f"is {kind} in a folder, and is not opened")

    def _fail(self, path: Path, fault: str) -> None:
        self.faults.append(FileError(path, fault))


def _inode(status: os.stat_result) -> _Inode:
    return status.st_dev, status.st_ino


def _above(folder: Path) -> set[_Inode]:
    """The folders above one that was named: a link to any of them, up to the root, leads back to it."""
    found = set()
    for parent in Path(os.path.realpath(folder)).parents:
        with contextlib.suppress(OSError):
            found.add(_inode(parent.stat()))
    return found


def _is_beside(file: Path) -> bool:
    return file.name.startswith(".") or file.name.endswith((".lock", ".tmp", ".signer", "-wal", "-shm"))


# What a file is called where people read it: standard input that was kept in a file is not known by that file's name.
_SHOWN_AS: dict[str, str] = {}


def show_as(path: Path, name: str) -> None:
    """From now on, messages about this file call it so."""
    _SHOWN_AS[os.fspath(path)] = name


def shown(path: str | os.PathLike[str]) -> str:
    """A file as messages call it: by its path as it was given."""
    return _SHOWN_AS.get(os.fspath(path), os.fspath(path))
