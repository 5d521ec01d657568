"""A store in a PostgreSQL database, for several gateways (extra: postgres).

Everything is in a schema of its own, `agentmark`, beside whatever else the database holds.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from agentmark.errors import MissingExtraError, SettingError
from agentmark.store.database import Connection, Database, DatabaseError
from agentmark.store.schema import TABLES, VERSION

if TYPE_CHECKING:
    import psycopg

SCHEMA_NAME = "agentmark"
APPLICATION = "agentmark store"
# Whoever makes the tables holds this lock (the letters "agms", as in the header of an SQLite store); whoever has to be
# alone in another matter, the next one.
MAKING = 0x61676D73
# A statement that takes longer is ended by the server. Retention works in small transactions, exports have no limit.
STATEMENT_S = 30
# Rows of an export that are fetched at once.
FETCHED = 1000

# A server that is not heard of for so long is given up: a cable that was cut says nothing.
_SILENCE_S = 5
_PARAMETERS = {
    "application_name": "agentmark",
    "connect_timeout": str(_SILENCE_S),
    "keepalives": "1",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": str(1000 * _SILENCE_S),
}

_TYPES = {"number": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "integer": "bigint", "small": "smallint"}
_TYPES |= {"bytes": "bytea", "time": "double precision"}

_GUARDS = """
CREATE FUNCTION @stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% are append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE FUNCTION @stays_unless_expired() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM gone WHERE NOT EXISTS (
        SELECT 1 FROM @expirations e WHERE e.what = TG_TABLE_NAME AND e.before > gone.written_at))
    THEN
        RAISE EXCEPTION '% are append-only: only what retention announced is deleted', TG_TABLE_NAME
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;
"""
_GUARD = """
CREATE TRIGGER {table}_stay AFTER DELETE ON @{table} REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION @stays_unless_expired();
CREATE TRIGGER {table}_stay_as_they_are BEFORE UPDATE OR TRUNCATE ON @{table}
    FOR EACH STATEMENT EXECUTE FUNCTION @stays();
"""
_GUARD_OF_EXPIRATIONS = """
CREATE TRIGGER expirations_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON @expirations
    FOR EACH STATEMENT EXECUTE FUNCTION @stays();
"""
_ABOUT = f"""
CREATE TABLE @about (application TEXT NOT NULL, version integer NOT NULL);
INSERT INTO @about VALUES ('{APPLICATION}', {VERSION});
"""
SCHEMA = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA_NAME};"
    + TABLES.format(**_TYPES)
    + _GUARDS
    + _GUARD.format(table="records")
    + _GUARD.format(table="calls")
    + _GUARD_OF_EXPIRATIONS
    + _ABOUT
)

# Classes of SQLSTATE, and what a person can do about them.
_WORDS = {
    "08": "is out of reach: the connection to the server failed",
    "28": "refuses this user: see its pg_hba.conf, and the password in the URL, PGPASSWORD or ~/.pgpass",
    "3D": "is not there: make it with `createdb`",
    "42": "does not let this user do that; see the grants in docs/store.md",
    "53": "has no room left: its disk is full, or it has too many connections",
    "57": "is stopping, or ended the statement",
    "58": "reports an error of its disk",
    "25": "cannot be written: it is a standby, or set to read only",
}
_PASSING_CLASSES = ("08", "40", "55", "57")
_TOO_MANY_CONNECTIONS = "53300"
_OF_ENTRY_CLASSES = ("22", "23", "54")
# A connection that was refused comes without a SQLSTATE: what the driver says of it is all there is.
_REFUSALS = (
    ("authentication failed", "28"),
    ("no pg_hba.conf entry", "28"),
    ("no password supplied", "28"),
    ("role ", "28"),
    ("database ", "3D"),
    ("too many clients", "53"),
    ("remaining connection slots", "53"),
)


class PostgresqlDatabase(Database):
    """A database of a server."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict, make_conninfo
        except ImportError:
            raise MissingExtraError("psycopg", "postgres") from None
        self._psycopg = psycopg
        try:
            given = conninfo_to_dict(url)
        except psycopg.Error:
            raise SettingError(
                "store", "is not a URL of PostgreSQL: postgresql://USER@HOST:PORT/DATABASE?OPTION=VALUE"
            ) from None
        self._conninfo = make_conninfo(**{**_PARAMETERS, **{name: str(value) for name, value in given.items()}})
        self.name = _shown(given)

    def connect(self) -> "PostgresqlConnection":
        return PostgresqlConnection(self._open())

    def check(self) -> None:
        connection = self._open()
        try:
            with _faults():
                is_made = _is_made(connection, self.name)
        finally:
            connection.close()
        if not is_made:
            raise SettingError(self.name, f"holds no store: there is no schema {SCHEMA_NAME}, or it is empty")

    def set_up(self) -> None:
        connection = self._open()
        try:
            with _faults():
                if _is_made(connection, self.name):
                    return
                with connection.transaction():
                    # Another gateway may be at it.
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING,))
                    if not _is_made(connection, self.name):
                        connection.execute(SCHEMA.replace("@", f"{SCHEMA_NAME}.").encode())
        except DatabaseError as error:
            raise SettingError(self.name, f"cannot be used as a store: it {error}") from None
        finally:
            connection.close()

    def _open(self) -> "psycopg.Connection[Any]":
        with _faults():
            connection = self._psycopg.connect(self._conninfo, autocommit=True)
        try:
            with _faults():
                _check_durable(connection, self.name)
                connection.execute(f"SET statement_timeout = '{STATEMENT_S}s'")
        except BaseException:
            connection.close()
            raise
        return connection


def _shown(given: "dict[str, Any]") -> str:
    """Which database it is, without user, password or options."""
    host = str(given.get("host") or "")
    port = str(given.get("port") or "")
    place = "" if host.startswith("/") else f"{host}{':' if port else ''}{port}"
    return f"postgresql://{place}/{given.get('dbname') or ''}"


def _check_durable(connection: "psycopg.Connection[Any]", name: str) -> None:
    """See that what is committed is on the server's disk."""
    row = connection.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')").fetchone()
    fsync, synchronous = row if row is not None else ("", "")
    if fsync != "on":
        raise SettingError(name, "its server runs with fsync off: no record would be safe there")
    # What is stricter, such as remote_apply, is left as it is.
    if synchronous in ("off", "local"):
        connection.execute("SET synchronous_commit = on")


def _is_made(connection: "psycopg.Connection[Any]", name: str) -> bool:
    """True if the schema is ours, False if there is none or an empty one; anything else is refused."""
    row = connection.execute(
        "SELECT to_regclass(%s), (SELECT min(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s)",
        (f"{SCHEMA_NAME}.about", SCHEMA_NAME),
    ).fetchone()
    about, other = row if row is not None else (None, None)
    if about is None:
        if other is not None:
            fault = f"its schema {SCHEMA_NAME} is of something else: it holds {other}"
            raise SettingError(name, fault)
        return False
    found = connection.execute(f"SELECT application, version FROM {SCHEMA_NAME}.about").fetchall()
    if len(found) != 1 or found[0][0] != APPLICATION:
        raise SettingError(name, f"its schema {SCHEMA_NAME} is of something else")
    if found[0][1] != VERSION:
        raise SettingError(name, f"holds schema {found[0][1]}, this build writes {VERSION}")
    return True


class PostgresqlConnection(Connection):
    """One connection to the server."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with _faults():
            found: list[Any] = self._connection.execute(_plain(statement), parameters).fetchall()
            return found

    def stream(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        with _faults(), self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            self._connection.execute("SET LOCAL statement_timeout = 0")
            with self._connection.cursor(name="agentmark_export") as cursor:
                cursor.itersize = FETCHED
                cursor.execute(_plain(statement), parameters)
                yield from cursor

    def change(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        with _faults():
            return int(self._connection.execute(_plain(statement), parameters).rowcount)

    def change_each(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        with _faults(), self._connection.cursor() as cursor:
            cursor.executemany(_plain(statement), rows)
            return int(cursor.rowcount)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with _faults():
            self._connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            with suppress(Exception):
                self._connection.execute("ROLLBACK")
            raise
        with _faults(committing=True):
            self._connection.execute("COMMIT")

    @contextmanager
    def part(self) -> Iterator[None]:
        with _faults(), self._connection.transaction():
            yield

    def alone(self) -> None:
        with _faults():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING + 1,))

    def tidy(self) -> None:
        """The server's autovacuum does it."""

    def abort(self) -> None:
        """Hang up: the thread that waits for the server is told that it is gone."""
        with suppress(Exception), socket.socket(fileno=os.dup(self._connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(Exception):
            self._connection.close()


@cache
def _plain(statement: str) -> bytes:
    return statement.replace("@", f"{SCHEMA_NAME}.").replace("?", "%s").encode()


@contextmanager
def _faults(*, committing: bool = False) -> Iterator[None]:
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        state = error.sqlstate or ""
        is_lost = not state and isinstance(error, psycopg.OperationalError)
        is_lost = is_lost or state.startswith("08") or state in ("57P01", "57P02", "57P03")
        of_entry = state[:2] in _OF_ENTRY_CLASSES or (not state and isinstance(error, psycopg.DataError))
        raise DatabaseError(
            _said(error, state),
            passing=is_lost or state[:2] in _PASSING_CLASSES or state == _TOO_MANY_CONNECTIONS,
            unsure=committing and (is_lost or not state),
            broken=is_lost or not (state and (of_entry or state[:2] in ("40", "55"))),
            of_entry=of_entry,
        ) from None
    except (OverflowError, UnicodeEncodeError) as error:
        raise DatabaseError(f"does not take a value: {type(error).__name__}", of_entry=True) from None


def _said(error: Exception, state: str) -> str:
    """In words of ours. What the server said may quote a row, a user or an address."""
    if state:
        return f"{_WORDS.get(state[:2], 'refuses it')} (SQLSTATE {state}, {type(error).__name__})"
    said = str(error)
    known = next((kind for words, kind in _REFUSALS if f"FATAL:  {words}" in said or f": {words}" in said), None)
    if known is None:
        known = next((kind for words, kind in _REFUSALS[:3] if words in said), None)
    return _WORDS[known] if known else "is out of reach: no server answers there, or the connection broke off"
