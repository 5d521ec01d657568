"""Tamper-evident logs: every attack shows, and none of them stops the mark from being read."""

import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from chained_logs import (
    KEY,
    OTHER_KEY,
    PAYLOAD,
    SIGNER,
    Kind,
    Line,
    changed,
    check_file,
    checkpoints_of,
    count_of,
    judge,
    kinds,
    one_session,
    read_mark,
    records_of,
    two_sessions,
    without,
    write_lines,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import marked_log

from agentmark import RecordError, StepRecord, Verifier
from agentmark.chain.checkpoint import Checkpoint
from agentmark.chain.findings import FindingKind
from agentmark.chain.links import link_digest, start_digest


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


def test_the_page_runs_as_pasted(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "chain.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "Intact: 250 records of 1 session, all vouched for by signed checkpoints.\n", done.stderr
    for kind in FindingKind:
        assert f"`{kind.value}`" in page
