"""What is foretold of a search is what the search then does."""

import random

import pytest
from support import dirichlet, marked_log

from agentmark import Embedder, SharedKey, StepRecord, Verifier
from agentmark.core.symbols import SoftSymbols
from agentmark.verify.search.reach import OpenSearch

KEY = SharedKey(bytes(range(150, 182)))


def foretold(log: list[StepRecord], payload_len: int, noise: float = 0.0) -> bool:
    search = OpenSearch(payload_len, noise)
    for reading in Verifier(KEY).take_in(log).readings:
        search.add(reading)
    return search.succeeds


@pytest.mark.parametrize(
    ("scheme", "payload_len", "steps", "expected"),
    [("F", 128, 300, True), ("F", 128, 20, False), ("R", 32, 100, True), ("R", 128, 150, False), ("R", 48, 400, True)],
)
def test_clean_logs_are_read_where_it_was_foretold(scheme: str, payload_len: int, steps: int, expected: bool) -> None:
    payload = random.Random(payload_len).getrandbits(payload_len)
    log = marked_log(KEY, scheme=scheme, payload=payload, payload_len=payload_len, steps=steps)
    assert foretold(log, payload_len) is expected
    assert Verifier(KEY).verify(log).accepted is expected


def test_noise_makes_long_payloads_unreadable() -> None:
    log = marked_log(KEY, payload=5, payload_len=128, steps=300)
    assert foretold(log, 128, 0.02)
    assert not foretold(log, 128, 0.5)


def test_parts_of_lists_are_read_by_the_transform_alone() -> None:
    session = Embedder(KEY, 5, payload_len=32, scheme="R").session("soft")
    rng = random.Random(1)
    log = [session.choose(dirichlet(rng, 6, 0.5)).record.with_partial_weights({}) for _ in range(50)]
    assert all(isinstance(reading, SoftSymbols) for reading in Verifier(KEY).take_in(log).readings)
    assert foretold(log, 16)
    assert not foretold(log, 32)
