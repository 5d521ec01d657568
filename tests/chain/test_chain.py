"""Tamper-evident logs: every attack shows, and none of them stops the mark from being read."""

import io
import json
import os
import random
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import marked_log

from agentmark import LogWriter, RecordError, SettingError, SharedKey, StepRecord, Verdict, Verifier, open_log, read_log
from agentmark.chain.check import ChainReport, verify_chain
from agentmark.chain.checkpoint import Checkpoint, Statement
from agentmark.chain.findings import FindingKind
from agentmark.chain.links import link_digest, start_digest
from agentmark.chain.writer import ChainWriter
from agentmark.cli import main
from agentmark.keys.signing import SigningError, SigningKey, check_public_key, verify_signature
from agentmark.times import utc_now

KEY = SharedKey(bytes(range(100, 132)))
OTHER_KEY = SharedKey(bytes(range(150, 182)))
SIGNER = SigningKey(bytes(range(7, 39)))
STRANGER = SigningKey(bytes(range(200, 232)))
TIME = "2026-01-02T03:04:05+00:00"
PAYLOAD = 0x5EED

Line = StepRecord | Checkpoint
Kind = FindingKind


def write_lines(records: Iterable[StepRecord], *, signer: SigningKey | None = SIGNER, every: int = 20) -> list[Line]:
    """A log in memory, as a LogWriter would write it, closed by a checkpoint."""
    chain = ChainWriter(signer, every=every, clock=lambda: TIME)
    lines: list[Line] = []

    def append(line: Line | None) -> None:
        if line is not None:
            lines.append(line)
            chain.observe(line)

    for record in records:
        append(chain.link(record))
        if chain.checkpoint_is_due:
            append(chain.checkpoint())
    append(chain.checkpoint())
    return lines


@cache
def one_session() -> tuple[Line, ...]:
    """60 records; checkpoints after 20, 40 and 60."""
    return tuple(write_lines(marked_log(KEY, steps=60)))


@cache
def two_sessions() -> tuple[Line, ...]:
    """Two agents that write to one log in turn, 30 records each; checkpoints after every 20 records."""
    records = marked_log(KEY, steps=30, sessions=2)
    return tuple(write_lines([record for pair in zip(records[:30], records[30:], strict=True) for record in pair]))


def records_of(lines: Iterable[Line]) -> list[StepRecord]:
    return [line for line in lines if isinstance(line, StepRecord)]


def checkpoints_of(lines: Iterable[Line]) -> list[Checkpoint]:
    return [line for line in lines if isinstance(line, Checkpoint)]


def judge(log: Iterable[Line], public_key: str | None = SIGNER.public_key, **settings: Any) -> ChainReport:
    log = list(log)
    return verify_chain(records_of(log), checkpoints_of(log), public_key, **settings)


def kinds(report: ChainReport) -> Counter[FindingKind]:
    return Counter(finding.kind for finding in report.findings)


def count_of(report: ChainReport, kind: FindingKind) -> int | None:
    (finding,) = [finding for finding in report.findings if finding.kind is kind]
    return finding.count


def read_mark(lines: Iterable[Line]) -> Verdict:
    return Verifier(KEY).verify(records_of(lines))


def without(lines: Sequence[Line], *places: int) -> list[Line]:
    gone = {place % len(lines) for place in places}
    return [line for i, line in enumerate(lines) if i not in gone]


def changed(record: Line, **members: Any) -> StepRecord:
    """A record as a tamperer leaves it: some members replaced, its links as they were."""
    return StepRecord.from_dict(record.as_dict() | members)


# What is hashed


def test_the_links_are_what_the_page_says() -> None:
    """Computed here from the words of docs/chain.md, and pinned."""
    first, second = records_of(one_session())[:2]
    start = blake2b(b"agentmark/1 chain start\0" + first.session.encode(), digest_size=32).hexdigest()
    canonical = json.dumps(first.as_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    link = blake2b(b"agentmark/1 chain\0" + canonical, digest_size=32).hexdigest()
    assert first.prev == start == start_digest(first.session)
    assert second.prev == link == link_digest(first)
    record = StepRecord.from_json(
        '{"agentmark":1,"choice":"a","context":"' + "00" * 32 + '","key_id":"k","marked":true,"payload_len":8,'
        f'"prev":"{start_digest("s")}","scheme":"F","session":"s","step":0,"weights":{{"a":2147483648,"b":2147483648}}}}'
    )
    assert record.prev == "85458c841d5f0702704a0a097aff8807f05ad9df3ec61b1876d977d1fc518eba"
    assert link_digest(record) == "16404cd5db2209b26ad5255105f54daf58fb0f6a6473ae03b6c84c430e993f44"


def test_a_checkpoint_is_what_the_page_says() -> None:
    first, second = checkpoints_of(one_session())[:2]
    content = first.as_dict()
    assert list(content) == [
        "agentmark_checkpoint", "sessions", "total", "previous", "time", "public_key", "signature",
    ]  # fmt: skip
    after = records_of(one_session())[20]
    assert content["sessions"] == {after.session: {"count": 20, "head": after.prev}}
    assert (first.total, first.previous, first.time) == (20, None, TIME)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    digest = blake2b(b"agentmark/1 checkpoint digest\0" + canonical, digest_size=32).hexdigest()
    assert second.previous == digest == first.digest
    del content["signature"]
    signed = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    assert verify_signature(SIGNER.public_key, b"agentmark/1 checkpoint signature", signed, first.signature)


def test_a_checkpoint_states_only_what_is_new() -> None:
    """Otherwise a log of many sessions would be mostly checkpoints."""
    records = marked_log(KEY, steps=10, sessions=5)
    checkpoints = checkpoints_of(write_lines(records, every=10))
    assert [len(checkpoint.sessions) for checkpoint in checkpoints] == [1] * 5
    assert [checkpoint.total for checkpoint in checkpoints] == [10, 20, 30, 40, 50]


def test_every_record_that_can_be_read_can_be_linked() -> None:
    """A member may be nested as deeply as canonical JSON goes; the record around it is one level more."""
    record, meta = records_of(one_session())[0], dict[str, Any]()
    linked = set()
    while True:
        try:
            deeper = changed(record, meta=meta)
        except RecordError:
            break
        linked.add(link_digest(deeper))
        meta = {"a": meta}
    assert len(linked) > 60


# A log as it was written


def test_a_log_as_it_was_written_is_intact() -> None:
    for lines in (one_session(), two_sessions()):
        report = judge(lines)
        assert report.findings == ()
        assert report.intact
        assert report.checked_count == report.record_count == 60
        assert report.signers == (SIGNER.public_key,)
        assert report.last_checkpoint == checkpoints_of(lines)[-1].digest
        assert report.sentence.startswith("Intact: 60 records")
        assert read_mark(lines).payload == PAYLOAD


def test_records_after_the_last_checkpoint_are_said_to_be_unchecked() -> None:
    report = judge(one_session()[:-1])
    assert report.intact
    assert kinds(report) == {Kind.UNCHECKED: 1}
    assert count_of(report, Kind.UNCHECKED) == 20
    assert report.checked_count == 40
    assert "of which 40" in report.sentence


def test_a_chain_without_a_key_shows_what_it_can() -> None:
    lines = write_lines(marked_log(KEY, steps=20), signer=None)
    report = judge(lines, public_key=None)
    assert report.intact
    assert kinds(report) == {Kind.UNCHECKED: 1}
    assert kinds(judge(without(lines, 4), public_key=None))[Kind.GAP] == 1
    # Who was promised signatures is told that there are none.
    assert not judge(lines).intact
    assert kinds(judge(lines)) == {Kind.UNSIGNED: 1}


def test_a_chain_says_nothing_about_the_mark_and_the_mark_nothing_about_the_chain() -> None:
    plain = marked_log(KEY, steps=60)
    assert not judge(plain, public_key=None).intact
    assert read_mark(plain).as_dict() == read_mark(one_session()).as_dict()
    strangers = write_lines(marked_log(OTHER_KEY, steps=60))
    assert judge(strangers).intact
    assert not read_mark(strangers).accepted


@pytest.mark.parametrize("seed", range(5))
def test_serialising_again_changes_nothing(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)

    def shuffled(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: shuffled(value[name]) for name in rng.sample(list(value), len(value))}

    path = tmp_path / "log.jsonl"
    records = [replace(r, meta={"käse": [1, {"b": None, "a": "\u2028"}]}) for r in marked_log(KEY, steps=30)]
    with path.open("w", encoding="utf-8") as file:
        for line in write_lines(records, every=7):
            separators = rng.choice([(",", ":"), (" ,  ", " : ")])
            text = json.dumps(shuffled(line.as_dict()), ensure_ascii=rng.random() < 0.5, separators=separators)
            file.write(f" {text}\r\n\n")
    report = check_file(path)
    assert report.findings == ()
    assert report.record_count == 30


def check_file(path: Path, public_key: str | None = SIGNER.public_key) -> ChainReport:
    log = read_log(path, skip_bad=True)
    return verify_chain(
        log.records,
        log.summary.checkpoints,
        public_key,
        lines=log.lines,
        unreadable=[*log.summary.bad_lines, *log.summary.bad_checkpoints],
    )


# Attacks with a known name. Lines 20, 41 and 62 (from 0) are the checkpoints.

FORGED = replace(marked_log(OTHER_KEY, steps=1)[0], session=marked_log(KEY, steps=1)[0].session, step_index=9)


def swapped(lines: Sequence[Line], i: int, j: int) -> list[Line]:
    result = list(lines)
    result[i], result[j] = result[j], result[i]
    return result


def moved(lines: Sequence[Line], i: int, j: int) -> list[Line]:
    result = without(lines, i)
    result.insert(j, lines[i])
    return result


def inserted(lines: Sequence[Line], i: int, line: Line) -> list[Line]:
    return [*lines[:i], line, *lines[i:]]


def replaced(lines: Sequence[Line], i: int, **members: Any) -> list[Line]:
    return [*lines[:i], changed(lines[i], **members), *lines[i + 1 :]]


def renumbered(lines: Sequence[Line]) -> list[Line]:
    """Delete one and close the gap in the step numbers."""
    return [
        changed(line, step=line.step_index - 1) if isinstance(line, StepRecord) and line.step_index > 10 else line
        for line in without(lines, 10)
    ]


ATTACKS: dict[str, tuple[Callable[[Sequence[Line]], list[Line]], FindingKind, int | None]] = {
    "delete the first": (lambda log: without(log, 0), Kind.MISSING_HEAD, 1),
    "delete the first five": (lambda log: without(log, *range(5)), Kind.MISSING_HEAD, 5),
    "delete one in the middle": (lambda log: without(log, 10), Kind.GAP, 1),
    "delete four in the middle": (lambda log: without(log, *range(25, 29)), Kind.GAP, 4),
    "delete the last before a checkpoint": (lambda log: without(log, 19), Kind.GAP, 1),
    "delete the first after a checkpoint": (lambda log: without(log, 21), Kind.GAP, 1),
    "delete records around a checkpoint": (lambda log: without(log, 18, 19, 21, 22), Kind.GAP, 4),
    "delete records and a checkpoint": (lambda log: without(log, 19, 20, 21), Kind.GAP, 2),
    "delete the last": (lambda log: without(log, -2), Kind.MISSING_TAIL, 1),
    "delete the last ten": (lambda log: without(log, *range(52, 62)), Kind.MISSING_TAIL, 10),
    "delete the last thirty": (lambda log: without(log, *range(31, 41), *range(42, 62)), Kind.MISSING_TAIL, 30),
    "insert a record that is not linked": (lambda log: inserted(log, 9, FORGED), Kind.UNCHAINED, 1),
    "insert a record with a made-up link": (
        lambda log: inserted(log, 9, replace(FORGED, prev="00" * 32)), Kind.INSERTED, 1,
    ),
    "insert a linked record": (
        lambda log: inserted(log, 9, replace(FORGED, prev=log[9].as_dict()["prev"])), Kind.INSERTED, None,
    ),
    "insert a record before the first": (
        lambda log: inserted(log, 0, replace(FORGED, prev="00" * 32)), Kind.INSERTED, 1,
    ),
    "insert a second first record": (
        lambda log: inserted(log, 0, replace(FORGED, prev=start_digest(FORGED.session))), Kind.INSERTED, None,
    ),
    "duplicate one": (lambda log: inserted(log, 11, log[10]), Kind.DUPLICATE, None),
    "duplicate one elsewhere": (lambda log: inserted(log, 40, log[10]), Kind.DUPLICATE, None),
    "swap neighbours": (lambda log: swapped(log, 10, 11), Kind.REORDERED, None),
    "swap the first two": (lambda log: swapped(log, 0, 1), Kind.REORDERED, None),
    "swap far apart": (lambda log: swapped(log, 5, 50), Kind.REORDERED, None),
    "move the first to the end": (lambda log: moved(log, 0, 61), Kind.REORDERED, None),
    "reverse all": (lambda log: list(reversed(log)), Kind.REORDERED, None),
    "alter the first": (lambda log: replaced(log, 0, meta={"a": 1}), Kind.ALTERED, None),
    "alter one in the middle": (lambda log: replaced(log, 10, meta={"a": 1}), Kind.ALTERED, None),
    "alter the last": (lambda log: replaced(log, 61, meta={"a": 1}), Kind.ALTERED, None),
    "alter the link of the first": (lambda log: replaced(log, 0, prev="00" * 32), Kind.ALTERED, None),
    "alter the link of one in the middle": (lambda log: replaced(log, 10, prev="00" * 32), Kind.ALTERED, None),
    "alter the link of the last": (lambda log: replaced(log, 61, prev="00" * 32), Kind.ALTERED, None),
    "renumber one": (lambda log: replaced(log, 10, step=1000), Kind.ALTERED, None),
    "delete one and renumber the rest": (renumbered, Kind.ALTERED, None),
    "move one to another session": (lambda log: replaced(log, 10, session="elsewhere"), Kind.GAP, 1),
    "strip the link of one": (lambda log: replaced(log, 10, prev=None), Kind.UNCHAINED, 1),
    "strip every link": (
        lambda log: [changed(line, prev=None) if isinstance(line, StepRecord) else line for line in log],
        Kind.UNCHAINED, 60,
    ),
    "delete the first checkpoint": (lambda log: without(log, 20), Kind.CHECKPOINT_BREAK, None),
    "delete a checkpoint": (lambda log: without(log, 41), Kind.CHECKPOINT_BREAK, None),
    "delete all checkpoints": (lambda log: without(log, 20, 41, 62), Kind.UNSIGNED, None),
    "swap checkpoints": (lambda log: swapped(log, 20, 41), Kind.CHECKPOINT_BREAK, None),
    "replay an old checkpoint": (lambda log: inserted(log, 63, log[20]), Kind.REPLAYED, None),
    "replay an old checkpoint in place of the last": (lambda log: [*log[:62], log[20]], Kind.REPLAYED, None),
    "cut records, keep the last checkpoint": (lambda log: [*log[:45], log[62]], Kind.MISSING_TAIL, 17),
    "delete every record": (checkpoints_of, Kind.MISSING_SESSION, 60),
    "delete everything": (lambda log: [], Kind.EMPTY, None),
}  # fmt: skip
NOTHING_LEFT = {"delete every record", "delete everything"}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_named_and_the_mark_is_still_read(name: str) -> None:
    attack, kind, count = ATTACKS[name]
    left = attack(one_session())
    report = judge(left)
    assert not report.intact
    assert report.sentence.startswith("Not intact")
    assert kind in kinds(report), report.findings
    if count is not None:
        assert count_of(report, kind) == count
    # The mark is read as if there had never been a chain.
    verdict = read_mark(left)
    assert verdict.as_dict() == read_mark([replace(record, prev=None) for record in records_of(left)]).as_dict()
    assert verdict.accepted == (name not in NOTHING_LEFT)
    assert verdict.payload == (None if name in NOTHING_LEFT else PAYLOAD)


def test_the_place_is_named() -> None:
    """Between which records, by line and step; and which of two was altered, where the other is vouched for."""
    left = replaced(one_session(), 10, meta={"a": 1})
    (finding,) = [f for f in judge(left).findings if f.kind is Kind.ALTERED]
    assert (finding.session, finding.step, finding.line) == (left[0].as_dict()["session"], 10, 11)
    assert finding.sentence.startswith("record 11 (step 10) was altered")
    left = without(one_session(), 10, 11)
    (finding,) = [f for f in judge(left, lines=[i + 5 for i in range(58)]).findings if f.kind is Kind.GAP]
    assert "between line 14 (step 9) and line 15 (step 12), 2 by the count of a checkpoint" in finding.sentence
    (finding,) = [f for f in judge(swapped(one_session(), 10, 11)).findings if f.kind is Kind.REORDERED]
    assert "was moved: it belongs right" in finding.sentence


def test_counts_outweigh_step_numbers() -> None:
    """Step numbers are what the records say of themselves; a checkpoint has counted."""
    unsigned = records_of(without(one_session(), 10))
    (finding,) = [f for f in judge(unsigned, None).findings if f.kind is Kind.GAP]
    assert "1 by the step numbers" in finding.sentence
    assert finding.count is None
    # One is missing, and one says it is step 0: that four are missing after it is more than the count allows.
    report = judge(replaced(without(one_session(), 10), 4, step=0))
    assert kinds(report)[Kind.BREAK] == 1
    assert count_of(report, Kind.GAP) is None, "two breaks share what is missing"
    # The record that a checkpoint states is gone, and no later checkpoint is here: the one after it names it.
    assert count_of(judge(without(one_session()[:30], 19)), Kind.GAP) == 1


def test_one_attack_is_one_finding() -> None:
    for place in (0, 10, 19, 61):
        altered = kinds(judge(replaced(one_session(), place, meta={"a": 1})))
        assert altered - Counter([Kind.UNCHECKED]) == {Kind.ALTERED: 1}, place
    assert Kind.MISSING_HEAD not in kinds(judge(replaced(one_session(), 0, prev="00" * 32)))
    report = judge(replaced(one_session(), 61, prev="00" * 32))
    assert any("record 59 (step 58) or record 60 (step 59) was altered" in f.sentence for f in report.findings)


def test_of_two_followers_the_one_that_a_checkpoint_states_is_genuine() -> None:
    genuine = one_session()[61]
    forged = [replace(FORGED, prev=genuine.as_dict()["prev"])]
    for _ in range(3):
        forged.append(replace(FORGED, prev=link_digest(forged[-1])))
    report = judge([*one_session()[:61], *forged, *one_session()[61:]])
    assert kinds(report) == {Kind.INSERTED: 1}
    assert report.checked_count == 60


def test_what_a_checkpoint_vouches_for_was_moved_and_not_inserted() -> None:
    records, checkpoints = records_of(one_session()), checkpoints_of(one_session())
    report = judge([*records[:10], *records[31:], *records[10:30], *checkpoints])
    assert kinds(report) == {Kind.REORDERED: 1, Kind.GAP: 1, Kind.UNCHECKED: 1}
    assert count_of(report, Kind.GAP) == 1
    runs = records[:5], records[21:], records[6:20]
    assert Kind.INSERTED not in kinds(judge([*runs[0], *runs[1], *runs[2], *checkpoints]))
    assert Kind.REORDERED in kinds(judge([*runs[0], *runs[1], *runs[2], *checkpoints]))


FIELDS: dict[str, Any] = {
    "scheme": "R",
    "key_id": "0123456789abcdef",
    "payload_len": 17,
    "session": "elsewhere",
    "step": 999,
    "context": "ab" * 32,
    "weights": {"b0": 1 << 32},
    "choice": "b0",
    "marked": False,
    "partial": True,
    "reason": "because",
    "enforced": False,
    "raw_context": {"session": "s", "step": 1},
    "meta": {"note": "x"},
    "prev": "cd" * 32,
}


@pytest.mark.parametrize("place", [0, 19, 30, 61])
@pytest.mark.parametrize("name", FIELDS)
def test_altering_any_member_of_any_record_shows(name: str, place: int) -> None:
    content = one_session()[place].as_dict() | {name: FIELDS[name]}
    if name == "weights":
        content["choice"] = "b0"
    if name == "choice":
        content["weights"] = {"b0": 1 << 31, "b1": 1 << 31}
    if name == "marked":
        content["reason"] = "because"
    left = [*one_session()[:place], StepRecord.from_dict(content), *one_session()[place + 1 :]]
    assert left[place] != one_session()[place]
    assert not judge(left).intact
    assert not judge(left, public_key=None).intact
    assert Verifier(KEY).verify(records_of(left), claim=PAYLOAD).accepted


@given(st.data())
def test_any_subset_that_is_deleted_is_missed(data: st.DataObject) -> None:
    lines = two_sessions()
    places = [i for i, line in enumerate(lines) if isinstance(line, StepRecord)]
    gone = data.draw(st.sets(st.sampled_from(places), min_size=1))
    left = without(lines, *gone)
    report = judge(left)
    assert not report.intact
    told = [f.count for f in report.findings if f.count is not None and f.kind not in (Kind.UNCHECKED, Kind.UNCHAINED)]
    assert sum(told) <= len(gone), "what is said to be missing for certain is missing"
    known = {Kind.GAP, Kind.MISSING_HEAD, Kind.MISSING_TAIL, Kind.MISSING_SESSION, Kind.ALTERED, Kind.EMPTY}
    assert set(kinds(report)) <= {*known, Kind.UNCHECKED}
    assert read_mark(left).record_count == 60 - len(gone)


# Any single change


@cache
def small_log() -> tuple[Line, ...]:
    records = marked_log(KEY, steps=8, sessions=2)
    return tuple(write_lines([r for pair in zip(records[:8], records[8:], strict=True) for r in pair], every=5))


JUNK = st.sampled_from(
    [None, True, False, 0, 1, 2, 7, "", "x", "F", "R", "ab" * 32, "ab" * 64, SIGNER.public_key, [], {}, {"b0": 1 << 32}]
)


@st.composite
def mutations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """One line removed, repeated, moved or altered; or one inserted that was made from those that are there."""
    lines = [line.as_dict() for line in small_log()]
    i = draw(st.integers(0, len(lines) - 1))
    how = draw(st.sampled_from(["remove", "repeat", "move", "swap", "alter", "insert"]))
    if how == "remove":
        return lines[:i] + lines[i + 1 :]
    j = draw(st.integers(0, len(lines) - 1))
    if how == "repeat":
        return [*lines[:j], lines[i], *lines[j:]]
    if how in ("move", "swap"):
        # The order among sessions, and the place of a checkpoint among the records, is not what a chain is about.
        assume(i != j and lines[i].get("session", "checkpoint") == lines[j].get("session", "checkpoint"))
        if how == "swap":
            lines[i], lines[j] = lines[j], lines[i]
        else:
            lines.insert(j, lines.pop(i))
        return lines
    altered = dict(lines[i])
    name = draw(st.sampled_from([*altered, "meta", "reason", "enforced", "raw_context"]))
    others = [line[name] for line in lines if name in line]
    altered[name] = draw(JUNK | st.sampled_from(others) if others else JUNK)
    if how == "alter":
        assume(altered != lines[i])
        return [*lines[:i], altered, *lines[i + 1 :]]
    return [*lines[:j], altered, *lines[j:]]


@settings(max_examples=600)
@given(mutations(), st.booleans())
def test_any_single_change_is_reported(log: list[dict[str, Any]], key_is_known: bool) -> None:
    lines, unreadable = [], []
    for content in log:
        try:
            parse = Checkpoint.from_dict if "agentmark_checkpoint" in content else StepRecord.from_dict
            lines.append(parse(content))
        except RecordError as error:
            unreadable.append(error)
    assume(unreadable or lines != list(small_log()))
    public_key = SIGNER.public_key if key_is_known else None
    report = judge(lines, public_key, unreadable=unreadable)
    assert report.findings
    # Only what no checkpoint covers may change without a contradiction: a last checkpoint that is gone, or a record
    # that was appended with its link worked out. Both are said.
    assert not report.intact or set(kinds(report)) == {Kind.UNCHECKED}


def test_the_order_among_sessions_is_not_chained() -> None:
    """The place of a checkpoint among records, and the order of records of different sessions, mean nothing."""
    lines = list(small_log())
    by_session = sorted(lines, key=lambda line: line.session if isinstance(line, StepRecord) else "~")
    assert judge(by_session).findings == ()


# Checkpoints


def signed_again(checkpoint: Checkpoint, key: SigningKey, **members: Any) -> Checkpoint:
    facts = {"sessions": checkpoint.sessions, "total": checkpoint.total, "previous": checkpoint.previous} | members
    return Checkpoint.sign(key, facts["sessions"], total=facts["total"], previous=facts["previous"], time=TIME)


def test_a_checkpoint_forged_with_another_key_is_foreign() -> None:
    lines = list(one_session())
    for place in (20, 41, 62):
        forged = [*lines[:place], signed_again(checkpoints_of(lines)[0], STRANGER), *lines[place + 1 :]]
        report = judge(forged)
        assert kinds(report)[Kind.FOREIGN_SIGNATURE] == 1
        # Even who knows no key sees that two have signed.
        assert Kind.FOREIGN_SIGNATURE in kinds(judge(forged, public_key=None))
        assert read_mark(forged).payload == PAYLOAD


def test_a_whole_log_forged_with_another_key_needs_the_key_to_show() -> None:
    forged = write_lines(records_of(one_session())[5:], signer=STRANGER)
    assert judge(forged, public_key=None).findings == ()
    assert judge(forged, public_key=None).signers == (STRANGER.public_key,)
    assert set(kinds(judge(forged))) == {Kind.FOREIGN_SIGNATURE, Kind.UNSIGNED}


def test_a_signature_under_another_name_is_bad() -> None:
    """The stranger signs, and claims our key."""
    lines = list(one_session())
    lines[62] = replace(signed_again(checkpoints_of(lines)[2], STRANGER), public_key=SIGNER.public_key)
    assert kinds(judge(lines)) == {Kind.BAD_SIGNATURE: 1, Kind.UNCHECKED: 1}


@pytest.mark.parametrize("member", ["sessions", "total", "previous", "time", "public_key", "signature"])
def test_altering_any_member_of_a_checkpoint_shows(member: str) -> None:
    checkpoint = checkpoints_of(one_session())[1]
    other: dict[str, Any] = {
        "sessions": {"s": Statement(1, "ab" * 32)},
        "total": 41,
        "previous": None,
        "time": "2027-01-02T03:04:05+00:00",
        "public_key": STRANGER.public_key,
        "signature": "00" * 64,
    }
    lines = list(one_session())
    lines[41] = replace(checkpoint, **{member: other[member]})
    assert kinds(judge(lines))[Kind.BAD_SIGNATURE] == 1
    assert not judge(lines, public_key=None).intact


def test_a_rotated_key_is_trusted_when_both_are_given(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=20)
    for half, signer in ((records[:10], SIGNER), (records[10:], STRANGER)):
        append(path, half, signer=signer)
    reader = open_log(path)
    both = verify_chain(list(reader), reader.summary.checkpoints, [SIGNER.public_key, STRANGER.public_key])
    assert both.findings == ()
    one = verify_chain(reader, list(reader.summary.checkpoints), SIGNER.public_key)
    assert set(kinds(one)) == {Kind.FOREIGN_SIGNATURE, Kind.UNCHECKED}


def test_a_session_that_is_gone_with_its_checkpoint_is_still_counted() -> None:
    """The totals of the checkpoints that are left count it."""
    lines = write_lines(marked_log(KEY, steps=10, sessions=3), every=10)
    left = [*lines[:11], *lines[22:]]
    report = judge(left)
    assert Kind.CHECKPOINT_BREAK in kinds(report)
    assert count_of(report, Kind.MISSING_SESSION) == 10


def test_an_anchor_holds_the_log_up_to_it() -> None:
    """Cutting back to an earlier checkpoint leaves a log that was once whole. Only what is kept elsewhere shows it."""
    cut = one_session()[:42]
    assert judge(cut).findings == ()
    anchor = judge(one_session()).last_checkpoint
    assert kinds(judge(cut, anchor=anchor)) == {Kind.ANCHOR_MISSING: 1}
    assert judge(one_session(), anchor=anchor).findings == ()
    assert judge(one_session(), anchor=checkpoints_of(cut)[0].digest).findings == ()
    with pytest.raises(SettingError, match="anchor"):
        judge(cut, anchor="nonsense")


def test_who_holds_the_signing_key_can_rewrite_all_but_what_is_anchored() -> None:
    rewritten = write_lines(records_of(one_session())[7:])
    assert judge(rewritten).findings == ()
    assert not judge(rewritten, anchor=checkpoints_of(one_session())[0].digest).intact


def test_a_wrong_public_key_is_an_error_and_no_finding() -> None:
    for text in ("", "abc", SIGNER.public_key.upper(), SIGNER.public_key + "00"):
        with pytest.raises(SigningError):
            judge(one_session(), public_key=text)


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"agentmark_checkpoint": 2}, "agentmark_checkpoint"),
        ({"agentmark_checkpoint": True}, "agentmark_checkpoint"),
        ({"sessions": []}, "sessions"),
        ({"sessions": {"": {"count": 1, "head": "ab" * 32}}}, "sessions"),
        ({"sessions": {"s": {"count": 0, "head": "ab" * 32}}}, "sessions"),
        ({"sessions": {"s": {"count": 1.0, "head": "ab" * 32}}}, "sessions"),
        ({"sessions": {"s": {"count": 1, "head": "AB" * 32}}}, "sessions"),
        ({"sessions": {"s": {"count": 1}}}, "sessions"),
        ({"total": -1}, "total"),
        ({"total": True}, "total"),
        ({"previous": ""}, "previous"),
        ({"time": "yesterday"}, "time"),
        ({"time": "2026-01-02T03:04:05"}, "time"),
        ({"time": "2026-01-02T03:04:05+02:00"}, "time"),
        ({"public_key": "ab"}, "public_key"),
        ({"signature": None}, "signature"),
        ({"note": "x"}, "note"),
    ],
)
def test_a_malformed_checkpoint_is_refused_and_never_stops_the_records(
    tmp_path: Path, members: dict[str, Any], field: str
) -> None:
    content = checkpoints_of(one_session())[0].as_dict() | members
    with pytest.raises(RecordError) as caught:
        Checkpoint.from_dict(content)
    assert caught.value.field == field
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(content) + "\n" + records_of(one_session())[0].to_json() + "\n")
    reader = open_log(path)
    assert len(list(reader)) == 1
    assert [error.field for error in reader.summary.bad_checkpoints] == [field]
    assert Kind.UNREADABLE in kinds(check_file(path))


def test_a_checkpoint_lacks_nothing() -> None:
    content = checkpoints_of(one_session())[0].as_dict()
    for name in content:
        with pytest.raises(RecordError, match="missing"):
            Checkpoint.from_dict({key: value for key, value in content.items() if key != name})
    with pytest.raises(RecordError, match="twice"):
        Checkpoint.from_json(json.dumps(content).replace('"total"', '"total": 1, "total"'))
    assert Checkpoint.from_json(json.dumps(content)) == checkpoints_of(one_session())[0]


def test_a_record_is_not_taken_for_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    record = replace(marked_log(KEY, steps=1)[0], meta={"agentmark_checkpoint": 1})
    path.write_text(record.to_json() + "\n")
    assert list(open_log(path)) == [record]
    # Nor is a record hidden from the mark's reader by naming it one.
    path.write_text(json.dumps(record.as_dict() | {"agentmark_checkpoint": 1}) + "\n")
    with pytest.raises(RecordError, match="agentmark_checkpoint"):
        list(open_log(path))


# Files


def append(
    path: Path, records: Iterable[StepRecord], *, signer: SigningKey | None = SIGNER, every: int = 7, **settings: Any
) -> None:
    with LogWriter(path, chain=ChainWriter(signer, every=every, clock=lambda: TIME), **settings) as log:
        for record in records:
            log.write(record)


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
    append(path, records[:6], every=100)
    whole = path.read_bytes()
    *lines, last = whole.splitlines(keepends=True)
    if torn == "record":
        lines, last = lines[:-1], lines[-1]
    before = b"".join(lines)
    for cut in range(1, len(last), 7):
        path.write_bytes(before + last[:cut])
        append(path, records[6:])
        reader = open_log(path)
        assert len(list(reader)) == (9 if torn == "checkpoint" else 8), cut
        assert reader.summary.torn_lines == (len(lines) + 1,)
        assert reader.summary.bad_checkpoints == ()
        assert check_file(path).findings == (), cut
    # Only the line feed is lost: then the record, or the checkpoint, is there.
    path.write_bytes(before + last[:-1])
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


def test_records_from_a_chained_log_join_another_chain() -> None:
    again = write_lines(records_of(one_session())[::-1])
    assert judge(again).findings == ()


def test_a_missing_package_is_said_and_linking_does_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=6)
    append(path, records[:3])
    lines = write_lines(records, signer=None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    for use in (SigningKey.generate, lambda: check_public_key(SIGNER.public_key), lambda: check_file(path)):
        with pytest.raises(SigningError, match=r"pip install agentmark\[signed\]"):
            use()
    assert judge(lines, public_key=None).intact
    # A log with checkpoints is read, and linked on, without the package that would judge them.
    append(path, records[3:], signer=None)
    assert len(list(open_log(path))) == 6
    monkeypatch.undo()
    assert check_file(path).intact


def test_the_page_runs_as_pasted(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "chain.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "Intact: 250 records of 1 session, all vouched for by signed checkpoints.\n", done.stderr
    for kind in FindingKind:
        assert f"`{kind.value}`" in page


# The commands


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)
    KEY.save("key.json")

    def call(command: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        status = main(command.split())
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


EMBED = "embed --key key.json --payload 42 --payload-len 8 --log log.jsonl"
WEIGHTS = '{"Search": 0.4, "Book": 0.25, "Pay": 0.35}\n'


def test_from_a_signing_key_to_a_finding(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, _ = run("signing-key signing.json")
    assert status == 0
    public_key = out.split()[-1]
    for _ in range(2):
        status, _, err = run(f"{EMBED} --chain --signing-key signing.json", WEIGHTS * 30)
        assert (status, err) == (0, "")
    status, out, _ = run(f"chain log.jsonl --public-key {public_key}")
    assert status == 0
    assert out.startswith("Intact: 60 records of 2 sessions, all vouched for")
    anchor = next(line.split()[2] for line in out.splitlines() if "last checkpoint" in line)
    assert run(f"chain log.jsonl --public-key {public_key} --anchor {anchor}")[0] == 0
    assert "nobody vouches for this key" in run("chain log.jsonl")[1]
    lines = Path("log.jsonl").read_text().splitlines(keepends=True)
    Path("log.jsonl").write_text("".join(lines[:5] + lines[7:]) + lines[0][:30])
    status, out, err = run(f"chain log.jsonl --public-key {public_key}")
    assert status == 1
    assert "records are missing between line 5 (step 4) and line 6 (step 7), 2 by the count of a checkpoint" in out
    assert "log.jsonl:61: cut short by a crash" in err
    status, out, _ = run("chain log.jsonl --json")
    report = json.loads(out)
    assert status == 1
    assert (report["intact"], report["torn_lines"], report["record_count"]) == (False, [61], 58)
    assert {finding["kind"] for finding in report["findings"]} == {"gap", "unchecked"}
    assert run("verify log.jsonl --key key.json")[0] == 0, "the mark is read all the same"


def test_a_broken_line_is_a_finding_and_a_file_of_nothing_else_is_bad_input(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    run(f"{EMBED} --chain", WEIGHTS * 3)
    status, out, _ = run("chain log.jsonl")
    assert status == 0
    assert "no checkpoint vouches for any record" in out
    with Path("log.jsonl").open("a") as file:
        file.write('{"agentmark":7}\n')
    status, out, _ = run("chain log.jsonl")
    assert status == 1
    assert "record log.jsonl:4: agentmark: found 7" in out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("chain none.jsonl", "none.jsonl: No such file"),
        ("chain key.json", "not an AgentMark step record"),
        ("chain log.jsonl --public-key abc", "is not a public key"),
        ("chain log.jsonl --anchor abc", "anchor"),
        ("signing-key key.json", "exists already"),
        (f"{EMBED} --signing-key none.json", "give --chain as well"),
        (f"{EMBED} --chain --signing-key none.json", "none.json: cannot be read"),
        ("embed --key key.json --payload 42 --payload-len 8 --chain", "give --log as well"),
    ],
)
def test_bad_input_is_exit_two(run: Callable[..., tuple[int, str, str]], command: str, message: str) -> None:
    run(f"{EMBED} --chain", WEIGHTS)
    status, _, err = run(command)
    assert status == 2
    assert message in err
