"""OTLP/JSON: what the OpenTelemetry file exporters write, one request a line or one in a document."""

from collections.abc import Iterator
from typing import Any

from agentmark.readers.found import RECORD, as_list, as_object, record_in

NAME = "OTLP/JSON"
HOW = 'lines or a document of {"resourceSpans": [...]}'

# A collector writes its other signals in the same way, and perhaps into the same file.
_SIGNALS = ("resourceSpans", "resource_spans", "resourceLogs", "resourceMetrics")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")


def matches(content: dict[str, Any]) -> bool:
    return any(isinstance(content.get(name), list) for name in _SIGNALS)


def records(content: dict[str, Any]) -> Iterator[tuple[str, object]]:
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
    for attribute in attributes:
        if isinstance(attribute, dict) and attribute.get("key") == RECORD:
            return _plain(attribute.get("value"))
    return None


def _plain(value: object) -> object:
    """An AnyValue as what it stands for."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    (kind, content), *_ = value.items()
    match kind:
        case "stringValue" | "string_value" | "boolValue" | "bool_value" | "doubleValue" | "double_value":
            return content
        case "intValue" | "int_value":
            # 64 bits do not fit a JSON number, so that they come as text.
            return int(content) if isinstance(content, str) and content.lstrip("-").isdecimal() else content
        case "arrayValue" | "array_value":
            return [_plain(item) for item in as_list(as_object(content).get("values"))]
        case "kvlistValue" | "kvlist_value":
            pairs = [as_object(pair) for pair in as_list(as_object(content).get("values"))]
            return {str(pair.get("key")): _plain(pair.get("value")) for pair in pairs}
    return value
