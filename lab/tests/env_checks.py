"""What every environment of the lab must do, whatever it is."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from agentmark_lab.envs.base import Environment, Episode, Task, open_environment
from agentmark_lab.kit.data import MissingError


def opened(name: str, work: Path) -> Environment:
    """The environment, or a skipped test that says what is missing."""
    try:
        return open_environment(name, work)
    except MissingError as missing:
        pytest.skip(str(missing))


def finish(episode: Episode, choose: Callable[[Episode], str], *, max_steps: int) -> list[str]:
    """Play to the end; what was seen after each step."""
    seen: list[str] = []
    while not episode.done and len(seen) < max_steps:
        episode.step(choose(episode))
        seen.append(episode.observation)
    return seen


def expert(episode: Episode) -> str:
    advised = episode.expert()
    assert advised is not None
    return advised


def won_by_the_expert(environment: Environment, tasks: Iterable[Task]) -> list[bool]:
    won = []
    for task in tasks:
        episode = environment.start(task, seed=1)
        finish(episode, expert, max_steps=environment.max_steps)
        won.append(episode.done and episode.success)
    return won


def won_by_giving_up(environment: Environment, tasks: Iterable[Task]) -> list[bool]:
    """An agent that only ever chooses the last behavior: to finish, to answer, to end the turn."""
    won = []
    for task in tasks:
        episode = environment.start(task, seed=1)
        finish(episode, lambda current: current.behaviors[-1], max_steps=environment.max_steps)
        won.append(episode.success)
    return won


def wandering(seed: int, epsilon: float) -> Callable[[Episode], str]:
    """The expert, distracted now and then."""
    rng = Random(seed)
    return lambda episode: rng.choice(list(episode.behaviors)) if rng.random() < epsilon else expert(episode)


def check_protocol(environment: Environment, tasks: Iterable[Task]) -> None:
    """Names once each, the expert's among them, at every step and off the path as well; and nothing said of success
    before the end."""
    for task in tasks:
        episode = environment.start(task, seed=1)
        choose = wandering(2, 0.3)
        assert episode.goal
        for _ in range(environment.max_steps):
            if episode.done:
                break
            assert not episode.success
            assert len(episode.behaviors) == len(set(episode.behaviors)) >= 2
            assert all(episode.behaviors)
            assert episode.expert() in episode.behaviors
            episode.step(choose(episode))
            assert isinstance(episode.observation, str)


def check_repeats(environment: Environment, tasks: Iterable[Task]) -> None:
    """The same seed and choices give the same episode, also with others played in between."""
    runs = []
    for _ in range(2):
        run = []
        for task in tasks:
            episode = environment.start(task, seed=3)
            seen = finish(episode, wandering(4, 0.5), max_steps=environment.max_steps)
            run.append((seen, episode.success))
        runs.append(run)
    assert all(first == second for first, second in pairwise(runs))
