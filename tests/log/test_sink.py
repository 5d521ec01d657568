"""What all sinks have in common: closing, threads, processes, forks."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from log_run import KEY, the_run
from sink_helpers import read_folder, write_all
from support import TICKET_WEIGHTS, marked_log

from agentmark import Embedder, LogWriter, SettingError, open_log
from agentmark.chain.writer import ChainWriter
from agentmark.log.read.files import log_files
from agentmark.log.rotating import RotatingLog
from agentmark.log.sqlite import SqliteLog


@pytest.mark.parametrize(
    "make",
    [LogWriter, lambda p: LogWriter(p, chain=ChainWriter()), lambda p: RotatingLog(p, max_bytes=5000), SqliteLog],
    ids=["plain", "chained", "rotating", "sqlite"],
)
def test_a_closed_log_touches_nobody_elses_file(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    """The numbers of closed descriptors are used again: a late write or a second close would meet another file."""
    log = make(tmp_path / "run.log")
    log.write(the_run()[0])
    log.close()
    others = [os.open(tmp_path / f"other-{i}", os.O_RDWR | os.O_CREAT) for i in range(4)]
    with pytest.raises(SettingError, match="is closed"):
        log.write(the_run()[1])
    log.close()
    assert [os.fstat(other).st_size for other in others] == [0] * 4
    for other in others:
        os.close(other)
    assert next(iter(open_log(tmp_path / "run.log"))).context == the_run()[0].context


WRITERS = """
import sys
from agentmark import Embedder, SharedKey
from agentmark.log.rotating import RotatingLog
from agentmark.log.sqlite import SqliteLog
kind, path = sys.argv[1:]
log = SqliteLog(path) if kind == "sqlite" else RotatingLog(path, max_bytes=20_000, compress=kind == "packed")
session = Embedder(SharedKey(bytes(range(100, 132))), 5, payload_len=8).session()
with log:
    for i in range(250):
        log.write(session.choose({"a" * 200: 1, "b": 2}).record)
"""


@pytest.mark.parametrize("kind", ["plain", "packed", "sqlite"])
def test_two_processes_write_and_nothing_is_lost(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run.log"
    running = [subprocess.Popen([sys.executable, "-c", WRITERS, kind, str(path)]) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    records = read_folder(tmp_path)
    assert len(records) == 500
    by_session: dict[str, list[int]] = {}
    for record in records:
        by_session.setdefault(record.session, []).append(record.step_index)
    assert list(by_session.values()) == [list(range(250))] * 2, "each writer's records, in its order"
    if kind != "sqlite":
        assert len(log_files([tmp_path])) > 5


@pytest.mark.parametrize("make", [lambda p: RotatingLog(p, max_bytes=5000), SqliteLog], ids=["rotating", "sqlite"])
def test_threads_share_a_sink(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    with make(tmp_path / "run.log") as log:
        sessions = [marked_log(KEY, steps=40, seed=seed) for seed in range(4)]
        threads = [threading.Thread(target=write_all, args=(log, records)) for records in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(r.context for r in read_folder(tmp_path)) == sorted(r.context for rs in sessions for r in rs)


def test_a_fork_writes_beside_its_parent(tmp_path: Path) -> None:
    script = """
import os, sys
from agentmark import Embedder, SharedKey
from agentmark.errors import SettingError
from agentmark.log.rotating import RotatingLog
from agentmark.log.sqlite import SqliteLog
marker = Embedder(SharedKey(bytes(range(100, 132))), 5, payload_len=8)
database = SqliteLog(sys.argv[1] + "/b.db")
logs = [RotatingLog(sys.argv[1] + "/a.jsonl", max_bytes=5000), database]
child = os.fork()
session = marker.session()
if child == 0:
    try:
        database.write(marker.session().choose({"a": 1, "b": 2}).record)
    except SettingError as error:
        assert "each process opens its own" in str(error)
    else:
        os._exit(1)
    database.close()
    logs[1] = SqliteLog(sys.argv[1] + "/b.db")
for _ in range(100):
    record = session.choose({"a": 1, "b": 2}).record
    for log in logs:
        log.write(record)
if child:
    assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(open_log(tmp_path / "b.db"))) == 200
    (tmp_path / "b.db").unlink()
    assert len(read_folder(tmp_path)) == 200


def test_a_decider_writes_to_any_sink(tmp_path: Path) -> None:
    from agentmark.decide.decider import Decider

    session = Embedder(KEY, 5, payload_len=8).session("s")
    with SqliteLog(tmp_path / "run.db") as log:
        decider = Decider(session, elicitor=None, log=log)  # type: ignore[arg-type]
        decision = decider.decide_from(TICKET_WEIGHTS)
    assert list(open_log(tmp_path / "run.db")) == [decision.record]
