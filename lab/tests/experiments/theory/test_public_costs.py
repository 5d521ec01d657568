"""What public mode costs: every row is timed, ratios are taken within a round, and a wrong verdict is a failure."""

import random

import pytest
from agentmark_lab.experiments.theory import public_costs
from agentmark_lab.experiments.theory.public_costs import (
    CHECK,
    CHOOSE,
    MARKING,
    PLAIN,
    SHARED,
    Sizes,
    Spread,
    Timed,
    Times,
)
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.options import Options
from lab_support import silent

SIZES = Sizes(12, 365.0, 1400.0, 2300.0)


def some_round(times_as_much: float = 6.0, plain: float = 4000.0, machine: float = 1.0) -> Times:
    times = {}
    for scheme in ("F", "R"):
        times[Timed(CHOOSE, scheme, SHARED)] = 30.0 * machine
        times[Timed(CHOOSE, scheme, MARKING)] = 30.0 * times_as_much * machine
    return {**times, Timed(CHECK, "", MARKING): 400.0 * machine, Timed(PLAIN, "", MARKING): plain * machine}


def test_a_round_times_everything_and_everybody_names_the_identity() -> None:
    pytest.importorskip("nacl", reason="the extra `public` is not installed")
    rng = random.Random(3)
    lists = [{"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1} for _ in range(40)]
    times, verdicts = public_costs.one_round(rng, lists)
    # Six for each scheme, and a proof in two ways.
    assert len(times) == 6 * 2 + 2
    assert all(microseconds > 0 for microseconds in times.values())
    assert [verdict.payload for verdict in verdicts] == [public_costs.PAYLOAD] * 6


def test_a_slow_spell_of_the_machine_changes_no_ratio() -> None:
    rounds = [some_round(), some_round(machine=3.0), some_round(machine=10.0)]
    table = public_costs._findings(rounds, 300, 0, SIZES).tables[0]
    assert [CHOOSE, "F", "90", "540", "6.0 (6.0 to 6.0)"] in table.rows
    assert [PLAIN, "-", "-", "12000", "10.0 (10.0 to 10.0)"] in table.rows


def test_the_spread_is_the_middle_half() -> None:
    assert Spread.of([1.0, 2.0, 3.0, 4.0, 50.0]) == Spread(3.0, 2.0, 4.0)


def test_each_claim_can_fail() -> None:
    rounds = [some_round(), some_round()]
    assert all(claim.holds for claim in public_costs._findings(rounds, 300, 0, SIZES).claims)
    slow, near = [some_round(times_as_much=11.0)] * 2, [some_round(plain=800.0)] * 2
    for number, found in enumerate(
        (
            public_costs._findings(rounds, 300, 1, SIZES),
            public_costs._findings(rounds, 300, 0, Sizes(12, 500.0, 1400.0, 2300.0)),
            public_costs._findings(slow, 300, 0, SIZES),
            public_costs._findings(near, 300, 0, SIZES),
        )
    ):
        assert [claim.holds for claim in found.claims] == [i != number for i in range(4)]


def test_without_the_package_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_costs, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match="pynacl"):
        public_costs.run(Options(quick=True), silent)
