"""Elimination over F2: rank and consistency against brute force, in any order, merged and saved."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark.core.errors import StateError
from agentmark.core.linear import LinearSystem
from agentmark.core.rlnc import Equation

EQUATIONS = st.lists(st.builds(Equation, st.integers(0, 63), st.integers(0, 1)), max_size=14)


def system_of(equations: list[Equation], payload_len: int = 6) -> LinearSystem:
    system = LinearSystem(payload_len)
    for equation in equations:
        system.update(equation)
    return system


def solutions(equations: list[Equation], payload_len: int = 6) -> list[int]:
    return [
        m for m in range(1 << payload_len) if all((e.coefficients & m).bit_count() & 1 == e.parity for e in equations)
    ]


@given(EQUATIONS)
def test_it_agrees_with_trying_every_payload(equations: list[Equation]) -> None:
    system, truth = system_of(equations), solutions(equations)
    assert system.consistent == bool(truth)
    assert system.equation_count == len(equations)
    if truth:
        assert len(truth) == 2 ** (6 - system.rank)
        assert (system.solution() is not None) == (len(truth) == 1)
        if len(truth) == 1:
            assert system.solution() == truth[0]


@given(EQUATIONS, st.randoms(use_true_random=False), st.integers(0, 14))
def test_order_and_merging_change_nothing(equations: list[Equation], rng: random.Random, cut: int) -> None:
    whole = system_of(equations)
    shuffled = equations[:]
    rng.shuffle(shuffled)
    merged = system_of(shuffled[:cut])
    merged.merge(LinearSystem.from_bytes(system_of(shuffled[cut:]).to_bytes()))
    for other in (system_of(shuffled), merged):
        assert other.rank == whole.rank
        assert other.consistent == whole.consistent
        assert other.equation_count == whole.equation_count
        if whole.consistent:
            assert other.solution() == whole.solution()


def test_no_payload_bits_still_check_the_pad() -> None:
    system = LinearSystem(0)
    assert system.solution() == 0
    assert system.update(Equation(0, 0))
    assert not system.update(Equation(0, 1))
    assert (system.rank, system.surplus, system.consistent) == (0, 2, False)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"X" + data[1:],
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data[:-1] + b"\0",
        lambda data: data[:-1] + b"\xff",
        lambda data: data[:-1] + data[-2:-1],
    ],
)
def test_damaged_bytes_are_refused(damage: object) -> None:
    data = system_of([Equation(0b100000, 1), Equation(0b000011, 0)]).to_bytes()
    assert LinearSystem.from_bytes(data).to_bytes() == data
    with pytest.raises(StateError, match="linear system"):
        LinearSystem.from_bytes(damage(data))  # type: ignore[operator]


def test_systems_of_different_lengths_do_not_merge() -> None:
    with pytest.raises(ValueError, match="payload_len"):
        LinearSystem(8).merge(LinearSystem(16))
