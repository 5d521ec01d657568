"""What is asked of the tables, in the words that every database understands."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentmark.errors import SettingError
from agentmark.store.database import Connection, DatabaseError
from agentmark.store.decision import StoredDecision
from agentmark.store.errors import RepeatedContextError, StoreError
from agentmark.store.rows import (
    CONTEXT,
    DECIDED,
    DECISION_COLUMNS,
    LINE,
    NOT_OBEYED,
    OUTCOME,
    RECORD_COLUMNS,
    Entry,
    Row,
    column_text,
    decision_of,
)
from agentmark.store.tenants import ApiKey, Tenant

# So many rows are deleted in one transaction: others write in between.
DELETED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Call:
    """One entry of the audit log: who asked what of a verifying route, and when. Never what the log said."""

    tenant: str
    what: str
    at: float
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Expired:
    """What retention deleted: records and calls written before this time, and decisions made before it."""

    before: float
    records: int
    decisions: int
    calls: int


# --- records and decisions -----------------------------------------------------------------------------------------


def _places(columns: Sequence[str]) -> str:
    return f"({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})"


INSERT_RECORD = f"INSERT INTO @records {_places(RECORD_COLUMNS)} ON CONFLICT (context, outcome) DO NOTHING"
INSERT_DECISION = (
    f"INSERT INTO @decisions AS known {_places(DECISION_COLUMNS)} ON CONFLICT (id) DO UPDATE SET"
    " settled = excluded.settled, expires_at = excluded.expires_at, reply = excluded.reply, answer = excluded.answer"
    " WHERE known.tenant = excluded.tenant"
)


class _ClashError(Exception):
    """Some record was there already: which one is seen when they are written one by one."""


def write(
    connection: Connection, store: str, entries: Sequence[Entry], *, may_be_there: Sequence[bool]
) -> list[StoreError | None]:
    """Write what many callers want written, in one transaction; for each, what went wrong with it alone.

    `may_be_there` says whether an earlier try may have come through, though nobody heard of it.
    """
    try:
        with connection.transaction():
            _write_all(connection, entries)
            return [None] * len(entries)
    except _ClashError:
        pass
    with connection.transaction():
        return [
            _write_one(connection, store, entry, may_be_there=known)
            for entry, known in zip(entries, may_be_there, strict=True)
        ]


def _write_all(connection: Connection, entries: Sequence[Entry]) -> None:
    records = [row for entry in entries for row in entry.records]
    if records and connection.change_each(INSERT_RECORD, records) != len(records):
        raise _ClashError
    decisions = [entry.decision for entry in entries if entry.decision is not None]
    if decisions:
        connection.change_each(INSERT_DECISION, decisions)


def _write_one(connection: Connection, store: str, entry: Entry, *, may_be_there: bool) -> StoreError | None:
    try:
        with connection.part():
            for row in entry.records:
                is_new = connection.change(INSERT_RECORD, row)
                if not is_new and row[OUTCOME] == DECIDED and not (may_be_there and _is_there(connection, row)):
                    raise RepeatedContextError(store, f"a record of context {row[CONTEXT].hex()} is there already")
            if entry.decision is not None:
                connection.change(INSERT_DECISION, entry.decision)
    except RepeatedContextError as error:
        return error
    return None


def _is_there(connection: Connection, row: Row) -> bool:
    """Whether this very record is there, to the letter."""
    found = connection.rows("SELECT line FROM @records WHERE context = ? AND outcome = ?", (row[CONTEXT], row[OUTCOME]))
    return bool(found) and found[0][0] == row[LINE]


def _decisions(columns: Sequence[str]) -> str:
    return (
        f"SELECT {', '.join(f'd.{name}' if name in DECISION_COLUMNS else name for name in columns)},"
        " (SELECT r.line FROM @records r WHERE r.context = d.context ORDER BY r.outcome LIMIT 1),"
        f" (SELECT count(*) FROM @records r WHERE r.context = d.context AND r.outcome = {NOT_OBEYED})"
        " FROM @decisions d WHERE d.tenant = ?"
    )


FIND_DECISION = (
    f"{_decisions(DECISION_COLUMNS)} AND d.retry_key = ? AND d.expires_at > ?"
    " ORDER BY d.created_at DESC, d.id DESC LIMIT 1"
)
_WITHOUT_REPLY = tuple("NULL" if name == "reply" else name for name in DECISION_COLUMNS)
DECISIONS_AT = (
    f"{_decisions(_WITHOUT_REPLY)} AND d.session = ? AND d.place = ? ORDER BY d.created_at DESC, d.id DESC LIMIT ?"
)


def find_decision(connection: Connection, tenant: str, retry_key: str, now: float) -> StoredDecision | None:
    rows = connection.rows(FIND_DECISION, (tenant, column_text(retry_key), now))
    return _read(rows[0]) if rows else None


def decisions_at(
    connection: Connection, tenant: str, session: str, place: bytes, most: int
) -> tuple[StoredDecision, ...]:
    rows = connection.rows(DECISIONS_AT, (tenant, column_text(session), place, most))
    return tuple([_read(row) for row in rows])


def _read(row: Sequence[Any]) -> StoredDecision:
    try:
        return decision_of(row)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DatabaseError("holds a decision that no gateway wrote: it is damaged, or was changed") from None


def lines(
    connection: Connection, *, session: str | None = None, tenant: str | None = None, since: float | None = None
) -> Iterator[str]:
    """The records' own lines, in the order of writing."""
    wanted: list[tuple[str, object]] = []
    if session is not None:
        wanted.append(("session = ?", column_text(session)))
    if tenant is not None:
        wanted.append(("tenant = ?", tenant))
    if since is not None:
        wanted.append(("written_at >= ?", since))
    where = f" WHERE {' AND '.join([words for words, _ in wanted])}" if wanted else ""
    for row in connection.stream(f"SELECT line FROM @records{where} ORDER BY id", [value for _, value in wanted]):
        yield row[0]


# --- tenants -------------------------------------------------------------------------------------------------------

TENANT_COLUMNS = (
    "name",
    "identity",
    "key_file",
    "upstream_credential",
    "requests_per_minute",
    "concurrent_requests",
    "created_at",
    "revoked_at",
)
_TENANT = ", ".join(f"t.{name}" for name in TENANT_COLUMNS)


def add_tenant(connection: Connection, tenant: Tenant) -> None:
    row = [getattr(tenant, name) for name in TENANT_COLUMNS]
    with connection.transaction():
        added = connection.change(f"INSERT INTO @tenants {_places(TENANT_COLUMNS)} ON CONFLICT (name) DO NOTHING", row)
        if not added:
            raise SettingError("tenant", f"{tenant.name!r} is there already; a name is never given twice")


def add_api_key(connection: Connection, key_id: str, tenant: str, digest: bytes, now: float) -> None:
    with connection.transaction():
        _check_tenant(connection, tenant)
        row = (key_id, tenant, digest, now)
        connection.change("INSERT INTO @api_keys (id, tenant, digest, created_at) VALUES (?, ?, ?, ?)", row)


def _check_tenant(connection: Connection, name: str) -> None:
    found = connection.rows("SELECT revoked_at FROM @tenants WHERE name = ?", (name,))
    if not found:
        raise SettingError("tenant", f"there is no tenant {name!r}")
    if found[0][0] is not None:
        raise SettingError("tenant", f"{name!r} is revoked")


def tenants(connection: Connection) -> tuple[Tenant, ...]:
    rows = connection.rows(f"SELECT {_TENANT} FROM @tenants t ORDER BY t.name")
    return tuple([_tenant(row) for row in rows])


def _tenant(row: Sequence[Any]) -> Tenant:
    return Tenant(**dict(zip(TENANT_COLUMNS, row, strict=True)))


def api_keys(connection: Connection, tenant: str | None) -> tuple[ApiKey, ...]:
    where, values = ("", ()) if tenant is None else (" WHERE tenant = ?", (tenant,))
    rows = connection.rows(
        f"SELECT id, tenant, created_at, revoked_at FROM @api_keys{where} ORDER BY tenant, created_at, id", values
    )
    return tuple([ApiKey(id=row[0], tenant=row[1], created_at=row[2], revoked_at=row[3]) for row in rows])


def tenant_by_key_id(connection: Connection, key_id: str) -> tuple[Tenant, bytes] | None:
    """The tenant of an API key that is in use, and the key's digest, to compare with."""
    rows = connection.rows(
        f"SELECT {_TENANT}, k.digest FROM @api_keys k JOIN @tenants t ON t.name = k.tenant"
        " WHERE k.id = ? AND k.revoked_at IS NULL AND t.revoked_at IS NULL",
        (key_id,),
    )
    return (_tenant(rows[0][:-1]), bytes(rows[0][-1])) if rows else None


def revoke_tenant(connection: Connection, name: str, now: float) -> None:
    with connection.transaction():
        _check_tenant(connection, name)
        connection.change("UPDATE @tenants SET revoked_at = ? WHERE name = ?", (now, name))


def revoke_api_key(connection: Connection, key_id: str, tenant: str, now: float) -> None:
    with connection.transaction():
        found = connection.rows("SELECT revoked_at FROM @api_keys WHERE id = ? AND tenant = ?", (key_id, tenant))
        if not found:
            # Not what was typed: it may be a whole key.
            raise SettingError("api_key", f"tenant {tenant!r} has none with this id")
        if found[0][0] is not None:
            raise SettingError("api_key", "is revoked already")
        connection.change("UPDATE @api_keys SET revoked_at = ? WHERE id = ?", (now, key_id))


# --- the audit log -------------------------------------------------------------------------------------------------


def note_call(connection: Connection, call: Call) -> None:
    row = (call.tenant, call.what, json.dumps(dict(call.detail), separators=(",", ":")), call.at)
    with connection.transaction():
        connection.change("INSERT INTO @calls (tenant, what, detail, written_at) VALUES (?, ?, ?, ?)", row)


def calls(connection: Connection, tenant: str | None, since: float | None) -> tuple[Call, ...]:
    wanted = [("tenant = ?", tenant), ("written_at >= ?", since)]
    given = [(words, value) for words, value in wanted if value is not None]
    where = f" WHERE {' AND '.join([words for words, _ in given])}" if given else ""
    rows = connection.rows(
        f"SELECT tenant, what, written_at, detail FROM @calls{where} ORDER BY id", [value for _, value in given]
    )
    return tuple([Call(row[0], row[1], row[2], json.loads(row[3])) for row in rows])


# --- retention -----------------------------------------------------------------------------------------------------


def expire(connection: Connection, before: float, now: float) -> Expired:
    """Delete what was written before a time. Each transaction says in `expirations` what it is about to delete: without
    such a row the tables refuse to delete anything."""
    deleted = {"records": 0, "calls": 0}
    for table in deleted:
        while (count := _expire_some(connection, table, before, now)) > 0:
            deleted[table] += count
            connection.tidy()
    decisions = 0
    while (count := forget_decisions(connection, before)) > 0:
        decisions += count
        connection.tidy()
    return Expired(before, deleted["records"], decisions, deleted["calls"])


def _expire_some(connection: Connection, table: str, before: float, now: float) -> int:
    with connection.transaction():
        # Two that expire at once would both announce what one of them deletes.
        connection.alone()
        oldest = f"SELECT id FROM @{table} WHERE written_at < ? ORDER BY written_at LIMIT {DELETED_AT_ONCE}"
        found = connection.rows(f"SELECT count(*) FROM ({oldest}) AS oldest", (before,))[0][0]
        if found:
            connection.change(
                "INSERT INTO @expirations (before, at, what, deleted) VALUES (?, ?, ?, ?)", (before, now, table, found)
            )
            connection.change(f"DELETE FROM @{table} WHERE id IN ({oldest})", (before,))
        return int(found)


def forget_decisions(connection: Connection, before: float) -> int:
    """Delete some of the decisions that were made before a time; how many."""
    with connection.transaction():
        return connection.change(
            "DELETE FROM @decisions WHERE id IN"
            f" (SELECT id FROM @decisions WHERE created_at < ? ORDER BY created_at LIMIT {DELETED_AT_ONCE})",
            (before,),
        )


def forget_replies(connection: Connection, now: float) -> int:
    """Delete some of the replies that are kept no longer; how many."""
    with connection.transaction():
        return connection.change(
            "UPDATE @decisions SET reply = NULL WHERE id IN"
            " (SELECT id FROM @decisions WHERE expires_at <= ? AND reply IS NOT NULL"
            f" ORDER BY expires_at LIMIT {DELETED_AT_ONCE})",
            (now,),
        )


def forget(connection: Connection, now: float, before: float) -> bool:
    """Both of the above, once; whether there is more of it to do. Where there is nothing, it is only a look."""
    rows = connection.rows(
        "SELECT EXISTS (SELECT 1 FROM @decisions WHERE expires_at <= ? AND reply IS NOT NULL),"
        " EXISTS (SELECT 1 FROM @decisions WHERE created_at < ?)",
        (now, before),
    )
    has_replies, has_decisions = rows[0]
    replies = forget_replies(connection, now) if has_replies else 0
    decisions = forget_decisions(connection, before) if has_decisions else 0
    if replies or decisions:
        connection.tidy()
    return max(replies, decisions) >= DELETED_AT_ONCE


@dataclass(frozen=True, slots=True)
class Contents:
    """What a store holds in all. Times are seconds since 1970; None where there is nothing."""

    records: int
    first: float | None
    last: float | None
    tenants: int
    decisions: int
    replies: int
    calls: int
    # What retention has deleted since the store was made, and up to when.
    expired: int
    expired_before: float | None


def contents(connection: Connection) -> Contents:
    rows = connection.rows(
        "SELECT (SELECT count(*) FROM @records), (SELECT min(written_at) FROM @records),"
        " (SELECT max(written_at) FROM @records), (SELECT count(*) FROM @tenants WHERE revoked_at IS NULL),"
        " (SELECT count(*) FROM @decisions), (SELECT count(*) FROM @decisions WHERE reply IS NOT NULL),"
        " (SELECT count(*) FROM @calls),"
        " (SELECT coalesce(sum(deleted), 0) FROM @expirations WHERE what = 'records'),"
        " (SELECT max(before) FROM @expirations)"
    )
    records, first, last, active, decisions, replies, noted, expired, before = rows[0]
    return Contents(records, first, last, active, decisions, replies, noted, int(expired), before)
