"""A signer vouches for what was written with its key, whoever else can write to the log and to the folder it is in."""

import fcntl
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chained_logs import (
    KEY,
    SIGNER,
    STRANGER,
    TIME,
    Kind,
    append,
    append_raw,
    check_file,
    checkpoints_of,
    count_of,
    crash,
    forged_session,
    forged_tail,
    kinds,
    signer_file,
    write_lines,
)
from support import marked_log

from agentmark import LogWriter, RecordError, SettingError, StepRecord, read_log
from agentmark.chain.check import verify_chain
from agentmark.chain.links import link_digest
from agentmark.chain.writer import ChainWriter
from agentmark.log import append as append_module
from agentmark.log.append import LockHeldError
from agentmark.log.sizes import MAX_LINE


def new_writer(path: Path, *, every: int = 7) -> LogWriter:
    return LogWriter(path, chain=ChainWriter(SIGNER, every=every, clock=lambda: TIME))


def is_stated(path: Path, records: Iterable[StepRecord]) -> bool:
    """Whether a checkpoint of the log states the link of any of these records."""
    checkpoints = read_log(path).summary.checkpoints
    heads = {statement.head for checkpoint in checkpoints for statement in checkpoint.sessions.values()}
    return not heads.isdisjoint({link_digest(record) for record in records})


# Appending to a log that is being written.


def test_a_linked_record_that_another_appends_to_a_live_log_is_not_signed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    with new_writer(path) as log:
        for record in records[:10]:
            log.write(record)
        forged = forged_tail(path, 3)
        append_raw(path, forged)
        for record in records[10:]:
            log.write(record)
    report = check_file(path)
    assert not report.intact
    assert Kind.INSERTED in kinds(report)
    assert report.checked_count == 20
    assert report.record_count == 23
    assert not is_stated(path, forged)
    assert "holds 3 linked records that nobody wrote with this signing key" in caplog.text
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_session_that_another_appends_to_a_live_log_is_not_signed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    with new_writer(path) as log:
        for record in records[:10]:
            log.write(record)
        append_raw(path, forged_session(4))
        for record in records[10:]:
            log.write(record)
    report = check_file(path)
    assert kinds(report) == {Kind.UNVOUCHED: 1}
    assert count_of(report, Kind.UNVOUCHED) == 4
    assert (report.checked_count, report.record_count) == (20, 24)
    assert all("forged" not in checkpoint.sessions for checkpoint in read_log(path).summary.checkpoints)
    assert report.sentence.startswith("Not intact")


@pytest.mark.parametrize("when", ["before it is closed", "while it is closed"])
def test_what_another_appends_behind_the_last_record_shows_after_the_next_checkpoint(tmp_path: Path, when: str) -> None:
    """With nothing new to state, the signer signs all the same: what stands before that is then known for foreign."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=10)
    with new_writer(path) as log:
        for record in records:
            log.write(record)
        if when == "before it is closed":
            log.checkpoint()
            append_raw(path, forged_tail(path))
    if when == "while it is closed":
        append_raw(path, forged_tail(path))
        # Nobody but the signer can tell before it has looked: the records are unchecked, and said to be.
        report = check_file(path)
        assert kinds(report) == {Kind.UNCHECKED: 1}
        assert "of which 10 are vouched for" in report.sentence
        append(path, [])
    report = check_file(path)
    assert kinds(report) == {Kind.UNVOUCHED: 1}
    assert (report.checked_count, report.record_count) == (10, 13)
    count = len(read_log(path).summary.checkpoints)
    append(path, [])
    assert len(read_log(path).summary.checkpoints) == count, "once is enough"


def test_a_line_that_slips_in_between_look_and_write_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=9)
    with new_writer(path, every=100) as log:
        for record in records[:4]:
            log.write(record)
        forged, write = forged_tail(path), os.write

        def slip_in(descriptor: int, data: bytes) -> int:
            if data.startswith(b'{"agentmark"'):
                monkeypatch.undo()
                append_raw(path, forged)
            return write(descriptor, data)

        monkeypatch.setattr(os, "write", slip_in)
        for record in records[4:]:
            log.write(record)
    assert "holds 3 linked records" in caplog.text
    report = check_file(path)
    assert Kind.INSERTED in kinds(report)
    assert report.checked_count == 9


def test_more_of_it_is_summed_up_at_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "log.jsonl"
    with new_writer(path, every=100) as log:
        for i, record in enumerate(marked_log(KEY, steps=30)):
            log.write(record)
            append_raw(path, forged_session(1, f"forged {i}"))
    assert len(caplog.records) == 2, "an attacker fills the log, and not its reader's screen"
    assert "in all, met 30 linked records of others" in caplog.text


# What a crash has left.


def test_a_tail_that_was_rewritten_after_a_crash_is_not_signed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    crash(path, records[:12], every=7)
    lines = path.read_text().splitlines(keepends=True)
    assert "agentmark_checkpoint" in lines[7]
    path.write_text("".join(lines[:8]))
    forged = forged_tail(path, 5)
    append_raw(path, forged)
    append(path, records[12:])
    report = check_file(path)
    assert not report.intact
    assert report.checked_count == 7 + 8, "what was signed before, and what was written since"
    assert not is_stated(path, forged)
    assert "4 records that were written with this signing key are not there any more" in caplog.text
    assert "holds 5 linked records" in caplog.text


def test_without_its_state_a_signer_vouches_for_no_tail_and_the_tail_shows(tmp_path: Path) -> None:
    """Not even for what it did write: without its notes it cannot know."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=12, sessions=2)
    crash(path, records[:12])
    signer_file(path).unlink()
    append(path, records[12:])
    report = check_file(path)
    assert kinds(report) == {Kind.UNVOUCHED: 1}
    assert count_of(report, Kind.UNVOUCHED) == 5
    assert report.checked_count == 7 + 12


def test_a_log_that_was_closed_needs_no_state_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    append(path, records[:9])
    signer_file(path).unlink()
    append(path, records[9:])
    assert check_file(path).findings == ()


def replaced_by_nothing(path: Path) -> None:
    path.write_bytes(b"")


def replaced_by_noise(path: Path) -> None:
    path.write_bytes(os.urandom(4000))


def replaced_by_a_strangers(path: Path) -> None:
    """The same records, noted by a signer with another key."""
    other = path.parent / "other.jsonl"
    crash(other, marked_log(KEY, steps=12), signer=STRANGER)
    shutil.copy(signer_file(other, STRANGER), path)


def replaced_by_that_of_another_log(path: Path) -> None:
    """The forged session, as the same signer wrote it to a log of its own: its notes are genuine, elsewhere."""
    other = path.parent / "other.jsonl"
    crash(other, [replace(record, prev=None) for record in forged_session(4)])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + signer_file(other).read_bytes().splitlines(keepends=True)[1:]))


def replaced_by_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "victim")


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def altered_in_the_middle(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"count":9', b'"count":8'))


def continued(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[-1]]))


def endless(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(MAX_LINE * 8)


STATES: list[Callable[[Path], None]] = [
    replaced_by_nothing, replaced_by_noise, replaced_by_a_strangers, replaced_by_that_of_another_log,
    replaced_by_a_link, replaced_by_a_pipe, altered_in_the_middle, continued, endless,
]  # fmt: skip


@pytest.mark.parametrize("live", [False, True], ids=["after a crash", "live"])
@pytest.mark.parametrize("damage", STATES, ids=lambda damage: damage.__name__)
def test_a_state_file_that_was_replaced_makes_no_forgery_ours(
    tmp_path: Path, damage: Callable[[Path], None], live: bool
) -> None:
    path, victim = tmp_path / "log.jsonl", tmp_path / "victim"
    victim.write_text("not ours\n")
    records = marked_log(KEY, steps=20)
    writer = new_writer(path)
    for record in records[:12]:
        writer.write(record)
    if not live:
        writer._let_go()
    damage(signer_file(path))
    append_raw(path, forged_session(4))
    writer = writer if live else new_writer(path)
    for record in records[12:]:
        writer.write(record)
    writer.close()
    report = check_file(path)
    assert all("forged" not in checkpoint.sessions for checkpoint in read_log(path).summary.checkpoints)
    assert not report.intact
    if live or damage is continued:
        # Whoever has it in memory, or whole in its file up to what was added, loses nothing.
        assert kinds(report) == {Kind.UNVOUCHED: 1}
        assert report.checked_count == 20
    assert victim.read_text() == "not ours\n"
    assert signer_file(path).stat().st_mode & 0o777 == 0o600
    # And it is a state again.
    append(path, marked_log(KEY, steps=3, seed=9))
    assert kinds(check_file(path)) == kinds(report)


def test_a_state_file_that_is_rolled_back_under_a_live_signer_is_told_and_put_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    with new_writer(path) as log:
        for record in records[:9]:
            log.write(record)
        older = signer_file(path).read_bytes()
        for record in records[9:12]:
            log.write(record)
        signer_file(path).write_bytes(older)
        log.write(records[12])
        assert [record.getMessage().split(": ")[1] for record in caplog.records] == [
            "the .signer file was cut back or replaced. It is written anew from memory."
        ]
        log._let_go()
    append(path, records[13:])
    assert check_file(path).findings == ()


def test_a_state_that_is_rolled_back_costs_its_signer_only(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    crash(path, records[:9])
    older = signer_file(path).read_bytes()
    crash(path, records[9:12])
    signer_file(path).write_bytes(older)
    append(path, records[12:])
    report = check_file(path)
    assert not report.intact, "three records were written, and nothing says so any more"
    assert report.checked_count == 9 + 8


def test_a_log_that_is_cut_back_alone_is_missed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also where no checkpoint covered it, and beyond one: the signer knows what it wrote."""
    records = marked_log(KEY, steps=30)
    for left, kind in ((10, Kind.GAP), (7, Kind.GAP), (0, Kind.MISSING_HEAD)):
        path = tmp_path / f"log-{left}.jsonl"
        crash(path, records[:20])
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:left]))
        append(path, records[20:])
        assert kind in kinds(check_file(path)), left
    assert "the last checkpoint that this signing key wrote is not there" in caplog.text


@pytest.mark.parametrize("every", [7, 100], ids=["with checkpoints", "before the first checkpoint"])
@pytest.mark.parametrize("left", [0, 9, 18])
def test_a_log_that_is_cut_back_under_a_live_signer_is_told_and_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, every: int, left: int
) -> None:
    """As a rotation does that copies the log and empties it, or anybody else who may write the file."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=30)
    with new_writer(path, every=every) as log:
        for record in records[:20]:
            log.write(record)
        lines = path.read_bytes().splitlines(keepends=True)
        os.truncate(path, len(b"".join(lines[:left])))
        log.write(records[20])
        assert "has become shorter while it was being written" in caplog.text
        assert "are not there any more" in caplog.text
        assert "nobody wrote with this signing key" not in caplog.text, "what is left is ours"
        for record in records[21:]:
            log.write(record)
    report = check_file(path)
    assert (Kind.GAP if left else Kind.MISSING_HEAD) in kinds(report)
    assert Kind.UNVOUCHED not in kinds(report)
    assert not report.intact


def test_a_log_that_is_emptied_right_behind_a_checkpoint_is_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    with new_writer(path) as log:
        for record in records[:14]:
            log.write(record)
        os.truncate(path, 0)
        log.write(records[14])
        assert "the last checkpoint that this signing key wrote is not there" in caplog.text
    assert {Kind.MISSING_HEAD, Kind.CHECKPOINT_BREAK} <= set(kinds(check_file(path)))


def test_links_alone_tell_of_a_cut_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=10)
    with LogWriter(path, chain=ChainWriter()) as log:
        for record in records[:5]:
            log.write(record)
        os.truncate(path, 0)
        for record in records[5:]:
            log.write(record)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert Kind.MISSING_HEAD in kinds(check_file(path, public_key=None))


def test_a_log_that_is_renamed_under_a_live_signer_meets_the_next_one_in_the_new_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two signers in two files would share one state, each taking the other's notes for records that were cut."""
    path, aside = tmp_path / "log.jsonl", tmp_path / "log.jsonl.1"
    records = marked_log(KEY, steps=20, sessions=2)
    with new_writer(path) as ours:
        for record in records[:10]:
            ours.write(record)
        path.rename(aside)
        with new_writer(path) as theirs:
            for mine, other in zip(records[10:20], records[20:], strict=False):
                ours.write(mine)
                theirs.write(other)
    assert "was moved away or replaced while it was being written" in caplog.text
    assert "nobody wrote with this signing key" not in caplog.text
    assert len(read_log(aside).records) == 10
    report = check_file(path)
    assert report.record_count == report.checked_count == 20
    assert Kind.MISSING_HEAD in kinds(report), "ten of them are in the other file"
    assert Kind.UNVOUCHED not in kinds(report)


def test_a_log_that_is_replaced_under_a_live_signer_is_missed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By an earlier state of itself and of its state file, as whoever can write the folder may do."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=30)
    with new_writer(path) as log:
        for record in records[:8]:
            log.write(record)
        earlier = [(file, file.read_bytes()) for file in (path, signer_file(path))]
        for record in records[8:20]:
            log.write(record)
        for file, content in earlier:
            file.unlink()
            file.write_bytes(content)
        for record in records[20:]:
            log.write(record)
    assert "the last checkpoint that this signing key wrote is not there" in caplog.text
    assert Kind.GAP in kinds(check_file(path))


def test_links_alone_begin_anew_in_another_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=10)
    with LogWriter(path, chain=ChainWriter()) as log:
        for record in records[:5]:
            log.write(record)
        path.rename(tmp_path / "log.jsonl.1")
        for record in records[5:]:
            log.write(record)
    assert "was moved away" in caplog.text
    assert check_file(path, public_key=None).record_count == 5
    assert kinds(check_file(path, public_key=None)) == {Kind.UNCHECKED: 1}


def test_the_last_record_can_be_cut_off_as_a_crash_would(tmp_path: Path) -> None:
    """A limit: a signer that was stopped between note and record leaves the same files."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    crash(path, records[:12])
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    append(path, records[12:])
    report = check_file(path)
    assert report.findings == ()
    assert report.record_count == 19


def test_log_and_state_rolled_back_together_need_an_anchor_to_show(tmp_path: Path) -> None:
    """A limit: together they are what they once were. What is kept elsewhere is not."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=30)
    append(path, records[:10])
    then = path.read_bytes(), signer_file(path).read_bytes()
    append(path, records[10:20])
    anchor = check_file(path).last_checkpoint
    path.write_bytes(then[0])
    signer_file(path).write_bytes(then[1])
    append(path, records[20:])
    assert check_file(path).findings == ()
    log = read_log(path)
    anchored = verify_chain(log.records, log.summary.checkpoints, SIGNER.public_key, lines=log.lines, anchor=anchor)
    assert kinds(anchored) == {Kind.ANCHOR_MISSING: 1}


def test_a_state_that_is_kept_elsewhere_sees_the_whole_folder_rolled_back(tmp_path: Path) -> None:
    path, state = tmp_path / "log.jsonl", tmp_path / "elsewhere" / "state"
    state.parent.mkdir()
    records = marked_log(KEY, steps=30)
    append(path, records[:10], signer_file=state)
    then = path.read_bytes()
    append(path, records[10:20], signer_file=state)
    assert check_file(path).findings == ()
    path.write_bytes(then)
    append(path, records[20:], signer_file=state)
    assert Kind.CHECKPOINT_BREAK in kinds(check_file(path))
    assert not signer_file(path).exists()
    with pytest.raises(SettingError, match="signer_file"):
        LogWriter(path, chain=ChainWriter(), signer_file=state)


def test_a_log_and_its_state_move_together(tmp_path: Path) -> None:
    path, kept = tmp_path / "log.jsonl", tmp_path / "kept.jsonl"
    records = marked_log(KEY, steps=20)
    crash(path, records[:9])
    path.rename(kept)
    signer_file(path).rename(signer_file(kept))
    append(path, records[10:])
    append(kept, records[9:])
    assert check_file(kept).findings == check_file(path).findings == ()


def test_a_log_that_was_linked_before_it_was_signed_keeps_its_sessions_apart(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=10, sessions=2)
    append(path, records[:10], signer=None)
    append(path, records[10:])
    report = check_file(path)
    assert kinds(report) == {Kind.UNVOUCHED: 1}
    assert report.checked_count == 10


def test_links_alone_still_go_on_from_whatever_is_there(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=10)
    append(path, records[:5], signer=None)
    append_raw(path, forged_tail(path, 2))
    append(path, records[5:], signer=None)
    report = check_file(path, public_key=None)
    assert kinds(report) == {Kind.UNCHECKED: 1}
    assert "all vouched for" not in report.sentence
    assert list(tmp_path.iterdir()) == [path], "no signer, no state"


def test_a_checkpoint_of_another_log_does_not_lead_a_live_signer_astray(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    elsewhere = checkpoints_of(write_lines(marked_log(KEY, steps=40)))[-1]
    with new_writer(path) as log:
        for record in records[:10]:
            log.write(record)
        with path.open("a") as file:
            file.write(elsewhere.to_json() + "\n")
        for record in records[10:]:
            log.write(record)
    assert not check_file(path).intact


def test_a_line_without_end_is_not_held(tmp_path: Path) -> None:
    """A quarter of a gigabyte, in a process that may not hold it twice."""
    path = tmp_path / "log.jsonl"
    append(path, marked_log(KEY, steps=9))
    whole = path.stat().st_size
    with path.open("ab") as file:
        file.truncate(whole + (1 << 28))
    script = """
import resource, sys
from chained_logs import append, KEY, Path
from support import marked_log
resource.setrlimit(resource.RLIMIT_AS, (400 << 20,) * 2)
append(Path(sys.argv[1]), marked_log(KEY, steps=9, seed=3))
"""
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with path.open("rb") as file:
        file.seek(whole + (1 << 28))
        assert file.read().count(b'"agentmark"') == 9


class CountingFile(io.FileIO):
    """Counts the bytes that are read from any file."""

    count = 0

    def readinto(self, buffer: Any) -> int:
        size = super().readinto(buffer)
        CountingFile.count += size
        return size


def grown_by_a_hole(path: Path) -> None:
    os.truncate(path, 1 << 30)


def grown_by_holes_in_lines(path: Path) -> None:
    """A hole behind the beginning of a line that may be ours, many times."""
    for i in range(1, 65):
        with path.open("ab") as file:
            file.write(b'\n{"agentmark":1,')
            file.truncate(i << 24)


@pytest.mark.parametrize("which", ["log", "state"])
@pytest.mark.parametrize("live", [False, True], ids=["after a crash", "live"])
@pytest.mark.parametrize("damage", [grown_by_a_hole, grown_by_holes_in_lines], ids=lambda damage: damage.__name__)
def test_a_file_that_is_mostly_a_hole_is_not_read_for_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str, live: bool, damage: Callable[[Path], None]
) -> None:
    """A gibibyte that is on no disk costs no more than the data in it, so that a thousand of them cost no more."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    writer = new_writer(path)
    for record in records[:12]:
        writer.write(record)
    if not live:
        writer._let_go()
    damage(path if which == "log" else signer_file(path))
    monkeypatch.setattr(io, "FileIO", CountingFile)
    monkeypatch.setattr(CountingFile, "count", 0)
    writer = writer if live else new_writer(path)
    for record in records[12:]:
        writer.write(record)
    writer.close()
    assert 0 < CountingFile.count < 200 << 20
    monkeypatch.undo()
    if which == "state":
        assert check_file(path).findings == ()
        assert signer_file(path).stat().st_size < 1 << 20
    else:
        with path.open("rb") as file:
            file.seek(1 << 30)
            assert file.read().count(b'"agentmark"') == 8


def test_a_record_that_no_chained_log_could_take_in_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=3)
    with new_writer(path) as log:
        log.write(records[0])
        with pytest.raises(RecordError, match="a chained log takes 16777216"):
            log.write(replace(records[1], meta={"text": "x" * MAX_LINE}))
        log.write(records[2])
    assert check_file(path).findings == ()
    assert check_file(path).record_count == 2


# Killed at any moment.

WRITING = """
import itertools, os, random, sys, time
from pathlib import Path
from agentmark import Embedder, LogWriter, SharedKey
from agentmark.chain.writer import ChainWriter
from agentmark.keys.signing import SigningKey
embedder = Embedder(SharedKey(bytes(range(100, 132))), 5, payload_len=8)
shared = embedder.session("shared")
records = ((shared if i % 3 == 0 else embedder.session()).choose({"a": 1, "b": 2}).record for i in itertools.count())
"""


def run_script(script: str, *words: str) -> None:
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_signer_that_is_killed_at_any_moment_vouches_for_all_it_wrote_and_nothing_else(tmp_path: Path) -> None:
    """Fifty processes in turn, each killed after a random time, while one that is not killed writes beside them."""
    path = tmp_path / "log.jsonl"
    script = (
        WRITING
        + """
rng = random.Random(5)
def writer():
    return LogWriter(sys.argv[1], chain=ChainWriter(SigningKey(bytes(range(7, 39))), every=5))
with writer() as beside:
    for turn in range(50):
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            log = writer()
            os.write(tell, b"x")
            while True:
                log.write(next(records))
        os.read(told, 1)
        time.sleep(rng.random() * 0.01)
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(told), os.close(tell)
        beside.write(next(records))
"""
    )
    run_script(script, str(path))
    report = check_file(path)
    assert report.findings == ()
    assert report.checked_count == report.record_count > 100


def test_a_signer_that_is_stopped_at_any_write_goes_on(tmp_path: Path) -> None:
    """Before, within or after each of its writes, to the log or to its state."""
    script = (
        WRITING
        + """
path, write = sys.argv[1], os.write
def stop_at(place, part):
    calls = itertools.count()
    def stopping(descriptor, data):
        if next(calls) == place:
            write(descriptor, data[:int(len(data) * part)])
            os._exit(0)
        return write(descriptor, data)
    os.write = stopping
def write_some(path):
    with LogWriter(path, chain=ChainWriter(SigningKey(bytes(range(7, 39))), every=3)) as log:
        for _ in range(5):
            log.write(next(records))
for place in range(16):
    for part in (0, 0.5, 1):
        log = f"{path}/{place}-{part}.jsonl"
        for how_often in range(2):
            child = os.fork()
            if child == 0:
                stop_at(place, part)
                write_some(log)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        write_some(log)
"""
    )
    run_script(script, str(tmp_path))
    logs = sorted(tmp_path.glob("*.jsonl"))
    assert len(logs) == 48
    for path in logs:
        report = check_file(path)
        assert report.findings == (), path
        assert report.checked_count == report.record_count >= 5


def test_forgeries_between_crashes_are_never_vouched_for(tmp_path: Path) -> None:
    rng = random.Random(11)
    for trial in range(20):
        path = tmp_path / f"{trial}.jsonl"
        honest = marked_log(KEY, steps=30, seed=trial)
        forged: list[StepRecord] = []
        at = 0
        while at < len(honest):
            step = rng.randint(1, 8)
            (append if rng.random() < 0.5 else crash)(path, honest[at : at + step], every=rng.randint(2, 9))
            at += step
            if rng.random() < 0.5:
                more = forged_tail(path, 2) if rng.random() < 0.5 else forged_session(2, f"forged {at}")
                append_raw(path, more)
                forged += more
        append(path, [])
        report = check_file(path)
        assert report.checked_count == len(honest), "all that is honest, whatever stands between"
        assert report.record_count == len(honest) + len(forged)
        assert report.intact == (not forged), trial
        assert not is_stated(path, forged)


# Honest writers side by side.


def test_writers_with_one_key_vouch_for_each_other(tmp_path: Path) -> None:
    """Three processes that close at different times, one of them killed: its last records are signed by another."""
    path = tmp_path / "log.jsonl"
    script = (
        WRITING
        + """
chain = ChainWriter(SigningKey(bytes(range(7, 39))), every=9)
log = LogWriter(sys.argv[1], chain=chain)
for _ in range(int(sys.argv[2])):
    log.write(next(records))
if sys.argv[3] == "killed":
    os.kill(os.getpid(), 9)
log.close()
"""
    )
    turns = [("50", "closed"), ("80", "killed"), ("120", "closed")]
    running = [subprocess.Popen([sys.executable, "-c", script, str(path), *turn]) for turn in turns]
    assert [process.wait() for process in running] == [0, -signal.SIGKILL, 0]
    append(path, [])
    report = check_file(path)
    assert report.findings == ()
    assert report.checked_count == report.record_count == 250


FORKS = (
    WRITING
    + """
kind = sys.argv[2]
chain = {"plain": lambda: None, "linked": ChainWriter}.get(
    kind, lambda: ChainWriter(SigningKey(bytes(range(7, 39))), every=9)
)()
log = LogWriter("log.jsonl" if kind == "relative" else sys.argv[1], chain=chain)
log.write(next(records))
children = []
for i in range(8):
    child = os.fork()
    if child == 0:
        if kind == "relative":
            os.chdir("/")
        session = embedder.session(f"child {i}")
        for _ in range(40):
            log.write(session.choose({"a": 1, "b": 2}).record)
        log.close()
        os._exit(0)
    children.append(child)
for _ in range(40):
    log.write(next(records))
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
log.close()
"""
)


@pytest.mark.parametrize("kind", ["plain", "linked", "signed", "relative"])
def test_a_writer_may_be_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Nine processes write at once through a writer that one of them opened."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "log.jsonl"
    run_script(FORKS, str(path), kind)
    report = check_file(path, public_key=None)
    assert report.record_count == 9 * 40 + 1
    expected = {"plain": {Kind.UNCHAINED}, "linked": {Kind.UNCHECKED}}.get(kind, set())
    assert set(kinds(report)) - {Kind.UNCHECKED if kind == "plain" else None} == expected
    assert report.intact == (kind != "plain")
    if kind in ("signed", "relative"):
        assert report.checked_count == report.record_count


def test_a_lock_that_a_thread_held_at_the_fork_stops_no_child(tmp_path: Path) -> None:
    """Threads that write all the time: some child is forked while one of them has the lock of the process."""
    path = tmp_path / "log.jsonl"
    script = (
        WRITING
        + """
import threading
log = LogWriter(sys.argv[1], chain=ChainWriter(SigningKey(bytes(range(7, 39))), every=9))
stop = threading.Event()
def keep_writing():
    session = embedder.session()
    while not stop.is_set():
        log.write(session.choose({"a": 1, "b": 2}).record)
threads = [threading.Thread(target=keep_writing) for _ in range(2)]
for thread in threads:
    thread.start()
children = []
for i in range(12):
    child = os.fork()
    if child == 0:
        log.write(embedder.session(f"child {i}").choose({"a": 1, "b": 2}).record)
        os._exit(0)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 12
stop.set()
for thread in threads:
    thread.join()
log.close()
"""
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(path)], timeout=60, check=False)
    assert done.returncode == 0
    report = check_file(path)
    assert report.findings == ()
    assert report.checked_count == report.record_count


def test_a_child_that_outlives_a_killed_parent_holds_no_lock(tmp_path: Path) -> None:
    """The lock belongs to the open file, and a fork has a copy of it."""
    path = tmp_path / "log.jsonl"
    script = (
        WRITING
        + """
import fcntl
log = LogWriter(sys.argv[1], chain=ChainWriter(SigningKey(bytes(range(7, 39)))))
log.write(next(records))
fcntl.flock(log._descriptor, fcntl.LOCK_EX)
if os.fork() == 0:
    os.kill(os.getppid(), 9)
    time.sleep(20)
    os._exit(0)
time.sleep(20)
"""
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == -signal.SIGKILL
    begun = time.monotonic()
    append(path, marked_log(KEY, steps=3))
    assert time.monotonic() - begun < 15, "it waited for the child"
    assert check_file(path).findings == ()


def test_a_reader_who_holds_the_lock_does_not_stop_a_writer_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may only read the file can lock it all the same."""
    monkeypatch.setattr(append_module, "LOCK_PATIENCE_S", 0.05)
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=9)
    with new_writer(path) as log:
        log.write(records[0])
        reader = os.open(path, os.O_RDONLY)
        fcntl.flock(reader, fcntl.LOCK_SH)
        with pytest.raises(LockHeldError, match=r"log\.jsonl: another process has held the lock"):
            log.write(records[1])
        with pytest.raises(LockHeldError):
            new_writer(path)
        os.close(reader)
        for record in records[1:]:
            log.write(record)
    assert check_file(path).findings == ()
    assert check_file(path).record_count == 9


def test_nothing_is_withdrawn_that_was_written(tmp_path: Path) -> None:
    """Two writers in turn, with checkpoints of either between: each reads what the other noted, and it holds."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=40)
    with new_writer(path, every=3) as one, new_writer(path, every=4) as other:
        for i, record in enumerate(records):
            (one if i % 5 < 3 else other).write(record)
    assert check_file(path).findings == ()
    assert b"withdrawn" not in signer_file(path).read_bytes()


def test_sessions_with_long_names_make_no_checkpoint_that_nobody_reads(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    record = marked_log(KEY, steps=1)[0]
    with new_writer(path, every=1000) as log:
        for i in range(100):
            log.write(replace(record, session=f"{i:03}" + "x" * 180_000))
        with pytest.raises(RecordError, match="session"):
            log.write(replace(record, session="x" * 400_000))
    with path.open("rb") as file:
        assert max(map(len, file)) < MAX_LINE / 2
    assert check_file(path).findings == ()
