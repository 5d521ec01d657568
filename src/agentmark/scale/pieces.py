"""What is shuffled: records of one bucket as columns, and what was noted while they were read. No key is in it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

from agentmark.audit.column_chunks import ColumnChunk, ColumnChunks
from agentmark.audit.spill import part_of
from agentmark.batch.arrays import Int64s, np
from agentmark.batch.columns import StepColumns
from agentmark.scale.cluster import Piece
from agentmark.verify.roll import By

# The first byte of a piece says what it holds: columns with a place among all, columns whose rows tell their order
# themselves, or notes.
PLACED, LOOSE, NOTED = b"P", b"L", b"N"
_PLACE = Struct(">Q")


def placed(place: int, bucket: int, columns: bytes) -> Piece:
    """Columns that stand at this place in the input."""
    return Piece(bucket, PLACED + _PLACE.pack(place) + columns)


def loose(columns: StepColumns, by: By, buckets: int) -> list[Piece]:
    """Columns from an input without an order, by bucket."""
    if not len(columns):
        return []
    return [
        Piece(bucket, LOOSE + content)
        for bucket, content in ColumnChunks().by_part([ColumnChunk(columns)], by, buckets)
    ]


def noted(said: object, name: str, buckets: int) -> Piece:
    """Something to tell the driver, by way of any bucket: the one of this name."""
    return Piece(part_of(name, buckets), NOTED + json.dumps(said).encode("ascii"))


@dataclass(frozen=True, slots=True)
class Gathered:
    """All of a bucket."""

    columns: StepColumns
    notes: list[Any]


def gather(pieces: Iterable[bytes]) -> Gathered:
    """The records of a bucket and what was noted, in an order that does not depend on that of the pieces."""
    # Whoever runs a task twice may hand in its pieces in another order, and the places settle that.
    ordered = sorted(pieces)
    begin = 1 + _PLACE.size
    in_place = [StepColumns.from_bytes(piece[begin:]) for piece in ordered if piece[:1] == PLACED]
    unplaced = StepColumns.concat([StepColumns.from_bytes(piece[1:]) for piece in ordered if piece[:1] == LOOSE])
    columns = StepColumns.concat([*in_place, unplaced.take(_order(unplaced))])
    return Gathered(columns, [json.loads(piece[1:]) for piece in ordered if piece[:1] == NOTED])


def _order(columns: StepColumns) -> Int64s:
    """By file and line; where lines are not known, by what else tells records apart."""
    contexts = [columns.context[:, byte] for byte in range(columns.context.shape[1])]
    names = _ranks(columns.names)
    keys: list[Any] = [names[columns.choice], *contexts[::-1], columns.step, _ranks(columns.sessions)[columns.session]]
    order: Int64s = np.lexsort([*keys, columns.line, _ranks(columns.files)[columns.file]])
    return order


def _ranks(table: Sequence[str]) -> Int64s:
    ranks = np.empty(len(table), np.int64)
    ranks[np.array(sorted(range(len(table)), key=table.__getitem__), np.int64)] = np.arange(len(table))
    return ranks
