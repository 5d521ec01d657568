"""What is going to be played with a language model, written down before: `agentmark_lab/plans/model_utility.toml`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from agentmark_lab.kit.plan import Level, Measure, Stated, measure_of


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task that the pilot chose, with the success that it expected of the model's lists and of a uniform agent."""

    id: str
    pilot: float
    uniform: float


@dataclass(frozen=True, slots=True)
class PlannedPlace:
    """An environment, its tasks, and what is compared. An identity works on every task so many times (`each`); the
    first `read` trials of each set are read back. `bent`: an effect on success that is to be seen. Where `left` is
    given, an expert plays up to so many steps before its end, and the agent has `spare` more than that."""

    environment: str
    title: str
    tasks: tuple[PlannedTask, ...]
    trials: int
    each: int
    read: int
    success: Measure
    steps: Measure
    bent: float
    left: int
    spare: int

    @property
    def identities(self) -> int:
        """Whose logs are read back."""
        return self.read // self.each

    @property
    def level(self) -> Level:
        """As the tests of utility take it: nothing is left to chance."""
        return Level(0.0, self.trials, self.read, self.success, self.steps)


@dataclass(frozen=True, slots=True)
class ModelPlan(Stated):
    """`replies`: the size of a pool; `samples`: how many replies a decision by proposals draws of it; `runs`: how often
    every list is asked for; `pairs`: of episodes of different runs, for each task. A set of trials asks the model anew,
    with options in an order that its seed decides. `choice`: how the tasks were chosen."""

    model: str
    replies: int
    samples: int
    runs: int
    pairs: int
    places: tuple[PlannedPlace, ...]
    choice: str

    @classmethod
    def _more(cls, stated: Mapping[str, Any]) -> dict[str, Any]:
        counts = {name: int(stated[name]) for name in ("replies", "samples", "runs", "pairs")}
        places = tuple([_place(one) for one in stated["place"]])
        return {"model": str(stated["model"]), **counts, "places": places, "choice": str(stated["choice"])}

    def _compared(self) -> Sequence[Level]:
        return [place.level for place in self.places]

    def _seeds_of_a_set(self) -> int:
        """Its trials are told apart by their number."""
        return 1

    def _trials(self) -> str:
        return "; ".join([f"{one.title}, {len(one.tasks)} tasks: {one.trials}" for one in self.places])

    def quick(self, *, tasks: int, trials: int, replies: int) -> Self:
        """The same in small: the first set alone."""
        places = [replace(one, tasks=one.tasks[:tasks], trials=trials, each=trials, read=trials) for one in self.places]
        first = next(iter(self.sets))
        sets = {first: self.sets[first]}
        return replace(self, sets=sets, places=tuple(places), replies=replies, pairs=trials)

    @property
    def note(self) -> str:
        """How the tasks and the trials came to be."""
        return f"{self.sentence} The tasks were chosen by an older pilot: {self.choice} The trials: {self.pilot}"

    @property
    def data(self) -> dict[str, Any]:
        places = [{"environment": one.environment, "trials": one.trials, **one.level.margins} for one in self.places]
        return self.quoted({"model": self.model, "replies": self.replies, "places": places})


def _place(stated: Mapping[str, Any]) -> PlannedPlace:
    return PlannedPlace(
        environment=str(stated["environment"]),
        title=str(stated["title"]),
        tasks=tuple([PlannedTask(str(t["id"]), float(t["pilot"]), float(t["uniform"])) for t in stated["task"]]),
        trials=int(stated["trials"]),
        each=int(stated["each"]),
        read=int(stated["read"]),
        success=measure_of(stated["success"]),
        steps=measure_of(stated["steps"]),
        bent=float(stated["bent"]),
        left=int(stated.get("left", 0)),
        spare=int(stated.get("spare", 0)),
    )
