"""Langfuse observations: of the API (`{"data": [...]}`), of the user interface (an array), of blob storage (lines)."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentmark.log.read.attributes import as_object, record_in
from agentmark.log.read.format import Format

_TRACE = ("traceId", "trace_id")
_OWN = ("metadata", "projectId", "project_id", "parentObservationId", "parent_observation_id")


class LangfuseObservations(Format):
    """Known by the trace that an observation belongs to, and its type."""

    name = "Langfuse observations"
    accepted = "Langfuse observations (rows with traceId or trace_id, type and metadata)"

    def matches(self, content: Mapping[str, Any]) -> bool:
        if not any(name in content for name in _TRACE) or "span_kind" in content:
            return False
        return isinstance(content.get("type"), str) and any(name in content for name in _OWN)

    def records(self, content: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
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
