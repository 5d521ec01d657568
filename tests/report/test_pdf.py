"""PDF through the real browser of this machine, and how the page looks in it; skipped where there is none."""

import io
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdf
import pytest
from reports import KEY, NOON, SIGNER, STRANGER, parsed, report_on, with_foreign_steps
from support import marked_log

from agentmark import Identity, Registry, Verifier
from agentmark.report import (
    PdfError,
    Provenance,
    SignedFile,
    build_stranger_report,
    describe_chain,
    find_browser,
    print_to_pdf,
    render_report,
)
from agentmark.report.first_page import FILES_SHOWN, IDENTITIES_SHOWN
from agentmark.report.provenance import InputFile

try:
    BROWSER: str | None = find_browser()
except PdfError:
    BROWSER = None
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium, Chrome or Edge is installed")

LONG_NAME = "Wide Names & Sons of Wagga Wagga " * 10
A4_POINTS = (595, 842)
END_OF_FIRST_PAGE = "Files that differ in anything have different ones."


def full_report() -> Any:
    """As much as a first page can have: names too long for it, many files, identities, reasons and signs."""
    records = with_foreign_steps(marked_log(KEY, steps=60), 10)
    records += [record.with_enforced(False) for record in marked_log(KEY, steps=2, seed=3)]
    records += [*records[:2], *marked_log(STRANGER, steps=2, seed=4)]
    registry = Registry(16, [Identity(LONG_NAME[:60].strip(), 0x5EED, revoked_at="2029-01-01T00:00:00Z")])
    file = InputFile(kind="registry", path=LONG_NAME, size=10**12, sha256="ab" * 32)
    report = report_on(
        records,
        registry=registry,
        findings=["a sign"],
        passed_over=["a place"],
        chains=[describe_chain("log.jsonl", records, [])],
        provenance={
            "inputs": [file] * (FILES_SHOWN + 9),
            "key_ids": ["0123456789abcdef"] * 9,
            "case_number": LONG_NAME,
            "author": LONG_NAME,
            "note": LONG_NAME * 9,
        },
    )
    [found] = report["verdict"]["found"]
    report["verdict"]["found"] = [found] * (IDENTITIES_SHOWN + 5)
    report["verdict"]["work_note"] = "the search was cut short"
    report["verdict"]["outcomes"] |= {"unmarked": 5, "other key": 9, "weights not logged": 3, "conflicting copies": 2}
    report["question"]["claim"] = LONG_NAME
    return report


def stranger_report() -> Any:
    view = Verifier(KEY).verify(marked_log(KEY)).for_stranger()
    provenance = Provenance(made_at=NOON, command="agentmark verify log.jsonl")
    return build_stranger_report(view, noise_rates=(0.0,), provenance=provenance)


def public_report(made: Callable[[], Any]) -> Any:
    """The same as a claim in public mode, by a tenant with a long name: the page says more."""
    report = made()
    tenant = {"name": LONG_NAME, "key_id": KEY.id, "registered_at": "2030-01-02T12:00:00+00:00", "revoked_at": None}
    report["rests_on"] = {
        "statement": "claimed by its holder",
        "sentence": "Holds against the holder too. " * 12,
        "keys_registered": 16,
        "tenants": [tenant],
    }
    return report


REPORTS: dict[str, Any] = {
    "public": lambda: public_report(lambda: report_on(marked_log(KEY))),
    "full and public": lambda: public_report(full_report),
    "clean": lambda: report_on(marked_log(KEY)),
    "too short": lambda: report_on(marked_log(KEY, steps=7)),
    "nothing usable": lambda: report_on([]),
    "full": full_report,
    "stranger": stranger_report,
}


def sheets(pdf: bytes) -> list[str]:
    return [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(pdf)).pages]


def letters(text: str) -> str:
    """Lines break elsewhere on paper, and what stands where is not asked here."""
    return re.sub(r"\s+", "", text)


@needs_browser
@pytest.mark.parametrize("name", REPORTS)
def test_the_first_page_is_one_sheet_of_a4(name: str) -> None:
    report = REPORTS[name]()
    pdf = print_to_pdf(render_report(report, unfolded=True))
    first, second, *_ = sheets(pdf)
    assert letters(END_OF_FIRST_PAGE) in letters(first), "all of it is on the first sheet"
    assert letters("How to check it") not in letters(first.replace("see “How to check it”", ""))
    assert letters("How to check it") in letters(second)
    for page in pypdf.PdfReader(io.BytesIO(pdf)).pages:
        assert tuple(round(float(side)) for side in page.mediabox[2:]) == A4_POINTS


@needs_browser
def test_the_pdf_holds_what_the_page_holds() -> None:
    """Every text of the page, also of steps that a screen folds away, and nothing that a browser adds."""
    report = report_on(marked_log(KEY, steps=230), findings=["a finding of mine"])
    signed = SignedFile(name="signed.json", public_key=SIGNER.public_key)
    found = sheets(print_to_pdf(render_report(report, signed=signed, unfolded=True)))
    printed = letters(" ".join(found))
    taken = parsed(render_report(report, signed=signed))
    assert "Records 201 to 230" in " ".join(taken.text), "folded on a screen"
    # Charts are drawn twice, of which one shows; their texts are numbers and labels that stand in the page as well.
    whole = render_report(report, signed=signed, unfolded=True)
    page = re.sub(r"<svg.*?</svg>|<style>.*?</style>|<title>.*?</title>", "", whole, flags=re.DOTALL)
    missing = [text for text in parsed(page).text if letters(text) not in printed]
    assert missing == []
    assert f"sheet 1 of {len(found)}" in found[0]
    for added in ("file://", "page.html", "/tmp"):
        assert added not in " ".join(found)


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", REPORTS)
def test_nothing_scrolls_sideways(name: str, width: int, tmp_path: Path) -> None:
    """The page stands in a frame of that width, and the frame's owner measures it and the text of its charts."""
    page = render_report(REPORTS[name]())
    holder = tmp_path / "holder.html"
    quoted = json.dumps(page).replace("</", "<\\/")
    holder.write_text(
        f"<!doctype html><meta charset=utf-8><iframe id=f style='width:{width}px;height:800px;border:0'></iframe>"
        "<script>f.onload = () => { const d = f.contentDocument;"
        "const shown = [...d.querySelectorAll('svg')].filter(s => s.clientWidth);"
        "const sizes = shown.map(s => 12 * s.getBoundingClientRect().width / s.viewBox.baseVal.width);"
        "document.title = JSON.stringify({width: d.documentElement.scrollWidth, sizes}); };"
        f"f.srcdoc = {quoted};</script>",
        encoding="utf-8",
    )
    assert BROWSER is not None
    settings = "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync --disable-background-networking"
    more = [f"--user-data-dir={tmp_path / 'profile'}", "--disable-component-update", "--virtual-time-budget=5000"]
    command = [BROWSER, *settings.split(), *more, "--dump-dom", holder.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    title = re.search(r"<title>(\{.*?\})</title>", shown)
    assert title is not None, "the frame was measured"
    measured = json.loads(title[1].replace("&quot;", '"'))
    assert measured["width"] <= width
    # The smallest text of a chart has 12 units.
    assert all(size >= 12 for size in measured["sizes"]), measured["sizes"]
    assert len(measured["sizes"]) == page.count("<svg") // 2


def test_without_a_browser_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AGENTMARK_BROWSER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PdfError, match="HTML only: no browser was found; open it and print"):
        find_browser()
    monkeypatch.setenv("AGENTMARK_BROWSER", "no-such-browser")
    with pytest.raises(PdfError, match="no-such-browser is not a program that can be run"):
        find_browser()


def test_a_browser_is_named_by_argument_before_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "my-browser"
    program.write_text("#!/bin/sh\necho 'cannot open display' >&2; exit 5\n")
    program.chmod(0o700)
    monkeypatch.setenv("AGENTMARK_BROWSER", "no-such-browser")
    assert find_browser(str(program)) == str(program)
    with pytest.raises(PdfError, match=r"printed nothing \(exit status 5\): cannot open display"):
        print_to_pdf("<p>page", browser=str(program))
