"""Buckets in one process against the local audit: the same rows, the same summary, whatever is asked."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fleet import Fleet, make_fleet
from one_process import OneProcess

from agentmark.audit.bulk import BulkAudit
from agentmark.scale.audit import ClusterAnswer, ClusterAudit
from agentmark.scale.spreading import FileSpreader, LineSpreader, shard_rows
from agentmark.scale.worker_keys import CarriedKeys
from agentmark.verify.correction import FalseDiscovery
from agentmark.verify.roll import By


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return make_fleet(tmp_path_factory.mktemp("fleet"), sessions=27)


def locally(fleet: Fleet, asked: Mapping[str, Any]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    audit = BulkAudit(paths=[str(fleet.logs)], keys=fleet.keys, workers=1, **asked)
    summary = audit.run(on_row=lambda judged: rows.append(judged.row.as_dict()))
    return as_json(summary.as_dict(), rows)


def on_buckets(fleet: Fleet, asked: Mapping[str, Any], *, buckets: int = 4) -> ClusterAnswer:
    audit = ClusterAudit(keys=CarriedKeys(fleet.keys), **asked)
    found, rows = shard_rows([str(fleet.logs)])
    return audit.run(OneProcess(rows, batch=1), FileSpreader(by=audit.by, buckets=buckets), found)


def as_json(summary: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps({"summary": summary, "rows": rows}))
    return content


QUESTIONS: dict[str, dict[str, Any]] = {
    "session": {},
    "file": {"by": By.FILE},
    "tenant": {"by": By.TENANT},
    "all": {"by": By.ALL},
    "false discovery": {"correction": FalseDiscovery(0.01)},
    "claim": {"claim": "acme"},
    "no pools": {"pools": False},
}


def compare(asked: dict[str, Any], fleet: Fleet) -> None:
    expected, answer = locally(fleet, asked), on_buckets(fleet, asked)
    assert as_json(answer.summary.as_dict(), answer.rows) == expected
    assert any(row["payload"] for row in expected["rows"])


@pytest.mark.parametrize("question", QUESTIONS)
def test_rows_and_summary_are_those_of_the_local_audit(question: str, fleet: Fleet) -> None:
    compare(QUESTIONS[question] | {"registry": fleet.registry}, fleet)


def test_without_a_registry_too(fleet: Fleet) -> None:
    compare({"work_limit": 2_000_000}, fleet)


def test_a_claim_without_a_registry_is_of_the_length_that_most_logs_have(fleet: Fleet) -> None:
    compare({"claim": fleet.registry.named("acme").payload}, fleet)


def test_the_number_of_buckets_makes_no_difference(fleet: Fleet) -> None:
    asked = {"registry": fleet.registry}
    answers = [on_buckets(fleet, asked, buckets=buckets) for buckets in (1, 3, 50)]
    assert answers[0].rows == answers[1].rows == answers[2].rows
    assert answers[0].summary == answers[1].summary == answers[2].summary


def test_lines_in_any_order_give_the_same_rows(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, sessions=18, packed=False)
    lines = [
        {"text": text, "file": str(path), "line": number}
        for path in sorted(fleet.logs.rglob("*.jsonl"))
        for number, text in enumerate(path.read_text("utf-8").splitlines(), start=1)
    ]
    audit = ClusterAudit(keys=CarriedKeys(fleet.keys), registry=fleet.registry)
    spread = LineSpreader(by=By.SESSION, buckets=4)
    answer = audit.run(OneProcess(lines, batch=50), spread)
    again = audit.run(OneProcess(lines[::-1], batch=70, seed=1), spread)
    assert answer.rows == again.rows
    assert answer.summary == again.summary
    expected = locally(fleet, {"registry": fleet.registry})
    assert as_json({}, answer.rows)["rows"] == expected["rows"]
    assert answer.summary.read.bad_records == expected["summary"]["read"]["bad_records"]
