"""A bulk audit: the same answers as `verify`, however the work is divided, stopped, damaged and taken up again."""

import errno
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import EVEN, marked_log

from agentmark import Embedder, Identity, LogWriter, Registry, SharedKey, StepRecord
from agentmark.audit import bulk, shard_reading
from agentmark.audit.bulk import BulkAudit
from agentmark.audit.case import Case
from agentmark.audit.chunks import ChunkKind
from agentmark.audit.held import HeldAudit
from agentmark.audit.judged import AuditSummary, JudgedRow
from agentmark.audit.roll_case import RollCase
from agentmark.audit.shards import Shard, fingerprint
from agentmark.audit.spill import SpillWriteError, SpillWriter
from agentmark.audit.work_dir import WorkDirError
from agentmark.audit.workers import JobError, WorkerError
from agentmark.errors import SettingError
from agentmark.log.read.limits import LimitError
from agentmark.verify.correction import Correction, FalseDiscovery, Familywise
from agentmark.verify.keyring import Keyring
from agentmark.verify.roll import By
from agentmark.verify.verdict import Standing

KEY = SharedKey(bytes(range(100, 132)))
OTHER = SharedKey(bytes(range(7, 39)))
TENANTS = {"acme": 0x2265B1F5, "globex": 0x91B7584A, "initech": 0xD8F16ADF}
REGISTRY = Registry(32, [Identity(name, payload) for name, payload in TENANTS.items()])


def session(name: str, tenant: str, steps: int, *, key: SharedKey = KEY, scheme: str = "F") -> list[StepRecord]:
    run = Embedder(key, TENANTS[tenant], payload_len=32, scheme=scheme).session(name)
    return [run.choose(EVEN).record for _ in range(steps)]


def write(path: Path, records: Sequence[StepRecord]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with LogWriter(path) as log:
        for record in records:
            log.write(record)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sessions of three tenants, mixed over files: whole, short, spliced, unmarked, of another key, in copies."""
    folder = tmp_path_factory.mktemp("audit") / "logs"
    rng = random.Random(5)
    pieces: list[list[StepRecord]] = []
    for i in range(24):
        tenant = list(TENANTS)[i % 3]
        steps = session(f"session {i:02}", tenant, 40 if i % 4 else 9, scheme="FR"[i % 2])
        if i == 5:
            steps[10:16] = session("session 05", "globex", 16)[10:16]
        if i == 6:
            steps = [replace(step, marked=False, reason="test") for step in steps]
        if i == 7:
            steps += steps[:12]
        pieces += [steps[:20], steps[20:]]
    pieces += [session("stranger", "acme", 40, key=OTHER), session("partly", "acme", 12)]
    pieces.append([step.with_partial_weights({}) for step in session("no lists", "globex", 30)])
    rng.shuffle(pieces)
    for i in range(6):
        write(folder / f"{i}.jsonl", [step for piece in pieces[i::6] for step in piece])
    return folder


def rows_of(audit: BulkAudit) -> tuple[AuditSummary, list[str]]:
    rows: list[str] = []
    summary = audit.run(on_row=lambda row: rows.append(row.to_json()))
    return summary, rows


def audit_of(logs: Path, **settings: Any) -> BulkAudit:
    settings = {"keys": [KEY], "registry": REGISTRY, "workers": 1} | settings
    return BulkAudit(paths=[str(logs)], **settings)


@pytest.mark.parametrize(
    ("by", "registry", "correction"),
    [
        (By.SESSION, REGISTRY, Familywise(1e-6)),
        (By.SESSION, None, FalseDiscovery(0.01)),
        (By.FILE, REGISTRY, FalseDiscovery(0.01)),
    ],
)
def test_it_says_what_verify_says(logs: Path, by: By, registry: Registry | None, correction: Correction) -> None:
    summary, rows = rows_of(audit_of(logs, by=by, registry=registry, correction=correction))
    case = Case(logs=[logs], keys=[KEY], registry=registry)
    roll = RollCase(case=case, by=by, correction=correction).answer().roll
    assert rows == [JudgedRow.of(row, roll.pools).to_json() for row in roll.rows]
    assert summary.standings == roll.standings
    assert summary.questions == roll.questions
    assert [(t.payload, t.rows, t.worst_rate) for t in summary.totals] == [
        (t.payload, len(t.rows), t.worst_rate) for t in roll.totals
    ]
    assert by is By.FILE or summary.standings[Standing.ATTRIBUTED] > 10


def test_the_division_of_the_work_makes_no_difference(logs: Path) -> None:
    _, expected = rows_of(audit_of(logs, engine="plain"))
    for settings in (
        {"engine": "fast"},
        {"engine": "fast", "shard_bytes": 5000, "part_bytes": 3000},
        {"engine": "plain", "shard_bytes": 5000, "part_bytes": 20_000},
        {"engine": "fast", "shard_bytes": 20_000, "part_bytes": 10_000, "workers": 2},
    ):
        assert rows_of(audit_of(logs, **settings))[1] == expected, settings


@pytest.mark.parametrize("engine", ["plain", "fast"])
@pytest.mark.parametrize("by", list(By))
def test_what_fits_in_memory_is_judged_there_and_says_the_same(logs: Path, tmp_path: Path, by: By, engine: str) -> None:
    on_disk = rows_of(audit_of(logs, by=by, engine=engine, work_dir=tmp_path / "work"))
    assert rows_of(audit_of(logs, by=by, engine=engine)) == on_disk


def test_in_memory_nothing_is_written_but_the_results(logs: Path, tmp_path: Path) -> None:
    watched: list[str] = []
    audit = audit_of(logs, out=tmp_path / "out.jsonl", workers=2)
    audit.run(on_row=lambda _: watched.extend([path.name for path in tmp_path.iterdir()]))
    assert watched
    assert not [name for name in watched if "work" in name]


@pytest.mark.parametrize("most", [1, 20_000])
def test_what_turns_out_too_much_to_hold_goes_to_parts(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    expected = rows_of(audit_of(logs))
    begun: list[int] = []

    class Held(HeldAudit):
        def __init__(self, kind: ChunkKind, keys: Keyring) -> None:
            begun.append(most)
            super().__init__(kind, keys, most=most)

    monkeypatch.setattr(bulk, "HeldAudit", Held)
    assert rows_of(audit_of(logs, out=tmp_path / "out.jsonl")) == expected
    assert begun == [most]


def test_a_claim_asks_of_each(logs: Path) -> None:
    summary, _ = rows_of(audit_of(logs, claim="globex"))
    assert [total.identity for total in summary.totals] == ["globex"]
    assert summary.claim_taken_as == "a name in the registry"


def test_by_tenant_and_all_at_once(logs: Path) -> None:
    tenants, rows = rows_of(audit_of(logs, by=By.TENANT))
    assert [json.loads(row)[0]["group"] for row in rows] == sorted([KEY.id, OTHER.id])
    assert tenants.standings[Standing.NOTHING_USABLE] == 1
    everything, (row,) = rows_of(audit_of(logs, by=By.ALL))
    assert json.loads(row)[0]["records"] == everything.read.records
    assert "1 log" in everything.sentence


# Stopped, and taken up again -----------------------------------------------------------------------------------------


RUN = """
import sys
from pathlib import Path
from agentmark import Registry, SharedKey
from agentmark.audit.bulk import BulkAudit

if __name__ == "__main__":
    logs, out = sys.argv[1:3]
    key = SharedKey(bytes(range(100, 132)))
    audit = BulkAudit(paths=[logs], keys=[key], registry=Registry.load("registry.jsonl"), out=Path(out), resume=True,
                      workers=2, shard_bytes=3000, part_bytes=3000)
    print(audit.run().read.resumed)
"""


def start(folder: Path, logs: Path) -> "subprocess.Popen[str]":
    script = folder / "run.py"
    script.write_text(RUN)
    # What Python says of semaphores that nobody closed is no news after a kill.
    words = [sys.executable, "-W", "ignore", str(script), str(logs), "out.jsonl"]
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def test_killed_at_any_moment_and_resumed_it_comes_to_the_same(logs: Path, tmp_path: Path) -> None:
    REGISTRY.save(tmp_path / "registry.jsonl")
    expected = tmp_path / "expected.jsonl"
    audit_of(logs, out=expected).run()
    manifest = tmp_path / "out.jsonl.work" / "manifest.jsonl"
    rng = random.Random(3)
    killed = begun = 0
    for _ in range(6):
        process = start(tmp_path, logs)
        # Most of the time goes into starting: count from where the work begins.
        lines = manifest.read_bytes().count(b"\n") if manifest.exists() else 0
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if manifest.exists() and manifest.read_bytes().count(b"\n") > lines:
                break
            time.sleep(0.005)
        time.sleep(rng.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        begun += manifest.exists() and bool(manifest.read_bytes())
        if (tmp_path / "out.jsonl").exists():
            break
    assert killed
    assert begun
    process = start(tmp_path, logs)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert int(said) > 0 or not manifest.exists()
    assert (tmp_path / "out.jsonl").read_bytes() == expected.read_bytes()
    assert not (tmp_path / "out.jsonl.work").exists()


class StopError(Exception):
    pass


class Stopping:
    """Progress that stops the audit after so many jobs."""

    def __init__(self, after: int) -> None:
        self._left = after

    def say(self, message: str) -> None:
        pass

    def count(self, done: int, total: int | None, what: str) -> None:
        pass

    def bar(self, done: int, total: int, what: str, *, steps: int | None = None) -> None:
        self._left -= 1
        if self._left == 0:
            raise StopError


def stopped(audit: BulkAudit, after: int = 3) -> None:
    with pytest.raises(StopError):
        audit.run(Stopping(after))


def test_a_file_that_changed_meanwhile_is_read_again_and_no_other(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for i in range(6):
        write(logs / f"{i}.jsonl", session(f"session {i}", "acme", 40))
    out = tmp_path / "out.jsonl"
    first = audit_of(logs, out=out, shard_bytes=100_000 // 10)
    stopped(first, 8)
    write(logs / "0.jsonl", session("one more", "globex", 40))
    (logs / "1.jsonl").unlink()
    write(logs / "9.jsonl", session("new file", "initech", 40))
    summary = replace(first, resume=True).run()
    assert 0 < summary.read.resumed < 5
    fresh = tmp_path / "fresh.jsonl"
    replace(first, out=fresh).run()
    assert out.read_bytes() == fresh.read_bytes()


class StoppingAtThe(Stopping):
    """Progress that stops the audit when all of this is done."""

    def __init__(self, end_of: str) -> None:
        self._what = end_of

    def bar(self, done: int, total: int, what: str, *, steps: int | None = None) -> None:
        if what == self._what and done == total:
            raise StopError


@pytest.mark.parametrize("end_of", ["parts read under the keys", "groups judged"])
def test_what_was_judged_of_a_file_that_changed_is_judged_anew(tmp_path: Path, end_of: str) -> None:
    """Size and time are those of before; its beginning shows that it is another."""
    logs = tmp_path / "logs"
    for i in range(4):
        write(logs / f"{i}.jsonl", session(f"session {i}", "acme", 40))
    audit = audit_of(logs, out=tmp_path / "out.jsonl", shard_bytes=10_000)
    with pytest.raises(StopError):
        audit.run(StoppingAtThe(end_of))
    changed = logs / "3.jsonl"
    before = changed.stat()
    write(tmp_path / "other.jsonl", session("session 3", "globex", 40))
    other = (tmp_path / "other.jsonl").read_bytes()
    changed.write_bytes(other[: before.st_size].ljust(before.st_size, b"\n"))
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    summary = replace(audit, resume=True).run()
    assert summary.read.resumed == 3
    assert {total.identity: total.rows for total in summary.totals} == {"acme": 3, "globex": 1}


def test_a_file_that_could_not_be_opened_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "logs"
    for i in range(3):
        write(logs / f"{i}.jsonl", session(f"session {i}", "acme", 40))

    def refused(shard: Shard) -> str:
        if shard.path.endswith("1.jsonl"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return fingerprint(shard)

    monkeypatch.setattr(shard_reading, "fingerprint", refused)
    audit = audit_of(logs, out=tmp_path / "out.jsonl", shard_bytes=10_000)
    with pytest.raises(StopError):
        audit.run(StoppingAtThe("groups judged"))
    assert "1.jsonl" in replace(audit, resume=True, keep_work_dir=True).run().read.bad_shards[0].name
    monkeypatch.undo()
    summary = replace(audit, resume=True).run()
    assert not summary.read.bad_shards
    assert summary.read.resumed == 2
    assert summary.standings[Standing.ATTRIBUTED] == 3


@pytest.mark.parametrize("line", ["3", "{}", '{"file": "x"}', '{"file": "x", "size": 1, "shards": [{}]}'])
def test_a_line_of_the_manifest_that_says_nothing_is_of_nothing(tmp_path: Path, line: str) -> None:
    write(tmp_path / "log.jsonl", session("one", "acme", 40))
    audit = audit_of(tmp_path / "log.jsonl", work_dir=tmp_path / "work", keep_work_dir=True)
    audit.run()
    with (tmp_path / "work" / "manifest.jsonl").open("a") as file:
        file.write(f"{line}\n")
    assert replace(audit, resume=True).run().read.resumed == 1


def test_another_question_is_refused_in_words(logs: Path, tmp_path: Path) -> None:
    audit = audit_of(logs, out=tmp_path / "out.csv", shard_bytes=5000)
    stopped(audit)
    with pytest.raises(WorkDirError, match="not finished: --resume goes on"):
        audit.run()
    for other, said in (
        ({"keys": [OTHER]}, "the keys are others"),
        ({"by": By.FILE}, 'by was "session" and is "file"'),
        ({"registry": None}, "registry are others"),
        ({"correction": FalseDiscovery(0.1)}, "correction was"),
    ):
        with pytest.raises(WorkDirError, match=said):
            replace(audit, resume=True, **other).run()  # type: ignore[arg-type]
    assert replace(audit, resume=True, workers=2).run().attributed


def test_the_working_folder_holds_no_key_and_is_the_owners(logs: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    audit_of(logs, work_dir=work, keep_work_dir=True, shard_bytes=5000).run()
    secret = bytes(range(100, 132))
    held = [path for path in work.rglob("*") if path.is_file()]
    assert held
    for path in held:
        content = path.read_bytes()
        assert secret not in content
        assert secret.hex().encode() not in content
    assert work.stat().st_mode & 0o777 == 0o700


def test_a_worker_that_dies_is_told_and_the_run_goes_on_later(logs: Path, tmp_path: Path) -> None:
    audit = audit_of(logs, out=tmp_path / "out.jsonl", workers=2, shard_bytes=3000)

    class Killing(Stopping):
        def bar(self, done: int, total: int, what: str, *, steps: int | None = None) -> None:
            from multiprocessing import active_children

            for child in active_children()[:1]:
                os.kill(child.pid or 0, signal.SIGKILL)

    with pytest.raises(WorkerError, match="--resume goes on"):
        audit.run(Killing(1))
    assert replace(audit, resume=True).run().attributed


def test_a_full_disk_is_no_fault_of_the_file_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that cannot be written end the run; the file that was being read is not skipped for it."""
    logs = tmp_path / "logs"
    for i in range(3):
        write(logs / f"{i}.jsonl", session(f"session {i}", "acme", 40))
    written = SpillWriter.write

    def full(self: SpillWriter, part: int, content: bytes) -> None:
        if self.mark()[0] > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written(self, part, content)

    audit = audit_of(logs, out=tmp_path / "out.jsonl", shard_bytes=100_000, part_bytes=20_000)
    with monkeypatch.context() as patch:
        patch.setattr(shard_reading, "BUFFER_BYTES", 1)
        patch.setattr(SpillWriter, "write", full)
        with pytest.raises(SpillWriteError, match=r"No space left on device.*--resume"):
            audit.run()
    summary = replace(audit, resume=True).run()
    assert not summary.read.bad_shards
    assert summary.read.records == 120


# Damage --------------------------------------------------------------------------------------------------------------


def test_damage_is_named_and_skipped_and_the_rest_finished(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    good = session("good", "acme", 60)
    write(logs / "good.jsonl", good)
    (logs / "corrupt.jsonl").write_bytes(b"\x00\x01nothing that is a log" * 10)
    lines = (logs / "good.jsonl").read_bytes()
    packed = gzip.compress(lines.replace(b'"good"', b'"torn"'))
    (logs / "cut.jsonl.gz").write_bytes(packed[: len(packed) * 2 // 3])
    (logs / "bomb.jsonl.gz").write_bytes(gzip.compress(lines[:600] + b" " * (40 << 20)))
    broken = lines.split(b"\n")
    broken[3] = broken[3].replace(b'"marked":true', b'"marked":7').replace(b'"marked": true', b'"marked": 7')
    (logs / "one-bad.jsonl").write_bytes(b"\n".join(broken).replace(b'"good"', b'"rest"'))
    parquet(logs / "others.parquet")
    (logs / "secret.jsonl").write_bytes(lines)
    (logs / "secret.jsonl").chmod(0)
    summary, rows = rows_of(audit_of(logs, by=By.FILE, shard_bytes=8000))
    bad = {Path(shard.name).name: shard.fault for shard in summary.read.bad_shards}
    assert "unpack" in bad["bomb.jsonl.gz"]
    assert "not recognised" in bad["corrupt.jsonl"]
    assert "none of 1 entries holds" in bad["others.parquet"]
    notes = "\n".join(summary.read.notes)
    assert "cut.jsonl.gz" in notes
    assert "one-bad.jsonl:4" in notes, "lines count from the beginning of the file"
    groups = {Path(json.loads(row)[0]["group"]).name: json.loads(row)[0] for row in rows}
    assert groups["good.jsonl"]["standing"] == "attributed"
    assert groups["one-bad.jsonl"]["records"] == 59
    assert groups["cut.jsonl.gz"]["records"] > 10
    assert "bomb.jsonl.gz" not in groups, "no part of a file is taken for the whole"
    assert summary.read.bad_records >= 2
    with pytest.raises(LimitError, match="bomb"):
        audit_of(logs, strict=True).run()
    with pytest.raises(JobError, match=r"bomb|corrupt"):
        audit_of(logs, strict=True, workers=2, shard_bytes=3000).run()


def parquet(path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"colour": ["red"], "size": [3]}), path)


def test_everything_in_a_folder_that_is_no_file_is_named_and_counted(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write(logs / "good.jsonl", session("good", "acme", 40))
    os.mkfifo(logs / "pipe.jsonl")
    (logs / "gone.jsonl").symlink_to("nowhere")
    (logs / "loop.jsonl").symlink_to("loop.jsonl")
    (logs / "zeros.jsonl").symlink_to("/dev/zero")
    summary = BulkAudit(
        paths=[str(logs), f"{logs}/*.jsonl"], keys=[KEY], registry=REGISTRY, workers=1, out=tmp_path / "out.csv"
    ).run()
    bad = sorted(Path(shard.name).name for shard in summary.read.bad_shards)
    assert bad == ["gone.jsonl", "loop.jsonl", "pipe.jsonl", "zeros.jsonl"]
    assert summary.read.shards == 5
    assert summary.read.same_files == 1


def test_lines_of_ranges_are_counted_from_the_beginning(tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", session("long", "acme", 60))
    lines = (tmp_path / "log.jsonl").read_bytes().split(b"\n")
    lines[50] = b'{"agentmark": 1, "scheme": "none of ours"}'
    (tmp_path / "log.jsonl").write_bytes(b"\n".join(lines))
    summary = audit_of(tmp_path / "log.jsonl", shard_bytes=4000).run()
    assert len(summary.read.notes) == 1
    assert "log.jsonl:51:" in summary.read.notes[0]


def test_a_file_that_goes_away_or_grows_is_named(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for i in range(4):
        write(logs / f"{i}.jsonl", session(f"session {i}", "acme", 40))

    class Meddling(Stopping):
        def bar(self, done: int, total: int, what: str, *, steps: int | None = None) -> None:
            (logs / "2.jsonl").unlink(missing_ok=True)
            with (logs / "3.jsonl").open("a") as file:
                file.write('{"agentmark": 1, "sch')

    summary, rows = rows_of(audit_of(logs, shard_bytes=100))
    assert len(rows) == 4
    audit = audit_of(logs, shard_bytes=100_000 // 8)
    summary = audit.run(Meddling(1))
    assert [Path(bad.name).name for bad in summary.read.bad_shards] == ["2.jsonl"]
    assert any("3.jsonl" in note and ("changed" in note or "cut short" in note) for note in summary.read.notes)
    assert summary.standings[Standing.ATTRIBUTED] == 3


def test_results_and_work_inside_the_folder_are_no_input(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write(logs / "a.jsonl", session("a", "acme", 40))
    audit = audit_of(logs, out=logs / "results.jsonl", work_dir=logs / "work", keep_work_dir=True)
    for _ in range(2):
        summary = replace(audit, resume=True).run()
        assert summary.read.shards == 1
        assert not summary.read.bad_shards


def test_a_session_id_that_two_keys_share_is_told_apart_by_file(tmp_path: Path) -> None:
    """By session, steps of one number are copies that disagree, and count for neither."""
    write(tmp_path / "a.jsonl", session("shared", "acme", 40))
    write(tmp_path / "b.jsonl", session("shared", "globex", 40, key=OTHER))
    summary, (row,) = rows_of(audit_of(tmp_path, keys=[KEY, OTHER]))
    content = json.loads(row)[0]
    assert content["conflicting"] == 80
    assert content["file_count"] == 2
    assert summary.nothing_usable
    by_file = audit_of(tmp_path, keys=[KEY, OTHER], by=By.FILE).run()
    assert [total.identity for total in by_file.totals] == ["acme", "globex"]


def test_what_cannot_be_meant_is_refused_at_once(logs: Path, tmp_path: Path) -> None:
    for settings, said in (
        ({"workers": 0}, "number of processes"),
        ({"resume": True}, "from where to go on"),
        ({"out": tmp_path / "results.txt"}, "ends in none of"),
        ({"out": tmp_path / "none" / "results.csv"}, "no such folder"),
    ):
        with pytest.raises(SettingError, match=said):
            audit_of(logs, **settings)


def test_nothing_is_named_that_is_not_accepted(tmp_path: Path) -> None:
    """Too short to be named: no row, no summary and no file has the name or the payload."""
    write(tmp_path / "logs" / "short.jsonl", session("short", "acme", 8))
    for suffix in (".csv", ".jsonl", ".parquet"):
        out = tmp_path / f"results{suffix}"
        summary, rows = rows_of(audit_of(tmp_path / "logs", out=out))
        assert not summary.attributed
        said = json.dumps(summary.as_dict()) + "".join(rows) + out.read_bytes().decode("latin-1")
        assert "acme" not in said
        assert f"{TENANTS['acme']:08x}" not in said


def test_unmarked_logs_of_others_are_not_attributed(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", marked_log(OTHER, steps=40))
    summary = audit_of(tmp_path).run()
    assert summary.nothing_usable
    assert summary.read.key_ids == (OTHER.id,)
