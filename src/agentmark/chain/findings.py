"""What can be wrong with a chained log, and how one such thing is told."""

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """What can be wrong with a chained log. All but UNCHECKED mean that it is not as it was written."""

    ALTERED = "altered"
    BREAK = "break"
    GAP = "gap"
    MISSING_HEAD = "missing head"
    MISSING_TAIL = "missing tail"
    MISSING_SESSION = "missing session"
    INSERTED = "inserted"
    DUPLICATE = "duplicate"
    REORDERED = "reordered"
    UNCHAINED = "unchained"
    UNVOUCHED = "unvouched"
    BAD_SIGNATURE = "bad signature"
    FOREIGN_SIGNATURE = "foreign signature"
    UNSIGNED = "unsigned"
    CHECKPOINT_BREAK = "checkpoint break"
    REPLAYED = "replayed checkpoint"
    ANCHOR_MISSING = "anchor missing"
    UNREADABLE = "unreadable"
    EMPTY = "empty"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say about a chained log. `count`: how many records are missing or concerned, where that is known."""

    kind: FindingKind
    sentence: str
    session: str | None = None
    step: int | None = None
    line: int | None = None
    count: int | None = None
