"""JSON lines into columns: the records, errors and summary of the plain reader, whatever was done to the lines."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from both_ways import VECTORS, a_damaged_log, as_line, check_alike, in_chunks, invalid_lines, valid_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_shapes import LINES
from one_record import a_record

from agentmark import Limits
from agentmark.batch import from_lines
from agentmark.batch.chunks import read_chunks
from agentmark.core.distribution import TOTAL_WEIGHT
from agentmark.log.read import meter
from agentmark.log.read.events import Event
from agentmark.log.read.limits import LimitError
from agentmark.log.read.open import UnreadLogError

MIB = 1 << 20
# Whatever reads the lines, msgspec or the native library.
pytestmark = pytest.mark.usefixtures("both_engines")


@pytest.fixture
def plain_lines(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines that were left to the plain reader."""
    seen: list[bytes] = []
    read = from_lines.read_record_line

    def watched(line: bytes, where: str, number: int) -> Event:
        seen.append(line)
        return read(line, where, number)

    monkeypatch.setattr(from_lines, "read_record_line", watched)
    return seen


def a_log(tmp_path: Path, lines: list[bytes], pack: Callable[[bytes], bytes] = bytes) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_bytes(pack(b"".join(line + b"\n" for line in lines)))
    return path


def test_what_our_writers_write_never_needs_the_plain_reader(tmp_path: Path, plain_lines: list[bytes]) -> None:
    lines = [line.encode() for line in LINES] + valid_lines()
    usual = [line for line in lines if b"\\u" not in line and line.startswith(b"{") and line.endswith(b"}")]
    assert len(usual) > 60
    told = check_alike(a_log(tmp_path, usual))
    assert len(told.records) == len(usual)
    assert plain_lines == []


def test_every_line_of_the_vectors_is_read_alike(tmp_path: Path) -> None:
    valid, invalid = valid_lines(), invalid_lines()
    check_alike(a_log(tmp_path, [*valid, *invalid, *valid]))
    for line in invalid:
        # Among good ones, so that it is tried the fast way; and as the last one, without its line feed.
        check_alike(a_log(tmp_path, [valid[0], valid[1], line, valid[2], valid[3]]))
        path = a_log(tmp_path, [valid[0]])
        path.write_bytes(path.read_bytes() + line)
        check_alike(path)


def test_every_file_of_the_vectors_is_read_alike(tmp_path: Path) -> None:
    logs = json.loads((VECTORS / "lines.json").read_text(encoding="utf-8"))["logs"]
    for vector in logs:
        path = tmp_path / "log.jsonl"
        path.write_bytes(bytes.fromhex(vector["file"]))
        check_alike(path)


@pytest.mark.parametrize("seed", range(6))
def test_damaged_logs_are_read_alike(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path / "log.jsonl"
    pack = rng.choice([bytes, gzip.compress])
    path.write_bytes(pack(a_damaged_log(rng, 250)))
    check_alike(path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    line=st.sampled_from(valid_lines()),
    cuts=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), st.binary(max_size=6)), min_size=1, max_size=3),
)
def test_any_change_of_bytes_is_read_alike(tmp_path: Path, line: bytes, cuts: list[tuple[float, int, bytes]]) -> None:
    for place, length, put in cuts:
        at = int(place * len(line))
        line = line[:at] + put + line[at + length :]
    good = [text.encode() for text in LINES[:4]]
    check_alike(a_log(tmp_path, [*good, line, *good]))


# The plain reader refuses each of these, and msgspec by itself would read most.
TRICKS = {
    "a name twice": lambda line: line.replace(b'"step":0', b'"step":9,"step":0'),
    "a behavior twice": lambda line: line.replace(b'"Pay":', b'"Pay":1,"Pay":'),
    "a name twice, once escaped": lambda line: line.replace(b'"step":0', b'"st\\u0065p":9,"step":0'),
    "a name twice in meta": lambda line: line[:-1] + b',"meta":{"a":1,"a":2}}',
    "a name twice deep in meta": lambda line: line[:-1] + b',"meta":{"x":[{"a":"b","a":"c"}]}}',
    "a name twice, hidden behind quotes in a text": lambda line: (
        line[:-1] + b',"reason":"\\"\\"","meta":{"a":1},"meta":{"a":1}}'
    ),
    "meta twice": lambda line: line[:-1] + b',"meta":{},"meta":{}}',
    "meta twice, once null": lambda line: line[:-1] + b',"meta":null,"meta":{}}',
    "a fraction": lambda line: line.replace(b'"step":0', b'"step":0.0'),
    "an exponent": lambda line: line.replace(b'"payload_len":8', b'"payload_len":8e0'),
    "a fraction in meta": lambda line: line[:-1] + b',"meta":{"a":1.5}}',
    "a huge number in meta": lambda line: line[:-1] + b',"meta":{"a":9007199254740992}}',
    "deep meta": lambda line: line[:-1] + b',"meta":{"a":' + b"[" * 70 + b"]" * 70 + b"}}",
    "very deep meta": lambda line: line[:-1] + b',"meta":{"a":' + b"[" * 9000 + b"]" * 9000 + b"}}",
    "bytes that are no text in meta": lambda line: line[:-1] + b',"meta":{"a":"\xff"}}',
    "half a letter": lambda line: line.replace(b"Search", b"Se\xed\xa0\x80rch"),
    "half a pair of escapes": lambda line: line.replace(b"Search", b"Se\\ud800rch"),
    "two records on a line": lambda line: line + line,
    "two records on a line, a space between": lambda line: line + b" " + line,
    "a record on two lines": lambda line: line.replace(b',"weights":', b',\n"weights":'),
    "two on one line, and one on two, so that the numbers are equal": lambda line: (
        line + line + b"\n" + line.replace(b',"choice":', b'\n,"choice":')
    ),
    "a member too many": lambda line: line[:-1] + b',"more":1}',
    "a byte order mark": lambda line: b"\xef\xbb\xbf" + line,
    "capital digits": lambda line: line.replace(b'"context":"', b'"context":"A', 1).replace(b'","weights', b'"', 1),
    "a digest with spaces": lambda line: (
        line[: line.index(b'"context":"') + 11] + b"ab " * 21 + b"a" + line[line.index(b'","weights') :]
    ),
    "an empty list": lambda line: line[: line.index(b'"weights":') + 10] + b"{}" + line[line.index(b',"choice"') :],
    "an empty name": lambda line: line.replace(b'"Pay":', b'"":'),
    "an empty session": lambda line: line.replace(b'"session":"s1"', b'"session":""'),
    "an empty key id": lambda line: b'{"agentmark":1,"scheme":"F","key_id":"",' + line[line.index(b'"payload_len"') :],
    "an unmarked step that does not say why": lambda line: line.replace(b'"marked":true', b'"marked":false'),
    "an empty reason": lambda line: line[:-1] + b',"reason":""}',
    "a link that is no digest": lambda line: line[:-1] + b',"prev":"abc"}',
    "a choice outside the list": lambda line: line.replace(b'"choice":"', b'"choice":"x'),
    "a truth for a number": lambda line: line.replace(b'"agentmark":1', b'"agentmark":true'),
    "a list of pairs": lambda line: line.replace(b'"weights":{', b'"weights":[{').replace(
        b'},"choice"', b'}],"choice"'
    ),
}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS.keys())
def test_what_the_plain_reader_refuses_is_refused_in_its_words(tmp_path: Path, trick: Callable[[bytes], bytes]) -> None:
    line = a_record().to_json().encode()
    tricked = trick(line)
    assert tricked != line
    others = [text.encode() for text in LINES[:5]]
    told = check_alike(a_log(tmp_path, [*others, tricked, *others]))
    assert len(told.records) == 10


SPELLINGS = {
    "members in another order": lambda line: as_line(dict(reversed(json.loads(line).items()))),
    "spaces": lambda line: json.dumps(json.loads(line)).encode(),
    "a list in another order": lambda line: as_line(
        json.loads(line) | {"weights": dict(reversed(json.loads(line)["weights"].items()))}
    ),
    "a carriage return": lambda line: line + b"\r",
    "minus nothing": lambda line: line.replace(b'"step":0', b'"step":-0'),
    "null where nothing need be": lambda line: (
        line[:-1] + b',"meta":null,"raw_context":null,"reason":null,"enforced":null,"partial":null,"prev":null}'
    ),
    "partial: false": lambda line: line[:-1] + b',"partial":false}',
    "quotes and colons in texts": lambda line: line.replace(b'"s1"', b'"s:\\"1\\" \\\\"'),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_another_spelling_of_a_record_is_read_the_fast_way(
    tmp_path: Path, plain_lines: list[bytes], spelling: Callable[[bytes], bytes]
) -> None:
    line = spelling(a_record().to_json().encode())
    told = check_alike(a_log(tmp_path, [line, line]))
    assert len(told.records) == 2
    assert plain_lines == []


def test_ties_and_zeros_are_put_in_order(tmp_path: Path) -> None:
    quarter = TOTAL_WEIGHT // 4
    content = a_record().as_dict() | {
        "choice": "b",
        "weights": {"z": 0, "b": 3 * quarter, "é": 0, "a": quarter, "Z": 0},
    }
    told = check_alike(a_log(tmp_path, [as_line(content)]))
    assert told.records[0][0].distribution is not None
    assert told.records[0][0].distribution.behaviors == ("b", "a", "Z", "z", "é")


def test_the_parser_is_as_strict_as_it_was_found_to_be() -> None:
    for text in (b"1.0", b"1e0", b"true", b"01", b"NaN", b'"1"'):
        with pytest.raises(msgspec.MsgspecError):
            msgspec.json.decode(text, type=int)
    for text in (b'"\x01"', b'"\xff"', b'"\\x41"', b"'a'"):
        with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError)):
            msgspec.json.decode(text, type=str)


def test_no_text_of_a_line_that_is_no_record_is_in_the_columns(tmp_path: Path) -> None:
    good = a_record().to_json().encode()
    broken = good.replace(b'"key_id":"', b'"key_id":"made up ').replace(b'"session":"', b'"session":"made up ')
    path = a_log(tmp_path, [*[good] * 50, broken.replace(b'"marked":true', b'"marked":7')])
    [columns] = read_chunks(path, skip_bad=True)
    assert len(columns) == 50
    assert not any("made up" in text for text in (*columns.key_ids, *columns.sessions))


def test_a_log_of_many_blocks_comes_in_chunks(tmp_path: Path, plain_lines: list[bytes]) -> None:
    lines = valid_lines()
    many = [lines[i % len(lines)] for i in range(6000)]
    path = a_log(tmp_path, many)
    assert path.stat().st_size > 2 * MIB
    sizes = [len(columns) for columns in read_chunks(path, rows=1500)]
    assert sum(sizes) == 6000
    assert len(sizes) > 1
    assert all(size >= 1500 for size in sizes[:-1])
    check_alike(path)


def test_a_damaged_log_of_many_blocks(tmp_path: Path) -> None:
    rng = random.Random(3)
    good = [text.encode() for text in LINES]
    lines = [rng.choice(good) if rng.random() < 0.999 else b'{"agentmark":1,' for _ in range(4000)]
    check_alike(a_log(tmp_path, lines, gzip.compress))


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_a_packed_log_that_was_cut(tmp_path: Path, keep: float) -> None:
    path = a_log(tmp_path, [text.encode() for text in LINES] * 20)
    packed = gzip.compress(path.read_bytes())
    path.write_bytes(packed[: int(len(packed) * keep)])
    check_alike(path)


def test_blank_lines_cost_next_to_nothing_and_count(tmp_path: Path, plain_lines: list[bytes]) -> None:
    good = LINES[0].encode()
    path = a_log(tmp_path, [good, b"", b" ", b"\t\r", *[b""] * 100_000, good, *[b" "] * 100_000, good])
    told = check_alike(path)
    assert [line for _, line, _ in told.records] == [1, 100_005, 200_006]
    assert len(plain_lines) < 10


LIMITS = {
    "held_bytes": Limits(held_bytes=700),
    "parsed_bytes": Limits(parsed_bytes=3000),
    "unpacked_ratio": Limits(unpacked_ratio=3),
    "unpacked_bytes": Limits(unpacked_bytes=3 * MIB // 2),
    "values_per_byte": Limits(values_per_byte=1),
    "records_per_kib": Limits(records_per_kib=1),
}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
def test_limits_stop_at_the_same_place_with_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    # So that it does not take a hundred megabytes to come to a limit.
    for name, free in (("FREE_VALUES", 20_000), ("FREE_UNPACKED", MIB)):
        monkeypatch.setattr(meter, name, free)
    rng = random.Random(5)
    lines = [*valid_lines(), b'{"agentmark":1,"cut', b"", b'{"agentmark_checkpoint":3}']
    many = [rng.choice(lines) for _ in range(5000)]
    path = a_log(tmp_path, many, lambda data: gzip.compress(data, 9))
    told = check_alike(path, limits=limits)
    assert isinstance(told.ending, tuple)
    assert told.ending[0] is LimitError
    assert told.ending[1].split("--limit ")[1].startswith(f"{limits.as_settings()[0].split('=')[0]}=")


def test_there_is_no_summary_before_the_end(tmp_path: Path) -> None:
    log = read_chunks(a_log(tmp_path, [LINES[0].encode()]))
    with pytest.raises(UnreadLogError):
        _ = log.summary
    assert [len(columns) for columns in log] == [1]
    assert log.summary.record_count == 1
    assert log.summary.format == "AgentMark JSON lines"


def test_an_empty_log_has_no_chunk(tmp_path: Path) -> None:
    path = a_log(tmp_path, [])
    assert in_chunks(path, skip_bad=False).records == []
    check_alike(path)
