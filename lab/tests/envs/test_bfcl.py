"""BFCL multi-turn base: 200 conversations and the official checker."""

import sys
from pathlib import Path

import env_checks
import pytest
from agentmark_lab.envs.base import Environment, Task
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.options import Options
from lab_support import silent


@pytest.fixture(scope="module")
def environment(work: Path) -> Environment:
    return env_checks.opened("bfcl", work)


def task(environment: Environment, number: int) -> Task:
    return next(task for task in environment.tasks() if task.id == f"multi_turn_base_{number}")


def test_the_ground_truth_wins_everywhere_and_doing_nothing_nowhere(environment: Environment) -> None:
    tasks = environment.tasks()
    assert len(tasks) == len({task.id for task in tasks}) == 200
    assert all(env_checks.won_by_the_expert(environment, tasks))
    assert not any(env_checks.won_by_giving_up(environment, tasks))


def test_protocol(environment: Environment) -> None:
    env_checks.check_protocol(environment, environment.tasks())


def test_as_many_candidates_as_the_benchmark_documents(environment: Environment) -> None:
    counts = [len(environment.start(task, seed=1).behaviors) - 1 for task in environment.tasks()]
    assert (min(counts), max(counts)) == (18, 39)


def test_an_episode_repeats(environment: Environment) -> None:
    env_checks.check_repeats(environment, environment.tasks()[::10])


def test_a_wrong_call_is_real_and_costs_a_step(environment: Environment) -> None:
    """Task 0 begins with `cd`. An extra call that only looks loses nothing; one that leaves a file behind does."""
    for wrong, won in [("pwd", True), ("touch", False)]:
        episode = environment.start(task(environment, 0), seed=1)
        assert episode.expert() == "cd"
        episode.step(wrong)
        assert episode.observation
        assert episode.expert() == "cd"
        env_checks.finish(episode, env_checks.expert, max_steps=environment.max_steps)
        assert episode.success is won, wrong


def test_a_planned_call_before_its_turn_counts_only_if_it_was_answered_as_planned(environment: Environment) -> None:
    """`mv` needs the folder that `mkdir` makes."""
    episode = environment.start(task(environment, 0), seed=1)
    episode.step("mv")
    assert "error" in episode.observation.lower()
    made = []
    while episode.expert() != "end of turn":
        made.append(episode.expert())
        episode.step(episode.expert())
    assert made == ["cd", "mkdir", "mv"]


def test_who_never_ends_the_turn_is_stopped_and_has_failed(environment: Environment) -> None:
    episode = environment.start(task(environment, 0), seed=1)
    seen = env_checks.finish(episode, lambda _: "pwd", max_steps=environment.max_steps)
    assert (len(seen), episode.done, episode.success) == (21, True, False)


def test_every_function_can_be_called_where_it_is_not_called_for(environment: Environment) -> None:
    """With arguments that it accepts: errors are about the world, not about the call."""
    for number in (0, 50, 100, 150):
        for function in environment.start(task(environment, number), seed=1).behaviors[:-1]:
            episode = environment.start(task(environment, number), seed=1)
            episode.step(function)
            assert "argument" not in episode.observation, (function, episode.observation)


def test_the_quick_experiment_passes(environment: Environment, quick: Options) -> None:
    from agentmark_lab.experiments.utility import bfcl

    assert bfcl.run(quick, silent).passed


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bfcl_eval.constants.executable_backend_config", None)
    monkeypatch.delitem(sys.modules, "agentmark_lab.envs.bfcl", raising=False)
    with pytest.raises(MissingError, match=r"bfcl-eval .* is missing: run `make lab`"):
        __import__("agentmark_lab.envs.bfcl")
