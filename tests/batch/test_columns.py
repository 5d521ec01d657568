"""Records as columns: round trips, joining and taking apart, and bytes that are damaged or made up."""

import random
from dataclasses import fields, replace
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_record import a_record
from support import NAMES, distributions, marked_log

from agentmark import SharedKey, StepRecord
from agentmark.batch.columns import NO_LINE, StepColumns
from agentmark.core.canonical import MAX_SAFE_INTEGER
from agentmark.core.context import context_digest
from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.errors import StateError

KEY = SharedKey(bytes(range(32)))


@st.composite
def records(draw: st.DrawFn) -> StepRecord:
    """Records of every kind that the plain reader takes."""
    whole = draw(distributions(6))
    kind = draw(st.sampled_from(["whole", "part", "none", "absent"]))
    behavior = draw(st.sampled_from(whole.behaviors))
    raw_context = draw(st.none() | st.fixed_dictionaries({"step": st.integers(0, 3)}))
    context = draw(st.binary(min_size=32, max_size=32))
    if raw_context is not None and draw(st.booleans()):
        context = context_digest(raw_context)
    part = dict(list(whole.as_weights().items())[: draw(st.integers(1, 6))])
    marked = kind != "absent" and draw(st.booleans())
    return StepRecord(
        scheme=draw(st.sampled_from("FR")),
        key_id=draw(NAMES),
        payload_len=draw(st.integers(0, 4096)),
        session=draw(NAMES),
        step_index=draw(st.integers(0, MAX_SAFE_INTEGER)),
        context=context,
        distribution=whole if kind == "whole" else None,
        behavior=behavior if kind == "whole" else draw(NAMES),
        marked=marked,
        reason=None if marked else "why",
        partial_weights={"part": part, "none": {}}.get(kind),
        enforced=draw(st.sampled_from([None, False, True])),
        raw_context=raw_context,
        meta=draw(st.none() | st.just({"model": "m"})),
    )


def known(record: StepRecord) -> StepRecord:
    """A record without what columns leave out."""
    return replace(record, meta=None, raw_context=None, reason=None, prev=None)


def columns_of(listed: list[StepRecord], file: str = "a.jsonl") -> StepColumns:
    return StepColumns.of_records(listed, file, range(1, len(listed) + 1))


def equal(one: StepColumns, other: StepColumns) -> bool:
    return all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name))
        and getattr(getattr(one, field.name), "dtype", None) == getattr(getattr(other, field.name), "dtype", None)
        for field in fields(StepColumns)
    )


@given(st.lists(records(), max_size=8))
def test_records_become_columns_and_records_again(listed: list[StepRecord]) -> None:
    columns = columns_of(listed)
    assert len(columns) == len(listed)
    assert [columns.record(row) for row in range(len(columns))] == list(map(known, listed))
    assert columns.mismatch.tolist() == [record.context_matches() is False for record in listed]
    assert columns.line.tolist() == list(range(1, len(listed) + 1))


@given(st.lists(records(), max_size=8))
def test_columns_become_bytes_and_columns_again(listed: list[StepRecord]) -> None:
    columns = columns_of(listed)
    assert equal(StepColumns.from_bytes(columns.to_bytes()), columns)


@given(st.lists(st.lists(records(), max_size=4), max_size=4))
def test_parts_joined_are_the_whole(parts: list[list[StepRecord]]) -> None:
    joined = StepColumns.concat([columns_of(part, f"{number}.jsonl") for number, part in enumerate(parts)])
    assert [joined.record(row) for row in range(len(joined))] == [known(record) for part in parts for record in part]
    assert [joined.files[code] for code in joined.file] == [f"{i}.jsonl" for i, part in enumerate(parts) for _ in part]
    for table in (joined.sessions, joined.key_ids, joined.names, joined.files):
        assert len(set(table)) == len(table)


@given(st.lists(records(), min_size=1, max_size=6), st.data())
def test_rows_are_taken_in_the_order_asked_for_with_no_text_too_many(
    listed: list[StepRecord], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.integers(0, len(listed) - 1), max_size=8))
    taken = columns_of(listed).take(np.array(rows, np.int64))
    assert [taken.record(i) for i in range(len(taken))] == [known(listed[row]) for row in rows]
    assert taken.line.tolist() == [row + 1 for row in rows]
    assert set(taken.sessions) == {listed[row].session for row in rows}
    assert equal(StepColumns.from_bytes(taken.to_bytes()), taken)


def test_a_record_without_a_line_of_its_own() -> None:
    columns = StepColumns.of_records([a_record()], "trace.json", [None])
    assert columns.line.tolist() == [NO_LINE]


def test_a_file_whose_name_is_no_text_is_kept() -> None:
    columns = columns_of([a_record()], "caf\udce9.jsonl")
    assert StepColumns.from_bytes(columns.to_bytes()).files == ("caf\udce9.jsonl",)


def small_columns() -> StepColumns:
    whole = a_record()
    part = a_record(distribution=None, partial_weights={"Pay": 5, "Book": 7})
    absent = a_record(distribution=None, marked=False, reason="no list")
    return columns_of([whole, part, absent, *marked_log(KEY, steps=3)])


def test_every_flipped_byte_and_every_cut_is_damage() -> None:
    data = small_columns().to_bytes()
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        with pytest.raises(StateError):
            StepColumns.from_bytes(bytes(flipped))
        with pytest.raises(StateError):
            StepColumns.from_bytes(data[:at])
    with pytest.raises(StateError):
        StepColumns.from_bytes(data + b"\0")


def sealed(body: bytes) -> bytes:
    """Bytes with a check that is right: somebody made them up."""
    return b"AMSC\x01" + blake2b(body, digest_size=16).digest() + body


def check_sound(columns: StepColumns) -> None:
    """Every row is a record that the plain reader takes, and reads as the same."""
    for row in range(len(columns)):
        record = columns.record(row)
        if not record.marked:
            record = replace(record, reason="?")
        assert StepRecord.from_json(record.to_json()) == record


def test_bytes_that_somebody_made_up_are_refused_or_hold_records_that_the_plain_reader_takes() -> None:
    body = small_columns().to_bytes()[21:]
    rng = random.Random(14)
    refused = 0
    for _ in range(4000):
        changed = bytearray(body)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(changed))
            changed[at] = rng.choice([0, 1, 127, 128, 255, changed[at] ^ 1 << rng.randrange(8)])
        if rng.random() < 0.1:
            del changed[rng.randrange(len(changed)) :]
        try:
            columns = StepColumns.from_bytes(sealed(bytes(changed)))
        except StateError:
            refused += 1
        else:
            check_sound(columns)
    assert refused > 1000


BROKEN = {
    "a code beyond its table": {"session": [7]},
    "a code below zero": {"name": [-1, 1, 2, 3, 4]},
    "a choice that is no code": {"choice": [99]},
    "a choice outside the list": {"names": ("Search", "Book", "Pay", "Check-in", "Modify", "x"), "choice": [5]},
    "a scheme that is not known": {"scheme": [2]},
    "a payload that is too long": {"payload_len": [4097]},
    "a step below zero": {"step": [-1]},
    "a step beyond 2^53": {"step": [1 << 53]},
    "line 0": {"line": [0]},
    "a truth that is neither": {"marked": [2]},
    "an obedience that is none": {"enforced": [-2]},
    "lists that begin behind the start": {"list_start": [1, 5]},
    "lists that end too early": {"list_start": [0, 4]},
    "lists that end behind the end": {"list_start": [0, 6]},
    "a list that is not there": {"listed": [False]},
    "a marked step without a list": {
        "listed": [False],
        "list_start": [0, 0],
        "name": [],
        "weight": [],
    },
    "a list that is empty": {"list_start": [0, 0], "name": [], "weight": []},
    "weights below zero": {"weight": [TOTAL_WEIGHT + 1, 1, 1, 0, -3]},
    "weights that sum to more": {"weight": [TOTAL_WEIGHT, 1, 0, 0, 0]},
    "weights whose sum is that of whole ones by running over": {"weight": [2**63 - 1, 2**63 - 1, 2, 2**32, 0]},
    "a name twice": {"name": [0, 1, 2, 3, 0]},
    "lists in another order": {"name": [1, 0, 2, 3, 4], "weight": [1073741824, 1717986918, 644245094, 515396076, 0]},
    "a text twice in a table": {"names": ("Search", "Book", "Pay", "Check-in", "Pay")},
    "an empty text in a table": {"names": ("Search", "Book", "Pay", "Check-in", "")},
    "a text that is no text": {"names": ("Search", "Book", "Pay", "Check-in", "\ud800")},
}


@pytest.mark.parametrize("changes", BROKEN.values(), ids=BROKEN.keys())
def test_what_no_record_holds_is_refused(changes: dict[str, object]) -> None:
    good = columns_of([a_record()])
    broken = {
        column: value if isinstance(value, tuple) else np.array(value, getattr(good, column).dtype)
        for column, value in changes.items()
    }
    if "marked" in changes:
        broken["marked"] = np.array([2], np.uint8)
    with pytest.raises(StateError):
        StepColumns.from_bytes(replace(good, **broken).to_bytes())


def test_ties_stand_in_the_order_of_their_names() -> None:
    tied = columns_of([a_record(distribution=BehaviorDistribution.from_weights(dict.fromkeys("cdab", 1 << 30)))])
    tied = replace(tied, choice=tied.name[:1])
    assert [tied.names[code] for code in tied.name] == list("abcd")
    assert equal(StepColumns.from_bytes(tied.to_bytes()), tied)
    for one, other in pairwise(range(4)):
        order = list(range(4))
        order[one], order[other] = other, one
        with pytest.raises(StateError):
            StepColumns.from_bytes(replace(tied, name=tied.name[order]).to_bytes())


def test_counts_that_no_bytes_back_are_refused_before_anything_is_made_of_them() -> None:
    for count in (1 << 31, 1 << 62, (1 << 64) - 1):
        huge = count.to_bytes(8, "little")
        for body in (huge + bytes(100), bytes(8) + huge + bytes(100), bytes(16) + huge + bytes(100)):
            with pytest.raises(StateError):
                StepColumns.from_bytes(sealed(body))
