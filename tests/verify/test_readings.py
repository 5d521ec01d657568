"""Readings that answer for all steps at once say what the steps say one by one."""

from collections import Counter
from collections.abc import Callable
from math import fsum, isclose

from hypothesis import given
from hypothesis import strategies as st

from agentmark.core.errors import StateError
from agentmark.core.symbols import Reading, SoftSymbols, SymbolSet
from agentmark.verify.packed import PackedReadings, joined
from agentmark.verify.readings import ReadingList, Readings, as_readings, shape_of

PAYLOAD_LEN = 12


@st.composite
def some_reading(draw: st.DrawFn) -> Reading:
    rows_of = st.integers(0, (1 << PAYLOAD_LEN) - 1)
    kind = draw(st.sampled_from(["equations", "set", "soft"]))
    if kind == "equations":
        rows = tuple(draw(st.lists(rows_of, max_size=4)))
        return SymbolSet(rows, 0, 1 << draw(st.integers(0, (1 << len(rows)) - 1)))
    rows = tuple(draw(st.lists(rows_of, min_size=3, max_size=3)))
    pad = draw(st.integers(0, 7))
    if kind == "set":
        return SymbolSet(rows, pad, draw(st.integers(1, 255)))
    values = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 2.0]), min_size=8, max_size=8))
    return SoftSymbols(rows, pad, (*values[:-1], 1.0))


LOGS = st.lists(some_reading(), max_size=12)


@given(log=LOGS, payload=st.integers(0, (1 << PAYLOAD_LEN) - 1))
def test_e_values_of_all_steps_are_those_of_each(log: list[Reading], payload: int) -> None:
    said = ReadingList(log).e_values(payload)
    values = [reading.e_value(payload) for reading in log]
    assert list(said.values) == values
    assert said.counts == Counter(values)
    assert list(said.contradicting) == [i for i, value in enumerate(values) if value == 0]


@given(log=LOGS, seed=st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_the_order_of_the_steps(log: list[Reading], seed: object) -> None:
    other = log[:]
    seed.shuffle(other)  # type: ignore[attr-defined]
    one, two = ReadingList(log), ReadingList(other)
    assert (one.evidence_bits, one.most_bits, one.shapes) == (two.evidence_bits, two.most_bits, two.shapes)
    assert isclose(one.evidence_bits, fsum([reading.evidence_bits for reading in log]), abs_tol=1e-9)
    assert isclose(one.most_bits, fsum([reading.most_bits for reading in log]), abs_tol=1e-9)


@given(log=LOGS, most=st.integers(0, 12))
def test_orders_are_those_of_a_stable_sort(log: list[Reading], most: int) -> None:
    readings = ReadingList(log)
    by_evidence = sorted(range(len(log)), key=lambda i: -log[i].evidence_bits)
    assert list(readings.by_evidence(most)) == by_evidence[:most]
    single = [i for i in range(len(log)) if shape_of(log[i])[1] == 1]
    assert list(readings.single()) == single
    assert list(readings.by_evidence(most, single=True)) == [i for i in by_evidence if i in single][:most]
    several = sorted([i for i in range(len(log)) if shape_of(log[i])[1] > 1], key=lambda i: shape_of(log[i])[1])
    assert list(readings.by_symbols(most)) == several[:most]
    assert list(readings.take(by_evidence)) == [log[i] for i in by_evidence]


def test_whatever_answers_for_all_its_steps_is_taken_as_it_is() -> None:
    readings = ReadingList([SymbolSet((1,), 0, 1)])
    assert as_readings(readings) is readings
    assert list(as_readings([SymbolSet((1,), 0, 1)])) == list(readings)


BYTES = st.lists(some_reading(), max_size=8)


def wide(reading: Reading) -> Reading:
    """The same with eight rows, as parts of lists have them."""
    if isinstance(reading, SymbolSet):
        return reading
    rows = (*reading.rows, *[1 << j for j in range(5)])
    return SoftSymbols(rows, reading.pad, tuple([reading.values[i % 8] for i in range(256)]))


@given(log=BYTES, payload=st.integers(0, (1 << PAYLOAD_LEN) - 1), most=st.integers(0, 9))
def test_arrays_say_what_objects_say(log: list[Reading], payload: int, most: int) -> None:
    plain = ReadingList([_fair(wide(reading)) for reading in log])
    data = plain.to_bytes(PAYLOAD_LEN)
    assert ReadingList.from_bytes(data, PAYLOAD_LEN) == plain
    packed = PackedReadings.from_bytes(data, PAYLOAD_LEN)
    assert packed.to_bytes(PAYLOAD_LEN) == data
    for readings, wanted in (
        (packed, plain),
        (packed.take([*range(len(log))][::-1]), plain.take([*range(len(log))][::-1])),
    ):
        assert list(readings) == list(wanted)
        assert (readings.evidence_bits, readings.most_bits) == (wanted.evidence_bits, wanted.most_bits)
        assert readings.shapes == wanted.shapes
        said, expected = readings.e_values(payload), wanted.e_values(payload)
        assert list(said.values) == expected.values
        assert said.counts == expected.counts
        assert list(said.contradicting) == expected.contradicting
        assert readings.single() == wanted.single()
        assert readings.by_symbols(most) == wanted.by_symbols(most)
        for single in (False, True):
            assert readings.by_evidence(most, single=single) == wanted.by_evidence(most, single=single)
    assert list(joined([packed, plain], PAYLOAD_LEN)) == [*plain, *plain]


def _fair(reading: Reading) -> Reading:
    """E-values whose mean is at most 1, as those of a step are."""
    if isinstance(reading, SymbolSet):
        return reading
    total = fsum(reading.values)
    return SoftSymbols(reading.rows, reading.pad, tuple([256 * value / total / 2 for value in reading.values]))


@given(log=st.lists(some_reading(), min_size=1, max_size=4), at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_damaged_bytes_are_refused_alike_or_read_alike(log: list[Reading], at: int, bit: int) -> None:
    data = bytearray(ReadingList([_fair(wide(reading)) for reading in log]).to_bytes(PAYLOAD_LEN))
    data[at % len(data)] ^= 1 << bit
    assert _read(ReadingList.from_bytes, bytes(data)) == _read(PackedReadings.from_bytes, bytes(data))
    assert _read(PackedReadings.from_bytes, bytes(data[:-1])) is None
    assert _read(ReadingList.from_bytes, bytes(data[:-1])) is None


def _read(read: Callable[[bytes, int], Readings], data: bytes) -> list[Reading] | None:
    try:
        return list(read(data, PAYLOAD_LEN))
    except StateError:
        return None
