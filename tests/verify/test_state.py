"""Accumulate, merge, judge: a verdict from merged states is that of the whole log, to the bit."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import marked_log

from agentmark import BehaviorDistribution, Registry, SharedKey, StepRecord, Verifier
from agentmark.core.errors import StateError
from agentmark.core.symbols import SoftSymbols, SymbolSet
from agentmark.identity.registry import Identity
from agentmark.verify.intake import Outcome, Step, read_record
from agentmark.verify.keyring import Keyring
from agentmark.verify.state import LogState, accumulate

KEY = SharedKey(bytes(range(32)))
OTHER = SharedKey(bytes(range(1, 33)))
KEYS = Keyring(KEY)
REGISTRY = Registry(16, [Identity("acme", 0x5EED), Identity("globex", 0x1234)])


def hostile_log(scheme: str) -> list[StepRecord]:
    """Everything that one part of a log can change in another: copies, conflicts, disobedience, lengths, keys."""
    mine = marked_log(KEY, scheme=scheme, steps=24)
    theirs = [replace(record, key_id=KEY.id) for record in marked_log(OTHER, scheme=scheme, steps=6, seed=4)]
    turned = mine[3]
    assert turned.distribution is not None
    another = next(name for name in turned.distribution.behaviors if name != turned.behavior)
    log = [
        *mine,
        *mine[:5],
        mine[7].with_enforced(False),
        replace(turned, behavior=another),
        *[record.with_partial_weights({}) for record in mine[9:12]],
        *theirs,
        *marked_log(OTHER, scheme=scheme, steps=4, seed=6),
        *marked_log(KEY, scheme=scheme, steps=5, payload=3, payload_len=8, seed=5),
        *marked_log(KEY, scheme=scheme, steps=12, payload=0x1234, seed=7),
    ]
    random.Random(1).shuffle(log)
    return log


LOGS = {scheme: hostile_log(scheme) for scheme in ("F", "R")}


WHOLE = {scheme: Verifier(KEY).take_in(log) for scheme, log in LOGS.items()}


def merged_from_parts(log: list[StepRecord], cuts: list[int], *, through_bytes: bool) -> LogState:
    """The log taken in between the cuts, each part by itself, and put together again."""
    edges = [0, *sorted(min(cut, len(log)) for cut in cuts), len(log)]
    merged = LogState()
    for first, last in pairwise(edges):
        part = accumulate(log[first:last], KEYS)
        merged.merge(LogState.from_bytes(part.to_bytes()) if through_bytes else part)
    return merged


@given(scheme=st.sampled_from(["F", "R"]), cuts=st.lists(st.integers(0, 60), max_size=4), through_bytes=st.booleans())
def test_merged_states_take_in_what_the_whole_log_does(scheme: str, cuts: list[int], through_bytes: bool) -> None:
    merged = merged_from_parts(LOGS[scheme], cuts, through_bytes=through_bytes)
    assert Verifier(KEY).sort_out(merged) == WHOLE[scheme]


@pytest.mark.parametrize("claim", [None, "globex"])
@pytest.mark.parametrize("scheme", ["F", "R"])
def test_a_verdict_from_merged_states_is_that_of_the_whole_log(scheme: str, claim: str | None) -> None:
    verifier = Verifier(KEY, registry=REGISTRY)
    merged = merged_from_parts(LOGS[scheme], [9, 10, 33], through_bytes=True)
    verdict = verifier.judge.verdict(verifier.sort_out(merged), claim)
    whole = verifier.verify(LOGS[scheme], claim=claim)
    assert verdict == whole
    assert verdict.as_dict() == whole.as_dict()
    assert verifier.judge.segments(verifier.sort_out(merged)) == verifier.segments(LOGS[scheme])


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_the_order_of_merging_changes_no_number(scheme: str) -> None:
    """Which of two copies is called the duplicate may change, and the order of the findings; nothing else does."""
    log = LOGS[scheme]
    backwards = LogState()
    for record in reversed(log):
        backwards.merge(accumulate([record], KEYS))
    verifier = Verifier(KEY)
    said = verifier.judge.verdict(verifier.sort_out(backwards)).as_dict()
    expected = Verifier(KEY).verify(log).as_dict()
    assert said.pop("tampering") is not None
    assert expected.pop("tampering") is not None
    assert said == expected


def test_conflicts_across_parts_are_found_when_they_meet() -> None:
    """Each part alone uses its copy; together none of them counts."""
    record = marked_log(KEY, steps=1)[0]
    assert record.distribution is not None
    turned = replace(record, behavior=next(n for n in record.distribution.behaviors if n != record.behavior))
    first, second = accumulate([record], KEYS), accumulate([turned], KEYS)
    assert first.intake().steps[0].outcome is Outcome.USED
    first.merge(second)
    assert [step.outcome for step in first.intake().steps] == [Outcome.CONFLICTING, Outcome.CONFLICTING]


def test_a_step_that_stands_in_a_log_many_times_is_read_once(read_steps: list[str]) -> None:
    log = marked_log(KEY, steps=3)
    state = accumulate(log * 50, KEYS)
    assert len(read_steps) == 3
    assert [step.outcome for step in state.intake().steps].count(Outcome.DUPLICATE) == 3 * 49


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_bytes_are_read_back_whole(scheme: str) -> None:
    partial = [record.with_partial_weights({}) for record in marked_log(KEY, scheme=scheme, steps=4, seed=8)]
    state = accumulate([*LOGS[scheme], *partial], KEYS)
    again = LogState.from_bytes(state.to_bytes())
    assert again.intake() == state.intake()
    assert again.to_bytes() == state.to_bytes()


def test_damaged_bytes_are_refused() -> None:
    data = accumulate(marked_log(KEY, scheme="R", steps=3), KEYS).to_bytes()
    for size in [*range(30), *range(30, len(data), 7)]:
        with pytest.raises(StateError, match=r"log state|record"):
            LogState.from_bytes(data[:size])
    with pytest.raises(StateError, match="padded"):
        LogState.from_bytes(data + b"\0")
    with pytest.raises(StateError, match="unknown outcome"):
        LogState.from_bytes(data[:25] + b"\xff" + data[26:])


def crafted(reading: SymbolSet | SoftSymbols | None, outcome: Outcome = Outcome.USED, *, marked: bool = True) -> bytes:
    """The bytes of a state that somebody made up."""
    record = marked_log(KEY, scheme="R", steps=1)[0]
    if not marked:
        record = replace(record, marked=False, reason="made up")
    state = LogState(KEYS.check)
    state.update(Step(record, outcome, reading))
    return state.to_bytes()


FORGED = {
    "evidence without measure": SoftSymbols((1,) * 8, 0, (1e300,) * 256),
    "a mean above 1": SoftSymbols((1,) * 8, 0, (1.001,) * 256),
    "infinite": SoftSymbols((1,) * 8, 0, (float("inf"), *(0.0,) * 255)),
    "not a number": SoftSymbols((1,) * 8, 0, (float("nan"), *(0.0,) * 255)),
    "negative": SoftSymbols((1,) * 8, 0, (-1.0, *(0.0,) * 255)),
    "too few values": SoftSymbols((1,) * 8, 0, (1.0,) * 7),
    "too few rows": SoftSymbols((1,), 0, (1.0, 1.0)),
    "no symbol": SymbolSet((1, 2), 0, 0),
    "a symbol beyond the rows": SymbolSet((1, 2), 0, 1 << 4),
    "too many rows": SymbolSet((1,) * 5000, 0, 1),
    "a row beyond the payload": SymbolSet((1 << 16,), 0, 1),
    "a pad beyond the rows": SymbolSet((1,), 2, 1),
}


@pytest.mark.parametrize("kind", FORGED)
def test_readings_that_no_step_has_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=r"record 1 of a log state|log state"):
        LogState.from_bytes(crafted(FORGED[kind]))


def test_a_reading_and_its_outcome_belong_together() -> None:
    fine = SymbolSet((1,), 0, 1)
    LogState.from_bytes(crafted(fine))
    for data in (
        crafted(fine, Outcome.UNMARKED),
        crafted(None, Outcome.USED),
        crafted(fine, Outcome.USED, marked=False),
    ):
        with pytest.raises(ValueError, match="contradict each other"):
            LogState.from_bytes(data)


def test_states_of_other_keys_do_not_merge() -> None:
    log = marked_log(KEY, steps=3)
    mine = accumulate(log, KEYS)
    for other in (KEYS.strangers(), Keyring([KEY, OTHER]), Keyring(KEY, any_key_id=True), Keyring(OTHER)):
        with pytest.raises(ValueError, match="other keys"):
            mine.merge(accumulate(log, other))
    mine.merge(LogState.from_bytes(accumulate(log, Keyring(KEY)).to_bytes()))
    assert len(mine) == 6


def others_of(record: StepRecord) -> dict[str, StepRecord]:
    """The same context, and one thing different that a reading depends on."""
    assert record.distribution is not None
    weights = record.distribution.as_weights()
    another = next(name for name in weights if name != record.behavior)
    swapped = {**weights, record.behavior: weights[another], another: weights[record.behavior]}
    return {
        "scheme": replace(record, scheme="R" if record.scheme == "F" else "F"),
        "key": replace(record, key_id=OTHER.id),
        "length": replace(record, payload_len=8),
        "mark": replace(record, marked=False, reason="none"),
        "choice": replace(record, behavior=another),
        "list": replace(record, distribution=BehaviorDistribution.from_weights(swapped)),
        "part": record.with_partial_weights({}),
        "other part": record.with_partial_weights({record.behavior: weights[record.behavior]}),
    }


@pytest.mark.parametrize("scheme", ["F", "R"])
@pytest.mark.parametrize("what", others_of(marked_log(KEY, steps=1)[0]))
def test_a_reading_is_used_again_only_where_it_would_be_the_same(scheme: str, what: str) -> None:
    keys = Keyring([KEY, OTHER])
    for record in marked_log(KEY, scheme=scheme, steps=12):
        pair = [record, others_of(record)[what]]
        assert accumulate(pair, keys)._steps == [read_record(each, keys) for each in pair]
        assert accumulate(pair[::-1], keys)._steps == [read_record(each, keys) for each in pair[::-1]]


def test_a_state_holds_no_key() -> None:
    """It opens the steps that are in it, and no other."""
    data = accumulate(marked_log(KEY, scheme="R", steps=3), KEYS).to_bytes()
    assert bytes(range(32)) not in data
    assert bytes(range(32)).hex().encode() not in data
