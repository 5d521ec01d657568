"""An environment that is a stand-in: quick, and in need of nothing."""

from collections.abc import Sequence
from pathlib import Path

from agentmark_lab.envs.base import Task


class Corridor:
    """Walk right ten times without ever opening one of the trapdoors."""

    goal = "reach the end"
    observation = "a corridor"
    behaviors = ("right", "left", "trapdoor 1", "trapdoor 2", "trapdoor 3")

    def __init__(self) -> None:
        self.place, self.fallen = 0, False

    @property
    def done(self) -> bool:
        return self.fallen or self.success

    @property
    def success(self) -> bool:
        return self.place == 10

    def expert(self) -> str:
        return "right"

    def step(self, behavior: str) -> None:
        self.fallen = behavior.startswith("trapdoor")
        self.place = max(0, self.place + {"right": 1, "left": -1}.get(behavior, 0))


class Corridors:
    """Twelve of them, in two groups."""

    max_steps = 30

    def __init__(self, work: Path) -> None:
        """Nothing is kept."""

    def tasks(self) -> Sequence[Task]:
        return [Task(f"corridor-{i}", f"C{i % 2}") for i in range(12)]

    def start(self, task: Task, *, seed: int) -> Corridor:
        return Corridor()


class Shelves(Corridor):
    """A corridor with something to see at every other place: on its shelf."""

    @property
    def observation(self) -> str:  # type: ignore[override]
        if self.place % 2 == 0:
            return "You see nothing."
        return f"You arrive at shelf {self.place}. On the shelf {self.place}, you see a mug 1."


class ShelvedCorridors(Corridors):
    def start(self, task: Task, *, seed: int) -> Shelves:
        return Shelves()
