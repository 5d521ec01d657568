"""A chat model as elicitors see it. They are written as dialogues, so that one text serves sync and async callers."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

from agentmark.core.errors import AgentMarkError
from agentmark.elicit.errors import UpstreamError
from agentmark.elicit.situation import Elicitation, Message, Situation, whole
from agentmark.errors import SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One side call to a model."""

    messages: Sequence[Message]
    # A JSON schema for the reply; a chat that cannot enforce one ignores it.
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    # How many alternatives to report for each token; 0 for none.
    top_logprobs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """What came back."""

    text: str
    # For each token of the reply, its most likely alternatives with their log-probabilities; None if not reported.
    top_logprobs: Sequence[Sequence[tuple[str, float]]] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class Chat(Protocol):
    """A model that answers messages."""

    @property
    def model(self) -> str: ...

    def complete(self, request: ChatRequest) -> ChatReply: ...

    async def acomplete(self, request: ChatRequest) -> ChatReply: ...


class FunctionChat:
    """A chat from a function that takes messages and returns text, sync or async: how adapters lend their model.

    Whatever the function raises is an upstream that failed, so that a decider can fail open.
    """

    def __init__(
        self,
        model: str,
        *,
        complete: Callable[[ChatRequest], str | ChatReply] | None = None,
        acomplete: Callable[[ChatRequest], Awaitable[str | ChatReply]] | None = None,
    ) -> None:
        if complete is None and acomplete is None:
            raise SettingError("complete", "give a function, sync or async")
        self.model = model
        self._complete = complete
        self._acomplete = acomplete

    def complete(self, request: ChatRequest) -> ChatReply:
        if self._complete is None:
            raise SettingError("complete", f"the model {self.model} can only be asked asynchronously: use adecide")
        try:
            return _as_reply(self._complete(request))
        except AgentMarkError:
            raise
        except Exception as error:
            raise UpstreamError(self.model, repr(error), logged=f"the model raised {type(error).__name__}") from error

    async def acomplete(self, request: ChatRequest) -> ChatReply:
        if self._acomplete is None:
            return await asyncio.to_thread(self.complete, request)
        try:
            return _as_reply(await self._acomplete(request))
        except AgentMarkError:
            raise
        except Exception as error:
            raise UpstreamError(self.model, repr(error), logged=f"the model raised {type(error).__name__}") from error


def _as_reply(reply: str | ChatReply) -> ChatReply:
    return ChatReply(text=reply) if isinstance(reply, str) else reply


Dialogue = Generator[ChatRequest, ChatReply, Elicitation]


class ChatElicitor(ABC):
    """An elicitor that talks to a chat: it yields requests and is sent the replies."""

    name: ClassVar[str]

    def __init__(self, chat: Chat | None = None) -> None:
        """Without a chat the elicitor asks the agent's own model, which an adapter lends it."""
        self._chat = chat

    @property
    def chat(self) -> Chat:
        if self._chat is None:
            raise SettingError("chat", "give one: only an adapter can lend the agent's own model")
        return self._chat

    def lent(self, chat: Chat) -> Self:
        """The same elicitor with this model, unless it was given one of its own."""
        if self._chat is not None:
            return self
        borrowed = copy(self)
        borrowed._chat = chat
        return borrowed

    @abstractmethod
    def dialogue(self, situation: Situation) -> Dialogue:
        """Ask, read, perhaps ask again; return what the model said."""

    def elicit(self, situation: Situation) -> Elicitation:
        dialogue = self.dialogue(situation)
        tally = _Tally()
        try:
            request = next(dialogue)
            while True:
                request = dialogue.send(tally.add(self.chat.complete(request)))
        except StopIteration as done:
            return tally.on(done.value)

    async def aelicit(self, situation: Situation) -> Elicitation:
        dialogue = self.dialogue(situation)
        tally = _Tally()
        try:
            request = next(dialogue)
            while True:
                request = dialogue.send(tally.add(await self.chat.acomplete(request)))
        except StopIteration as done:
            return tally.on(done.value)


class _Tally:
    """Counts what a dialogue cost."""

    def __init__(self) -> None:
        self.replies: list[ChatReply] = []

    def add(self, reply: ChatReply) -> ChatReply:
        self.replies.append(reply)
        return reply

    def on(self, elicitation: Elicitation) -> Elicitation:
        return replace(
            elicitation,
            attempts=len(self.replies),
            input_tokens=_sum([reply.input_tokens for reply in self.replies]),
            output_tokens=_sum([reply.output_tokens for reply in self.replies]),
            replies=tuple([reply.text for reply in self.replies]),
        )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in map(whole, counts) if count is not None]
    return sum(known) if known else None
