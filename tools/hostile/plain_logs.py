"""Logs of plain lines: forged steps, copies, sessions, numbers and nesting."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentmark import Embedder, SharedKey
from hostile.files import MAX_SIZE, HostileFile, Maker
from hostile.records import even_weights, forged, line_of, lines_up_to, unmarked, weights_of

# Room for the line that would not fit.
SIZE = MAX_SIZE - 1000


def _forged_lines(maker: Maker, name: str, **members: Any) -> Iterator[bytes]:
    rng = maker.rng(name)
    return (line_of(forged(rng, maker.key_id, step, **members)) for step in itertools.count())


def f_junk(maker: Maker, path: Path) -> None:
    """Twice as many equations as the payload has bits."""
    lines = _forged_lines(maker, "f junk", payload_len=4096, weights=even_weights(16))
    path.write_bytes(lines_up_to(930_000, lines))


def f_junk_short_lists(maker: Maker, path: Path) -> None:
    rng = maker.rng("f junk, short lists")
    lines = (
        line_of(forged(rng, maker.key_id, step, payload_len=4096, weights=weights_of(rng, 2)))
        for step in itertools.count()
    )
    path.write_bytes(lines_up_to(SIZE, lines))


def r_few_steps(maker: Maker, path: Path) -> None:
    lines = itertools.islice(_forged_lines(maker, "r few steps", scheme="R", weights=even_weights(32)), 12)
    path.write_bytes(b"".join(lines))


def r_some_steps(maker: Maker, path: Path) -> None:
    lines = itertools.islice(_forged_lines(maker, "r some steps", scheme="R", weights=even_weights(4)), 60)
    path.write_bytes(b"".join(lines))


def r_short_payload(maker: Maker, path: Path) -> None:
    """A payload that is found by looking at all of them."""
    lines = _forged_lines(maker, "r short", scheme="R", payload_len=24)
    path.write_bytes(lines_up_to(SIZE, lines))


def f_short_payload(maker: Maker, path: Path) -> None:
    lines = _forged_lines(maker, "f short", payload_len=24)
    path.write_bytes(lines_up_to(SIZE, lines))


def f_medium_payload(maker: Maker, path: Path) -> None:
    lines = _forged_lines(maker, "f medium", payload_len=128, weights=even_weights(4))
    path.write_bytes(lines_up_to(SIZE, lines))


def r_long_payload(maker: Maker, path: Path) -> None:
    path.write_bytes(lines_up_to(SIZE, _forged_lines(maker, "r long", scheme="R", payload_len=4096)))


def r_many_options(maker: Maker, path: Path) -> None:
    lines = _forged_lines(maker, "r options", scheme="R", weights=even_weights(4096))
    path.write_bytes(lines_up_to(SIZE, lines))


def r_partial(maker: Maker, path: Path) -> None:
    lines = _forged_lines(maker, "r partial", scheme="R", partial=True, weights=None, choice="b1")
    path.write_bytes(lines_up_to(SIZE, lines))


def r_partial_top(maker: Maker, path: Path) -> None:
    lines = _forged_lines(maker, "r top", scheme="R", partial=True, weights={"b1": 1 << 30, "b2": 1 << 29})
    path.write_bytes(lines_up_to(SIZE, lines))


def mixed_lengths(maker: Maker, path: Path) -> None:
    rng = maker.rng("lengths")
    lines = (
        line_of(forged(rng, maker.key_id, step, scheme=rng.choice("FR"), payload_len=rng.randrange(4097)))
        for step in itertools.count()
    )
    path.write_bytes(lines_up_to(SIZE, lines))


def foreign(maker: Maker, path: Path) -> None:
    """Really marked, with a key of somebody else, whose id it states."""
    rng = maker.rng("foreign")
    session = Embedder(SharedKey(rng.randbytes(32)), 0x5EED, payload_len=16, scheme="R").session("theirs")
    lines = (session.choose(weights_of(rng, 8)).record.to_json().encode() + b"\n" for _ in itertools.count())
    path.write_bytes(lines_up_to(SIZE, lines))


def conflicting_copies(maker: Maker, path: Path) -> None:
    lines = _forged_lines(maker, "conflicts", scheme="R", context="ab" * 32)
    path.write_bytes(lines_up_to(SIZE, lines))


def duplicates(maker: Maker, path: Path) -> None:
    line = next(_forged_lines(maker, "duplicates", scheme="R"))
    path.write_bytes(line * (SIZE // len(line)))


def many_sessions(maker: Maker, path: Path) -> None:
    rng = maker.rng("sessions")
    lines = (
        line_of(forged(rng, maker.key_id, 0, session=f"s{number}", weights=even_weights(2), prev="00" * 32))
        for number in itertools.count()
    )
    path.write_bytes(lines_up_to(SIZE, lines))


def far_steps(maker: Maker, path: Path) -> None:
    rng = maker.rng("far steps")
    lines = (line_of(unmarked(rng, maker.key_id, (number * 7919 << 30) % (1 << 53))) for number in itertools.count())
    path.write_bytes(lines_up_to(SIZE, lines))


def empty_objects(maker: Maker, path: Path) -> None:
    first = next(_forged_lines(maker, "empty objects"))
    path.write_bytes(first + b"{}\n" * ((SIZE - len(first)) // 3))


def bad_records(maker: Maker, path: Path) -> None:
    """Each line begins as a record does, and is none."""
    first = next(_forged_lines(maker, "bad records"))
    line = b'{"agentmark":1}\n'
    path.write_bytes(first + line * ((SIZE - len(first)) // len(line)))


def torn_lines(maker: Maker, path: Path) -> None:
    first = next(_forged_lines(maker, "torn lines"))
    line = b'{"agentmark\n'
    path.write_bytes(first + line * ((SIZE - len(first)) // len(line)))


def endless_line(maker: Maker, path: Path) -> None:
    path.write_bytes(b'{"agentmark":1,"meta":{"a":"' + b"a" * (SIZE - 100))


def deep_nesting(maker: Maker, path: Path) -> None:
    first = next(_forged_lines(maker, "deep"))
    path.write_bytes(first + b'{"agentmark":1,"meta":' + b'{"a":' * ((SIZE - len(first)) // 5 - 10) + b"\n")


def huge_meta(maker: Maker, path: Path) -> None:
    rng = maker.rng("meta")
    meta = {"flat": {f"\U0001f600{i}": i for i in range(20_000)}, "list": [[]] * 100_000}
    line = json.dumps(forged(rng, maker.key_id, 0, meta=meta), separators=(",", ":"), ensure_ascii=False).encode()
    path.write_bytes(line + b"\n")


FILES = (
    HostileFile("f-junk-4096", "jsonl", "F, 4,096 bits, 4 equations a step, forged", f_junk),
    HostileFile("f-junk-4096-pairs", "jsonl", "F, 4,096 bits, lists of 2, forged", f_junk_short_lists),
    HostileFile("f-24", "jsonl", "F, 24 bits, forged", f_short_payload),
    HostileFile("f-128", "jsonl", "F, 128 bits, forged", f_medium_payload),
    HostileFile("r-24", "jsonl", "R, 24 bits, forged", r_short_payload),
    HostileFile("r-few-steps", "jsonl", "R, 32 bits, 12 forged steps of 32 options", r_few_steps),
    HostileFile("r-some-steps", "jsonl", "R, 32 bits, 60 forged steps of 4 options", r_some_steps),
    HostileFile("r-4096", "jsonl", "R, 4,096 bits, forged", r_long_payload),
    HostileFile("r-options", "jsonl", "R, 4,096 options a step, forged", r_many_options),
    HostileFile("r-partial", "jsonl", "R, lists not logged, forged", r_partial),
    HostileFile("r-partial-top", "jsonl", "R, the top two of each list, forged", r_partial_top),
    HostileFile("mixed-lengths", "jsonl", "F and R, every step of another payload length, forged", mixed_lengths),
    HostileFile("foreign", "jsonl", "marked with the key of somebody else", foreign),
    HostileFile("conflicts", "jsonl", "copies of one step that contradict each other", conflicting_copies),
    HostileFile("duplicates", "jsonl", "one record, over and over", duplicates),
    HostileFile("sessions", "jsonl", "every record in a session of its own, linked to nothing", many_sessions),
    HostileFile("far-steps", "jsonl", "unmarked steps with indices up to 2^53", far_steps),
    HostileFile("empty-objects", "jsonl", "lines of {}", empty_objects),
    HostileFile("bad-records", "jsonl", "lines that begin as records do, and are none", bad_records),
    HostileFile("torn-lines", "jsonl", "lines that look cut short", torn_lines),
    HostileFile("endless-line", "jsonl", "one line without an end, in a string", endless_line),
    HostileFile("deep-nesting", "jsonl", "objects in objects, 200,000 deep", deep_nesting),
    HostileFile("huge-meta", "jsonl", "one record with a megabyte of free data", huge_meta),
)
