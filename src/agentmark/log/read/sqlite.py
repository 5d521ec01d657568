"""The databases of `agentmark.log.sqlite` and of a gateway's store, read without touching them."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from agentmark.log.read.events import Damage, Event
from agentmark.log.read.files import shown
from agentmark.log.read.format import Format, FormatTable, read_entry
from agentmark.log.read.limits import LimitError
from agentmark.log.read.meter import Meter
from agentmark.log.sqlite_file import KINDS
from agentmark.record import RecordError

# How often a statement is interrupted to count what it does, in instructions of SQLite.
_INSTRUCTIONS = 1000

# A message of SQLite may quote the file, which need not be text.
_FAULTS = (sqlite3.Error, UnicodeDecodeError)


class SqliteDatabase(Format):
    """Its rows, in the order of writing."""

    name = "SQLite"
    accepted = "SQLite (a database of agentmark.log.sqlite.SqliteLog, or a gateway's store)"
    magic = (b"SQLite format 3\x00",)

    def read_file(self, path: Path, table: FormatTable, meter: Meter) -> Iterator[Event]:
        count = 0
        watch = _Watch(meter)
        try:
            connection = _open(path, watch)
        except _FAULTS as error:
            raise RecordError(shown(path), "database", f"cannot be opened: {_said(error)}") from None
        try:
            _check_ours(connection, shown(path))
            # By the key that every table has, in whose order it is stored: nothing has to be sorted before it is seen.
            for row, line in connection.execute("SELECT _rowid_, line FROM records ORDER BY _rowid_"):
                where = f"{shown(path)} row {row}"
                _count(line, where, meter)
                yield read_entry(line, where)
                count += 1
        except _FAULTS as error:
            watch.check(error, shown(path))
            if count == 0:
                raise RecordError(shown(path), "database", f"cannot be read: {_said(error)}") from None
            yield Damage(f"{shown(path)}: damaged after {count} rows ({_said(error)}); read up to there")
        finally:
            connection.close()


class _Watch:
    """Counts what SQLite does: a file whose pages refer to one another can keep it busy without end."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._stopped: LimitError | None = None

    def __call__(self) -> bool:
        """Whether SQLite is to stop. It cannot be told why."""
        try:
            self.meter.count_values(_INSTRUCTIONS)
        except LimitError as error:
            self._stopped = error
        return self._stopped is not None

    def check(self, error: Exception, name: str) -> None:
        """Raise the limit that was behind an error of SQLite, if one was."""
        if self._stopped is not None:
            raise self._stopped
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_TOOBIG:
            self.meter.hold(self.meter.limits.held_bytes + 1, name, "a value in it")


def _open(path: Path, watch: _Watch) -> sqlite3.Connection:
    # Without a write-ahead log beside it the file is all there is, and SQLite need leave no trace there.
    beside = path.with_name(path.name + "-wal")
    written = beside.stat().st_size if beside.exists() else 0
    watch.meter.read(written)
    uri = f"file:{quote(str(path.absolute()))}?mode=ro{'' if written else '&immutable=1'}"
    connection = sqlite3.connect(uri, uri=True)
    connection.set_progress_handler(watch, _INSTRUCTIONS)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(watch.meter.limits.held_bytes, (1 << 31) - 1))
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _check_ours(connection: sqlite3.Connection, name: str) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    kind = next((known for known in KINDS if known.application_id == application), None)
    if kind is None:
        raise RecordError(name, "database", f"is not AgentMark's: SQLite, with application id {application:#x}")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != kind.version:
        raise RecordError(name, "database", f"has schema {version}, this build reads {kind.version}")
    # A view or a computed column runs what the file says, for as long as it says: only what is stored is read.
    stored = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'records' AND type = 'table'"
    ).fetchone()
    columns = connection.execute("PRAGMA table_xinfo(records)").fetchall()
    plain = all(row[-1] == 0 and str(row[1]).lower() != "_rowid_" for row in columns)
    if stored is None or not stored[0] or not plain:
        raise RecordError(name, "database", "is not as AgentMark makes it: `records` is no plain table")


def _count(line: object, where: str, meter: Meter) -> None:
    text = line.encode("utf-8", "surrogateescape") if isinstance(line, str) else b""
    meter.unpack(len(line) if isinstance(line, bytes) else len(text))
    meter.parse(text, where, "value")


def _said(error: Exception) -> str:
    """What SQLite says of a fault, in so far as it is text."""
    return "its schema is no text" if isinstance(error, UnicodeDecodeError) else str(error)
