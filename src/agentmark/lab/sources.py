"""Where P_t comes from in an experiment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from agentmark.lab.envs.base import Episode


class Source(Protocol):
    """The probability list of an agent for the situation it is in; None when it said nothing that can be used."""

    @property
    def label(self) -> str: ...

    def weights(self, episode: Episode) -> Mapping[str, float] | None: ...


@dataclass(frozen=True, slots=True)
class SoftenedExpert:
    """1 - epsilon on what the environment's expert would do, the rest evenly on everything else. Not a model."""

    epsilon: float

    @property
    def label(self) -> str:
        return f"softened expert, epsilon {self.epsilon}"

    def weights(self, episode: Episode) -> Mapping[str, float]:
        behaviors = episode.behaviors
        advised = episode.expert()
        if advised is None or len(behaviors) == 1:
            return dict.fromkeys(behaviors, 1 / len(behaviors))
        rest = self.epsilon / (len(behaviors) - 1)
        return {name: 1 - self.epsilon if name == advised else rest for name in behaviors}
