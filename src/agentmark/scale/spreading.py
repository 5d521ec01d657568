"""Lines of a frame, sorted into buckets: a log goes to the bucket of its name, whole, wherever its lines stood.

No key is needed for it, and what is shuffled holds no more than the logs do.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from agentmark.batch.arrays import np
from agentmark.batch.columns import StepColumns
from agentmark.chain.checkpoint import Checkpoint
from agentmark.log.read.events import BadCheckpoint, BadEntry, Entry, TornLine
from agentmark.log.read.json_lines import read_record_line
from agentmark.record import StepRecord
from agentmark.scale.cluster import Piece
from agentmark.verify.roll import By

# The first byte of a piece says what it holds.
STEPS, NOTES = b"S", b"N"


def bucket_of(name: str, buckets: int) -> int:
    """The bucket of a log: the same on every machine and in every run."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % buckets


@dataclass(frozen=True, slots=True)
class LineSpreader:
    """Sorts lines of JSON into buckets: column `text`, and where there are such, `file` and `line` (from 1 on)."""

    by: By
    buckets: int

    def __call__(self, batch: Mapping[str, Any]) -> Sequence[Piece]:
        texts = batch["text"].to_pylist()
        files = batch["file"].to_pylist() if "file" in batch else [""] * len(texts)
        lines = batch["line"].to_pylist() if "line" in batch else [None] * len(texts)
        entries: dict[str, list[tuple[StepRecord, int | None]]] = defaultdict(list)
        notes: dict[str, list[str]] = defaultdict(list)
        for text, file, line in zip(texts, files, lines, strict=True):
            record = self._read(text, file or "", line, notes)
            if record is not None:
                entries[file or ""].append((record, line))
        columns = StepColumns.concat(
            [
                StepColumns.of_records([record for record, _ in mine], file, [line for _, line in mine])
                for file, mine in entries.items()
            ]
        )
        return [*self._pieces(columns), *self._noted(notes)]

    def _read(
        self, text: str | bytes | None, file: str, line: int | None, notes: dict[str, list[str]]
    ) -> StepRecord | None:
        content = text if isinstance(text, bytes) else (text or "").encode("utf-8", "surrogatepass")
        if not content.strip():
            return None
        event = read_record_line(content + b"\n", _place(file, line), line or 0)
        if isinstance(event, Entry):
            return event.record
        if isinstance(event, BadEntry | BadCheckpoint):
            notes[file].append(str(event.error))
        elif isinstance(event, TornLine):
            notes[file].append(f"{_place(file, line)}: cut short")
        else:
            assert isinstance(event, Checkpoint)
        return None

    def _pieces(self, columns: StepColumns) -> list[Piece]:
        if not len(columns):
            return []
        names, code = (columns.files, columns.file) if self.by is By.FILE else (columns.sessions, columns.session)
        bucket = np.array([bucket_of(name, self.buckets) for name in names], np.int32)[code]
        order = np.argsort(bucket, kind="stable")
        starts = np.flatnonzero(np.diff(bucket[order], prepend=-1))
        return [
            Piece(int(bucket[rows[0]]), STEPS + columns.take(rows).to_bytes()) for rows in np.split(order, starts[1:])
        ]

    def _noted(self, notes: Mapping[str, list[str]]) -> list[Piece]:
        return [
            Piece(bucket_of(file, self.buckets), NOTES + json.dumps(said).encode("utf-8"))
            for file, said in notes.items()
        ]


def _place(file: str, line: int | None) -> str:
    return f"{file or 'input'}:{line}" if line is not None else file or "input"


def gathered(pieces: Sequence[bytes]) -> tuple[StepColumns, list[str]]:
    """The records of a bucket and what was noted, in an order that does not depend on that of the pieces."""
    columns = StepColumns.concat([StepColumns.from_bytes(piece[1:]) for piece in pieces if piece[:1] == STEPS])
    notes = [note for piece in pieces if piece[:1] == NOTES for note in json.loads(piece[1:])]
    return columns.take(_in_order(columns)), sorted(notes)


def _in_order(columns: StepColumns) -> Any:
    """By file and line; where lines are not known, by what else tells records apart."""
    contexts = [columns.context[:, byte] for byte in range(columns.context.shape[1])]
    keys = [*contexts[::-1], columns.choice, columns.step, _ranks(columns.sessions)[columns.session], columns.line]
    return np.lexsort([*keys, _ranks(columns.files)[columns.file]])


def _ranks(table: Sequence[str]) -> Any:
    ranks = np.empty(len(table), np.int64)
    ranks[np.array(sorted(range(len(table)), key=table.__getitem__), np.int64)] = np.arange(len(table))
    return ranks
