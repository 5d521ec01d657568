"""The database of `agentmark.log.sqlite`, read without touching it."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from agentmark.log.read.events import Damage, Event
from agentmark.log.read.format import Format, FormatTable, read_entry
from agentmark.log.sqlite import APPLICATION_ID, SCHEMA_VERSION
from agentmark.record import RecordError

# No value of a database is longer, and no expression in one makes a longer one.
MAX_VALUE = 16 << 20


class SqliteDatabase(Format):
    """Its rows, in the order of writing."""

    name = "SQLite"
    accepted = "SQLite (a database of agentmark.log.sqlite.SqliteLog)"
    magic = (b"SQLite format 3\x00",)

    def read_file(self, path: Path, table: FormatTable) -> Iterator[Event]:
        count = 0
        connection = _open(path)
        try:
            _check_ours(connection, path.name)
            for row, line in connection.execute("SELECT id, line FROM records ORDER BY id"):
                yield read_entry(line, f"{path.name} row {row}")
                count += 1
        except sqlite3.DatabaseError as error:
            if count == 0:
                raise RecordError(path.name, "database", f"cannot be read: {error}") from None
            yield Damage(f"{path}: damaged after {count} rows ({error}); read up to there")
        finally:
            connection.close()


def _open(path: Path) -> sqlite3.Connection:
    # Without a write-ahead log beside it the file is all there is, and SQLite need leave no trace there.
    beside = path.with_name(path.name + "-wal")
    still = not beside.exists() or beside.stat().st_size == 0
    uri = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if still else ''}"
    try:
        connection = sqlite3.connect(uri, uri=True)
    except sqlite3.Error as error:
        raise RecordError(path.name, "database", f"cannot be opened: {error}") from None
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    return connection


def _check_ours(connection: sqlite3.Connection, name: str) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise RecordError(name, "database", f"is not AgentMark's: SQLite, with application id {application:#x}")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise RecordError(name, "database", f"has schema {version}, this build reads {SCHEMA_VERSION}")
    # A view or a computed column runs what the file says, for as long as it says: only what is stored is read.
    stored = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'records' AND type = 'table'"
    ).fetchone()
    computed = [row for row in connection.execute("PRAGMA table_xinfo(records)") if row[-1] != 0]
    if stored is None or not stored[0] or computed:
        raise RecordError(name, "database", "is not as AgentMark makes it: `records` is no plain table")
