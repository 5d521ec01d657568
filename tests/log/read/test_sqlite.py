"""Databases that are handed in, ours, damaged or hostile."""

import os
import random
import sqlite3
import struct
import threading
from pathlib import Path

import pytest
from log_shapes import RUN, verdict_of

from agentmark import AgentMarkError, LimitError, Limits, RecordError
from agentmark.log.read.open import open_log
from agentmark.log.sqlite import SqliteLog
from agentmark.log.sqlite_file import LOG


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
    connection.execute(f"PRAGMA application_id = {LOG.application_id}")
    connection.execute(f"PRAGMA user_version = {LOG.version}")
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
    with pytest.raises(LimitError, match=r"run\.db: a value in it is larger than 16 MiB") as caught:
        list(open_log(path))
    assert caught.value.limit == "held_bytes"
    with pytest.raises(RecordError, match="is of type bytes"):
        list(open_log(path, limits=Limits(held_bytes=20 << 20)))


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
    with pytest.raises(RecordError, match=r"run\.db row 1: agentmark\.record"):
        list(open_log(path))
    source = open_log(path, skip_bad=True)
    assert list(source) == RUN[3:4]
    assert len(source.summary.bad_lines) == 3


# Damaged on purpose


def a_database(tmp_path: Path, count: int) -> bytes:
    path = tmp_path / "whole.db"
    with SqliteLog(path) as log:
        for record in RUN[:count]:
            log.write(record)
    return path.read_bytes()


def test_a_schema_that_is_no_text_is_an_error_of_ours(tmp_path: Path) -> None:
    """SQLite quotes it in its message, which Python then cannot decode."""
    content = a_database(tmp_path, 3).replace(b"indexrecords_by_session", b"index\xff\xfe\xffords_by_session")
    path = tmp_path / "run.db"
    path.write_bytes(content.replace(b"CREATE INDEX records_by", b"CREATE INDEZ records_by"))
    with pytest.raises(RecordError, match="cannot be read: its schema is no text"):
        list(open_log(path))


def test_no_damage_to_a_database_ends_in_an_error_that_is_not_ours(tmp_path: Path) -> None:
    """Bytes of its header and schema one by one, others at random, and cuts."""
    content, path, draw = a_database(tmp_path, 3), tmp_path / "run.db", random.Random(7)
    damaged = [
        content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :] for at in range(16, 108) for flip in (1, 255)
    ]
    for _ in range(150):
        changed = bytearray(content)
        for _ in range(draw.choice((1, 3, 30))):
            changed[draw.randrange(100, len(changed))] = draw.randrange(256)
        damaged.append(bytes(changed[: draw.choice((len(changed), draw.randrange(100, len(changed))))]))
    for changed in damaged:
        path.write_bytes(changed)
        source = open_log(path, skip_bad=True)
        try:
            read = list(source)
        except AgentMarkError:
            continue
        assert len(read) <= 3
        assert all(isinstance(sentence, str) for sentence in source.summary.passed_over)


def interior_page(child: int, count: int, size: int) -> bytes:
    """A page of a b-tree whose children are all the same page."""
    page, at, places = bytearray(size), size, []
    for _ in range(count):
        at -= 5
        page[at : at + 5] = struct.pack(">IB", child, 1)
        places.append(at)
    page[:12] = struct.pack(">BHHHBI", 5, 0, count, at, 0, child)
    page[12 : 12 + 2 * count] = struct.pack(f">{count}H", *places)
    return bytes(page)


def test_a_database_whose_pages_refer_to_one_page_again_and_again_is_refused(tmp_path: Path) -> None:
    """Four levels of five hundred: sixty thousand million rows in ten pages."""
    content = bytearray(a_database(tmp_path, 3))
    size = struct.unpack(">H", content[16:18])[0]
    connection = sqlite3.connect(tmp_path / "whole.db")
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'records'").fetchone()[0]
    connection.close()
    leaf = bytes(content[(root - 1) * size : root * size])
    assert leaf[0] == 13
    content += leaf
    for _ in range(3):
        content += interior_page(len(content) // size, 500, size)
    content[(root - 1) * size : root * size] = interior_page(len(content) // size, 500, size)
    content[28:32] = struct.pack(">I", len(content) // size)
    path = tmp_path / "run.db"
    path.write_bytes(content)
    for skip_bad in (False, True):
        with pytest.raises(LimitError) as caught:
            for _ in open_log(path, skip_bad=skip_bad):
                pass
        assert caught.value.limit in ("records_per_kib", "values_per_byte", "unpacked_ratio")


def test_rows_are_read_in_the_order_in_which_they_are_stored(tmp_path: Path) -> None:
    """A table with a column in the place of its own key would have to be sorted, all of it, before its first row."""
    for columns in ("_rowid_ TEXT, line TEXT", "id TEXT PRIMARY KEY, line TEXT) WITHOUT ROWID; --"):
        path = tmp_path / "run.db"
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        connection.executescript(
            f"PRAGMA application_id = {LOG.application_id}; PRAGMA user_version = {LOG.version};"
            f"CREATE TABLE records ({columns}\n{')' if '--' not in columns else ''};"
        )
        connection.close()
        with pytest.raises(RecordError, match=r"no plain table|no such column: _rowid_"):
            list(open_log(path))
