"""What an experiment is going to play, written down before it is played: `agentmark_lab/plans/NAME.toml`.

The plan states the trials, their seeds, the margins and when to stop, with the spread that a pilot with other seeds had
and the chance of showing equivalence that follows. A result quotes the plan's digest. Trials, seeds and margins have no
other source: changing them changes the file, and its digest.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, Self

from agentmark.core.errors import AgentMarkError
from agentmark_lab.kit.stats import student_quantile

FOLDER = Path(__file__).parent.parent / "plans"


class PlanError(AgentMarkError, ValueError):
    """A plan that does not say what it must."""

    def __init__(self, place: Path, fault: str) -> None:
        super().__init__(f"plan {place.name}: {fault}")


@dataclass(frozen=True, slots=True)
class Measure:
    """What is compared: the margin within which two policies count as the same, and the spread of a pair of episodes
    around its task's difference that the pilot had."""

    margin: float
    pilot_sd: float

    def power(self, pairs: int, tasks: int) -> float:
        """The chance that so many pairs show equivalence, by two one-sided tests at 5 %, if nothing differs at all."""
        reach = self.margin * sqrt(pairs) / self.pilot_sd - student_quantile(0.90, tasks - 1)
        return max(0.0, 2 * NormalDist().cdf(reach) - 1)


@dataclass(frozen=True, slots=True)
class Level:
    """One epsilon: trials of every task in each set, under every policy; of the first set so many are read back."""

    epsilon: float
    trials: int
    read: int
    success: Measure
    steps: Measure


@dataclass(frozen=True, slots=True)
class Plan:
    """`sets`: the first seed of each set of trials, by its name. Sets share no seed, and each is judged by itself."""

    name: str
    digest: str
    environments: tuple[str, ...]
    tasks: int
    sets: dict[str, int]
    levels: tuple[Level, ...]
    stopping: str
    pilot: str

    @classmethod
    def of(cls, name: str, folder: Path = FOLDER) -> Self:
        """The plan of an experiment, as it lies in its file."""
        place = folder / f"{name}.toml"
        try:
            source = place.read_bytes()
            stated = tomllib.loads(source.decode("utf-8"))
            plan = cls(
                name=name,
                digest=sha256(source).hexdigest(),
                environments=tuple(stated["environments"]),
                tasks=int(stated["tasks"]),
                sets={str(label): int(seed) for label, seed in stated["sets"].items()},
                levels=tuple([_level(level) for level in stated["level"]]),
                stopping=str(stated["stopping"]),
                pilot=str(stated["pilot"]),
            )
        except OSError as error:
            raise PlanError(place, f"cannot be read: {error.strerror}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PlanError(place, f"is not complete: {error!r}") from None
        plan._check(place)
        return plan

    def _check(self, place: Path) -> None:
        longest = max([level.trials for level in self.levels], default=0)
        seeds = sorted(self.sets.values())
        if longest < 1 or not seeds:
            raise PlanError(place, "plans no trial")
        if any(after - before < longest for before, after in pairwise(seeds)):
            raise PlanError(place, f"its sets share seeds: {seeds} with {longest} trials each")
        if any(level.read > level.trials for level in self.levels):
            raise PlanError(place, "reads more trials than it plays")

    def seeds(self, label: str, level: Level, *, seed: int) -> range:
        """The seeds of a set of trials; `seed` moves all of them, and 1 is the plan itself."""
        first = self.sets[label] + seed - 1
        return range(first, first + level.trials)

    @property
    def sentence(self) -> str:
        """For the note of a table: what was planned, and where it stands."""
        trials = "; ".join([f"epsilon {level.epsilon}: {level.trials}" for level in self.levels])
        return (
            f"Planned before it was played: `lab/src/agentmark_lab/plans/{self.name}.toml` (SHA-256 {self.digest}). "
            f"Trials of every task under every policy, in each of {len(self.sets)} sets with seeds of their own: "
            f"{trials}. {self.stopping}"
        )

    @property
    def data(self) -> dict[str, Any]:
        """As a result quotes it."""
        return {
            "file": f"lab/src/agentmark_lab/plans/{self.name}.toml",
            "sha256": self.digest,
            "sets": self.sets,
            "stopping": self.stopping,
            "levels": [
                {
                    "epsilon": level.epsilon,
                    "trials": level.trials,
                    "success_margin": level.success.margin,
                    "steps_margin": level.steps.margin,
                }
                for level in self.levels
            ],
        }


def _level(stated: Mapping[str, Any]) -> Level:
    return Level(
        epsilon=float(stated["epsilon"]),
        trials=int(stated["trials"]),
        read=int(stated["read"]),
        success=_measure(stated["success"]),
        steps=_measure(stated["steps"]),
    )


def _measure(stated: Mapping[str, Any]) -> Measure:
    return Measure(float(stated["margin"]), float(stated["pilot_sd"]))
