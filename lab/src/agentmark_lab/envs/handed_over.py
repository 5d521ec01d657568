"""Tasks that an expert has almost done: the agent takes the last steps.

For agents that take seconds to decide and find few of a long way's steps. The expert's part is the same in every trial,
so that trials meet the same situations; and an episode ends, lost, where the expert would not reach the goal any more
in the steps that are left. What can be reached is a fact of the place, the same for every agent: nobody who can still
succeed is stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmark_lab.envs.base import Environment, Episode, Task

# Longer than any expert takes.
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Moment:
    """What there is after some steps. `needed`: how many more the expert would take; more than are left if unknown."""

    goal: str
    observation: str
    behaviors: tuple[str, ...]
    success: bool
    needed: int


class HandedOver:
    """The last `left` of the expert's steps, for an agent that may take `spare` more. Moments are found once: a game's
    own engine is asked for each way only once, however often it is taken."""

    def __init__(self, environment: Environment, left: int, spare: int, *, seed: int) -> None:
        """The seed is the environment's: it decides where the expert looks first."""
        self._environment = environment
        self._left = left
        self.max_steps = left + spare
        self._seed = seed
        self._begun: dict[str, tuple[tuple[str, str], ...]] = {}
        self._moments: dict[tuple[str, tuple[str, ...]], Moment] = {}

    def tasks(self) -> Sequence[Task]:
        return self._environment.tasks()

    def start(self, task: Task, *, seed: int = 0) -> "LastSteps":
        """Every trial begins alike: the seed of a trial changes nothing."""
        return LastSteps(self, task)

    def begun(self, task: Task) -> tuple[tuple[str, str], ...]:
        """The expert's steps before the agent's first, with what came of each."""
        if task.id not in self._begun:
            episode = self._environment.start(task, seed=self._seed)
            taken: list[tuple[str, str]] = []
            while not episode.done and len(taken) < _LONGEST and (advice := episode.expert()) is not None:
                episode.step(advice)
                taken.append((advice, episode.observation))
            self._begun[task.id] = tuple(taken[: -self._left]) if episode.success else ()
        return self._begun[task.id]

    def moment(self, task: Task, way: tuple[str, ...]) -> Moment:
        """After the expert's part and these steps."""
        if (task.id, way) not in self._moments:
            self._moments[task.id, way] = self._found(task, way)
        return self._moments[task.id, way]

    def _found(self, task: Task, way: tuple[str, ...]) -> Moment:
        episode = self._environment.start(task, seed=self._seed)
        for behavior in [*[behavior for behavior, _ in self.begun(task)], *way]:
            episode.step(behavior)
        seen = (episode.goal, episode.observation, tuple(episode.behaviors), episode.success)
        return Moment(*seen, needed=self._needed(episode))

    def _needed(self, episode: Episode) -> int:
        taken = 0
        while not episode.done and taken <= self.max_steps and (advice := episode.expert()) is not None:
            episode.step(advice)
            taken += 1
        return taken if episode.success else self.max_steps + 1


class LastSteps:
    """An episode of it."""

    def __init__(self, place: HandedOver, task: Task) -> None:
        self._place = place
        self._task = task
        self._way: tuple[str, ...] = ()
        # The expert's latest step, which the agent may be told.
        self.before = place.begun(task)[-1:]

    @property
    def _now(self) -> Moment:
        return self._place.moment(self._task, self._way)

    @property
    def goal(self) -> str:
        return self._now.goal

    @property
    def observation(self) -> str:
        return self._now.observation

    @property
    def behaviors(self) -> Sequence[str]:
        return self._now.behaviors

    @property
    def success(self) -> bool:
        return self._now.success

    @property
    def done(self) -> bool:
        return self.success or self._now.needed > self._place.max_steps - len(self._way)

    def expert(self) -> str | None:
        """The expert's part is over."""
        return None

    def step(self, behavior: str) -> None:
        self._way = (*self._way, behavior)
