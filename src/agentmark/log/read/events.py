"""What one comes upon in reading a log, in its order. A format yields these; nothing else tells what it found."""

from dataclasses import dataclass
from typing import NamedTuple

from agentmark.chain.checkpoint import Checkpoint
from agentmark.record import RecordError, StepRecord


class Entry(NamedTuple):
    """A record, and the line it has to itself; None where a format has no such lines."""

    record: StepRecord
    line: int | None = None


@dataclass(frozen=True, slots=True)
class FormatKnown:
    """From here on it is known what the file is. The first of these counts."""

    name: str


@dataclass(frozen=True, slots=True)
class NoRecord:
    """A span, an observation, a run or an event that holds no record."""


@dataclass(frozen=True, slots=True)
class BadEntry:
    """Something that should be a record and is not one. It stops the reading, unless bad ones are passed over."""

    error: RecordError


@dataclass(frozen=True, slots=True)
class TornLine:
    """A line that is cut short: by a crash while it was written, or in a copy of the log."""

    number: int


@dataclass(frozen=True, slots=True)
class BadCheckpoint:
    """A broken checkpoint. It never stops the records from being read."""

    error: RecordError


@dataclass(frozen=True, slots=True)
class Damage:
    """Where a file without lines could not be read on, in a sentence."""

    sentence: str


# A checkpoint of a chain stands for itself.
Event = Entry | FormatKnown | NoRecord | BadEntry | TornLine | Checkpoint | BadCheckpoint | Damage
