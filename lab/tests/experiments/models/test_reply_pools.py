"""Decisions by proposals over a pool whose frequencies are known: exact, unless they are bent on purpose."""

from collections import Counter

import pytest
from agentmark_lab.experiments.models.proposals import two_point_pool
from agentmark_lab.experiments.models.reply_pools import (
    LEVELS,
    Decided,
    Pool,
    against_pools,
    against_unmarked,
    decide,
    early_stopping,
    fixed,
    pool_entropy,
)
from agentmark_lab.experiments.models.tool_agent import Reply, Tool, ToolSituation
from agentmark_lab.kit.draws import generator

from agentmark.elicit.proposals import Granularity
from agentmark.elicit.situation import ANSWER

TIMES = 2000


def reply(tool: str | None, arguments: str = "") -> Reply:
    return Reply(tool, arguments, "", 9, 8, 7, 1.0, 2.0, 0.1)


SITUATION = ToolSituation("made up", (Tool("search", "", ("q",), ()), Tool("pay", "", (), ())), ())
POOL = Pool.of(
    SITUATION,
    [reply("search", '{"q": "a", "r": 1}')] * 3
    + [reply("search", '{"r": 1, "q": "a"}'), reply("search", '{"q": "b"}')]
    + [reply("pay", "{}"), reply(None), reply(None)],
)


def test_a_pool_knows_its_frequencies_at_every_level() -> None:
    assert POOL.shares(LEVELS["behavior"]) == {"search": 5 / 8, "pay": 1 / 8, ANSWER: 2 / 8}
    # Arguments in another order are the same; answers are not told apart by their text.
    assert sorted(POOL.shares(LEVELS["call"]).values()) == [1 / 8, 1 / 8, 2 / 8, 4 / 8]
    assert list(POOL.shares(LEVELS["whole reply"]).values()) == [1 / 8] * 8
    assert pool_entropy(POOL, "tool") < pool_entropy(POOL, "call") == pytest.approx(1.75)


@pytest.mark.parametrize("granularity", ["tool", "call"])
@pytest.mark.parametrize("scheme", ["F", "R"])
def test_what_is_handed_over_is_distributed_as_the_pool(granularity: Granularity, scheme: str) -> None:
    rng = generator(5, granularity, scheme)
    decided = decide(POOL, fixed(4), granularity, scheme=scheme, times=TIMES, rng=rng)
    assert len(decided.handed) == TIMES
    for level in LEVELS.values():
        known = against_pools([POOL], [decided], level)
        assert known.degrees == len(POOL.shares(level)) - 1
        assert known.p_value is not None
        assert known.p_value > 0.001
        drawn = against_unmarked([POOL], [decided], level, rng)
        assert drawn.p_value is not None
        assert drawn.p_value > 0.001
    assert 0 < decided.evidence <= decided.entropy < pool_entropy(POOL, granularity)


def test_early_stopping_is_noticed_with_as_many_decisions() -> None:
    pool = two_point_pool()
    decided = decide(pool, early_stopping, "tool", scheme="R", times=TIMES, rng=generator(6))
    share = Counter([bool(one.calls) for one in decided.handed])[True] / TIMES
    assert share == pytest.approx(0.924, abs=0.02)
    refuted = against_pools([pool], [decided], LEVELS["behavior"])
    assert refuted.p_value is not None
    assert refuted.p_value < 0.01
    honest = decide(pool, fixed(3), "tool", scheme="R", times=TIMES, rng=generator(6))
    passed = against_pools([pool], [honest], LEVELS["behavior"])
    assert passed.p_value is not None
    assert passed.p_value > 0.01


def test_statistics_and_degrees_of_freedom_add_up_over_pools() -> None:
    decided = [Decided(POOL.proposals * 10, 0.0, 0.0), Decided(two_point_pool().proposals * 10, 0.0, 0.0)]
    both = against_pools([POOL, two_point_pool()], decided, LEVELS["behavior"])
    assert (both.statistic, both.degrees) == (0, 2 + 1)
