"""What an experiment is going to play, written down before it is played: `agentmark_lab/plans/NAME.toml`.

The plan states the trials, their seeds, the margins and when to stop, with the spread that a pilot with other seeds had
and the chance of showing equivalence that follows. A result quotes the plan's digest. Trials, seeds and margins have no
other source: changing them changes the file, and its digest.
"""

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, Self

from agentmark.core.errors import AgentMarkError
from agentmark.core.statistics import normal_quantile
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

    def sight(self, effect: float, pairs: int, *, p_value: float) -> float:
        """The chance that so many pairs show an effect of this size, by a p-value below this one."""
        return NormalDist().cdf(abs(effect) * sqrt(pairs) / self.pilot_sd - normal_quantile(1 - p_value))


@dataclass(frozen=True, slots=True)
class Level:
    """One epsilon: trials of every task in each set, under every policy; of the first set so many are read back."""

    epsilon: float
    trials: int
    read: int
    success: Measure
    steps: Measure

    @property
    def margins(self) -> dict[str, float]:
        """As a result quotes them."""
        return {"success_margin": self.success.margin, "steps_margin": self.steps.margin}


@dataclass(frozen=True, slots=True)
class Stated(ABC):
    """What every plan states. `sets`: the first seed of each set of trials, by its name. Sets share no seed, and each
    is judged by itself. Whoever plans more says what it is, and how much of it is played."""

    name: str
    digest: str
    sets: dict[str, int]
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
                sets={str(label): int(seed) for label, seed in stated["sets"].items()},
                stopping=str(stated["stopping"]),
                pilot=str(stated["pilot"]),
                **cls._more(stated),
            )
        except OSError as error:
            raise PlanError(place, f"cannot be read: {error.strerror}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PlanError(place, f"is not complete: {error!r}") from None
        plan._check(place)
        return plan

    @classmethod
    @abstractmethod
    def _more(cls, stated: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that a plan of this kind has besides."""

    @abstractmethod
    def _compared(self) -> Sequence[Level]:
        """Every setting, with its trials."""

    @abstractmethod
    def _seeds_of_a_set(self) -> int:
        """How many seeds each set takes."""

    @abstractmethod
    def _trials(self) -> str:
        """How many of what, for a sentence."""

    def _check(self, place: Path) -> None:
        taken = self._seeds_of_a_set()
        seeds = sorted(self.sets.values())
        if min([level.trials for level in self._compared()], default=0) < 1 or not seeds:
            raise PlanError(place, "plans no trial")
        if any(after - before < taken for before, after in pairwise(seeds)):
            raise PlanError(place, f"its sets share seeds: {seeds} with {taken} each")
        if any(level.read > level.trials for level in self._compared()):
            raise PlanError(place, "reads more trials than it plays")

    @property
    def file(self) -> str:
        return f"lab/src/agentmark_lab/plans/{self.name}.toml"

    def first_seed(self, label: str, *, seed: int) -> int:
        """Of a set of trials; `seed` moves all sets, and 1 is the plan itself."""
        return self.sets[label] + seed - 1

    @property
    def sentence(self) -> str:
        """For the note of a table: what was planned, and where it stands."""
        return (
            f"Planned before it was played: `{self.file}` (SHA-256 {self.digest}). Trials of every task under every "
            f"policy, in each of {len(self.sets)} sets with seeds of their own: {self._trials()}. {self.stopping}"
        )

    def quoted(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """As a result quotes it."""
        return {"file": self.file, "sha256": self.digest, "sets": self.sets, "stopping": self.stopping, **more}


@dataclass(frozen=True, slots=True)
class Plan(Stated):
    """What an expert plays, at several levels of what it leaves to chance."""

    environments: tuple[str, ...]
    tasks: int
    levels: tuple[Level, ...]

    @classmethod
    def _more(cls, stated: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "environments": tuple(stated["environments"]),
            "tasks": int(stated["tasks"]),
            "levels": tuple([_level(level) for level in stated["level"]]),
        }

    def _compared(self) -> Sequence[Level]:
        return self.levels

    def _seeds_of_a_set(self) -> int:
        return max([level.trials for level in self.levels], default=0)

    def _trials(self) -> str:
        return "; ".join([f"epsilon {level.epsilon}: {level.trials}" for level in self.levels])

    def seeds(self, label: str, level: Level, *, seed: int) -> range:
        """The seeds of a set of trials."""
        first = self.first_seed(label, seed=seed)
        return range(first, first + level.trials)

    @property
    def data(self) -> dict[str, Any]:
        return self.quoted(
            {"levels": [{"epsilon": level.epsilon, "trials": level.trials, **level.margins} for level in self.levels]}
        )


def _level(stated: Mapping[str, Any]) -> Level:
    return Level(
        epsilon=float(stated["epsilon"]),
        trials=int(stated["trials"]),
        read=int(stated["read"]),
        success=measure_of(stated["success"]),
        steps=measure_of(stated["steps"]),
    )


def measure_of(stated: Mapping[str, Any]) -> Measure:
    return Measure(float(stated["margin"]), float(stated["pilot_sd"]))
