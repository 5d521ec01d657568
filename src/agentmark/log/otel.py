"""Records as OpenTelemetry spans, for whatever collects them (extra: otel)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentmark.errors import MissingExtraError, SettingError
from agentmark.record import StepRecord

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

SPAN_NAME = "decide"
RECORD_ATTRIBUTE = "agentmark.record"


class OtelSink:
    """Each record is a span `decide` under the current one, with the record as one JSON string in an attribute.

    Spans that the user's sampler drops are gone: `dropped` counts them. Decisions had better always be sampled.
    """

    def __init__(self, tracer: "Tracer | None" = None, *, copies: Sequence[str] = ()) -> None:
        """Without a tracer, the global provider's. `copies` are further attributes to hold the record, for tools that
        keep only names they know, such as `langsmith.metadata.agentmark.record`.
        """
        try:
            from opentelemetry import trace
        except ImportError:
            raise MissingExtraError("opentelemetry-api", "otel") from None
        self._copies = tuple(copies)
        self._tracer = tracer or trace.get_tracer("agentmark")
        self.dropped = 0

    def write(self, record: StepRecord) -> None:
        """Start and end the span of one decision."""
        text = record.to_json()
        attributes = span_attributes(record, text) | dict.fromkeys(self._copies, text)
        span = self._tracer.start_span(SPAN_NAME, attributes=attributes)
        kept = getattr(span, "attributes", None)
        recording = span.is_recording()
        span.end()
        if not recording:
            self.dropped += 1
        elif kept is not None and kept.get(RECORD_ATTRIBUTE) != text:
            raise SettingError(
                "span limits",
                "cut the record: OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT or its like must leave room for it",
            )

    def close(self) -> None:
        """Nothing to do: whoever made the tracer provider shuts it down."""


def span_attributes(record: StepRecord, text: str) -> dict[str, Any]:
    """The record, what tracing tools sort spans by, and a few members to look for."""
    attributes: dict[str, Any] = {
        # Literals: these constants have left the core package of OpenTelemetry, or never were in it.
        "gen_ai.operation.name": "decide",
        "openinference.span.kind": "DECISION",
        RECORD_ATTRIBUTE: text,
        "agentmark.session": record.session,
        "agentmark.step": record.step_index,
        "agentmark.behavior": record.behavior,
        "agentmark.marked": record.marked,
    }
    if record.enforced is not None:
        attributes["agentmark.enforced"] = record.enforced
    return attributes
