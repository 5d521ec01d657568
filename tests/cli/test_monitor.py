"""`agentmark monitor` as an operator runs it: on files, on a pipe, and on a file that another process writes."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import marked_log

from agentmark import LogWriter, Registry, SharedKey, SqliteLog, StepRecord
from agentmark.cli import main
from agentmark.identity.registry import Identity

KEY = SharedKey(bytes(range(100, 132)))
RECORDS = marked_log(KEY, scheme="R", steps=40)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTMARK_KEY", raising=False)
    KEY.save("key.json")
    Registry(16, [Identity("acme", 0x5EED), Identity("globex", 0x1234)]).save("registry.jsonl")

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["monitor", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def write_log(path: str, records: list[StepRecord]) -> None:
    with LogWriter(path) as log:
        for record in records:
            log.write(record)


WATCH = ("--key", "key.json", "--registry", "registry.jsonl")


def test_an_alarm_and_where_the_monitor_stands(run: Run) -> None:
    write_log("log.jsonl", [*RECORDS, RECORDS[0].with_enforced(False)])
    status, out, err = run("log.jsonl", *WATCH, "--every", "20")
    assert status == 0
    assert err == ""
    lines = out.splitlines()
    assert lines[0].startswith("ALARM at record ")
    assert "'acme' (payload 0x5eed)" in lines[0]
    assert lines[1].startswith("20 records, 20 count")
    assert "1 copy that says not enforced" in out
    assert "1 record tried to take a step back, in vain" in out


def test_no_alarm_is_exit_1_and_names_nobody(run: Run) -> None:
    write_log("log.jsonl", marked_log(KEY, payload=0x0F0F, steps=30))
    status, out, _ = run("log.jsonl", *WATCH)
    assert status == 1
    assert "acme" not in out
    assert out.startswith("No alarm after 30 records")


def test_any_format_is_read_where_it_is_not_followed(run: Run) -> None:
    log = SqliteLog("log.db")
    for record in RECORDS:
        log.write(record)
    log.close()
    assert run("log.db", *WATCH)[0] == 0


def test_bad_input_is_exit_2(run: Run) -> None:
    write_log("log.jsonl", RECORDS[:2])
    assert run("missing.jsonl", *WATCH)[0] == 2
    assert run("log.jsonl", *WATCH, "--threshold", "2")[0] == 2
    assert run("log.jsonl", *WATCH, "--every", "0")[0] == 2
    assert run("log.jsonl", *WATCH, "--poll", "0")[0] == 2
    assert run("-", "log.jsonl", *WATCH)[0] == 2
    assert run("log.jsonl", *WATCH, "--claim", "nobody")[0] == 2


def test_a_broken_line_does_not_blind_it_and_steers_no_terminal(run: Run) -> None:
    write_log("log.jsonl", RECORDS)
    lines = Path("log.jsonl").read_bytes().splitlines(keepends=True)
    hostile = RECORDS[1].to_json().encode().replace(b'"marked":true', b'"marked":"\\u001b[2J"')
    Path("log.jsonl").write_bytes(b"".join([lines[0], hostile, b"\n", *lines[1:]]))
    status, out, err = run("log.jsonl", *WATCH)
    assert status == 0
    assert "marked" in err
    assert "\x1b" not in out + err


def test_json_lines_and_what_a_stranger_may_see(run: Run) -> None:
    write_log("log.jsonl", RECORDS)
    events = [json.loads(line) for line in run("log.jsonl", *WATCH, "--json", "--every", "25")[1].splitlines()]
    assert [event["event"] for event in events] == ["alarm", "status", "end"]
    assert events[0]["new_alarm"]["identity"] == "acme"
    assert events[-1]["steps"] == 40
    assert events[-1]["arrivals"] == {"counted": 40}
    status, out, _ = run("log.jsonl", *WATCH, "--json", "--for-stranger")
    assert status == 0
    for line in out.splitlines():
        assert set(json.loads(line)) == {"event", "alarm", "identities", "threshold"}
    assert run("log.jsonl", *WATCH, "--for-stranger")[1] == "alarm: acme\nalarm: acme\n"


def test_a_state_is_kept_for_its_owner_alone_and_gone_on_from(run: Run) -> None:
    write_log("first.jsonl", RECORDS[:5])
    assert run("first.jsonl", *WATCH, "--state", "watch.state")[0] == 1
    assert stat.S_IMODE(Path("watch.state").stat().st_mode) == 0o600
    write_log("second.jsonl", RECORDS[5:])
    status, out, err = run("second.jsonl", *WATCH, "--state", "watch.state")
    assert status == 0
    assert "5 records are known" in err
    assert "40: 40 counted" in out
    # The alarm stands, also where nothing new comes.
    write_log("third.jsonl", RECORDS[:1])
    assert run("third.jsonl", *WATCH, "--state", "watch.state")[0] == 0
    assert [path.name for path in Path().iterdir() if "tmp" in path.name] == []


def test_a_damaged_state_or_one_of_another_question_is_refused_and_left_alone(run: Run) -> None:
    write_log("log.jsonl", RECORDS[:5])
    run("log.jsonl", *WATCH, "--state", "watch.state")
    kept = Path("watch.state").read_bytes()
    status, _, err = run("log.jsonl", *WATCH, "--state", "watch.state", "--threshold", "0.01")
    assert status == 2
    assert "another question" in err
    Path("watch.state").write_bytes(kept[:-3])
    assert run("log.jsonl", *WATCH, "--state", "watch.state")[0] == 2
    assert Path("watch.state").read_bytes() == kept[:-3]


def test_standard_input(run: Run) -> None:
    lines = "".join([record.to_json() + "\n" for record in RECORDS])
    done = command("-", *WATCH, "--until-alarm", input=lines[:-1])
    assert done.returncode == 0
    assert "'acme'" in done.stdout
    nothing = command("-", *WATCH, input="")
    assert nothing.returncode == 3
    assert "nothing usable: the records state these keys: none; given: " in nothing.stderr


def command(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agentmark", "monitor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **settings,
    )


# A file that grows ---------------------------------------------------------------------------------------------------


@contextmanager
def following(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "agentmark", "monitor", "--follow", "--poll", "0.05", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def next_event(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    event: dict[str, Any] = json.loads(process.stdout.readline())
    return event


def test_a_file_that_another_process_writes_raises_the_alarm_with_its_record(run: Run) -> None:
    """Torn lines, a rotation and an interrupt; then another process goes on from the state."""
    options = (*WATCH, "--json", "--every", "1", "--state", "watch.state")
    lines = [record.to_json() + "\n" for record in RECORDS]
    with following("log.jsonl", *options) as process:
        with Path("log.jsonl").open("w", encoding="utf-8") as log:
            log.write(lines[0] + lines[1][:50])
            log.flush()
            assert next_event(process)["records"] == 1
            log.write(lines[1][50:])
            log.flush()
            assert next_event(process)["records"] == 2
        Path("log.jsonl").rename("log.1.jsonl")
        Path("log.jsonl").write_text("".join(lines[2:4]), encoding="utf-8")
        assert [next_event(process)["records"] for _ in range(2)] == [3, 4]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "was replaced by another file" in err
    assert err.splitlines()[-1] == "agentmark monitor: interrupted after 4 records; the state is in watch.state"
    Path("log.jsonl").write_text("".join(lines[4:]), encoding="utf-8")
    with following("log.jsonl", *options, "--until-alarm") as process:
        events = []
        while not events or events[-1]["event"] == "status":
            events.append(next_event(process))
        assert events[-1]["event"] == "alarm"
        assert events[-1]["new_alarm"]["record"] == len(events) + 4
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_service_that_is_stopped_keeps_its_state(run: Run) -> None:
    write_log("log.jsonl", RECORDS[:3])
    with following("log.jsonl", *WATCH, "--json", "--every", "3", "--state", "watch.state") as process:
        assert next_event(process)["records"] == 3
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "terminated after 3 records" in err
    assert Path("watch.state").exists()
