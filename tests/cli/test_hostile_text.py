"""Every command on text that steers terminals: in logs, registries, reports, weights, names of files, arguments."""

import argparse
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentmark import ChainWriter, Embedder, LogWriter, SharedKey, StepRecord
from agentmark.cli import main
from agentmark.cli.main import SUMMARIES
from agentmark.core.canonical import canonical_bytes
from agentmark.demo import run as demo_run
from agentmark.keys.signing import SigningKey
from agentmark.report.signature import REPORT_LABEL

KEY = SharedKey(bytes(range(100, 132)))
SIGNER = SigningKey(bytes(range(200, 232)))
# Clears the screen, sets a title, turns the order, moves up, hides, and then claims to be a line of ours.
STEERING = "\x1b[2J\x1b]0;owned\x07\u202egpj\u2066\x9b1A\x7f\u200b\u2028\U000e0041\r\n  bound         2^-99"
FORGED = "\n  bound         2^-99"
FILE = "x" + STEERING.replace("/", "")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a folder of hostile files, and check all that it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTMARK_KEY", raising=False)
    prepare()

    def call(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        try:
            status = main(list(arguments))
        except SystemExit as end:
            status = int(end.code or 0)
        captured = capsys.readouterr()
        for shown in (captured.out, captured.err):
            assert all(line.isprintable() for line in shown.split("\n")), (arguments, shown)
            assert FORGED not in shown, arguments
        assert status != 70, captured.err
        return status, captured.out, captured.err

    return call


def prepare() -> None:
    KEY.save("key.json")
    KEY.save(f"{FILE}.key")
    SIGNER.save("signing.json")
    with LogWriter("log.jsonl", chain=ChainWriter(SIGNER)) as log:
        session = Embedder(KEY, 5, payload_len=8, scheme="R").session(f"s{STEERING}")
        for _ in range(30):
            log.write(session.choose({STEERING: 1, f"b{STEERING}": 1, "c": 1}, meta={"note": STEERING}).record)
        log.write(session.unmarked(f"b{STEERING}", reason=STEERING).record)
    # Not `splitlines`, which ends a line at some of the characters in it.
    lines = [line + "\n" for line in Path("log.jsonl").read_text().split("\n") if line]
    broken = ['{"agentmark":1,"\\u001b[2J":1}\n', json.dumps({"agentmark": 7, "key_id": STEERING}) + "\n"]
    Path(f"{FILE}.jsonl").write_text("".join([*lines[:5], *broken, *lines[9:]]))
    other = json.loads(lines[0]) | {"key_id": STEERING, "scheme": STEERING}
    Path("other.jsonl").write_text(json.dumps(other) + "\n")
    head = {"agentmark_registry": 1, "payload_len": 8}
    odd = STEERING.replace("\n", "")
    entry = {"name": odd, "payload": "05", "issued_at": STEERING, "revoked_at": STEERING}
    Path("registry.jsonl").write_text(f"{json.dumps(head)}\n{json.dumps(entry)}\n")
    Path(f"{FILE}.registry").write_text(f"{json.dumps(head)}\n{json.dumps(entry | {'payload': STEERING})}\n")
    Path("weights.jsonl").write_text(json.dumps({STEERING: 1, "b": 1}) + "\n")
    Path(f"{FILE}.weights").write_text(json.dumps({STEERING: -1}) + "\n")


def test_identities(run: Run) -> None:
    _, out, _ = run("identity", "registry.jsonl")
    assert "\\x1b[2J" in out
    assert "\\u202egpj" in out
    for call in (
        ["identity", f"{FILE}.registry"],
        ["identity", "registry.jsonl", "--issue", STEERING],
        ["identity", "registry.jsonl", "--revoke", f"{STEERING}?"],
        ["identity", f"missing{STEERING}"],
    ):
        assert run(*call)[0] == 2


def test_keys(run: Run) -> None:
    assert run("keygen", f"new{FILE}")[0] == 0
    assert run("keygen", f"new{FILE}")[0] == 2
    assert run("signing-key", f"signing{FILE}")[0] == 0
    assert run("signing-key", f"signing{FILE}")[0] == 2
    run("keygen", "tenant.json", "--from", f"{FILE}.key", "--tenant", STEERING)


def test_embed(run: Run) -> None:
    command = ["embed", "--key", f"{FILE}.key", "--payload-len", "8", "--payload"]
    weights = json.dumps({"weights": {STEERING: 1, "b": 1}, "meta": {"x": STEERING}}) + "\n"
    status, out, _ = run(*command, "5", stdin=weights)
    assert status == 0
    record = StepRecord.from_dict(json.loads(out)["record"])
    assert record.distribution is not None
    assert STEERING in record.distribution.behaviors, "JSON says the same as before"
    assert run(*command, STEERING)[0] == 2
    assert run(*command, "5", "--session", STEERING, "--first-step", "0", stdin=weights)[0] == 0
    status, out, _ = run(*command, "5", "--keep-going", stdin=json.dumps({STEERING: -1}) + "\n")
    assert json.loads(out)["choice"] is None
    run(*command, "5", stdin=json.dumps({"weights": {"a": 1}, STEERING: 1}) + "\n")
    run(*command, "5", "--registry", "registry.jsonl", stdin=weights)


def test_verify_inspect_chain_and_power(run: Run) -> None:
    key = ["--key", f"{FILE}.key"]
    for log in ("log.jsonl", f"{FILE}.jsonl", "other.jsonl", f"missing{STEERING}"):
        for more in ([], ["--skip-bad"]):
            run("verify", log, *key, "--registry", "registry.jsonl", *more)
            run("verify", log, *key, "--claim", "5", "--json", *more)
            run("inspect", log, "--steps", "99", *more)
        run("chain", log)
        run("chain", log, "--json")
        run("power", "--log", log, "--trials", "3", "--max-steps", "20", "--scheme", "F")
    status, out, _ = run("verify", "log.jsonl", *key, "--registry", "registry.jsonl", "--json")
    assert status == 0
    assert json.loads(out)["identity"] == STEERING.replace("\n", "")
    run("verify", "log.jsonl", *key, "--claim", STEERING)
    run("verify", "log.jsonl", *key, "--registry", "registry.jsonl", "--claim", STEERING)
    run("verify", "log.jsonl", *key, "--registry", f"{FILE}.registry")
    run("verify", "log.jsonl", *key, "--public-key", STEERING)
    run("verify", "log.jsonl", *key, "--find-offset", "--session", STEERING, "--offsets", "2")
    run("chain", "log.jsonl", "--public-key", STEERING)
    run("chain", "log.jsonl", "--anchor", STEERING)
    for weights in ("weights.jsonl", f"{FILE}.weights"):
        run("power", "--weights", weights, "--trials", "3", "--max-steps", "20", "--scheme", "F")
    run("power", "--n", "3", "--alpha", "1", "--trials", "3", "--plot", f"{FILE}.png")


def test_reports(run: Run) -> None:
    command = ["verify", f"{FILE}.jsonl", "--key", "key.json", "--registry", "registry.jsonl", "--skip-bad"]
    signed = f"signed{FILE}"
    status, out, _ = run(*command, "--signed", signed, "--signing-key", "signing.json", "--json")
    assert status == 0
    content = Path(signed).read_text()
    assert all(line.isprintable() for line in content.split("\n")), "the file is looked at in terminals too"
    assert json.loads(content)["report"] == json.loads(out)
    assert run("check-report", signed)[0] == 0
    report: dict[str, Any] = json.loads(out) | {"made_at": STEERING}
    report["verdict"]["sentence"] = STEERING
    signature = json.loads(content)["signature"] | {"value": SIGNER.sign(REPORT_LABEL, canonical_bytes(report))}
    Path("forged").write_text(json.dumps({"report": report, "signature": signature}))
    status, out, _ = run("check-report", "forged")
    assert status == 0
    assert "\\u202egpj" in out
    Path("extra").write_text(json.dumps({"report": report | {STEERING: 1}, "signature": signature}))
    run("check-report", "extra")
    run("check-report", f"{FILE}.key")
    run("check-report", signed, "--public-key", STEERING)


@pytest.mark.slow
def test_a_whole_demonstration(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_run, "TOWNS", 8)
    monkeypatch.setattr(demo_run, "RUNS_PER_TOWN", 1)
    assert run("demo", "--out", f"folder{FILE}")[0] == 0


def test_demo_and_calibrate(run: Run) -> None:
    run("demo", "--out", f"{FILE}.key")
    run("demo", "--model", STEERING)
    run("demo", "--base-url", STEERING, "--model", "x")
    run("demo", "--base-url", "http://127.0.0.1:9/v1", "--model", "x", "--elicitor", STEERING)
    run("calibrate", "--situations", f"{FILE}.weights")
    run("calibrate", "--base-url", STEERING, "--model", STEERING)


def test_words_that_no_command_knows(run: Run) -> None:
    for command in [*SUMMARIES, STEERING]:
        # A word with a space in it is never an option to Python's parser.
        assert run(command, f"--{STEERING.replace(' ', '')}")[0] == 2, command
        assert run(command, STEERING, STEERING, STEERING)[0] == 2, command


def test_a_command_that_forgets_cannot_steer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of defence: what is printed raw is spelled out but for the ends of lines."""

    def careless(_: argparse.Namespace) -> int:
        sys.stdout.write("\x1b[2J\u202e\x9b\r")
        sys.stderr.writelines(["\x1b[2J\udcff"])
        raise ZeroDivisionError("\x1b[2J")

    monkeypatch.setattr("agentmark.cli.inspect.run", careless)
    monkeypatch.setattr(sys.modules["agentmark.cli.main"], "EXIT_FAULT", 3)
    status, out, err = run("inspect", "log.jsonl")
    assert status == 3
    assert out == "\\x1b[2J\\u202e\\x9b\\r"
    assert err.startswith("\\x1b[2J\\udcff")
    assert "ZeroDivisionError: \\x1b[2J" in err
