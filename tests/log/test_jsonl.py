"""JSON lines on the way out: crashes, full disks, several writers."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from one_record import KEY
from support import marked_log

from agentmark import LogWriter, open_log


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
