"""What is going to be played with a language model, written down before: `agentmark_lab/plans/model_utility.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from agentmark_lab.kit.plan import FOLDER, Level, Measure, PlanError


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task that the pilot chose, with the success that it expected of the model's lists and of a uniform agent."""

    id: str
    pilot: float
    uniform: float


@dataclass(frozen=True, slots=True)
class PlannedPlace:
    """An environment, its tasks, and what is compared. An identity works on every task so many times (`each`); the
    first `read` trials are read back. Where `left` is given, an expert plays up to so many steps before its end, and
    the agent has `spare` more than that."""

    environment: str
    title: str
    tasks: tuple[PlannedTask, ...]
    trials: int
    each: int
    read: int
    success: Measure
    steps: Measure
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
class ModelPlan:
    """`replies`: the size of a pool; `samples`: how many replies a decision by proposals draws of it; `runs`: how often
    every list is asked for; `pairs`: of episodes of different runs, for each task."""

    name: str
    digest: str
    model: str
    replies: int
    samples: int
    runs: int
    pairs: int
    places: tuple[PlannedPlace, ...]
    stopping: str
    pilot: str

    @classmethod
    def of(cls, name: str, folder: Path = FOLDER) -> Self:
        place = folder / f"{name}.toml"
        try:
            source = place.read_bytes()
            stated = tomllib.loads(source.decode("utf-8"))
            return cls(
                name=name,
                digest=sha256(source).hexdigest(),
                model=str(stated["model"]),
                replies=int(stated["replies"]),
                samples=int(stated["samples"]),
                runs=int(stated["runs"]),
                pairs=int(stated["pairs"]),
                places=tuple([_place(one) for one in stated["place"]]),
                stopping=str(stated["stopping"]),
                pilot=str(stated["pilot"]),
            )
        except OSError as error:
            raise PlanError(place, f"cannot be read: {error.strerror}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PlanError(place, f"is not complete: {error!r}") from None

    def quick(self, *, tasks: int, trials: int, replies: int) -> Self:
        """The same in small."""
        places = [replace(one, tasks=one.tasks[:tasks], trials=trials, each=trials, read=trials) for one in self.places]
        return replace(self, places=tuple(places), replies=replies, pairs=trials)

    @property
    def sentence(self) -> str:
        """For the note of a table."""
        trials = "; ".join([f"{one.title}: {len(one.tasks)} tasks, {one.trials} trials of each" for one in self.places])
        return (
            f"Planned before it was played: `lab/src/agentmark_lab/plans/{self.name}.toml` (SHA-256 {self.digest}). "
            f"{trials}, under every policy. {self.stopping} The tasks were chosen by a pilot: {self.pilot}"
        )

    @property
    def data(self) -> dict[str, Any]:
        """As a result quotes it."""
        return {
            "file": f"lab/src/agentmark_lab/plans/{self.name}.toml",
            "sha256": self.digest,
            "model": self.model,
            "replies": self.replies,
            "stopping": self.stopping,
            "places": [
                {
                    "environment": one.environment,
                    "trials": one.trials,
                    "success_margin": one.success.margin,
                    "steps_margin": one.steps.margin,
                }
                for one in self.places
            ],
        }


def _place(stated: Mapping[str, Any]) -> PlannedPlace:
    return PlannedPlace(
        environment=str(stated["environment"]),
        title=str(stated["title"]),
        tasks=tuple([PlannedTask(str(t["id"]), float(t["pilot"]), float(t["uniform"])) for t in stated["task"]]),
        trials=int(stated["trials"]),
        each=int(stated["each"]),
        read=int(stated["read"]),
        success=_measure(stated["success"]),
        steps=_measure(stated["steps"]),
        left=int(stated.get("left", 0)),
        spare=int(stated.get("spare", 0)),
    )


def _measure(stated: Mapping[str, Any]) -> Measure:
    return Measure(float(stated["margin"]), float(stated["pilot_sd"]))
