"""The tables of the page on utility, from outcomes that are made up."""

import pytest
from agentmark_lab.experiments.models.model_trials import BY_LIST, BY_REPLY
from agentmark_lab.kit.experiment import Machine, Result
from agentmark_lab.report_utility import BENCHMARKS, EXPERTS, MODEL, filled_in

PAGE = "\n".join(
    f"<!-- {name}: written by `agentmark lab table` -->\n\n| stale |\n\n<!-- end of {name} -->\nText.\n"
    for name in ("success", "length")
)


def result_of(name: str, data: dict[str, object]) -> Result:
    machine = Machine("CPython 3.11", "Linux", "a processor", 2)
    return Result(name, "t", "c", 1, False, machine, "0.1.0", 1.0, True, [], [], data)


def an_expert(name: str) -> Result:
    """Two tasks in two sets. The baseline wins 3 of 4 and 1 of 4; F a quarter more in the first task, at its length."""
    cells = {
        "first": {"a": ["1/2 10", "2/2 10"], "b": ["1/2 30", "1/2 30"]},
        "second": {"a": ["2/2 10", "2/2 14"], "b": ["0/2 30", "0/2 30"]},
    }
    by_set = {
        label: {task: ", ".join([base, marked, base, base, base]) for task, (base, marked) in tasks.items()}
        for label, tasks in cells.items()
    }
    data = {"plan": {"levels": [{"epsilon": 0.3}]}, "outcomes": {"policies": list(EXPERTS), "0.3": by_set}}
    return result_of(name, data)


def a_model() -> Result:
    outcomes = [{"task": "a", "outcomes": dict.fromkeys((*BY_REPLY, *BY_LIST), "1/2 4")}]
    sets = {"first": outcomes, "second": outcomes}
    return result_of(MODEL, {"outcomes": {"m on ToolBench": sets, "m on ALFWorld, last two steps": sets}})


@pytest.fixture
def results() -> list[Result]:
    return [*[an_expert(name) for name in BENCHMARKS], a_model()]


def test_differences_are_means_over_tasks_of_both_sets_together(results: list[Result]) -> None:
    success, length, _ = filled_in(PAGE, results).split("Text.")
    assert "| expert, ε 0.3 | 50.0 % | +12.5 | +0.0 | +0.0 | +0.0 |" in success
    assert "| expert, ε 0.3 | 10.0 | +0.50 | +0.00 | +0.00 | +0.00 |" in length
    assert success.count("| Qwen2.5-Coder, its") == length.count("| Qwen2.5-Coder, its") == 4
    assert "stale" not in success + length


def test_written_again_it_is_the_same(results: list[Result]) -> None:
    once = filled_in(PAGE, results)
    assert filled_in(once, results) == once


def test_a_page_for_which_a_result_is_missing_stays_as_it_is(results: list[Result]) -> None:
    assert filled_in(PAGE, results[1:]) == PAGE
