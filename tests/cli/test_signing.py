"""`agentmark check-report`: an altered report is not one by another key, and what to do is said."""

import json
from pathlib import Path
from typing import Any

import pytest
from reports import KEY, SIGNER, report_on
from support import marked_log

from agentmark.cli import main
from agentmark.keys.signing import SigningKey
from agentmark.report import SignedFile, render_report, sign_report

OTHER = SigningKey(bytes(range(150, 182)))


@pytest.fixture
def signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    content: dict[str, Any] = json.loads(json.dumps(sign_report(report_on(marked_log(KEY, steps=30)), SIGNER)))
    return content


def check(content: Any, *options: str) -> int:
    Path("signed.json").write_text(json.dumps(content), encoding="utf-8")
    return main(["check-report", "signed.json", *options])


@pytest.mark.parametrize("key", [(), ("--public-key", SIGNER.public_key)])
@pytest.mark.parametrize("part", ["report", "signature"])
def test_an_altered_report_is_called_that(
    signed: dict[str, Any], key: tuple[str, ...], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if part == "report":
        signed["report"]["verdict"]["sentence"] = "Attributed to the neighbour."
    else:
        signed["signature"]["value"] = "00" * 64
    assert check(signed, *key) == 1
    said = capsys.readouterr().out
    assert said.startswith("ALTERED: ")
    assert "Ask its author for the file again" in said
    assert "neighbour" not in said


def test_a_report_by_another_key_is_intact_and_not_by_this_key(
    signed: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(signed, "--public-key", OTHER.public_key) == 1
    said = capsys.readouterr().out
    assert said.startswith("NOT BY THIS KEY: ")
    assert SIGNER.public_key in said
    assert "ALTERED" not in said
    assert "Attributed" not in said


def test_where_neither_can_be_known_it_says_so(signed: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    signed["report"]["made_at"] = "2031"
    assert check(signed, "--public-key", OTHER.public_key) == 1
    said = capsys.readouterr().out
    assert said.startswith("NOT SIGNED: ")
    assert "altered or made up" in said


def test_a_report_of_this_key_that_names_another_is_altered(
    signed: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    signed["signature"]["public_key"] = OTHER.public_key
    assert check(signed, "--public-key", SIGNER.public_key) == 1
    assert capsys.readouterr().out.startswith("ALTERED: ")


def test_a_key_in_the_file_that_is_none_prints_nothing_that_steers(
    signed: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    signed["signature"]["public_key"] = "\x1b[2J\nSigned by the court." + "x" * 9999
    assert check(signed, "--public-key", SIGNER.public_key) == 1
    said = capsys.readouterr().out
    assert len(said.splitlines()) == 1
    assert len(said) < 1000
    assert said.strip().isprintable()


def test_the_page_is_written_anew_from_what_is_signed(
    signed: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(signed, "--public-key", SIGNER.public_key, "--page", "page.html") == 0
    expected = render_report(signed["report"], signed=SignedFile(name="signed.json", public_key=SIGNER.public_key))
    assert Path("page.html").read_text(encoding="utf-8") == expected
    signed["report"]["author"] = "somebody else"
    assert check(signed, "--public-key", SIGNER.public_key, "--page", "altered.html") == 1
    assert not Path("altered.html").exists(), "of an altered report there is no page"
    assert main(["check-report", "page.html", "--page", "page.html"]) == 2


def test_the_signed_report_is_not_overwritten_by_its_page(signed: dict[str, Any]) -> None:
    assert check(signed, "--page", "signed.json") == 2
    assert json.loads(Path("signed.json").read_text(encoding="utf-8")) == signed
