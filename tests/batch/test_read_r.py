"""Races on bytes: places and ratios tell what logarithms tell, and what is close is left to the plain function."""

import random
from math import log

import pytest
from random_steps import KEY, SECOND_KEY, random_records

from agentmark.batch import native, read_r
from agentmark.batch.arrays import np
from agentmark.batch.columns import StepColumns
from agentmark.batch.native import Kernel
from agentmark.batch.read_r import PRODUCT_TABLE, winning_symbols
from agentmark.batch.reading import read_with
from agentmark.verify.keyring import Keyring

KEYS = Keyring([KEY, SECOND_KEY])


def races_by_logarithms(clocks: list[int], weights: list[int], position: int) -> int:
    """All 256 races as the specification has them (section 7), by Python's own arithmetic."""
    symbols = 0
    for symbol in range(256):
        times = []
        for bits, weight in zip(clocks, weights, strict=True):
            top = bits >> 56 ^ int(PRODUCT_TABLE[max(1, bits & 0xFF), symbol])
            x = top << 44 | bits >> 12 & (1 << 44) - 1
            times.append(-log((2 * x + 1) / 2**53) / weight)
        rivals = times[:position] + times[position + 1 :]
        symbols |= all(times[position] < time for time in rivals) << symbol
    return symbols


@pytest.mark.parametrize("options", [1, 2, 3, 6, 40])
def test_every_race_ends_as_its_logarithms_say(options: int) -> None:
    rng = random.Random(options)
    clocks = [[rng.getrandbits(64) for _ in range(options)] for _ in range(60)]
    # Weights of every size, so that ratios of every size come up.
    weights = [[1 << rng.randint(0, 31) for _ in range(options)] for _ in range(60)]
    position = [rng.randrange(options) for _ in range(60)]
    found, near = winning_symbols(np.array(clocks, np.uint64), np.array(weights, np.int64), np.array(position))
    assert not near.any()
    for i in range(60):
        symbols = int.from_bytes(found[i].astype("<u8").tobytes(), "little")
        assert symbols == races_by_logarithms(clocks[i], weights[i], position[i])


def test_the_smallest_and_the_largest_draws() -> None:
    extremes = [0, 1, 0xFF, (1 << 64) - 1, (1 << 64) - 0x100, 0xFF << 56, 1 << 12]
    pairs = [(own, other) for own in extremes for other in extremes if own >> 12 != other >> 12]
    for weights in ([1, (1 << 32) - 1], [1 << 31, 1 << 31], [(1 << 32) - 1, 1]):
        found, near = winning_symbols(
            np.array(pairs, np.uint64), np.array([weights] * len(pairs), np.int64), np.zeros(len(pairs), np.int64)
        )
        for i, pair in enumerate(pairs):
            if not near[i]:
                symbols = int.from_bytes(found[i].astype("<u8").tobytes(), "little")
                assert symbols == races_by_logarithms(list(pair), weights, 0)


def test_equal_clocks_are_too_close_to_call() -> None:
    bits = 0x123456789ABCDEF0
    clocks = np.array([[bits, bits], [bits, bits ^ 1 << 63]], np.uint64)
    _, near = winning_symbols(clocks, np.full((2, 2), 1 << 31), np.zeros(2, np.int64))
    assert near.tolist() == [True, False]


def test_what_is_close_is_read_plainly(kernel: Kernel | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a gap so wide that many races are close: all of them come out the same."""
    records = random_records(60, 300)
    columns = StepColumns.of_records(records, "log.jsonl", [None] * len(records))
    before = read_with(kernel, columns, KEYS)
    asked = []
    plain = StepColumns.record
    monkeypatch.setattr(StepColumns, "record", lambda self, row: asked.append(row) or plain(self, row))
    read_with(kernel, columns, KEYS)
    without = len(asked)
    for module in (native, read_r):
        monkeypatch.setattr(module, "NEAR_GAP", 2.0**-6)
    asked.clear()
    after = read_with(kernel, columns, KEYS)
    assert len(asked) > without + 20
    assert after.outcome.tolist() == before.outcome.tolist()
    assert [after.reading(i) for i in range(300)] == [before.reading(i) for i in range(300)]
