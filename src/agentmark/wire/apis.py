"""The three APIs that agents speak, behind one protocol: each module of this room answers the same questions.

api = APIS["/v1/messages"]
candidates = api.candidates(body)            # what the request leaves to decide; empty: pass it on untouched
messages = api.conversation(body)            # what an elicitor is shown
body = api.forced(body, chosen, Rung.NAMED)  # the request with one way to go; None: not in this way
done = what_was_done(api.calls(reply), chosen)
samples = api.choices(reply)                 # a reply with several choices as several replies

Bodies come from strangers. What has not the shape of the documentation is passed over, and nothing here raises for it:
a request that cannot be read leaves nothing to decide, and a reply that cannot be read calls nothing. So ask about a
reply only if the provider sent it as one, not as an error.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from agentmark.elicit.situation import Candidate, Message, ToolCall
from agentmark.wire import anthropic_messages, openai_chat, openai_responses
from agentmark.wire.forcing import Rung

Body = Mapping[str, Any]


class ReplyStream(Protocol):
    """A reply that arrives in events: add each one, parsed, and read what it has come to."""

    def add(self, event: Body) -> None:
        """Take in the next event. What it leaves out, or what nobody here knows, changes nothing."""

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of the agent's tools that the reply makes, so far."""

    @property
    def text(self) -> str:
        """What the reply says, so far."""

    @property
    def finished(self) -> bool:
        """Whether the provider has said that the reply is at its end. One that broke off has done nothing."""


class Api(Protocol):
    """What a gateway or an adapter needs to know of an API. Its modules are the implementations."""

    # The path of its route, from the host on.
    PATH: str

    def candidates(self, body: Body) -> list[Candidate]:
        """What a request leaves to decide: the agent's own tools and the answer. Nothing if one is named already."""

    def runs_hosted_tools(self, body: Body) -> bool:
        """Whether the request offers tools that run at the provider, inside a reply."""

    def calls_one_at_most(self, body: Body) -> bool:
        """Whether the request forbids several calls in one reply: then the first that begins is all there will be."""

    def conversation(self, body: Body) -> list[Message]:
        """The conversation as elicitors read it, oldest message first: roles kept, tool results as tool messages."""

    def forced(self, body: Body, behavior: str, rung: Rung) -> dict[str, Any] | None:
        """The request with one way to go, its tools untouched; None if this API, or this request, has no such way."""

    def choices(self, reply: Body) -> list[dict[str, Any]]:
        """A reply of several choices as so many replies of one, in order; of a single one, as a list of it."""

    def calls(self, reply: Body) -> list[ToolCall]:
        """The calls of the agent's tools that a reply makes, in order. An empty name is a call that names none."""

    def tokens(self, reply: Body) -> tuple[int | None, int | None]:
        """What a reply says of its cost: tokens read, tokens written."""

    def text(self, reply: Body) -> str:
        """What a reply says to the user, a refusal included."""

    def stream(self) -> ReplyStream:
        """A reader for the events of one reply."""


APIS: Mapping[str, Api] = {
    openai_chat.PATH: openai_chat,
    openai_responses.PATH: openai_responses,
    anthropic_messages.PATH: anthropic_messages,
}
