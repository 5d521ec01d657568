"""`agentmark inspect`."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from log_shapes import LINES, SHAPES
from support import TICKET_WEIGHTS, marked_log

from agentmark import Embedder, LogWriter, SharedKey, StepRecord
from agentmark.cli import main

KEY, OTHER = SharedKey(bytes(range(100, 132))), SharedKey(bytes(range(200, 232)))

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        stream = SimpleNamespace(buffer=io.BytesIO(stdin), isatty=lambda: False)
        monkeypatch.setattr(sys, "stdin", stream)
        status = main(["inspect", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def write(path: str, records: list[StepRecord]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with LogWriter(path) as log:
        for record in records:
            log.write(record)


def session(name: str, steps: int, key: SharedKey = KEY) -> list[StepRecord]:
    running = Embedder(key, 42, payload_len=16, scheme="R").session(name)
    return [running.choose(TICKET_WEIGHTS).record for _ in range(steps)]


def test_inspect_says_what_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_bytes(SHAPES["otlp lines"][0](LINES))
    assert main(["inspect", str(path)]) == 0
    assert "  format: OTLP/JSON, 2 entries without a record\n" in capsys.readouterr().out


def test_sessions_of_several_files_are_listed(run: Run) -> None:
    write("logs/a.jsonl", [*session("first", 7), *session("shared", 3)])
    # A session goes on in another file; and another agent has chosen its name.
    write("logs/deep/b.jsonl", [*session("shared", 5)[3:], *session("shared", 4, OTHER)])
    status, out, _ = run("logs")
    assert status == 0
    assert out.startswith("2 files: 16 records, 16 marked, 2 sessions\n")
    rows = [line.split() for line in out.splitlines() if line.startswith(("  first", "  shared"))]
    assert rows[0][:3] == ["first", "7", "7"]
    assert rows[0][4:] == [KEY.id, "R", "16", "logs/a.jsonl"]
    assert rows[1][:3] == ["shared", "9", "9"]
    assert rows[1][4:6] == sorted([KEY.id, OTHER.id])
    assert rows[1][-4:] == ["logs/a.jsonl", "and", "1", "more"]
    sessions = json.loads(run("logs", "--json")[1])["sessions"]
    assert [row["session"] for row in sessions] == ["first", "shared"]
    assert sessions[1]["files"] == ["logs/a.jsonl", "logs/deep/b.jsonl"]
    assert sessions[1]["key_ids"] == sorted([KEY.id, OTHER.id])
    assert sessions[0]["expected_evidence"] == pytest.approx(7 * 2.09, abs=0.5)


def test_a_copy_is_a_record_and_no_second_step(run: Run) -> None:
    records = session("s", 4)
    write("log.jsonl", [*records, *records, replace(records[0], enforced=False)])
    row = json.loads(run("log.jsonl", "--json")[1])["sessions"][0]
    assert (row["records"], row["steps"], row["marked_steps"]) == (9, 4, 3)


def test_a_session_is_chosen_by_the_beginning_of_its_id(run: Run) -> None:
    write("log.jsonl", [*session("abc1", 2), *session("abd2", 3), *session("ab", 1)])
    assert run("log.jsonl", "--session", "abc")[1].startswith("log.jsonl: 2 records, 2 marked, 1 session\n")
    assert "1 record, 1 marked, 1 session\n" in run("log.jsonl", "--session", "ab")[1], "an id goes before a beginning"
    assert run("log.jsonl", "--session", "abd", "--steps", "9")[1].count("  session abd2 step ") == 3
    status, _, err = run("log.jsonl", "--session", "a")
    assert status == 2
    assert "--session: 3 sessions begin with 'a': 'ab', 'abc1', 'abd2'" in err
    status, _, err = run("log.jsonl", "--session", "x")
    assert status == 2
    assert "no session here begins with 'x'; those there are: 'ab', 'abc1', 'abd2'" in err


def test_thousands_of_sessions_are_counted_and_not_all_listed(run: Run) -> None:
    (record,) = session("s", 1)
    records = [replace(record, session=f"session {i}", context=i.to_bytes(32, "big")) for i in range(3000)]
    write("log.jsonl", records)
    _, out, _ = run("log.jsonl")
    assert len(out.splitlines()) < 40
    assert "  and 2,980 more sessions (--json lists all; --session ID shows one)\n" in out
    assert len(json.loads(run("log.jsonl", "--json")[1])["sessions"]) == 3000


def test_one_of_a_thing_is_not_several(run: Run) -> None:
    write("log.jsonl", session("s", 1))
    _, out, _ = run("log.jsonl")
    assert "1 record, 1 marked, 1 session\n" in out
    assert "payload of 16 bits: 1 marked step\n" in out


def test_standard_input_in_every_format(run: Run, tmp_path: Path) -> None:
    write("log.jsonl", marked_log(KEY, steps=5))
    plain = Path("log.jsonl").read_bytes()
    for data in (plain, SHAPES["otlp document"][0](LINES), (tmp_path / "log.jsonl").read_bytes()[:-9]):
        status, out, _ = run("-", "--json", stdin=data)
        assert status == 0
        assert json.loads(out)["files"][0]["path"] == "standard input"
    _, out, _ = run("log.jsonl", "-", stdin=plain[:-9])
    assert "passed over: standard input:5: is cut short\n" in out
    status, _, err = run("-", stdin=b"nonsense")
    assert status == 2
    assert err.startswith("agentmark: standard input: not recognised: this is a file that begins with b'nonsense'")
    status, _, err = run("-", "-", stdin=plain)
    assert status == 2
    assert "-: is standard input, which can be read once; it was given twice" in err


def test_a_folder_with_something_else_in_it_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.7\n")
    assert main(["inspect", str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith("; --skip-bad passes over what is no log\n")
