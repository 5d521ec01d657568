"""From tools to behaviors and back."""

import pytest

from agentmark.elicit.situation import ANSWER, Candidate, ToolCall
from agentmark.wire.behaviors import left_to_decide, what_was_done, with_answer

SEARCH, BUY = Candidate("search"), Candidate("buy")


def names(candidates: list[Candidate]) -> list[str]:
    return [candidate.name for candidate in candidates]


def test_the_answer_comes_last_unless_a_tool_is_required() -> None:
    assert names(with_answer([SEARCH, BUY])) == ["search", "buy", ANSWER]
    assert names(with_answer([SEARCH, BUY], may_answer=False)) == ["search", "buy"]


def test_a_single_way_to_go_leaves_nothing_to_decide() -> None:
    assert left_to_decide([], may_answer=True) == []
    assert left_to_decide([SEARCH], may_answer=False) == []
    assert names(left_to_decide([SEARCH], may_answer=True)) == ["search", ANSWER]
    assert names(left_to_decide([SEARCH, BUY], may_answer=False)) == ["search", "buy"]


def test_a_tool_that_is_defined_twice_is_one_candidate() -> None:
    again = Candidate("search", "the later one")
    assert left_to_decide([SEARCH, BUY, again], may_answer=False) == [again, BUY]


@pytest.mark.parametrize(
    ("calls", "done"),
    [
        ([], ANSWER),
        (["search"], "search"),
        (["search", "search"], "search"),
        (["search", "buy"], "buy"),
        (["buy", "search", "pay"], "buy"),
        ([""], "(unnamed)"),
        (["search", ""], "(unnamed)"),
        (["\ud800"], "?"),
    ],
)
def test_what_was_done(calls: list[str], done: str) -> None:
    """Several calls of the chosen tool obey; a call of any other does not. A record takes what comes out."""
    assert what_was_done([ToolCall(name) for name in calls], "search") == done


def test_without_a_choice_the_first_call_counts() -> None:
    assert what_was_done([ToolCall("buy"), ToolCall("search")], None) == "buy"
