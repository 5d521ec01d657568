"""The decider: elicit, choose, log, and what happens when one of them cannot."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentmark import (
    DisclosedSteps,
    Embedder,
    MarkingKey,
    SettingError,
    SharedKey,
    StepRecord,
    Verifier,
    disclose,
    open_log,
)
from agentmark.decide.decider import Decider
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.situation import ANSWER_CANDIDATE, Candidate, Elicitation, Situation
from agentmark.testing import ScriptedElicitor

TOOLS = ["search", "book", "pay", "cancel"]
LIST = {"search": 0.4, "book": 0.3, "pay": 0.2, "cancel": 0.1}


class Memory:
    def __init__(self) -> None:
        self.records: list[StepRecord] = []

    def write(self, record: StepRecord) -> None:
        self.records.append(record)


@pytest.fixture
def key() -> SharedKey:
    return SharedKey.generate()


def decider(key: SharedKey, script: Any = None, **options: Any) -> tuple[Decider, Memory]:
    memory = Memory()
    marker = Embedder(key, 42, payload_len=8, scheme="R")
    return Decider(marker, ScriptedElicitor(LIST if script is None else script), memory, **options), memory


def test_a_plain_loop_is_marked_and_verified(key: SharedKey, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Decider(Embedder(key, 42, payload_len=8), ScriptedElicitor(LIST), path) as plain:
        for _ in range(60):
            decision = plain.decide(TOOLS, "What next?")
            plain.observe(decision, decision.behavior)
    records = list(open_log(path))
    assert len(records) == 60
    verdict = Verifier(key).verify(records)
    assert verdict.accepted
    assert verdict.payload == 42
    assert records[0].meta == {"elicitor": "scripted", "model": "scripted"}


def test_a_marking_key_serves_where_a_shared_key_does(tmp_path: Path) -> None:
    """Decider and session; arguments in names too. Its log is read with the key, and by a disclosure without it."""
    pytest.importorskip("nacl", reason="the extra `public` is not installed")
    path, marking = tmp_path / "run.jsonl", MarkingKey.generate()
    with Decider(Embedder(marking, 42, payload_len=8, scheme="R"), ScriptedElicitor(LIST), path) as plain:
        for _ in range(60):
            decision = plain.decide(TOOLS, "What next?")
            plain.observe(decision, decision.behavior)
    records = list(open_log(path))
    assert {record.key_id for record in records} == {marking.id}
    steps = DisclosedSteps(disclose(records, marking))
    assert Verifier(marking).verify(records).as_dict() == Verifier(steps).verify(records).as_dict()
    assert Verifier(steps).verify(records).payload == 42
    other = MarkingKey.generate()
    assert marking.argument_digest("s", b"{}") == marking.argument_digest("s", b"{}")
    assert marking.argument_digest("s", b"{}") != other.argument_digest("s", b"{}")


def test_async_decisions_carry_the_same_mark(key: SharedKey) -> None:
    plain, memory = decider(key)

    async def run() -> None:
        await asyncio.gather(*[plain.adecide(TOOLS, "What next?") for _ in range(60)])

    asyncio.run(run())
    assert sorted([record.step_index for record in memory.records]) == list(range(60))
    assert Verifier(key).verify(memory.records).payload == 42


def test_a_disobeyed_step_is_erased(key: SharedKey) -> None:
    plain, memory = decider(key)
    decision = plain.decide(TOOLS, "")
    other = next(name for name in TOOLS if name != decision.behavior)
    plain.observe(decision, other)
    first, second = memory.records
    assert first.enforced is None
    assert second.enforced is False
    assert second.meta is not None
    assert second.meta["did"] == other
    assert second.context == first.context
    assert Verifier(key).verify(memory.records).counts == {"not enforced": 2}


def test_when_no_list_can_be_had_the_agent_decides_and_the_log_says_so(key: SharedKey) -> None:
    plain, memory = decider(key, ["all probabilities are zero"])
    decision = plain.decide(TOOLS, "")
    assert (decision.behavior, decision.marked, memory.records) == (None, False, [])
    plain.observe(decision, "book")
    (record,) = memory.records
    assert not record.marked
    assert record.behavior == "book"
    assert record.reason == "elicitation failed: all probabilities are zero"
    assert record.distribution is None


def test_an_upstream_that_is_down_is_a_failed_elicitation(key: SharedKey) -> None:
    plain, memory = decider(key, [])
    decision = plain.decide(TOOLS, "")
    plain.observe(decision, "pay")
    assert memory.records[0].reason == "elicitation failed: the script is at its end"


def test_fail_closed_raises(key: SharedKey) -> None:
    plain, memory = decider(key, ["nonsense"], fail="closed")
    with pytest.raises(ElicitationError, match="nonsense"):
        plain.decide(TOOLS, "")
    assert memory.records == []
    with pytest.raises(SettingError, match="fail"):
        decider(key, fail="sometimes")


@pytest.mark.parametrize(
    ("weights", "fault"),
    [
        ({"search": 1.0, "book": 0, "pay": 0}, "is missing"),
        ({**LIST, "hack": 0.1}, "is no candidate"),
        ({**LIST, "pay": -0.1}, "negative"),
        ({**LIST, "pay": float("nan")}, "pay"),
        (dict.fromkeys(LIST, 0.0), "zero"),
    ],
)
def test_a_list_that_cannot_be_used_is_never_bent(key: SharedKey, weights: dict[str, float], fault: str) -> None:
    """Law L6, whatever elicitor a user writes."""

    class Broken:
        name = "broken"

        def elicit(self, situation: Situation) -> Elicitation:
            return Elicitation(method=self.name, model="m", weights=weights)

        async def aelicit(self, situation: Situation) -> Elicitation:
            return self.elicit(situation)

    memory = Memory()
    plain = Decider(Embedder(key, 1, payload_len=8), Broken(), memory)
    decision = plain.decide(TOOLS, "")
    assert decision.behavior is None
    assert fault in str(decision.elicitation.fault)
    plain.observe(decision, None)
    assert memory.records == []


def test_one_candidate_needs_no_model(key: SharedKey) -> None:
    plain, memory = decider(key, [])
    decision = plain.decide([ANSWER_CANDIDATE], "")
    assert decision.behavior == "(answer)"
    assert memory.records[0].meta == {"elicitor": "only candidate", "model": "none"}


def test_candidates_must_be_there_once() -> None:
    with pytest.raises(SettingError, match="none"):
        Situation.of([], "")
    with pytest.raises(SettingError, match="twice"):
        Situation.of([Candidate("a"), "a"], "")


def test_a_list_that_is_there_already(key: SharedKey) -> None:
    plain, memory = decider(key)
    for _ in range(60):
        assert plain.decide_from(LIST).marked
    assert Verifier(key).verify(memory.records).payload == 42


def test_what_a_record_says_of_its_elicitation_is_text_and_integers() -> None:
    said = Elicitation(
        method="labels", model="m", weights={"a": 1}, missing_mass=0.0123456, unseen=("b",), attempts=2,
        input_tokens=7, output_tokens=1, replies=("private",),
    )  # fmt: skip
    assert said.as_meta() == {
        "elicitor": "labels",
        "model": "m",
        "attempts": 2,
        "missing_ppm": 12346,
        "unseen": ["b"],
        "input_tokens": 7,
        "output_tokens": 1,
    }


def test_a_long_fault_is_cut_for_the_log(key: SharedKey) -> None:
    plain, memory = decider(key, ["line\nline " + "x" * 1000 + "\ud800"])
    plain.observe(plain.decide(TOOLS, ""), "pay")
    reason = memory.records[0].reason
    assert reason is not None
    assert len(reason) == 300
    assert "\n" not in reason
    assert StepRecord.from_json(memory.records[0].to_json()).reason == reason


@pytest.mark.parametrize("is_async", [False, True])
def test_an_elicitor_that_stumbles_leaves_the_decision_to_the_agent(is_async: bool) -> None:
    class Stumbling:
        name = "stumbling"

        def elicit(self, situation: Any) -> Any:
            return {}["choices"]

        async def aelicit(self, situation: Any) -> Any:
            return self.elicit(situation)

    deciding = Decider(Embedder(SharedKey(bytes(range(32))), 1, payload_len=8), Stumbling())
    decision = asyncio.run(deciding.adecide("ab", "x")) if is_async else deciding.decide("ab", "x")
    assert decision.behavior is None
    assert decision.elicitation.logged_fault == "the elicitor raised KeyError"
    assert sum(deciding.stats.unmarked.values()) == 1
