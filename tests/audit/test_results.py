"""Rows as files: nothing is lost on the way, and nobody's text becomes a formula."""

import csv
import json
from pathlib import Path

import pytest
from rolls import three_tenants, with_pool

from agentmark.audit.judged import JudgedRow, RowTally
from agentmark.audit.results import COLUMNS, OUTCOME_COLUMNS, AuditRow, check_results, results_writer, write_rows
from agentmark.errors import SettingError
from agentmark.verify.intake import COUNTED_AGAINST, Outcome

ROLL = with_pool(three_tenants(), [7, 8])
ROWS = [AuditRow.of(row, ROLL.pools) for row in ROLL.rows]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_rows_come_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"results{suffix}"
    write_rows(results_writer(path), ROWS)
    assert [row["group"] for row in read(path)] == [row.group for row in ROWS]
    if suffix != ".csv":
        assert [AuditRow.from_dict(row) for row in read(path)] == ROWS
    assert list(read(path)[0]) == list(COLUMNS)
    assert [inside.name for inside in tmp_path.iterdir()] == [path.name]


def read(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    import pyarrow.parquet

    rows: list[dict[str, object]] = pyarrow.parquet.read_table(path).to_pylist()
    return rows


def test_a_row_says_what_its_verdict_says() -> None:
    for row, made in zip(ROLL.rows, ROWS, strict=True):
        counts = row.verdict.counts
        assert made.records == made.used + sum(getattr(made, name) for name in OUTCOME_COLUMNS)
        assert {outcome: getattr(made, name) for name, outcome in OUTCOME_COLUMNS.items()} == {
            outcome: counts[outcome] for outcome in Outcome if outcome not in (Outcome.USED, *COUNTED_AGAINST)
        }
        assert (made.identity is None) == (not row.verdict.accepted) == (made.reason is not None)
    assert [row.pooled_for for row in ROWS if row.pooled] == ["acme", "acme"]


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    from dataclasses import replace

    hostile = replace(ROWS[0], group="=1+1", identity="@evil", files=("+cmd|x",), further=("-2",), payload="12e10")
    write_rows(results_writer(tmp_path / "x.csv"), [hostile])
    (row,) = read(tmp_path / "x.csv")
    assert row["group"] == "'=1+1"
    assert row["identity"] == "'@evil"
    assert row["files"] == "'+cmd|x"
    assert row["further"] == "'-2"
    assert row["payload"] == "0x12e10"


def test_a_run_that_fails_leaves_no_results(tmp_path: Path) -> None:
    def failing() -> object:
        yield ROWS[0]
        raise RuntimeError("stopped")

    for suffix in (".csv", ".jsonl", ".parquet"):
        (tmp_path / f"x{suffix}").write_text("what was there before")
        with pytest.raises(RuntimeError):
            write_rows(results_writer(tmp_path / f"x{suffix}"), failing())  # type: ignore[arg-type]
        assert (tmp_path / f"x{suffix}").read_text() == "what was there before"
    assert len(list(tmp_path.iterdir())) == 3


def test_names_that_are_no_results_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name, said in (("x.txt", "none of"), ("none/x.csv", "no such folder"), ("folder.csv", "is a folder")):
        with pytest.raises(SettingError, match=said):
            check_results(tmp_path / name)


def test_totals_are_those_of_the_roll() -> None:
    tally = RowTally()
    for row in ROLL.rows:
        judged = JudgedRow.of(row, ROLL.pools)
        assert JudgedRow.from_json(judged.to_json()) == judged
        tally.take(judged)
    assert tally.standings == ROLL.standings
    totals = [(t.identity, t.rows, t.steps, t.worst_rate, t.pooled_rows) for t in tally.totals(ROLL.pools)]
    assert totals == [(t.identity, len(t.rows), t.steps, t.worst_rate, len(t.pooled_rows)) for t in ROLL.totals]
