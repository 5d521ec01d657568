"""The logs that bulk audits are measured with: real marks, and the damage that they say."""

from pathlib import Path

import pytest
from bench.logs import Logs, Mix
from bench.pages import page_with
from bench_audit import INTRODUCTION

from agentmark import Verifier, read_log


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_made_logs_carry_the_mark_that_a_session_would_have_put_there(tmp_path: Path, scheme: str) -> None:
    logs = Logs(tmp_path / "logs", Mix(scheme, 6, sessions=4, steps=40, identities=2)).write(file_count=2)
    assert logs.check(sample=40) == 40
    records = [record for path in logs.files for record in read_log(path).records]
    assert len(records) == logs.written == 160
    for session, maker in logs.maker.items():
        mine = [record for record in records if record.session == session]
        assert Verifier(logs.key, registry=logs.registry).verify(mine).identity == maker


def test_made_logs_are_damaged_as_they_say(tmp_path: Path) -> None:
    mix = Mix("F", 6, sessions=12, steps=60, damaged=0.5, unmarked=0.5, seed=3)
    logs = Logs(tmp_path / "logs", mix).write()
    assert set(logs.kind.values()) == {"damaged", "unmarked"}
    assert logs.written < mix.step_count
    (path,) = logs.files
    records = read_log(path).records
    altered = 0
    for session, kind in logs.kind.items():
        mine = [record for record in records if record.session == session]
        verdict = Verifier(logs.key, registry=logs.registry).verify(mine)
        assert verdict.accepted is (kind == "damaged")
        altered += verdict.consistent is False
    assert altered > 6


def test_the_page_of_the_bench_takes_each_table_in_its_place() -> None:
    both = page_with(INTRODUCTION, ["## Rates\n\nold\n", "## Workers\n\ntwo\n"])
    assert both == INTRODUCTION + "\n## Rates\n\nold\n\n## Workers\n\ntwo\n"
    assert page_with(both, ["## Rates\n\nnew\n"]) == both.replace("old", "new")
    assert page_with(both, []) == both
