"""What a log held in all, and what was passed over: known once it was read to its end."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from agentmark.chain.checkpoint import Checkpoint
from agentmark.log.read.events import (
    BadCheckpoint,
    BadEntry,
    Damage,
    Entry,
    Event,
    FormatKnown,
    NoRecord,
    TornLine,
)
from agentmark.log.read.format import UnknownFormatError
from agentmark.record import RecordError

T = TypeVar("T")

# Of each kind of fault, so many are kept. Further ones are counted.
MAX_LISTED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSummary:
    """What a log held in all. `bad_lines` is empty unless bad records were passed over: else the first one raised.

    Torn lines, bad lines, bad checkpoints and damage are the first thousand of each; `unlisted` counts those beyond.
    """

    path: str
    format: str
    record_count: int
    # Spans, observations, runs or events that hold no record.
    skipped: int
    torn_lines: tuple[int, ...]
    bad_lines: tuple[RecordError, ...]
    checkpoints: tuple[Checkpoint, ...]
    bad_checkpoints: tuple[RecordError, ...]
    # Where a file that has no lines could not be read on.
    damage: tuple[str, ...]
    # How many faults of each kind are not listed; a kind of which all are is not named.
    unlisted: Mapping[str, int]

    @property
    def passed_over(self) -> list[str]:
        """What was not read, in sentences."""
        said = [f"{self.path}:{line}: is cut short" for line in self.torn_lines]
        said += self.damage
        said += [_sentence(error) for error in (*self.bad_lines, *self.bad_checkpoints)]
        said += [f"{self.path}: and {more}" for more in self.further]
        if self.skipped and not self.record_count:
            said.append(f"{self.path}: {self.format}: none of {self.skipped} entries holds an agentmark.record")
        return said

    @property
    def further(self) -> list[str]:
        """How many more faults there were than are listed, in words."""
        return [f"{count:,} more {kind}" for kind, count in self.unlisted.items()]


def _sentence(error: RecordError) -> str:
    return error.short if isinstance(error, UnknownFormatError) else str(error)


@dataclass(slots=True)
class Tally:
    """Counts along while a log is read."""

    path: str
    format: str = ""
    record_count: int = 0
    skipped: int = 0
    torn_lines: list[int] = field(default_factory=list)
    bad_lines: list[RecordError] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    bad_checkpoints: list[RecordError] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    unlisted: Counter[str] = field(default_factory=Counter)

    def count(self, event: Event) -> None:
        match event:
            case Entry():
                self.record_count += 1
            case FormatKnown(name):
                self.format = self.format or name
            case NoRecord():
                self.skipped += 1
            case BadEntry(error):
                self._list(self.bad_lines, error, "bad records")
            case TornLine(number):
                self._list(self.torn_lines, number, "lines cut short")
            case Checkpoint():
                self.checkpoints.append(event)
            case BadCheckpoint(error):
                self._list(self.bad_checkpoints, error, "bad checkpoints")
            case Damage(sentence):
                self._list(self.damage, sentence, "places that are damaged")

    def _list(self, listed: list[T], fault: T, kind: str) -> None:
        if len(listed) < MAX_LISTED:
            listed.append(fault)
        else:
            self.unlisted[kind] += 1

    def summary(self) -> LogSummary:
        return LogSummary(
            path=self.path,
            format=self.format,
            record_count=self.record_count,
            skipped=self.skipped,
            torn_lines=tuple(self.torn_lines),
            bad_lines=tuple(self.bad_lines),
            checkpoints=tuple(self.checkpoints),
            bad_checkpoints=tuple(self.bad_checkpoints),
            damage=tuple(self.damage),
            unlisted=dict(self.unlisted),
        )
