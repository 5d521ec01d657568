"""SQLite files of ours: which kind one is, stated in its header, and how one is made or refused."""

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from agentmark.errors import SettingError

BUSY_S = 30.0


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of database. Each holds a table `records` with a column `line`: so much is the same for who reads it."""

    # What a person calls it.
    noun: str
    # Four letters in the header of the file, as a number.
    application_id: int
    version: int


# The letters "agmk" and "agms".
LOG = FileKind("a log", 0x61676D6B, 1)
STORE = FileKind("a gateway's store", 0x61676D73, 1)
KINDS = (LOG, STORE)


def set_up(connection: sqlite3.Connection, path: Path, kind: FileKind, schema: str) -> None:
    """Make the tables, or see that they are ours. Two processes may come here at once."""
    # Before anything is changed: to switch another's database to WAL would last.
    is_made = check_kind(connection, path, kind)
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            # Switching to WAL does not wait for others as other statements do.
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    if is_made:
        return
    connection.execute("BEGIN IMMEDIATE")
    # Closing the connection, if it is another's by now, rolls back.
    if check_kind(connection, path, kind):
        connection.execute("ROLLBACK")
        return
    for statement in statements(schema):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {kind.application_id}")
    connection.execute(f"PRAGMA user_version = {kind.version}")
    connection.execute("COMMIT")


def check_kind(connection: sqlite3.Connection, path: Path, kind: FileKind) -> bool:
    """True if it is of this kind, False if it is empty; anything else is refused."""
    # Both in one statement, so that a maker at work is seen before or after, never between.
    application, tables = connection.execute(
        "SELECT (SELECT application_id FROM pragma_application_id),"
        " (SELECT min(name) FROM sqlite_master WHERE type = 'table')"
    ).fetchone()
    if application == kind.application_id:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != kind.version:
            raise SettingError(str(path), f"holds schema {version}, this build writes {kind.version}")
        return True
    other = next((known for known in KINDS if known.application_id == application), None)
    if other is not None:
        raise SettingError(str(path), f"is {other.noun}, not {kind.noun}: keep each in a file of its own")
    if tables is not None:
        raise SettingError(str(path), f"is a database of something else: it holds the table {tables}")
    return False


def statements(script: str) -> list[str]:
    """`executescript` would commit the transaction that guards against a second maker."""
    found, waiting = [], ""
    for line in script.strip().splitlines():
        waiting += line + "\n"
        if sqlite3.complete_statement(waiting):
            found.append(waiting)
            waiting = ""
    return found
