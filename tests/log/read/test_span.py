"""A range of a file of lines is read as that part of the file is."""

import gzip
from pathlib import Path

from support import marked_log

from agentmark import LogWriter, SharedKey
from agentmark.log.read.open import open_log

KEY = SharedKey(bytes(range(100, 132)))


def test_ranges_hold_the_records_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with LogWriter(path) as log:
        for record in marked_log(KEY, steps=20):
            log.write(record)
    content = path.read_bytes()
    middle = content.index(b"\n", len(content) // 2) + 1
    first, second = open_log(path, span=(0, middle)), open_log(path, span=(middle, len(content)))
    assert [*first, *second] == list(open_log(path))
    assert first.span_lines + second.span_lines == 20
    assert first.summary.record_count == first.span_lines


def test_a_range_is_never_unpacked(tmp_path: Path) -> None:
    """A line that begins as a packed file does is a bad line, wherever a range begins."""
    path = tmp_path / "log.jsonl"
    with LogWriter(path) as log:
        for record in marked_log(KEY, steps=2):
            log.write(record)
    lines = path.read_bytes()
    hostile = gzip.compress(b"x" * 1000).replace(b"\n", b"") + b"\n"
    path.write_bytes(lines + hostile + lines)
    log = open_log(path, span=(len(lines), len(lines + hostile + lines)), skip_bad=True)
    assert len(list(log)) == 2
    assert [error.where for error in log.summary.bad_lines] == [f"{path}:1"]
