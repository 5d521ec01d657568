"""The pages on many sessions: what they say, to whom, how they are read, and that they stay small."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest
from pages import Page, check_inert
from rolls import (
    KEY,
    NAMES,
    PAYLOADS,
    log_of,
    mixed_with,
    registry_of,
    report_on,
    roll_of,
    rows_where,
    three_tenants,
    with_pool,
)

from agentmark.cli import main
from agentmark.keys.signing import SigningKey
from agentmark.report import check_report, report_digest, sign_report
from agentmark.report.charts import CHART_STYLE
from agentmark.report.roll_charts import MOST_BARS, CountRow, count_rows, evidence_bars
from agentmark.report.roll_content import RollReport
from agentmark.report.roll_folder import roll_files
from agentmark.report.roll_identity import identity_reports
from agentmark.report.roll_page import INDEX, MOST_IDENTITIES, render_roll, signed_name
from agentmark.report.roll_pieces import MOST_ROWS
from agentmark.report.signature import SignedReportError
from agentmark.report.style import STYLE
from agentmark.text import spelled_out
from agentmark.verify.correction import FalseDiscovery
from agentmark.verify.roll import By, Roll

SIGNER = SigningKey(bytes(range(200, 232)))
HOSTILE = (
    "<script>alert(1)</script>",
    "</style></table><img src=x onerror=alert(1)>",
    "\"double\" & 'single'",
    "x" * 300,
    "\u202eأمر بالدفع\u202c",
    "nul \0 escape \x1b[31m",
    "../../etc/passwd",
    "ACME",
    "acme",
)


@pytest.fixture(scope="module")
def roll() -> Roll:
    return three_tenants()


@pytest.fixture(scope="module")
def report(roll: Roll) -> RollReport:
    """Three identities, one of them with a group of short sessions, and one session that two share."""
    pooled = with_pool(roll, rows_where(roll, "too short"))
    return report_on(mixed_with(pooled, 0, 3), findings=["a file changed"], passed_over=["readme.txt: no log"])


@pytest.fixture(scope="module")
def pages(report: RollReport) -> dict[str, str]:
    return render_roll(report)


def text_of(page: str) -> str:
    """What stands on it, with a space where a paragraph begins."""
    return " ".join(Page(page.replace("<p>", " <p>")).text.split())


def page_of(report: RollReport, pages: dict[str, str], name: str) -> str:
    return pages[next(part["page"] for part in report["identities"] if part["identity"] == name)]


def test_there_is_an_overview_and_a_page_for_each_identity(report: RollReport, pages: dict[str, str]) -> None:
    assert list(pages) == [INDEX, *[part["page"] for part in report["identities"]]]
    linked = {attributes["href"] for tag, attributes in Page(pages[INDEX]).elements if tag == "a"}
    assert linked == {"#files", *[part["page"] for part in report["identities"]]}
    for name in NAMES:
        assert f"<title>AgentMark report: {name}</title>" in page_of(report, pages, name)
    assert render_roll(report) == pages, "the same bytes again"


def test_the_overview_says_what_came_out(report: RollReport, pages: dict[str, str]) -> None:
    text = text_of(pages[INDEX])
    for said in (
        "9 sessions were judged. 6 are attributed to 3 identities; 2 are too short to name anybody alone, and 2 of "
        "these speak for 1 identity together; 1 holds nothing that this key can read.",
        "The chance that any of the 9 sessions is given a wrong name is at most one in 1 million (1e-06).",
        "Whoever holds the key can write records that carry any identity.",
        "at least one of the short sessions is of this identity; which of them, nobody has shown",
        "1 session holds steps of more than one identity",
        "5 of 253 records were set aside and speak for nobody.",
        "states a key that was not given",
        "agentmark verify logs --key key.json --registry registry.jsonl",
        "a file changed",
        "readme.txt: no log",
        "2030-01-02, 12:00:00 UTC",
        KEY.id,
        report_digest(report),
        "roll.json",
        "The registry holds 3 identities.",
        report["inputs"][0]["sha256"] or "",
    ):
        assert said in text, said
    for row in report["rows"]:
        assert row["name"] in text
        for named in row["named"]:
            assert named["bound"] in text


def test_the_two_promises_are_worded_apart() -> None:
    text = text_of(render_roll(report_on(three_tenants(correction=FalseDiscovery(0.01))))[INDEX])
    assert "Of the names in this report, at most one in 100 (0.01) is expected to be wrong, on average." in text
    assert "not about each" in text
    assert "The chance that any" not in text


def test_the_page_of_an_identity(report: RollReport, pages: dict[str, str]) -> None:
    acme = page_of(report, pages, "acme")
    text = text_of(acme)
    extract = next(extract for extract in identity_reports(report) if extract["who"]["identity"] == "acme")
    for said in (
        extract["sentence"],
        "The chance that any of the 9 sessions is given a wrong name is at most one in 1 million (1e-06).",
        "None of them is proved by itself to be of this identity",
        "3 sessions of those judged are too short alone. That at least one of them is of this identity is shown with "
        "70.0 bits of evidence",
        "Not every step of a session that also holds steps of somebody else is of this identity.",
        extract["command"],
        extract["whole"],
        report_digest(extract),
        "logs/acme/run-0.jsonl",
        "logs/short-0.jsonl",
    ):
        assert said in text, said
    for row in extract["rows"]:
        assert row["bound"] is not None
        assert row["bound"] in text
    assert acme.count('<rect class="bar r"') == 2 * len(extract["rows"]), "each session is a column, on both drawings"
    assert "None of them is proved" not in text_of(page_of(report, pages, "globex"))


def test_no_page_of_an_identity_names_another(roll: Roll) -> None:
    """An attack: whoever writes files, sessions and findings puts the names and payloads of others into them."""
    rows = []
    for row in with_pool(roll, rows_where(roll, "too short")).rows:
        own = next((i for i, name in enumerate(NAMES) if name in row.name), 0)
        other, payload = NAMES[(own + 1) % 3], PAYLOADS[(own + 1) % 3]
        tampering = (f"payload {payload:#x} explains other steps beyond chance", f"copied from {other}")
        files = (*row.files, f"{other.upper()}/{payload:016X}.jsonl")
        rows.append(replace(row, files=files, verdict=replace(row.verdict, tampering=tampering)))
    attacked = replace(with_pool(roll, rows_where(roll, "too short")), rows=tuple(rows))
    report = report_on(
        mixed_with(attacked, 0, 3),
        options=[("--key", f"{name}.json") for name in NAMES],
        provenance={"case_number": "globex v. acme v. initech", "author": "Globex", "note": "acme globex initech"},
        claim="globex",
    )
    files = roll_files(report, signing_key=SIGNER)
    for part in report["identities"]:
        own = str(part["identity"])
        stem = part["page"].removesuffix(".html")
        theirs = {name: content for name, content in files.items() if name.startswith(stem)}
        assert len(theirs) == 3, "the page, its data, and its signed data"
        numbers = {*part["rows"], *part["pooled_rows"]}
        mine = {path for row in report["rows"] if row["number"] in numbers for path in row["files"]}
        for name, content in theirs.items():
            # As a reader sees it, and as it stands in the file.
            said = (content + unescape(content)).lower()
            assert own in said
            for other, payload in zip(NAMES, PAYLOADS, strict=True):
                if other != own:
                    assert other not in said, name
                    assert f"{payload:x}" not in said, name
                    assert str(payload) not in said, name
            for row in report["rows"]:
                for path in set(row["files"]) - mine:
                    assert path.lower() not in said, name


@pytest.mark.parametrize("by", list(By))
def test_hostile_text_stays_text(by: By, tmp_path: Path) -> None:
    """As an identity, a session, a file, a finding, a command, an option, a case, an author, a note and a claim."""
    registry = registry_of([name.replace("\n", " ") for name in HOSTILE])
    logs = [
        (name, [f"logs/{name}", *HOSTILE], log_of(name, seed=i, steps=60, registry=registry))
        for i, name in enumerate(HOSTILE)
    ]
    roll = roll_of(logs, registry=registry, by=by)
    rows = [replace(row, verdict=replace(row.verdict, tampering=HOSTILE)) for row in roll.rows]
    named = {name: HOSTILE[0] for name in ("command", "case_number", "author", "note")}
    report = report_on(
        replace(roll, rows=tuple(rows)),
        provenance=named,
        claim=HOSTILE[0],
        claim_taken_as=HOSTILE[1],
        options=[HOSTILE],
        findings=HOSTILE,
        passed_over=HOSTILE,
    )
    assert len(report["identities"]) == len(HOSTILE)
    files = roll_files(report)
    links = {"#files", *files}
    for name, content in files.items():
        assert re.fullmatch(r"[a-z0-9-]+\.(html|json)", name)
        (tmp_path / name).write_text(content, encoding="utf-8")
        if name.endswith(".html"):
            taken = check_inert(content, links=links)
            assert [tag for tag, _ in taken.elements].count("title") == 1 + content.count("<svg")
            assert len(content) < 200_000
        else:
            json.loads(content)


def test_pages_have_headings_table_heads_and_pictures_with_words(pages: dict[str, str]) -> None:
    for page in pages.values():
        taken = check_inert(page, links={"#files", *pages})
        tags = [tag for tag, _ in taken.elements]
        levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(later - earlier <= 1 for earlier, later in pairwise(levels)), "no level is left out"
        assert taken.elements[0] == ("html", {"lang": "en"})
        assert "main" in tags
        heads = [attributes for tag, attributes in taken.elements if tag == "th"]
        assert heads
        assert all(attributes.get("scope") == "col" for attributes in heads)
        assert tags.count("svg") > 0
        drawings = re.findall(r"<svg [^>]*>(.{7})", page)
        assert set(drawings) == {"<title>"}, "the first thing in a drawing is what it shows"
        assert page.count('role="img"') == tags.count("svg")


def test_words_can_be_read_in_light_and_dark() -> None:
    """WCAG 2.1, 1.4.3: a contrast of 4.5 between text and what it stands on; 3 for what is drawn (1.4.11)."""
    dark = "@media (prefers-color-scheme: dark)"
    before, after = CHART_STYLE.split(dark)
    light = dict(re.findall(r"--(\w+):(#\w+)", before))
    night = light | dict(re.findall(r"--(\w+):(#\w+)", after.split("}")[0]))
    paper = light | dict(re.findall(r"--(\w+):(#\w+)", STYLE.split("@media print")[1]))
    for colours in (light, night, paper):
        for ground in ("paper", "panel"):
            for words in ("ink", "soft", "f", "r", "bad", "warn"):
                assert contrast(colours[words], colours[ground]) >= 4.5, (words, ground, colours[words])
            assert contrast(colours["base"], colours[ground]) >= 3


def contrast(first: str, second: str) -> float:
    brighter, darker = sorted([luminance(first), luminance(second)], reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_thousands_of_rows_make_a_page_that_opens(roll: Roll) -> None:
    named = roll.rows[0]
    rows = tuple([replace(named, name=f"s{i}", files=(f"f{i}.jsonl",)) for i in range(2_000)])
    many = replace(roll, rows=rows, pools=())
    report = report_on(many)
    pages = render_roll(report)
    assert len(pages) == 2
    for page in pages.values():
        assert f"{2_000 - MOST_ROWS:,} further sessions not listed here" in page
        assert len(page) < 600_000
        assert page.count("<rect") < 4 * MOST_BARS
    assert "roll.json" in pages[INDEX]
    assert len(json.loads(roll_files(report)["roll.json"])["rows"]) == 2_000


def test_hundreds_of_identities_are_bounded_on_the_overview(roll: Roll) -> None:
    row = roll.rows[0]
    rows = []
    for i in range(300):
        found = replace(row.verdict.found[0], payload=i, identity=f"tenant-{i:03}")
        rows.append(replace(row, name=f"s{i}", verdict=replace(row.verdict, found=(found,))))
    pages = render_roll(report_on(replace(roll, rows=tuple(rows), pools=())))
    assert len(pages) == 301
    assert f"{300 - MOST_IDENTITIES} further identities not listed here" in pages[INDEX]
    assert "288 more identities" in pages[INDEX]


def test_nobody_one_and_files() -> None:
    nobody = render_roll(report_on(roll_of([("s", ["a.jsonl"], log_of("acme", seed=1, steps=3))])))
    assert list(nobody) == [INDEX]
    text = text_of(nobody[INDEX])
    assert "1 session was judged. Nobody is named. 1 is too short to name anybody alone." in text
    assert "nobody: no identity is named in this report" in text
    assert "acme" not in text
    one = render_roll(report_on(roll_of([("a.jsonl", ["a.jsonl"], log_of("acme", seed=1))], by=By.FILE)))
    assert list(one) == [INDEX, "identity-01-acme.html"]
    assert "1 file was judged. 1 is attributed to 1 identity." in text_of(one[INDEX])
    assert "1 file is attributed to 'acme'" in text_of(one["identity-01-acme.html"])
    assert "session" not in text_of(one["identity-01-acme.html"]).split("Words used here")[0]
    none = render_roll(report_on(roll_of([])))
    assert "There was no session to judge." in text_of(none[INDEX])


def test_an_identity_that_is_named_in_a_group_only(roll: Roll) -> None:
    short = replace(roll, rows=tuple([roll.rows[i] for i in rows_where(roll, "too short")]))
    report = report_on(with_pool(short, [0, 1]))
    pages = render_roll(report)
    page = pages["identity-01-acme.html"]
    text = text_of(page)
    assert "2 sessions too short to be judged alone speak for 'acme'" in text
    assert "No session is named by itself." in text
    assert "<svg" not in page
    assert "is attributed to" not in text
    assert "0 are attributed" not in text_of(pages[INDEX])


def test_a_command_of_hundreds_of_files_is_short_on_the_page(roll: Roll) -> None:
    command = " ".join(["agentmark verify", *[f"logs/{i:04}.jsonl" for i in range(300)], "--key key.json"])
    report = report_on(roll, provenance={"command": command})
    page = render_roll(report)[INDEX]
    assert "agentmark verify FOLDER --key key.json --registry registry.jsonl" in text_of(page)
    assert "logs/0299.jsonl" not in page
    assert json.loads(roll_files(report)["roll.json"])["command"] == command


def test_copies_damage_and_the_work_limit_are_told_apart(roll: Roll) -> None:
    first = roll.rows[0]
    cut = replace(first.verdict, tampering=("a gap",), findings=(), candidate=None, found=(), potential_bits=1e3)
    rows = (replace(first, shared_contexts=3, verdict=replace(cut, work_spent=True)), *roll.rows[1:])
    text = text_of(render_roll(report_on(replace(roll, rows=rows)))[INDEX])
    damage, limit = text.split("Where the work limit ended the search")
    assert "a gap" in damage
    assert "copies of 3 records stand under another session as well" in damage
    assert "was cut short by the work limit" in limit
    assert "Where the work limit" not in text_of(render_roll(report_on(roll))[INDEX])


# Pictures ----------------------------------------------------------------------------------------------------------


def test_one_session_far_above_the_rest_leaves_them_visible() -> None:
    drawn = evidence_bars([(30.0, 25.0), (5000.0, 25.0)], noun="session")
    heights = [float(height) for height in re.findall(r'<rect class="bar r"[^>]* height="([\d.]+)"', drawn)]
    assert len(heights) == 4
    assert min(heights) > 25
    assert "1 session higher than the picture" in drawn
    assert "30.0 to 5,000.0 bits, where 25.0 were needed" in drawn


def test_thousands_of_columns_are_thinned_and_keep_the_weakest() -> None:
    drawn = evidence_bars([(30.0 + i, 25.0) for i in range(5000)], noun="session")
    assert drawn.count("<rect") <= 2 * MOST_BARS
    assert "of 5,000 drawn, evenly taken, the weakest among them" in drawn
    lowest = min(float(height) for height in re.findall(r' height="([\d.]+)"', drawn))
    alone = re.findall(r' height="([\d.]+)"', evidence_bars([(30.0, 25.0), (5029.0, 25.0)], noun="session"))
    assert lowest == min(map(float, alone))


def test_the_line_is_named_beside_the_picture_and_not_over_it() -> None:
    drawn = evidence_bars([(30.0, 25.0), (40.0, 26.5)], noun="session")
    for drawing in re.findall(r"<svg.*?</svg>", drawn):
        words = re.findall(r"<text[^>]*>([^<]*)", drawing)
        assert words
        assert not [word for word in words if "25.0" in word or "took" in word]
    assert "what it took to be named: 25.0 to 26.5 bits" in drawn


def test_a_single_one_of_many_is_seen() -> None:
    drawn = count_rows([CountRow(label="x", said="1", first=1, second=0, css_class="r")], 100_000, title="t")
    assert re.findall(r'<rect class="bar r"[^>]* width="([\d.]+)"', drawn) == ["3.0", "3.0"]


@pytest.mark.parametrize("label", [*HOSTILE, "漢字" * 40])
def test_long_labels_are_cut_where_the_count_begins(label: str) -> None:
    drawn = count_rows(
        [CountRow(label=label, said="12, and 3 in a group", first=1, second=0, css_class="r")], 1, title="t"
    )
    labels = re.findall(r'<text class="label"[^>]*>([^<]*)</text>', drawn)
    assert len(labels) == 2
    wide, narrow = (unescape(shown) for shown in labels)
    assert len(narrow) <= len(wide) <= 70
    letter = 8 if spelled_out(label).isascii() else 16
    assert letter * len(narrow) + 8 * 20 <= 340, "they fit beside each other on a phone"


# Signatures --------------------------------------------------------------------------------------------------------


def test_every_kind_is_signed_and_checked(report: RollReport) -> None:
    files = roll_files(report, signing_key=SIGNER)
    signed = [name for name in files if name.endswith(".signed.json")]
    assert len(signed) == 4
    for name in signed:
        content = json.loads(files[name])
        assert check_report(content, public_key=SIGNER.public_key) == SIGNER.public_key
        page = files[INDEX if name.startswith("roll") else name.replace(".signed.json", ".html")]
        assert f"agentmark check-report {name} --public-key {SIGNER.public_key}" in text_of(page)
        assert report_digest(content["report"]) in page
        for member in content["report"]:
            altered = json.loads(files[name])
            altered["report"][member] = "changed"
            kinds = ("agentmark_roll", "agentmark_roll_identity")
            if member in kinds:
                with pytest.raises(SignedReportError, match="the version that this build reads"):
                    check_report(altered)
            else:
                assert check_report(altered) is None, member
    assert "came without a signature" in text_of(roll_files(report)[INDEX])


def test_what_is_signed_must_be_such_a_report(report: RollReport) -> None:
    for change in ({"rows": [{}]}, {"extra": 1}, {"by": 1}):
        with pytest.raises(SignedReportError, match="report"):
            check_report(json.loads(json.dumps(sign_report({**report, **change}, SIGNER))))  # type: ignore[typeddict-item]


def test_the_command_checks_them_and_writes_their_pages(
    report: RollReport, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = roll_files(report, signing_key=SIGNER)
    run: Callable[[list[str]], int] = main
    acme = next(part["page"] for part in report["identities"] if part["identity"] == "acme")
    for name, sentence, page in (
        ("roll.signed.json", report["sentence"], INDEX),
        (signed_name(acme), "attributed to 'acme'", acme),
    ):
        (tmp_path / name).write_text(files[name], encoding="utf-8")
        written = tmp_path / "new.html"
        arguments = ["check-report", str(tmp_path / name), "--public-key", SIGNER.public_key, "--page", str(written)]
        assert run(arguments) == 0
        assert sentence in capsys.readouterr().out
        assert written.read_text(encoding="utf-8") == files[page], "the page anew, from what is signed"
