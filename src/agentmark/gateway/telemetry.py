"""Spans and metrics over OTLP, where an endpoint is configured (extra: otlp). A record is a span of its own."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from agentmark.errors import MissingExtraError
from agentmark.log.otel import OtelSink
from agentmark.record import StepRecord
from agentmark.version import __version__

SPAN_NAME = "agentmark.gateway"


class Telemetry:
    """Without an endpoint, nothing at all."""

    def __init__(self, endpoint: str | None) -> None:
        self._sink: OtelSink | None = None
        if endpoint is not None:
            self._set_up(endpoint.rstrip("/"))

    def _set_up(self, endpoint: str) -> None:
        try:
            from opentelemetry import metrics, trace
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError:
            raise MissingExtraError("opentelemetry-exporter-otlp-proto-http", "otlp") from None
        resource = Resource.create({"service.name": "agentmark-gateway", "service.version": __version__})
        self._traces = TracerProvider(resource=resource)
        self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{endpoint}/v1/metrics"))
        self._meters = MeterProvider(resource=resource, metric_readers=[reader])
        # The ledger counts through the global provider.
        metrics.set_meter_provider(self._meters)
        self._trace = trace
        self._tracer = self._traces.get_tracer("agentmark.gateway", __version__)
        self._propagator = TraceContextTextMapPropagator()
        self._sink = OtelSink(self._tracer)
        meter = self._meters.get_meter("agentmark.gateway", __version__)
        self._added = meter.create_histogram("agentmark.gateway.added", unit="s", description="Time beside the model's")

    @contextmanager
    def request(self, route: str, headers: Sequence[tuple[bytes, bytes]]) -> Iterator[Any]:
        """A span around one request, under the client's own where it names one. None without an endpoint."""
        if self._sink is None:
            yield None
            return
        carrier = {
            key.decode("latin-1"): value.decode("latin-1")
            for key, value in headers
            if key in (b"traceparent", b"tracestate")
        }
        attributes = {"http.route": route, "gen_ai.operation.name": "gateway"}
        with self._tracer.start_as_current_span(
            SPAN_NAME,
            context=self._propagator.extract(carrier),
            kind=self._trace.SpanKind.SERVER,
            attributes=attributes,
            # The words of an error may be anybody's.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield span

    def recorded(self, record: StepRecord) -> None:
        """A record was written: it is a span too."""
        if self._sink is not None:
            self._sink.write(record)

    def added(self, seconds: float, route: str, model: str) -> None:
        if self._sink is not None:
            self._added.record(seconds, {"http.route": route, "gen_ai.request.model": model})

    def close(self) -> None:
        """Send what is left."""
        if self._sink is not None:
            self._traces.shutdown()
            self._meters.shutdown()
