"""A registry as a SQLite table: the same head and entries as in the file of lines, kept by a database."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from agentmark.identity.errors import RegistryError

BUSY_TIMEOUT_S = 30.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS agentmark_registry (version INTEGER NOT NULL, payload_len INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS identities (
    name TEXT NOT NULL PRIMARY KEY, payload TEXT NOT NULL UNIQUE, issued_at TEXT, revoked_at TEXT
);
"""


def read_rows(path: str | os.PathLike[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The head, then each identity in the order of issue, with its place for error messages."""
    if not Path(path).exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            heads = list(database.execute("SELECT version AS agentmark_registry, payload_len FROM agentmark_registry"))
            if len(heads) != 1:
                raise RegistryError(str(path), f"table agentmark_registry has {len(heads)} rows, not one")
            yield f"{path}: agentmark_registry", dict(heads[0])
            columns = "rowid AS number, name, payload, issued_at, revoked_at"
            for row in database.execute(f"SELECT {columns} FROM identities ORDER BY rowid"):
                yield f"{path}: identities, row {row['number']}", dict(row)
    except sqlite3.Error as error:
        raise RegistryError(str(path), f"is not a registry that SQLite can read: {error}") from None


def write_rows(path: str | os.PathLike[str], head: dict[str, Any], entries: Sequence[dict[str, Any]]) -> None:
    """Enter what is new and note what was revoked, all or nothing. What others entered meanwhile stays; a name or
    payload that they took first is refused."""
    # Private from the first moment, as a file of lines is.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                _write(database, str(path), head, entries)
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")
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
