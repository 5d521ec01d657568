"""One request of an agent to its model, as whoever stands between the two describes it: an adapter, or the gateway."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentmark.elicit.chat import Chat
from agentmark.elicit.situation import Candidate, Message, ToolCall
from agentmark.wire.forcing import Rung


@dataclass(frozen=True, slots=True)
class Spent:
    """What a whole turn cost: every call of the model, samples that were not used and side calls included."""

    calls: int
    input_tokens: int
    output_tokens: int


class ModelCall(ABC):
    """One request of an agent to its model, as an adapter sees it. Requests and replies are the framework's own."""

    # Where the request goes, and the model it names: what a refusal is remembered for.
    upstream: str
    model: str
    # The request as the agent made it.
    request: Any
    # None where it is not known.
    temperature: float | None = None
    seed: int | None = None
    # Whether tools that run at the provider are on offer: they would run once for each sample.
    runs_hosted_tools: bool = False
    # Why the request must not be sent several times, where there is another reason.
    unrepeatable: str | None = None
    # Set by the turn: whether samples are told apart by their arguments too. Then a stream shows what it does at its
    # end, though a single call may have begun before.
    needs_arguments: bool = False
    # Whether the others should wait for the first sample, which puts the prompt into the provider's cache.
    warms_cache: bool = False

    @abstractmethod
    def candidates(self) -> Sequence[Candidate]:
        """What the request leaves to decide; nothing: it goes through untouched."""

    @abstractmethod
    def conversation(self) -> Sequence[Message]:
        """The conversation as elicitors read it."""

    @abstractmethod
    def read(self, reply: Any) -> Sequence[ToolCall]:
        """The calls that a reply makes. Of a live stream, it is not asked."""

    def as_done(self, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """What became of the calls that the agent's model made last, where the framework keeps a person's edit apart
        from the conversation."""
        return calls

    def forced(self, behavior: str, rung: Rung) -> Any | None:
        """The request with one way to go, its tools untouched; None if there is no such way here."""
        return None

    def several(self, count: int) -> Any | None:
        """The request for so many replies in one, which reads the prompt once; None if there is no such way here."""
        return None

    def split(self, reply: Any) -> Sequence[Any]:
        """A reply of several as so many replies, in order."""
        return [reply]

    def chat(self) -> Chat | None:
        """The agent's own model, lent for side calls: the same client, host, model and credentials."""
        return None

    def tokens(self, reply: Any) -> tuple[int | None, int | None]:
        """What a reply says of its cost: tokens read, tokens written."""
        return None, None

    def charged(self, reply: Any, spent: Spent) -> Any:
        """The reply with the usage of the whole turn, where the framework adds up what its replies say."""
        return reply

    def is_live(self, reply: Any) -> bool:
        """Whether a reply is a stream of which the rest is still to come: then the adapter finishes the turn."""
        return False

    def discard(self, reply: Any) -> None:  # noqa: B027 (most replies need no closing)
        """Let go of a sample that is not used: close its stream."""

    async def adiscard(self, reply: Any) -> None:
        self.discard(reply)

    def send(self, request: Any, *, sampled: bool) -> Any:
        """Ask the model. `sampled`: a stream is read until it has shown what it does."""
        raise NotImplementedError(f"{type(self).__name__} is asked asynchronously")

    async def asend(self, request: Any, *, sampled: bool) -> Any:
        """The same for callers that await."""
        raise NotImplementedError(f"{type(self).__name__} is asked synchronously")
