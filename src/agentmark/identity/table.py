"""A registry as a SQLite table: the same head and entries as in the file of lines, kept by a database."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from agentmark.identity.errors import RegistryError

BUSY_TIMEOUT_S = 30.0
# What reading a registry may take, in instructions of SQLite's machine: a million identities take some 20 million.
MAX_WORK, WORK_ROUND = 1_000_000_000, 1_000_000
# One name, payload or date, in bytes.
MAX_VALUE_SIZE = 1 << 20

TABLES = ("agentmark_registry", "identities")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS agentmark_registry (version INTEGER NOT NULL, payload_len INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS identities (
    name TEXT NOT NULL PRIMARY KEY, payload TEXT NOT NULL UNIQUE, issued_at TEXT, revoked_at TEXT
);
"""


def read_rows(path: str | os.PathLike[str], max_size: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The head, then each identity in the order of issue, with its place for error messages. More than `max_size`
    characters in all are refused."""
    if not Path(path).exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    if not Path(path).is_file():
        raise RegistryError(str(path), "is not a file")
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as database:
            _bound(database)
            for table in TABLES:
                _check_table(database, table, str(path))
            database.row_factory = sqlite3.Row
            heads = database.execute("SELECT version AS agentmark_registry, payload_len FROM agentmark_registry")
            found = heads.fetchmany(2)
            if len(found) != 1:
                raise RegistryError(str(path), f"table agentmark_registry has {_count(found)}, not one row")
            yield f"{path}: agentmark_registry", dict(found[0])
            columns = "rowid AS number, name, payload, issued_at, revoked_at"
            size = 0
            for row in database.execute(f"SELECT {columns} FROM identities ORDER BY rowid"):
                size += sum([len(value) for value in row if isinstance(value, str | bytes)])
                if size > max_size:
                    raise RegistryError(str(path), f"holds more than {max_size:,} characters, which no registry does")
                yield f"{path}: identities, row {row['number']}", dict(row)
    except UnicodeDecodeError:
        # SQLite quotes the damage in its own message, which then is no text.
        raise RegistryError(str(path), "is not a registry that SQLite can read: it is damaged") from None
    except sqlite3.Error as error:
        raise RegistryError(str(path), f"is not a registry that SQLite can read: {error}") from None


def _bound(database: sqlite3.Connection) -> None:
    """A table may compute its columns, or be a query that never ends: no value is long, and work comes to an end."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_SIZE)
    rounds = iter(range(MAX_WORK // WORK_ROUND))
    # The statement is given up at the first answer that is true.
    database.set_progress_handler(lambda: next(rounds, None) is None, WORK_ROUND)


def _check_table(database: sqlite3.Connection, table: str, where: str) -> None:
    """A view, or a table that some module makes up, may go on for ever. Neither has a page of its own."""
    kinds = database.execute("SELECT type, rootpage FROM sqlite_master WHERE lower(name) = ?", (table,))
    if any(kind != "table" or not page for kind, page in kinds):
        raise RegistryError(where, f"{table} is not a table of rows")


def _count(rows: Sequence[object]) -> str:
    return "several rows" if rows else "0 rows"


def write_rows(path: str | os.PathLike[str], head: dict[str, Any], entries: Sequence[dict[str, Any]]) -> None:
    """Enter what is new and note what was revoked, all or nothing. What others entered meanwhile stays; a name or
    payload that they took first is refused."""
    # Private from the first moment, as a file of lines is.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as database:
            _bound(database)
            for table in TABLES:
                _check_table(database, table, str(path))
            database.execute("BEGIN IMMEDIATE")
            try:
                _write(database, str(path), head, entries)
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")
    except UnicodeDecodeError:
        raise RegistryError(str(path), "cannot be written: it is damaged") from None
    except sqlite3.Error as error:
        raise RegistryError(str(path), f"cannot be written: {error}") from None


def _write(database: sqlite3.Connection, where: str, head: dict[str, Any], entries: Sequence[dict[str, Any]]) -> None:
    for statement in _SCHEMA.split(";")[:-1]:
        database.execute(statement)
    stated = database.execute("SELECT version, payload_len FROM agentmark_registry").fetchall()
    wanted = (head["agentmark_registry"], head["payload_len"])
    if not stated:
        database.execute("INSERT INTO agentmark_registry VALUES (?, ?)", wanted)
    elif stated != [wanted]:
        raise RegistryError(where, f"holds a registry of {stated[0][1]} bits, not of {head['payload_len']}")
    for entry in entries:
        row = database.execute("SELECT payload FROM identities WHERE name = ?", (entry["name"],)).fetchone()
        if row is None:
            _insert(database, entry)
        elif row[0] != entry["payload"]:
            raise RegistryError(repr(entry["name"]), "this name was issued meanwhile, with another payload")
        elif entry["revoked_at"] is not None:
            # A revocation is never taken back: whoever saves an older view does not know of it.
            revoke = "UPDATE identities SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL"
            database.execute(revoke, (entry["revoked_at"], entry["name"]))


def _insert(database: sqlite3.Connection, entry: dict[str, Any]) -> None:
    values = (entry["name"], entry["payload"], entry["issued_at"], entry["revoked_at"])
    try:
        database.execute("INSERT INTO identities (name, payload, issued_at, revoked_at) VALUES (?, ?, ?, ?)", values)
    except sqlite3.IntegrityError:
        raise RegistryError(repr(entry["name"]), f"payload 0x{entry['payload']} was issued meanwhile") from None
