"""AgentDojo: 97 user tasks, their own checks, and no attacks."""

import sys
from collections import Counter
from pathlib import Path

import env_checks
import pytest
from agentmark_lab.envs.base import Environment, Task
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.options import Options
from lab_support import silent

# The package brings clients of many providers, some of which warn when they are imported.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def environment(work: Path) -> Environment:
    return env_checks.opened("agentdojo", work)


def task(environment: Environment, name: str) -> Task:
    return next(task for task in environment.tasks() if task.id == name)


def test_the_ground_truth_wins_everywhere_and_doing_nothing_hardly_anywhere(environment: Environment) -> None:
    """Five checks are content with an empty answer and an untouched world; that is the benchmark's."""
    tasks = environment.tasks()
    assert Counter([task.group for task in tasks]) == {"workspace": 40, "travel": 20, "banking": 16, "slack": 21}
    assert all(env_checks.won_by_the_expert(environment, tasks))
    assert sum(env_checks.won_by_giving_up(environment, tasks)) == 5


def test_protocol(environment: Environment) -> None:
    env_checks.check_protocol(environment, environment.tasks()[::3])


def test_an_episode_repeats(environment: Environment) -> None:
    env_checks.check_repeats(environment, environment.tasks()[::10])


def test_a_wrong_call_is_real_and_costs_a_step(environment: Environment) -> None:
    """Making an appointment: to list the files on the way harms nobody, to delete one does."""
    for wrong, won in [("list_files", True), ("delete_file", False)]:
        episode = environment.start(task(environment, "workspace/user_task_6"), seed=1)
        advised = episode.expert()
        episode.step(wrong)
        assert episode.observation
        assert episode.expert() == advised
        env_checks.finish(episode, env_checks.expert, max_steps=environment.max_steps)
        assert episode.success is won, wrong


def test_an_answer_before_the_work_is_done_says_nothing(environment: Environment) -> None:
    """The task asks for a sum that only the transactions tell."""
    episode = environment.start(task(environment, "banking/user_task_1"), seed=1)
    episode.step("answer")
    assert (episode.done, episode.success) == (True, False)


def test_every_tool_can_be_called_where_it_is_not_called_for(environment: Environment) -> None:
    for suite in ("workspace", "travel", "banking", "slack"):
        some = task(environment, f"{suite}/user_task_1")
        for tool in environment.start(some, seed=1).behaviors[:-1]:
            episode = environment.start(some, seed=1)
            episode.step(tool)
            assert "ValidationError" not in episode.observation, (tool, episode.observation)


def test_the_quick_experiment_passes(environment: Environment, quick: Options) -> None:
    from agentmark_lab.experiments.utility import agentdojo

    assert agentdojo.run(quick, silent).passed


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agentdojo.functions_runtime", None)
    monkeypatch.delitem(sys.modules, "agentmark_lab.envs.agentdojo", raising=False)
    with pytest.raises(MissingError, match=r"agentdojo .* is missing: run `make lab`"):
        __import__("agentmark_lab.envs.agentdojo")
