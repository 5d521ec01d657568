"""The commands as a user types them."""

import gzip
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from math import log2
from pathlib import Path

import pytest
from support import TICKET_WEIGHTS, marked_log

from agentmark import Embedder, LogWriter, Registry, SharedKey, SqliteLog, StepRecord, open_log
from agentmark.cli import main

KEY = SharedKey(bytes(range(100, 132)))

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a fresh folder: exit status, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTMARK_KEY", raising=False)

    def call(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        status = main(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def write_log(path: str, steps: int = 60, **settings: object) -> None:
    with LogWriter(path) as log:
        for record in marked_log(KEY, steps=steps, **settings):  # type: ignore[arg-type]
            log.write(record)


# What a stranger's key finds takes long to rule out; a test need not wait for the whole search.
LIMITED = ("--work-limit", "100000")


def test_from_key_to_verdict(run: Run) -> None:
    assert run("keygen", "key.json")[0] == 0
    assert run("identity", "registry.jsonl", "--issue", "tenant-0042")[0] == 0
    status, out, _ = run("identity", "registry.jsonl", "--issue", "tenant-0043")
    assert "tenant-0043" in out
    assert "tenant-0042" not in out, "what was issued, and not the whole registry"
    weights = (json.dumps(TICKET_WEIGHTS) + "\n") * 80
    identity = ["--registry", "registry.jsonl", "--payload", "tenant-0042"]
    status, out, _ = run("embed", "--key", "key.json", *identity, "--log", "run.jsonl", "--scheme", "R", stdin=weights)
    assert status == 0
    assert len(out.splitlines()) == 80
    assert set(json.loads(out.splitlines()[0])) == {"choice"}
    status, out, _ = run(
        "verify", "run.jsonl", "--key", "key.json", "--registry", "registry.jsonl", "--control", *LIMITED
    )
    assert status == 0
    assert out.startswith("Attributed to 'tenant-0042'")
    assert "with a random key: Not attributed" in out
    status, out, _ = run("inspect", "run.jsonl", "--steps", "2")
    assert "80 records, 80 marked, 1 session\n" in out
    assert "mean candidates 5.0" in out
    status, out, _ = run("verify", "run.jsonl", "--key", "key.json", "--json")
    assert json.loads(out)["accepted"] is True


STEERING = "\x1b[2J\x1b]0;owned\x07\u202egpj.exe\u2066\x9b31m\n  bound         2^-99"


def steers(text: str) -> bool:
    return not all(line.isprintable() for line in text.split("\n"))


def test_a_hostile_log_cannot_steer_the_terminal(run: Run) -> None:
    run("keygen", "key.json")
    key = SharedKey.load("key.json")
    session = Embedder(key, 5, payload_len=8).session("s" + STEERING)
    with LogWriter("run.jsonl") as log:
        log.write(session.choose({STEERING: 1, "b": 1}).record)
        log.write(session.unmarked("b" + STEERING, reason=STEERING).record)
    hostile = Path("x" + STEERING.replace("/", "") + ".jsonl")
    hostile.write_bytes(Path("run.jsonl").read_bytes() + b'{"agentmark":1,"\\u001b[2J":1}\n')
    for command in (
        ["inspect", "run.jsonl", "--steps", "9"],
        ["inspect", str(hostile), "--skip-bad"],
        ["inspect", str(hostile)],
        ["inspect", "missing" + STEERING],
        ["verify", str(hostile), "--key", "key.json"],
        ["verify", str(hostile), "--key", "key.json", "--skip-bad"],
    ):
        _, out, err = run(*command)
        assert not steers(out), command
        assert not steers(err), command
        assert "\n  bound         2^-99" not in out + err
    assert "\\x1b[2J" in run("inspect", "run.jsonl", "--steps", "9")[1]


def test_inspect_counts_what_a_verifier_would(run: Run) -> None:
    records = marked_log(KEY, steps=12)
    with LogWriter("run.jsonl") as log:
        for record in records[:10]:
            log.write(record)
            log.write(record.with_enforced(False))
        log.write(records[10])
        log.write(records[10])
        session = Embedder(KEY, 5, payload_len=records[0].payload_len).session()
        log.write(session.unmarked("a", reason="no list").record)
    _, out, _ = run("inspect", "run.jsonl")
    assert "23 records, 1 marked, 2 sessions" in out
    assert "  not counted: 20 not enforced\n" in out
    assert "  not counted: 1 duplicate\n" in out
    assert "  not counted: 1 unmarked\n" in out
    assert "1 because of: no list" in out


def test_embed_prints_records_without_a_log(run: Run) -> None:
    run("keygen", "key.json")
    lines = [
        '{"weights": {"a": 1, "b": 1}, "context": {"observation": "door", "seen": [1, {"x": true}]}}',
        '{"weights": 0.5, "b": 0.5}',
    ]
    status, out, _ = run(
        "embed", "--key", "key.json", "--payload", "0x2a", "--payload-len", "8", stdin="\n".join(lines)
    )
    assert status == 0
    records = [StepRecord.from_dict(json.loads(line)["record"]) for line in out.splitlines()]
    assert [record.step_index for record in records] == [0, 1]
    assert records[1].distribution is not None
    assert set(records[1].distribution.behaviors) == {"weights", "b"}


def test_keys_derive_on_the_command_line(run: Run) -> None:
    run("keygen", "master.json")
    status, out, _ = run("keygen", "acme.json", "--from", "master.json", "--tenant", "acme")
    assert status == 0
    assert SharedKey.load("acme.json") == SharedKey.load("master.json").derive("acme")
    assert SharedKey.load("acme.json").id in out
    secret = json.loads(Path("acme.json").read_text())["secret"]
    assert secret not in out


def test_the_key_may_come_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log("log.jsonl")
    monkeypatch.setenv("AGENTMARK_KEY", bytes(range(100, 132)).hex())
    assert run("verify", "log.jsonl")[0] == 0


def test_not_attributed_is_exit_one(run: Run) -> None:
    write_log("log.jsonl", steps=5)
    KEY.save("key.json")
    status, out, err = run("verify", "log.jsonl", "--key", "key.json")
    assert status == 1
    assert "more steps are needed" in out
    assert err == ""


def test_nothing_usable_is_exit_three_and_names_the_keys(run: Run) -> None:
    write_log("log.jsonl", steps=5)
    run("keygen", "other.json")
    status, out, err = run("verify", "log.jsonl", "--key", "other.json")
    assert status == 3
    assert "5 other key" in out
    assert f"nothing usable: the records state the keys {KEY.id}; given: {SharedKey.load('other.json').id}" in err
    Path("empty.jsonl").write_bytes(b"")
    status, _, err = run("verify", "empty.jsonl", "--key", "other.json")
    assert status == 3
    assert "nothing usable: there is no record at all" in err
    # The key is right, and the registry is of another length.
    KEY.save("key.json")
    run("identity", "registry.jsonl", "--issue", "acme", "--payload-len", "8")
    status, _, err = run("verify", "log.jsonl", "--key", "key.json", "--registry", "registry.jsonl")
    assert status == 3
    assert "nothing usable: there are records of the key given, and all of them had to be set aside" in err


def test_logs_are_pooled_and_may_be_packed(run: Run) -> None:
    KEY.save("key.json")
    write_log("a.jsonl", steps=20, seed=1)
    write_log("b.jsonl", steps=20, seed=2)
    Path("b.jsonl.gz").write_bytes(gzip.compress(Path("b.jsonl").read_bytes()))
    assert run("verify", "a.jsonl", "--key", "key.json")[0] == 1
    assert run("verify", "a.jsonl", "b.jsonl.gz", "--key", "key.json")[0] == 0


def test_a_broken_line_is_exit_two_or_passed_over_by_name(run: Run) -> None:
    KEY.save("key.json")
    write_log("log.jsonl")
    lines = Path("log.jsonl").read_text().splitlines()
    lines.insert(3, lines[3].replace('"agentmark":1', '"agentmark":7'))
    Path("log.jsonl").write_text("\n".join(lines) + "\n" + lines[0][:50])
    status, _, err = run("verify", "log.jsonl", "--key", "key.json")
    assert status == 2
    assert "record log.jsonl:4: agentmark: found 7, this build reads version 1" in err
    status, _, err = run("verify", "log.jsonl", "--key", "key.json", "--skip-bad")
    assert status == 0
    assert "passed over: record log.jsonl:4" in err
    assert "log.jsonl:62: is cut short" in err
    status, out, _ = run("inspect", "log.jsonl", "--skip-bad")
    assert "log.jsonl:62: is cut short" in out


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        ("verify none.jsonl --key key.json", "", "none.jsonl: No such file"),
        ("verify log.jsonl --key none.json", "", "none.json: cannot be read"),
        ("verify log.jsonl", "", "$AGENTMARK_KEY: is not set"),
        ("verify log.jsonl --key key.json --threshold 2", "", "threshold: 2.0"),
        ("verify log.jsonl --key key.json --registry none.jsonl", "", "none.jsonl: No such file"),
        ("keygen key.json", "", "exists already"),
        ("keygen new.json --tenant acme", "", "--from"),
        ("identity none.jsonl", "", "none.jsonl: No such file"),
        ("embed --key key.json --payload 300 --payload-len 8", "", "300 does not fit 8 bits"),
        ("embed --key key.json --payload tenant-0042 --payload-len 8", "", "needs 88 bits"),
        ("embed --key key.json --payload 1 --payload-len 8", '{"a": 0}', "line 1: distribution: weights: all are zero"),
        (
            "embed --key key.json --payload 1 --payload-len 8",
            '{"a": 1, "a": 1}',
            "line 1: distribution: behaviors",
        ),
        ("embed --key key.json --payload 1 --payload-len 8", "[1]", "line 1: is not a JSON object"),
        ("embed --key key.json --payload 1 --payload-len 8", "nonsense", "line 1: is not valid JSON"),
        ("embed --key key.json --payload 1 --payload-len 8 --session s", "", "--session: goes together"),
    ],
)
def test_bad_input_is_exit_two_with_a_message_to_act_on(run: Run, arguments: str, stdin: str, message: str) -> None:
    KEY.save("key.json")
    write_log("log.jsonl", steps=3)
    status, _, err = run(*arguments.split(), stdin=stdin)
    assert status == 2
    assert message in err
    assert "Traceback" not in err


def test_an_unusable_list_can_be_answered_and_passed(run: Run) -> None:
    KEY.save("key.json")
    lines = '{"a": 1, "b": 1}\n{"a": 0}\n{"a": 1, "b": 2}\n'
    status, out, _ = run(
        "embed", "--key", "key.json", "--payload", "1", "--payload-len", "8", "--keep-going", stdin=lines
    )
    answers = [json.loads(line) for line in out.splitlines()]
    assert status == 2
    assert [answer["choice"] is None for answer in answers] == [False, True, False]
    assert "line 2: distribution: weights: all are zero" in answers[1]["error"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"weights": {"a": 1}, "context": "oops"}', "context is not an object"),
        ('{"weights": {"a": 1}, "contxt": {}}', "'contxt' is not expected"),
        ('{"weights": {"a": 1}, "weights": {"b": 1}}', "'weights' is not expected"),
        ('{"weights": {"a": 1}, "context": {"x": 1, "x": 2}}', "'x' appears twice"),
        ('{"weights": {"a": 1}, "meta": {"x": 0.5}}', "meta.x: float"),
        ("[" * 100_000, "is not valid JSON"),
    ],
)
def test_embed_ignores_nothing(run: Run, line: str, message: str) -> None:
    KEY.save("key.json")
    status, _, err = run("embed", "--key", "key.json", "--payload", "1", "--payload-len", "8", stdin=line)
    assert status == 2
    assert message in err


def test_a_number_may_have_leading_zeros(run: Run) -> None:
    KEY.save("key.json")
    weights = (json.dumps(TICKET_WEIGHTS) + "\n") * 60
    run("embed", "--key", "key.json", "--payload", "0042", "--payload-len", "16", "--log", "log.jsonl", stdin=weights)
    _, out, _ = run("verify", "log.jsonl", "--key", "key.json", "--json")
    assert json.loads(out)["payload"] == "002a"


def test_a_fault_of_ours_is_not_a_verdict(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own exit status for an exception is 1, which here means "not attributed"."""
    from agentmark.audit import case

    KEY.save("key.json")
    write_log("log.jsonl", steps=3)
    monkeypatch.setattr(case, "Verifier", lambda *_, **__: 1 / 0)
    assert run("verify", "log.jsonl", "--key", "key.json")[0] == 70


@pytest.mark.parametrize("file", ["registry.jsonl", "registry.db"])
def test_parallel_issues_are_all_kept(tmp_path: Path, file: str) -> None:
    """Of 16 payloads, half are issued at once: no two names may get the same one."""
    path = tmp_path / file
    command = [sys.executable, "-m", "agentmark", "identity", str(path), "--payload-len", "4", "--issue"]
    running = [subprocess.Popen([*command, f"tenant-{i}"], stdout=subprocess.DEVNULL) for i in range(8)]
    assert [process.wait() for process in running] == [0] * 8
    registry = Registry.load(path)
    assert len({identity.payload for identity in registry}) == len(registry) == 8


def test_a_table_of_identities_serves_every_command(run: Run) -> None:
    run("keygen", "key.json")
    assert run("identity", "registry.db", "--issue", "tenant-0042", "--payload-len", "16")[0] == 0
    weights = (json.dumps(TICKET_WEIGHTS) + "\n") * 60
    identity = ["--registry", "registry.db", "--payload", "tenant-0042"]
    assert run("embed", "--key", "key.json", *identity, "--log", "run.jsonl", stdin=weights)[0] == 0
    run("identity", "registry.db", "--revoke", "tenant-0042")
    assert "revoked" in run("identity", "registry.db")[1]
    status, out, _ = run("verify", "run.jsonl", "--key", "key.json", "--registry", "registry.db")
    assert status == 0
    assert "'tenant-0042'" in out
    status, _, err = run("identity", "registry.db", "--issue", "tenant-0042")
    assert status == 2
    assert "issued already" in err


def test_embed_goes_on_with_a_session(run: Run) -> None:
    KEY.save("key.json")
    command = "embed --key key.json --payload 1 --payload-len 8 --log log.jsonl --session s --first-step"
    run(*command.split(), "0", stdin='{"a": 1, "b": 1}\n' * 3)
    run(*command.split(), "3", stdin='{"a": 1, "b": 1}\n' * 2)
    assert [record.step_index for record in open_log("log.jsonl")] == [0, 1, 2, 3, 4]


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    write_log(str(tmp_path / "log.jsonl"), steps=2000)
    command = f"{sys.executable} -m agentmark inspect {tmp_path}/log.jsonl --steps 2000 | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "2,000 records" in done.stdout


@pytest.mark.slow
def test_the_demo_tells_its_story(run: Run) -> None:
    status, out, err = run("demo", "--out", "demo")
    assert status == 0
    assert out.count("Attributed to 'acme-eu'") == 2
    assert "about ten seconds" in err
    assert "AgentMark-F: 400 deliveries" in err
    assert "400 deliveries in the same towns" in out
    page = Path("demo/demo.html").read_text(encoding="utf-8")
    assert "http://" not in page
    assert "https://" not in page
    assert page.count("<svg") == 4, "two charts, each for a screen and for a phone"
    commands = [line.split() for line in out.splitlines() if line.startswith(f"    {sys.executable} -m agentmark ")]
    third_party = [0, 0, 1] if find_spec("nacl") else []
    assert [run(*command[3:])[0] for command in commands] == [0, 0, 0, 1, 0, 0, *third_party]
    assert run("demo", "--out", "demo")[0] == 0, "it can be run again in the same folder"


def test_a_segment_that_lost_its_place_is_found(run: Run) -> None:
    run("keygen", "key.json")
    session = Embedder(SharedKey.load("key.json"), 0xA6, payload_len=8).session("lost")
    weights = {f"tool {i}": 1 for i in range(6)}
    log = [session.choose(weights).record for _ in range(60)]
    lost = [replace(record, session="?", context=bytes(32), step_index=0) for record in log[17:57]]
    with LogWriter("part.jsonl") as writer:
        for record in lost:
            writer.write(record)
    command = ("verify", "part.jsonl", "--key", "key.json")
    assert run(*command)[0] == 3
    place = ("--find-offset", "--session", "lost", "--offsets", "30")
    status, out, err = run(*command, *place)
    assert status == 0
    assert "Attributed to payload 0xa6" in out
    assert "place         from step 17 on; 30 tried and paid for" in out
    assert "trying 30 places" in err
    status, out, _ = run(*command, *place, "--claim", "0xa6", "--report", "report.html", "--json")
    report = json.loads(out)
    assert report["question"]["place"] == {"session": "lost", "offsets_tried": 30, "offset": 17}
    assert report["verdict"]["bits_paid"] == f"{log2(30):.3f}"
    assert [step["step"] for step in report["steps"]] == list(range(17, 57))
    assert "from step 17 on" in Path("report.html").read_text(encoding="utf-8")
    assert run(*shlex.split(report["command"])[1:])[0] == 0
    status, out, _ = run(*command, "--find-offset", "--session", "another", "--offsets", "5", "--json")
    assert status == 1
    assert json.loads(out)["place"] == {"offset": None, "tried": 5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--find-offset", "goes together with one --session"),
        ("--session s", "no session here begins with 's'"),
        ("--offsets 5", "goes together with --find-offset"),
        ("--find-offset --session s --offsets 0", "0 is not a number of places"),
        ("--work-limit 0", "0 is not a number of operations"),
    ],
)
def test_settings_of_a_search_that_cannot_be_meant(run: Run, arguments: str, message: str) -> None:
    KEY.save("key.json")
    write_log("log.jsonl", steps=5)
    status, _, err = run("verify", "log.jsonl", "--key", "key.json", *arguments.split())
    assert status == 2
    assert message in err


def test_the_work_limit_is_the_users(run: Run) -> None:
    KEY.save("key.json")
    write_log("log.jsonl", scheme="R")
    command = ("verify", "log.jsonl", "--key", "key.json")
    status, out, _ = run(*command, "--work-limit", "1", "--noise", "0")
    assert status == 1
    assert "work limit" in out
    assert run(*command, "--noise", "0")[0] == 0


def test_an_interrupt_is_answered_with_one_line(tmp_path: Path) -> None:
    """In the middle of a search that would go on for minutes."""
    log, key = tmp_path / "log.jsonl", tmp_path / "key.json"
    with LogWriter(log) as written:
        for record in marked_log(KEY, payload=1, payload_len=64, steps=200):
            # Another context: the key's draws are then strange to the choices.
            written.write(replace(record, context=bytes(reversed(record.context))))
    KEY.save(key)
    words = [sys.executable, "-c", INTERRUPTED, "verify", str(log), "--key", str(key), "--work-limit", "999999999"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "agentmark: interrupted\n")


# Sends itself the signal of Ctrl-C from inside the search, after a few hundred trials.
INTERRUPTED = """
import os, signal, sys
from agentmark.cli import main
from agentmark.verify.work import Work
taken, take = [], Work.take
def counted(self, operations):
    taken.append(operations)
    if len(taken) == 600:
        os.kill(os.getpid(), signal.SIGINT)
    return take(self, operations)
Work.take = counted
sys.exit(main())
"""


def test_a_log_may_come_through_standard_input(tmp_path: Path) -> None:
    """In any format, packed or not, beside files; a report calls it what it is."""
    KEY.save(tmp_path / "key.json")
    write_log(str(tmp_path / "log.jsonl"))
    with SqliteLog(tmp_path / "run.db") as table:
        for record in marked_log(KEY, steps=60):
            table.write(record)
    plain = (tmp_path / "log.jsonl").read_bytes()
    scratch = tmp_path / "scratch"  # Its own: other tests leave files in the common one while they run.
    scratch.mkdir()
    run = partial(
        subprocess.run, capture_output=True, cwd=tmp_path, env={**os.environ, "TMPDIR": str(scratch)}, timeout=120
    )
    command = [sys.executable, "-m", "agentmark", "verify", "-", "--key", "key.json", "--json"]
    for data in (plain, gzip.compress(plain), (tmp_path / "run.db").read_bytes()):
        done = run(command, input=data, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        assert json.loads(done.stdout)["payload"] == "5eed"
    report = run([*command, "--report", "report.html"], input=plain, check=True)
    content = json.loads(report.stdout)
    assert content["inputs"][0]["path"] == "standard input"
    assert content["inputs"][0]["size"] == len(plain)
    assert content["command"].startswith("agentmark verify - --key key.json")
    assert list(scratch.iterdir()) == [], "nothing is left behind"
