"""OTLP/JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from log_shapes import LINE, LINES, RUN, as_lines, otlp_request, otlp_span, verdict_of

from agentmark import RecordError
from agentmark.log.read.open import open_log


def test_the_same_run_through_the_real_otel_sdk_has_the_same_verdict(
    tmp_path: Path, key_file: Path, native_verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.json.file")
    from opentelemetry.exporter.otlp.json.file import FileSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from agentmark.log.otel import OtelSink

    path = tmp_path / "traces.jsonl"
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(FileSpanExporter(str(path))))
    tracer = provider.get_tracer("agent")
    sink = OtelSink(tracer)
    with tracer.start_as_current_span("agent"):
        for record in RUN:
            sink.write(record)
    provider.shutdown()
    source = open_log(path)
    assert list(source) == RUN
    assert (source.summary.format, source.summary.skipped) == ("OTLP/JSON", 1)
    assert verdict_of(path, key_file, capsys) == native_verdict


def otlp_value(content: Any) -> dict[str, Any]:
    """A parsed record as an AnyValue."""
    if isinstance(content, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": otlp_value(v)} for key, v in content.items()]}}
    if isinstance(content, list):
        return {"arrayValue": {"values": [otlp_value(item) for item in content]}}
    if isinstance(content, bool):
        return {"boolValue": content}
    return {"intValue": str(content)} if isinstance(content, int) else {"stringValue": content}


def _altered(change: Callable[[list[dict[str, Any]]], Any]) -> dict[str, Any]:
    value = otlp_value(json.loads(LINE))
    change(value["kvlistValue"]["values"])
    return value


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (_altered(lambda pairs: pairs.append({"key": "x", "value": {"intValue": "--5"}})), "no integer"),
        (_altered(lambda pairs: pairs.append({"key": "x", "value": {"intValue": "9" * 5000}})), "no integer"),
        (_altered(lambda pairs: pairs.append({"key": "x", "value": {"intValue": "\u0665"}})), "no integer"),
        (_altered(lambda pairs: pairs.append({"key": "x", "value": {"intValue": True}})), "no integer"),
        (_altered(lambda pairs: pairs.append({"key": "step", "value": {"intValue": "7"}})), "a member twice"),
        (_altered(lambda pairs: pairs.append({"value": {"intValue": "7"}})), "a key that is no text"),
        (_altered(lambda pairs: pairs.append({"key": 5, "value": {"intValue": "7"}})), "a key that is no text"),
    ],
)
def test_values_of_otlp_are_as_strict_as_text(tmp_path: Path, value: dict[str, Any], fault: str) -> None:
    path = tmp_path / "log"
    bad = otlp_span("", attributes=[{"key": "agentmark.record", "value": value}])
    good = otlp_span("", attributes=[{"key": "agentmark.record", "value": otlp_value(json.loads(LINE))}])
    path.write_bytes(as_lines([otlp_request([good, bad, otlp_span(LINES[1])])]))
    with pytest.raises(RecordError, match=rf"log:1 span 2: agentmark\.record: .*{fault}"):
        list(open_log(path))
    source = open_log(path, skip_bad=True)
    assert list(source) == RUN[:2]


def test_a_span_with_two_records_has_none(tmp_path: Path) -> None:
    path = tmp_path / "log"
    span = otlp_span(LINES[0])
    span["attributes"] += otlp_span(LINES[1])["attributes"][1:]
    path.write_bytes(as_lines([otlp_request([span])]))
    with pytest.raises(RecordError, match="is there twice"):
        list(open_log(path))
