"""Phoenix spans: of the client and the API (attributes in an object), and of data frames (a column for each)."""

from collections.abc import Iterator
from typing import Any

from agentmark.log.read.found import as_object, record_in
from agentmark.log.read.otlp import record_in_attributes

NAME = "Phoenix spans"
HOW = "rows with attributes, or columns named attributes.*, and a span id"

_SPAN_ID = ("context.span_id", "span_id", "context")
_COLUMN = "attributes."


def matches(content: dict[str, Any]) -> bool:
    has_attributes = "attributes" in content or any(name.startswith(_COLUMN) for name in content)
    return has_attributes and any(name in content for name in _SPAN_ID) and not is_by_column(content)


def records(content: dict[str, Any]) -> Iterator[tuple[str, object]]:
    raw = record_in_attributes(content.get("attributes"))
    if raw is None:
        columns = {name.removeprefix(_COLUMN): value for name, value in content.items() if name.startswith(_COLUMN)}
        raw = record_in(columns)
    yield "", raw


def is_by_column(content: dict[str, Any]) -> bool:
    """Whether this is a whole data frame, as `DataFrame.to_json()` writes it: an object of rows for each column."""
    return isinstance(content.get("context.span_id"), dict) and isinstance(content.get("name"), dict)


def rows_by_column(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of such a data frame, in their order."""
    for row in content["context.span_id"]:
        yield {name: as_object(column).get(row) for name, column in content.items()}
