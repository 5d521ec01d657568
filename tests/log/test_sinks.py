"""Sinks: rotated files, SQLite, OpenTelemetry; nothing is lost, split or altered on the way."""

import gzip
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from log_run import KEY, the_run
from support import TICKET_WEIGHTS, marked_log

from agentmark import Embedder, LogWriter, SettingError, StepRecord, open_log
from agentmark.chain.writer import ChainWriter
from agentmark.log.read.files import log_files
from agentmark.log.rotating import RotatingLog
from agentmark.log.sink import Sink
from agentmark.log.sqlite import SqliteLog
from agentmark.log.sync import Syncer


def write_all(sink: Sink, records: list[StepRecord]) -> None:
    for record in records:
        sink.write(record)


def read_folder(folder: Path) -> list[StepRecord]:
    return [record for path in log_files([folder]) for record in open_log(path)]


# fsync


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The descriptors that were forced onto the disk."""
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)
    return calls


@pytest.mark.parametrize(("fsync", "count"), [(False, 0), ("never", 0), (True, 5), ("always", 5)])
def test_fsync_never_or_always(tmp_path: Path, synced: list[int], fsync: Any, count: int) -> None:
    with LogWriter(tmp_path / "run.jsonl", fsync=fsync) as log:
        write_all(log, the_run()[:5])
    assert len(synced) == count


def test_fsync_at_intervals_of_records_of_time_and_at_the_end(tmp_path: Path, synced: list[int]) -> None:
    now = [0.0]
    syncer = Syncer("interval", every_s=10, every_records=3, clock=lambda: now[0])
    log = LogWriter(tmp_path / "run.jsonl", fsync=syncer)
    write_all(log, the_run()[:4])
    assert len(synced) == 1
    now[0] = 10
    log.write(the_run()[4])
    assert len(synced) == 2
    log.close()
    assert len(synced) == 2, "nothing was waiting"


def test_an_unknown_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="sometimes"):
        LogWriter(tmp_path / "run.jsonl", fsync="sometimes")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="not an interval"):
        Syncer("interval", every_records=0)


# Rotation


@pytest.mark.parametrize("compress", [False, True])
def test_rotated_files_hold_every_record_in_the_order_of_their_names(tmp_path: Path, compress: bool) -> None:
    records = the_run()
    with RotatingLog(tmp_path / "run.jsonl", max_bytes=4000, compress=compress) as log:
        write_all(log, records)
    names = [path.name for path in log_files([tmp_path])]
    assert len(names) > 5
    assert names[0] == ("run-000001.jsonl.gz" if compress else "run-000001.jsonl")
    assert names[-1] == "run.jsonl"
    assert all((tmp_path / name).stat().st_size <= 4000 for name in names)
    assert read_folder(tmp_path) == records


def test_a_file_rotates_by_age_even_across_restarts(tmp_path: Path) -> None:
    records, now = the_run(), [1000.0]
    for i in range(4):
        with RotatingLog(tmp_path / "run.jsonl", max_age_s=60, clock=lambda: now[0]) as log:
            log.write(records[i])
        now[0] += 30
    assert len(list(open_log(tmp_path / "run-000001.jsonl"))) == 2
    assert read_folder(tmp_path) == records[:4]


def test_only_the_newest_full_files_are_kept_and_numbers_go_on(tmp_path: Path) -> None:
    records = the_run()
    with RotatingLog(tmp_path / "run.jsonl", max_bytes=1, keep=2) as log:
        write_all(log, records[:6])
    assert [path.name for path in log_files([tmp_path])] == ["run-000004.jsonl", "run-000005.jsonl", "run.jsonl"]
    assert read_folder(tmp_path) == records[3:6]


def test_numbers_go_on_when_full_files_are_moved_away(tmp_path: Path) -> None:
    records, archive = the_run(), tmp_path / "archive"
    archive.mkdir()
    for part in (records[:4], records[4:8], records[8:12]):
        with RotatingLog(tmp_path / "run.jsonl", max_bytes=1) as log:
            write_all(log, part)
        for full in tmp_path.glob("run-*.jsonl"):
            assert not (archive / full.name).exists()
            full.rename(archive / full.name)
    assert read_folder(archive) == records[:11]
    (tmp_path / "run.jsonl.lock").write_text("1000.000000\n")
    with RotatingLog(tmp_path / "run.jsonl", max_bytes=1) as log:
        write_all(log, records[12:14])
    assert (tmp_path / "run-000002.jsonl").exists(), "an older note, without a number"


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


def test_a_line_that_a_crash_tore_is_closed_not_grown_onto(tmp_path: Path) -> None:
    records = the_run()
    path = tmp_path / "run.jsonl"
    path.write_bytes(records[0].to_json().encode() + b"\n" + records[1].to_json().encode()[:50])
    with RotatingLog(path, max_bytes=10_000) as log:
        log.write(records[2])
    source = open_log(path)
    assert list(source) == [records[0], records[2]]
    assert source.summary.torn_lines == (2,)


def test_packing_that_was_cut_short_leaves_the_plain_file(tmp_path: Path) -> None:
    (tmp_path / "run-000007.jsonl").write_text(the_run()[0].to_json() + "\n")
    (tmp_path / "run-000007.jsonl.gz.tmp").write_bytes(b"\x1f\x8b")
    with RotatingLog(tmp_path / "run.jsonl", max_bytes=1, keep=9) as log:
        write_all(log, the_run()[1:3])
    assert read_folder(tmp_path) == the_run()[:3]
    assert (tmp_path / "run-000008.jsonl").exists()


@pytest.mark.parametrize(
    ("settings", "named"),
    [({}, "max_bytes"), ({"max_bytes": 0}, "max_bytes"), ({"max_age_s": -1}, "max_age_s"),
     ({"max_bytes": 9, "keep": 0}, "keep"), ({"max_bytes": 9, "chain": ChainWriter()}, "chain")],
)  # fmt: skip
def test_settings_that_cannot_be_meant_are_refused(tmp_path: Path, settings: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingError) as caught:
        RotatingLog(tmp_path / "run.jsonl", **settings)
    assert caught.value.name == named


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


# SQLite


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


# OpenTelemetry


def a_provider() -> Any:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def test_a_decision_is_a_span_under_the_current_one() -> None:
    provider, exporter = a_provider()
    from agentmark.log.otel import OtelSink

    tracer = provider.get_tracer("agent")
    record = the_run()[3]
    sink = OtelSink(tracer, copies=["langsmith.metadata.agentmark.record"])
    with tracer.start_as_current_span("agent") as parent:
        sink.write(record)
    sink.close()
    span = exporter.get_finished_spans()[0]
    assert (span.name, span.parent.span_id) == ("decide", parent.get_span_context().span_id)
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "decide",
        "openinference.span.kind": "DECISION",
        "agentmark.record": record.to_json(),
        "agentmark.session": record.session,
        "agentmark.step": record.step_index,
        "agentmark.behavior": record.behavior,
        "agentmark.marked": True,
        "agentmark.enforced": False,
        "langsmith.metadata.agentmark.record": record.to_json(),
    }
    assert sink.dropped == 0


def test_a_span_limit_that_cuts_records_is_an_error_not_a_loss() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider

    from agentmark.log.otel import OtelSink

    limits = SpanLimits(max_span_attribute_length=100)
    sink = OtelSink(TracerProvider(span_limits=limits, shutdown_on_exit=False).get_tracer("agent"))
    with pytest.raises(SettingError, match="cut the record"):
        sink.write(the_run()[0])


def test_spans_that_are_not_sampled_are_counted() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    from agentmark.log.otel import OtelSink

    sink = OtelSink(TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False).get_tracer("agent"))
    sink.write(the_run()[0])
    assert sink.dropped == 1
    assert OtelSink().dropped == 0, "the global tracer serves if none is given"


def test_a_decider_writes_to_any_sink(tmp_path: Path) -> None:
    from agentmark.decide import Decider

    session = Embedder(KEY, 5, payload_len=8).session("s")
    with SqliteLog(tmp_path / "run.db") as log:
        decider = Decider(session, elicitor=None, log=log)  # type: ignore[arg-type]
        decision = decider.decide_from(TICKET_WEIGHTS)
    assert list(open_log(tmp_path / "run.db")) == [decision.record]


def test_gzip_of_a_rotated_file_is_plain_gzip(tmp_path: Path) -> None:
    with RotatingLog(tmp_path / "run.jsonl", max_bytes=1, compress=True) as log:
        write_all(log, the_run()[:2])
    assert gzip.decompress((tmp_path / "run-000001.jsonl.gz").read_bytes()).decode() == the_run()[0].to_json() + "\n"
