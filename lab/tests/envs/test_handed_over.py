"""The last steps of a task that an expert began."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from agentmark_lab.envs.base import Environment, Task
from agentmark_lab.envs.handed_over import HandedOver
from agentmark_lab.experiments.models.model_plan import ModelPlan
from agentmark_lab.experiments.models.model_trials import environment_of
from corridors import Corridors
from env_checks import opened

TASK = Task("corridor-0", "C0")


def last_steps(tmp_path: Path, spare: int) -> HandedOver:
    return HandedOver(Corridors(tmp_path), 2, spare, seed=1)


def test_the_agent_takes_over_where_the_expert_has_two_steps_left(tmp_path: Path) -> None:
    place = last_steps(tmp_path, spare=0)
    episode = place.start(TASK)
    assert place.max_steps == 2
    assert len(place.begun(TASK)) == 8
    assert episode.before == (("right", "a corridor"),)
    assert episode.goal == "reach the end"
    episode.step("right")
    assert not episode.done
    episode.step("right")
    assert episode.done
    assert episode.success


@pytest.mark.parametrize(
    ("spare", "taken", "done"),
    [
        (0, ["left"], True),
        (1, ["left"], True),
        (2, ["left"], False),
        (2, ["left", "left"], True),
        (9, ["trapdoor 1"], True),
    ],
)
def test_an_episode_ends_where_the_goal_is_out_of_reach(
    tmp_path: Path, spare: int, taken: list[str], done: bool
) -> None:
    episode = last_steps(tmp_path, spare).start(TASK)
    for behavior in taken:
        episode.step(behavior)
    assert (episode.done, episode.success) == (done, False)


def test_the_same_way_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = last_steps(tmp_path, spare=0)
    episode = place.start(TASK)
    episode.step("right")
    assert not episode.done
    # Whatever the environment's seed is, and without the environment.
    monkeypatch.setattr(Corridors, "start", None)
    again = place.start(TASK, seed=7)
    again.step("right")
    assert not again.done


def test_the_planned_games_are_two_right_steps_from_their_end(work: Path) -> None:
    [place] = [one for one in ModelPlan.of("model_utility").places if one.left]
    houses = opened(place.environment, work)
    groups = {task.id: task.group for task in houses.tasks()}
    environment = environment_of(place, work)
    for planned in place.tasks:
        task = Task(planned.id, groups[planned.id])
        episode = environment.start(task, seed=0)
        assert 14 <= len(episode.behaviors) <= 17
        first = [behavior for behavior in episode.behaviors if leads_on(environment, task, [behavior])]
        second = [behavior for behavior in episode.behaviors if leads_on(environment, task, [first[0], behavior])]
        # Of many options one or a few lead on; then one ends it.
        assert 1 <= len(first) <= 3
        assert second == []
        episode.step(first[0])
        assert [leads_on(environment, task, [first[0], last], won=True) for last in episode.behaviors].count(True) == 1


def test_what_is_remembered_is_what_the_game_gives(work: Path) -> None:
    """One planned game, way by way: the expert's part and the agent's steps played anew in the game's own engine,
    beside an episode that remembers. Every way is gone twice, the second time in another order."""
    [place] = [one for one in ModelPlan.of("model_utility").places if one.left]
    houses = opened(place.environment, work)
    [task] = [task for task in houses.tasks() if task.id == place.tasks[1].id]
    environment = environment_of(place, work)
    assert isinstance(environment, HandedOver)
    rng = Random(5)
    options = environment.start(task).behaviors
    [right, *_] = [behavior for behavior in options if leads_on(environment, task, [behavior])]
    after = [[right, last] for last in seen(environment, task, [right])[2]]
    # Ways that lose at once, that lose with their last step, and that win.
    won = [way for way in after if leads_on(environment, task, way, won=True)]
    ways = [[], [right], *[[first] for first in rng.sample(list(options), 3)], *rng.sample(after, 3), *won]
    given = [played_anew(houses, task, environment.begun(task), way) for way in ways]
    assert [seen(environment, task, way) for way in ways] == given
    assert [seen(environment, task, way) for way in reversed(ways)] == given[::-1]
    assert [success for *_, success in given].count(True) >= 1


def played_anew(
    houses: Environment, task: Task, begun: Sequence[tuple[str, str]], way: list[str]
) -> tuple[str, str, tuple[str, ...], bool]:
    game = houses.start(task, seed=1)
    for behavior in [*[behavior for behavior, _ in begun], *way]:
        game.step(behavior)
    return game.goal, game.observation, tuple(game.behaviors), game.success


def seen(environment: Environment, task: Task, way: list[str]) -> tuple[str, str, tuple[str, ...], bool]:
    episode = environment.start(task, seed=0)
    for behavior in way:
        episode.step(behavior)
    return episode.goal, episode.observation, tuple(episode.behaviors), episode.success


def leads_on(environment: Environment, task: Task, taken: list[str], *, won: bool = False) -> bool:
    episode = environment.start(task, seed=0)
    for behavior in taken:
        if behavior not in episode.behaviors:
            return False
        episode.step(behavior)
    return episode.success if won else not episode.done
