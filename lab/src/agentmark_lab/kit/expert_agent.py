"""Where the P_t of an agent comes from; and the agent that follows an environment's expert, softened."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from agentmark.core.distribution import Rational
from agentmark_lab.envs.base import Episode


class Source(Protocol):
    """The probability list of an agent for the situation it is in; None when it said nothing that can be used."""

    @property
    def label(self) -> str: ...

    def weights(self, episode: Episode) -> Mapping[str, Rational] | None: ...

    def acted(self, behavior: str, episode: Episode) -> None:
        """The behavior was taken, and the episode has moved on."""


@dataclass(frozen=True, slots=True)
class SoftenedExpert:
    """1 - epsilon on what the environment's expert would do, the rest evenly on everything else. Not a model."""

    epsilon: float

    @property
    def label(self) -> str:
        return f"softened expert, epsilon {self.epsilon}"

    def acted(self, behavior: str, episode: Episode) -> None:
        """The expert looks at the episode itself."""

    def weights(self, episode: Episode) -> Mapping[str, Rational]:
        behaviors = episode.behaviors
        advised = episode.expert()
        if advised is None or len(behaviors) == 1:
            return dict.fromkeys(behaviors, 1 / len(behaviors))
        rest = self.epsilon / (len(behaviors) - 1)
        return {name: 1 - self.epsilon if name == advised else rest for name in behaviors}
