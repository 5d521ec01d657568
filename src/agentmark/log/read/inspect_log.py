"""Inspect logs: `.eval` (a zip of samples) and `.json`. Records stand in info events or in a sample's metadata."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentmark.log.read.found import RECORD, as_list, as_object, record_in
from agentmark.log.read.json_text import CUT_MEMBER

NAME = "Inspect log"
HOW = "an .eval file, or a document with eval and samples"
SAMPLES = "samples/"

_ATTACHMENT = "attachment://"


def matches(content: dict[str, Any]) -> bool:
    return isinstance(content.get("eval"), dict) and ("samples" in content or "status" in content)


def is_sample(content: object) -> bool:
    """Whether this is a sample, as a member of an `.eval` file."""
    return isinstance(content, dict) and "epoch" in content and ("events" in content or "messages" in content)


def records(content: dict[str, Any]) -> Iterator[tuple[str, object]]:
    for number, sample in enumerate(as_list(content.get("samples")), start=1):
        for place, raw in sample_records(as_object(sample)):
            yield f"sample {number} {place}", raw


def sample_records(sample: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """One for each info event, its record or None, and one for each record in the metadata."""
    attachments = _Attachments(sample)
    metadata = as_object(sample.get("metadata"))
    kept = [record_in(metadata), *as_list(metadata.get(f"{RECORD}s"))]
    for number, raw in enumerate(kept, start=1):
        if raw is not None:
            yield f"metadata {number}", attachments.resolve(raw)
    for number, event in enumerate(as_list(sample.get("events")), start=1):
        if as_object(event).get("event") == "info":
            yield f"event {number}", _in_info(event, attachments)


class _Attachments:
    """Inspect keeps long texts aside, and puts references in their place."""

    def __init__(self, sample: Mapping[str, Any]) -> None:
        self._texts = as_object(sample.get("attachments"))
        # In a sample that was cut short, the attachments are what is missing.
        self._cut = CUT_MEMBER in sample

    def resolve(self, value: object) -> object:
        if isinstance(value, str) and value.startswith(_ATTACHMENT):
            text = self._texts.get(value.removeprefix(_ATTACHMENT))
            return text if text is not None or self._cut else value
        if isinstance(value, dict):
            return {name: self.resolve(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        return value


def _in_info(event: Mapping[str, Any], attachments: _Attachments) -> object:
    """An info event is a record, or holds one by name. Text counts only from a source that says `agentmark`."""
    data = attachments.resolve(event.get("data"))
    if isinstance(data, dict) and "agentmark" in data and "scheme" in data:
        return data
    if isinstance(data, str) and event.get("source") == "agentmark":
        return data
    return record_in(data)
