"""The comparison of proposals with stated lists, on replies and lists that are made up."""

from dataclasses import replace

import pytest
from agentmark_lab.experiments.models.proposals import (
    REFUTED,
    ModelRun,
    bent_test,
    comparison,
    exactness,
    exactness_claims,
)
from agentmark_lab.experiments.models.tool_agent import Reply, Tool, ToolSituation
from lab_support import silent
from made_up import outcome

from agentmark.elicit.situation import ANSWER

TIMES = 1000
TOOLS = (Tool("search", "", ("q",), ()), Tool("pay", "", (), ()))


def reply(tool: str | None, arguments: str = "") -> Reply:
    return Reply(tool, arguments, "", 100, 0, 20, 300.0, 700.0, 1.0, 0.5)


def run_of(shares: dict[str, float] | None) -> ModelRun:
    """Two situations, in which the model searches three times in four and else answers; it states these shares."""
    situations = [ToolSituation(f"situation {number}", TOOLS, ()) for number in (1, 2)]
    replies = [reply("search", f'{{"q": "{i}"}}') for i in range(6)] + [reply(None)] * 2
    stated = replace(outcome("labels", 1), weights=shares, input_tokens=300, output_tokens=1, cpu_s=0.25)
    return ModelRun(
        "made-up",
        situations,
        {one.name: replies for one in situations},
        {one.name: reply(None) for one in situations},
        {"labels": [stated, replace(stated, weights=None, fault="no list")]},
    )


def test_proposals_differ_from_the_unmarked_agent_by_sampling_alone() -> None:
    rows = {row.way: row for row in comparison(run_of({"search": 0.25, ANSWER: 0.75}), TIMES, 1, silent)}
    for way, row in rows.items():
        if way.startswith("proposals"):
            assert max(row.distances) < 3 * max(row.floors)
            assert not row.changed
    two, eight = rows["proposals by tool, n = 2"], rows["proposals by tool, n = 8"]
    # Two replies differ with probability 2 * 3/4 * 1/4, and then carry one bit.
    assert two.entropy == pytest.approx(0.375, abs=0.05)
    assert two.entropy < eight.entropy < 0.8113
    assert eight.entropy < rows["proposals by call, n = 8"].entropy
    assert (eight.tokens_read, eight.tokens_written) == (800, 160)
    # Half a second of CPU: 0.15 to read, 0.35 to write.
    assert eight.seconds == pytest.approx(0.15 + 8 * 0.35)
    assert eight.plain_seconds == pytest.approx(0.5)


def test_a_step_without_a_list_is_an_unmarked_one() -> None:
    rows = comparison(run_of({"search": 0.25, ANSWER: 0.75}), TIMES, 1, silent)
    (labels,) = [row for row in rows if row.way == "labels"]
    assert labels.marked == 0.5
    assert labels.distances == pytest.approx([0.5, 0.0])
    assert labels.floors[1] == 0
    assert labels.entropy == pytest.approx(0.8113 / 2, abs=1e-3)
    assert labels.changed
    assert (labels.tokens_read, labels.tokens_written) == (400, 21)
    assert labels.seconds == pytest.approx(0.25 + 0.5)


def test_the_claim_of_exactness_can_fail() -> None:
    checks = exactness(run_of(None), TIMES, 1, silent)
    assert len(checks) == 2 * 2 * 3 * 2
    (claim,) = exactness_claims(checks)
    assert claim.holds
    spoilt = replace(checks[0], test=replace(checks[0].test, p_value=1e-9))
    (claim,) = exactness_claims([spoilt, *checks[1:]])
    assert not claim.holds


def test_early_stopping_is_refuted_on_pools_as_well() -> None:
    found = bent_test("made-up", run_of(None).pools, 4 * TIMES, 1)
    assert found.handed / found.decisions > found.share == 0.75
    assert found.test.p_value is not None
    assert found.test.p_value < REFUTED
