"""The same file read record by record and in chunks: they must say the same, to the word."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from log_shapes import LINES
from one_record import a_record

from agentmark import Limits, StepRecord
from agentmark.batch.chunks import read_chunks
from agentmark.batch.columns import StepColumns
from agentmark.core.context import context_digest
from agentmark.core.errors import AgentMarkError
from agentmark.log.read.limits import DEFAULT_LIMITS
from agentmark.log.read.open import open_log
from agentmark.log.read.summary import LogSummary

VECTORS = Path(__file__).parents[2] / "vectors"


@dataclass
class Told:
    """What one way of reading made of a file: the records with their lines, and how it ended."""

    records: list[tuple[StepRecord, int | None, bool]]
    ending: object


def known(record: StepRecord) -> StepRecord:
    """A record without what columns leave out."""
    return replace(record, meta=None, raw_context=None, reason=None, prev=None)


def plainly(path: Path, *, skip_bad: bool, limits: Limits = DEFAULT_LIMITS) -> Told:
    told = Told([], None)
    log = open_log(path, skip_bad=skip_bad, limits=limits)
    try:
        for entry in log.entries():
            told.records.append((known(entry.record), entry.line, entry.record.context_matches() is False))
        told.ending = comparable(log.summary)
    except AgentMarkError as error:
        told.ending = (type(error), str(error))
    return told


def in_chunks(path: Path, *, skip_bad: bool, limits: Limits = DEFAULT_LIMITS, rows: int = 1000) -> Told:
    told = Told([], None)
    log = read_chunks(path, skip_bad=skip_bad, limits=limits, rows=rows)
    try:
        for columns in log:
            told.records += rows_of(columns)
        told.ending = comparable(log.summary)
    except AgentMarkError as error:
        told.ending = (type(error), str(error))
    return told


def rows_of(columns: StepColumns) -> list[tuple[StepRecord, int | None, bool]]:
    assert StepColumns.from_bytes(columns.to_bytes()).line.tolist() == columns.line.tolist()
    used = columns.take(np.arange(len(columns), dtype=np.int64))
    assert (used.sessions, used.key_ids, used.names) == (columns.sessions, columns.key_ids, columns.names)
    lines = [None if line < 0 else line for line in columns.line.tolist()]
    return [
        (columns.record(row), line, bool(columns.mismatch[row]))
        for row, line in zip(range(len(columns)), lines, strict=True)
    ]


def comparable(summary: LogSummary) -> object:
    """Errors are equal if they are of one kind and say the same."""
    told = {name: getattr(summary, name) for name in summary.__slots__}
    for name in ("bad_lines", "bad_checkpoints"):
        told[name] = [(type(error), str(error)) for error in told[name]]
    return told | {"passed_over": summary.passed_over}


def check_alike(path: Path, *, limits: Limits = DEFAULT_LIMITS) -> Told:
    """Compare both ways, passing over what is bad and stopping at it; what was read while passing over it."""
    for skip_bad in (False, True):
        plain, chunked = (
            plainly(path, skip_bad=skip_bad, limits=limits),
            in_chunks(path, skip_bad=skip_bad, limits=limits),
        )
        assert chunked.ending == plain.ending
        assert chunked.records == plain.records
    return plain


def valid_lines() -> list[bytes]:
    """Lines of records of every kind that our writers make, and of some that they do not."""
    lines = [json.loads(line) for line in LINES]
    vectors = json.loads((VECTORS / "record.json").read_text(encoding="utf-8"))["valid"]
    raw = {"session": "s1", "step": 0, "observation": 'say "hi"\\n', "history": ["a", {"b": None}]}
    made = [
        a_record(),
        a_record(session="tenant:a b", key_id="k:1"),
        a_record(distribution=None, partial_weights={"Pay": 1, "Book": 3000000000}),
        a_record(distribution=None, partial_weights={}),
        a_record(distribution=None, marked=False, reason="no list"),
        a_record(marked=False, reason='a "reason": \\ and more', enforced=False),
        a_record(enforced=True, prev="ab" * 32),
        a_record(raw_context=raw, context=context_digest(raw)),
        a_record(raw_context=raw),
        a_record(raw_context={}),
        a_record(meta={}),
        a_record(
            meta={"elicitor": "verbalised", "model": "m-1.5", "latency_ms": 812, "input_tokens": 1200, "ok": True}
        ),
        a_record(meta={"unseen": ["a", "b"], "nested": {"x": {"y": [1, "z", None, {"q": -5}]}}, "did": 'call("x")'}),
        a_record(behavior="Wörld", distribution=None, partial_weights={"Wörld": 7, "漢字": 8, "\U0001f600": 9}),
    ]
    dicts = [record.as_dict() for record in made] + lines + [json.loads(vector["line"]) for vector in vectors]
    return [as_line(content) for content in dicts] + [vector["line"].encode() for vector in vectors]


def as_line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def invalid_lines() -> list[bytes]:
    vectors = json.loads((VECTORS / "record.json").read_text(encoding="utf-8"))["invalid"]
    lines = json.loads((VECTORS / "lines.json").read_text(encoding="utf-8"))["lines"]
    return [vector["line"].encode("utf-8", "surrogatepass") for vector in vectors] + [
        bytes.fromhex(vector["line"]) for vector in lines
    ]


# Small pieces that change what JSON means, or who reads it how.
_PIECES = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"\t", b"\r", b"\x0c", b"\x0b", b"\x00", b"\x1f", b"\x7f",
    b"\xc3", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\u0022", b"\\u003a", b"\\ud800", b"\\ud83d\\ude00", b'\\"',
    b"\\\\", b"\\/", b"null", b"true", b"NaN", b"Infinity", b"-", b"-0", b"0", b"1", b".0", b"e0", b"E1", b"1e9", b"00",
    b"9007199254740992", b"99999999999999999999", b'"meta":{},', b'"agentmark":1,', b'"agentmark_checkpoint":1,',
    b'"x":1,', b"{}", b"[[]]", b'{"a":1,"a":2}', b'""', b"\n", b"}\n{", b"}{",
]  # fmt: skip
_MEMBER = re.compile(rb'"[a-z_]+":("[^"\\]*"|\{[^{}]*\}|[0-9]+|true|false|null)')
_NUMBER = re.compile(rb"(?<=[:,\[])-?[0-9]+")


def mutated(line: bytes, rng: random.Random) -> bytes:
    """A line with something done to it."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        line = rng.choice(_MUTATIONS)(line, rng)
    return line


def _flip(line: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(line) + 1)
    return line[:at] + bytes([rng.randrange(256)]) + line[at + 1 :]


def _put(line: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(line) + 1)
    return line[:at] + rng.choice(_PIECES) + line[at + rng.choice([0, 0, 1]) :]


def _drop(line: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(line) + 1)
    return line[:at] + line[at + rng.randint(1, 5) :]


def _cut(line: bytes, rng: random.Random) -> bytes:
    return line[: rng.randrange(len(line) + 1)]


def _double(line: bytes, rng: random.Random) -> bytes:
    members = list(_MEMBER.finditer(line))
    if not members:
        return line
    member = rng.choice(members)
    place = rng.choice(members)
    return line[: place.start()] + member[0] + b"," + line[place.start() :]


def _respell(line: bytes, rng: random.Random) -> bytes:
    numbers = list(_NUMBER.finditer(line))
    if not numbers:
        return line
    number = rng.choice(numbers)
    spelled = (
        rng.choice([b"%s.0", b"%se0", b"-%s", b"0%s", b"%s0", b"%sE+0", b" %s ", b'"%s"', b"%s.", b"+%s"]) % number[0]
    )
    return line[: number.start()] + spelled + line[number.end() :]


def _space(line: bytes, rng: random.Random) -> bytes:
    places = [match.start() for match in re.finditer(rb"[:,{}]", line)] or [0]
    at = rng.choice(places) + rng.choice([0, 1])
    return line[:at] + rng.choice([b" ", b"\t", b"\r", b"  ", b"\x0b", b"\xc2\xa0", b"\x0c"]) + line[at:]


def _escape(line: bytes, rng: random.Random) -> bytes:
    letters = [match.start() for match in re.finditer(rb"[A-Za-z0-9:]", line)]
    if not letters:
        return line
    at = rng.choice(letters)
    return line[:at] + b"\\u%04x" % line[at] + line[at + 1 :]


def _swap_value(line: bytes, rng: random.Random) -> bytes:
    members = list(_MEMBER.finditer(line))
    if not members:
        return line
    member = rng.choice(members)
    values = [
        b"null",
        b"true",
        b"false",
        b"0",
        b"1",
        b"-1",
        b"1.5",
        b'""',
        b'"x"',
        b"[]",
        b"{}",
        b'{"a":4294967296}',
        b"4096",
        b"4097",
    ]
    return line[: member.start(1)] + rng.choice(values) + line[member.end(1) :]


def _shuffle(line: bytes, rng: random.Random) -> bytes:
    try:
        content = json.loads(line)
    except ValueError:
        return line
    if not isinstance(content, dict):
        return line
    members = list(content.items())
    rng.shuffle(members)
    content = dict(members)
    weights = content.get("weights")
    if isinstance(weights, dict):
        listed = list(weights.items())
        rng.shuffle(listed)
        content["weights"] = dict(listed)
    return json.dumps(content, ensure_ascii=rng.random() < 0.3).encode("utf-8", "surrogatepass")


_MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    _flip, _put, _put, _drop, _cut, _double, _double, _respell, _space, _escape, _swap_value, _shuffle,
]  # fmt: skip


def a_damaged_log(rng: random.Random, count: int) -> bytes:
    """Lines of every kind, some of them mutated, with line feeds that may be missing."""
    valid, invalid = valid_lines(), invalid_lines()
    lines = []
    for _ in range(count):
        kind = rng.random()
        line = rng.choice(invalid) if kind < 0.05 else rng.choice(valid)
        lines.append(line if kind > 0.85 else mutated(line, rng))
    ends = [rng.choice([b"\n"] * 20 + [b"\r\n", b"\n\n", b" \n", b"\n \t\n"]) for _ in lines]
    log = b"".join(line + end for line, end in zip(lines, ends, strict=True))
    return LINES[0].encode() + b"\n" + (log if rng.random() < 0.7 else log.rstrip(b"\n"))
