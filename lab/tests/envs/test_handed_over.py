"""The last steps of a task that an expert began."""

from pathlib import Path

import pytest
from agentmark_lab.envs.base import Task
from agentmark_lab.envs.handed_over import HandedOver
from corridors import Corridors

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
