"""Averaging over orders, on lists that are made up."""

from itertools import pairwise
from pathlib import Path

import pytest
from agentmark_lab.experiments.models import orders
from agentmark_lab.experiments.models.orders import AVERAGED, Spread, spread_claims, spreads_of
from agentmark_lab.experiments.models.tool_agent import Reply
from agentmark_lab.kit.options import Options
from lab_support import silent
from made_up import NAMES, outcome


def test_random_lists_come_closer_the_more_of_them_are_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent does everything equally often, and what it states is noise around that."""
    said = {f"situation {i}": [outcome("words", 10 * i + order) for order in range(8)] for i in range(6)}
    said["situation 0"] = [outcome("words", 1, fault="no list")] * 8
    replies = {name: [Reply(tool, "", "", 9, 8, 7, 1.0, 2.0, 0.1) for tool in NAMES] for name in said}
    monkeypatch.setattr(orders, "tool_situations", list)
    monkeypatch.setattr(orders, "is_small", lambda _: True)
    monkeypatch.setattr(orders, "lists_of", lambda *_: said)
    monkeypatch.setattr(orders, "replies_of", lambda *_: replies)
    spreads = spreads_of(Path("made-up.gguf"), Options(), silent)
    assert [one.k for one in spreads] == list(AVERAGED)
    assert [len(one.apart) for one in spreads] == [5, 5, 5], "a situation without lists is left out"
    for earlier, later in pairwise(spreads):
        assert sum(later.apart) < sum(earlier.apart)
        assert sum(later.off) < sum(earlier.off)
    assert all(claim.holds for claim in spread_claims(spreads))


def test_with_few_orders_only_small_means_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {f"situation {i}": [outcome("words", 10 * i + order) for order in range(4)] for i in range(3)}
    replies = {name: [Reply(tool, "", "", 9, 8, 7, 1.0, 2.0, 0.1) for tool in NAMES] for name in said}
    monkeypatch.setattr(orders, "tool_situations", list)
    monkeypatch.setattr(orders, "is_small", lambda _: False)
    monkeypatch.setattr(orders, "lists_of", lambda *_: said)
    monkeypatch.setattr(orders, "replies_of", lambda *_: replies)
    spreads = spreads_of(Path("made-up.gguf"), Options(), silent)
    assert [(len(one.apart), len(one.off)) for one in spreads] == [(3, 3), (3, 3), (0, 3)]


def test_the_claims_can_fail() -> None:
    worse = [Spread("made-up", 1, [0.1, 0.2], [0.1, 0.2]), Spread("made-up", 2, [0.2, 0.3], [0.2, 0.3])]
    assert [claim.holds for claim in spread_claims(worse)] == [False, False]
    assert [claim.holds for claim in spread_claims([])] == [False]
