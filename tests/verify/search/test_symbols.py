"""Open decoding of R: the search finds exactly the payloads that brute force finds."""

import random

import pytest
from support import dirichlet

from agentmark.core import scheme_f, scheme_r
from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.linear import LinearSystem
from agentmark.core.symbols import SymbolSet
from agentmark.verify.search.symbols import search_payloads
from agentmark.verify.work import Work


def steps(rng: random.Random, count: int, payload: int, payload_len: int) -> list[SymbolSet]:
    constraints = []
    for _ in range(count):
        distribution = BehaviorDistribution.quantise(dirichlet(rng, rng.randint(1, 8), 0.8))
        step_key = rng.randbytes(32)
        behavior = scheme_r.encode(distribution, step_key, payload=payload, payload_len=payload_len)
        assert behavior is not None
        constraint = scheme_r.decode(distribution, step_key, behavior, payload_len=payload_len)
        assert constraint is not None
        constraints.append(constraint)
    return constraints


@pytest.mark.parametrize("payload_len", [0, 1, 3, 8, 11])
@pytest.mark.parametrize("count", [0, 1, 2, 4, 8, 16])
def test_it_finds_what_trying_every_payload_finds(payload_len: int, count: int) -> None:
    for seed in range(6):
        rng = random.Random(f"{payload_len} {count} {seed}")
        payload = rng.getrandbits(payload_len) if payload_len else 0
        constraints = steps(rng, count, payload, payload_len)
        truth = [m for m in range(1 << payload_len) if all(c.allows(m) for c in constraints)]
        result = search_payloads(LinearSystem(payload_len), constraints, Work())
        assert payload in truth
        if result.undetermined:
            assert len(truth) > 1
        else:
            assert result.unique == (truth[0] if len(truth) == 1 else None)
            assert set(result.payloads) <= set(truth)


def test_equations_of_f_narrow_the_search() -> None:
    """A log may mix schemes: what F determines need not be guessed."""
    rng = random.Random(3)
    payload, payload_len = rng.getrandbits(64), 64
    constraints = steps(rng, 60, payload, payload_len)
    alone = Work(1)
    search_payloads(LinearSystem(payload_len), constraints, alone)
    system = LinearSystem(payload_len)
    distribution = BehaviorDistribution.quantise({f"b{i}": 1 for i in range(16)})
    for _ in range(14):
        step_key = rng.randbytes(32)
        behavior = scheme_f.encode(distribution, step_key, payload=payload, payload_len=payload_len).behavior
        for equation in scheme_f.decode(distribution, step_key, behavior, payload_len=payload_len) or []:
            system.update(equation)
    work = Work()
    result = search_payloads(system, constraints, work)
    assert result.unique == payload
    assert alone.needed is not None
    assert work.spent < alone.needed


def test_a_foreign_step_leaves_no_payload() -> None:
    rng = random.Random(4)
    constraints = steps(rng, 20, 0xABC, 12) + steps(rng, 20, 0x123, 12)
    result = search_payloads(LinearSystem(12), constraints, Work())
    assert result.payloads == ()
    assert not result.undetermined


def test_the_work_is_known_before_it_is_spent() -> None:
    rng = random.Random(5)
    work = Work(1000)
    result = search_payloads(LinearSystem(128), steps(rng, 40, 1, 128), work)
    assert result.over_limit
    assert work.spent == 0
    assert work.needed is not None
    assert work.needed > 1e9
    assert result.unique is None
