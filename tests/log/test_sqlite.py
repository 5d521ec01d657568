"""Records in a database."""

import sqlite3
from pathlib import Path

import pytest
from log_run import the_run
from sink_helpers import write_all

from agentmark import SettingError, open_log
from agentmark.log.sqlite import SqliteLog


def test_a_database_gives_back_what_was_written(tmp_path: Path) -> None:
    records = the_run()
    path = tmp_path / "run.db"
    for half in (records[:30], records[30:]):
        with SqliteLog(path, fsync=True, clock=lambda: "2026-01-01T00:00:00+00:00") as log:
            write_all(log, half)
    source = open_log(path)
    assert list(source) == records
    assert source.summary.format == "SQLite"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.db"], "reading leaves no trace"
    connection = sqlite3.connect(path)
    row = connection.execute("SELECT session, step, context, key_id, line, written_at FROM records").fetchone()
    first = records[0]
    assert row[:4] == (first.session, first.step_index, first.context.hex(), first.key_id)
    assert row[4:] == (first.to_json(), "2026-01-01T00:00:00+00:00")
    connection.close()


def test_a_database_is_read_while_it_is_written(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "run.db") as log:
        write_all(log, the_run()[:7])
        assert list(open_log(tmp_path / "run.db")) == the_run()[:7]


@pytest.mark.parametrize("statement", ["DELETE FROM records", "UPDATE records SET line = '{}'"])
def test_rows_stay_as_they_are(tmp_path: Path, statement: str) -> None:
    with SqliteLog(tmp_path / "run.db") as log:
        write_all(log, the_run()[:2])
    connection = sqlite3.connect(tmp_path / "run.db")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


def test_other_databases_and_files_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE wages (name TEXT)")
    connection.close()
    before = other.read_bytes()
    with pytest.raises(SettingError, match="something else: it holds the table wages"):
        SqliteLog(other)
    assert other.read_bytes() == before, "not even its journal mode is changed"
    newer = tmp_path / "newer.db"
    SqliteLog(newer).close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(SettingError, match="schema 2, this build writes 1"):
        SqliteLog(newer)
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"not a database, but long enough to be looked at" * 30)
    with pytest.raises(SettingError, match="cannot be used as a log"):
        SqliteLog(junk)
