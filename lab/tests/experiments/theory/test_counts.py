"""What counts keep, worked out by hand; and a forecast that is off is said to be."""

from dataclasses import replace

import pytest
from agentmark_lab.experiments.theory import counts
from agentmark_lab.experiments.theory.counts import Foreseen, kept_bits

FORESEEN = Foreseen("R", 4, 200, 40, 37, 44, 184, 196)


def test_two_replies_of_a_fair_choice_keep_half_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A huge alpha makes both options equally likely: two replies differ half of the time."""
    monkeypatch.setitem(counts.AGENTS, "fair", (2, 1e6))
    kept = {one.count: one for one in kept_bits("fair", 4000, 1)}
    assert kept[None].entropy == pytest.approx(1, abs=1e-3)
    assert 0.5 in kept[2].interval
    assert kept[2].bins == pytest.approx(kept[2].entropy)
    # Three replies are never even: 3 to 0 with probability 1/4, else 2 to 1.
    assert kept[3].entropy == pytest.approx(0.75 * 0.9183, abs=0.03)


def test_a_forecast_is_wrong_if_far_more_or_far_fewer_runs_are_named() -> None:
    assert FORESEEN.holds
    assert not replace(FORESEEN, named_by_low=200).holds
    assert not replace(FORESEEN, named_by_high=170).holds
