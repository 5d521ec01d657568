"""Records in an SQLite database: one file, many writers, and queries by session (docs/logs.md)."""

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from agentmark.errors import SettingError
from agentmark.log.sink import FileSink
from agentmark.log.sqlite_file import BUSY_S, LOG, set_up
from agentmark.record import StepRecord
from agentmark.times import utc_now

SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    step INTEGER NOT NULL,
    context TEXT NOT NULL,
    key_id TEXT NOT NULL,
    line TEXT NOT NULL,
    written_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS records_by_session ON records (session, step);
CREATE TRIGGER IF NOT EXISTS records_stay BEFORE DELETE ON records
    BEGIN SELECT RAISE(ABORT, 'records are append-only'); END;
CREATE TRIGGER IF NOT EXISTS records_stay_as_they_are BEFORE UPDATE ON records
    BEGIN SELECT RAISE(ABORT, 'records are append-only'); END;
"""


class SqliteLog(FileSink):
    """Appends records to a database in WAL mode. Threads share one; each process opens its own.

    `line` is the record; the other columns repeat parts of it for queries, and no verdict looks at them.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool = False,
        clock: Callable[[], str] = utc_now,
    ) -> None:
        """With `fsync` each record is on the disk when `write` returns; without, a power cut may cost the last ones."""
        self.path = Path(path)
        self._fsync = fsync
        self._clock = clock
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = self._open()

    def write(self, record: StepRecord) -> None:
        """Append one record, in a transaction of its own."""
        row = (
            record.session,
            record.step_index,
            record.context.hex(),
            record.key_id,
            record.to_json(),
            self._clock(),
        )
        with self._lock:
            if self._connection is None:
                raise self._closed()
            if os.getpid() != self._process:
                # SQLite loses what is written across a fork, even through a second connection.
                raise SettingError(str(self.path), "was opened before a fork: each process opens its own")
            self._connection.execute(
                "INSERT INTO records (session, step, context, key_id, line, written_at) VALUES (?, ?, ?, ?, ?, ?)", row
            )

    def close(self) -> None:
        """Close the database; the last one to do so folds its write-ahead log into it. Again, it does nothing."""
        with self._lock:
            # In a fork it is the parent's, and stays open.
            if self._connection is not None and os.getpid() == self._process:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            set_up(connection, self.path, LOG, SCHEMA)
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._fsync else 'NORMAL'}")
        except sqlite3.DatabaseError as error:
            connection.close()
            raise SettingError(str(self.path), f"cannot be used as a log: {error}") from None
        except SettingError:
            connection.close()
            raise
        return connection
