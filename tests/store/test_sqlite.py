"""What a store in a file meets: locks, full disks, files that go away, other programs' files, other processes."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import WRITER, environment, program, run_program
from stored import decision_of, new_record

from agentmark import AgentMarkError, SettingError, SqliteLog, read_log
from agentmark.store.errors import StoreClosedError, StoreError
from agentmark.store.open import open_store
from agentmark.store.store import Store
from agentmark.store.tenants import Tenant


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def in_store(path: Path, work: Callable[[Store], Awaitable[Any]], **settings: Any) -> Any:
    async def done() -> Any:
        async with open_store(path, **settings) as store:
            return await work(store)

    return asyncio.run(done())


async def nothing(_: Store) -> None: ...


def test_every_commit_waits_for_the_disk(path: Path) -> None:
    """FULL (2) is what makes SQLite write through at each commit; WAL alone with NORMAL does not."""
    in_store(path, nothing)
    connection = open_store(path)._database.connect()
    assert connection.rows("PRAGMA synchronous") == [(2,)]
    assert connection.rows("PRAGMA journal_mode") == [("wal",)]
    assert connection.rows("PRAGMA secure_delete") == [(1,)]
    connection.close()


def test_only_its_owner_reads_the_file(path: Path) -> None:
    in_store(path, nothing)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_lock_of_another_process_is_waited_for_and_then_named(path: Path) -> None:
    record = new_record()

    async def work(store: Store) -> None:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked by another process") as caught:
            await store.record(record)
        assert caught.value.written is False
        # One that asks while it is locked, and waits long enough.
        waiting = asyncio.ensure_future(store.record(record))
        await asyncio.sleep(0.01)
        other.execute("ROLLBACK")
        other.close()
        await waiting

    in_store(path, work, patience_s=1.5)
    assert read_log(path).records == [record]


def test_reading_goes_on_while_another_writes(path: Path) -> None:
    record = new_record()

    async def work(store: Store) -> None:
        await store.record(record, decision=decision_of(record, retry_key="again"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert await store.find_decision("", "again") is not None
        other.close()

    in_store(path, work)


def test_a_disk_that_is_full_is_named_and_nothing_is_half_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page limit is what SQLite makes of a full disk: the same error, from the same place."""
    _limit_pages(monkeypatch, 60)
    kept = []

    async def work(store: Store) -> None:
        async def fill() -> None:
            for _ in range(1000):
                record, outcome = new_record(), new_record(meta={"filler": "x" * 3000})
                await store.record(record, outcome)
                kept.extend([record, outcome])

        with pytest.raises(StoreError, match="its disk is full, or its size limit is reached") as caught:
            await fill()
        assert caught.value.written is False
        # Reading goes on, and so does writing once there is room.
        assert (await store.contents()).records == len(kept)

    in_store(path, work)
    assert kept
    assert read_log(path).records == kept
    monkeypatch.undo()
    in_store(path, lambda store: store.record(new_record()))
    assert len(read_log(path).records) == len(kept) + 1


def test_room_that_is_made_is_used_without_a_new_start(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = [60]
    _limit_pages(monkeypatch, limit)

    async def work(store: Store) -> None:
        async def fill() -> None:
            for _ in range(1000):
                await store.record(new_record(meta={"filler": "x" * 3000}))

        with pytest.raises(StoreError, match="is full"):
            await fill()
        limit[0] = 1000
        await store.record(new_record(meta={"filler": "x" * 3000}))

    in_store(path, work)


def _limit_pages(monkeypatch: pytest.MonkeyPatch, limit: int | list[int]) -> None:
    from agentmark.store.sqlite import SqliteConnection

    transaction = SqliteConnection.transaction

    def limited(self: SqliteConnection) -> Any:
        self._connection.execute(f"PRAGMA max_page_count = {limit if isinstance(limit, int) else limit[0]}")
        return transaction(self)

    monkeypatch.setattr(SqliteConnection, "transaction", limited)


TINY_DISK = """
import asyncio, resource, signal, sys
from stored import new_record
from agentmark.store.open import open_store
from agentmark.store.errors import StoreError

async def main(path):
    async with open_store(path) as store:
        # From now on no file of this process grows beyond this: what a full disk does, by the system itself.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
        written = 0
        try:
            while written < 5000:
                await store.record(new_record())
                written += 1
        except StoreError as error:
            print(written, error.written, error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await store.record(new_record())

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
def test_a_file_that_may_not_grow_loses_nothing_that_was_acknowledged(path: Path) -> None:
    done = run_program(TINY_DISK, str(path))
    written, unsure, *words = done.stdout.split(maxsplit=2)
    assert "disk" in words[0]
    # The one that failed may have come through, if nobody could tell.
    most = int(written) + 1 + (unsure == "None")
    assert int(written) + 1 <= len(read_log(path).records) <= most
    assert int(written) > 10


def test_a_file_that_was_deleted_takes_no_writes(path: Path) -> None:
    record = new_record()

    async def work(store: Store) -> None:
        await store.record(new_record())
        moved = path.with_name("moved.db")
        path.rename(moved)
        with pytest.raises(StoreError, match=r"was moved, deleted or replaced|cannot be opened"):
            await store.record(record)
        assert not path.exists()
        moved.rename(path)
        await store.record(record)

    in_store(path, work, patience_s=0.3)
    assert record in read_log(path).records


def test_a_file_that_was_replaced_takes_no_writes(path: Path, tmp_path: Path) -> None:
    async def work(store: Store) -> None:
        await store.record(new_record())
        path.unlink()
        path.write_bytes(b"")
        with pytest.raises(StoreError):
            await store.record(new_record())

    in_store(path, work, patience_s=0.3)
    assert path.read_bytes() == b""


def test_a_file_that_was_replaced_by_a_store_is_what_is_asked(path: Path) -> None:
    """By a backup that is put back, for instance. What was revoked there is revoked, and decisions are found again."""
    other = path.with_name("other.db")

    async def add(store: Store) -> str:
        await store.add_tenant(Tenant(name="acme", identity="acme"))
        return await store.issue_api_key("acme")

    valid = in_store(other, add)

    async def work(store: Store) -> None:
        known = await add(store)
        assert await store.tenant_of(known) is not None
        for name in ("store.db-wal", "store.db-shm"):
            path.with_name(name).unlink(missing_ok=True)
        other.replace(path)
        assert await store.tenant_of(known) is None
        assert await store.tenant_of(valid) is not None
        record = new_record()
        await store.record(record, decision=decision_of(record, retry_key="k"))
        assert (await store.find_decision("", "k")) is not None

    in_store(path, work, patience_s=2.0, tenant_cache_s=0.0)


def test_a_store_that_was_deleted_lets_nobody_in(path: Path) -> None:
    async def work(store: Store) -> None:
        await store.add_tenant(Tenant(name="acme", identity="acme"))
        key = await store.issue_api_key("acme")
        path.unlink()
        with pytest.raises(StoreError):
            await store.tenant_of(key)

    in_store(path, work, patience_s=0.3, tenant_cache_s=0.0)


def test_a_damaged_file_is_named(path: Path) -> None:
    in_store(path, lambda store: store.record(new_record()))
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(SettingError, match="is damaged; restore it from a backup"):
        in_store(path, nothing)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a store with some of everything."""
    path = tmp_path_factory.mktemp("whole") / "store.db"

    async def work(store: Store) -> None:
        for _ in range(5):
            record = new_record()
            await store.record(record, decision=decision_of(record, retry_key="again", place=b"p"))
        await store.note_call("acme", "verify")

    in_store(path, work)
    return path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_file_in_which_anything_was_changed_is_used_or_refused(whole: bytes, data: st.DataObject) -> None:
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(content) - 1) | st.integers(0, 200))
        content[place] = data.draw(st.integers(0, 255))

    async def work(store: Store) -> None:
        for call in (
            lambda: store.record(new_record()),
            lambda: store.find_decision("", "again"),
            lambda: store.decisions_at("", "s1", b"p"),
            store.tenants,
            store.calls,
            store.contents,
            lambda: store.expire(2e9),
        ):
            with suppress(AgentMarkError):
                await call()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        path.write_bytes(content)
        with suppress(AgentMarkError):
            list(open_store(path).lines())
        with suppress(AgentMarkError):
            in_store(path, work, patience_s=0.2, clock=lambda: 2e9)


def test_a_decision_that_was_changed_is_named(path: Path) -> None:
    record = new_record()

    async def work(store: Store) -> None:
        await store.record(record, decision=decision_of(record, retry_key="again"))
        connection = sqlite3.connect(path)
        connection.execute("UPDATE decisions SET said = '[1]'")
        connection.commit()
        connection.close()
        with pytest.raises(StoreError, match="that no gateway wrote"):
            await store.find_decision("", "again")

    in_store(path, work)


# --- whose file it is ----------------------------------------------------------------------------------------------


def test_a_log_is_no_store_and_a_store_is_no_log(path: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    SqliteLog(log).close()
    with pytest.raises(SettingError, match="is a log, not a gateway's store"):
        in_store(log, nothing)
    in_store(path, nothing)
    with pytest.raises(SettingError, match="is a gateway's store, not a log"):
        SqliteLog(path)


def test_databases_of_others_and_of_other_versions_are_refused_untouched(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(SettingError, match="it holds the table theirs"):
        in_store(path, nothing)
    assert path.read_bytes() == before
    path.unlink()
    in_store(path, nothing)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(SettingError, match="holds schema 9, this build writes 1"):
        in_store(path, nothing)


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4000])
def test_what_is_no_database_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(SettingError, match="cannot be used as a store"):
        in_store(path, nothing)
    assert path.read_bytes() == content


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be used as a store: cannot be opened: its folder is missing"):
        in_store(tmp_path / "no" / "store.db", nothing)


# --- append-only ---------------------------------------------------------------------------------------------------


def test_records_are_not_deleted_unless_retention_announced_it(path: Path) -> None:
    async def work(store: Store) -> None:
        for _ in range(3):
            await store.record(new_record())
        await store.note_call("acme", "verify")

    in_store(path, work)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA recursive_triggers = ON")
    for statement in (
        "DELETE FROM records",
        "DELETE FROM calls",
        "UPDATE records SET line = ''",
        "UPDATE calls SET what = ''",
        "INSERT OR REPLACE INTO records SELECT * FROM records",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    [[middle]] = connection.execute("SELECT written_at FROM records WHERE id = 2").fetchall()
    connection.execute("INSERT INTO expirations (before, at, what, deleted) VALUES (?, 0, 'records', 1)", (middle,))
    for statement in ("DELETE FROM records", "DELETE FROM expirations", "UPDATE expirations SET before = 1e12"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.execute("DELETE FROM records WHERE written_at < ?", (middle,))
    assert connection.execute("SELECT count(*) FROM records").fetchone() == (2,)
    connection.close()


def test_what_expired_leaves_no_trace_in_the_file(path: Path) -> None:
    """Neither in free pages nor in the write-ahead log, once the store is closed."""
    secret = "whatever-the-model-said-" * 20

    async def work(store: Store) -> None:
        record = new_record(meta={"note": secret})
        await store.record(record, decision=decision_of(record, reply=secret.encode() * 50))
        size = (await store.contents()).records
        assert size == 1
        await asyncio.sleep(0.01)
        from time import time

        await store.expire(time())

    in_store(path, work)
    left = b"".join([file.read_bytes() for file in path.parent.iterdir()])
    assert b"whatever-the-model-said" not in left


def test_room_is_given_back(path: Path) -> None:
    async def fill(store: Store) -> None:
        await asyncio.gather(*[store.record(new_record(meta={"filler": "x" * 5000})) for _ in range(300)])

    async def thin(store: Store) -> None:
        from time import time

        await store.expire(time())

    in_store(path, fill)
    full = path.stat().st_size
    in_store(path, thin)
    assert path.stat().st_size < full / 2


# --- several processes ---------------------------------------------------------------------------------------------


def test_two_processes_on_one_file_begin_and_write_at_once(path: Path) -> None:
    shared = os.urandom(32).hex()
    processes = [
        subprocess.Popen(program(WRITER, str(path), shared), env=environment(), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = sorted(process.communicate(timeout=120)[0].strip() for process in processes)
    assert said == ["refused", "taken"]
    records = read_log(path).records
    assert len(records) == 301
    assert len({record.context for record in records}) == 301


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_refused(path: Path) -> None:
    async def work(store: Store) -> None:
        await store.record(new_record())
        child = os.fork()
        if child == 0:
            status = 1
            try:
                store._check_started()
            except StoreClosedError as error:
                status = 0 if "before a fork" in str(error) else 2
            os._exit(status)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        await store.record(new_record())

    in_store(path, work)


def test_a_store_is_read_like_any_log_while_it_is_written(path: Path) -> None:
    record = new_record()

    async def work(store: Store) -> None:
        await store.record(record)
        await store.record(replace(record, enforced=False))
        assert await asyncio.to_thread(lambda: read_log(path).records) == [record, replace(record, enforced=False)]

    in_store(path, work)
