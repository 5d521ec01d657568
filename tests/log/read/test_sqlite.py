"""Databases that are handed in, ours, damaged or hostile."""

import os
import sqlite3
import threading
from pathlib import Path

import pytest
from log_shapes import RUN, verdict_of

from agentmark import RecordError
from agentmark.log.read.open import open_log
from agentmark.log.sqlite import APPLICATION_ID, SCHEMA_VERSION, SqliteLog


def test_the_same_run_in_a_database_has_the_same_verdict(
    tmp_path: Path, key_file: Path, native_verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with SqliteLog(tmp_path / "run.db") as log:
        for record in RUN:
            log.write(record)
    assert verdict_of(tmp_path / "run.db", key_file, capsys) == native_verdict


def test_a_database_cannot_come_through_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"SQLite format 3\x00" + bytes(100)))
    writer.start()
    with pytest.raises(RecordError, match="has to be a file"):
        list(open_log(path))
    writer.join()


def test_databases_that_are_not_ours_or_damaged(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE records (line TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(RecordError, match="is not AgentMark's: SQLite, with application id 0x0"):
        list(open_log(path))
    path = tmp_path / "run.db"
    with SqliteLog(path) as log:
        for record in RUN:
            log.write(record)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(RecordError, match="cannot be read"):
        list(open_log(path))
    # The last pages alone: what stands before them is read.
    with SqliteLog(tmp_path / "long.db") as log:
        for _ in range(20):
            for record in RUN:
                log.write(record)
    content = bytearray((tmp_path / "long.db").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 40_000] = bytes(40_000)
    path.write_bytes(content)
    source = open_log(path)
    read = list(source)
    assert 0 < len(read) < 20 * len(RUN)
    assert read == (RUN * 20)[: len(read)]
    assert f"damaged after {len(read)} rows" in source.summary.passed_over[0]


@pytest.mark.parametrize(
    "records",
    [
        "CREATE VIEW records AS SELECT 1 AS id, hex(zeroblob(60000000)) AS line",
        "CREATE VIEW records AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT i AS id, '' AS line FROM n WHERE i < 0",
        "CREATE TABLE records (id INTEGER PRIMARY KEY, line TEXT AS (hex(zeroblob(6000000))))",
        "CREATE VIRTUAL TABLE records USING fts5(id, line)",
        "CREATE TABLE other (id INTEGER)",
    ],
)
def test_a_database_whose_records_are_computed_is_refused(tmp_path: Path, records: str) -> None:
    path = tmp_path / "run.db"
    connection = sqlite3.connect(path)
    connection.execute(records)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.commit()
    connection.close()
    with pytest.raises(RecordError, match="no plain table"):
        list(open_log(path))


def test_a_value_of_a_database_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with SqliteLog(path) as log:
        for record in RUN[:4]:
            log.write(record)
    connection = sqlite3.connect(path)
    connection.execute(
        "INSERT INTO records (session, step, context, key_id, line, written_at)"
        " VALUES ('', 0, '', '', zeroblob(17 << 20), '')"
    )
    connection.commit()
    connection.close()
    source = open_log(path)
    read = list(source)
    # Python asks for a row before it hands out the one before it.
    assert 3 <= len(read) <= 4
    assert read == RUN[: len(read)]
    assert "rows (string or blob too big)" in source.summary.passed_over[0]


def test_tampered_rows_of_a_database_are_bad_records(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with SqliteLog(path) as log:
        for record in RUN[:4]:
            log.write(record)
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER records_stay_as_they_are")
    connection.execute("UPDATE records SET line = x'ff00' WHERE id = 1")
    connection.execute("UPDATE records SET line = CAST(x'7bff' AS TEXT) WHERE id = 2")
    connection.execute("UPDATE records SET line = 5 WHERE id = 3")
    connection.commit()
    connection.close()
    with pytest.raises(RecordError, match=r"record run\.db row 1: agentmark\.record"):
        list(open_log(path))
    source = open_log(path, skip_bad=True)
    assert list(source) == RUN[3:4]
    assert len(source.summary.bad_lines) == 3
