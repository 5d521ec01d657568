"""A chat model as elicitors see it. They are written as dialogues, so that one text serves sync and async callers."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self, TypeVar

from agentmark.core.errors import AgentMarkError
from agentmark.elicit.conversation import in_words, merged, settled, texts_only
from agentmark.elicit.errors import UpstreamError
from agentmark.elicit.situation import Candidate, Elicitation, Message, Situation, whole
from agentmark.errors import SettingError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One side call to a model. The messages are the agent's own, with their roles, and then ours."""

    messages: Sequence[Message]
    # The agent's tools, for the model to know of and not to call: providers want those defined that the conversation
    # called, and a prompt that begins as the agent's own is cached.
    tools: Sequence[Candidate] = ()
    # A JSON schema for the reply; a chat that cannot enforce one ignores it.
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    # The same seed draws the same reply from a local model; other chats ignore it.
    seed: int | None = None
    # How many alternatives to report for each token, 0 for none; and how many are too few to be of use.
    top_logprobs: int = 0
    least_logprobs: int = 0


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
    """A chat from a function that takes a request and returns text, sync or async: how adapters lend their model.

    Whatever the function raises is an upstream that failed, so that a decider can fail open. A provider's refusal (400
    or 422) of a request with a schema or with tools is tried again without, and remembered if that helps.
    """

    def __init__(
        self,
        model: str,
        *,
        complete: Callable[[ChatRequest], str | ChatReply] | None = None,
        acomplete: Callable[[ChatRequest], Awaitable[str | ChatReply]] | None = None,
        tools: bool = False,
        left_out: set[str] | None = None,
    ) -> None:
        """`tools` says that the function passes on calls, messages of the role `tool` and `request.tools`, with the
        model told not to call any. Else it is handed a conversation in which calls and their output are told in words.
        A function may ignore `request.schema`. `left_out` is what was learned so far, for chats that are made anew for
        each call.
        """
        if complete is None and acomplete is None:
            raise SettingError("complete", "give a function, sync or async")
        self.model = model
        self._complete = complete
        self._acomplete = acomplete
        self._tools = tools
        self._left_out: set[str] = set() if left_out is None else left_out

    def complete(self, request: ChatRequest) -> ChatReply:
        if self._complete is None:
            raise SettingError("complete", f"the model {self.model} can only be asked asynchronously: use adecide")
        tries = self._tries(request)
        asked = next(tries)
        try:
            while True:
                try:
                    reply: ChatReply | Exception = _as_reply(self._complete(asked))
                except AgentMarkError:
                    raise
                except Exception as error:
                    reply = error
                asked = tries.send(reply)
        except StopIteration as done:
            answer: ChatReply = done.value
            return answer

    async def acomplete(self, request: ChatRequest) -> ChatReply:
        if self._acomplete is None:
            return await asyncio.to_thread(self.complete, request)
        tries = self._tries(request)
        asked = next(tries)
        try:
            while True:
                try:
                    reply: ChatReply | Exception = _as_reply(await self._acomplete(asked))
                except AgentMarkError:
                    raise
                except Exception as error:
                    reply = error
                asked = tries.send(reply)
        except StopIteration as done:
            answer: ChatReply = done.value
            return answer

    def _tries(self, request: ChatRequest) -> Generator[ChatRequest, ChatReply | Exception, ChatReply]:
        """Yields the request, is sent what came of it, and yields it with less if it was refused."""
        first = None
        optional = {"schema": request.schema is not None, "tools": self._tools and bool(request.tools)}
        parts = [part for part, there in optional.items() if there and part not in self._left_out]
        for left_out in [(), *[(part,) for part in parts], *([tuple(parts)] if len(parts) > 1 else [])]:
            reply = yield self._written(request, frozenset(self._left_out.union(left_out)))
            if not isinstance(reply, Exception):
                self._left_out |= set(left_out)
                return reply
            first = first or reply
            if _status_of(reply) not in (400, 422):
                break
        assert first is not None
        raised = f"the model raised {type(first).__name__}"
        raise UpstreamError(self.model, repr(first), _status_of(first), logged=raised) from first

    def _written(self, request: ChatRequest, left_out: frozenset[str]) -> ChatRequest:
        messages = texts_only(settled(request.messages))
        if not self._tools:
            messages = merged(in_words(messages))
        tools = request.tools if self._tools and "tools" not in left_out else ()
        schema = None if "schema" in left_out else request.schema
        return replace(request, messages=messages, tools=tools, schema=schema)


def _status_of(error: Exception) -> int | None:
    """The HTTP status that a provider's SDK puts into its errors, under one of two names."""
    for name in ("status_code", "code"):
        status = getattr(error, name, None)
        if type(status) is int and 100 <= status < 600:
            return status
    return None


def _as_reply(reply: str | ChatReply) -> ChatReply:
    return ChatReply(text=reply) if isinstance(reply, str) else reply


Dialogue = Generator[ChatRequest, ChatReply, Elicitation]


class ChatElicitor(ABC):
    """An elicitor that talks to a chat: it yields requests and is sent the replies. Several dialogues of one situation
    know nothing of each other, and are held at once where the caller is async."""

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
    def dialogues(self, situation: Situation) -> Sequence[Dialogue]:
        """Ask, read, perhaps ask again; each returns what the model said."""

    @abstractmethod
    def joined(self, said: Sequence[Elicitation]) -> Elicitation:
        """One list from what the dialogues returned."""

    def elicit(self, situation: Situation) -> Elicitation:
        return self._summed([self._held(dialogue) for dialogue in self.dialogues(situation)])

    async def aelicit(self, situation: Situation) -> Elicitation:
        return self._summed(await all_of([self._aheld(dialogue) for dialogue in self.dialogues(situation)]))

    def _summed(self, said: Sequence[Elicitation]) -> Elicitation:
        return with_costs(self.joined(said), said)

    def _held(self, dialogue: Dialogue) -> Elicitation:
        tally = _Tally()
        try:
            request = next(dialogue)
            while True:
                request = dialogue.send(tally.add(self.chat.complete(request)))
        except StopIteration as done:
            return tally.on(done.value)

    async def _aheld(self, dialogue: Dialogue) -> Elicitation:
        tally = _Tally()
        try:
            request = next(dialogue)
            while True:
                request = dialogue.send(tally.add(await self.chat.acomplete(request)))
        except StopIteration as done:
            return tally.on(done.value)


async def all_of(calls: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    """What all of them return, held at once. If one fails, the others are stopped, and its error is the one raised."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def with_costs(elicitation: Elicitation, said: Sequence[Elicitation]) -> Elicitation:
    """The same elicitation, at the cost of all of these."""
    return replace(
        elicitation,
        attempts=sum([part.attempts for part in said]),
        input_tokens=sum_of([part.input_tokens for part in said]),
        output_tokens=sum_of([part.output_tokens for part in said]),
        replies=tuple([reply for part in said for reply in part.replies]),
    )


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
            input_tokens=sum_of([reply.input_tokens for reply in self.replies]),
            output_tokens=sum_of([reply.output_tokens for reply in self.replies]),
            replies=tuple([reply.text for reply in self.replies]),
        )


def sum_of(counts: list[int | None]) -> int | None:
    """The sum of those that were stated."""
    known = [count for count in map(whole, counts) if count is not None]
    return sum(known) if known else None
