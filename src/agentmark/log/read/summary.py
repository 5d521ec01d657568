"""What a log held in all, and what was passed over: known once it was read to its end."""

from dataclasses import dataclass, field

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
from agentmark.record import RecordError


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSummary:
    """What a log held in all. `bad_lines` is empty unless bad records were passed over: else the first one raised."""

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

    @property
    def passed_over(self) -> list[str]:
        """What was not read, in sentences."""
        said = [f"{self.path}:{line}: cut short by a crash" for line in self.torn_lines]
        said += self.damage
        said += [str(error) for error in (*self.bad_lines, *self.bad_checkpoints)]
        if self.skipped and not self.record_count:
            said.append(f"{self.path}: {self.format}: none of {self.skipped} entries holds an agentmark.record")
        return said


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

    def count(self, event: Event) -> None:
        match event:
            case Entry():
                self.record_count += 1
            case FormatKnown(name):
                self.format = self.format or name
            case NoRecord():
                self.skipped += 1
            case BadEntry(error):
                self.bad_lines.append(error)
            case TornLine(number):
                self.torn_lines.append(number)
            case Checkpoint():
                self.checkpoints.append(event)
            case BadCheckpoint(error):
                self.bad_checkpoints.append(error)
            case Damage(sentence):
                self.damage.append(sentence)

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
        )
