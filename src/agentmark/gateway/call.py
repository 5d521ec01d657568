"""A request of an agent, as the turn sees it: the bytes that came in, and the API that they are in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from agentmark.decide.call import ModelCall
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import Candidate, Message, ToolCall, whole
from agentmark.gateway.aside import side_body
from agentmark.gateway.headers import IDEMPOTENCY_KEY, without
from agentmark.gateway.replies import is_reply
from agentmark.gateway.upstream import BrokenReplyError, Clock, RefusedError, Reply, Target, Upstreams
from agentmark.wire import anthropic_messages, openai_responses
from agentmark.wire.apis import Api, ReplyStream
from agentmark.wire.forcing import Rung


class GatewayCall(ModelCall):
    """One request on a deciding route. `request` is its body as bytes, exactly as the agent sent it."""

    request: bytes

    def __init__(
        self,
        api: Api,
        raw: bytes,
        body: Mapping[str, Any],
        *,
        target: Target,
        upstreams: Upstreams,
        model: str,
        max_reply: int,
        left_out: set[str] | None = None,
    ) -> None:
        self.api = api
        self.request = raw
        self.body = body
        self.model = model
        self.upstream = target.name
        self.clock = Clock()
        temperature = body.get("temperature")
        self.temperature = temperature if isinstance(temperature, int | float) else None
        if api is anthropic_messages and body.get("top_k") == 1:
            self.temperature = 0
        self.seed = body.get("seed")
        self.runs_hosted_tools = api.runs_hosted_tools(body)
        self.unrepeatable = _unrepeatable(api, body)
        self.warms_cache = False
        self._target = target
        named = any(name == IDEMPOTENCY_KEY for name, _ in target.headers)
        self._repeated = replace(target, headers=without(target.headers, IDEMPOTENCY_KEY)) if named else target
        self._upstreams = upstreams
        self._max_reply = max_reply
        self._left_out = left_out
        self._candidates = api.candidates(body)
        self._messages: list[Message] | None = None
        self._sent = 0
        self._replies: list[Reply] = []

    def unmarkable(self) -> str | None:
        """Why there is nothing to decide for the gateway, if so: such a request is passed on as it is."""
        if not self._candidates:
            return "no tools on offer" if not self.body.get("tools") else "nothing is left to decide"
        count = whole(self.body.get("n"))
        if count is not None and count > 1:
            return "the agent asks for several replies at once"
        return None

    def candidates(self) -> Sequence[Candidate]:
        return self._candidates

    def conversation(self) -> list[Message]:
        if self._messages is None:
            self._messages = self.api.conversation(self.body)
        return self._messages

    def read(self, reply: Reply) -> Sequence[ToolCall]:
        if reply.is_stream:
            if reply.is_unreadable:
                raise ValueError("a stream that cannot be read")
            return reply.shown.calls if reply.shown is not None else ()
        said = reply.parsed()
        if not is_reply(self.api, said):
            raise ValueError("a reply that has not the shape of its API")
        return self.api.calls(said)

    def tokens(self, reply: Reply) -> tuple[int | None, int | None]:
        if reply.is_stream:
            return reply.usage
        try:
            return self.api.tokens(reply.parsed())
        except ValueError:
            return None, None

    def forced(self, behavior: str, rung: Rung) -> bytes | None:
        body = self.api.forced(self.body, behavior, rung)
        return None if body is None else msgspec.json.encode(body)

    def is_live(self, reply: Reply) -> bool:
        return not reply.is_at_end

    async def adiscard(self, reply: Reply) -> None:
        reply.close()

    def close(self) -> None:
        """Let go of every reply that is still on its way."""
        for reply in self._replies:
            if not reply.is_at_end:
                reply.close()
        self._replies.clear()

    async def asend(self, request: bytes, *, sampled: bool) -> Reply:
        reply = await self._ask(request, sampled=sampled)
        self.clock.begin()
        try:
            if reply.status >= 400:
                await reply.read_whole(self._max_reply)
                raise RefusedError(reply)
            if not reply.is_stream:
                await reply.read_whole(self._max_reply)
            elif sampled:
                reply.is_sample = True
                await reply.read_until(self._has_shown(), self.api, self._max_reply)
                if reply.is_at_end and not reply.is_finished and not reply.is_unreadable:
                    raise BrokenReplyError(reply)
        finally:
            self.clock.end()
        return reply

    async def _ask(self, request: bytes, *, sampled: bool = False) -> Reply:
        target = self._target
        self._sent += 1
        if self._sent > 1 or sampled:
            # One name for several requests would make them one, where the upstream goes by it.
            target = self._repeated
        self.clock.begin()
        try:
            reply = await self._upstreams.send("POST", target, request)
        finally:
            self.clock.end()
        self._replies.append(reply)
        return reply

    def _has_shown(self) -> Callable[[ReplyStream], bool]:
        """Says when a sample has shown what it does: when its only call begins, where one is all there is; or at its
        end."""
        if self.needs_arguments or not self.api.calls_one_at_most(self.body):
            return _nothing
        return lambda shown: any(call.name for call in shown.calls)

    def chat(self) -> FunctionChat:
        """The agent's own model, for a list: the same upstream, model and credential."""

        async def acomplete(request: ChatRequest) -> ChatReply:
            body = side_body(self.api, self.body, self.conversation(), request)
            reply = await self._ask(msgspec.json.encode(body))
            self.clock.begin()
            try:
                await reply.read_whole(self._max_reply)
            finally:
                self.clock.end()
            if reply.status >= 400:
                raise RefusedError(reply)
            said = reply.parsed()
            read, written = self.api.tokens(said)
            return ChatReply(text=self.api.text(said), input_tokens=read, output_tokens=written)

        return FunctionChat(self.model, acomplete=acomplete, tools=True, left_out=self._left_out)


def _nothing(_: object) -> bool:
    return False


def _unrepeatable(api: Api, body: Mapping[str, Any]) -> str | None:
    """Why sending a request several times would leave traces, or cannot be waited for."""
    if api is openai_responses:
        if body.get("background") is True:
            return "a reply that is made in the background is not waited for"
        if body.get("conversation") is not None:
            return "every sample would be added to the provider's conversation"
    return None
