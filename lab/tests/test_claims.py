"""Every figure in the README and the docs stands where it was measured, and the text says what stands there."""

from pathlib import Path

import claim_tracing
import pytest
from claim_tracing import ROOT, Other, Table, Traced, found_at

TABLE = Table.load()


@pytest.mark.parametrize("claim", TABLE.claims, ids=lambda claim: f"{claim.page}: {claim.text[:50]}")
def test_the_text_says_what_the_cell_says(claim: Traced) -> None:
    stale = claim.stale()
    assert not stale, f"{claim.page}, {claim.text!r}: {'; '.join(stale)}"


@pytest.mark.parametrize("page", TABLE.pages)
def test_every_figure_on_the_page_is_traced(page: str) -> None:
    untraced = TABLE.untraced(page)
    how = "add each to lab/claims.toml, as a [[claim]] or, with the reason, as no measurement ([[other]])"
    assert not untraced, f"{how}:\n" + "\n".join(untraced)


def test_no_page_is_forgotten() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "frameworks").glob("*.md")]
    names = {path.relative_to(ROOT).as_posix() for path in pages}
    assert set(TABLE.pages) | set(TABLE.left_out) == names
    assert not set(TABLE.pages) & set(TABLE.left_out)
    assert all(TABLE.left_out.values())


def test_every_other_number_has_a_reason() -> None:
    assert all(entry.why for entry in TABLE.others)


# What the table is read with ------------------------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "PAGE.md").write_text(
        "About 61 % and `12` of [17](docs/17.md), a third, fifty steps.\n\n```\n99\n```\n", encoding="utf-8"
    )
    monkeypatch.setattr(claim_tracing, "ROOT", tmp_path)
    caches = (claim_tracing.page_text, claim_tracing._page_tables)
    for cache in caches:
        cache.cache_clear()
    yield "PAGE.md"
    for cache in caches:
        cache.cache_clear()


def test_figures_and_words_are_seen_and_code_is_not(page: str) -> None:
    found = Table([page], {}).untraced(page)
    assert [line.split("'")[1] for line in found] == ["61", "17", "third", "fifty"]


def test_small_numbers_in_words_are_seen_before_a_unit_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "PAGE.md").write_text("Two schemes of four kinds: three points more, seven times.\n", encoding="utf-8")
    monkeypatch.setattr(claim_tracing, "ROOT", tmp_path)
    claim_tracing.page_text.cache_clear()
    found = Table(["PAGE.md"], {}).untraced("PAGE.md")
    claim_tracing.page_text.cache_clear()
    assert [line.split("'")[1] for line in found] == ["three", "seven"]


def test_dozens_thousands_folds_and_shares_without_a_zero_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "A dozen of thousands, a hundredfold gain at .07; manifold, v1.2 and a folder ... of ...5 are none.\n"
    (tmp_path / "PAGE.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(claim_tracing, "ROOT", tmp_path)
    claim_tracing.page_text.cache_clear()
    found = Table(["PAGE.md"], {}).untraced("PAGE.md")
    claim_tracing.page_text.cache_clear()
    assert [line.split("'")[1] for line in found] == ["dozen", "thousands", "hundredfold", ".07"]


MADE_UP = {
    "README.md": ("A step carries 24 bits.", ["24"]),
    "docs/public.md": ("| bits a step | 2 | 1 |", ["2", "1"]),
    "docs/paper-map.md": ("| success 97.3 % | x |", ["97.3"]),
    "docs/chain.md": ("It took 900 MiB and 700 digits; the cost section 5 ms.", ["900", "700", "5"]),
    "docs/logs.md": ("| `made_up` | 17 MiB | 18 ms |", ["17", "18"]),
    "docs/elicitation.md": ("| bits | 60 | 10 |", ["60", "10"]),
    "docs/scale.md": ("It takes 200,000 core-hours.", ["200,000"]),
}


@pytest.mark.parametrize("page_name", MADE_UP)
def test_a_made_up_figure_on_a_page_is_seen(page_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patterns of the table are no wider than their reasons: these stood on the pages and were excused."""
    line, figures = MADE_UP[page_name]
    as_it_is = claim_tracing.page_text(page_name)
    monkeypatch.setattr(claim_tracing, "page_text", lambda name: f"{as_it_is}\n{line}\n")
    assert [found.split(": ", 1)[1].split("'")[1] for found in TABLE.untraced(page_name)] == figures


def test_a_claim_answers_for_what_is_in_its_braces_only(page: str) -> None:
    table = Table([page], {}, claims=[Traced(page, "About {61} % and `12` of [17]", ["nowhere"], None)])
    assert [line.split("'")[1] for line in table.untraced(page)] == ["17", "third", "fifty"]


def test_a_text_that_is_gone_is_named(page: str) -> None:
    with pytest.raises(ValueError, match="does not say 'About 62 %' any more"):
        Traced(page, "About {62} %", ["nowhere"], None).figures()


def test_a_figure_may_be_off_by_the_rounding_that_it_shows(page: str) -> None:
    (said,) = Traced(page, "{61} %", ["nowhere"], None).figures()
    assert (said.value, said.off) == (61, 0.5)
    (third,) = Traced(page, "a {third}", ["nowhere"], 0.05).figures()
    assert (round(third.value, 3), third.off) == (0.333, 0.05)


def test_a_stale_figure_is_told_with_what_its_cell_says_now(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_tracing, "found_at", lambda place: 61.6)
    assert Traced(page, "About {61} %", ["a place"], None).stale() == ["it says 61, and 'a place' is now 61.6"]
    monkeypatch.setattr(claim_tracing, "found_at", lambda place: 61.4)
    assert Traced(page, "About {61} %", ["a place"], None).stale() == []
    assert Traced(page, "About {61} %", [], None).stale() == ["1 figures, and 0 places"]


def test_a_pattern_excuses_what_it_matches_and_nothing_else(page: str) -> None:
    other = Other.of({"page": page, "pattern": r"\d+ %|f\w+ steps\.$", "why": "limits"})
    found = Table([page], {}, others=[other]).untraced(page)
    assert [line.split("'")[1] for line in found] == ["17", "third"]
    with pytest.raises(ValueError, match="any more"):
        Other.of({"page": page, "pattern": r"at most \d+", "why": "limits"}).spans()
    with pytest.raises(ValueError, match="any more"):
        Other.of({"page": page, "text": r"\d+ %", "why": "a text is no pattern"}).spans()


def test_cells_of_a_page_are_looked_up_in_the_table_under_a_heading(page: str) -> None:
    table = "| name | a \\| b | took |\n|---|---|---|\n| x | 1 |  |\n| y | **2,000 s, 3 MB** | 5 |\n"
    (claim_tracing.ROOT / page).write_text(f"# First\n\n{table}\n## Second\n\n| name | took |\n|---|---|\n| x | 7 |\n")
    claim_tracing.page_text.cache_clear()
    claim_tracing._page_tables.cache_clear()
    assert found_at(f"{page} / First / name=y / a \\| b #2") == 3
    assert found_at(f"max of {page} / First / * / a \\| b") == 2000
    assert found_at(f"{page} / Second / name=x / took") == 7
    assert found_at(f"min of {page} / First / name=y / a*|took") == 5
    with pytest.raises(LookupError, match="has no number"):
        found_at(f"{page} / First / name=x / took")


def test_places_are_looked_up_in_results_and_pages() -> None:
    assert found_at("alfworld / ALFWorld beside / split=ID; agent=the paper* / success % baseline") == 89.5
    assert found_at("max of alfworld / ALFWorld beside / agent=the paper* / success % baseline") == 96.8
    assert found_at("alfworld / ALFWorld beside / split=ID; agent=the paper* / success % baseline times 0.01") == 0.895
    with pytest.raises(LookupError, match="say which"):
        found_at("alfworld / ALFWorld beside / agent=the paper* / success % baseline")
    with pytest.raises(LookupError, match="nothing is at"):
        found_at("alfworld / ALFWorld beside / split=nowhere / success % baseline")
