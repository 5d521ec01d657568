"""The record and its log: strict, streaming, and hard to lose."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import TICKET_WEIGHTS, marked_log

from agentmark import Embedder, LogWriter, RecordError, RecordVersionError, SharedKey, StepRecord, open_log

KEY = SharedKey(bytes(range(100, 132)))


def a_record(**changes: Any) -> StepRecord:
    record = Embedder(KEY, 5, payload_len=8).session("s1").choose(TICKET_WEIGHTS).record
    return replace(record, **changes)


def test_a_record_is_one_line_of_json_without_floats_or_secrets() -> None:
    record = a_record()
    line = record.to_json()
    assert "\n" not in line
    content = json.loads(line, parse_float=lambda text: pytest.fail(f"float {text} in a record"))
    assert set(content) == {
        "agentmark",
        "scheme",
        "key_id",
        "payload_len",
        "session",
        "step",
        "context",
        "weights",
        "choice",
        "marked",
    }
    step_key = KEY.step_key(record.context, 8)
    assert step_key.hex() not in line
    assert StepRecord.from_json(line) == record


@given(st.permutations(list(range(10))), st.permutations(list(range(5))))
def test_the_order_of_members_means_nothing(members: list[int], weights: list[int]) -> None:
    record = a_record()
    content = record.as_dict()
    content["weights"] = dict([list(content["weights"].items())[i] for i in weights])
    shuffled = dict([list(content.items())[i] for i in members])
    assert StepRecord.from_json(json.dumps(shuffled)) == record


def broken(change: Callable[[dict[str, Any]], Any]) -> str:
    content = a_record().as_dict()
    change(content)
    return json.dumps(content)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("{nonsense", "line"),
        ("[1]", "record"),
        ("{}", "agentmark"),
        (broken(lambda c: c.pop("weights")), "weights"),
        (broken(lambda c: c.update(colour="red")), "colour"),
        (broken(lambda c: c.update(weights={"a": 1})), "weights"),
        (broken(lambda c: c["weights"].update(Search=0.5)), "weights['Search']"),
        (broken(lambda c: c["weights"].update(Search=-1)), "weights['Search']"),
        (broken(lambda c: c.update(weights=[1, 2])), "weights"),
        (broken(lambda c: c.update(weights=None)), "weights"),
        (broken(lambda c: c.update(choice="Fly")), "choice"),
        (broken(lambda c: c.update(choice=7)), "choice"),
        (broken(lambda c: c.update(marked="yes")), "marked"),
        (broken(lambda c: c.update(marked=False)), "reason"),
        (broken(lambda c: c.update(step=-1)), "step"),
        (broken(lambda c: c.update(step=True)), "step"),
        (broken(lambda c: c.update(session="")), "session"),
        (broken(lambda c: c.update(context="ab")), "context"),
        (broken(lambda c: c.update(context=c["context"].upper() + "")), "context"),
        (broken(lambda c: c.update(payload_len=-1)), "payload_len"),
        (broken(lambda c: c.update(payload_len=True)), "payload_len"),
        (broken(lambda c: c.update(enforced="no")), "enforced"),
        (broken(lambda c: c.update(raw_context=[])), "raw_context"),
        (broken(lambda c: c.update(meta={"t": 0.5})), "meta.t"),
        (a_record().to_json().replace('"choice":', '"step":1,"choice":'), "step"),
        (a_record().to_json().replace('"Book":', '"Search":'), "Search"),
    ],
)
def test_a_broken_record_names_itself_and_its_field(line: str, field: str) -> None:
    with pytest.raises(RecordError) as caught:
        StepRecord.from_json(line, where="log.jsonl:17")
    assert caught.value.field == field
    assert str(caught.value).startswith("record log.jsonl:17: ")


@pytest.mark.parametrize(
    ("change", "found"), [({"agentmark": 2}, "2"), ({"agentmark": "1"}, "'1'"), ({"scheme": "Q"}, "'Q'")]
)
def test_an_unknown_version_or_scheme_names_both(change: dict[str, Any], found: str) -> None:
    with pytest.raises(RecordVersionError, match=f"found {found}, this build reads .*version 1"):
        StepRecord.from_json(broken(lambda c: c.update(change)))


def test_optional_members_may_be_null() -> None:
    line = broken(lambda c: c.update(reason=None, enforced=None, raw_context=None, meta=None))
    assert StepRecord.from_json(line) == a_record()


def test_a_raw_context_shows_whether_it_was_touched() -> None:
    record = Embedder(KEY, 5, payload_len=8, keep_context=True).session().choose(TICKET_WEIGHTS).record
    assert record.context_matches() is True
    assert replace(record, raw_context={"session": "x", "step": 0}).context_matches() is False
    assert a_record().context_matches() is None


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


def test_every_possible_cut_of_the_last_line_is_read_up_to(tmp_path: Path) -> None:
    """A crash may tear the last line anywhere, inside a character too; the records before it are all there."""
    good = a_record()
    last = Embedder(KEY, 5, payload_len=8).session("s2").choose({"Zürich 😀": 1, 'b\\"{}': 1}).record
    head = good.to_json().encode() + b"\n"
    tail = last.to_json().encode()
    path = tmp_path / "log.jsonl"
    for cut in range(1, len(tail)):
        path.write_bytes(head + tail[:cut])
        reader = open_log(path)
        assert list(reader) == [good], cut
        assert reader.summary.torn_lines == (2,)


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


def test_a_packed_log_that_was_cut_is_read_up_to_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.gz"
    records = marked_log(KEY, steps=200)
    packed = gzip.compress("".join(record.to_json() + "\n" for record in records).encode())
    path.write_bytes(packed[: len(packed) // 2])
    reader = open_log(path)
    read = list(reader)
    assert 0 < len(read) < 200
    assert read == records[: len(read)]
    assert reader.summary.torn_lines


LINE = a_record().to_json()
HOSTILE_LINES = {
    "byte order mark": b"\xef\xbb\xbf" + LINE.encode(),
    "utf-16": LINE.encode("utf-16"),
    "long integer": LINE.replace('"choice"', '"meta":{"x":' + "9" * 5000 + '},"choice"').encode(),
    "deep list": b"[" * 100_000,
    "deep meta": LINE.replace('"choice"', '"meta":' + '{"x":' * 900 + "1" + "}" * 900 + ',"choice"').encode(),
    "deep context": LINE.replace('"choice"', '"raw_context":' + '{"x":' * 496 + "1" + "}" * 496 + ',"choice"').encode(),
    "long weights": LINE.replace('"weights":{', f'"weights":{{"x":{"9" * 4300},"y":{"9" * 4300},').encode(),
    "repeated": b'{"agentmark":1,"weights":{' + b",".join(b'"b%d":1' % (i % 39_999) for i in range(40_000)) + b"}}",
    "binary": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("line", HOSTILE_LINES.values(), ids=HOSTILE_LINES.keys())
def test_no_line_can_stop_the_reader(tmp_path: Path, line: bytes) -> None:
    """What an adversary may append: each is one bad line with its number, and never any other exception."""
    path = tmp_path / "log.jsonl"
    good = a_record()
    path.write_bytes(line + b"\n" + good.to_json().encode() + b"\n")
    with pytest.raises(RecordError):
        list(open_log(path))
    reader = open_log(path, skip_bad=True)
    assert list(reader) == [good]
    assert len(reader.summary.bad_lines) + len(reader.summary.torn_lines) == 1


def test_a_bad_line_raises_or_is_listed_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    records = marked_log(KEY, steps=2)
    lines = [records[0].to_json(), '{"agentmark":9}', "free text", "", records[1].to_json()]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(RecordVersionError, match=r"log\.jsonl:2"):
        list(open_log(path))
    reader = open_log(path, skip_bad=True)
    assert list(reader) == records
    assert [error.where for error in reader.summary.bad_lines] == ["log.jsonl:2", "log.jsonl:3"]


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
