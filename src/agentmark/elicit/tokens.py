"""A model whose next-token probabilities can be read: what `Logits` needs of a local model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from agentmark.elicit.situation import Candidate, Message


class Token(NamedTuple):
    id: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Ask:
    """A place to read at: the prompt, continued by `path`. The tokens in `wanted` must be in the reading."""

    path: tuple[int, ...]
    wanted: frozenset[int]


@dataclass(frozen=True, slots=True)
class Reading:
    """Probabilities of the next token: of the likeliest ones, and of those that were wanted. Sums to at most one."""

    probabilities: Mapping[int, float]
    texts: Mapping[int, bytes]


class TokenModel(Protocol):
    """A local model, token by token."""

    @property
    def model(self) -> str: ...

    @property
    def end_token(self) -> int:
        """What the model writes when its reply is complete."""

    def prompt(self, messages: Sequence[Message], opening: str, tools: Sequence[Candidate] = ()) -> list[int]:
        """The tokens of a conversation in the model's own template, and of the words its reply begins with. The tools
        are those that the agent has."""

    def tokens(self, text: str) -> list[Token]:
        """The tokens of a text, none of them special."""

    def read(self, prompt: Sequence[int], asks: Sequence[Ask]) -> list[Reading]:
        """Next-token probabilities at temperature 1, one reading for each place."""
