"""What a reply did reaches the decider, whatever becomes of the call."""

from pathlib import Path

import pytest
from harness import SPREAD, decider, records

from agentmark.adapters.observing import observe, observed
from agentmark.elicit.situation import ANSWER
from agentmark.testing import ScriptedElicitor

ALL_ON_SEARCH = {"search": 1, "add": 0, "price": 0, ANSWER: 0}


def enforced(log: Path) -> list[bool | None]:
    return [record.enforced for record in records(log)]


@pytest.mark.parametrize(
    ("calls", "logged"),
    [(["search"], [None]), (["search", "search"], [None]), (["add"], [None, False]), ([], [None, False])],
)
def test_a_reply_is_judged_by_what_it_calls(tmp_path: Path, calls: list[str], logged: list[bool | None]) -> None:
    log = tmp_path / "run.jsonl"
    marked = decider(log, ScriptedElicitor(ALL_ON_SEARCH))
    with observed(marked, marked.decide(list(SPREAD), "Go.")) as reply:
        reply.calls = calls
    assert enforced(log) == logged


def test_a_call_that_fails_has_done_nothing(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    marked = decider(log, ScriptedElicitor(ALL_ON_SEARCH))
    with pytest.raises(ConnectionError), observed(marked, marked.decide(list(SPREAD), "Go.")):
        raise ConnectionError("down")
    assert enforced(log) == [None, False]
    assert "did" not in (records(log)[-1].meta or {})


def test_without_a_decision_nothing_is_observed(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    with observed(decider(log, ScriptedElicitor()), None) as reply:
        reply.calls = ["search"]
    assert records(log) == []


def test_a_decision_that_was_left_to_the_agent_is_logged_with_what_it_did(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    unmarked = decider(log, ScriptedElicitor(["no list today", "nor now"]))
    observe(unmarked, unmarked.decide(list(SPREAD), "Go."), ["add"])
    observe(unmarked, unmarked.decide(list(SPREAD), "Go."), None)
    assert [(record.behavior, record.marked) for record in records(log)] == [("add", False)]
