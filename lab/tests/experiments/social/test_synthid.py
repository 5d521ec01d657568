"""Both marks in ToolBench episodes: what is played, what is read of it, and what the committed result says."""

from pathlib import Path
from statistics import fmean

import pytest
from agentmark_lab.envs.base import of_each_group, open_environment
from agentmark_lab.experiments.social.two_marks import (
    BEHAVIORS,
    BIASED,
    BOTH,
    CONFIGURATIONS,
    ENVIRONMENT,
    NEITHER,
    TEXTS,
    Configuration,
    PlayedTrial,
    Trial,
    operator,
    play_trial,
)
from agentmark_lab.experiments.social.two_marks_plan import TextPlan
from agentmark_lab.experiments.social.two_marks_read import read_logs
from agentmark_lab.kit.agent_loop import BASELINE
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.equivalence import points
from agentmark_lab.kit.experiment import Result
from agentmark_lab.kit.plan import Plan
from agentmark_lab.peers.synthid_text import GreenList, SynthId

RESULTS = Path(__file__).parents[4] / "results"
EPSILON, SEED = 0.3, 77
FEWEST_TEXTS = 100


def played(configuration: Configuration, work: Path, *, a_group: int = 10) -> PlayedTrial:
    try:
        tasks = open_environment(ENVIRONMENT, work).tasks()
    except MissingError as missing:
        pytest.skip(str(missing))
    some = tuple(of_each_group(tasks, a_group))
    return play_trial(Trial(configuration, some, EPSILON, SEED, 1, work, is_read=True))


def test_an_operator_is_drawn_again_as_it_was_and_no_two_text_keys_are_alike() -> None:
    one, other = operator(1, strangers=2, wrong_text_keys=50), operator(1, strangers=0, wrong_text_keys=0)
    assert (one.key, one.payload, one.text_keys) == (other.key, other.payload, other.text_keys)
    assert len({one.text_keys, *one.wrong_text_keys}) == 51
    assert one.green_key not in one.text_keys
    assert operator(2, strangers=0, wrong_text_keys=0).payload != one.payload


def test_a_configuration_says_which_mark_is_in_the_texts() -> None:
    who = operator(1, strangers=0, wrong_text_keys=0)
    marks = [who.text_mark(one) for one in (NEITHER, BEHAVIORS, TEXTS, BOTH)]
    assert marks == [None, None, SynthId(who.text_keys, 2), SynthId(who.text_keys, 2)]
    assert isinstance(who.text_mark(BIASED), GreenList)
    assert NEITHER.label == BASELINE
    assert len({one.label for one in CONFIGURATIONS}) == len(CONFIGURATIONS)


def test_a_trial_repeats_and_an_answer_is_written_from_what_the_tools_returned(work: Path) -> None:
    first, again = played(BOTH, work, a_group=2), played(BOTH, work, a_group=2)
    assert first == again
    assert [log.task for log in first.logs] == [outcome.task for outcome in first.outcomes]
    for log, outcome in zip(first.logs, first.outcomes, strict=True):
        called = [record.behavior for record in log.records]
        assert outcome.steps == len(called)
        assert (log.brief is None) == (called[-1] != "Finish")
        if log.brief is not None:
            assert [tool for tool, _ in log.brief.replies] == called[:-1]
            shown = log.brief.messages[-1]["content"]
            assert all(tool in shown for tool, _ in log.brief.replies[-3:])


def test_the_behaviors_name_the_identity_and_behaviors_without_the_mark_name_nobody(work: Path) -> None:
    who = operator(1, strangers=3, wrong_text_keys=0)
    marked, unmarked, biased = [read_logs(played(one, work).logs, one, who) for one in (BOTH, NEITHER, BIASED)]
    assert marked.named
    assert marked.agreeing == marked.steps
    assert marked.named_after < marked.steps
    for logs in (unmarked, biased):
        assert not logs.accepted
        assert logs.agreeing < logs.steps
    assert marked.strangers_naming == unmarked.strangers_naming == biased.strangers_naming == 0


def test_the_margins_of_texts_follow_from_how_many_are_written() -> None:
    """With the pilot's spread every test shows equivalence with a chance of 0.95, if there is no difference at all."""
    plan = TextPlan.of("synthid")
    texts = 6 * plan.tasks_a_group
    assert texts >= FEWEST_TEXTS
    for measure in (*plan.measures.values(), plan.signal):
        assert measure.power(texts, texts) >= 0.95


# The committed result ------------------------------------------------------------------------------------------------


@pytest.fixture
def result() -> Result:
    return Result.load(RESULTS / "synthid.json")


def rows(result: Result, title: str) -> list[dict[str, str]]:
    [table] = [table for table in result.tables if table.title == title]
    return [dict(zip(table.columns, map(str, row), strict=True)) for row in table.rows]


def test_it_is_of_the_plan_as_it_stands(result: Result) -> None:
    plan = Plan.of("synthid")
    assert result.data["plan"]["sha256"] == plan.digest, "the plan was changed after it was played"
    assert {*result.data["outcomes"]} == {*plan.sets}
    assert all(len(by_task) == plan.tasks for by_task in result.data["outcomes"].values())


def test_its_tables_are_those_of_its_texts(result: Result) -> None:
    level = TextPlan.of("synthid").level
    shown = {row["configuration"]: row for row in rows(result, "SynthID-Text in the answers")}
    assert list(shown) == [one.name for one in CONFIGURATIONS]
    for one in result.data["configurations"]:
        texts, row = one["texts"], shown[one["name"]]
        assert len(texts) >= FEWEST_TEXTS
        assert len({text["task"] for text in texts}) == len(texts) == int(row["texts"])
        detected = sum([text["p"] <= level for text in texts])
        assert row["detected at 0.01"].startswith(f"{detected} of {len(texts)}: ")
        assert row["mean g-value"].startswith(f"{fmean([text['mean_g'] for text in texts]):.3f} (")


def test_its_differences_in_success_are_those_of_its_outcomes(result: Result) -> None:
    trials = Plan.of("synthid").levels[0].trials
    order = [one.label for one in CONFIGURATIONS]
    judged = rows(result, "What the mark must pass and a biasing watermark must fail")
    assert len(judged) == len(result.data["outcomes"]) * (len(CONFIGURATIONS) - 1)
    for row in judged:
        place = order.index(row["policy"])
        differences = []
        for cell in result.data["outcomes"][row["trials"]].values():
            won = [int(part.split()[0]) for part in cell.split(", ")]
            differences.append((won[place] - won[0]) / trials)
        assert row["success, points (90 % interval)"].startswith(f"{points(fmean(differences))} (")
