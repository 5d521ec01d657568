"""The package against the second reader (tools/), on random logs rather than chosen cases.

The second reader follows docs/spec.md and shares no code with the package, not even a JSON parser. Seeds are fixed: a
difference that is found can be looked at again.
"""

from collections import Counter
from dataclasses import replace
from math import isinf
from pathlib import Path
from random import Random
from typing import Any

import make_vectors
import pytest
import spec_reader

from agentmark import BehaviorDistribution, Embedder, Identity, Registry, SharedKey, StepRecord, Verifier, read_log
from agentmark.core import scheme_r
from agentmark.verify.prices import Prices

SECRET, OTHER_SECRET = make_vectors.SECRET, make_vectors.OTHER_SECRET
NAMES = ["Search", "Book", "Pay", "a", "b", "\uff5e", "\U0001f600", "e\u0301", "\u00e9", 'q"\\', "\x7f\u2028", "10"]
TEXTS = ["", "x", "\u4f1a\u8a71", "\U0001f600", "\n\t\x00", '"\\/', "\ufeff"]


def random_value(rng: Random, depth: int = 0) -> Any:
    kind = rng.randrange(8 if depth < 4 else 5)
    if kind < 5:
        return [None, True, False, rng.choice(TEXTS), rng.choice([0, -1, 2**53 - 1, -(2**53 - 1), 42])][kind]
    if kind == 5:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice(TEXTS): random_value(rng, depth + 1) for _ in range(rng.randrange(3))}


def random_records(
    rng: Random, count: int, *, schemes: str = "FR", lengths: tuple[int, ...] = (8, 16)
) -> list[StepRecord]:
    """Records of two keys and of every kind: whole and partial lists, unmarked, not enforced, with context and meta."""
    records = []
    for number in range(count):
        key = SharedKey(SECRET if rng.random() < 0.8 else OTHER_SECRET)
        length = rng.choice(lengths)
        embedder = Embedder(
            key,
            0xA5A5 & (1 << length) - 1,
            payload_len=length,
            scheme=rng.choice(schemes),
            keep_context=rng.random() < 0.2,
        )
        names = rng.sample(NAMES, rng.randrange(2, 7))
        weights = {name: rng.choice([0, 1, 2, 5, 0.25]) for name in names} | {names[0]: 3}
        meta = {"m": random_value(rng)} if rng.random() < 0.3 else None
        session = embedder.session(f"s{rng.randrange(5)} {number}")
        if rng.random() < 0.15:
            record = session.unmarked(names[0], reason="because", weights=rng.choice([None, weights]), meta=meta).record
        else:
            record = session.choose(weights, meta=meta).record
        if record.marked and rng.random() < 0.25:
            assert record.distribution is not None
            whole = record.distribution.as_weights()
            record = record.with_partial_weights(
                {n: whole[n] for n in rng.sample(names, rng.randrange(len(names) + 1))}
            )
        if rng.random() < 0.2:
            record = record.with_enforced(rng.random() < 0.5)
        records.append(record)
    return records


def damaged(rng: Random, line: bytes) -> bytes:
    """A line as it was written, or with something wrong somewhere."""
    at, to = sorted(rng.randrange(len(line) + 1) for _ in range(2))
    piece = rng.choice([b" ", b"0", b".0", b"e1", b"-", b'"', b"{", b"}", b",", b":", b"\\", b"\\u00", b"null", b"NaN"])
    noise = bytes([rng.randrange(256)])
    around = rng.choice([b" ", b"\t\x0b", b"\xef\xbb\xbf", b"\xc2\xa0"])
    ways = [
        line,
        line,
        line[:at],
        line[:at],
        line[:at] + line[to:],
        line[:at] + piece + line[at:],
        line[:at] + piece,
        line[:at] + noise + line[at + 1 :],
        line[:to] + line[at:],
        around + line + rng.choice([b"\r", b"\x0c ", b"\0"]),
    ]
    return rng.choice(ways)


def test_both_readers_see_the_same_in_a_thousand_damaged_lines(tmp_path: Path) -> None:
    rng = Random(1)
    lines = [damaged(rng, record.to_json().encode()) for record in random_records(rng, 1000)]
    data = b"".join(line + rng.choice([b"\n", b"\n", b"\r\n", b"\n\n"]) for line in lines)[:-40]
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)
    log = read_log(path, skip_bad=True, as_json_lines=True)
    found: dict[int, str] = {entry.line: "record" for entry in log.entries if entry.line is not None}
    found |= {number: "cut short" for number in log.summary.torn_lines}
    found |= {int(error.where.split(":")[1]): "bad" for error in log.summary.bad_lines}
    told = {number: outcome for number, outcome, _ in spec_reader.read_log(data)}
    assert {n: (found.get(n), told.get(n)) for n in found.keys() | told.keys() if found.get(n) != told.get(n)} == {}
    # Enough of each kind that agreeing means something.
    assert min(Counter(told.values())[outcome] for outcome in ("record", "cut short", "bad")) > 100
    read = [record for _, outcome, record in spec_reader.read_log(data) if outcome == "record"]
    assert [entry.record.as_dict() for entry in log.entries] == [_normal(record) for record in read]


def _normal(record: dict[str, Any]) -> dict[str, Any]:
    """`partial: false` means absent."""
    return {name: value for name, value in record.items() if (name, value) != ("partial", False)}


@pytest.mark.parametrize("seed", range(20))
def test_both_judge_random_logs_alike(seed: int) -> None:
    """Length, evidence and ownership of right and wrong claims, under the mixture and under one rate."""
    rng = Random(seed)
    records = random_records(rng, 12, schemes="F" if seed % 5 else "FR")
    records += [rng.choice(records) for _ in range(3)]
    if seed % 2:
        conflicting = replace(rng.choice(records), behavior="Search", distribution=_ticket(), partial_weights=None)
        records.append(conflicting)
    rng.shuffle(records)
    plain = [record.as_dict() for record in records]
    key = SharedKey(SECRET)
    length = make_vectors.stated_length(plain, [key.id])
    assert Verifier(key).take_in(records).payload_len == length
    for noise in (None, "0.1"):
        verifier = Verifier(key, payload_len=length, noise=None if noise is None else float(noise))
        for payload in (0xA5A5 & (1 << length) - 1, 1):
            verdict = verifier.verify(records, claim=payload)
            evidence = make_vectors.evidence_millibits(plain, SECRET, payload, length, noise)
            ownership = make_vectors.ownership_millibits(plain, SECRET, payload, length, noise)
            assert _agree(verdict.evidence_bits, evidence)
            assert verdict.ownership_bits is not None
            assert _agree(verdict.ownership_bits, ownership)


def _ticket() -> BehaviorDistribution:
    return BehaviorDistribution.quantise({"Search": 2, "Book": 1, "Pay": 1})


def _agree(bits: float, millibits: int | None) -> bool:
    return isinf(bits) if millibits is None else abs(1000 * bits - millibits) <= 1


@pytest.mark.parametrize("seed", range(6))
def test_both_read_a_random_part_of_a_list_alike(seed: int) -> None:
    rng = Random(seed)
    (record,) = random_records(Random(100 + seed), 1, schemes="R")
    names = rng.sample(NAMES, rng.randrange(4))
    shares = [rng.randrange(1, make_vectors.TOTAL // 4) for _ in names]
    weights = dict(zip(names, shares, strict=True))
    step_key = make_vectors.step_key_of(SECRET, 8, record.context)
    mine = scheme_r.decode_partial(weights, step_key, record.behavior, payload_len=8)
    assert list(mine.values) == pytest.approx(
        make_vectors.part_e_values(step_key, weights, record.behavior), rel=1e-12, abs=0
    )


def test_both_price_random_questions_alike() -> None:
    rng = Random(2)
    for _ in range(300):
        length = rng.choice([0, 1, 2, 8, 16, 64, 4096])
        payloads = sorted({rng.getrandbits(length) if length else 0 for _ in range(rng.randrange(6))})
        revoked = [rng.choice([None, "2026-01-31T09:30:00+00:00"]) for _ in payloads]
        entries = [Identity(f"n{i}", m, revoked_at=at) for i, (m, at) in enumerate(zip(payloads, revoked, strict=True))]
        asked = rng.choice([*payloads, 0])
        tries = rng.choice([1, 1, 3, 1000])
        prices = Prices(Registry(length, entries)).for_tries(tries)
        expected = make_vectors.price(length, payloads, asked, claimed=False, tries=tries)
        assert prices.of(asked, length) == pytest.approx(expected, rel=1e-12)
