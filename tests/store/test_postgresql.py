"""What a store on a server meets: restarts, crashes, cut lines, servers that hang, roles with few rights."""

import asyncio
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster
from programs import WRITER, environment, program
from proxy import Proxy
from stored import decision_of, new_record

from agentmark import SettingError
from agentmark.record import StepRecord
from agentmark.store.errors import StoreError
from agentmark.store.open import open_store
from agentmark.store.store import Store
from agentmark.store.tenants import Tenant


def in_store(url: str, work: Callable[[Store], Awaitable[Any]], **settings: Any) -> Any:
    async def done() -> Any:
        async with open_store(url, **settings) as store:
            return await work(store)

    return asyncio.run(done())


async def nothing(_: Store) -> None: ...


def lines_in(url: str) -> list[str]:
    return list(open_store(url).lines())


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    way = Proxy(cluster.port)
    yield way
    way.close()


async def keep_writing(store: Store, acknowledged: list[StepRecord], faults: list[StoreError]) -> None:
    """As a gateway does: one record after the other, and on with the next if one fails."""
    while True:
        record = new_record()
        try:
            await store.record(record)
            acknowledged.append(record)
        except StoreError as error:
            faults.append(error)


# --- the server goes away ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_restart_under_load_loses_nothing_that_was_acknowledged(cluster: Cluster, how: signal.Signals) -> None:
    """In an orderly way, and as a crash does. Those that wait long enough do not even notice."""
    acknowledged: list[StepRecord] = []
    faults: list[StoreError] = []

    async def work(store: Store) -> None:
        writers = [asyncio.ensure_future(keep_writing(store, acknowledged, faults)) for _ in range(8)]
        for _ in range(3):
            before = len(acknowledged)
            await asyncio.to_thread(cluster.stop, how)
            await asyncio.to_thread(cluster.start)
            while len(acknowledged) < before + 20:
                await asyncio.sleep(0.01)
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)

    in_store(cluster.url, lambda store: asyncio.wait_for(work(store), 120), patience_s=20)
    assert faults == []
    lines = lines_in(cluster.url)
    assert len(lines) == len(set(lines))
    assert {record.to_json() for record in acknowledged} <= set(lines)


def test_a_server_that_is_down_is_named_and_found_again(cluster: Cluster) -> None:
    async def work(store: Store) -> None:
        record = new_record()
        await store.record(record, decision=decision_of(record, retry_key="again"))
        await asyncio.to_thread(cluster.stop)
        with pytest.raises(StoreError, match=r"is out of reach|is stopping"):
            await store.record(new_record())
        with pytest.raises(StoreError, match=r"is out of reach|is stopping"):
            await store.find_decision("", "again")
        with pytest.raises(StoreError):
            await store.check()
        await asyncio.to_thread(cluster.start)
        await store.record(new_record())
        assert await store.find_decision("", "again") is not None
        await store.check()

    in_store(cluster.url, work, patience_s=0.5)
    assert len(lines_in(cluster.url)) == 2


def test_a_server_that_hangs_is_given_up_on_and_found_again(cluster: Cluster) -> None:
    async def work(store: Store) -> None:
        await store.record(new_record())
        cluster.signal_all(signal.SIGSTOP)
        try:
            with pytest.raises(StoreError, match="does not answer") as caught:
                await store.record(new_record())
            assert caught.value.written is None
            with pytest.raises(StoreError, match="does not answer"):
                await store.tenants()
        finally:
            cluster.signal_all(signal.SIGCONT)
        await _until_it_works(lambda: store.record(new_record()))
        await _until_it_works(store.tenants)

    in_store(cluster.url, work, patience_s=0.5)


def test_a_line_that_is_cut_loses_nothing_that_was_acknowledged(cluster: Cluster, proxy: Proxy) -> None:
    acknowledged: list[StepRecord] = []
    faults: list[StoreError] = []

    async def work(store: Store) -> None:
        writers = [asyncio.ensure_future(keep_writing(store, acknowledged, faults)) for _ in range(8)]
        for round_number in range(6):
            before = len(acknowledged)
            while len(acknowledged) < before + 20:
                await asyncio.sleep(0.01)
            if round_number % 2:
                proxy.swallow()
                while not faults:
                    await asyncio.sleep(0.01)
            proxy.cut()
            await asyncio.sleep(0.1)
            proxy.mend()
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)

    url = f"postgresql://owner@127.0.0.1:{proxy.port}/postgres"
    in_store(url, lambda store: asyncio.wait_for(work(store), 120), patience_s=1)
    # The calls that were cancelled at the end may have come through as well.
    assert faults
    lines = lines_in(cluster.url)
    assert len(lines) == len(set(lines))
    assert {record.to_json() for record in acknowledged} <= set(lines)
    unsure = [fault for fault in faults if fault.written is None]
    assert len(lines) - len(acknowledged) <= len(unsure) + 8


async def _until_it_works(call: Callable[[], Awaitable[Any]]) -> None:
    async def tried() -> None:
        while True:
            with suppress(StoreError):
                await call()
                return

    await asyncio.wait_for(tried(), 60)


# --- what it may not be --------------------------------------------------------------------------------------------


def test_a_server_that_does_not_write_through_is_refused(cluster: Cluster) -> None:
    cluster.stop()
    cluster.start(fsync="off")
    try:
        with pytest.raises(SettingError, match="runs with fsync off"):
            in_store(cluster.url, nothing)
    finally:
        cluster.stop()
        cluster.start()


def test_commits_that_do_not_wait_for_the_disk_are_made_to(cluster: Cluster) -> None:
    cluster.execute("ALTER ROLE owner SET synchronous_commit = off")
    try:
        in_store(cluster.url, nothing)
        connection = open_store(cluster.url)._database.connect()
        assert connection.rows("SHOW synchronous_commit") == [("on",)]
        connection.close()
    finally:
        cluster.execute("ALTER ROLE owner RESET synchronous_commit")


def test_a_schema_of_something_else_is_refused(cluster: Cluster) -> None:
    cluster.execute("CREATE SCHEMA agentmark")
    cluster.execute("CREATE TABLE agentmark.theirs (x integer)")
    with pytest.raises(SettingError, match="its schema agentmark is of something else: it holds theirs"):
        in_store(cluster.url, nothing)
    assert cluster.execute("SELECT to_regclass('agentmark.records')") == [(None,)]


def test_another_version_is_refused(cluster: Cluster) -> None:
    in_store(cluster.url, nothing)
    cluster.execute("UPDATE agentmark.about SET version = 9")
    with pytest.raises(SettingError, match="holds schema 9, this build writes 1"):
        in_store(cluster.url, nothing)


def test_a_database_or_a_user_that_is_not_there(cluster: Cluster) -> None:
    with pytest.raises(StoreError, match="is not there: make it with `createdb`"):
        in_store(cluster.url_of("owner", "nosuch"), nothing)
    with pytest.raises(StoreError, match="refuses this user"):
        in_store(cluster.url_of("nosuch", "postgres"), nothing)


# --- append-only ---------------------------------------------------------------------------------------------------


def test_records_are_not_deleted_unless_retention_announced_it(cluster: Cluster) -> None:
    import psycopg

    async def work(store: Store) -> None:
        for _ in range(3):
            await store.record(new_record())
        await store.note_call("acme", "verify")

    in_store(cluster.url, work)
    for statement in (
        "DELETE FROM agentmark.records",
        "DELETE FROM agentmark.calls",
        "UPDATE agentmark.records SET line = ''",
        "TRUNCATE agentmark.records",
        "TRUNCATE agentmark.calls",
    ):
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="append-only"):
            cluster.execute(statement)
    [[middle]] = cluster.execute("SELECT written_at FROM agentmark.records ORDER BY id OFFSET 1 LIMIT 1")
    cluster.execute(
        "INSERT INTO agentmark.expirations (before, at, what, deleted)"
        f" VALUES ({middle!r}::double precision, 0, 'records', 1)"
    )
    for statement in (
        "DELETE FROM agentmark.records",
        "DELETE FROM agentmark.expirations",
        "UPDATE agentmark.expirations SET before = 1e12",
        "TRUNCATE agentmark.expirations",
    ):
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="append-only"):
            cluster.execute(statement)
    cluster.execute(f"DELETE FROM agentmark.records WHERE written_at < {middle!r}::double precision")
    assert len(lines_in(cluster.url)) == 2


# --- roles ---------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "store.md"
GRANTS = PAGE.read_text("utf-8").partition("```text\n")[2].partition("```")[0]


@pytest.fixture
def roles(cluster: Cluster) -> Iterator[Cluster]:
    in_store(cluster.url, nothing)
    cluster.execute(GRANTS)
    yield cluster
    cluster.execute("DROP OWNED BY gateway, auditor, retention")
    cluster.execute("DROP ROLE gateway, auditor, retention")


def test_each_role_can_do_its_work_and_no_more(roles: Cluster) -> None:
    """With the grants that the page names."""

    async def as_gateway(store: Store) -> None:
        record = new_record()
        await store.record(record, decision=decision_of(record, retry_key="again"))
        assert await store.find_decision("", "again") is not None
        await store.note_call("acme", "verify")
        assert await store.tenants() == ()
        clock[0] += 1
        with pytest.raises(StoreError, match="does not let this user do that"):
            await store.expire(clock[0])
        with pytest.raises(StoreError, match="does not let this user do that"):
            await store.add_tenant(Tenant(name="acme", identity="acme"))
        # Refused, and none the worse for it.
        await store.record(new_record())

    clock = [time.time() - 10]
    in_store(roles.url_of("gateway", "postgres"), as_gateway, clock=lambda: clock[0])
    assert len(lines_in(roles.url_of("auditor", "postgres"))) == 2
    assert in_store(roles.url_of("retention", "postgres"), lambda store: store.expire(time.time())).records == 2


def test_who_may_not_make_tables_is_told_so(cluster: Cluster) -> None:
    cluster.execute("CREATE ROLE poor LOGIN")
    try:
        with pytest.raises(SettingError, match="does not let this user do that; see the grants"):
            in_store(cluster.url_of("poor", "postgres"), nothing)
    finally:
        cluster.execute("DROP ROLE poor")


# --- several gateways ----------------------------------------------------------------------------------------------


def test_two_gateways_on_one_database_begin_and_write_at_once(cluster: Cluster) -> None:
    shared = "ab" * 32
    processes = [
        subprocess.Popen(program(WRITER, cluster.url, shared), env=environment(), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = sorted(process.communicate(timeout=120)[0].strip() for process in processes)
    assert said == ["refused", "taken"]
    assert len(lines_in(cluster.url)) == 301


def test_a_retry_at_another_gateway_finds_the_decision(cluster: Cluster) -> None:
    async def work(here: Store) -> None:
        async with open_store(cluster.url) as there:
            record = new_record()
            await here.record(record, decision=decision_of(record, tenant="acme", retry_key="again"))
            found = await there.find_decision("acme", "again")
            assert found is not None
            assert found.record == record

    in_store(cluster.url, work)
