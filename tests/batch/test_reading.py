"""Columns are read as the plain reader reads their records: same outcomes, same readings, same work, to the bit."""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_steps import KEY, SECOND_KEY, random_record, random_records
from support import distributions

from agentmark import Embedder, SettingError, SharedKey, StepRecord
from agentmark.batch.arrays import np
from agentmark.batch.columns import StepColumns
from agentmark.batch.native import Kernel
from agentmark.batch.reading import ReadingColumns, read_columns, read_with
from agentmark.core.errors import AgentMarkError, StateError
from agentmark.core.symbols import SoftSymbols, SymbolSet
from agentmark.verify.intake import COUNTED_AGAINST, READ_OUTCOMES, Outcome, Step, read_record
from agentmark.verify.keyring import Keyring
from agentmark.verify.readings import ReadingList
from agentmark.verify.state import accumulate
from agentmark.verify.work import Work

VECTORS = Path(__file__).parents[2] / "vectors"
KEYS = Keyring([KEY, SECOND_KEY])


def columns_of(records: list[StepRecord]) -> StepColumns:
    return StepColumns.of_records(records, "log.jsonl", range(1, len(records) + 1))


def plain_steps(records: list[StepRecord], keys: Keyring, work: Work | None = None) -> list[Step]:
    return accumulate(records, keys, work)._steps


def assert_same(read: ReadingColumns, steps: list[Step]) -> None:
    assert [READ_OUTCOMES[code] for code in read.outcome] == [step.outcome for step in steps]
    used = [i for i, step in enumerate(steps) if step.reading is not None]
    assert list(read.readings(np.array(used, dtype=np.int64))) == [steps[i].reading for i in used]
    assert [read.reading(i) for i in range(0, len(steps), 17)] == [step.reading for step in steps[::17]]


def check(records: list[StepRecord], keys: Keyring, kernel: Kernel | None) -> ReadingColumns:
    read = read_with(kernel, columns_of(records), keys)
    assert_same(read, plain_steps(records, keys))
    return read


@pytest.fixture(scope="module")
def many_records() -> tuple[list[StepRecord], list[Step]]:
    """20,000 of them, and what the plain reader says."""
    records = random_records(1, 20_000)
    return records, plain_steps(records, KEYS)


def test_random_steps_of_every_shape(many_records: tuple[list[StepRecord], list[Step]], kernel: Kernel | None) -> None:
    records, steps = many_records
    read = read_with(kernel, columns_of(records), KEYS)
    assert_same(read, steps)
    outcomes = Counter(READ_OUTCOMES[code] for code in read.outcome)
    absent = {Outcome.NOT_READ, *COUNTED_AGAINST}
    assert all(outcomes[outcome] > 100 for outcome in READ_OUTCOMES if outcome not in absent)
    kinds = Counter((type(reading), len(reading.rows) == 8) for table in read.tables.values() for reading in table)
    assert kinds[SoftSymbols, True] > 100
    assert kinds[SymbolSet, True] > 100
    assert kinds[SymbolSet, False] > 100


@pytest.mark.slow
def test_a_million_random_steps_are_read_alike(native_kernel: Kernel) -> None:
    for seed in range(100, 150):
        check(random_records(seed, 20_000), KEYS, native_kernel)


def test_a_key_for_any_key_id(kernel: Kernel | None) -> None:
    check(random_records(2, 500), Keyring(KEY, any_key_id=True), kernel)


def test_no_rows(kernel: Kernel | None) -> None:
    assert len(check([], KEYS, kernel)) == 0


def test_no_key_is_held(kernel: Kernel | None) -> None:
    records = random_records(3, 50)
    read = check(records, Keyring(SharedKey(bytes(range(120, 152)))), kernel)
    assert set(read.outcome.tolist()) == {READ_OUTCOMES.index(Outcome.OTHER_KEY)}


@pytest.mark.parametrize("scheme", ["F", "R"])
@pytest.mark.parametrize("options", [1, 2, 3, 64, 255, 256, 257, 300])
def test_every_number_of_options(scheme: str, options: int, kernel: Kernel | None) -> None:
    rng = random.Random(options)
    records = [replace(random_record(rng, options=options), scheme=scheme) for _ in range(20)]
    check(records, KEYS, kernel)


@pytest.mark.parametrize("scheme", ["F", "R"])
def test_every_payload_length_up_to_three_words(scheme: str, kernel: Kernel | None) -> None:
    rng = random.Random(5)
    records = [
        replace(random_record(rng, options=rng.randint(1, 20), payload_len=length), scheme=scheme)
        for length in range(195)
        for _ in range(4)
    ]
    check(records, KEYS, kernel)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(
            distributions(), st.integers(0, 300), st.binary(min_size=32, max_size=32), st.integers(0), st.booleans()
        ),
        min_size=1,
        max_size=12,
    )
)
def test_any_lists_and_lengths(steps: list[tuple], kernel: Kernel | None) -> None:
    records = [
        StepRecord(
            scheme="F" if is_f else "R",
            key_id=KEY.id,
            payload_len=length,
            session="s",
            step_index=0,
            context=context,
            distribution=listed,
            behavior=listed.behaviors[pick % len(listed)],
            marked=True,
        )
        for listed, length, context, pick, is_f in steps
    ]
    check(records, KEYS, kernel)


@pytest.mark.parametrize("limit", [0.0, 1.0, 500.0, 5_000.0, 50_000.0, 1e9])
@pytest.mark.parametrize("seed", range(3))
def test_the_meter_stops_at_the_same_record(seed: int, limit: float, kernel: Kernel | None) -> None:
    records = random_records(10 + seed, 400)
    mine, plain = Work(limit), Work(limit)
    read = read_with(kernel, columns_of(records), KEYS, work=mine)
    assert_same(read, plain_steps(records, KEYS, plain))
    assert (mine._spent, mine.needed) == (plain._spent, plain.needed)


def test_a_step_that_stands_many_times_is_read_once(kernel: Kernel | None) -> None:
    record = next(record for record in random_records(20, 100) if record.marked and record.distribution is not None)
    once, often = Work(), Work()
    read_with(kernel, columns_of([record]), KEYS, work=once)
    read = read_with(kernel, columns_of([record] * 300), KEYS, work=often)
    assert often.spent == once.spent
    assert [len(table) for table in read.tables.values()] == [1]


def test_copies_between_which_another_reading_stands_are_read_again(kernel: Kernel | None) -> None:
    record = next(record for record in random_records(21, 100) if record.key_id == KEY.id and record.marked)
    unmarked = replace(record, marked=False, reason="test")
    records = [record, record, unmarked, record, unmarked, unmarked, record]
    mine, plain = Work(), Work()
    read = read_with(kernel, columns_of(records), KEYS, work=mine)
    assert_same(read, plain_steps(records, KEYS, plain))
    assert mine._spent == plain._spent


def test_contexts_that_begin_alike_are_not_one(kernel: Kernel | None) -> None:
    rng = random.Random(22)
    beginning = rng.randbytes(8)
    records = [replace(random_record(rng), context=beginning + rng.randbytes(24)) for _ in range(50)]
    check(records, KEYS, kernel)


@pytest.mark.parametrize("name", ["scheme_f", "scheme_r"])
def test_vectors_of_the_schemes(name: str, kernel: Kernel | None) -> None:
    content = json.loads((VECTORS / f"{name}.json").read_text())
    for case in (*content["steps"], *content["impossible"]):
        key = SharedKey(bytes.fromhex(case["secret"]))
        line = {
            "agentmark": 1,
            "scheme": name[-1].upper(),
            "key_id": key.id,
            "payload_len": case["payload_len"],
            "session": "s",
            "step": 0,
            "context": case["context"],
            "weights": case["weights"] if isinstance(case["weights"], dict) else dict(case["weights"]),
            "choice": case["choice"],
            "marked": True,
        }
        read = check([StepRecord.from_dict(line)], Keyring(key), kernel)
        possible = case in content["steps"]
        assert (READ_OUTCOMES[read.outcome[0]] is Outcome.USED) == possible, case["name"]


def test_vectors_of_logs(kernel: Kernel | None) -> None:
    for case in json.loads((VECTORS / "log.json").read_text())["logs"]:
        records = []
        for line in case["lines"]:
            try:
                records.append(StepRecord.from_json(line))
            except AgentMarkError:
                continue
        check(records, Keyring(SharedKey(bytes.fromhex(case["secret"]))), kernel)


@pytest.mark.parametrize("payload_len", [0, 1, 16, 64, 100, 512, 600])
def test_readings_answer_as_the_plain_ones_do(payload_len: int, kernel: Kernel | None) -> None:
    rng = random.Random(payload_len)
    records = [random_record(rng, payload_len=payload_len) for _ in range(200)]
    read = read_with(kernel, columns_of(records), KEYS)
    rows = np.flatnonzero(read.entry >= 0)[::-1]
    columns = read.readings(rows)
    plain = ReadingList([read_record(records[row], KEYS).reading for row in rows])
    assert columns.to_bytes(payload_len) == plain.to_bytes(payload_len)
    assert dict(columns.shapes) == dict(plain.shapes)
    assert (columns.evidence_bits, columns.most_bits) == (plain.evidence_bits, plain.most_bits)
    for payload in (0, *[rng.getrandbits(payload_len) for _ in range(4)]):
        mine, theirs = columns.e_values(payload), plain.e_values(payload)
        assert list(mine.values) == list(theirs.values)
        assert list(mine.contradicting) == list(theirs.contradicting)
        assert dict(mine.counts) == dict(theirs.counts)
    places = rng.sample(range(len(rows)), 20)
    assert list(columns.take(places)) == list(plain.take(places))


def test_readings_of_no_rows_and_of_several_lengths(kernel: Kernel | None) -> None:
    read = read_with(kernel, columns_of(random_records(34, 60)), KEYS)
    assert len(read.readings(np.zeros(0, dtype=np.int64))) == 0
    rows = np.flatnonzero(read.entry >= 0)
    assert len(np.unique(read.payload_len[rows])) > 3
    assert list(read.readings(rows)) == [read.reading(row) for row in rows.tolist()]


def test_bytes_and_back(kernel: Kernel | None) -> None:
    read = read_with(kernel, columns_of(random_records(30, 600)), KEYS)
    data = read.to_bytes()
    again = ReadingColumns.from_bytes(data)
    assert again.to_bytes() == data
    assert np.array_equal(again.outcome, read.outcome)
    assert [again.reading(i) for i in range(600)] == [read.reading(i) for i in range(600)]


def test_the_kernel_that_was_built_reads_by_default() -> None:
    records = random_records(33, 50)
    assert_same(read_columns(columns_of(records), KEYS), plain_steps(records, KEYS))


def test_damaged_bytes_are_refused(kernel: Kernel | None) -> None:
    data = read_with(kernel, columns_of(random_records(31, 20)), KEYS).to_bytes()
    rng = random.Random(32)
    for _ in range(300):
        broken = bytearray(data)
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        with pytest.raises(StateError):
            ReadingColumns.from_bytes(bytes(broken))
    for end in range(0, len(data), 13):
        with pytest.raises(StateError):
            ReadingColumns.from_bytes(data[:end])


def test_marking_keys_are_read_as_the_plain_path_reads_them_and_disclosures_are_not(kernel: Kernel | None) -> None:
    pytest.importorskip("nacl", reason="the extra `public` is not installed")
    from agentmark.disclosure.check import DisclosedSteps
    from agentmark.disclosure.make import disclose
    from agentmark.keys.marking import MarkingKey

    key = MarkingKey(bytes(range(7, 39)))
    session = Embedder(key, 9, payload_len=8, scheme="R").session("a")
    proved = [session.choose({"a": 0.5, "b": 0.3, "c": 0.2}).record for _ in range(6)]
    shared = Embedder(KEY, 9, payload_len=8).session("b")
    mixed = [*proved, *[shared.choose({"a": 0.5, "b": 0.5}).record for _ in range(6)]]
    check(mixed, Keyring([key, KEY]), kernel)
    with pytest.raises(SettingError, match="one by one"):
        read_with(kernel, columns_of(proved), Keyring(DisclosedSteps(disclose(proved, key))))
