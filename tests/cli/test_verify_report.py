"""`agentmark verify --report`: what its options put on a report, and where it is written."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from reports import KEY, SIGNER, TENANTS, write_log
from support import marked_log

from agentmark.cli import main
from agentmark.cli.verify_report import MAX_NOTE_SIZE
from agentmark.report import check_report
from agentmark.report.pdf import BROWSERS

VERIFY = ("verify", "log.jsonl", "--key", "key.json", "--registry", "registry.jsonl")
NAMED = ("--case-number", "4 Ob 127/30", "--author", "Dr. E. Mustermann")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a fresh folder with keys, a registry and a log."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTMARK_KEY", raising=False)
    monkeypatch.delenv("AGENTMARK_BROWSER", raising=False)
    KEY.save("key.json")
    TENANTS.save("registry.jsonl")
    SIGNER.save("signing.json")
    write_log("log.jsonl", marked_log(KEY, steps=40))

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.mark.parametrize("view", [(), ("--for-stranger",)])
def test_case_author_and_note_are_in_page_data_and_signature(run: Run, view: tuple[str, ...]) -> None:
    written = ("--report", "page.html", "--signed", "signed.json", "--signing-key", "signing.json")
    status, out, _ = run(*VERIFY, *NAMED, "--note", "Two days\nlater.", *view, *written, "--json")
    assert status == 0
    printed, signed = json.loads(out), json.loads(Path("signed.json").read_text(encoding="utf-8"))
    for report in (printed, signed["report"]):
        assert (report["case_number"], report["author"], report["note"]) == (NAMED[1], NAMED[3], "Two days\nlater.")
    page = Path("page.html").read_text(encoding="utf-8")
    for said in (NAMED[1], NAMED[3], "Two days", "later."):
        assert said in page
    for name in ("case_number", "author", "note"):
        altered = json.loads(Path("signed.json").read_text(encoding="utf-8"))
        altered["report"][name] = "another"
        assert check_report(altered) is None
    assert "check-report signed.json" in page


def test_a_note_is_taken_from_a_file(run: Run) -> None:
    Path("note.txt").write_text("\nFirst.\nSecond: äöü.\n", encoding="utf-8")
    _, out, _ = run(*VERIFY, "--report", "page.html", "--note", "@note.txt", "--json")
    assert json.loads(out)["note"] == "First.\nSecond: äöü."
    Path("note.txt").write_bytes(b"\xff\xfe")
    status, _, err = run(*VERIFY, "--report", "page.html", "--note", "@note.txt")
    assert (status, "note.txt: is not UTF-8 text" in err) == (2, True)
    Path("note.txt").write_bytes(b"x" * (MAX_NOTE_SIZE + 1))
    assert run(*VERIFY, "--report", "page.html", "--note", "@note.txt")[0] == 2
    assert run(*VERIFY, "--report", "page.html", "--note", "@none.txt")[0] == 2


@pytest.mark.parametrize("option", ["--case-number", "--author", "--note", "--browser"])
def test_what_stands_in_a_report_needs_one(run: Run, option: str) -> None:
    status, _, err = run(*VERIFY, option, "x")
    assert status == 2
    assert f"{option}: goes into a report: give --report, --pdf or --signed" in err


def test_two_outputs_in_one_file_are_refused(run: Run) -> None:
    status, _, err = run(*VERIFY, "--report", "page.html", "--pdf", "./page.html", "--browser", "true")
    assert status == 2
    assert "is named twice" in err
    assert not Path("page.html").exists()


def test_without_a_browser_nothing_is_begun(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    status, out, err = run(*VERIFY, "--report", "page.html", "--pdf", "page.pdf")
    assert (status, out) == (2, "")
    assert "HTML only: no browser was found; open it and print" in err
    assert not Path("page.html").exists(), "refused before the work is done"
    status, _, err = run(*VERIFY, "--pdf", "page.pdf", "--browser", "no-such-browser")
    assert (status, "no-such-browser is not a program" in err) == (2, True)


def test_a_browser_that_fails_leaves_page_and_signature(run: Run) -> None:
    written = ("--report", "page.html", "--signed", "signed.json", "--signing-key", "signing.json")
    status, _, err = run(*VERIFY, *written, "--pdf", "page.pdf", "--browser", "false")
    assert status == 2
    assert "printed nothing" in err
    assert Path("page.html").exists()
    assert Path("signed.json").exists()
    assert not Path("page.pdf").exists()


@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="no Chromium, Chrome or Edge is installed")
def test_a_pdf_is_written(run: Run) -> None:
    status, out, _ = run(*VERIFY, "--pdf", "report.pdf")
    assert status == 0
    assert out.startswith("Attributed to 'acme-eu'")
    assert Path("report.pdf").read_bytes().startswith(b"%PDF")
