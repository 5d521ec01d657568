"""Group commit, backpressure and failures, on a database that does as it is told."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from stored import new_record

from agentmark.store.database import Connection, Database, DatabaseError
from agentmark.store.errors import StoreBusyError, StoreError
from agentmark.store.rows import CONTEXT, LINE, OUTCOME, Entry, record_row
from agentmark.store.tables import INSERT_RECORD
from agentmark.store.writing import MAX_BATCH, Writing


class ScriptedDatabase(Database):
    """Holds records in memory. `at_commit` is called before each commit, and may fail or take its time."""

    name = "a scripted database"

    def __init__(self) -> None:
        self.held: dict[tuple[bytes, int], str] = {}
        self.commits: list[int] = []
        self.at_commit: Callable[[], None] = lambda: None
        self.at_connect: Callable[[], None] = lambda: None
        self.connected = 0
        self.aborted = threading.Event()

    def connect(self) -> "ScriptedConnection":
        self.at_connect()
        self.connected += 1
        return ScriptedConnection(self)

    def check(self) -> None: ...

    def set_up(self) -> None: ...


class ScriptedConnection(Connection):
    def __init__(self, database: ScriptedDatabase) -> None:
        self._database = database
        self._changed: dict[tuple[bytes, int], str] = {}

    def change(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        assert statement == INSERT_RECORD
        key = (parameters[CONTEXT], parameters[OUTCOME])
        if key in self._database.held or key in self._changed:
            return 0
        if parameters[LINE].startswith("poison"):
            raise DatabaseError("does not take this", of_entry=True)
        self._changed[key] = parameters[LINE]
        return 1

    def change_each(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        return sum(self.change(statement, row) for row in rows)

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        line = self._database.held.get((parameters[0], parameters[1]))
        return [] if line is None else [(line,)]

    def stream(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        raise NotImplementedError

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._changed = {}
        yield
        self._database.at_commit()
        self._database.held |= self._changed
        self._database.commits.append(len(self._changed))

    @contextmanager
    def part(self) -> Iterator[None]:
        before = dict(self._changed)
        try:
            yield
        except BaseException:
            self._changed = before
            raise

    def alone(self) -> None: ...

    def tidy(self) -> None: ...

    def abort(self) -> None:
        self._database.aborted.set()

    def close(self) -> None: ...


def entry(line: str | None = None) -> Entry:
    row = list(record_row(new_record(), "", 0.0))
    if line is not None:
        row[LINE] = line
    return Entry((tuple(row),))


def in_writing(database: ScriptedDatabase, work: Callable[[Writing], Any], **settings: Any) -> Any:
    async def done() -> Any:
        values: dict[str, Any] = {"patience_s": 5.0, "max_waiting": 1000, "keep_house": lambda _: False, **settings}
        writing = Writing(database, **values)
        writing.start()
        try:
            return await work(writing)
        finally:
            await asyncio.to_thread(writing.close)

    return asyncio.run(done())


def test_what_comes_in_during_a_commit_shares_the_next() -> None:
    database = ScriptedDatabase()
    is_in_commit, may_end = threading.Event(), threading.Event()

    def first_commit() -> None:
        database.at_commit = lambda: None
        is_in_commit.set()
        may_end.wait(10)

    database.at_commit = first_commit

    async def work(writing: Writing) -> None:
        first = asyncio.ensure_future(writing.write(entry()))
        await asyncio.to_thread(is_in_commit.wait, 10)
        others = [asyncio.ensure_future(writing.write(entry())) for _ in range(100)]
        await asyncio.sleep(0)
        assert writing.waiting == 100
        may_end.set()
        await asyncio.gather(first, *others)

    in_writing(database, work)
    assert database.commits == [1, 100]


def test_a_transaction_has_a_limit() -> None:
    database = ScriptedDatabase()
    may_begin = threading.Event()
    database.at_connect = lambda: may_begin.wait(10) and None

    async def work(writing: Writing) -> None:
        calls = [asyncio.ensure_future(writing.write(entry())) for _ in range(MAX_BATCH + 1)]
        await asyncio.sleep(0)
        may_begin.set()
        await asyncio.gather(*calls)

    in_writing(database, work)
    assert sum(database.commits) == MAX_BATCH + 1
    assert max(database.commits) <= MAX_BATCH


def test_who_comes_when_too_many_wait_is_refused_at_once() -> None:
    database = ScriptedDatabase()
    is_in_commit, may_end = threading.Event(), threading.Event()

    def slow_commit() -> None:
        is_in_commit.set()
        may_end.wait(10)

    database.at_commit = slow_commit

    async def work(writing: Writing) -> None:
        calls = [asyncio.ensure_future(writing.write(entry()))]
        await asyncio.to_thread(is_in_commit.wait, 10)
        calls += [asyncio.ensure_future(writing.write(entry())) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(StoreBusyError, match="3 calls wait for it") as caught:
            await writing.write(entry())
        assert caught.value.written is False
        may_end.set()
        await asyncio.gather(*calls)
        await writing.write(entry())
        assert writing.failures == {"StoreBusyError": 1}

    in_writing(database, work, max_waiting=3)
    assert sum(database.commits) == 5


def test_a_lock_that_passes_costs_nothing_but_time() -> None:
    database = ScriptedDatabase()
    failures = iter([DatabaseError("is locked", passing=True)] * 3)
    database.at_commit = lambda: _raise_next(failures)
    in_writing(database, lambda writing: writing.write(entry()))
    assert database.commits == [1]
    assert database.connected == 1


def test_a_lock_that_stays_is_an_error_and_then_forgotten() -> None:
    database = ScriptedDatabase()
    failures: Iterator[DatabaseError] = iter(lambda: DatabaseError("is locked", passing=True), None)
    database.at_commit = lambda: _raise_next(failures)

    async def work(writing: Writing) -> None:
        outcomes = await asyncio.gather(*[writing.write(entry()) for _ in range(5)], return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["a scripted database: is locked"] * 5
        assert all(isinstance(outcome, StoreError) and outcome.written is False for outcome in outcomes)
        database.at_commit = lambda: None
        await writing.write(entry())

    in_writing(database, work, patience_s=0.2)
    assert database.commits == [1]


def test_a_full_disk_is_an_error_at_once() -> None:
    database = ScriptedDatabase()
    failures = iter([DatabaseError("is full")])
    database.at_commit = lambda: _raise_next(failures)

    async def work(writing: Writing) -> None:
        with pytest.raises(StoreError, match="is full"):
            await writing.write(entry())
        await writing.write(entry())

    in_writing(database, work, patience_s=1000)
    assert database.commits == [1]


def test_a_connection_that_broke_is_made_anew() -> None:
    database = ScriptedDatabase()
    failures = iter([DatabaseError("is gone", passing=True, broken=True)])
    database.at_commit = lambda: _raise_next(failures)
    in_writing(database, lambda writing: writing.write(entry()))
    assert database.connected == 2


@pytest.mark.parametrize("came_through", [True, False])
def test_a_commit_that_nobody_heard_of_is_looked_for(came_through: bool) -> None:
    """The line was cut before the answer: what is there to the letter is ours, what is not is written again."""
    database = ScriptedDatabase()
    written = entry()
    [row] = written.records

    def lost() -> None:
        database.at_commit = lambda: None
        if came_through:
            database.held[row[CONTEXT], row[OUTCOME]] = row[LINE]
        raise DatabaseError("is gone", passing=True, broken=True, unsure=True)

    database.at_commit = lost
    in_writing(database, lambda writing: writing.write(written))
    assert database.held == {(row[CONTEXT], row[OUTCOME]): row[LINE]}


def test_a_commit_that_nobody_heard_of_is_not_taken_for_anothers() -> None:
    database = ScriptedDatabase()
    written = entry()
    [row] = written.records

    def lost() -> None:
        database.at_commit = lambda: None
        database.held[row[CONTEXT], row[OUTCOME]] = "the line of another"
        raise DatabaseError("is gone", passing=True, broken=True, unsure=True)

    database.at_commit = lost

    async def work(writing: Writing) -> None:
        with pytest.raises(StoreError, match="is there already"):
            await writing.write(written)

    in_writing(database, work)


def test_who_cannot_be_told_is_told_so() -> None:
    database = ScriptedDatabase()

    def away() -> None:
        database.at_connect = lambda: _raise(DatabaseError("is out of reach", passing=True, broken=True))
        raise DatabaseError("is gone", passing=True, broken=True, unsure=True)

    database.at_commit = away

    async def work(writing: Writing) -> None:
        with pytest.raises(StoreError, match="it may have been written all the same") as caught:
            await writing.write(entry())
        assert caught.value.written is None
        # One that came after the line was cut was surely not written.
        with pytest.raises(StoreError) as caught:
            await writing.write(entry())
        assert caught.value.written is False

    in_writing(database, work, patience_s=0.2)


def test_a_database_that_neither_answers_nor_hangs_up_is_given_up_and_hung_up_on() -> None:
    database = ScriptedDatabase()
    is_in_commit = threading.Event()

    def hang() -> None:
        is_in_commit.set()
        database.aborted.wait(30)
        raise DatabaseError("is gone", passing=True, broken=True, unsure=True)

    database.at_commit = hang

    async def work(writing: Writing) -> None:
        taken = asyncio.ensure_future(writing.write(entry()))
        await asyncio.to_thread(is_in_commit.wait, 10)
        behind = asyncio.ensure_future(writing.write(entry()))
        with pytest.raises(StoreError, match="does not answer") as caught:
            await taken
        assert caught.value.written is None
        with pytest.raises(StoreError) as caught:
            await behind
        assert caught.value.written is False
        database.at_commit = lambda: None
        database.aborted.clear()
        await writing.write(entry())

    in_writing(database, work, patience_s=0.2)


def test_one_that_the_database_does_not_take_costs_nobody_else_their_record() -> None:
    database = ScriptedDatabase()
    may_begin = threading.Event()
    database.at_connect = lambda: may_begin.wait(10) and None

    async def work(writing: Writing) -> list[Any]:
        calls = [writing.write(entry()), writing.write(entry("poison")), writing.write(entry())]
        together = asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(0)
        may_begin.set()
        return list(await together)

    outcomes = in_writing(database, work)
    assert [outcome is None for outcome in outcomes] == [True, False, True]
    assert str(outcomes[1]) == "a scripted database: does not take this"
    assert len(database.held) == 2


def test_housekeeping_that_fails_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentmark.store.writing.HOUSEKEEPING_S", 0.0)
    database = ScriptedDatabase()
    kept = threading.Event()

    def keep_house(_: Connection) -> bool:
        kept.set()
        raise DatabaseError("is gone", passing=True, broken=True)

    async def work(writing: Writing) -> None:
        await writing.write(entry())
        await asyncio.to_thread(kept.wait, 10)
        await writing.write(entry())

    in_writing(database, work, keep_house=keep_house)
    assert kept.is_set()
    assert sum(database.commits) == 2


def test_housekeeping_goes_on_between_commits_until_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentmark.store.writing.HOUSEKEEPING_S", 0.05)
    left = [10]
    done = threading.Event()

    def keep_house(_: Connection) -> bool:
        left[0] -= 1
        if left[0] == 0:
            # From now on it is not due for long.
            monkeypatch.setattr("agentmark.store.writing.HOUSEKEEPING_S", 1000.0)
            done.set()
        return left[0] > 0

    async def work(writing: Writing) -> None:
        await writing.write(entry())
        await asyncio.to_thread(done.wait, 30)
        await writing.write(entry())

    in_writing(ScriptedDatabase(), work, keep_house=keep_house)
    assert left == [0]


def _raise(error: Exception) -> None:
    raise error


def _raise_next(failures: Iterator[DatabaseError]) -> None:
    for failure in failures:
        raise failure
