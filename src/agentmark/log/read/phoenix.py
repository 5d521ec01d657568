"""Phoenix spans: of the client and the API (attributes in an object), and of data frames (a column for each)."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentmark.log.read.attributes import as_object, record_in
from agentmark.log.read.format import Format
from agentmark.log.read.otlp import record_in_attributes

_SPAN_ID = ("context.span_id", "span_id", "context")
_COLUMN = "attributes."


class PhoenixSpans(Format):
    """A span by itself, or a whole data frame of them."""

    name = "Phoenix spans"
    accepted = "Phoenix spans (rows with attributes, or columns named attributes.*, and a span id)"

    def matches(self, content: Mapping[str, Any]) -> bool:
        has_attributes = "attributes" in content or any(name.startswith(_COLUMN) for name in content)
        return _is_frame(content) or (has_attributes and any(name in content for name in _SPAN_ID))

    def records(self, content: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        if not _is_frame(content):
            yield "", _record_of(content)
            return
        for number, span in enumerate(_spans_of_frame(content), start=1):
            yield f"row {number}", _record_of(span)


def _record_of(span: Mapping[str, Any]) -> object:
    raw = record_in_attributes(span.get("attributes"))
    if raw is not None:
        return raw
    return record_in({name.removeprefix(_COLUMN): value for name, value in span.items() if name.startswith(_COLUMN)})


def _is_frame(content: Mapping[str, Any]) -> bool:
    """Whether this is a whole data frame, as `DataFrame.to_json()` writes it: an object of rows for each column."""
    return isinstance(content.get("context.span_id"), dict) and isinstance(content.get("name"), dict)


def _spans_of_frame(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of such a data frame, in their order."""
    for row in content["context.span_id"]:
        yield {name: as_object(column).get(row) for name, column in content.items()}
