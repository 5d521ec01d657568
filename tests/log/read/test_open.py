"""One run, any format: the same records and the same verdict; what is no log is refused by what it looks like."""

import gzip
import json
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from log_shapes import (
    EXPORTS,
    FOREIGN,
    LINES,
    RUN,
    SHAPES,
    as_json_text,
    as_lines,
    verdict_of,
)

from agentmark import AgentMarkError, RecordError, read_log
from agentmark.cli import main
from agentmark.log.read.format import Format, FormatTable
from agentmark.log.read.formats import FORMATS
from agentmark.log.read.open import UnreadLogError, open_log


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
    said = capsys.readouterr().err
    assert said.startswith((f"agentmark: {path}: not recognised", f"agentmark: record {path}"))


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
    with pytest.raises(AgentMarkError, match=r"pip install '.\[parquet\]'"):
        list(open_log(path))
    if sys.version_info < (3, 14):
        with pytest.raises(AgentMarkError, match=r"pip install '.\[zstd\]'"):
            list(open_log(EXPORTS / "inspect.eval"))


# What a reading hands over.


def test_entries_tell_the_line_where_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join([LINES[0], "", LINES[1], LINES[2][:40], LINES[3]]) + "\n")
    log = open_log(path)
    assert [(entry.record, entry.line) for entry in log.entries()] == [(RUN[0], 1), (RUN[1], 3), (RUN[3], 5)]
    assert log.summary.torn_lines == (4,)
    path.write_bytes(SHAPES["otlp lines"][0](LINES[:3]))
    assert [(entry.record, entry.line) for entry in open_log(path).entries()] == [(r, None) for r in RUN[:3]]


def test_there_is_no_summary_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(SHAPES["native"][0](LINES))
    log = open_log(path)
    with pytest.raises(UnreadLogError, match=r"log: was not read to its end"):
        _ = log.summary
    reading = iter(log)
    assert next(reading) == RUN[0]
    with pytest.raises(UnreadLogError):
        _ = log.summary
    assert list(reading) == RUN[1:]
    assert (log.summary.format, log.summary.record_count) == ("AgentMark JSON lines", len(RUN))


def test_a_reading_that_broke_off_leaves_no_summary_and_the_next_one_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(LINES[0] + "\n")
    log = open_log(path)
    assert list(log) == list(log) == RUN[:1]
    assert log.summary.record_count == 1
    path.write_text(LINES[0] + "\nnonsense\n")
    with pytest.raises(RecordError):
        list(log)
    with pytest.raises(UnreadLogError):
        _ = log.summary


def test_a_log_read_at_once_holds_what_streaming_it_gives(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join([LINES[0], "nonsense", LINES[1]]) + "\n")
    with pytest.raises(RecordError, match="log:2"):
        read_log(path)
    log, stream = read_log(path, skip_bad=True), open_log(path, skip_bad=True)
    assert (log.path, log.records, log.lines) == (path, RUN[:2], [1, 3])
    assert tuple(stream.entries()) == log.entries
    assert stream.summary.passed_over == log.summary.passed_over
    assert [error.where for error in log.summary.bad_lines] == [f"{path}:2"]
    path.write_bytes(SHAPES["langfuse page"][0](LINES))
    log = read_log(path)
    assert (log.records, log.lines) == (RUN, None)


def test_a_foreign_line_at_the_head_turns_a_log_into_another_unless_it_is_said_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(as_lines([FOREIGN["otlp"]]) + SHAPES["native"][0](LINES))
    assert read_log(path).summary.format == "OTLP/JSON"
    log = read_log(path, skip_bad=True, as_json_lines=True)
    assert (log.summary.format, log.records) == ("AgentMark JSON lines", RUN)
    assert [error.where for error in log.summary.bad_lines] == [f"{path}:1"]


def test_only_what_is_kept_is_held(tmp_path: Path) -> None:
    """A long log that is streamed takes no more memory than one a quarter as long."""
    path = tmp_path / "log"
    line = replace(RUN[0], meta={"note": "x" * 50_000}).to_json().encode() + b"\n"

    def peak(count: int) -> int:
        path.write_bytes(line * count)
        tracemalloc.start()
        for _ in open_log(path):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    # Some 5 MB and some 20 MB, of which the head that is looked into, a buffer and a record are held.
    assert peak(400) < peak(100) + len(line) * 50


# The table


class Tickets(Format):
    name = "Tickets"
    accepted = "Tickets (rows with a ticket)"

    def matches(self, content: Mapping[str, Any]) -> bool:
        return "ticket" in content

    def records(self, content: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        yield "decision", content.get("decision")


def test_a_new_format_is_one_object_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentmark.log.read import open as opening

    rows = [{"ticket": 1, "decision": LINES[0]}, {"ticket": 2}, {"ticket": 3, "decision": "broken"}]
    path = tmp_path / "log"
    path.write_bytes(as_json_text(rows))
    with pytest.raises(RecordError, match="not recognised"):
        list(open_log(path))
    monkeypatch.setattr(opening, "FORMATS", FormatTable([*FORMATS.formats, Tickets()]))
    for content in (as_json_text(rows), as_lines(rows), as_json_text({"data": rows}), gzip.compress(as_lines(rows))):
        path.write_bytes(content)
        log = read_log(path, skip_bad=True)
        assert (log.records, log.summary.format, log.summary.skipped) == (RUN[:1], "Tickets", 1)
        assert "decision: agentmark.record: is text, but no JSON object" in str(log.summary.bad_lines[0])
    path.write_bytes(b"prose")
    with pytest.raises(RecordError, match=r"Accepted: AgentMark JSON lines; .*; Tickets \(rows with a ticket\); text"):
        list(open_log(path))


def test_every_format_says_what_it_is_and_how_it_is_known() -> None:
    names = [known.name for known in FORMATS.formats]
    assert len(set(names)) == len(names)
    for known in FORMATS.formats:
        reads_files = type(known).read_file is not Format.read_file
        assert reads_files == bool(known.magic), known.name
        assert (type(known).matches is Format.matches) == (type(known).records is Format.records), known.name
