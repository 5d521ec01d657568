"""Opening a log of any format: record by record, or all at once."""

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agentmark.chain.checkpoint import Checkpoint
from agentmark.core.errors import AgentMarkError
from agentmark.log.read.events import BadEntry, Entry, Event, FormatKnown
from agentmark.log.read.files import shown
from agentmark.log.read.formats import FORMATS
from agentmark.log.read.json_lines import read_record_lines
from agentmark.log.read.limits import DEFAULT_LIMITS, MIB, Limits
from agentmark.log.read.meter import EVENT_VALUES, Meter
from agentmark.log.read.packing import as_it_is, unpacked
from agentmark.log.read.span import FileSpan
from agentmark.log.read.summary import LogSummary, Tally
from agentmark.log.read.text import read_text
from agentmark.record import RecordError, StepRecord


class UnreadLogError(AgentMarkError, RuntimeError):
    """What a log held in all was asked for before it was read to its end."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: was not read to its end; there is no summary before that")
        self.path = path


def open_log(
    path: str | os.PathLike[str],
    *,
    skip_bad: bool = False,
    as_json_lines: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    span: tuple[int, int] | None = None,
) -> "Log":
    """A log of any format. It is opened and recognised when it is read.

    A broken record raises, and so does a file that is no log, unless `skip_bad` is set: then the summary lists it.
    `as_json_lines` takes the file for a log of AgentMark JSON lines, whatever it looks like. A file that asks for more
    than `limits` raises `LimitError`. `span` is a range of bytes, of a file of such lines that is not packed: read are
    its lines alone, counted from its beginning.
    """
    return Log(path, skip_bad=skip_bad, as_json_lines=as_json_lines, limits=limits, span=span)


def read_log(
    path: str | os.PathLike[str],
    *,
    skip_bad: bool = False,
    as_json_lines: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> "ReadLog":
    """All of a log at once. The settings are those of `open_log`."""
    log = open_log(path, skip_bad=skip_bad, as_json_lines=as_json_lines, limits=limits)
    return ReadLog(path=Path(path), entries=tuple(log.entries()), summary=log.summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLog:
    """A log that was read: its records with their places, and what else it held."""

    path: Path
    entries: tuple[Entry, ...]
    summary: LogSummary

    @property
    def records(self) -> list[StepRecord]:
        return [entry.record for entry in self.entries]

    @property
    def lines(self) -> list[int] | None:
        """The line of each record; None where a format has no lines, or several records on one."""
        lines = [entry.line for entry in self.entries if entry.line is not None]
        return lines if len(lines) == len(self.entries) else None


def count_event(event: Event, meter: Meter, tally: Tally, *, skip_bad: bool) -> None:
    """Take note of what was found, and of what it costs to hand it on; raise what is broken, unless it is passed
    over."""
    if isinstance(event, BadEntry) and not skip_bad:
        raise event.error
    meter.count_values(EVENT_VALUES)
    tally.count(event)
    if isinstance(event, Entry):
        meter.keep(event.record)
    elif isinstance(event, Checkpoint):
        meter.keep(event)


class Log:
    """Streams the records of a log. Each iteration reads it anew; `summary` is that of the last one to come to its end.

    A line that was cut short is passed over, and so is what other tools logged beside the records: the summary says
    so. A broken checkpoint never stops the records from being read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        skip_bad: bool,
        as_json_lines: bool,
        limits: Limits,
        span: tuple[int, int] | None = None,
    ) -> None:
        self.path = path
        self._skip_bad = skip_bad
        self._as_json_lines = as_json_lines
        self._limits = limits
        self._span = span
        # How many lines the span has; known at its end.
        self.span_lines = 0
        self._summary: LogSummary | None = None

    def __iter__(self) -> Iterator[StepRecord]:
        return (entry.record for entry in self.entries())

    def entries(self) -> Iterator[Entry]:
        """The records, each with its place in the log."""
        self._summary = None
        tally = Tally(self._name)
        try:
            yield from self._read_entries(tally)
        except RecordError as error:
            # Of the file as a whole: it is no log, or cannot be read on.
            if not self._skip_bad:
                raise
            tally.count(BadEntry(error))
        self._summary = tally.summary()

    def _read_entries(self, tally: Tally) -> Iterator[Entry]:
        meter = Meter(self._name, self._limits)
        # Opened once and looked into, so that a pipe can be read as well.
        with self._open() as file:
            try:
                for event in self._events(file, meter):
                    count_event(event, meter, tally, skip_bad=self._skip_bad)
                    if isinstance(event, Entry):
                        yield event
            except RecursionError:
                raise RecordError(self._name, tally.format or "file", "is nested too deeply") from None

    def _open(self) -> io.BufferedReader:
        path = Path(self.path)
        try:
            if self._span is not None:
                return io.BufferedReader(FileSpan(path, *self._span), MIB)
            return path.open("rb")
        except PermissionError as error:
            if not self._skip_bad:
                raise
            raise RecordError(self._name, "file", f"cannot be read: {error.strerror}") from None

    @property
    def summary(self) -> LogSummary:
        """What the log held in all, and what was passed over. There is none before the log was read to its end."""
        if self._summary is None:
            raise UnreadLogError(self._name)
        return self._summary

    @property
    def _name(self) -> str:
        return shown(self.path)

    def _events(self, file: io.BufferedReader, meter: Meter) -> Iterator[Event]:
        path = Path(self.path)
        if self._span is not None:
            yield from read_record_lines(as_it_is(file, meter), self._name, meter)
            self.span_lines = cast(FileSpan, file.raw).lines
            return
        if self._as_json_lines:
            yield from read_record_lines(unpacked(file, meter), self._name, meter)
            return
        known = FORMATS.with_magic(file.peek(16))
        if known is None:
            yield from read_text(unpacked(file, meter), path, FORMATS, meter)
            return
        yield FormatKnown(known.name)
        if not path.is_file():
            raise RecordError(self._name, known.name, "has to be a file: a pipe cannot be read to and fro")
        # Such a file is read in any order, and parts of it perhaps again and again.
        meter.read(path.stat().st_size)
        yield from known.read_file(path, FORMATS, meter)
