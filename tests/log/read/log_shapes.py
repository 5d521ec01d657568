"""The same run in every shape that is read, made by hand after the vendors' documentation and source (docs/logs.md)."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from log_run import PAYLOAD, the_run

from agentmark.cli import main

EXPORTS = Path(__file__).parent / "exports"
RUN = the_run()
LINES = [record.to_json() for record in RUN]


def as_json_text(content: Any) -> bytes:
    return json.dumps(content).encode()


def as_lines(rows: list[Any]) -> bytes:
    return b"".join(as_json_text(row) + b"\n" for row in rows)


def otlp_span(line: Any, **more: Any) -> dict[str, Any]:
    attributes = [{"key": "gen_ai.operation.name", "value": {"stringValue": "decide"}}]
    attributes.append({"key": "agentmark.record", "value": {"stringValue": line}})
    return {"traceId": "c92e", "spanId": "d688", "name": "decide", "attributes": attributes} | more


def otlp_request(spans: list[dict[str, Any]]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "agentmark"}, "spans": spans}]}]}


def langfuse_row(metadata: Any, **more: Any) -> dict[str, Any]:
    row = {"id": "o1", "traceId": "t1", "type": "SPAN", "projectId": "p1", "name": "decide", "metadata": metadata}
    return row | more


def langfuse_over_otel(line: str) -> dict[str, Any]:
    return {"attributes": {"agentmark.record": line}, "resourceAttributes": {}, "scope": {"name": "agentmark"}}


def langfuse_blob_row(line: str) -> dict[str, Any]:
    """Blob storage keeps each member of the metadata as text."""
    metadata = {name: json.dumps(value) for name, value in langfuse_over_otel(line).items()}
    return {"id": "o1", "trace_id": "t1", "project_id": "p1", "type": "SPAN", "name": "decide", "metadata": metadata}


def phoenix_row(line: Any) -> dict[str, Any]:
    context = {"trace_id": "8b78", "span_id": "1a93"}
    attributes = {"agentmark.record": line, "agentmark.step": 2}
    return {"id": "U3Bh", "name": "decide", "context": context, "span_kind": "DECISION", "attributes": attributes}


def phoenix_otlp_row(line: Any) -> dict[str, Any]:
    """Of Phoenix's endpoint for OTLP spans."""
    attributes = [{"key": "agentmark.record", "value": {"string_value": line}}]
    return {"name": "decide", "span_id": "1a93", "trace_id": "8b78", "attributes": attributes}


def langsmith_row(line: Any) -> dict[str, Any]:
    extra = {"metadata": {"agentmark.record": line, "ls_method": "traceable"}, "runtime": {}}
    return {"id": "4d83", "name": "decide", "run_type": "chain", "extra": extra, "inputs": {}, "outputs": {"b": 1}}


def inspect_sample(lines: list[str], number: int = 1) -> dict[str, Any]:
    events = [{"event": "sample_init"}] + [
        {"event": "info", "source": "agentmark", "data": {"agentmark.record": f"attachment://{i}"}}
        for i in range(len(lines))
    ]
    attachments = {str(i): line for i, line in enumerate(lines)}
    return {"id": number, "epoch": 1, "messages": [], "metadata": {}, "events": events, "attachments": attachments}


def inspect_log(lines: list[str]) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [inspect_sample(lines)]}


def inspect_eval(lines: list[str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    half = len(lines) // 2
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as file:
        file.writestr("_journal/start.json", "{}")
        for number, part in enumerate((lines[:half], lines[half:]), start=1):
            file.writestr(f"samples/{number}_epoch_1.json", as_json_text(inspect_sample(part, number)))
        file.writestr("header.json", "{}")
    return target.getvalue()


FOREIGN = {
    "otlp": otlp_request([otlp_span("x", attributes=[]), otlp_span("x", attributes=None)]),
    "langfuse": langfuse_row({"user": "u"}),
    "phoenix": phoenix_row(None),
    "langsmith": langsmith_row(None),
}
SHAPES: dict[str, tuple[Callable[[list[str]], bytes], str]] = {
    "native": (lambda ls: "".join(f"{line}\n" for line in ls).encode(), "AgentMark JSON lines"),
    "native array": (lambda ls: as_json_text([json.loads(line) for line in ls]), "AgentMark JSON records"),
    "native array, indented": (
        lambda ls: json.dumps([json.loads(line) for line in ls], indent=2).encode(),
        "AgentMark JSON records",
    ),
    "otlp lines": (
        lambda ls: as_lines([FOREIGN["otlp"], *[otlp_request([otlp_span(line)]) for line in ls]]),
        "OTLP/JSON",
    ),
    "otlp document": (lambda ls: as_json_text(otlp_request([otlp_span(line) for line in ls])), "OTLP/JSON"),
    "otlp document, indented": (
        lambda ls: json.dumps(otlp_request([otlp_span(line) for line in ls]), indent=1).encode(),
        "OTLP/JSON",
    ),
    "otlp with other signals": (
        lambda ls: as_lines([{"resourceMetrics": []}, otlp_request([otlp_span(line) for line in ls])]),
        "OTLP/JSON",
    ),
    "langfuse page": (
        lambda ls: as_json_text({"data": [langfuse_row(langfuse_over_otel(line)) for line in ls], "meta": {}}),
        "Langfuse observations",
    ),
    "langfuse array": (
        lambda ls: as_json_text(
            [FOREIGN["langfuse"], *[langfuse_row({"agentmark.record": json.loads(line)}) for line in ls]]
        ),
        "Langfuse observations",
    ),
    "langfuse, metadata as text": (
        lambda ls: as_lines([langfuse_row(json.dumps({"agentmark": {"record": line}})) for line in ls]),
        "Langfuse observations",
    ),
    "langfuse client": (
        lambda ls: as_lines([langfuse_row({"agentmark.record": json.dumps(line)}) for line in ls]),
        "Langfuse observations",
    ),
    "langfuse blob storage": (lambda ls: as_lines([langfuse_blob_row(line) for line in ls]), "Langfuse observations"),
    "phoenix array": (lambda ls: as_json_text([phoenix_row(line) for line in ls]), "Phoenix spans"),
    "phoenix page": (lambda ls: as_json_text({"data": [phoenix_row(line) for line in ls]}), "Phoenix spans"),
    "phoenix otlp rows": (lambda ls: as_json_text({"data": [phoenix_otlp_row(line) for line in ls]}), "Phoenix spans"),
    "phoenix columns": (
        lambda ls: as_lines([{"context.span_id": "1", "attributes.agentmark.record": line} for line in ls]),
        "Phoenix spans",
    ),
    "phoenix nested": (
        lambda ls: as_lines([{"span_id": "1", "attributes": {"agentmark": {"record": line}}} for line in ls]),
        "Phoenix spans",
    ),
    "langsmith lines": (lambda ls: as_lines([langsmith_row(line) for line in ls]), "LangSmith runs"),
    "langsmith page": (lambda ls: as_json_text({"runs": [langsmith_row(line) for line in ls]}), "LangSmith runs"),
    "langsmith, extra as text": (
        lambda ls: as_lines([langsmith_row(None) | {"extra": json.dumps(langsmith_row(line)["extra"])} for line in ls]),
        "LangSmith runs",
    ),
    "inspect json": (lambda ls: as_json_text(inspect_log(ls)), "Inspect log"),
    "inspect eval": (inspect_eval, "Inspect log"),
    "inspect eval, stored": (lambda ls: inspect_eval(ls, zipfile.ZIP_STORED), "Inspect log"),
}


def verdict_of(path: Path, key_file: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert (
        main(["verify", str(path), "--key", str(key_file), "--claim", hex(PAYLOAD), "--json", "--pool", *options]) == 0
    )
    content = json.loads(capsys.readouterr().out)
    # What the chain of each file shows names the file, and its lines; records where it has none.
    for chain in content["chains"]:
        del chain["log"]
    return json.dumps(content, indent=2).replace("from record ", "from line ")


LINE = LINES[0]
