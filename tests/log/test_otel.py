"""Records as spans."""

from typing import Any

import pytest
from log_run import the_run

from agentmark import SettingError


def a_provider() -> Any:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def test_a_decision_is_a_span_under_the_current_one() -> None:
    provider, exporter = a_provider()
    from agentmark.log.otel import OtelSink

    tracer = provider.get_tracer("agent")
    record = the_run()[3]
    sink = OtelSink(tracer, copies=["langsmith.metadata.agentmark.record"])
    with tracer.start_as_current_span("agent") as parent:
        sink.write(record)
    sink.close()
    span = exporter.get_finished_spans()[0]
    assert (span.name, span.parent.span_id) == ("decide", parent.get_span_context().span_id)
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "decide",
        "openinference.span.kind": "DECISION",
        "agentmark.record": record.to_json(),
        "agentmark.session": record.session,
        "agentmark.step": record.step_index,
        "agentmark.behavior": record.behavior,
        "agentmark.marked": True,
        "agentmark.enforced": False,
        "langsmith.metadata.agentmark.record": record.to_json(),
    }
    assert sink.dropped == 0


def test_a_span_limit_that_cuts_records_is_an_error_not_a_loss() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider

    from agentmark.log.otel import OtelSink

    limits = SpanLimits(max_span_attribute_length=100)
    sink = OtelSink(TracerProvider(span_limits=limits, shutdown_on_exit=False).get_tracer("agent"))
    with pytest.raises(SettingError, match="cut the record"):
        sink.write(the_run()[0])


def test_spans_that_are_not_sampled_are_counted() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    from agentmark.log.otel import OtelSink

    sink = OtelSink(TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False).get_tracer("agent"))
    sink.write(the_run()[0])
    assert sink.dropped == 1
    assert OtelSink().dropped == 0, "the global tracer serves if none is given"
