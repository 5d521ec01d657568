"""The store of a gateway: records, decisions, tenants and calls in one database (docs/store.md)."""

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from agentmark.errors import SettingError
from agentmark.log.record_file import new_record_file
from agentmark.record import StepRecord
from agentmark.store import tables
from agentmark.store.database import Connection, Database, DatabaseError
from agentmark.store.decision import StoredDecision
from agentmark.store.errors import StoreClosedError, StoreError
from agentmark.store.rows import Entry, decision_row, record_row
from agentmark.store.tables import Call, Contents, Expired
from agentmark.store.tenants import ApiKey, Tenant, api_key_id, is_api_key, new_api_key
from agentmark.store.writing import SILENT, Writing

Result = TypeVar("Result")

# Threads that read, each with a connection of its own.
READERS = 2
# API keys whose tenant is remembered for a moment.
MAX_CACHED = 4096
MAX_DETAIL_LEN = 10_000


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a store has done since it was started, and what waits. For metrics."""

    waiting: int
    records: int
    commits: int
    # Calls of `record` that were refused or failed, by the name of their error.
    failures: Mapping[str, int]


class Store:
    """One database, for one process: every worker opens its own, after it was forked. Its methods may be awaited from
    any event loop, and never hold one up. Every failure of the database is a `StoreError`; what cannot be meant is a
    `SettingError`. Made by `open_store`.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Callable[[], float],
        patience_s: float,
        max_waiting: int,
        tenant_cache_s: float,
        remember_s: float,
    ) -> None:
        self._database = database
        self._clock = clock
        self._patience_s = patience_s
        self._tenant_cache_s = tenant_cache_s
        self._remember_s = remember_s
        self._process = os.getpid()
        self._writing = Writing(database, patience_s=patience_s, max_waiting=max_waiting, keep_house=self._keep_house)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="agentmark-store-reader")
        self._own = threading.local()
        self._opened: list[Connection] = []
        self._is_started = self._is_closed = False
        # By digest of the API key: whose it is, and when the store was asked.
        self._cached: dict[str, tuple[Tenant, bytes, float]] = {}

    async def start(self) -> None:
        """Connect, make the tables if the database is empty, refuse a database of something else (`SettingError`)."""
        self._check_open()
        if self._is_started:
            return
        try:
            await self._in_thread(self._database.set_up)
            await self._in_thread(lambda: self._connection() and None)
        except DatabaseError as fault:
            raise self._failure(fault) from None
        self._writing.start()
        self._is_started = True

    async def look(self) -> None:
        """See that there is a store, and make nothing (`SettingError` if there is none). Before `start`, or without."""
        self._check_open()
        try:
            await self._in_thread(self._database.check)
        except DatabaseError as fault:
            raise self._failure(fault) from None

    async def close(self) -> None:
        """Write what is queued, and disconnect. Again, it does nothing."""
        if self._is_closed or os.getpid() != self._process:
            return
        self._is_closed = True
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._writing.close)
        await loop.run_in_executor(None, partial(self._readers.shutdown, wait=True))
        for connection in self._opened:
            connection.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def name(self) -> str:
        """The store as messages name it: without user, password or query."""
        return self._database.name

    @property
    def stats(self) -> StoreStats:
        writing = self._writing
        return StoreStats(writing.waiting, writing.records, writing.commits, dict(writing.failures))

    async def check(self) -> None:
        """Whether the database answers and takes writes, for a readiness probe; raises `StoreError` if not."""
        self._check_started()
        # Nothing to write, in a transaction of its own: it has to wait its turn like any other.
        await self._writing.write(Entry(()))

    async def contents(self) -> Contents:
        """What the store holds, in numbers. Counts all records: not for every request."""
        return await self._ask(tables.contents)

    # --- records and decisions ---

    async def record(self, *records: StepRecord, tenant: str = "", decision: StoredDecision | None = None) -> None:
        """Write records, and what is to be remembered of their decision: all of it or nothing.

        When this returns, all of it is on the disk. Many callers share one transaction, so it is cheap to call this at
        once from many requests. `tenant` is that of the decision where one is given.

        A record without `enforced` takes its context: a second one is refused (`RepeatedContextError`). A record with
        it says what became of such a step: the first of a kind stands, a second is left out in silence, so that two
        workers may say the same.

        A decision that is stored already (by `id`) gets the new `settled`, `expires_at`, `reply`, `status` and
        `headers`; the rest of it stays as it was. `decision.record` is not written by itself: name it in `records`
        the first time.

        Raises `StoreBusyError` at once where too many wait, and `StoreError` when the database has not taken it within
        the store's patience; `error.written` says whether nothing was written (False) or nobody knows (None). A caller
        that is cancelled may leave it written.
        """
        self._check_started()
        now = self._clock()
        owner = tenant if decision is None else decision.tenant
        rows = tuple([record_row(record, owner, now) for record in records])
        await self._writing.write(Entry(rows, None if decision is None else decision_row(decision)))

    async def find_decision(self, tenant: str, retry_key: str, now: float | None = None) -> StoredDecision | None:
        """The newest decision under this retry key that has not expired."""
        at = self._clock() if now is None else now
        return await self._ask(lambda connection: tables.find_decision(connection, tenant, retry_key, at))

    async def decisions_at(
        self, tenant: str, session: str, place: bytes, *, most: int = 16
    ) -> Sequence[StoredDecision]:
        """The decisions of a session that were made from one conversation (`place`), the newest first, without their
        replies. Several conversations may begin alike: then any of them may be what one shows."""
        return await self._ask(lambda connection: tables.decisions_at(connection, tenant, session, place, most))

    async def last_decision(self, tenant: str, session: str, place: bytes) -> StoredDecision | None:
        """The newest of `decisions_at`."""
        found = await self.decisions_at(tenant, session, place, most=1)
        return found[0] if found else None

    # --- tenants ---

    async def add_tenant(self, tenant: Tenant) -> None:
        """Enter a tenant. Refuses a name that was ever used (`SettingError`): its records stay its own."""
        tenant.check()
        added = replace(tenant, created_at=self._clock(), revoked_at=None)
        await self._ask(lambda connection: tables.add_tenant(connection, added))

    async def issue_api_key(self, tenant: str) -> str:
        """A new API key of a tenant: "amk_...". This is the only time that it is seen; the store keeps a digest."""
        text, key_id, digest = new_api_key()
        now = self._clock()
        await self._ask(lambda connection: tables.add_api_key(connection, key_id, tenant, digest, now))
        return text

    async def tenants(self) -> Sequence[Tenant]:
        """All tenants, also those that were revoked, by name."""
        return await self._ask(tables.tenants)

    async def api_keys(self, tenant: str | None = None) -> Sequence[ApiKey]:
        """What is known of the API keys, also of those that were revoked."""
        return await self._ask(lambda connection: tables.api_keys(connection, tenant))

    async def tenant_of(self, api_key: str) -> Tenant | None:
        """Whose API key this is; None for an unknown or revoked one.

        Found by its public part, compared in constant time. The answer may be a few seconds old (`tenant_cache_s`): a
        revoked key works for so long.
        """
        self._check_started()
        key_id = api_key_id(api_key)
        if key_id is None:
            return None
        now = self._clock()
        known = self._cached.get(key_id)
        if known is None or not 0 <= now - known[2] < self._tenant_cache_s:
            self._cached.pop(key_id, None)
            found = await self._ask(lambda connection: tables.tenant_by_key_id(connection, key_id))
            if found is None:
                # Compared all the same: how long it takes says nothing of what the store holds.
                is_api_key(api_key, None)
                return None
            known = (*found, now)
            if len(self._cached) >= MAX_CACHED:
                self._cached.clear()
            self._cached[key_id] = known
        tenant, digest, _ = known
        return tenant if is_api_key(api_key, digest) else None

    async def revoke_tenant(self, tenant: str) -> None:
        """No API key of the tenant works any more."""
        now = self._clock()
        await self._ask(lambda connection: tables.revoke_tenant(connection, tenant, now))
        self._cached.clear()

    async def revoke_api_key(self, key_id: str, *, tenant: str) -> None:
        """One API key of a tenant, by its public id (the digits behind "amk_"), works no more."""
        now = self._clock()
        await self._ask(lambda connection: tables.revoke_api_key(connection, key_id, tenant, now))
        self._cached.pop(key_id, None)

    # --- the audit log ---

    async def note_call(
        self, tenant: str, what: str, *, at: float | None = None, detail: Mapping[str, Any] | None = None
    ) -> None:
        """Write down that a tenant asked something of a verifying route. Durable when it returns."""
        call = Call(tenant, what, self._clock() if at is None else at, dict(detail or {}))
        if len(json.dumps(call.detail)) > MAX_DETAIL_LEN:
            raise SettingError("detail", f"of a call is longer than {MAX_DETAIL_LEN:,} characters")
        await self._ask(lambda connection: tables.note_call(connection, call))

    async def calls(self, *, tenant: str | None = None, since: float | None = None) -> Sequence[Call]:
        """The audit log, oldest first."""
        return await self._ask(lambda connection: tables.calls(connection, tenant, since))

    # --- retention, export ---

    async def expire(self, before: float) -> Expired:
        """Delete records, decisions and calls older than this. What was deleted is itself on record in the store.

        In small transactions, with room for others between them: a failure leaves some of it done, and is made good by
        the next call.
        """
        now = self._clock()
        if before > now:
            raise SettingError("before", "is in the future: what is not written yet cannot expire")
        self._check_started()

        def work() -> Expired:
            # It takes as long as it takes, and on a connection of its own.
            with closing(self._database.connect()) as connection:
                return tables.expire(connection, before, now)

        try:
            return await asyncio.to_thread(work)
        except DatabaseError as fault:
            raise self._failure(fault) from None

    def export(
        self,
        path: str | Path,
        *,
        session: str | None = None,
        tenant: str | None = None,
        since: float | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Write the records to a new file (.jsonl, .jsonl.gz or .parquet), in their order; how many there were.

        As of one moment. Waits: call it from a command, or from a thread. It needs no `start`, and makes no tables.
        """
        count = 0
        with new_record_file(Path(path)) as write:
            for line in self.lines(session=session, tenant=tenant, since=since):
                write(StepRecord.from_json(line, where=f"{self.name} record {count + 1}"))
                count += 1
                if progress is not None:
                    progress(count)
        return count

    def lines(
        self, *, session: str | None = None, tenant: str | None = None, since: float | None = None
    ) -> Iterator[str]:
        """The records as they were written, in their order, as of one moment. Waits, as `export` does."""
        try:
            self._database.check()
            with closing(self._database.connect()) as connection:
                yield from tables.lines(connection, session=session, tenant=tenant, since=since)
        except DatabaseError as fault:
            raise self._failure(fault) from None

    # --- inside ---

    def _keep_house(self, connection: Connection) -> bool:
        """Let go of what was only to be remembered for a while; whether there is more of it."""
        now = self._clock()
        return tables.forget(connection, now, now - self._remember_s)

    async def _ask(self, question: Callable[[Connection], Result]) -> Result:
        self._check_started()
        try:
            async with asyncio.timeout(2 * self._patience_s):
                return await self._in_thread(lambda: self._answer(question))
        except DatabaseError as fault:
            raise self._failure(fault) from None
        except TimeoutError:
            # Readers that hang fail, and connect anew when they are next asked.
            for connection in list(self._opened):
                connection.abort()
            raise StoreError(self.name, SILENT, written=None) from None

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    def _answer(self, question: Callable[[Connection], Result]) -> Result:
        """Ask on a connection of this thread; again on a new one, if it turns out that the old one broke."""
        try:
            return question(self._connection())
        except DatabaseError as fault:
            if not fault.broken:
                raise
            self._drop()
            if fault.unsure or not fault.passing:
                raise
        try:
            return question(self._connection())
        except DatabaseError as fault:
            if fault.broken:
                self._drop()
            raise

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._database.connect()
            self._opened.append(connection)
        return connection

    def _drop(self) -> None:
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is not None:
            self._own.connection = None
            self._opened.remove(connection)
            connection.close()

    def _failure(self, fault: DatabaseError) -> StoreError:
        more = "; it may have been done all the same" if fault.unsure else ""
        return StoreError(self.name, f"{fault}{more}", written=None if fault.unsure else False)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError(self.name, "is closed")
        if os.getpid() != self._process:
            raise StoreClosedError(self.name, "was opened before a fork: each process opens its own")

    def _check_started(self) -> None:
        self._check_open()
        if not self._is_started:
            raise StoreClosedError(self.name, "is not started: await start() first")
