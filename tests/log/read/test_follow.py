"""A log that is still being written: torn last lines, replaced and shortened files."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support import marked_log

from agentmark import SharedKey, StepRecord
from agentmark.log.read import follow
from agentmark.log.read.follow import GrowingLog, Lines, Note

KEY = SharedKey(bytes(range(32)))
RECORDS = marked_log(KEY, steps=6)
LINES = [record.to_json().encode() + b"\n" for record in RECORDS]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[GrowingLog]:
    with closing(GrowingLog(tmp_path / "log.jsonl")) as growing:
        yield growing


def polled(log: GrowingLog) -> tuple[list[StepRecord], list[str]]:
    items = list(log.poll())
    records = [item for item in items if isinstance(item, StepRecord)]
    return records, [item.sentence for item in items if isinstance(item, Note)]


def test_each_record_comes_once_and_a_torn_last_line_waits_for_its_end(log: GrowingLog) -> None:
    path = log.path
    assert polled(log) == ([], [])
    path.write_bytes(LINES[0] + LINES[1][:40])
    assert polled(log) == (RECORDS[:1], [])
    assert log.is_within_a_line
    with path.open("ab") as file:
        file.write(LINES[1][40:-1])
        file.flush()
        assert polled(log) == ([], [])
        file.write(b"\n" + LINES[2])
    assert polled(log) == (RECORDS[1:3], [])
    assert polled(log) == ([], [])
    assert not log.is_within_a_line


def test_every_way_to_cut_a_line_in_two_gives_the_same_records() -> None:
    data = b"".join(LINES[:2])
    for cut in range(0, len(data), 7):
        lines = Lines("log")
        assert [*lines.feed(data[:cut]), *lines.feed(data[cut:]), *lines.end()] == RECORDS[:2]


def test_a_replaced_file_is_read_to_its_end_and_the_new_one_from_its_beginning(log: GrowingLog, tmp_path: Path) -> None:
    path = log.path
    path.write_bytes(LINES[0])
    assert polled(log)[0] == RECORDS[:1]
    with path.open("ab") as old:
        path.rename(tmp_path / "log.1.jsonl")
        assert polled(log) == ([], [])
        old.write(LINES[1] + LINES[2][:-1])
        old.flush()
        path.write_bytes(LINES[3])
        records, notes = polled(log)
    assert records == RECORDS[1:4]
    assert len(notes) == 1
    assert "replaced by another file" in notes[0]


def test_a_shortened_file_is_read_from_its_beginning_and_said(log: GrowingLog) -> None:
    path = log.path
    path.write_bytes(LINES[0] + LINES[1] + LINES[2][:30])
    polled(log)
    # Cut in place, as `copytruncate` does.
    os.truncate(path, 0)
    with path.open("ab") as file:
        file.write(LINES[3])
    records, notes = polled(log)
    assert records == RECORDS[3:4]
    assert "became shorter" in notes[0]


def test_lines_that_are_no_records_are_said_and_stop_nothing(log: GrowingLog) -> None:
    torn = LINES[1][:60]
    log.path.write_bytes(LINES[0] + b"\x00\xffnothing\n" + torn + b"\n\n" + b'{"agentmark":2}\n' + LINES[2])
    records, notes = polled(log)
    assert records == [RECORDS[0], RECORDS[2]]
    assert len(notes) == 3
    assert "log.jsonl:3: is cut short" in notes


def test_a_line_without_end_is_not_held(monkeypatch) -> None:
    monkeypatch.setattr(follow, "MAX_LINE", 1000)
    lines = Lines("log")
    for _ in range(50):
        assert not list(lines.feed(b"x" * 100))
        assert len(lines._rest) <= 1100
    items = [*lines.feed(b"\n" + LINES[0])]
    assert items[1] == RECORDS[0]
    assert isinstance(items[0], Note)
    assert "longer than" in items[0].sentence


def test_what_stands_without_a_line_feed_at_the_very_end_is_a_record() -> None:
    lines = Lines("log")
    assert not list(lines.feed(LINES[0][:-1]))
    assert list(lines.end()) == RECORDS[:1]
    assert list(lines.end()) == []
