"""The page of results."""

from agentmark_lab.report import load_results, render_page
from lab_support import some_result


def test_page_shows_claims_tables_and_circumstances():
    page = render_page(some_result())
    for line in (
        "# A title",
        "- Holds: it is so.",
        "| what | count |",
        "| a \\| b | 1,234 |",
        "Counted twice.",
        ".venvs/lab/bin/agentmark lab run marginals",
        "Seed 1, 12 s",
    ):
        assert line in page
    assert "Warning" not in page


def test_page_warns_of_quick_and_failed_runs():
    assert "Warning: a quick run" in render_page(some_result(quick=True))
    assert "Warning: not every claim holds" in render_page(some_result(passed=False))


def test_results_come_in_the_order_of_the_catalogue(tmp_path):
    for name in ("speed", "zebra", "roundtrip"):
        some_result(name=name).save(tmp_path)
    assert [result.name for result in load_results(tmp_path)] == ["roundtrip", "speed", "zebra"]
