"""Readers: the same run through every format gives the same verdict; no file can stop them but with a named error."""

import gzip
import io
import json
import os
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_run import KEY, PAYLOAD, the_run

from agentmark import AgentMarkError, LogWriter, RecordError, SettingError, StepRecord
from agentmark.cli import main
from agentmark.log.read import json_text, packing
from agentmark.log.read.files import log_files
from agentmark.log.read.open import open_log
from agentmark.log.sqlite import APPLICATION_ID, SCHEMA_VERSION, SqliteLog

EXPORTS = Path(__file__).parent / "exports"
RUN = the_run()
LINES = [record.to_json() for record in RUN]


def as_json_text(content: Any) -> bytes:
    return json.dumps(content).encode()


def as_lines(rows: list[Any]) -> bytes:
    return b"".join(as_json_text(row) + b"\n" for row in rows)


# The shapes, made by hand after the vendors' documentation and source (docs/logs.md says which).


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
    "langsmith outputs": (
        lambda ls: as_lines([{"run_type": "chain", "outputs": {"agentmark.record": line}} for line in ls]),
        "LangSmith runs",
    ),
    "langsmith, extra as text": (
        lambda ls: as_lines([langsmith_row(None) | {"extra": json.dumps(langsmith_row(line)["extra"])} for line in ls]),
        "LangSmith runs",
    ),
    "inspect json": (lambda ls: as_json_text(inspect_log(ls)), "Inspect log"),
    "inspect eval": (inspect_eval, "Inspect log"),
    "inspect eval, stored": (lambda ls: inspect_eval(ls, zipfile.ZIP_STORED), "Inspect log"),
}


def verdict_of(path: Path, key_file: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["verify", str(path), "--key", str(key_file), "--claim", hex(PAYLOAD), "--json", *options]) == 0
    content = json.loads(capsys.readouterr().out)
    # What the chain of each file shows names the file, and its lines; records where it has none.
    for chain in content["chains"]:
        del chain["log"]
    return json.dumps(content, indent=2).replace("from record ", "from line ")


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key.json"
    KEY.save(path)
    return path


@pytest.fixture
def native_verdict(tmp_path: Path, key_file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = tmp_path / "native.jsonl"
    with LogWriter(path) as log:
        for record in RUN:
            log.write(record)
    verdict = verdict_of(path, key_file, capsys)
    outcomes = json.loads(verdict)["outcomes"]
    assert outcomes["unmarked"] == 1
    assert outcomes["not enforced"] == 1
    return verdict


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_run_in_any_shape_has_the_same_verdict(
    shape: str, tmp_path: Path, key_file: Path, native_verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make, name = SHAPES[shape]
    # The suffix says nothing.
    path = tmp_path / "handed in.txt"
    path.write_bytes(make(LINES))
    source = open_log(path)
    assert [record.to_json() for record in source] == LINES
    assert source.summary.format == name
    assert source.summary.passed_over == []
    assert verdict_of(path, key_file, capsys) == native_verdict


@pytest.mark.parametrize("name", sorted(path.name for path in EXPORTS.iterdir()))
def test_the_same_run_recorded_from_real_packages_has_the_same_verdict(
    name: str, key_file: Path, native_verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    if name.endswith(".eval"):
        pytest.importorskip("zstandard")
    source = open_log(EXPORTS / name)
    assert sorted(record.to_json() for record in source) == sorted(LINES)
    assert source.summary.skipped > 0
    # Phoenix hands out the newest span first: outcomes are listed in the order of the records, and a chain shows it.
    verdict, native = json.loads(verdict_of(EXPORTS / name, key_file, capsys)), json.loads(native_verdict)
    chain, native_chain = verdict.pop("chains"), native.pop("chains")
    assert verdict == native
    if name.startswith("phoenix"):
        assert "reordered" in {finding["kind"] for finding in chain[0]["findings"]}
    else:
        assert chain == native_chain


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


def test_the_same_run_in_a_database_has_the_same_verdict(
    tmp_path: Path, key_file: Path, native_verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with SqliteLog(tmp_path / "run.db") as log:
        for record in RUN:
            log.write(record)
    assert verdict_of(tmp_path / "run.db", key_file, capsys) == native_verdict


def test_a_folder_of_several_formats_is_pooled(
    tmp_path: Path, key_file: Path, native_verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "1.jsonl").write_bytes(SHAPES["native"][0](LINES[:20]))
    (folder / "2.json").write_bytes(SHAPES["otlp document"][0](LINES[20:40]))
    (folder / "3.gz").write_bytes(gzip.compress(SHAPES["langfuse array"][0](LINES[40:])))
    (folder / "run.jsonl.lock").write_bytes(b"1.0")
    assert [path.name for path in log_files([folder])] == ["1.jsonl", "2.json", "3.gz"]
    # The chain is judged file by file.
    verdict, native = json.loads(verdict_of(folder, key_file, capsys)), json.loads(native_verdict)
    assert verdict | {"chains": None} == native | {"chains": None}
    assert main(["power", "--log", str(folder), "--trials", "20", "--max-steps", "50"]) == 0
    assert "60 lists of" in capsys.readouterr().out
    (tmp_path / "none").mkdir()
    with pytest.raises(SettingError, match="without any file"):
        log_files([tmp_path / "none"])


def pack_zstd(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    half = len(data) // 2
    packer = zstandard.ZstdCompressor()
    return bytes(packer.compress(data[:half]) + packer.compress(data[half:]))


@pytest.mark.parametrize("pack", [gzip.compress, pack_zstd], ids=["gzip", "zstd"])
@pytest.mark.parametrize("shape", ["native", "otlp lines", "langfuse array", "langfuse page", "inspect json"])
def test_packed_text_is_read_and_a_cut_is_said(tmp_path: Path, shape: str, pack: Callable[[bytes], bytes]) -> None:
    text = SHAPES[shape][0](LINES)
    path = tmp_path / "log"
    packed = pack(text)
    path.write_bytes(packed)
    assert list(open_log(path)) == RUN
    path.write_bytes(packed[: len(packed) * 4 // 5])
    source = open_log(path)
    read = list(source)
    # Inspect writes what its events refer to behind them: cut there, nothing is left.
    assert read == RUN[: len(read)]
    assert len(read) < len(RUN)
    assert read or shape == "inspect json"
    assert source.summary.passed_over


@pytest.mark.parametrize("shape", [name for name in SHAPES if "native" not in name and "eval" not in name])
def test_a_file_cut_anywhere_is_read_up_to_the_cut(tmp_path: Path, shape: str) -> None:
    """Not one record is altered, whatever was cut off, and it is said that something is missing."""
    text = SHAPES[shape][0](LINES[:4])
    path = tmp_path / "log"
    known = {record.to_json() for record in RUN}
    for cut in range(len(text) // 3, len(text.rstrip()) - 1, 61):
        path.write_bytes(text[:cut])
        source = open_log(path)
        try:
            read = list(source)
        except RecordError as error:
            fault = str(error)
            assert "not recognised" in fault or "is not valid JSON" in fault, cut
            continue
        assert {record.to_json() for record in read} <= known, cut
        whole = text[:cut].endswith((b"\n", b"}")) and len(read) < 4
        assert source.summary.passed_over or whole, cut


def test_a_cut_eval_file_is_read_up_to_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    content = inspect_eval(LINES)
    path.write_bytes(content[: len(content) * 3 // 4])
    source = open_log(path)
    assert list(source) == RUN[: len(RUN) // 2]
    assert "has no table of contents" in source.summary.passed_over[0]


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(SHAPES["phoenix array"][0](LINES)))
    writer.start()
    assert list(open_log(path)) == RUN
    writer.join()


def test_a_database_cannot_come_through_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"SQLite format 3\x00" + bytes(100)))
    writer.start()
    with pytest.raises(RecordError, match="has to be a file"):
        list(open_log(path))
    writer.join()


# What is broken


LINE = LINES[0]
BAD_RECORDS: dict[str, tuple[Any, str]] = {
    "not JSON": ("{nonsense", r"agentmark\.record: is not valid JSON"),
    "cut by the tool": (LINE[:200], "it has 200 characters, and may have been cut"),
    "free text": ("hello", "is text, but no JSON object"),
    "a number": (7, "is a number"),
    "a boolean": (True, "is a boolean"),
    "a list": ([LINE], "is a list"),
    "another version": (LINE.replace('"agentmark":1', '"agentmark":9'), "found 9, this build reads version 1"),
    "a member twice": (LINE.replace('"step":0', '"step":0,"step":1'), "step: appears twice"),
    "nested without end": ('{"a":' * 5000, "is not valid JSON"),
    "a foreign object": ({"colour": "red"}, "agentmark: is missing"),
}


@pytest.mark.parametrize("bad", BAD_RECORDS)
@pytest.mark.parametrize(
    ("row", "place"),
    [
        (lambda raw: otlp_request([otlp_span(raw)]), r"log:2 span 1"),
        (lambda raw: langfuse_row({"agentmark.record": raw}), r"log:2"),
        (phoenix_row, r"log:2"),
        (langsmith_row, r"log:2"),
    ],
    ids=["otlp", "langfuse", "phoenix", "langsmith"],
)
def test_a_bad_record_is_named_with_its_place_or_passed_over(
    tmp_path: Path, row: Callable[[Any], Any], place: str, bad: str
) -> None:
    raw, fault = BAD_RECORDS[bad]
    path = tmp_path / "log"
    path.write_bytes(as_lines([row(LINES[1]), row(raw), row(LINES[2])]))
    with pytest.raises(RecordError, match=rf"^record {place}: .*{fault}"):
        list(open_log(path))
    source = open_log(path, skip_bad=True)
    assert list(source) == RUN[1:3]
    assert len(source.summary.bad_lines) == 1


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


@pytest.mark.parametrize("said", [LINES[1], "{nonsense", '{"agentmark": 1}'])
def test_what_a_user_said_is_no_record(tmp_path: Path, said: str) -> None:
    """Else anybody who talks to the agent could stop an export, or contradict one of its steps."""
    texts = [json.dumps({"agentmark.record": said}), json.dumps({"agentmark": {"record": said}})]
    objects = [{"agentmark": text} for text in texts] + [{"messages": [text], "input": text} for text in texts]
    path = tmp_path / "log"
    for text in [*texts, *objects]:
        langfuse = [langfuse_row({"a": 1}, input=text, output=text)]
        langfuse += [langfuse_row({"agentmark.record": LINE}, input=text)]
        langsmith = [langsmith_row(None) | {"inputs": text, "outputs": text}, langsmith_row(LINE) | {"inputs": text}]
        for rows in (langfuse, langsmith):
            path.write_bytes(as_lines(rows))
            source = open_log(path)
            assert list(source) == RUN[:1]
            assert source.summary.skipped == 1
    path.write_bytes(as_lines([langfuse_row({"a": 1}, input={"agentmark.record": said})]))
    assert list(open_log(path)) == []


def test_a_record_that_the_tool_has_parsed_must_be_as_strict(tmp_path: Path) -> None:
    path = tmp_path / "log"
    text = json.dumps(langfuse_row({"agentmark.record": json.loads(LINE)}))
    path.write_text(text.replace('"step": 0', '"step": 0, "step": 1') + "\n")
    with pytest.raises(RecordError, match="names a member twice"):
        list(open_log(path))
    path.write_text(text.replace('"step": 0', '"step": 0.5') + "\n")
    with pytest.raises(RecordError, match="step"):
        list(open_log(path))


UNKNOWN: dict[str, tuple[bytes, str]] = {
    "binary": (
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9,
        r"not recognised: this is a file that begins with b'.x89PNG",
    ),
    "prose": (b"Dear auditor,\nhere is the log.\n", "not recognised: .* begins with b'Dear auditor,"),
    "another object": (
        b'{"users": [1, 2], "next": null}',
        "not recognised: this is an object with the members next, users",
    ),
    "another array": (b'[{"user": 1}, {"user": 2}]', "array whose first item has the members user"),
    "numbers": (b"[1, 2, 3]", "array whose first item has a int"),
    "deep": (b"[" * 100_000, "nested too deeply|not recognised|valid JSON"),
    "deep object": (b'{"a":' * 100_000, "not recognised|nested too deeply|not valid JSON"),
    "half an object": (b'{"users": [', "is not valid JSON"),
    "zip of something else": (b"", "holds no samples of an Inspect log"),
    "not UTF-8": ('{"data": ["ü"], "x": "ü"}'.encode("latin-1"), "not UTF-8"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_a_log_is_refused_with_what_it_looks_like(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], key_file: Path
) -> None:
    content, fault = UNKNOWN[name]
    path = tmp_path / "log"
    path.write_bytes(content)
    if not content:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("word/document.xml", "<w/>")
    with pytest.raises(RecordError, match=fault) as caught:
        list(open_log(path))
    if "not recognised" in str(caught.value):
        assert "Accepted: AgentMark JSON lines; SQLite" in str(caught.value)
    assert main(["verify", str(path), "--key", str(key_file)]) == 2
    assert "agentmark: record log" in capsys.readouterr().err


def test_an_empty_file_is_an_empty_log(tmp_path: Path) -> None:
    """A log whose writer crashed before its first record: a verdict, not an error."""
    path = tmp_path / "log"
    for content in (b"", b"\n\n", b'{"agen', gzip.compress(b"")):
        path.write_bytes(content)
        source = open_log(path)
        assert list(source) == []
        assert source.summary.format == "AgentMark JSON lines"


def test_an_export_without_any_record_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(as_lines([FOREIGN["langsmith"]] * 3))
    source = open_log(path)
    assert list(source) == []
    assert source.summary.passed_over == [f"{path}: LangSmith runs: none of 3 entries holds an agentmark.record"]


def test_a_native_log_that_begins_with_rubbish_is_still_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for rubbish in ("free text", "[[[[", '{"agentmark":9}', LINE[:70]):
        path.write_text("\n".join([rubbish, *LINES]) + "\n")
        source = open_log(path, skip_bad=True)
        assert list(source) == RUN, rubbish
        assert len(source.summary.bad_lines) + len(source.summary.torn_lines) == 1


def test_limits_hold_before_the_memory_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same limits, made small: a line, a document, an item of an array, a member of a zip file."""
    from agentmark.log.read import text, zip_members

    for module in (packing, zip_members, json_text, text):
        monkeypatch.setattr(module, "MAX_HELD", 2 << 20)
    path = tmp_path / "log"
    long = "x" * (5 << 20)
    row = langfuse_row({"a": 1}, input=long)
    bombs = {
        "line": gzip.compress(as_lines([langfuse_row({})]) + as_json_text(row) + b"\n"),
        "document": gzip.compress(json.dumps(row, indent=1).encode()),
        "item": gzip.compress(as_json_text([langfuse_row({}), row])),
    }
    for what, content in bombs.items():
        path.write_bytes(content)
        with pytest.raises(RecordError, match=f"{what}: is larger than"):
            list(open_log(path))
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        path.write_bytes(inspect_eval([long], method))
        with pytest.raises(RecordError, match=r"samples/2_epoch_1\.json: member: is larger than"):
            list(open_log(path))


def test_a_cut_document_is_closed_in_time_that_grows_with_its_length() -> None:
    depth = 100_000
    text = "[" * depth + "{}," * depth
    begun = time.process_time()
    closed = json_text.completed(text)
    assert time.process_time() - begun < 5, "the square of the depth would take minutes"
    assert closed == text[:-1] + "]" * depth
    assert json_text.completed('{"a":[{"b":[{}]},{"c":[1,{') == '{"a":[{"b":[{}]}],"\\u0000cut short":true}'


def test_a_zip_whose_table_lies_is_an_error(tmp_path: Path) -> None:
    content = bytearray(inspect_eval(LINES))
    place = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 4)
    content[place + 42 : place + 46] = struct.pack("<I", 5)
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    with pytest.raises(RecordError, match="not where the table of contents says"):
        list(open_log(path))


def test_a_zip_member_packed_in_another_way_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(inspect_eval(LINES, zipfile.ZIP_BZIP2))
    with pytest.raises(RecordError, match="packed by method 12"):
        list(open_log(path))


def test_databases_that_are_not_ours_or_damaged(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE records (line TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(RecordError, match="is not AgentMark's: SQLite, with application id 0x0"):
        list(open_log(path))
    path = tmp_path / "run.db"
    with SqliteLog(path) as log:
        for record in RUN:
            log.write(record)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(RecordError, match="cannot be read"):
        list(open_log(path))
    # The last pages alone: what stands before them is read.
    with SqliteLog(tmp_path / "long.db") as log:
        for _ in range(20):
            for record in RUN:
                log.write(record)
    content = bytearray((tmp_path / "long.db").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 40_000] = bytes(40_000)
    path.write_bytes(content)
    source = open_log(path)
    read = list(source)
    assert 0 < len(read) < 20 * len(RUN)
    assert read == (RUN * 20)[: len(read)]
    assert f"damaged after {len(read)} rows" in source.summary.passed_over[0]


@pytest.mark.parametrize(
    "records",
    [
        "CREATE VIEW records AS SELECT 1 AS id, hex(zeroblob(60000000)) AS line",
        "CREATE VIEW records AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT i AS id, '' AS line FROM n WHERE i < 0",
        "CREATE TABLE records (id INTEGER PRIMARY KEY, line TEXT AS (hex(zeroblob(6000000))))",
        "CREATE VIRTUAL TABLE records USING fts5(id, line)",
        "CREATE TABLE other (id INTEGER)",
    ],
)
def test_a_database_whose_records_are_computed_is_refused(tmp_path: Path, records: str) -> None:
    path = tmp_path / "run.db"
    connection = sqlite3.connect(path)
    connection.execute(records)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.commit()
    connection.close()
    with pytest.raises(RecordError, match="no plain table"):
        list(open_log(path))


def test_a_value_of_a_database_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with SqliteLog(path) as log:
        for record in RUN[:4]:
            log.write(record)
    connection = sqlite3.connect(path)
    connection.execute(
        "INSERT INTO records (session, step, context, key_id, line, written_at)"
        " VALUES ('', 0, '', '', zeroblob(17 << 20), '')"
    )
    connection.commit()
    connection.close()
    source = open_log(path)
    read = list(source)
    # Python asks for a row before it hands out the one before it.
    assert 3 <= len(read) <= 4
    assert read == RUN[: len(read)]
    assert "rows (string or blob too big)" in source.summary.passed_over[0]


def test_tampered_rows_of_a_database_are_bad_records(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with SqliteLog(path) as log:
        for record in RUN[:4]:
            log.write(record)
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER records_stay_as_they_are")
    connection.execute("UPDATE records SET line = x'ff00' WHERE id = 1")
    connection.execute("UPDATE records SET line = CAST(x'7bff' AS TEXT) WHERE id = 2")
    connection.execute("UPDATE records SET line = 5 WHERE id = 3")
    connection.commit()
    connection.close()
    with pytest.raises(RecordError, match=r"record run\.db row 1: agentmark\.record"):
        list(open_log(path))
    source = open_log(path, skip_bad=True)
    assert list(source) == RUN[3:4]
    assert len(source.summary.bad_lines) == 3


def test_inspect_says_what_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_bytes(SHAPES["otlp lines"][0](LINES))
    assert main(["inspect", str(path)]) == 0
    assert "  format: OTLP/JSON, 2 entries without a record\n" in capsys.readouterr().out


def test_reading_needs_no_foreign_package() -> None:
    script = (
        "import sys; import agentmark.log.read.open;"
        "print([m for m in ('zstandard', 'pyarrow', 'opentelemetry') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("zstandard", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    path = tmp_path / "log"
    path.write_bytes(b"PAR1" + bytes(20))
    with pytest.raises(AgentMarkError, match=r"pip install 'agentmark\[parquet\]'"):
        list(open_log(path))
    if sys.version_info < (3, 14):
        with pytest.raises(AgentMarkError, match=r"pip install 'agentmark\[zstd\]'"):
            list(open_log(EXPORTS / "inspect.eval"))


# Fuzz: no file whatsoever raises anything but an error of ours.

NAMES = st.sampled_from(
    ["resourceSpans", "scopeSpans", "spans", "attributes", "key", "value", "stringValue", "kvlistValue", "values",
     "data", "runs", "run_type", "extra", "metadata", "outputs", "traceId", "type", "context", "context.span_id",
     "span_id", "name", "attributes.agentmark", "agentmark", "agentmark.record", "record", "eval", "samples", "status",
     "events", "event", "attachments", "epoch", "scheme", "agentmark_checkpoint"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(
    [LINE, LINE[:50], "agentmark.record", "info", "attachment://1", json.dumps({"agentmark.record": LINE}), "{"]
)  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=25
)


def survives(path: Path) -> None:
    for skip_bad in (False, True):
        source = open_log(path, skip_bad=skip_bad)
        try:
            records = list(source)
        except AgentMarkError:
            continue
        assert all(isinstance(record, StepRecord) for record in records)
        assert all(isinstance(sentence, str) for sentence in source.summary.passed_over)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(VALUES, max_size=4), form=st.sampled_from(["lines", "array", "document", "indented", "gzip"]))
def test_no_json_stops_a_reader(tmp_path: Path, values: list[Any], form: str) -> None:
    path = tmp_path / "log"
    if form in ("lines", "gzip"):
        content = "".join(json.dumps(value) + "\n" for value in values)
    elif form == "array":
        content = json.dumps(values)
    else:
        content = json.dumps(values[0] if values else None, indent=1 if form == "indented" else None)
    path.write_bytes(gzip.compress(content.encode()) if form == "gzip" else content.encode())
    survives(path)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.sampled_from([*SHAPES, "sqlite", "recorded"]),
    cuts=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 60), st.binary(max_size=8)), min_size=1, max_size=3),
    pack=st.sampled_from([bytes, gzip.compress]),
)
def test_no_damaged_log_stops_a_reader(
    tmp_path_factory: pytest.TempPathFactory,
    shape: str,
    cuts: list[tuple[float, int, bytes]],
    pack: Callable[[bytes], bytes],
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged"
    content = DAMAGEABLE[shape]
    for place, length, put in cuts:
        at = int(place * len(content))
        content = content[:at] + put + content[at + length :]
    path.write_bytes(pack(content))
    survives(path)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=st.sampled_from(
        [b"", b"PK\x03\x04", b"SQLite format 3\x00", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"[", b"{", b'{"agentmark"']
    ),
    rest=st.binary(max_size=300),
)
def test_no_bytes_stop_a_reader(tmp_path: Path, head: bytes, rest: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(head + rest)
    survives(path)


def _a_database() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        with SqliteLog(path) as log:
            for record in RUN[:10]:
                log.write(record)
        return path.read_bytes()


DAMAGEABLE = {name: make(LINES[:6]) for name, (make, _) in SHAPES.items()}
DAMAGEABLE |= {"sqlite": _a_database(), "recorded": (EXPORTS / "inspect.eval").read_bytes()}
