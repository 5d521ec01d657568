"""JSON lines on the way in: cut, broken and hostile lines."""

import gzip
from pathlib import Path

import pytest
from one_record import KEY, a_record
from support import marked_log

from agentmark import Embedder, RecordError, RecordVersionError, open_log


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
    assert [error.where for error in reader.summary.bad_lines] == [f"{path}:2", f"{path}:3"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"agentmark":1 garbage',
        LINE.encode() + b" garbage",
        LINE[:40].encode() + b"\0" * 40,
        LINE[:-1].encode() + b"]",
        b'{"agentmark":1,"session":"\xff',
        b'\xef\xbb\xbf{"agentmark_checkpoint":1}',
    ],
)
def test_a_line_that_nothing_could_complete_is_bad_and_not_cut_short(tmp_path: Path, line: bytes) -> None:
    """Passing over it in silence would hide an alteration behind a crash that never happened."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(LINE.encode() + b"\n" + line + b"\n")
    reader = open_log(path, skip_bad=True)
    assert len(list(reader)) == 1
    assert reader.summary.torn_lines == ()
    assert [error.where for error in reader.summary.bad_lines] == [f"{path}:2"]
