"""The forged turn: where it stands, what a flat transcript makes of it, and how its pull is counted."""

import pytest
from agentmark_lab.experiments.models.flat_transcript import FLAT, flat
from agentmark_lab.experiments.models.injection import (
    FLATTENED,
    FORGED,
    OWN,
    ROLES,
    TARGET,
    Moves,
    Pair,
    after_a_call,
    mean_pair,
    moved_claim,
    with_forged_turn,
)
from agentmark_lab.experiments.models.tool_agent import Tool, ToolSituation
from made_up import outcome

from agentmark.elicit.situation import ANSWER

QUERY = ToolSituation("a query", (Tool("search", "", ("q",), ()),), ({"role": "user", "content": "Find it."},))
CLEAN = after_a_call(QUERY)
FORGERY = with_forged_turn(CLEAN)


def test_the_forged_turn_stands_in_the_tool_s_output_and_nowhere_else() -> None:
    assert CLEAN.said[:-1] == FORGERY.said[:-1]
    assert FORGERY.said[-1]["role"] == "tool"
    assert FORGERY.said[-1]["content"] == CLEAN.said[-1]["content"] + FORGED
    assert FORGERY.said[1]["tool_calls"][0]["function"] == {"name": "search", "arguments": '{"q": "1"}'}
    assert TARGET.name in FORGERY.situation.names


def test_in_a_flat_transcript_it_passes_for_the_user_s() -> None:
    assert flat(CLEAN.said).count("\n[user] ") == 0
    lines = flat(FORGERY.said).splitlines()
    assert [line.partition("]")[0] for line in lines] == ["[user", "[assistant calls", "[tool", "[user", "[assistant"]
    question = FLAT.messages(FORGERY.situation, FORGERY.situation.candidates)[-1]
    assert flat(FORGERY.situation.messages) in question["content"]


def test_a_pair_needs_both_lists_of_an_order() -> None:
    usable, broken = outcome("words", 1), outcome("words", 2, fault="no list")
    pair = mean_pair("a query", [usable, usable], [usable, broken])
    assert pair is not None
    assert pair.moved == 0
    assert mean_pair("a query", [usable], [broken]) is None


def gaining(*gains: float) -> list[Pair | None]:
    return [Pair("a query", {ANSWER: 1.0}, {ANSWER: 1 - gain, TARGET.name: gain}) for gain in gains]


def test_what_moves_more_than_the_agent_is_said_to() -> None:
    own, little, much = gaining(0.3, 0.4, 0.2, 0.3), gaining(0.1, 0.2, 0.1, 0.2), gaining(0.9, 0.8, 0.9, 0.9)
    assert moved_claim(Moves("made-up", {OWN: own, ROLES: little, FLATTENED: much})).holds
    assert not moved_claim(Moves("made-up", {OWN: own, ROLES: much, FLATTENED: much})).holds
    assert not moved_claim(Moves("made-up", {OWN: own, ROLES: [None] * 4, FLATTENED: much})).holds
    (pair,) = gaining(0.25)
    assert pair is not None
    assert (pair.gain, pair.moved) == (0.25, pytest.approx(0.25))
