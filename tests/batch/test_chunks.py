"""Chunks of any format: those that the plain readers know, and what is no file of lines at all."""

import gzip
import json
import os
import threading
from pathlib import Path

import pytest
from both_ways import check_alike, in_chunks, plainly
from log_shapes import EXPORTS, LINES, RUN, SHAPES, as_json_text

from agentmark.batch.chunks import read_chunks
from agentmark.log.sqlite import SqliteLog


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_read_alike(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(SHAPES[shape][0](LINES))
    told = check_alike(path)
    assert told.records


@pytest.mark.parametrize("export", sorted(path.name for path in EXPORTS.iterdir()))
def test_recorded_exports_are_read_alike(export: str) -> None:
    check_alike(EXPORTS / export)


def test_a_database_is_read_alike(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        for record in RUN:
            log.write(record)
    told = check_alike(tmp_path / "log.db")
    assert len(told.records) == len(RUN)
    assert [len(columns) for columns in read_chunks(tmp_path / "log.db", rows=7)][:-1] == [7] * ((len(RUN) - 1) // 7)


NO_LOGS = {
    "nothing that is known": b"\x89PNG\r\n",
    "text": b"hello\n",
    "another document": as_json_text({"a": 1}),
    "a cut database": b"SQLite format 3\0",
    "a cut table": b"PAR1",
    "a gzip file that was cut": gzip.compress(LINES[0].encode())[:30],
    "zeros": bytes(5000),
}


@pytest.mark.parametrize("content", NO_LOGS.values(), ids=NO_LOGS.keys())
def test_what_is_no_log_is_refused_alike(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    check_alike(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(read_chunks(tmp_path / "nothing.jsonl"))


def test_a_foreign_line_above_ours(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"resourceSpans": []}) + "\n" + "\n".join(LINES) + "\n", encoding="utf-8")
    told = check_alike(path)
    assert told.records[0][1] == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_opened_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text("\n".join(LINES[:3]) + "\n", encoding="utf-8"))
    writer.start()
    told = in_chunks(path, skip_bad=False)
    writer.join()
    plain = tmp_path / "plain"
    plain.write_text("\n".join(LINES[:3]) + "\n", encoding="utf-8")
    assert told.records == plainly(plain, skip_bad=False).records
