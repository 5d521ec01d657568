"""The report on many sessions as data: what it counts, whom it names, and whom the extract of an identity does not."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rolls import (
    KEY,
    NAMES,
    PAYLOADS,
    TENANTS,
    log_of,
    mixed_with,
    registry_of,
    report_on,
    roll_of,
    rows_where,
    three_tenants,
    with_pool,
)

from agentmark.core.canonical import canonical_bytes
from agentmark.errors import SettingError
from agentmark.report.roll_content import FALSE_DISCOVERY, FAMILYWISE, IdentityReport, RollReport
from agentmark.report.roll_identity import FILES_IN_COMMAND, Parties, identity_reports
from agentmark.report.shape import shape_fault
from agentmark.verify.correction import FalseDiscovery
from agentmark.verify.roll import By, Roll

HOSTILE = (
    "../../etc/passwd",
    "x" * 300,
    "ACME",
    "acme",
    "<script>alert(1)</script>",
    "\u202eevil\u202c",
    "شركة المثال",
    "CON",
)
# The first row of globex among those of `three_tenants`, which stand in the order of their names.
GLOBEX = 3


@pytest.fixture(scope="module")
def roll() -> Roll:
    return three_tenants()


@pytest.fixture(scope="module")
def pooled(roll: Roll) -> Roll:
    return with_pool(roll, rows_where(roll, "too short"))


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from [name, *strings_in(item)]
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_in(item)


def floats_in(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from floats_in(item)


def extract_of(report: RollReport, name: str) -> IdentityReport:
    return next(extract for extract in identity_reports(report) if extract["who"]["identity"] == name)


def test_rows_are_counted_where_they_stand(pooled: Roll) -> None:
    report = report_on(pooled)
    summary = report["summary"]
    assert summary["standings"] == {"attributed": 6, "nothing usable": 1, "too short": 2}
    assert (summary["rows"], summary["pooled"], summary["identities"]) == (9, 2, 3)
    assert summary["records"] == sum(row["records"] for row in report["rows"])
    assert sum(summary["outcomes"].values()) == summary["records"]
    assert all(row["used"] + row["set_aside"] == row["records"] for row in report["rows"])
    assert report["correction"]["kind"] == FAMILYWISE
    assert report["correction"]["questions"] == pooled.questions
    by_number = {row["number"]: row for row in report["rows"]}
    for part in report["identities"]:
        assert len(part["rows"]) == 2
        for number in part["rows"]:
            assert [named["identity"] for named in by_number[number]["named"]] == [part["number"]]
            assert str(part["identity"]) in by_number[number]["name"], "no session has a wrong name"
    acme = next(part for part in report["identities"] if part["identity"] == "acme")
    assert [by_number[number]["standing"] for number in acme["pooled_rows"]] == ["too short", "too short"]


def test_the_bar_is_what_the_bound_takes(roll: Roll) -> None:
    """Evidence at the level exactly would have a bound equal to the threshold."""
    for row in report_on(roll)["rows"]:
        for named in row["named"]:
            above = float(named["evidence_bits"]) - float(named["level_bits"])
            assert above > 0
            assert float(named["bound"]) == pytest.approx(1e-6 * 2**-above, rel=0.11)


def test_reports_are_canonical_and_of_their_shape(pooled: Roll) -> None:
    report = report_on(pooled, findings=["a file changed"], passed_over=["readme.txt: no log"])
    assert shape_fault(report, RollReport, "report") is None
    assert list(floats_in(report)) == []
    assert json.loads(json.dumps(report)) == json.loads(canonical_bytes(report))
    assert canonical_bytes(report) == canonical_bytes(
        report_on(pooled, findings=["a file changed"], passed_over=["readme.txt: no log"])
    )
    for extract in identity_reports(report):
        assert shape_fault(extract, IdentityReport, "report") is None
        assert list(floats_in(extract)) == []
        canonical_bytes(extract)


def test_case_author_and_note_are_stated(roll: Roll) -> None:
    named = {"case_number": "2030-117", "author": "A. Auditor", "note": "first\nsecond"}
    report = report_on(roll, provenance=named)
    assert {name: report[name] for name in named} == named  # type: ignore[literal-required]
    extract = extract_of(report, "acme")
    assert (extract["case_number"], extract["author"]) == ("2030-117", "A. Auditor")
    assert "first" not in json.dumps(extract), "a note is about the whole, and may speak of anybody"


def test_nobody_is_named_who_is_not_accepted() -> None:
    """Sessions that are too short, one by one: the right name would be the best candidate in each."""
    logs = [(f"s{i}", [f"{i}.jsonl"], log_of("acme", seed=i, steps=3)) for i in range(2)]
    roll = roll_of(logs)
    assert not roll.attributed
    assert {row.verdict.candidate for row in roll.rows} != {None}, "there is somebody to keep quiet about"
    report = report_on(roll)
    assert report["identities"] == []
    assert identity_reports(report) == []
    said = json.dumps(report).lower()
    for name, payload in zip(NAMES, PAYLOADS, strict=True):
        assert name not in said
        assert f"{payload:x}" not in said


def test_strangers_get_no_such_report(roll: Roll) -> None:
    with pytest.raises(SettingError, match="for the holder of the key"):
        report_on(roll, for_stranger=True)


def test_the_false_discovery_rate_is_told_from_the_other_promise(roll: Roll) -> None:
    report = report_on(three_tenants(correction=FalseDiscovery(0.01)))
    assert (report["correction"]["kind"], report["correction"]["level"]) == (FALSE_DISCOVERY, "0.01")
    assert report["correction"]["explained"] != report_on(roll)["correction"]["explained"]


def test_file_names_that_are_not_utf_8_are_as_the_list_of_files_has_them(roll: Roll) -> None:
    odd = os.fsdecode(b"logs/\xff.jsonl")
    rows = (replace(roll.rows[0], name=odd, files=(odd,)), *roll.rows[1:])
    report = report_on(replace(roll, by=By.FILE, rows=rows))
    part = report["rows"][0]
    assert (part["name"], part["files"]) == ("logs/\\xff.jsonl", ["logs/\\xff.jsonl"])
    assert part["files"][0] in [file["path"] for file in report["inputs"]]
    canonical_bytes(report)


def test_names_of_pages_are_safe_and_unique() -> None:
    """Also where a disk does not tell letters by their case."""
    registry = registry_of(HOSTILE)
    logs = [
        (f"s{i}", [f"{i}.jsonl"], log_of(name, seed=i, steps=60, registry=registry)) for i, name in enumerate(HOSTILE)
    ]
    report = report_on(roll_of(logs, registry=registry))
    assert {part["identity"] for part in report["identities"]} == set(HOSTILE)
    pages = [part["page"] for part in report["identities"]]
    assert all(re.fullmatch(r"identity-\d\d(-[a-z0-9]+)*\.html", page) and len(page) < 60 for page in pages), pages
    assert len({page.lower() for page in pages}) == len(HOSTILE)
    assert sum("acme" in page for page in pages) == 2


# The extract of an identity ---------------------------------------------------------------------------------------


def test_the_extract_says_what_the_whole_says_of_it(pooled: Roll) -> None:
    over = [f"{path}:3: not JSON" for path in ("logs/acme/run-0.jsonl", "logs/globex/run-0.jsonl", "logs/acme/run-9")]
    report = report_on(pooled, passed_over=over)
    extract = extract_of(report, "acme")
    assert extract["passed_over"] == over[:1]
    part = next(part for part in report["identities"] if part["identity"] == "acme")
    assert [row["number"] for row in extract["rows"]] == part["rows"]
    assert [row["number"] for row in extract["pooled"]] == part["pooled_rows"]
    assert [file["path"] for file in extract["inputs"]] == [
        file["path"] for file in report["inputs"] if "acme" in file["path"] or "short" in file["path"]
    ]
    assert extract["keys"] == [KEY.id]
    assert all(row["evidence_bits"] is None for row in extract["pooled"]), "alone it says nothing that would count"
    assert extract["pools"][0]["among"] == 3
    assert extract["left_out"] == 0
    assert extract["command"] == (
        "agentmark verify logs/acme/run-0.jsonl logs/acme/run-1.jsonl logs/short-0.jsonl logs/short-1.jsonl "
        "--key key.json --registry registry.jsonl"
    )
    assert "2 sessions are attributed to 'acme'" in extract["sentence"]
    assert "2 sessions too short to be judged alone speak for it in a group" in extract["sentence"]


def attacked(roll: Roll) -> RollReport:
    """A report in which whatever others can write names somebody else: files, sessions, options, findings, the case."""
    rows = []
    for i, row in enumerate(roll.rows):
        own = next((k for k, name in enumerate(NAMES) if name in row.name), 0)
        other, payload = NAMES[(own + 1) % 3], PAYLOADS[(own + 1) % 3]
        tampering = (f"payload {payload:#x} explains other steps", f"session {other.upper()}-7 was copied", "a gap")
        rows.append(
            replace(
                row,
                name=f"for {other.capitalize()} ({i})",
                files=(f"logs/{other}/{i}.jsonl", f"plain-{i}.jsonl", f"logs/{payload:016x}.jsonl"),
                verdict=replace(row.verdict, tampering=tampering),
            )
        )
    return report_on(
        mixed_with(replace(roll, rows=tuple(rows)), 0, GLOBEX),
        options=[
            ("--key", "globex.json"),
            ("--key", "ACME-key.json"),
            ("--key", "initech/k.json"),
            ("--skip-bad",),
        ],
        provenance={"case_number": "Globex v. Initech", "note": "acme, globex and initech"},
        findings=["globex: the chain is broken"],
        passed_over=["logs/initech/readme.txt"],
    )


def test_an_extract_names_nobody_else(pooled: Roll) -> None:
    report = attacked(pooled)
    for extract in identity_reports(report):
        own = str(extract["who"]["identity"])
        said = "\n".join(strings_in(extract)).lower()
        for name, payload in zip(NAMES, PAYLOADS, strict=True):
            if name != own:
                assert name not in said
                assert f"{payload:x}" not in said
        mine = {path for row in report["rows"] for path in row["files"] if row["number"] in _numbers(extract)}
        foreign = {path for row in report["rows"] for path in row["files"]} - mine
        assert foreign
        assert not [path for path in foreign if path.lower() in said]
        assert "registry.jsonl" not in [file["path"] for file in extract["inputs"]], "the list of all others"
        assert extract["left_out"] > 0
        assert "--skip-bad" in extract["command"], "what names nobody stays"
        assert extract["folder"]
        assert any("plain-" in file["path"] for file in extract["inputs"])
        assert "a gap" in said


def _numbers(extract: IdentityReport) -> set[int]:
    return {row["number"] for row in [*extract["rows"], *extract["pooled"]]}


def test_a_session_of_several_is_in_the_extract_of_each(roll: Roll) -> None:
    report = report_on(mixed_with(roll, 0, GLOBEX))
    steps = roll.rows[0].verdict.found[0].at_least_steps
    for name, at_least in (("acme", steps), ("globex", 7)):
        rows = {row["number"]: row for row in extract_of(report, name)["rows"]}
        assert rows[1]["mixed"]
        assert rows[1]["at_least_steps"] == at_least
        assert [row["mixed"] for row in rows.values()].count(True) == 1


def test_sessions_of_others_are_not_in_the_command() -> None:
    logs = [(f"s{i}", ["both.jsonl"], log_of(name, seed=i)) for i, name in enumerate(("acme", "globex"))]
    report = report_on(roll_of(logs), options=[("--session=s0",), ("--session=s1",), ("--skip-bad",)])
    commands = [extract_of(report, name)["command"] for name in ("acme", "globex")]
    assert commands == [f"agentmark verify both.jsonl --session=s{i} --skip-bad" for i in range(2)]


def test_sessions_of_others_are_not_in_the_command_by_their_beginnings_either() -> None:
    logs = [(f"{i}-run", ["both.jsonl"], log_of(name, seed=i)) for i, name in enumerate(("acme", "globex"))]
    report = report_on(roll_of(logs), options=[("--session=0",), ("--session=1-r",)])
    commands = [extract_of(report, name)["command"] for name in ("acme", "globex")]
    assert commands == [f"agentmark verify both.jsonl --session={chosen}" for chosen in ("0", "1-r")]


def test_a_key_id_that_names_somebody_else_is_left_out(roll: Roll) -> None:
    """Read with any key, records may state whatever they like."""
    report = report_on(mixed_with(roll, 0, GLOBEX))
    report["rows"][0]["key_ids"] = ["globex-2026", KEY.id]
    assert extract_of(report, "acme")["keys"] == [KEY.id, "a key (left out: it names another party)"]


def test_many_files_are_a_folder_in_the_command() -> None:
    files = [f"part-{i}.jsonl" for i in range(FILES_IN_COMMAND + 1)]
    extract = extract_of(report_on(roll_of([("s", files, log_of("acme", seed=1))])), "acme")
    assert extract["command"] == "agentmark verify FOLDER --key key.json --registry registry.jsonl"
    assert extract["folder"]
    few = extract_of(report_on(roll_of([("s", ["-x y.jsonl"], log_of("acme", seed=1))])), "acme")
    assert few["command"].startswith("agentmark verify './-x y.jsonl' --key"), "a file is no option"


@pytest.mark.parametrize(
    ("names", "text", "named"),
    [
        (("acme", "globex"), "logs/globex-1.jsonl", True),
        (("acme", "globex"), "logs/GlobEx_1.jsonl", True),
        (("acme", "globex"), "myglobexlog", True),
        (("acme", "globex"), "logs/acme-1.jsonl", False),
        (("acme", "globex"), "logs/glob-ex.jsonl", False),
        (("acme", "globex corp"), "globex-corp.jsonl", True),
        (("acme", "globex corp"), "globexcorp.jsonl", True),
        (("acme-eu", "acme"), "acme-eu/1.jsonl", False),
        (("acme-eu", "acme"), "acme_eu/1.jsonl", False),
        (("acme-eu", "acme"), "acme/1.jsonl", True),
        (("acme", "acme-eu"), "acme-eu/1.jsonl", True),
        (("acme", "acme-eu"), "acme/1.jsonl", False),
        (("ACME", "acme"), "ACME.jsonl", False),
        (("ACME", "acme"), "acme.jsonl", True),
        (("acme", "a"), "logs/data.jsonl", False),
        (("acme", "a"), "logs/a/1.jsonl", True),
        (("acme", "müller"), "mu\u0308ller.jsonl", True),
        (("acme", "漢字商店"), "logs/漢字商店.jsonl", True),
        (("acme", "-"), "logs/run-1.jsonl", False),
        (("acme", "-"), "a note on - and others", True),
        (("acme", "🚀"), "logs/🚀/1.jsonl", True),
        (("acme", "globex"), "payload 0x1234", False),
        (("acme", "globex"), "payload 0xbadc0de12345678 explains", True),
        (("acme", "globex"), "0BADC0DE12345678.jsonl", True),
        (("acme", "globex"), "f0badc0de123456780.jsonl", False),
        (("acme", "globex"), f"{PAYLOADS[0]:016x}.jsonl", False),
    ],
)
def test_who_is_named_in_a_text(names: tuple[str, str], text: str, named: bool) -> None:
    identities = [
        {"number": i, "identity": name, "text": None, "payload": f"{PAYLOADS[i - 1]:016x}"}
        for i, name in enumerate(names, start=1)
    ]
    parties = Parties(identities)  # type: ignore[arg-type]
    assert parties.another_is_named(text, 1) is named


def test_every_member_is_documented(pooled: Roll) -> None:
    document = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    section = document.split("## Many sessions")[1].split("\n## ")[0]
    report = report_on(mixed_with(pooled, 0, GLOBEX))
    free = {"versions", "standings", "outcomes"}

    def members(value: object, inside: str = "") -> set[str]:
        if isinstance(value, dict):
            own = set() if inside in free else set(value)
            # Those of files are listed above.
            return own.union(*[members(item, name) for name, item in value.items() if name != "inputs"])
        return set().union(*map(members, value)) if isinstance(value, list) else set()

    for name in members(report) | members(identity_reports(report)[0]):
        assert re.search(rf"`(\w+\.)?{name}[`.]", section), name


def test_tenants_of_these_tests_are_told_apart() -> None:
    """What the searches above rest on: no name or payload is a part of another's, or of a digest by chance."""
    for name in NAMES:
        assert not [other for other in NAMES if other != name and name in other]
    assert all(len(f"{payload:x}") >= 15 for payload in PAYLOADS)
    assert len(TENANTS) == 3
