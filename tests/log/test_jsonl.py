"""JSON lines on the way out: crashes, full disks, several writers."""

import gzip
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from one_record import KEY
from support import marked_log

from agentmark import ChainWriter, LogWriter, StepRecord, open_log, verify_chain
from agentmark.log.sizes import MAX_LINE


def test_a_log_streams_back(tmp_path: Path) -> None:
    records = marked_log(KEY, steps=50)
    path = tmp_path / "log.jsonl"
    with LogWriter(path, fsync=True) as log:
        for record in records:
            log.write(record)
    assert list(open_log(path)) == records
    packed = tmp_path / "log.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(open_log(packed)) == records
    first = next(iter(open_log(path)))
    assert first == records[0]


def test_a_writer_goes_on_after_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=3)
    with LogWriter(path) as log:
        log.write(records[0])
    with path.open("ab") as file:
        file.write(records[1].to_json().encode()[:40])
    with LogWriter(path) as log:
        log.write(records[2])
    reader = open_log(path)
    assert list(reader) == [records[0], records[2]]
    assert reader.summary.torn_lines == (2,)


def test_a_killed_writer_loses_nothing_that_was_written(tmp_path: Path) -> None:
    """A real process, really killed: every record whose write returned is read back."""
    path = tmp_path / "log.jsonl"
    script = """
import os, sys
from agentmark import Embedder, LogWriter, SharedKey
session = Embedder(SharedKey(bytes(range(100, 132))), 5, payload_len=8).session()
log = LogWriter(sys.argv[1])
for i in range(25):
    log.write(session.choose({"a": 1, "b": 2}).record)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert done.returncode == -9
    assert [record.step_index for record in open_log(path)] == list(range(25))


def test_a_full_disk_costs_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails half way is closed by the next one that succeeds."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=3)
    real_write = os.write
    log = LogWriter(path)
    log.write(records[0])

    def full_disk(descriptor: int, data: bytes) -> int:
        if len(data) > 20:
            return real_write(descriptor, data[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", lambda d, data: full_disk(d, data[:25]))
    with pytest.raises(OSError, match="No space"):
        log.write(records[1])
    monkeypatch.undo()
    log.write(records[2])
    reader = open_log(path)
    assert list(reader) == [records[0], records[2]]
    assert reader.summary.torn_lines == (2,)


def test_several_processes_may_append_to_one_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    script = """
import sys
from agentmark import Embedder, LogWriter, SharedKey
session = Embedder(SharedKey(bytes(range(100, 132))), 5, payload_len=8).session()
with LogWriter(sys.argv[1]) as log:
    for i in range(300):
        log.write(session.choose({"a" * 400: 1, "b": 2}).record)
"""
    running = [subprocess.Popen([sys.executable, "-c", script, str(path)], env=os.environ) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    records = list(open_log(path))
    assert len(records) == 900
    assert len({record.session for record in records}) == 3


def test_a_chained_log_is_opened_again_without_holding_lines_that_nobody_wrote(tmp_path: Path) -> None:
    """Too long, or too many brackets, or blank: passed over, as anything is that is no line of ours."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=3)
    with LogWriter(path, chain=ChainWriter()) as log:
        log.write(records[0])
    with path.open("ab") as file:
        file.write(b"x" * (40 << 20) + b"\n" + b"[" + b"[]," * (2 << 20) + b"0]\n" + b"\n" * 100_000)
    tracemalloc.start()
    with LogWriter(path, chain=ChainWriter()) as log:
        for record in records[1:]:
            log.write(record)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The beginning of a line, what is read after it, and their parts: three times the longest that is read.
    assert most < 4 * MAX_LINE
    lines = [line for line in path.read_bytes().split(b"\n") if line.startswith(b'{"agentmark":')]
    kept = [StepRecord.from_json(line) for line in lines]
    assert [record.step_index for record in kept] == [record.step_index for record in records]
    assert verify_chain(kept).intact
