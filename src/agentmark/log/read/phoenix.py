"""Phoenix spans: of the client and the API (attributes in an object), and of data frames (a column for each)."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentmark.log.read.attributes import RECORD, as_object, record_in
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
    return raw if raw is not None else record_in({name: span.get(_COLUMN + name) for name in (RECORD, "agentmark")})


def _is_frame(content: Mapping[str, Any]) -> bool:
    """Whether this is a whole data frame, as `DataFrame.to_json()` writes it: an object of rows for each column."""
    return isinstance(content.get("context.span_id"), dict) and isinstance(content.get("name"), dict)


def _spans_of_frame(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of such a data frame, in their order, with the columns in which a record may stand.

    Not with all: a file of many rows and many columns would keep us busy with their product.
    """
    columns = {name: as_object(content.get(name)) for name in ("attributes", _COLUMN + RECORD, _COLUMN + "agentmark")}
    for row in content["context.span_id"]:
        yield {name: column.get(row) for name, column in columns.items()}
