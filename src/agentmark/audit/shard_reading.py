"""Shards into parts: what one worker reads at a time, sorted by the group that each record belongs to.

Of a shard that cannot be read to its end within the limits, nothing is kept: no part of a file is taken for the whole.
What a damaged file holds before the damage is kept, as `agentmark verify --skip-bad` keeps it, and the damage is noted.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from agentmark.audit.chunk_kinds import chunk_kind
from agentmark.audit.chunks import Chunk, ChunkKind
from agentmark.audit.shards import Shard, as_text, fingerprint
from agentmark.audit.spill import SpillWriteError, SpillWriter
from agentmark.core.errors import AgentMarkError
from agentmark.log.read.limits import LimitError, Limits
from agentmark.log.read.summary import LogSummary
from agentmark.verify.roll import By

# Of each shard, so many notes are kept; further ones are counted.
MOST_NOTES = 20
MOST_KEY_IDS = 20
# Of a file that is still being read it is not known how far one is: a record has about so many bytes, packed or not.
USUAL_BYTES = 100
# What is gathered before it is sorted out by part and written, in bytes of columns, or of lines.
BUFFER_BYTES = 48 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadJob:
    """Some shards, and the file of parts that they become."""

    shards: tuple[Shard, ...]
    file: str
    part_count: int
    by: By
    engine: str
    limits: Limits
    strict: bool
    work_limit: int
    # Whether a report is to state the digest of every file.
    digests: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOutcome:
    """What a shard held: a line of the manifest."""

    name: str
    path: str
    size: int
    mtime_ns: int
    start: int
    end: int | None
    fingerprint: str = ""
    sha256: str | None = None
    records: int = 0
    # Records that are broken, and lines that are cut short.
    bad: int = 0
    # Lines of a range, so that those of the ranges behind it can be counted on.
    lines: int = 0
    # The keys that its records state, or some of very many.
    key_ids: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    more_notes: int = 0
    # Why it was skipped; None if it was read.
    failed: str | None = None
    # Whether that was the system's refusal, which may be over the next time.
    refused: bool = False
    # Whether an earlier run had read it. No part of the manifest.
    resumed: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "resumed"}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "ShardOutcome":
        return cls(**content)

    @property
    def piece(self) -> tuple[str, int, int | None]:
        """Which range of which file."""
        return self.path, self.start, self.end

    def renumbered(self, lines_before: int) -> list[str]:
        """The notes, with the lines of a range counted from the beginning of the file."""
        if not lines_before:
            return self.notes
        numbered = re.compile(rf"((?:record )?{re.escape(self.name)}:)(\d+)")
        return [
            numbered.sub(lambda found: f"{found[1]}{int(found[2]) + lines_before}", note, count=1)
            for note in self.notes
        ]


class Counted(Protocol):
    """Told how many bytes and records are done."""

    def __call__(self, done: int, records: int) -> None: ...


def read_shards(job: ReadJob, told: Counted) -> tuple[list[ShardOutcome], int]:
    """Read the shards of a job into its file of parts: what each held, and the size of the file."""
    kind = chunk_kind(job.engine)
    with SpillWriter(Path(job.file), job.part_count) as writer:
        buffer = _Buffer(writer, lambda chunks: kind.by_part(chunks, job.by, job.part_count))
        outcomes = [read_shard(job, shard, kind, buffer, told) for shard in job.shards]
        buffer.finish()
    return outcomes, writer.size


class Buffer(Protocol):
    """Where the chunks of a shard go; those of the shard at hand can be dropped until it is committed."""

    def begin(self) -> None: ...

    def add(self, chunk: Any) -> None: ...

    def commit(self) -> None: ...

    def drop(self) -> None: ...


def read_shard(job: ReadJob, shard: Shard, kind: ChunkKind, buffer: Buffer, told: Counted) -> ShardOutcome:
    """Read one shard into a buffer: what it held."""
    outcome = ShardOutcome(
        name=shard.name,
        path=shard.path,
        size=shard.size,
        mtime_ns=shard.mtime_ns,
        start=shard.start,
        end=shard.end,
    )
    buffer.begin()
    progress = _ShardProgress(shard, told)
    try:
        outcome = replace(outcome, fingerprint=fingerprint(shard), sha256=_sha256(job, shard))
        reading = kind.read(shard, skip_bad=not job.strict, limits=job.limits, work_limit=job.work_limit)
        key_ids: set[str] = set()
        # Whoever watches may stop it: the file is closed then, not when somebody collects what is left.
        with closing(reading.chunks()) as chunks:
            for chunk in chunks:
                buffer.add(chunk)
                if len(key_ids) < MOST_KEY_IDS:
                    key_ids.update(chunk.key_ids)
                progress.take(len(chunk))
        outcome = replace(outcome, lines=reading.lines, key_ids=sorted(key_ids)[:MOST_KEY_IDS])
        outcome = _told_by(reading.summary, outcome, shard)
    except SpillWriteError:
        # Of the working folder, and not of this shard.
        raise
    except (AgentMarkError, OSError) as error:
        if job.strict:
            raise
        buffer.drop()
        outcome = replace(outcome, failed=_fault(error), refused=isinstance(error, OSError))
    else:
        buffer.commit()
    progress.done()
    return outcome


def _told_by(summary: LogSummary, outcome: ShardOutcome, shard: Shard) -> ShardOutcome:
    said = [as_text(line) for line in summary.passed_over]
    if said and not summary.record_count and shard.end is None:
        # Nothing in it is a record: it is no log, or nothing is left of it.
        return replace(outcome, failed=said[0])
    said += _changes(shard)
    unlisted = sum([count for kind, count in summary.unlisted.items() if kind != "bad checkpoints"])
    return replace(
        outcome,
        records=summary.record_count,
        bad=len(summary.bad_lines) + len(summary.torn_lines) + len(summary.damage) + unlisted,
        notes=said[:MOST_NOTES],
        more_notes=max(0, len(said) - MOST_NOTES),
    )


def _changes(shard: Shard) -> list[str]:
    try:
        status = Path(shard.path).stat()
    except OSError as error:
        return [f"{shard.name}: went away while it was read: {error.strerror}"]
    if (status.st_size, status.st_mtime_ns) == (shard.size, shard.mtime_ns):
        return []
    grew = f"; it had {shard.size:,} bytes and has {status.st_size:,}" if status.st_size != shard.size else ""
    return [f"{shard.name}: changed while it was read{grew}"]


def _sha256(job: ReadJob, shard: Shard) -> str | None:
    """Of the whole file, by whoever reads its beginning."""
    if not job.digests or not shard.begins:
        return None
    with Path(shard.path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fault(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    if isinstance(error, LimitError):
        return as_text(str(error))
    return as_text(getattr(error, "short", str(error)))


class _ShardProgress:
    """Tells of a shard's bytes as its records come, at what a record takes in most logs, and of no more than it has."""

    def __init__(self, shard: Shard, told: Counted) -> None:
        self._left = shard.bytes_to_read
        self._told = told

    def take(self, records: int) -> None:
        step = min(USUAL_BYTES * records, self._left)
        self._left -= step
        self._told(step, records)

    def done(self) -> None:
        self._told(self._left, 0)


class _Buffer:
    """Chunks on their way to a file of parts."""

    def __init__(self, writer: SpillWriter, by_part: Callable[[list[Chunk]], Iterable[tuple[int, bytes]]]) -> None:
        self._writer = writer
        self._by_part = by_part
        self._kept: list[Chunk] = []
        self._current: list[Chunk] = []
        self._size = 0
        self._mark: tuple[int, list[int]] | None = None

    def begin(self) -> None:
        self._current, self._mark = [], None

    def add(self, chunk: Chunk) -> None:
        self._current.append(chunk)
        self._size += chunk.nbytes
        if self._size > BUFFER_BYTES:
            self._write(self._kept)
            self._kept = []
            self._mark = self._mark or self._writer.mark()
            self._write(self._current)
            self._current, self._size = [], 0

    def commit(self) -> None:
        self._kept += self._current
        self._current = []

    def drop(self) -> None:
        if self._mark is not None:
            self._writer.back_to(self._mark)
        self._size -= sum([chunk.nbytes for chunk in self._current])
        self._current = []

    def finish(self) -> None:
        self._write(self._kept)
        self._kept = []

    def _write(self, chunks: list[Chunk]) -> None:
        if chunks:
            for part, content in self._by_part(chunks):
                try:
                    self._writer.write(part, content)
                except OSError as error:
                    raise SpillWriteError(self._writer.path, error) from None
