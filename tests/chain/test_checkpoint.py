"""Checkpoints: what is signed, what is refused, and whose signature counts."""

import json
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

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
    judge,
    kinds,
    one_session,
    read_mark,
    records_of,
    signed_again,
    write_lines,
)
from support import marked_log

from agentmark import RecordError, SettingError, open_log
from agentmark.chain.check import verify_chain
from agentmark.chain.checkpoint import Checkpoint, Statement
from agentmark.chain.writer import ChainWriter
from agentmark.keys.signing import SigningError, verify_signature


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
    records = marked_log(KEY, steps=20, sessions=2)
    append(path, [*records[:10], *records[20:30]])
    append(path, [*records[10:20], *records[30:]], signer=STRANGER, predecessors=[SIGNER.public_key])
    reader = open_log(path)
    both = verify_chain(list(reader), reader.summary.checkpoints, [SIGNER.public_key, STRANGER.public_key])
    assert both.findings == ()
    assert both.checked_count == 40
    one = verify_chain(reader, list(reader.summary.checkpoints), SIGNER.public_key)
    assert set(kinds(one)) == {Kind.FOREIGN_SIGNATURE, Kind.UNCHECKED}


def test_a_new_key_vouches_for_nothing_that_an_unnamed_one_signed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It cannot know whose that is. Sessions that it begins itself are whole, and the old ones keep their signature."""
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=10, sessions=3)
    append(path, records[:10])
    append(path, records[10:20], signer=STRANGER)
    keys = [SIGNER.public_key, STRANGER.public_key]
    reader = open_log(path)
    assert verify_chain(list(reader), reader.summary.checkpoints, keys).findings == ()
    assert "name the former one as predecessor" in caplog.text
    # A session of the former key's is not gone on with: it begins a second time, which shows.
    append(path, [replace(record, session=records[0].session) for record in records[20:]], signer=STRANGER)
    reader = open_log(path)
    assert not verify_chain(list(reader), reader.summary.checkpoints, keys).intact
    with pytest.raises(SettingError, match="predecessors"):
        ChainWriter(predecessors=[SIGNER.public_key])
    with pytest.raises(SigningError, match="not a public key"):
        ChainWriter(SIGNER, predecessors=["abc"])


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
