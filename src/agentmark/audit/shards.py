"""What a bulk audit reads: files, those of folders, and those that a pattern finds; each once, whatever it is called.

Large files of AgentMark JSON lines are divided at the ends of lines, so that several workers share one.
"""

import glob
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

from agentmark.errors import SettingError
from agentmark.files import FileError
from agentmark.log.read.files import find_logs, shown
from agentmark.log.read.formats import FORMATS
from agentmark.log.read.packing import GZIP_MAGIC, ZSTD_MAGIC
from agentmark.log.read.text import is_record_lines

MIB = 1 << 20
# What one range of a file has, and what small files are put together to, for one worker at a time.
RANGE_BYTES = 32 * MIB
# The beginning of a file tells what it is; its beginning and its end tell whether it is still the same.
HEAD_BYTES = 1 << 16
FINGERPRINT_SIZE = 16
# So far behind a place the end of a line is looked for. Where there is none, the file stays whole.
LONGEST_LINE = 16 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A file to read, or a range of one, as it was when it was found."""

    path: str
    # As it is called in results and notes: text that every file can hold.
    name: str
    size: int
    mtime_ns: int
    # From this byte up to that; the whole of the file if `end` is None.
    start: int = 0
    end: int | None = None

    @property
    def bytes_to_read(self) -> int:
        return (self.size if self.end is None else self.end) - self.start

    @property
    def piece(self) -> tuple[str, int, int | None]:
        """Which range of which file."""
        return self.path, self.start, self.end

    @property
    def begins(self) -> bool:
        """Whether it is the file's first or only range."""
        return self.start == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BadShard:
    """A file that was skipped, and why."""

    name: str
    fault: str

    def __str__(self) -> str:
        return self.fault if self.fault.startswith(self.name) else f"{self.name}: {self.fault}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundShards:
    """The files to read, in the order of their names; what cannot be one; and how many names were another's."""

    shards: tuple[Shard, ...]
    bad: tuple[BadShard, ...] = ()
    same_files: int = 0

    @property
    def size(self) -> int:
        return sum([shard.size for shard in self.shards])


def find_shards(words: Iterable[str], *, own: Iterable[Path] = (), strict: bool = False) -> FoundShards:
    """The files that these words mean. `own` are files and folders that the audit writes itself: never an input."""
    found, bad = _files(list(words), strict=strict)
    written = [Path(os.path.realpath(path)) for path in own]
    shards: dict[tuple[int, int], Shard] = {}
    same = 0
    for path in sorted(found, key=str):
        real = Path(os.path.realpath(path))
        if any(real == mine or mine in real.parents for mine in written):
            continue
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise FileError(path, "is no regular file")
        except (OSError, FileError) as error:
            if strict:
                raise
            bad.append(BadShard(name=as_text(path), fault=_worded(error)))
            continue
        inode = status.st_dev, status.st_ino
        same += inode in shards
        shards.setdefault(
            inode,
            Shard(path=str(path), name=as_text(path), size=status.st_size, mtime_ns=status.st_mtime_ns),
        )
    if not shards:
        said = "; ".join(map(str, bad)) or "there is no file but those that this command writes"
        raise SettingError("logs", f"nothing is left to read: {said}")
    return FoundShards(shards=tuple(shards.values()), bad=tuple(bad), same_files=same)


def _files(words: Sequence[str], *, strict: bool) -> tuple[list[Path], list[BadShard]]:
    files: list[Path] = []
    bad: list[BadShard] = []
    for word in words:
        for path in _meant(word):
            try:
                found = find_logs([path], skip_bad=not strict)
            except SettingError as error:
                if strict:
                    raise
                bad.append(BadShard(name=as_text(path), fault=str(error)))
                continue
            files += found.files
            bad += [BadShard(name=as_text(fault.path), fault=fault.fault) for fault in found.faults]
    return files, bad


def _meant(word: str) -> list[Path]:
    """A name that is there is meant as it is, whatever signs are in it; else it may be a pattern."""
    if os.path.lexists(word):
        return [Path(word)]
    if not glob.has_magic(word):
        raise SettingError(word, "there is no such file or folder")
    # Patterns as shells have them, absolute ones as well.
    found = sorted(glob.glob(word, recursive=True))  # noqa: PTH207
    if not found:
        raise SettingError(word, "is a pattern that no file has")
    return list(map(Path, found))


def as_text(path: str | os.PathLike[str]) -> str:
    """A file as messages call it, in text that can be written anywhere: its name need not be UTF-8."""
    return shown(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _worded(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return str(error)


def ranges_of(shard: Shard, size: int = RANGE_BYTES) -> list[Shard]:
    """A file of record lines that is not packed, in ranges that end with lines; any other as it is."""
    if shard.size <= size:
        return [shard]
    try:
        with Path(shard.path).open("rb") as file:
            head = file.read(HEAD_BYTES)
            if head.startswith((GZIP_MAGIC, ZSTD_MAGIC)) or not is_record_lines(head, FORMATS):
                return [shard]
            ends = [0]
            for wanted in range(size, shard.size, size):
                if wanted < ends[-1]:
                    continue
                # The byte before may be the end of a line itself.
                file.seek(wanted - 1)
                line = file.readline(LONGEST_LINE)
                end = wanted - 1 + len(line)
                if not line.endswith(b"\n") or end >= shard.size:
                    break
                ends.append(end)
    except OSError:
        # Whoever reads it says what is wrong.
        return [shard]
    if len(ends) == 1:
        return [shard]
    ends.append(shard.size)
    return [replace(shard, start=start, end=end) for start, end in pairwise(ends)]


def fingerprint(shard: Shard) -> str:
    """What tells a file from another of its size and time: a digest of its beginning and its end."""
    digest = blake2b(shard.size.to_bytes(8, "big"), digest_size=FINGERPRINT_SIZE)
    with Path(shard.path).open("rb") as file:
        digest.update(file.read(HEAD_BYTES))
        if shard.size > HEAD_BYTES:
            file.seek(max(HEAD_BYTES, shard.size - HEAD_BYTES))
            digest.update(file.read(HEAD_BYTES))
    return digest.hexdigest()


def batches(shards: Iterable[Shard], size: int = RANGE_BYTES) -> list[tuple[Shard, ...]]:
    """Shards one behind the other, put together to about this size: what a worker takes at a time."""
    found: list[list[Shard]] = []
    room = 0
    for shard in shards:
        if not found or shard.bytes_to_read > room:
            found.append([])
            room = size
        found[-1].append(shard)
        room -= max(shard.bytes_to_read, 1)
    return [tuple(batch) for batch in found]
