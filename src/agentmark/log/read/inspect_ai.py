"""Inspect logs: `.eval` (a zip of samples) and `.json`. Records stand in info events or in a sample's metadata."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentmark.log.read.attributes import RECORD, Broken, LongTextError, as_list, as_object, record_in
from agentmark.log.read.events import BadEntry, Damage, Event
from agentmark.log.read.files import shown
from agentmark.log.read.format import Format, FormatTable, read_found
from agentmark.log.read.json_text import CUT_MEMBER, parse_document
from agentmark.log.read.meter import Meter
from agentmark.log.read.zip_members import MAGIC, Member, members_of, unpack
from agentmark.record import RecordError

_SAMPLES = "samples/"
_ATTACHMENT = "attachment://"
# How often each text that was put aside may be referred to, on average.
_MOST_REPEATED = 16


class InspectLog(Format):
    """An `.eval` file is known by its first bytes, a `.json` log by its members."""

    name = "Inspect log"
    accepted = "Inspect log (an .eval file, or a document with eval and samples)"
    magic = MAGIC

    def matches(self, content: Mapping[str, Any]) -> bool:
        return isinstance(content.get("eval"), dict) and ("samples" in content or "status" in content)

    def records(self, content: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        for number, sample in enumerate(as_list(content.get("samples")), start=1):
            for place, raw in _sample_records(as_object(sample)):
                yield f"sample {number} {place}", raw

    def read_file(self, path: Path, table: FormatTable, meter: Meter) -> Iterator[Event]:
        contents = members_of(path, _SAMPLES)
        for member in contents.members:
            yield from _read_sample(path, member, meter)
        if contents.cut:
            yield Damage(f"{shown(path)}: has no table of contents: it was cut short; read up to the cut")
        elif not contents.members:
            fault = f"holds no samples of an Inspect log. Accepted: {table.accepted}"
            raise RecordError(shown(path), "zip file", fault)


def _read_sample(path: Path, member: Member, meter: Meter) -> Iterator[Event]:
    where = f"{shown(path)} {member.name}"
    try:
        content = unpack(path, member, meter)
        meter.parse(content, where, "member")
        sample = parse_document(content, where)
        if sample.cut:
            yield Damage(f"{shown(path)} {member.name}: cut short; read up to its last whole entry")
        if not _is_sample(sample.content):
            raise RecordError(where, "member", "is not a sample of an Inspect log")
        yield from read_found(_sample_records(sample.content), where)
    except RecordError as error:
        yield BadEntry(error)
    except RecursionError:
        yield BadEntry(RecordError(where, "member", "is nested too deeply"))
    except LongTextError as error:
        yield BadEntry(RecordError(where, RECORD, error.fault))


def _is_sample(content: object) -> bool:
    return isinstance(content, dict) and "epoch" in content and ("events" in content or "messages" in content)


def _sample_records(sample: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """One for each info event, its record or None, and one for each record in the metadata."""
    attachments = _Attachments(sample)
    metadata = as_object(sample.get("metadata"))
    kept = [record_in(metadata), *as_list(metadata.get(f"{RECORD}s"))]
    for number, raw in enumerate(kept, start=1):
        if raw is not None:
            yield f"metadata {number}", attachments.resolve(raw)
    for number, event in enumerate(as_list(sample.get("events")), start=1):
        if isinstance(event, dict) and event.get("event") == "info":
            yield f"event {number}", _in_info(event, attachments)


class _Attachments:
    """Inspect keeps long texts aside, and puts references in their place."""

    def __init__(self, sample: Mapping[str, Any]) -> None:
        self._texts = as_object(sample.get("attachments"))
        # In a sample that was cut short, the attachments are what is missing.
        self._cut = CUT_MEMBER in sample
        # A text is kept once and may be referred to often, so that a small file could stand for any amount of text.
        self._left = _MOST_REPEATED * sum([len(text) for text in self._texts.values() if isinstance(text, str)])

    def resolve(self, value: object) -> object:
        if isinstance(value, str) and value.startswith(_ATTACHMENT):
            text = self._texts.get(value.removeprefix(_ATTACHMENT))
            self._left -= len(text) if isinstance(text, str) else 0
            if self._left < 0:
                return Broken("refers to attachments that stand for too much text")
            return text if text is not None or self._cut else value
        if isinstance(value, dict):
            return {name: self.resolve(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        return value


def _in_info(event: Mapping[str, Any], attachments: _Attachments) -> object:
    """An info event is a record, or holds one by name; only from a source that says `agentmark`.

    A solver that notes what a user said, or the arguments of a call, notes it without that.
    """
    if event.get("source") != "agentmark":
        return None
    data = event.get("data")
    if isinstance(data, str) or (isinstance(data, dict) and "agentmark" in data and "scheme" in data):
        return attachments.resolve(data)
    return attachments.resolve(record_in(data))
