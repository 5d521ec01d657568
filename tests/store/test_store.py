"""The store, on each database."""

import asyncio
import json
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored import decision_of, new_record

from agentmark import SettingError, read_log
from agentmark.store.errors import RepeatedContextError, StoreClosedError, StoreError
from agentmark.store.open import open_store
from agentmark.store.store import Store
from agentmark.store.tenants import Tenant


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def in_store(url: str, work: Callable[[Store], Awaitable[Any]], **settings: Any) -> Any:
    async def done() -> Any:
        async with open_store(url, **settings) as store:
            return await work(store)

    return asyncio.run(done())


def lines_in(url: str) -> list[str]:
    return list(open_store(url).lines())


# --- records -------------------------------------------------------------------------------------------------------


def test_a_record_is_there_for_others_when_the_call_returns(url: str) -> None:
    record = new_record()

    async def work(store: Store) -> list[str]:
        await store.record(record)
        return await asyncio.to_thread(lines_in, url)

    assert in_store(url, work) == [record.to_json()]


def test_many_callers_share_transactions(url: str) -> None:
    records = [new_record() for _ in range(200)]

    async def work(store: Store) -> None:
        await asyncio.gather(*[store.record(record) for record in records])
        # Each caller alone would make 200 commits.
        assert store.stats.records == 200
        assert store.stats.commits < 50

    in_store(url, work)
    assert sorted(lines_in(url)) == sorted(record.to_json() for record in records)


def test_a_context_is_taken_once(url: str) -> None:
    record = new_record()
    other = replace(record, session="another", behavior="Book")

    async def work(store: Store) -> None:
        await store.record(record)
        for again in (record, other):
            with pytest.raises(RepeatedContextError) as caught:
                await store.record(again)
            assert caught.value.written is False
        assert store.stats.failures == {"RepeatedContextError": 2}

    in_store(url, work)
    assert lines_in(url) == [record.to_json()]


def test_a_repeated_context_costs_nobody_else_their_record(url: str) -> None:
    taken = new_record()
    records = [new_record() for _ in range(20)]

    async def work(store: Store) -> list[Any]:
        await store.record(taken)
        calls = [store.record(record) for record in records]
        return list(await asyncio.gather(*calls[:10], store.record(taken), *calls[10:], return_exceptions=True))

    outcomes = in_store(url, work)
    assert [type(outcome) for outcome in outcomes if outcome] == [RepeatedContextError]
    assert len(lines_in(url)) == 21


def test_equal_calls_at_once_take_a_context_once(url: str) -> None:
    record = new_record()

    async def work(store: Store) -> list[Any]:
        return list(await asyncio.gather(*[store.record(record) for _ in range(30)], return_exceptions=True))

    outcomes = in_store(url, work)
    assert outcomes.count(None) == 1
    assert len(lines_in(url)) == 1


def test_what_became_of_a_step_follows_its_record_and_the_first_word_stands(url: str) -> None:
    record = new_record()
    first, second = (replace(record, enforced=False, meta={"did": name}) for name in ("Book", "Pay"))

    async def work(store: Store) -> None:
        await store.record(record)
        await store.record(first)
        await store.record(second)
        await store.record(replace(record, enforced=True))

    in_store(url, work)
    assert [json.loads(line).get("enforced") for line in lines_in(url)] == [None, False, True]
    assert lines_in(url)[1] == first.to_json()


def test_all_of_a_call_is_written_or_nothing(url: str) -> None:
    taken = new_record()
    record = new_record()

    async def work(store: Store) -> None:
        await store.record(taken)
        with pytest.raises(RepeatedContextError):
            await store.record(record, taken, decision=decision_of(record, tenant="t", retry_key="again"))
        assert await store.find_decision("t", "again") is None

    in_store(url, work)
    assert lines_in(url) == [taken.to_json()]


@settings(max_examples=15, deadline=None)
@given(session=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400))
def test_any_session_is_stored_and_found(sqlite_or_postgresql: str, session: str) -> None:
    """Also with zero bytes, and longer than an index takes."""
    record = new_record(session=session)
    place = os.urandom(8)

    async def work(store: Store) -> Any:
        await store.record(record, decision=decision_of(record, place=place))
        return await store.last_decision("", session, place)

    found = in_store(sqlite_or_postgresql, work)
    assert (found.session, found.record) == (session, record)
    assert list(open_store(sqlite_or_postgresql).lines(session=session))[-1] == record.to_json()


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def sqlite_or_postgresql(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "sqlite":
        return str(tmp_path_factory.mktemp("sessions") / "store.db")
    cluster = request.getfixturevalue("running_cluster")
    cluster.execute("CREATE DATABASE sessions")
    return str(cluster.url_of("owner", "sessions"))


def test_stores_of_two_event_loops_in_one_process(url: str) -> None:
    def work() -> None:
        in_store(url, lambda store: asyncio.gather(*[store.record(new_record()) for _ in range(25)]))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines_in(url)) == 50


def test_close_writes_what_is_queued(url: str) -> None:
    async def work() -> None:
        store = open_store(url)
        await store.start()
        calls = [asyncio.ensure_future(store.record(new_record())) for _ in range(40)]
        await asyncio.sleep(0)
        await store.close()
        assert await asyncio.gather(*calls) == [None] * 40
        await store.close()
        with pytest.raises(StoreClosedError, match="is closed"):
            await store.record(new_record())

    asyncio.run(work())
    assert len(lines_in(url)) == 40


def test_a_store_has_to_be_started(url: str) -> None:
    with pytest.raises(StoreClosedError, match=r"await start\(\) first"):
        asyncio.run(open_store(url).record(new_record()))


def test_a_cancelled_caller_leaves_a_store_that_works(url: str) -> None:
    async def work(store: Store) -> None:
        call = asyncio.ensure_future(store.record(new_record()))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await store.record(new_record())

    in_store(url, work)
    assert len(lines_in(url)) in (1, 2)


# --- decisions -----------------------------------------------------------------------------------------------------


def test_a_decision_is_found_by_its_retry_key_until_it_expires(url: str) -> None:
    clock = Clock()
    record = new_record()
    decision = decision_of(
        record,
        tenant="acme",
        retry_key="key\0with a zero byte",
        place=b"\0place",
        names=("Search", "Bo\0ok", "\u4e2d"),
        method="proposals",
        model="some model",
        request_digest=b"\xff\0",
        created_at=clock.now,
        expires_at=clock.now + 10,
        reply=b"\0 the whole reply \xff",
        status=200,
        headers=(("content-type", "text/event-stream"), ("x-twice", "1"), ("x-twice", "2")),
    )

    async def work(store: Store) -> None:
        await store.record(record, decision=decision)
        assert decision.retry_key is not None
        assert await store.find_decision("acme", decision.retry_key) == decision
        assert await store.find_decision("other", decision.retry_key) is None
        assert await store.find_decision("acme", "key") is None
        clock.now += 10
        assert await store.find_decision("acme", decision.retry_key) is None
        # It can still be looked back to, without its reply.
        assert await store.last_decision("acme", record.session, b"\0place") == replace(decision, reply=None)

    in_store(url, work, clock=clock)


def test_the_newest_decision_is_found(url: str) -> None:
    records = [new_record() for _ in range(3)]

    async def work(store: Store) -> None:
        for age, record in zip((0, 20, 10), records, strict=True):
            made = decision_of(record, retry_key="again", place=b"p")
            await store.record(record, decision=replace(made, created_at=made.created_at - age))
        found = await store.find_decision("", "again")
        assert found is not None
        assert found.record == records[0]
        assert [d.record for d in await store.decisions_at("", "s1", b"p")] == [records[0], records[2], records[1]]
        assert len(await store.decisions_at("", "s1", b"p", most=2)) == 2
        assert await store.last_decision("another tenant", "s1", b"p") is None

    in_store(url, work)


def test_a_decision_stored_again_gets_its_reply_and_keeps_what_was_decided(url: str) -> None:
    record = new_record()
    decision = decision_of(record, tenant="acme", retry_key="again")

    async def work(store: Store) -> None:
        await store.record(record, decision=decision)
        whole = replace(decision, reply=b"all of it", status=200, settled=True, behavior="something else")
        await store.record(decision=whole)
        assert await store.find_decision("acme", "again") == replace(whole, behavior=decision.behavior)
        # Another tenant cannot touch it, whatever id it makes up.
        await store.record(decision=replace(whole, tenant="mallory", reply=b"evil"))
        assert await store.find_decision("acme", "again") == replace(whole, behavior=decision.behavior)

    in_store(url, work)


def test_a_decision_says_whether_it_was_taken_back(url: str) -> None:
    record = new_record()

    async def work(store: Store) -> None:
        await store.record(record, decision=decision_of(record, retry_key="again"))
        await store.record(record.with_enforced(False))
        found = await store.find_decision("", "again")
        assert found is not None
        assert found.voided
        # The record is the one that was decided, not the one that takes it back.
        assert found.record == record

    in_store(url, work)


def test_a_decision_without_a_record(url: str) -> None:
    decision = replace(decision_of(new_record(), retry_key="again"), record=None, behavior=None)

    async def work(store: Store) -> None:
        await store.record(decision=decision)
        assert await store.find_decision("", "again") == decision

    in_store(url, work)


def test_replies_are_deleted_when_they_expire_and_decisions_when_they_are_old(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentmark.store.writing.HOUSEKEEPING_S", 0.01)
    clock = Clock()
    record = new_record()
    made = decision_of(record, created_at=clock.now, expires_at=clock.now + 10, reply=b"a reply")

    async def work(store: Store) -> None:
        await store.record(record, decision=made)
        assert (await store.contents()).replies == 1
        clock.now += 10
        while (await store.contents()).replies:
            await asyncio.sleep(0.01)
        assert (await store.contents()).decisions == 1
        clock.now += 3600
        while (await store.contents()).decisions:
            await asyncio.sleep(0.01)
        # What was decided stays on record.
        assert (await store.contents()).records == 1

    in_store(url, lambda store: asyncio.wait_for(work(store), 60), clock=clock, remember_s=3600)


# --- tenants -------------------------------------------------------------------------------------------------------

ACME = Tenant(
    name="acme",
    identity="acme-agent",
    key_file="/keys/acme.json",
    upstream_credential="env:ACME_KEY",
    requests_per_minute=100,
    concurrent_requests=5,
)


def test_a_tenant_is_known_by_its_api_keys(url: str) -> None:
    clock = Clock()

    async def work(store: Store) -> None:
        await store.add_tenant(ACME)
        first, second = [await store.issue_api_key("acme") for _ in range(2)]
        known = replace(ACME, created_at=clock.now)
        assert await store.tenant_of(first) == known == await store.tenant_of(second)
        assert await store.tenants() == (known,)
        assert {key.id for key in await store.api_keys("acme")} == {first[4:20], second[4:20]}
        # Half of one and half of another, and what is no key at all.
        for wrong in (first[:21] + second[21:], first[:-1], first.upper(), "", "amk_", "sk-123", f" {first}"):
            assert await store.tenant_of(wrong) is None

    in_store(url, work, clock=clock)


def test_a_revoked_key_ends_at_once_here_and_soon_elsewhere(url: str) -> None:
    clock = Clock()

    async def work(here: Store) -> None:
        async with open_store(url, clock=clock, tenant_cache_s=5) as elsewhere:
            await here.add_tenant(ACME)
            first, second = [await here.issue_api_key("acme") for _ in range(2)]
            assert await elsewhere.tenant_of(first) is not None
            await here.revoke_api_key(first[4:20], tenant="acme")
            assert await here.tenant_of(first) is None
            clock.now += 5
            assert await elsewhere.tenant_of(first) is None
            assert await elsewhere.tenant_of(second) is not None
            await here.revoke_tenant("acme")
            assert await here.tenant_of(second) is None
            clock.now += 5
            assert await elsewhere.tenant_of(second) is None

    in_store(url, work, clock=clock)


def test_what_cannot_be_done_with_tenants(url: str) -> None:
    async def work(store: Store) -> None:
        with pytest.raises(SettingError, match="there is no tenant 'acme'"):
            await store.issue_api_key("acme")
        await store.add_tenant(ACME)
        with pytest.raises(SettingError, match="is there already"):
            await store.add_tenant(ACME)
        key = await store.issue_api_key("acme")
        with pytest.raises(SettingError, match="has none with this id") as caught:
            await store.revoke_api_key(key, tenant="acme")
        assert key not in str(caught.value)
        with pytest.raises(SettingError, match="has none with this id"):
            await store.revoke_api_key(key[4:20], tenant="another")
        await store.revoke_tenant("acme")
        for attempt in (store.revoke_tenant("acme"), store.issue_api_key("acme")):
            with pytest.raises(SettingError, match="is revoked"):
                await attempt
        with pytest.raises(SettingError, match="is there already"):
            await store.add_tenant(ACME)

    in_store(url, work)


# --- calls, retention ----------------------------------------------------------------------------------------------


def test_verification_calls_are_on_record(url: str) -> None:
    clock = Clock()

    async def work(store: Store) -> None:
        await store.note_call("acme", "verify", detail={"records": 12})
        clock.now += 1
        await store.note_call("other", "verify")
        assert [call.tenant for call in await store.calls()] == ["acme", "other"]
        [call] = await store.calls(tenant="acme")
        assert (call.what, call.at, call.detail) == ("verify", clock.now - 1, {"records": 12})
        assert [call.tenant for call in await store.calls(since=clock.now)] == ["other"]
        with pytest.raises(SettingError, match="longer than"):
            await store.note_call("acme", "verify", detail={"text": "x" * 20_000})

    in_store(url, work, clock=clock)


def test_retention_deletes_what_is_old_and_says_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentmark.store.tables.DELETED_AT_ONCE", 4)
    clock = Clock()
    old, new = [new_record() for _ in range(10)], [new_record() for _ in range(3)]

    async def work(store: Store) -> None:
        for record in old:
            await store.record(record, decision=decision_of(record, created_at=clock.now))
        await store.note_call("acme", "verify")
        clock.now += 100
        for record in new:
            await store.record(record)
        with pytest.raises(SettingError, match="in the future"):
            await store.expire(clock.now + 1)
        expired = await store.expire(clock.now)
        assert (expired.records, expired.decisions, expired.calls) == (10, 10, 1)
        assert (await store.expire(clock.now)).records == 0
        contents = await store.contents()
        assert (contents.records, contents.expired, contents.expired_before) == (3, 10, clock.now)

    in_store(url, work, clock=clock, remember_s=1e9)
    assert lines_in(url) == [record.to_json() for record in new]


def test_two_that_expire_at_once_count_each_record_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentmark.store.tables.DELETED_AT_ONCE", 7)
    clock = Clock()

    async def work(here: Store) -> None:
        async with open_store(url, clock=clock) as there:
            await asyncio.gather(*[here.record(new_record()) for _ in range(100)])
            clock.now += 1
            expired = await asyncio.gather(*[store.expire(clock.now) for store in (here, there) * 2])
            assert sum(done.records for done in expired) == 100
            assert (await here.contents()).expired == 100

    in_store(url, work, clock=clock)


def test_a_database_that_fails_during_retention_keeps_count(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was deleted is what was announced, however far it came."""
    monkeypatch.setattr("agentmark.store.tables.DELETED_AT_ONCE", 4)
    clock = Clock()

    async def work(store: Store) -> None:
        for _ in range(10):
            await store.record(new_record())
        clock.now += 1
        with monkeypatch.context() as broken:
            broken.setattr("agentmark.store.sqlite.SqliteConnection.tidy", _fail)
            broken.setattr("agentmark.store.postgresql.PostgresqlConnection.tidy", _fail)
            with pytest.raises(StoreError, match="the disk went away"):
                await store.expire(clock.now)
        contents = await store.contents()
        assert (contents.records, contents.expired) == (6, 4)
        assert (await store.expire(clock.now)).records == 6

    in_store(url, work, clock=clock)


def _fail(*_: object) -> None:
    from agentmark.store.database import DatabaseError

    raise DatabaseError("the disk went away")


# --- export --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".parquet"])
def test_an_export_is_a_log(url: str, tmp_path: Path, ending: str) -> None:
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    clock = Clock()
    ours, theirs = new_record(), new_record(session="s2")

    async def work(store: Store) -> None:
        await store.record(ours, tenant="acme")
        clock.now += 10
        await store.record(theirs, tenant="other")

    in_store(url, work, clock=clock)
    store = open_store(url, clock=clock)
    assert store.export(tmp_path / f"all{ending}") == 2
    assert read_log(tmp_path / f"all{ending}").records == [ours, theirs]
    for name, wanted, expected in (
        ("tenant", {"tenant": "acme"}, [ours]),
        ("session", {"session": "s2"}, [theirs]),
        ("since", {"since": clock.now}, [theirs]),
        ("both", {"tenant": "acme", "since": clock.now}, []),
    ):
        out = tmp_path / f"{name}{ending}"
        assert store.export(out, **wanted) == len(expected)
        assert read_log(out, skip_bad=not expected).records == expected
    with pytest.raises(SettingError, match="nothing is written over"):
        store.export(tmp_path / f"all{ending}")


def test_what_is_no_store_is_not_exported(url: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"is no file|holds no store"):
        open_store(url).export(tmp_path / "out.jsonl")
    assert list(tmp_path.glob("*")) == []


def test_the_store_is_ready_when_it_takes_writes(url: str) -> None:
    in_store(url, lambda store: store.check())
