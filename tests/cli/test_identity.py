"""`agentmark identity`."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentmark import Registry
from agentmark.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin), isatty=lambda: False))
        status = main(["identity", *words.split()])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def names(file: str) -> list[str]:
    return [identity.name for identity in Registry.load(file)]


@pytest.mark.parametrize("file", ["registry.jsonl", "registry.db"])
def test_several_are_issued_and_what_was_issued_is_printed(run: Run, file: str) -> None:
    status, out, _ = run(f"{file} --issue acme --issue globex --payload-len 16")
    assert status == 0
    assert [line.split()[-1] for line in out.splitlines()] == ["acme", "globex"]
    status, out, _ = run(f"{file} --issue initech")
    assert [line.split()[-1] for line in out.splitlines()] == ["initech"]
    assert names(file) == ["acme", "globex", "initech"]
    for words in (file, f"{file} --list"):
        assert [line.split()[-1] for line in run(words)[1].splitlines()] == ["acme", "globex", "initech"]
    assert len(run(f"{file} --issue hooli --list")[1].splitlines()) == 4


@pytest.mark.parametrize("file", ["registry.jsonl", "registry.db"])
def test_all_are_issued_or_none(run: Run, file: str) -> None:
    run(f"{file} --issue acme")
    before = Path(file).read_bytes()
    status, _, err = run(f"{file} --issue globex --issue acme --issue initech")
    assert status == 2
    assert "'acme': this name is issued already" in err
    assert names(file) == ["acme"]
    assert Path(file).read_bytes() == before
    status, _, err = run("new.jsonl --issue globex --issue globex")
    assert status == 2
    assert "--issue: 'globex' is given twice" in err
    assert not Path("new.jsonl").exists()


def test_names_come_from_a_file_or_from_standard_input(run: Run) -> None:
    Path("names.txt").write_text("acme\n\n  globex inc \r\n", encoding="utf-8")
    assert run("registry.jsonl --issue-from names.txt --issue hooli")[0] == 0
    assert names("registry.jsonl") == ["hooli", "acme", "globex inc"]
    assert run("registry.jsonl --issue-from -", b"initech\n")[0] == 0
    assert names("registry.jsonl")[-1] == "initech"
    for stdin, fault in ((b"\n \n", "holds no name"), (b"\xff\n", "is not UTF-8 text"), (b"x\nx\n", "given twice")):
        status, _, err = run("registry.jsonl --issue-from -", stdin)
        assert status == 2
        assert fault in err
    assert len(names("registry.jsonl")) == 4


def test_several_are_revoked(run: Run) -> None:
    run("registry.jsonl --issue acme --issue globex --issue initech")
    status, out, _ = run("registry.jsonl --revoke acme --revoke globex")
    assert status == 0
    assert out.count("revoked") == 2
    assert run("registry.jsonl")[1].count("revoked") == 2


def test_a_length_that_the_registry_has_not_is_refused(run: Run) -> None:
    run("registry.jsonl --issue acme --payload-len 16")
    status, _, err = run("registry.jsonl --issue globex --payload-len 32")
    assert status == 2
    assert "--payload-len: registry.jsonl is there already, with payloads of 16 bits" in err


def test_a_claim_that_is_nearly_a_name_is_an_error_that_offers_it(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("registry.jsonl --issue acme --issue globex")
    assert main(["keygen", "key.json"]) == 0
    Path("log.jsonl").write_bytes(b"")
    capsys.readouterr()
    for command in ("verify", "monitor"):
        words = [command, "log.jsonl", "--key", "key.json", "--registry", "registry.jsonl", "--claim", "acm"]
        assert main(words) == 2
        said = capsys.readouterr()
        assert "but there is 'acme'" in said.err
        assert said.out == ""
