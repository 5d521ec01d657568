"""Readings as arrays answer as a list of the same objects does, to the bit."""

import random

import pytest
from random_steps import KEY, SECOND_KEY, random_record, random_records

from agentmark import StepRecord
from agentmark.batch.arrays import np
from agentmark.batch.columns import StepColumns
from agentmark.batch.reading import read_columns
from agentmark.batch.symbols import ONE_SYMBOL, ColumnReadings, SymbolTable
from agentmark.core.errors import StateError
from agentmark.core.symbols import SymbolSet
from agentmark.verify.keyring import Keyring
from agentmark.verify.readings import ReadingList

KEYS = Keyring([KEY, SECOND_KEY])


def column_readings(records: list[StepRecord]) -> ColumnReadings:
    read = read_columns(StepColumns.of_records(records, "log.jsonl", [None] * len(records)), KEYS)
    return read.readings(np.flatnonzero(read.entry >= 0))


def assert_answers_alike(columns: ColumnReadings, plain: ReadingList, payloads: list[int]) -> None:
    assert len(columns) == len(plain)
    assert list(columns) == list(plain)
    assert dict(columns.shapes) == dict(plain.shapes)
    assert columns.evidence_bits == plain.evidence_bits
    assert columns.most_bits == plain.most_bits
    assert list(columns.single()) == list(plain.single())
    for most in (0, 3, 10_000):
        assert list(columns.by_symbols(most)) == list(plain.by_symbols(most))
        assert list(columns.by_evidence(most)) == list(plain.by_evidence(most))
        assert list(columns.by_evidence(most, single=True)) == list(plain.by_evidence(most, single=True))
    for payload in payloads:
        mine, theirs = columns.e_values(payload), plain.e_values(payload)
        assert list(mine.values) == list(theirs.values)
        assert list(mine.contradicting) == list(theirs.contradicting)
        assert dict(mine.counts) == dict(theirs.counts)


@pytest.mark.parametrize("payload_len", [0, 1, 16, 64, 100, 200, 512, 600])
def test_steps_of_one_length(payload_len: int) -> None:
    rng = random.Random(payload_len)
    columns = column_readings([random_record(rng, payload_len=payload_len) for _ in range(200)])
    plain = ReadingList(list(columns))
    assert_answers_alike(columns, plain, [0, *[rng.getrandbits(payload_len) for _ in range(6)]])


def test_steps_of_many_lengths_and_kinds() -> None:
    columns = column_readings(random_records(3, 1500))
    plain = ReadingList(list(columns))
    rng = random.Random(4)
    assert_answers_alike(columns, plain, [rng.getrandbits(bits) for bits in (0, 16, 64, 4096)])


def test_the_payload_that_was_embedded_is_allowed_everywhere() -> None:
    rng = random.Random(5)
    columns = column_readings([random_record(rng, payload_len=16) for _ in range(50)])
    for place, reading in enumerate(columns):
        if isinstance(reading, SymbolSet):
            values = [columns.e_values(payload).values[place] for payload in range(0, 1 << 16, 4099)]
            assert values == [reading.e_value(payload) for payload in range(0, 1 << 16, 4099)]


def test_none_at_all() -> None:
    columns = ColumnReadings(SymbolTable.empty())
    assert_answers_alike(columns, ReadingList([]), [0, 5])


def test_some_of_them_in_any_order() -> None:
    columns = column_readings(random_records(6, 400))
    plain = ReadingList(list(columns))
    rng = random.Random(7)
    for count in (0, 1, 5, 200):
        places = rng.sample(range(len(columns)), count)
        some, same = columns.take(places), plain.take(places)
        assert_answers_alike(some, same, [rng.getrandbits(64)])
        again = rng.choices(range(count), k=count)
        assert_answers_alike(some.take(again), same.take(again), [rng.getrandbits(64)])
    assert columns[-1] == plain[-1]
    with pytest.raises(IndexError):
        columns[len(columns)]


def test_answers_can_be_handed_on_as_places() -> None:
    columns = column_readings(random_records(8, 300))
    assert list(columns.take(columns.by_symbols(20))) == [columns[i] for i in columns.by_symbols(20)]


def test_bytes_and_back() -> None:
    columns = column_readings(random_records(9, 400)).take(range(50, 250))
    again = ColumnReadings.from_bytes(columns.to_bytes())
    assert again == columns
    assert again.to_bytes() == columns.to_bytes()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("kind", 3),
        ("kind", 2),
        ("payload_len", 4097),
        ("payload_len", -1),
        ("payload_len", 0),
        ("width", 17),
        ("width", 1),
        ("pad", 1),
        ("symbol", 65535),
        ("words", 2**64 - 1),
        ("sets", 0),
    ],
)
def test_what_no_step_says_is_refused(column: str, value: int) -> None:
    """With a check that is right: only the content tells."""
    rng = random.Random(10)
    records = [random_record(rng, payload_len=16, options=6) for _ in range(40)]
    table = SymbolTable.from_bytes(column_readings(records).to_bytes())
    array = getattr(table, column).copy()
    # An entry of one symbol that has rows; of words and sets, the first.
    entry = int(np.flatnonzero((table.kind == ONE_SYMBOL) & (table.width > 1))[0])
    array[0 if column in ("words", "sets") else entry] = value
    setattr(table, column, array)
    with pytest.raises(StateError):
        SymbolTable.from_bytes(table.to_bytes())
