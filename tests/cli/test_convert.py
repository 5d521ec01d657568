"""`agentmark convert`: the same records in another file, or a reason why not."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from log_shapes import LINES, RUN, otlp_request, otlp_span
from one_record import a_record

from agentmark import StepRecord, read_log
from agentmark.chain.writer import ChainWriter
from agentmark.cli import main
from agentmark.keys.signing import SigningKey
from agentmark.log.jsonl import LogWriter

pytest.importorskip("pyarrow")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in a fresh folder: exit status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["convert", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def whole_records() -> list[StepRecord]:
    """Records with every field that there is."""
    return [
        *RUN,
        a_record(meta={"model": "m", "latency_ms": 7}, prev="ab" * 32, enforced=False),
        a_record(raw_context={"session": "s1", "step": 0}),
        a_record(marked=False, reason='why: "so"'),
        a_record(distribution=None, partial_weights={"Pay": 5, "Book": 70}),
        a_record(distribution=None, partial_weights={}),
        a_record(distribution=None, marked=False, reason="no list"),
    ]


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_there_and_back_again(run: Run, ending: str) -> None:
    lines = "".join(record.to_json() + "\n" for record in whole_records())
    Path("log.jsonl").write_text(lines, encoding="utf-8")
    assert run("log.jsonl", "-o", f"out.{ending}") == (
        0,
        f"out.{ending}: {len(whole_records())} records from 1 file\n",
        "",
    )
    assert read_log(f"out.{ending}").records == whole_records()
    assert run(f"out.{ending}", "-o", "again.jsonl")[0] == 0
    assert Path("again.jsonl").read_text(encoding="utf-8") == lines


def test_folders_and_exports_of_other_tools(run: Run) -> None:
    Path("logs").mkdir()
    Path("logs/a.jsonl.gz").write_bytes(gzip.compress((LINES[0] + "\n").encode()))
    spans = [otlp_span(line) for line in LINES[1:3]] + [{"traceId": "c9", "spanId": "d6", "name": "other"}]
    Path("logs/b.json").write_text(json.dumps(otlp_request(spans)), encoding="utf-8")
    status, out, _ = run("logs", "-o", "all.parquet")
    assert (status, out) == (0, "all.parquet: 3 records from 2 files\n  left out: 1 entry without a record\n")
    assert read_log("all.parquet").records == RUN[:3]


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((LINES[0] + "\n").encode())))
    assert run("-", "-o", "out.parquet")[0] == 0
    assert read_log("out.parquet").records == RUN[:1]


def test_nothing_is_written_over(run: Run) -> None:
    Path("log.jsonl").write_text(LINES[0] + "\n", encoding="utf-8")
    Path("out.parquet").write_bytes(b"dear")
    status, _, said = run("log.jsonl", "-o", "out.parquet")
    assert status == 2
    assert "out.parquet exists; nothing is written over" in said
    assert Path("out.parquet").read_bytes() == b"dear"
    assert run("log.jsonl", "-o", "log.jsonl")[0] == 2


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_a_bad_record_leaves_no_file_behind(run: Run, tmp_path: Path, ending: str) -> None:
    Path("log.jsonl").write_text(LINES[0] + '\n{"agentmark":1}\n' + LINES[1] + "\n", encoding="utf-8")
    status, _, said = run("log.jsonl", "-o", f"out.{ending}")
    assert (status, said) == (2, "agentmark: record log.jsonl:2: scheme: is missing\n")
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]
    status, out, _ = run("log.jsonl", "--skip-bad", "-o", f"out.{ending}")
    assert status == 0
    assert "passed over: record log.jsonl:2: scheme: is missing" in out
    assert read_log(f"out.{ending}").records == RUN[:2]


def test_checkpoints_are_left_out_and_counted(run: Run) -> None:
    key = SigningKey.generate()
    with LogWriter("log.jsonl", chain=ChainWriter(signing_key=key, every=2)) as log:
        for record in RUN[:5]:
            log.write(record)
    count = len(read_log("log.jsonl").summary.checkpoints)
    assert count > 1
    status, out, _ = run("log.jsonl", "-o", "out.parquet")
    assert status == 0
    assert f"left out: {count} checkpoints of a chain" in out
    assert [record.prev for record in read_log("out.parquet").records] == [
        record.prev for record in read_log("log.jsonl").records
    ]


@pytest.mark.parametrize("out", ["out.txt", "out", ".parquet", "out.parquet.gz"])
def test_an_ending_that_says_nothing_is_refused(run: Run, out: str) -> None:
    Path("log.jsonl").write_text(LINES[0] + "\n", encoding="utf-8")
    status, _, said = run("log.jsonl", "-o", out)
    assert status == 2
    assert "does not end in .jsonl, .jsonl.gz or .parquet" in said


def test_what_would_steer_a_terminal_is_spelled_out(run: Run) -> None:
    Path("a\x1b[2J.jsonl").write_text(LINES[0] + "\n{\n" * 2, encoding="utf-8")
    status, out, _ = run("a\x1b[2J.jsonl", "--skip-bad", "-o", "b\x1b[2J.jsonl")
    assert status == 0
    assert "\x1b" not in out
