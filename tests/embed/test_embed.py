"""The embedding side: contexts are used once, nothing is bent, threads do not collide."""

import asyncio
import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from support import TICKET_WEIGHTS

from agentmark import (
    ContextError,
    DistributionError,
    Embedder,
    Identity,
    PayloadError,
    Registry,
    RegistryError,
    SettingError,
    SharedKey,
    StepRecord,
    Verifier,
)
from agentmark.core import scheme_r

KEY = SharedKey(bytes(range(100, 132)))


def test_the_same_step_in_two_sessions_is_drawn_anew() -> None:
    marker = Embedder(KEY, 5, payload_len=8)
    choices = {tuple(marker.session().choose(TICKET_WEIGHTS).behavior for _ in range(12)) for _ in range(20)}
    assert len(choices) == 20


def test_a_context_that_repeats_is_not_marked_twice() -> None:
    session = Embedder(KEY, 5, payload_len=8).session()
    first = session.choose(TICKET_WEIGHTS, step_index=3).record
    again = [session.choose(TICKET_WEIGHTS, step_index=3).record for _ in range(200)]
    assert first.marked
    assert {(record.marked, record.reason) for record in again} == {(False, "context repeated")}
    assert len({record.behavior for record in again}) > 1, "the unmarked choices must be fresh draws"
    assert session.choose(TICKET_WEIGHTS).record.step_index == 4


def test_unmarked_choices_keep_the_distribution() -> None:
    session = Embedder(KEY, 5, payload_len=8).session()
    counts = Counter(session.choose(TICKET_WEIGHTS, step_index=0).behavior for _ in range(20_000))
    observed = [counts[name] for name in TICKET_WEIGHTS]
    assert chisquare(observed, [20_000 * weight for weight in TICKET_WEIGHTS.values()]).pvalue > 1e-6


def test_a_bound_observation_makes_another_context() -> None:
    session = Embedder(KEY, 5, payload_len=8).session()
    one = session.choose(TICKET_WEIGHTS, step_index=0, context={"observation": "door open"}).record
    two = session.choose(TICKET_WEIGHTS, step_index=0, context={"observation": "door shut"}).record
    assert one.context != two.context
    assert two.marked


def test_unusable_weights_raise_and_spend_no_step() -> None:
    session = Embedder(KEY, 5, payload_len=8).session()
    with pytest.raises(DistributionError, match="all are zero"):
        session.choose({"a": 0, "b": 0})
    record = session.unmarked("a", reason="all weights were zero").record
    assert (record.step_index, record.marked, record.distribution) == (0, False, None)
    assert Verifier(KEY).verify([record]).counts == Counter({"unmarked": 1})


def test_a_near_tie_goes_unmarked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheme_r, "TIE_GAP", 1e9)
    record = Embedder(KEY, 5, payload_len=8, scheme="R").session().choose(TICKET_WEIGHTS).record
    assert (record.marked, record.reason) == (False, "near tie")


def test_threads_share_a_session_without_sharing_a_step() -> None:
    session = Embedder(KEY, 5, payload_len=8).session()
    with ThreadPoolExecutor(8) as pool:
        records = list(pool.map(lambda _: session.choose(TICKET_WEIGHTS).record, range(2000)))
    assert sorted(record.step_index for record in records) == list(range(2000))
    assert all(record.marked for record in records)
    assert Verifier(KEY).verify(records).payload == 5


def test_an_event_loop_can_call_it() -> None:
    session = Embedder(KEY, 5, payload_len=8).session()

    async def agent() -> list[str]:
        return [session.choose(TICKET_WEIGHTS).behavior for _ in range(5)]

    async def main() -> list[list[str]]:
        return await asyncio.gather(*[agent() for _ in range(20)])

    assert sum(map(len, asyncio.run(main()))) == 100


def test_an_interrupted_session_goes_on() -> None:
    marker = Embedder(KEY, 0xBEEF, payload_len=16)
    first = marker.session()
    records = [first.choose(TICKET_WEIGHTS).record for _ in range(30)]
    resumed = marker.session(first.id, first_step=30)
    records += [resumed.choose(TICKET_WEIGHTS).record for _ in range(30)]
    assert [record.step_index for record in records] == list(range(60))
    assert len({record.context for record in records}) == 60
    assert Verifier(KEY).verify(records).payload == 0xBEEF


def test_choosing_in_a_context_is_deterministic() -> None:
    marker = Embedder(KEY, 5, payload_len=8)
    record = marker.session().choose(TICKET_WEIGHTS).record
    assert record.distribution is not None
    assert {marker.choose_in_context(record.distribution, record.context) for _ in range(5)} == {record.behavior}


def test_names_come_from_the_registry() -> None:
    registry = Registry(16, [Identity("tenant-0042", 0xBEEF)])
    session = Embedder(KEY, "tenant-0042", registry=registry).session()
    records = [session.choose(TICKET_WEIGHTS).record for _ in range(60)]
    verdict = Verifier(KEY, registry=registry).verify(records)
    assert (verdict.payload, verdict.identity) == (0xBEEF, "tenant-0042")
    with pytest.raises(PayloadError, match="needs 88 bits"):
        Embedder(KEY, "tenant-0042", payload_len=32)
    registry.revoke("tenant-0042")
    with pytest.raises(RegistryError, match="was revoked"):
        Embedder(KEY, "tenant-0042", registry=registry)
    with pytest.raises(PayloadError, match="differs from the registry"):
        Embedder(KEY, "tenant-0042", payload_len=32, registry=registry)


def test_arguments_that_cannot_be_meant_are_named() -> None:
    with pytest.raises(SettingError, match="scheme: 'Q'"):
        Embedder(KEY, 5, payload_len=8, scheme="Q")
    marker = Embedder(KEY, 5, payload_len=8)
    with pytest.raises(SettingError, match="session_id"):
        marker.session("")
    with pytest.raises(SettingError, match="first_step"):
        marker.session(first_step=-1)
    session = marker.session()
    with pytest.raises(SettingError, match="step_index"):
        session.choose(TICKET_WEIGHTS, step_index=-1)
    with pytest.raises(SettingError, match="reason"):
        session.unmarked("a", reason="")
    with pytest.raises(DistributionError, match="'c' is not among"):
        session.unmarked("c", reason="x", weights={"a": 1})
    with pytest.raises(ContextError, match=r"meta\.seconds: float"):
        session.choose(TICKET_WEIGHTS, meta={"seconds": 0.5})
    for behavior in ("", None, "\ud800"):
        with pytest.raises(DistributionError, match="is not text"):
            session.unmarked(behavior, reason="x")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="step_index"):
        session.choose(TICKET_WEIGHTS, step_index=True)
    assert session.choose(TICKET_WEIGHTS).record.step_index == 0, "what was refused has spent no step"


def test_marked_and_unmarked_choices_cannot_be_told_apart_by_their_frequencies() -> None:
    """A distinguisher that counts choices given the list sees the same in both: chi-square of the two samples."""
    rng = random.Random(2)
    marker = Embedder(KEY, 0xFFFF, payload_len=16)
    marked, plain = Counter[str](), Counter[str]()
    session = marker.session()
    for _ in range(10_000):
        choice = session.choose(TICKET_WEIGHTS)
        marked[choice.behavior] += 1
        assert choice.record.distribution is not None
        plain[choice.record.distribution.at(rng.getrandbits(32))] += 1
    names = list(TICKET_WEIGHTS)
    statistic = sum((marked[n] - plain[n]) ** 2 / (marked[n] + plain[n]) for n in names)
    from scipy.stats import chi2

    assert chi2.sf(statistic, len(names) - 1) > 1e-6


def test_a_forked_copy_goes_on_as_a_session_of_its_own() -> None:
    """Workers that are forked after a session was made must not repeat its contexts (law L4)."""
    session = Embedder(SharedKey.generate(), 5, payload_len=8).session()
    first = session.choose({"a": 1, "b": 1}).record
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        line = session.choose({"a": 1, "b": 1}).record.to_json()
        os.write(writing, line.encode())
        os._exit(0)
    os.waitpid(child, 0)
    forked = StepRecord.from_json(os.read(reading, 1 << 16))
    mine = session.choose({"a": 1, "b": 1}).record
    assert (mine.session, mine.step_index) == (first.session, 1)
    assert forked.session != first.session
    assert forked.context != mine.context


def test_the_memory_of_a_session_does_not_grow_with_its_steps() -> None:
    session = Embedder(KEY, 5, payload_len=8).session()
    for _ in range(500):
        session.choose(TICKET_WEIGHTS)
    assert len(session._plain_steps) == 1
    assert session._used == set()


@given(steps=st.lists(st.integers(0, 12), max_size=40))
def test_a_step_in_any_order_is_marked_once(steps: list[int]) -> None:
    session = Embedder(KEY, 5, payload_len=8, scheme="F").session()
    seen: set[int] = set()
    for step in steps:
        record = session.choose(TICKET_WEIGHTS, step_index=step).record
        assert record.marked == (step not in seen)
        seen.add(step)


def test_a_session_beside_another_has_the_mark_and_another_nonce() -> None:
    session = Embedder(KEY, 5, payload_len=8).session("s")
    beside = session.another()
    assert beside.id not in ("s", session.another().id)
    record = beside.choose(TICKET_WEIGHTS).record
    assert (record.key_id, record.payload_len) == (KEY.id, 8)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_in_a_forked_copy_digests_and_records_are_of_one_session() -> None:
    session = Embedder(SharedKey(bytes(range(32))), 1, payload_len=8).session()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        before = session.argument_digest(b"{}")
        session.choose({"a": 1, "b": 1})
        os.write(writing, b"same" if session.argument_digest(b"{}") == before else b"other")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 16) == b"same"
    os.close(reading)
    os.close(writing)
