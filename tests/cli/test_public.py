"""Public mode as a user types it: a key pair, a marked run, its verdict."""

import io
import json
import stat
import sys
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
