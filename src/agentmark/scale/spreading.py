"""The input of an audit, sorted into buckets: a log goes to the bucket of its name, wherever its records stood."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

from agentmark.audit.chunks import FAST
from agentmark.audit.shard_reading import MOST_NOTES, ReadJob, read_shards
from agentmark.audit.shards import FoundShards, Shard, batches, find_shards, ranges_of
from agentmark.audit.spill import read_blocks
from agentmark.batch.arrays import np
from agentmark.batch.columns import NO_LINE, StepColumns
from agentmark.batch.from_lines import read_line_chunks
from agentmark.chain.checkpoint import Checkpoint
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.log.read.events import BadCheckpoint, BadEntry, Entry, TornLine
from agentmark.log.read.json_lines import read_record_line
from agentmark.log.read.limits import DEFAULT_LIMITS, LimitError, Limits
from agentmark.log.read.meter import Meter
from agentmark.log.read.packing import as_it_is
from agentmark.log.read.summary import Tally
from agentmark.record import StepRecord
from agentmark.scale.cluster import Piece
from agentmark.scale.pieces import loose, noted, placed
from agentmark.verify.roll import By

# Blocks of one batch of files have places of their own.
_BLOCKS = 1 << 24


def line_columns(text: str, file: str | None, line: str | None) -> dict[str, str]:
    """The columns that `LineSpreader` takes, and what they are called in the input."""
    given = {"text": text, "file": file, "line": line}
    return {name: column for name, column in given.items() if column is not None}


def shard_rows(paths: Iterable[str]) -> tuple[FoundShards, list[dict[str, Any]]]:
    """The files that are meant, and the rows of a frame of them: a batch of shards each."""
    found = find_shards(paths)
    taken = batches([piece for shard in found.shards for piece in ranges_of(shard)])
    return found, [{"batch": i, "shards": [asdict(shard) for shard in batch]} for i, batch in enumerate(taken)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpreader:
    """Reads files where the workers find them, as `agentmark audit` reads them: every format, every limit, every note.

    A row of the input is the number of a batch of shards, and the batch as `Shard` states it.
    """

    by: By
    buckets: int
    limits: Limits = DEFAULT_LIMITS
    work_limit: int = DEFAULT_WORK_LIMIT

    def __call__(self, batch: Mapping[str, Any]) -> Sequence[Piece]:
        pieces: list[Piece] = []
        for number, shards in zip(batch["batch"].to_pylist(), batch["shards"].to_pylist(), strict=True):
            pieces += self._read(number, tuple([Shard(**shard) for shard in shards]))
        return pieces

    def _read(self, number: int, shards: tuple[Shard, ...]) -> list[Piece]:
        with tempfile.TemporaryDirectory(prefix="agentmark-scale-") as folder:
            file = Path(folder) / "parts"
            job = ReadJob(
                shards=shards,
                file=str(file),
                part_count=self.buckets,
                by=self.by,
                engine=FAST,
                limits=self.limits,
                strict=False,
                work_limit=self.work_limit,
                digests=False,
            )
            outcomes, _ = read_shards(job, lambda done, records: None)
            pieces = [
                placed(number * _BLOCKS + i, bucket, block)
                for bucket in range(self.buckets)
                for i, block in enumerate(read_blocks(file, bucket))
            ]
        told = {"batch": number, "outcomes": [outcome.as_dict() for outcome in outcomes]}
        return [*pieces, noted(told, str(number), self.buckets)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSpreader:
    """Sorts lines of JSON into buckets: column `text`, and where there are such, `file` and `line` (from 1 on)."""

    by: By
    buckets: int
    limits: Limits = DEFAULT_LIMITS

    def __call__(self, batch: Mapping[str, Any]) -> Sequence[Piece]:
        texts = [_bytes(text) for text in batch["text"].to_pylist()]
        files = [file or "" for file in batch["file"].to_pylist()] if "file" in batch else [""] * len(texts)
        stated: list[int | None] = batch["line"].to_pylist() if "line" in batch else [None] * len(texts)
        lines = [NO_LINE if line is None else line for line in stated]
        taken = self._taken_at_once(texts)
        columns = _placed(taken, files, lines)
        left = np.ones(len(texts), bool)
        left[taken.line - 1] = False
        notes: list[str] = []
        rest: list[StepColumns] = []
        for row in np.flatnonzero(left).tolist():
            record = self._read(texts[row], files[row], lines[row], notes)
            if record is not None:
                rest.append(StepColumns.of_records([record], files[row], [None if lines[row] < 1 else lines[row]]))
        columns = StepColumns.concat([columns, *rest])
        told = {
            "records": len(columns),
            "bad": len(notes),
            "notes": sorted(notes)[:MOST_NOTES],
            "key_ids": sorted(columns.key_ids),
        }
        name = columns.context[0].tobytes().hex() if len(columns) else "".join(notes)
        return [*loose(columns, self.by, self.buckets), noted(told, name, self.buckets)]

    def _taken_at_once(self, texts: Sequence[bytes]) -> StepColumns:
        """The records among these lines, with the number of the text as their line; what is none is left out."""
        joined = b"".join([b"\n" if b"\n" in text else text + b"\n" for text in texts])
        meter = Meter("input", self.limits)
        stream = as_it_is(BufferedReader(BytesIO(joined)), meter)
        try:
            return StepColumns.concat(
                read_line_chunks(stream, "input", meter, Tally("input"), skip_bad=True, rows=len(texts))
            )
        except LimitError:
            # One of them asks for too much: then each is looked at by itself.
            return StepColumns.empty()

    def _read(self, text: bytes, file: str, line: int, notes: list[str]) -> StepRecord | None:
        """The record of one line; whatever else it is, in the words of the plain reader."""
        if not text.strip():
            return None
        where = file or "input"
        if line != NO_LINE:
            where = f"{where}:{line}"
        try:
            Meter(where, self.limits).check(text, where, "line")
        except LimitError as error:
            notes.append(str(error))
            return None
        event = read_record_line(text + b"\n", where, max(line, 0))
        if isinstance(event, Entry):
            return event.record
        if isinstance(event, BadEntry | BadCheckpoint):
            notes.append(str(event.error))
        elif isinstance(event, TornLine):
            notes.append(f"{where}: cut short")
        else:
            assert isinstance(event, Checkpoint)
        return None


def _bytes(text: str | bytes | None) -> bytes:
    return text if isinstance(text, bytes) else (text or "").encode("utf-8", "surrogatepass")


def _placed(columns: StepColumns, files: Sequence[str], lines: Sequence[int]) -> StepColumns:
    """The columns with the files and lines of their rows in place of the numbers of the texts."""
    if not len(columns):
        return columns
    rows = columns.line - 1
    table = {name: code for code, name in enumerate(dict.fromkeys(files))}
    codes = np.fromiter(map(table.__getitem__, files), np.int32, len(files))
    return replace(columns, files=tuple(table), file=codes[rows], line=np.array(lines, np.int64)[rows])
