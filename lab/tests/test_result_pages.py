"""docs/results.md and docs/results/: what is committed is what `agentmark lab table` writes."""

import re
from pathlib import Path

import pytest
from agentmark_lab.catalogue import EXPERIMENTS, load
from agentmark_lab.kit.experiment import Machine, Result, Table
from agentmark_lab.report import NOTHING_FELL_SHORT, UTILITY, load_results, render_front, render_page, write_pages
from agentmark_lab.report_headlines import HEADLINES

from agentmark.cli import main

ROOT = Path(__file__).parents[2]
# The commits at which results were measured that are of the bytes before ADR 20 and 21; at first none was noted.
BYTES_BEFORE = {
    "", "0828867ba4", "373fcb2dea", "3e8d2f3a39", "53807040b5", "5e791f379e", "6acb9c7122", "798d6ac008", "aa58566961",
    "b76a5ae038", "cee0b6515f", "f4aa62f128",
}  # fmt: skip
DOCS = ROOT / "docs"
RESULTS = ROOT / "results"
# What a reader finishes.
LONGEST_FRONT_PAGE = 150


def some_result(name: str = "marginals", *, title: str = "A title", claims: list[str], passed: bool = True) -> Result:
    return Result(
        name=name,
        title=title,
        command=f"agentmark lab run {name}",
        seed=1,
        quick=False,
        machine=Machine("CPython 3.11", "Linux", "a processor", 2),
        version="0.1.0",
        seconds=12.3,
        passed=passed,
        claims=claims,
        tables=[Table("A table", ["what", "count"], [["x", 1234]])],
        data={},
    )


def test_the_committed_pages_are_what_the_command_writes(tmp_path):
    # Of the page on utility the tables are written, into whatever stands around them.
    utility = (DOCS / UTILITY).read_text(encoding="utf-8")
    stale, tables = re.subn(r"(lab table` -->\n).*?(\n<!-- end of)", r"\1| stale |\2", utility, flags=re.DOTALL)
    assert tables == 2
    (tmp_path / UTILITY).write_text(stale, encoding="utf-8")
    written = write_pages(load_results(RESULTS), tmp_path / "results.md")
    for path in written:
        committed = DOCS / path.relative_to(tmp_path)
        again = "run `agentmark lab table`"
        assert committed.exists(), f"{committed.relative_to(ROOT)} is missing: {again}"
        assert committed.read_bytes() == path.read_bytes(), f"{committed.relative_to(ROOT)} is out of date: {again}"
    pages = {path.relative_to(tmp_path) for path in written} - {Path("results.md"), Path(UTILITY)}
    assert {path.relative_to(DOCS) for path in (DOCS / "results").iterdir()} == pages


def test_the_page_of_the_lab_names_the_results_of_the_bytes_before():
    """Whoever runs one of them again takes it off the list."""
    page = (DOCS / "lab.md").read_text(encoding="utf-8")
    older = set(re.findall(r"\w+", page.partition("Of the bytes before: ")[2].partition(".")[0]))
    commits = {result.name: result.version.partition(" at ")[2].partition(" ")[0] for result in load_results(RESULTS)}
    before = {name for name, commit in commits.items() if commit in BYTES_BEFORE}
    assert older == before - set(unmarked())


def test_what_is_said_to_mark_nothing_marks_nothing():
    assert unmarked()
    for name in unmarked():
        source = Path(load(name).__file__).read_text(encoding="utf-8")
        assert not re.search(r"Embedder|[Ss]ession|scheme_[fr]|chooser_for", source), name


def unmarked():
    page = (DOCS / "lab.md").read_text(encoding="utf-8")
    return page.partition("or mark nothing (")[2].partition(")")[0].split(", ")


def test_the_front_page_leads_to_every_experiment_and_can_be_finished():
    results = load_results(RESULTS)
    page = render_front(results)
    assert len(page.splitlines()) <= LONGEST_FRONT_PAGE
    rows = [line for line in page.splitlines() if line.startswith("| [")]
    for result in results:
        assert len([row for row in rows if f"](results/{result.name}.md)" in row]) == 1, result.name


def test_every_missed_aim_is_on_the_front_page_in_full():
    results = load_results(RESULTS)
    page = render_front(results)
    missed = [claim for result in results for claim in result.claims if claim.startswith("Aim not met: ")]
    assert missed
    for claim in missed:
        assert f"  - **Aim not met:** {claim.removeprefix('Aim not met: ')}\n" in page


def test_every_experiment_has_its_headlines():
    assert sorted(HEADLINES) == sorted(EXPERIMENTS)


@pytest.mark.parametrize("name", HEADLINES)
def test_headlines_are_claims_of_the_result(name):
    fragments = HEADLINES[name]
    assert 1 <= len(fragments) <= 3
    claims = Result.load(RESULTS / f"{name}.json").claims
    for fragment in fragments:
        assert any(fragment in claim for claim in claims), f"no claim says {fragment!r}"


def test_what_does_not_hold_comes_first_and_is_counted():
    late = some_result(
        "speed", title="Late", claims=["DOES NOT HOLD: it is so (0 of 9).", "Holds: else."], passed=False
    )
    early = some_result("roundtrip", title="Early", claims=["Aim not met: it is fast (aim: 3)."])
    page = render_front([early, late])
    assert "2 experiments: **1 of 2** claims hold, **0 of 1** aims are met." in page
    shortfall = page[page.index("## What fell short") :]
    assert re.findall(r"\*\*(.*?):\*\* (.*)", shortfall) == [
        ("DOES NOT HOLD", "it is so (0 of 9)."),
        ("Aim not met", "it is fast (aim: 3)."),
    ]
    # In the table of its group it stands in short.
    assert "| **DOES NOT HOLD:** it is so (0 of 9). |" in page


def test_a_front_page_with_nothing_to_regret_says_so():
    page = render_front([some_result(claims=["Holds: it is so (twice)."])])
    assert NOTHING_FELL_SHORT in page
    assert "| [A title](results/marginals.md) | it is so. | 1 of 1 |" in page


def test_a_result_of_no_group_is_shown_and_one_from_elsewhere_stands_with_its_experiment():
    page = render_front([some_result("language_model-bfcl", claims=[]), some_result("zebra", claims=["Holds: a."])])
    assert page.index("## Models") < page.index("results/language_model-bfcl.md") < page.index("## Others")
    assert page.index("## Others") < page.index("results/zebra.md")


def test_the_page_of_an_experiment_leads_back_and_says_how_to_repeat_it():
    page = render_page(some_result(claims=["Holds: it is so.", "Aim not met: nor so."]))
    assert page.startswith("# A title\n\n[All results](../results.md)\n")
    assert "- **Aim not met:** nor so." in page
    assert "## A table\n\n| what | count |\n" in page
    assert "## Repeat it\n\n```console\n$ .venvs/lab/bin/agentmark lab run marginals\n```\n" in page
    assert "$ .venvs/oasis/bin/agentmark lab run oasis\n" in render_page(some_result("oasis", claims=[]))


def test_a_front_page_without_a_suffix_is_refused(tmp_path, capsys):
    assert main(["lab", "table", "--out", str(RESULTS), "--docs", str(tmp_path / "results")]) == 2
    assert "NAME.md" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
