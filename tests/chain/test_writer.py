"""Chained writing: crashes, several writers, full disks and forged lines."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from chained_logs import (
    KEY,
    PAYLOAD,
    SIGNER,
    STRANGER,
    TIME,
    Kind,
    append,
    check_file,
    checkpoints_of,
    count_of,
    crash,
    judge,
    kinds,
    read_mark,
    records_of,
    signer_file,
    write_lines,
)
from support import marked_log

from agentmark import LogWriter, SettingError, open_log
from agentmark.chain.checkpoint import Checkpoint, Statement
from agentmark.chain.writer import ChainWriter
from agentmark.keys.signing import SigningError, SigningKey, check_public_key
from agentmark.times import utc_now


def test_a_checkpoint_states_only_what_is_new() -> None:
    """Otherwise a log of many sessions would be mostly checkpoints."""
    records = marked_log(KEY, steps=10, sessions=5)
    checkpoints = checkpoints_of(write_lines(records, every=10))
    assert [len(checkpoint.sessions) for checkpoint in checkpoints] == [1] * 5
    assert [checkpoint.total for checkpoint in checkpoints] == [10, 20, 30, 40, 50]


def test_a_writer_that_opens_a_log_again_goes_on_with_its_chain(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=30, sessions=2)
    for i in range(0, 60, 11):
        append(path, records[i : i + 11], fsync=True)
    report = check_file(path)
    assert report.findings == ()
    assert report.record_count == 60
    assert read_mark(open_log(path)).payload == PAYLOAD
    # Written in one go, or opened six times: the same links.
    assert list(open_log(path)) == records_of(write_lines(records))


def test_a_log_may_be_chained_from_some_record_on(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20, sessions=2)
    with LogWriter(path) as log:
        for record in records[:30]:
            log.write(record)
    append(path, records[30:])
    report = check_file(path)
    assert kinds(report) == {Kind.UNCHAINED: 2}
    assert report.checked_count == 10


@pytest.mark.parametrize("torn", ["record", "checkpoint"])
def test_a_torn_line_costs_its_record_and_not_the_chain(tmp_path: Path, torn: str) -> None:
    """A crash in the middle of any line, at any byte; the next writer closes the line and goes on."""
    records = marked_log(KEY, steps=9)
    path = tmp_path / "log.jsonl"
    crash(path, records[:6], every=100)
    # What the signer has noted when it is stopped in the middle of its last line.
    notes = signer_file(path).read_bytes()
    append(path, [], every=100)
    *lines, last = path.read_bytes().splitlines(keepends=True)
    if torn == "record":
        lines, last = lines[:-1], lines[-1]
    before = b"".join(lines)

    def leave(cut: int) -> None:
        path.write_bytes(before + last[:cut])
        signer_file(path).write_bytes(notes)

    for cut in range(1, len(last), 7):
        leave(cut)
        append(path, records[6:])
        reader = open_log(path)
        assert len(list(reader)) == (9 if torn == "checkpoint" else 8), cut
        assert reader.summary.torn_lines == (len(lines) + 1,)
        assert reader.summary.bad_checkpoints == ()
        assert check_file(path).findings == (), cut
    # Only the line feed is lost: then the record, or the checkpoint, is there.
    leave(len(last) - 1)
    append(path, records[6:])
    reader = open_log(path)
    assert len(list(reader)) == 9
    assert reader.summary.torn_lines == ()
    assert check_file(path).findings == ()


def test_a_killed_writer_and_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    script = """
import os, sys
from agentmark import Embedder, LogWriter, SharedKey
from agentmark.chain.writer import ChainWriter
from agentmark.keys.signing import SigningKey
session = Embedder(SharedKey(bytes(range(100, 132))), 5, payload_len=8).session()
log = LogWriter(sys.argv[1], chain=ChainWriter(SigningKey(bytes(range(7, 39))), every=10))
for i in range(25):
    log.write(session.choose({"a": 1, "b": 2}).record)
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == -9
    report = check_file(path)
    assert report.intact
    assert count_of(report, Kind.UNCHECKED) == 5
    append(path, marked_log(KEY, steps=3))
    assert check_file(path).findings == ()


def test_several_processes_share_a_chained_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    script = """
import sys
from agentmark import Embedder, LogWriter, SharedKey
from agentmark.chain.writer import ChainWriter
from agentmark.keys.signing import SigningKey
embedder = Embedder(SharedKey(bytes(range(100, 132))), 5, payload_len=8)
mine, ours = embedder.session(), embedder.session("shared")
with LogWriter(sys.argv[1], chain=ChainWriter(SigningKey(bytes(range(7, 39))), every=9)) as log:
    for i in range(100):
        log.write((mine if i % 3 else ours).choose({"a": 1, "b": 2}).record)
"""
    running = [subprocess.Popen([sys.executable, "-c", script, str(path)]) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    report = check_file(path)
    assert report.findings == ()
    assert (report.record_count, report.session_count) == (300, 4)


def test_threads_share_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=40, sessions=4)
    with LogWriter(path, chain=ChainWriter(SIGNER, every=9)) as log:
        threads = [
            threading.Thread(target=lambda part: [log.write(record) for record in part], args=(records[i::4],))
            for i in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert check_file(path).findings == ()


def test_an_unchained_writer_beside_it_is_seen_and_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=10, sessions=2)
    with LogWriter(path, chain=ChainWriter(SIGNER)) as chained, LogWriter(path) as plain:
        for ours, theirs in zip(records[:10], records[10:], strict=True):
            chained.write(ours)
            plain.write(theirs)
    report = check_file(path)
    assert kinds(report) == {Kind.UNCHAINED: 1}
    assert report.checked_count == 10


def test_a_full_disk_leaves_the_chain_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chain knows what is in the log, not what should have been."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=4)
    real_write = os.write

    def full_disk(descriptor: int, data: bytes) -> int:
        if len(data) > 20:
            return real_write(descriptor, data[:300])
        raise OSError(28, "No space left on device")

    with LogWriter(path, chain=ChainWriter(SIGNER)) as log:
        log.write(records[0])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda d, data: full_disk(d, data[:20]))
            with pytest.raises(OSError, match="No space"):
                log.write(records[1])
        log.write(records[2])
        log.write(records[3])
    reader = open_log(path)
    assert [record.step_index for record in reader] == [0, 2, 3]
    assert check_file(path).findings == ()


def test_what_was_signed_and_cut_is_missed_for_ever(tmp_path: Path) -> None:
    """The writer goes on from what it signed, not from what it finds."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    append(path, records[:14])
    lines = path.read_text().splitlines(keepends=True)
    assert ["checkpoint" in line for line in lines] == [False] * 7 + [True] + [False] * 7 + [True]
    path.write_text("".join(lines[:11] + lines[15:]))
    append(path, records[14:])
    report = check_file(path)
    assert count_of(report, Kind.GAP) == 4
    assert any("between line 11 (step 9) and line 13 (step 14)" in finding.sentence for finding in report.findings)


def test_what_no_checkpoint_covers_can_be_cut_unseen(tmp_path: Path) -> None:
    """A limit of every chain: its end is only known to who was told."""
    lines = write_lines(marked_log(KEY, steps=30), every=20)
    assert judge(lines[:25]).intact
    assert count_of(judge(lines[:25]), Kind.UNCHECKED) == 4


def test_a_log_that_is_cut_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=10)
    with LogWriter(path, chain=ChainWriter(SIGNER)) as log:
        for record in records[:6]:
            log.write(record)
        os.truncate(path, len(b"".join(path.read_bytes().splitlines(keepends=True)[:4])) + 50)
        for record in records[6:]:
            log.write(record)
    reader = open_log(path)
    assert [record.step_index for record in reader] == [0, 1, 2, 3, 6, 7, 8, 9]
    assert reader.summary.torn_lines == (5,)
    assert count_of(check_file(path), Kind.GAP) == 2


def test_a_forged_checkpoint_does_not_mislead_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=10)
    append(path, records[:5], every=100)
    forged = Checkpoint.sign(
        STRANGER, {records[0].session: Statement(50, "ab" * 32)}, total=50, previous=None, time=TIME
    )
    with path.open("a") as file:
        file.write(replace(forged, public_key=SIGNER.public_key).to_json() + "\n" + forged.to_json() + "\n")
    append(path, records[5:], every=100)
    report = check_file(path)
    assert kinds(report) == {Kind.BAD_SIGNATURE: 1, Kind.FOREIGN_SIGNATURE: 1, Kind.CHECKPOINT_BREAK: 1}
    assert report.checked_count == 10


def test_one_chain_writer_serves_one_log(tmp_path: Path) -> None:
    chain = ChainWriter(SIGNER)
    with LogWriter(tmp_path / "a.jsonl", chain=chain) as log:
        log.write(marked_log(KEY, steps=1)[0])
    with pytest.raises(SettingError, match="serves a log already"):
        LogWriter(tmp_path / "b.jsonl", chain=chain)
    with pytest.raises(SettingError, match="every"):
        ChainWriter(SIGNER, every=0)


def test_a_checkpoint_can_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with LogWriter(path, chain=ChainWriter(SIGNER)) as log:
        log.write(marked_log(KEY, steps=1)[0])
        log.checkpoint()
        log.checkpoint()
        assert check_file(path).findings == ()
    reader = open_log(path)
    assert len(list(reader)) == len(reader.summary.checkpoints) == 1, "nothing new, no checkpoint"
    assert reader.summary.checkpoints[0].time.endswith("+00:00")
    assert len(utc_now()) == 25
    assert list(reader) == list(reader), "a reader may be read again"
    assert len(reader.summary.checkpoints) == 1
    with LogWriter(tmp_path / "plain.jsonl") as plain:
        plain.checkpoint()


def test_a_missing_package_is_said_and_linking_does_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=6)
    append(path, records[:3])
    lines = write_lines(records, signer=None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    for use in (SigningKey.generate, lambda: check_public_key(SIGNER.public_key), lambda: check_file(path)):
        with pytest.raises(SigningError, match=r"pip install '.\[signed\]'"):
            use()
    assert judge(lines, public_key=None).intact
    # A log with checkpoints is read, and linked on, without the package that would judge them.
    append(path, records[3:], signer=None)
    assert len(list(open_log(path))) == 6
    monkeypatch.undo()
    assert check_file(path).intact
