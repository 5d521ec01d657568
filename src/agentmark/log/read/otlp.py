"""OTLP/JSON: what the OpenTelemetry file exporters write, one request a line or one in a document."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentmark.log.read.attributes import RECORD, Broken, as_list, as_object, record_in
from agentmark.log.read.format import Format

# A collector writes its other signals in the same way, and perhaps into the same file.
_SIGNALS = ("resourceSpans", "resource_spans", "resourceLogs", "resourceMetrics")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_INTEGER = re.compile(r"-?[0-9]{1,19}")


class OtlpJson(Format):
    """Requests of spans; the other signals of a collector hold no record."""

    name = "OTLP/JSON"
    accepted = 'OTLP/JSON (lines or a document of {"resourceSpans": [...]})'

    def matches(self, content: Mapping[str, Any]) -> bool:
        return any(isinstance(content.get(name), list) for name in _SIGNALS)

    def records(self, content: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        """One for each span: its place, and its record or None."""
        number = 0
        for resource in [*as_list(content.get("resourceSpans")), *as_list(content.get("resource_spans"))]:
            for scope in [scope for name in _SCOPES for scope in as_list(as_object(resource).get(name))]:
                for span in as_list(as_object(scope).get("spans")):
                    number += 1
                    yield f"span {number}", record_in_attributes(as_object(span).get("attributes"))


def record_in_attributes(attributes: object) -> object:
    """The record in a list of keys and values, or in an object of them."""
    if not isinstance(attributes, list):
        return record_in(attributes)
    held = [as_object(attribute) for attribute in attributes]
    values = [attribute.get("value") for attribute in held if attribute.get("key") == RECORD]
    if len(values) > 1:
        return Broken("is there twice")
    try:
        return _plain(values[0]) if values else None
    except _BrokenValueError as error:
        return Broken(str(error))


class _BrokenValueError(ValueError):
    """An AnyValue that stands for nothing, or for two things."""


def _plain(value: object) -> object:
    """An AnyValue as what it stands for."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    (kind, content), *_ = value.items()
    match kind:
        case "stringValue" | "string_value" | "boolValue" | "bool_value" | "doubleValue" | "double_value":
            return content
        case "intValue" | "int_value":
            return _integer(content)
        case "arrayValue" | "array_value":
            return [_plain(item) for item in as_list(as_object(content).get("values"))]
        case "kvlistValue" | "kvlist_value":
            return _members([as_object(pair) for pair in as_list(as_object(content).get("values"))])
    return value


def _integer(content: object) -> int:
    """64 bits do not fit a JSON number, so that they come as text."""
    if isinstance(content, str) and _INTEGER.fullmatch(content):
        return int(content)
    if isinstance(content, int) and not isinstance(content, bool):
        return content
    raise _BrokenValueError("holds an intValue that is no integer of 64 bits")


def _members(pairs: list[Any]) -> dict[str, object]:
    """Names that appear twice are refused, as in text: the last would hide the first."""
    members: dict[str, object] = {}
    for pair in pairs:
        name = pair.get("key")
        if not isinstance(name, str):
            raise _BrokenValueError("has a key that is no text")
        if name in members:
            raise _BrokenValueError("names a member twice in one object")
        members[name] = _plain(pair.get("value"))
    return members
