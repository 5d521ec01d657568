"""A store in one SQLite file, in WAL mode: many readers, one writer at a time, in any number of processes."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from agentmark.errors import SettingError
from agentmark.log.sqlite_file import STORE, check_kind, set_up
from agentmark.store.database import Connection, Database, DatabaseError
from agentmark.store.schema import TABLES

# How long SQLite itself waits for a lock, before the store decides whether it goes on waiting.
LOCK_S = 1.0
# What is left of the write-ahead log when all of it is in the file.
KEPT_WAL = 16 << 20
# Pages given back to the system at once, after deletions.
FREED_PAGES = 1000

_TYPES = {"number": "INTEGER PRIMARY KEY AUTOINCREMENT", "integer": "INTEGER", "small": "INTEGER"}
_TYPES |= {"bytes": "BLOB", "time": "REAL"}

_GUARDS = """
CREATE TRIGGER {table}_stay BEFORE DELETE ON {table}
    WHEN NOT EXISTS (SELECT 1 FROM expirations WHERE what = '{table}' AND before > OLD.written_at)
    BEGIN SELECT RAISE(ABORT, '{table} are append-only: only what retention announced is deleted'); END;
CREATE TRIGGER {table}_stay_as_they_are BEFORE UPDATE ON {table}
    BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END;
"""
_GUARDS_OF_EXPIRATIONS = """
CREATE TRIGGER expirations_stay BEFORE DELETE ON expirations
    BEGIN SELECT RAISE(ABORT, 'expirations are append-only'); END;
CREATE TRIGGER expirations_stay_as_they_are BEFORE UPDATE ON expirations
    BEGIN SELECT RAISE(ABORT, 'expirations are append-only'); END;
"""
SCHEMA = (
    TABLES.format(**_TYPES).replace("@", "")
    + _GUARDS.format(table="records")
    + _GUARDS.format(table="calls")
    + _GUARDS_OF_EXPIRATIONS
)

_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_WORDS = {
    sqlite3.SQLITE_BUSY: "is locked by another process that has been writing for too long: end it, or wait",
    sqlite3.SQLITE_LOCKED: "is locked by another connection that has been writing for too long",
    sqlite3.SQLITE_FULL: "cannot grow: its disk is full, or its size limit is reached; make room",
    sqlite3.SQLITE_READONLY: "cannot be written: the file or its folder is read-only for this user",
    sqlite3.SQLITE_IOERR: "cannot be read or written: its disk reports an error, or is full",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a backup",
    sqlite3.SQLITE_NOTADB: "is damaged, or is no database; restore it from a backup",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: its folder is missing, or may not be written to",
    sqlite3.SQLITE_TOOBIG: "takes no value of this size",
}


class SqliteDatabase(Database):
    """A file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)

    def set_up(self) -> None:
        """Made so that only its owner reads it: it says what agents did, and for a while what they were told."""
        with suppress(OSError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = self._open()
        try:
            # So that what is deleted can be given back to the system; it counts only before there is any table.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            set_up(connection, self.path, STORE, SCHEMA)
        except sqlite3.DatabaseError as error:
            raise SettingError(self.name, f"cannot be used as a store: {_said(error)}") from None
        finally:
            connection.close()

    def check(self) -> None:
        if not self.path.is_file():
            raise SettingError(self.name, "is no file")
        connection = self._open()
        try:
            if not check_kind(connection, self.path, STORE):
                raise SettingError(self.name, "is empty: no gateway has used it as its store")
        except sqlite3.DatabaseError as error:
            raise SettingError(self.name, f"cannot be used as a store: {_said(error)}") from None
        finally:
            connection.close()

    def connect(self) -> "SqliteConnection":
        try:
            connection = self._open()
        except SettingError as error:
            raise DatabaseError(error.fault, passing=True) from None
        return SqliteConnection(connection, self.path)

    def _open(self) -> sqlite3.Connection:
        # Never made by the way: a store that was deleted must not come back empty.
        uri = f"{self.path.absolute().as_uri()}?mode=rw"
        try:
            connection = sqlite3.connect(uri, uri=True, timeout=LOCK_S, isolation_level=None, check_same_thread=False)
            try:
                # Every commit is on the disk when it returns; what was deleted is overwritten.
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA secure_delete = ON")
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute(f"PRAGMA journal_size_limit = {KEPT_WAL}")
            except sqlite3.Error:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise SettingError(self.name, f"cannot be used as a store: {_said(error)}") from None
        return connection


class SqliteConnection(Connection):
    """A connection of one process. Those that were opened before a fork are refused: SQLite would lose data."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._file = _file_at(path)

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        self._check_file()
        with _faults():
            return self._connection.execute(_plain(statement), parameters).fetchall()

    def stream(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        with _faults():
            yield from self._connection.execute(_plain(statement), parameters)

    def change(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        with _faults():
            return self._connection.execute(_plain(statement), parameters).rowcount

    def change_each(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        with _faults():
            return self._connection.executemany(_plain(statement), rows).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._check_file()
        with _faults():
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            with _faults(committing=True):
                self._connection.execute("COMMIT")
        except BaseException:
            # It may have rolled back by itself, as it does when the disk is full.
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def part(self) -> Iterator[None]:
        with _faults():
            self._connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK TO part")
            raise
        finally:
            with suppress(sqlite3.Error):
                self._connection.execute("RELEASE part")

    def alone(self) -> None:
        """There is one writer at a time as it is."""

    def tidy(self) -> None:
        with _faults():
            # As a script: it frees a page a step, and `execute` takes one step only.
            self._connection.executescript(f"PRAGMA incremental_vacuum({FREED_PAGES})")

    def abort(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.interrupt()

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()

    def _check_file(self) -> None:
        """A file that was moved or deleted goes on taking writes that nobody will find, and answers of tenants and
        decisions that are no more."""
        if _file_at(self._path) != self._file:
            raise DatabaseError(
                "was moved, deleted or replaced while it was open; put it back", passing=True, broken=True
            )


def _file_at(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@cache
def _plain(statement: str) -> str:
    return statement.replace("@", "")


@contextmanager
def _faults(*, committing: bool = False) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = _code(error)
        of_entry = isinstance(error, sqlite3.IntegrityError | sqlite3.DataError | sqlite3.InterfaceError)
        raise DatabaseError(
            _said(error),
            passing=code in _LOCKED,
            # A commit whose last write failed may still be found after a crash, or not.
            unsure=committing and code == sqlite3.SQLITE_IOERR,
            broken=not of_entry and code not in (*_LOCKED, sqlite3.SQLITE_FULL),
            of_entry=of_entry,
        ) from None
    except (OverflowError, UnicodeEncodeError) as error:
        raise DatabaseError(f"does not take a value: {type(error).__name__}", of_entry=True) from None


def _code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    # The lowest byte is what happened; those above, where.
    return None if code is None else code & 0xFF


def _said(error: sqlite3.Error) -> str:
    code = _code(error)
    return str(error) if code is None else _WORDS.get(code, str(error))
