"""Columns sorted out by arrays come to what records sorted out one by one come to, whatever was done to them."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import EVEN, dirichlet

from agentmark import Embedder, SharedKey, StepRecord
from agentmark.batch.columns import StepColumns
from agentmark.batch.groups import sort_out
from agentmark.batch.reading import read_columns
from agentmark.verify.keyring import Keyring
from agentmark.verify.many import Group, SortedLog
from agentmark.verify.readings import ReadingList
from agentmark.verify.roll import By
from agentmark.verify.state import accumulate
from agentmark.verify.work import Work

KEYS = [SharedKey(bytes(range(n, n + 32))) for n in (130, 170, 210)]
# Records of the third key are of nobody whom the auditor knows.
KEYRING = Keyring(KEYS[:2])


def clean(rng: random.Random, sessions: int, steps: int) -> list[StepRecord]:
    records = []
    for i in range(sessions):
        length, scheme = rng.choice([16, 16, 16, 80]), rng.choice("FR")
        embedder = Embedder(rng.choice(KEYS), rng.getrandbits(16), payload_len=length, scheme=scheme)
        # Several tenants may have a session of the same name.
        run = embedder.session(f"session {i % max(1, sessions - 1)}")
        records += [run.choose(rng.choice([EVEN, dirichlet(rng, 5, 0.7)])).record for _ in range(steps)]
    return records


def damaged(records: Sequence[StepRecord], rng: random.Random) -> list[StepRecord]:
    """Each record left alone, or altered, copied, moved or taken from in one of many ways."""
    made = [copy for record in records for copy in rng.choice(ways_to_damage(record, rng))]
    rng.shuffle(made)
    return made


def ways_to_damage(record: StepRecord, rng: random.Random) -> list[list[StepRecord]]:
    assert record.distribution is not None
    names = list(record.distribution.behaviors)
    part = replace(
        record,
        distribution=None,
        partial_weights={name: record.distribution.weight(name) for name in names[:2]},
    )
    disobeyed = replace(record, enforced=False)
    unmarked = replace(record, marked=False, reason="near tie")
    other_choice = replace(record, behavior=rng.choice(names))
    other_length = replace(record, payload_len=24)
    return [
        [record],
        [record],
        [record, record],
        [disobeyed],
        [record, disobeyed],
        [unmarked],
        [record, unmarked],
        [replace(unmarked, enforced=False), record],
        [record, other_choice],
        [part],
        [part, record],
        [part, part],
        [replace(part, partial_weights={"x": 5}), record],
        [replace(part, partial_weights={})],
        [record, other_length],
        [other_length],
        [record, replace(record, session="elsewhere")],
        [record, replace(record, key_id=KEYS[1].id)],
        [other_choice],
        [],
    ]


def by_columns(
    files: dict[str, list[StepRecord]], by: By, payload_len: int | None, work: Work | None
) -> list[SortedLog]:
    parts = [StepColumns.of_records(log, file, [None] * len(log)) for file, log in files.items()]
    columns = StepColumns.concat(parts)
    return sorted(
        sort_out(columns, read_columns(columns, KEYRING, work=work), by, payload_len), key=lambda log: log.name
    )


def by_records(
    files: dict[str, list[StepRecord]], by: By, payload_len: int | None, work: Work | None
) -> list[SortedLog]:
    name_of = {
        By.SESSION: lambda record, file: record.session,
        By.FILE: lambda record, file: file,
        By.TENANT: lambda record, file: record.key_id,
        By.ALL: lambda record, file: "all",
    }[by]
    everything = [(file, record) for file, log in files.items() for record in log]
    # Read in one go, as the columns are: a work limit ends at the same record.
    state = accumulate([record for _, record in everything], KEYRING, work)
    steps = dict(enumerate(state._steps))
    groups: dict[str, tuple[set[str], list[int]]] = {}
    for i, (file, record) in enumerate(everything):
        where, mine = groups.setdefault(name_of(record, file), (set(), []))
        where.add(file)
        mine.append(i)
    logs = []
    for name, (where, mine) in sorted(groups.items()):
        own = accumulate([], KEYRING)
        for i in mine:
            own.update(steps[i])
        logs.append(Group(name=name, files=tuple(sorted(where)), state=own).sorted_out(payload_len))
    return logs


def expect_equal(
    files: dict[str, list[StepRecord]], by: By, payload_len: int | None = None, limit: float | None = None
) -> list[SortedLog]:
    fast = by_columns(files, by, payload_len, None if limit is None else Work(limit))
    plain = by_records(files, by, payload_len, None if limit is None else Work(limit))
    for one, other in zip(fast, plain, strict=True):
        assert list(one.readings) == list(other.readings)
        assert replace(one, readings=ReadingList()) == replace(other, readings=ReadingList())
        assert one.readings.evidence_bits == other.readings.evidence_bits
        assert SortedLog.from_bytes(one.to_bytes()).contexts == other.contexts
    return plain


@pytest.mark.parametrize("by", By)
@pytest.mark.parametrize("seed", range(6))
def test_damaged_records_are_sorted_out_alike(by: By, seed: int) -> None:
    rng = random.Random(seed)
    log = damaged(clean(rng, 6, 12), rng)
    half = len(log) // 2
    files = {"a.jsonl": log[:half], "b.jsonl": log[half:]}
    logs = expect_equal(files, by)
    outcomes = {outcome for one in logs for outcome in one.tally.counts}
    assert len(outcomes) >= 6
    expect_equal(files, by, payload_len=24)
    expect_equal(files, by, limit=1_500)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), by=st.sampled_from(By), steps=st.integers(0, 4))
def test_small_logs_are_sorted_out_alike(seed: int, by: By, steps: int) -> None:
    rng = random.Random(seed)
    expect_equal({"a": damaged(clean(rng, 3, steps), rng), "b": damaged(clean(rng, 1, steps), rng)}, by)


def test_no_record_is_no_log() -> None:
    columns = StepColumns.empty()
    assert list(sort_out(columns, read_columns(columns, KEYRING), By.ALL)) == []
