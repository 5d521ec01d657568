"""Public mode as a user types it: a key pair, a marked run, its verdict."""

import io
import json
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import TICKET_WEIGHTS

pytest.importorskip("nacl", reason="the extra `public` is not installed")

from agentmark import MarkingKey, PublicKey
from agentmark.cli import main

Run = Callable[..., tuple[int, str, str]]

LINES = (json.dumps(TICKET_WEIGHTS) + "\n") * 50
LIMITED = ("--work-limit", "100000")


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


def test_keygen_writes_both_halves_and_prints_what_to_anchor(run: Run) -> None:
    status, out, _ = run("keygen", "--public", "marking.json")
    assert status == 0
    key, public = MarkingKey.load("marking.json"), PublicKey.load("marking.pub.json")
    assert public == key.public
    assert stat.S_IMODE(Path("marking.json").stat().st_mode) == 0o600
    assert key.id in out
    assert key.public.fingerprint in out
    assert json.loads(Path("marking.json").read_text())["secret"] not in out
    assert "secret" not in json.loads(Path("marking.pub.json").read_text())


def test_keygen_overwrites_neither_half(run: Run) -> None:
    Path("marking.pub.json").write_text("mine")
    assert run("keygen", "--public", "marking.json")[0] == 2
    assert not Path("marking.json").exists(), "no secret without its public half"
    Path("marking.pub.json").unlink()
    Path("marking.json").write_text("mine")
    assert run("keygen", "--public", "marking.json")[0] == 2
    assert not Path("marking.pub.json").exists()


def test_a_tenants_pair_is_of_its_masters_kind(run: Run) -> None:
    run("keygen", "--public", "master.json")
    run("keygen", "shared.json")
    assert run("keygen", "--public", "acme.json", "--from", "master.json", "--tenant", "acme")[0] == 0
    assert MarkingKey.load("acme.json") == MarkingKey.load("master.json").derive("acme")
    assert "give --public" in run("keygen", "b.json", "--from", "master.json", "--tenant", "b")[2]
    assert "no public half" in run("keygen", "--public", "b.json", "--from", "shared.json", "--tenant", "b")[2]
    assert not Path("b.json").exists()


def test_a_marking_key_serves_its_holder_as_a_shared_key_does(run: Run) -> None:
    run("keygen", "--public", "marking.json")
    run("identity", "registry.jsonl", "--issue", "tenant-0042")
    key = ["--key", "marking.json", "--registry", "registry.jsonl"]
    status, _, _ = run("embed", *key, "--payload", "tenant-0042", "--scheme", "R", "--log", "run.jsonl", stdin=LINES)
    assert status == 0
    status, out, _ = run("verify", "run.jsonl", *key, "--control", *LIMITED)
    assert status == 0
    assert out.startswith("Attributed to 'tenant-0042'")
    assert "with a random key: Not attributed" in out
    status, out, _ = run("monitor", "run.jsonl", *key)
    assert status == 0
    assert "tenant-0042" in out


# From here on: disclosing, and verdicts without the secret.

PUBLIC = ("--disclosure", "run.disclosure.json", "--public-key", "marking.pub.json")


def marked_run(run: Run, *, payload_len: int = 16, scheme: str = "R", log: str = "run.jsonl") -> None:
    if not Path("marking.json").exists():
        run("keygen", "--public", "marking.json")
    payload = ("--payload", "42" if payload_len else "0", "--payload-len", str(payload_len))
    status, _, err = run("embed", "--key", "marking.json", *payload, "--scheme", scheme, "--log", log, stdin=LINES)
    assert status == 0, err


def finished(path: str) -> None:
    """As a log looks to which nothing was written for a day."""
    day_ago = time.time() - 86_400
    os.utime(path, (day_ago, day_ago))


def disclosed(run: Run, *options: str) -> str:
    finished("run.jsonl")
    status, out, err = run("disclose", "run.jsonl", "--key", "marking.json", "-o", "run.disclosure.json", *options)
    assert status == 0, err
    return out


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_a_verdict_without_the_secret_is_the_holders(run: Run, scheme: str) -> None:
    marked_run(run, scheme=scheme)
    out = disclosed(run)
    assert "50 records disclosed" in out
    assert "for ever" in out
    _, holders, _ = run("verify", "run.jsonl", "--key", "marking.json", "--json", *LIMITED)
    Path("marking.json").unlink()
    status, out, err = run("verify", "run.jsonl", *PUBLIC, "--json", *LIMITED)
    assert status == 0, err
    said, expected = json.loads(out), json.loads(holders)
    assert said["payload"] == expected["payload"] == "002a"
    assert said["evidence_bits"] == expected["evidence_bits"]
    assert said["ownership_bits"] == expected["ownership_bits"]
    assert said["rests_on"]["statement"] == "strangers and other tenants"
    assert expected["rests_on"] is None
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, *LIMITED)
    assert status == 0
    assert "rests on      Holds against everyone without the secret" in out


def test_a_session_that_may_still_be_open_is_not_disclosed_unasked(run: Run) -> None:
    marked_run(run)
    command = ("disclose", "run.jsonl", "--key", "marking.json", "-o", "run.disclosure.json")
    status, _, err = run(*command)
    assert status == 2
    assert "its sessions may be open" in err
    assert not Path("run.disclosure.json").exists()
    assert run(*command, "--open-sessions-too")[0] == 0
    status, _, err = run(*command, "--open-sessions-too")
    assert status == 2
    assert "exists already" in err


def test_sessions_can_be_disclosed_apart(run: Run) -> None:
    marked_run(run)
    marked_run(run)
    sessions = sorted({json.loads(line)["session"] for line in Path("run.jsonl").read_text().splitlines()})
    assert len(sessions) == 2
    assert "50 records disclosed" in disclosed(run, "--session", sessions[0])
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, "--session", sessions[0], *LIMITED)
    assert status == 0
    assert out.startswith("Attributed")
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, "--session", sessions[1], *LIMITED)
    assert status == 1
    assert "no record is proved by a disclosure of its key (50 not disclosed)" in out


def test_a_log_without_a_record_of_the_key_has_nothing_to_disclose(run: Run) -> None:
    marked_run(run)
    finished("run.jsonl")
    run("keygen", "--public", "other.json")
    status, out, _ = run("disclose", "run.jsonl", "--key", "other.json", "-o", "other.disclosure.json")
    assert status == 3
    assert "nothing to disclose" in out
    assert not Path("other.disclosure.json").exists()


def test_altered_and_added_records_count_against_everyone(run: Run) -> None:
    marked_run(run)
    lines = Path("run.jsonl").read_text().splitlines()
    disclosed(run)
    added = json.loads(lines[0]) | {"context": "ab" * 32, "step": 99}
    moved = json.loads(lines[1]) | {"step": 98}
    Path("run.jsonl").write_text("\n".join([lines[0], json.dumps(moved), *lines[2:], json.dumps(added)]) + "\n")
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, *LIMITED)
    assert status == 0, "a log that is mostly genuine is still attributed"
    assert "1 altered since it was disclosed" in out
    assert "1 not disclosed" in out
    assert "at least 2 of the 51 steps are another's or were altered" in out
    assert "1 of 50 disclosed records is not in the log" in out
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, "--noise", "0", "--claim", "42", *LIMITED)
    assert status == 1, "where no foreign step is allowed for, one is enough"


def test_a_claim_on_what_others_made_pays_for_every_key(run: Run) -> None:
    marked_run(run)
    disclosed(run)
    _, plain, _ = run("verify", "run.jsonl", *PUBLIC, "--json", *LIMITED)
    claimed = ("--claimed-by-holder", "--keys-registered", "16")
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, *claimed, "--json", *LIMITED)
    assert status == 0
    assert json.loads(out)["bits_paid"] == json.loads(plain)["bits_paid"] + 4
    assert json.loads(out)["rests_on"]["statement"] == "claimed by its holder"
    _, out, _ = run("verify", "run.jsonl", *PUBLIC, *claimed, *LIMITED)
    assert "on three conditions that the files cannot show" in out
    assert "16 registered keys: 4.0 bits are paid" in out


def test_many_sessions_are_judged_by_their_disclosure_too(run: Run) -> None:
    marked_run(run)
    marked_run(run)
    disclosed(run)
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, *LIMITED)
    assert status == 0
    assert "rests on Holds against everyone" in out
    status, out, _ = run("verify", "run.jsonl", *PUBLIC, "--json", *LIMITED)
    assert json.loads(out.splitlines()[-1])["summary"]["rests_on"]["statement"] == "strangers and other tenants"


def test_a_report_says_against_whom_it_holds_and_that_no_secret_is_needed(run: Run) -> None:
    marked_run(run)
    disclosed(run)
    status, _, err = run("verify", "run.jsonl", *PUBLIC, "--report", "report.html", *LIMITED)
    assert status == 0, err
    page = Path("report.html").read_text()
    assert "Holds against everyone without the secret" in page
    assert "anyone can do it" in page
    assert "--disclosure run.disclosure.json --public-key marking.pub.json" in page


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--disclosure", "run.disclosure.json"), "said with --public-key FILE"),
        (("--public-key", "marking.pub.json"), "goes together with --disclosure"),
        ((*PUBLIC, "--key", "marking.json"), "takes the place of the secret"),
        ((*PUBLIC, "--any-key-id"), "the key id that they state"),
        ((*PUBLIC, "--for-stranger"), "does not go with --for-stranger"),
        ((*PUBLIC, "--keys-registered", "4"), "goes together with --claimed-by-holder"),
        ((*PUBLIC, "--claimed-by-holder", "--keys-registered", "0"), "less than the 1 keys given"),
        (("--claimed-by-holder",), "goes together with --disclosure"),
        ((*PUBLIC[:2], "--public-key", "other.pub.json"), "none of the public keys given"),
        ((*PUBLIC, "--public-key", "other.pub.json"), "there is none among those given"),
        ((*PUBLIC[:2], "--public-key", "marking.json"), "holds a secret"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(run: Run, options: tuple[str, ...], fault: str) -> None:
    marked_run(run)
    disclosed(run)
    run("keygen", "--public", "other.json")
    status, _, err = run("verify", "run.jsonl", *options)
    assert status == 2
    assert fault in " ".join(err.split())


def test_a_registry_of_public_keys_names_tenants_and_sets_the_price(run: Run) -> None:
    marked_run(run)
    disclosed(run)
    run("keygen", "--public", "other.json")
    status, out, err = run("identity", "tenants.jsonl", "--register", "acme", "--public-key", "marking.pub.json")
    assert status == 0, err
    assert MarkingKey.load("marking.json").public.fingerprint in out
    assert run("identity", "tenants.jsonl", "--register", "other", "--public-key", "other.pub.json")[0] == 0
    public = ("--disclosure", "run.disclosure.json", "--public-key", "tenants.jsonl")
    status, out, _ = run("verify", "run.jsonl", *public, *LIMITED)
    assert status == 0
    assert "of 'acme', other tenants" in out
    status, out, _ = run("verify", "run.jsonl", *public, "--claimed-by-holder", *LIMITED)
    assert "2 registered keys: 1.0 bits are paid" in out
    status, out, err = run(
        "verify", "run.jsonl", *public, "--claimed-by-holder", "--drawn-from", "2020-01-01T00:00:00Z"
    )
    assert status == 2
    assert "after the contexts were drawn" in err
    assert "not a time" in run("verify", "run.jsonl", *public, "--claimed-by-holder", "--drawn-from", "noon")[2]
    assert run("identity", "tenants.jsonl", "--revoke", "acme")[0] == 0
    assert "revoked" in run("identity", "tenants.jsonl")[1]
    assert "The key of 'acme' was revoked at" in run("verify", "run.jsonl", *public, *LIMITED)[1]
    Path("tenants.jsonl").write_text("\n".join(Path("tenants.jsonl").read_text().splitlines()[::2]) + "\n")
    status, _, err = run("verify", "run.jsonl", *public)
    assert status == 2
    assert "no key of the registry" in err
