"""AgentMark's own logs: a record a line, checkpoints of a chain among them; also records in an array."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentmark.chain.checkpoint import CHECKPOINT_MEMBER, Checkpoint
from agentmark.log.lines import is_checkpoint, is_torn, parse_line
from agentmark.log.read.events import BadCheckpoint, BadEntry, Entry, Event, FormatKnown, TornLine
from agentmark.log.read.format import Format
from agentmark.log.read.meter import Meter
from agentmark.log.read.packing import DamagedError, Stream, lines_of
from agentmark.record import RecordError


class JsonLines(Format):
    """Known by its lines, which may be torn or broken: `text.py` tells them, and hands them to `read_record_lines`."""

    name = "AgentMark JSON lines"
    accepted = name


class JsonRecords(Format):
    """Records as objects in other JSON, for instance in an array."""

    name = "AgentMark JSON records"

    def matches(self, content: Mapping[str, Any]) -> bool:
        return "agentmark" in content and "scheme" in content

    def records(self, content: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        yield "", content


def read_record_lines(stream: Stream, name: str, meter: Meter) -> Iterator[Event]:
    """Read lines as they were written, each by itself. A packed log that was cut ends in a torn line."""
    yield FormatKnown(JsonLines.name)
    try:
        for number, line in lines_of(stream, name, meter):
            where = f"{name}:{number}"
            meter.parse(line, where, "line")
            yield read_record_line(line, where, number)
    except DamagedError as damage:
        yield TornLine(damage.line)


def is_own(content: object) -> bool:
    """Whether a line that holds this means to be one of AgentMark's own: a record, or a checkpoint."""
    return isinstance(content, dict) and ("agentmark" in content or CHECKPOINT_MEMBER in content)


def read_record_line(line: bytes, where: str, number: int) -> Event:
    """A line as it was written: a record, a checkpoint, or what is left of one."""
    stripped = line.strip()
    try:
        content = parse_line(stripped, where=where, number=number)
    except RecordError as error:
        if is_torn(stripped, ended=line.endswith(b"\n")):
            return TornLine(number)
        return BadCheckpoint(error) if is_checkpoint(stripped) else BadEntry(error)
    return content if isinstance(content, Checkpoint) else Entry(content, number)
