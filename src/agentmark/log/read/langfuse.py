"""Langfuse observations: of the API (`{"data": [...]}`), of the user interface (an array), of blob storage (lines)."""

from collections.abc import Iterator
from typing import Any

from agentmark.log.read.found import as_object, record_in

NAME = "Langfuse observations"
HOW = "rows with traceId or trace_id, type and metadata"

_TRACE = ("traceId", "trace_id")
_OWN = ("metadata", "projectId", "project_id", "parentObservationId", "parent_observation_id")


def matches(content: dict[str, Any]) -> bool:
    if not any(name in content for name in _TRACE) or "span_kind" in content:
        return False
    return isinstance(content.get("type"), str) and any(name in content for name in _OWN)


def records(content: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """Spans that came over OpenTelemetry have their attributes under metadata.attributes, others under metadata.

    Blob storage keeps each member of the metadata as a JSON string; the API parses them, and a record with them.
    Input and output are not looked into: they hold what users and models said, and anybody can say a record.
    """
    metadata = as_object(content.get("metadata"))
    for container in (metadata, metadata.get("attributes")):
        raw = record_in(container)
        if raw is not None:
            yield "", raw
            return
    yield "", None
