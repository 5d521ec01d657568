"""LiteLLM: `AgentMarkLogger(decider)` among the callbacks of its proxy, or its `acompletion` in a program."""

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

from agentmark.adapters.side_calls import settings_of
from agentmark.adapters.streams import AsyncBuffered
from agentmark.decide.call import ModelCall, Spent
from agentmark.decide.decider import Decider
from agentmark.decide.runs import ON_BEHALF_OF, PERFORMED_BY
from agentmark.decide.turn import Turn
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.conversation import chat_messages, settled, texts_only, tool_definitions
from agentmark.elicit.situation import Candidate, Message, ToolCall, whole
from agentmark.errors import MissingExtraError
from agentmark.wire import openai_chat
from agentmark.wire.forcing import Rung

try:
    import litellm
    from litellm._internal_context import is_internal_call
    from litellm.integrations.custom_logger import CustomLogger
except ModuleNotFoundError as error:
    raise MissingExtraError("litellm", "litellm") from error

Body = dict[str, Any]

# Whether a call is one of ours: those are not marked again.
_is_ours: ContextVar[bool] = ContextVar("agentmark_litellm_is_ours", default=False)
# What LiteLLM gives to one call, and another must not share.
_OF_ONE_CALL = ("litellm_call_id", "litellm_logging_obj")
# What a side call does not take over from the agent's request.
_NOT_ASIDE = (
    "messages",
    "n",
    "parallel_tool_calls",
    "response_format",
    "stream",
    "stream_options",
    "tool_choice",
    "tools",
)
# Choices of a tool that may come as an object too: LiteLLM takes {"type": "auto"} for "auto".
_SPELT_OUT = ("auto", "none", "required")
# For whom the proxy's caller acts, the nearest first.
_CALLERS = ("user_api_key_end_user_id", "user_api_key_user_id", "user_api_key_team_id", "user_api_key_org_id")


class AgentMarkLogger(CustomLogger):
    """Marks chat completions: as a callback those of the proxy and of routers, and by itself those of a program."""

    def __init__(self, decider: Decider | Callable[[Any], Decider]) -> None:
        """`decider`: one for all, or a function from who calls (LiteLLM's `UserAPIKeyAuth`, None in a program) to
        theirs."""
        super().__init__()
        self._decider = decider

    async def async_pre_call_deployment_hook(self, kwargs: Body, call_type: Any) -> Body | None:
        """LiteLLM asks here when the way of a request is settled: guardrails have run, and the deployment is chosen.

        The whole turn is made here, at that deployment and with its credentials; what comes of it is handed on as the
        reply that LiteLLM need not ask for any more. An error is the call's own: a router tries again, or elsewhere.
        """
        if _is_ours.get() or "mock_response" in kwargs or _value(call_type) not in ("acompletion", "completion"):
            return None
        decider = self._decider_of(kwargs)
        call = _Call(kwargs, decider)
        if not call.is_to_be_marked():
            return None
        turn = await decider.aturn(call, session=_run_id(kwargs), meta=_meta(kwargs))
        return {**kwargs, **_handed_on(turn.reply)}

    async def acompletion(self, **request: Any) -> Any:
        """`litellm.acompletion`, marked."""
        decider = self._decider_of(request)
        call = _StreamedCall(request, decider) if request.get("stream") else _Call(request, decider)
        if not call.is_to_be_marked():
            with _ours(is_logged=True):
                return await litellm.acompletion(**request)
        turn = await decider.aturn(call, session=_run_id(request), meta=_meta(request))
        if isinstance(call, _StreamedCall):
            return _HandedOn(turn, call)
        return await _logged(request, turn.reply)

    def _decider_of(self, request: Body) -> Decider:
        return self._decider if isinstance(self._decider, Decider) else self._decider(_caller(request))


def chat(model: str, **options: Any) -> FunctionChat:
    """A model that LiteLLM can call, for side calls: `Verbalised(chat("openai/gpt-5-mini", api_key=...))`. Without one,
    an elicitor is lent the agent's own."""

    async def acomplete(request: ChatRequest) -> ChatReply:
        asked = {"model": model, "messages": chat_messages(request.messages), **_asked_aside(request)}
        if request.tools:
            asked |= {"tools": tool_definitions(request.tools), "tool_choice": "none"}
        with _ours(is_logged=True):
            return _chat_reply(await litellm.acompletion(**asked, **options))

    return FunctionChat(model, acomplete=acomplete, tools=True)


class _Call(ModelCall):
    """A chat completion. Its reply is whole; one that was asked for as a stream is put together."""

    request: Body

    def __init__(self, request: Body, decider: Decider) -> None:
        self.request = {name: value for name, value in request.items() if name not in _OF_ONE_CALL}
        self.model = str(request.get("model"))
        where = [request.get(name) for name in ("api_base", "base_url", "custom_llm_provider")]
        self.upstream = " ".join(["litellm", *[str(part) for part in where if part]])
        temperature = request.get("temperature")
        self.temperature = temperature if isinstance(temperature, int | float) else None
        self.seed = request.get("seed")
        messages = [_as_body(said) for said in request.get("messages") or ()]
        choice = request.get("tool_choice")
        if isinstance(choice, Mapping) and "function" not in choice and choice.get("type") in _SPELT_OUT:
            choice = choice["type"]
        self._body = {**self.request, "messages": messages, "tool_choice": choice}
        self.runs_hosted_tools = openai_chat.runs_hosted_tools(self._body)
        self._is_claude = self.warms_cache = "claude" in self.model.lower()
        self._decider = decider
        # The usage of every call of the agent's model in this turn.
        self._usages: list[Mapping[str, Any]] = []

    def is_to_be_marked(self) -> bool:
        """Whether there is anything to decide. Who asks for several replies chooses among them: that is left alone."""
        if not self.candidates():
            return False
        if (whole(self.request.get("n")) or 1) > 1:
            self._decider.ledger.unmarked("the agent asks for several replies at once", self.model)
            return False
        return True

    def candidates(self) -> list[Candidate]:
        return openai_chat.candidates(self._body)

    def conversation(self) -> list[Message]:
        return openai_chat.conversation(self._body)

    def read(self, reply: Any) -> list[ToolCall]:
        return openai_chat.calls(_as_body(reply))

    def tokens(self, reply: Any) -> tuple[int | None, int | None]:
        return openai_chat.tokens(_as_body(reply))

    def forced(self, behavior: str, rung: Rung) -> Body | None:
        """LiteLLM sends no list of allowed tools, and no choice but of functions."""
        body = openai_chat.forced(self._body, behavior, rung)
        if body is None:
            return None
        if rung == Rung.INSTRUCTION:
            # Claude's thinking is bound to all that was said before, and the agent sends it back without our sentence.
            told = {**self.request, "messages": [*self.request["messages"], body["messages"][-1]]}
            return None if self._is_claude else told
        choice = body["tool_choice"]
        can_be_sent = choice == "none" or "function" in choice
        return {**self.request, "tool_choice": choice} if can_be_sent else None

    def several(self, count: int) -> Body | None:
        """LiteLLM reads one choice of a stream."""
        return None if self.request.get("stream") else {**self.request, "n": count}

    def split(self, reply: Any) -> list[Any]:
        return [_with_choice(reply, choice) for choice in reply.choices]

    def charged(self, reply: Any, spent: Spent) -> Any:
        """One choice, and the usage of every call of this model."""
        charged = _with_choice(reply, reply.choices[0]) if reply.choices else reply.model_copy()
        if self._usages:
            charged.usage = litellm.Usage(**_summed(self._usages))
        return charged

    def chat(self) -> FunctionChat:
        async def acomplete(request: ChatRequest) -> ChatReply:
            asked = {name: value for name, value in self.request.items() if name not in _NOT_ASIDE}
            asked |= {"messages": self._aside(request.messages), **_asked_aside(request)}
            if request.tools:
                asked |= {"tools": self.request["tools"], "tool_choice": "none"}
            return _chat_reply(await self._ask(asked))

        refused = self._decider.refusals.left_out((self.upstream, self.model))
        return FunctionChat(self.model, acomplete=acomplete, tools=True, left_out=refused)

    async def asend(self, request: Body, *, sampled: bool) -> Any:
        return await self._ask(request)

    async def _ask(self, request: Body) -> Any:
        """Ask, unseen by LiteLLM's callbacks: they see the turn as one call."""
        with _ours(is_logged=False):
            reply = await litellm.acompletion(**_unlogged(request))
            if request.get("stream"):
                pieces = [chunk async for chunk in reply]
                # Of a stream without a piece, the builder makes nothing at all.
                reply = litellm.stream_chunk_builder(pieces, messages=request["messages"]) or litellm.ModelResponse()
        self._spend(reply)
        return reply

    def _spend(self, reply: Any) -> None:
        usage = _as_body(reply).get("usage")
        if isinstance(usage, Mapping):
            self._usages.append(usage)

    def _aside(self, messages: Sequence[Message]) -> list[Any]:
        """The messages of a side call. Those of the agent go as it sends them: with what models thought, where they
        want that back."""
        own = texts_only(settled(self.conversation()))
        if list(messages[: len(own)]) == own:
            return [*self.request["messages"], *chat_messages(messages[len(own) :])]
        return chat_messages(messages)


class _StreamedCall(_Call):
    """The same in a program, with its reply in pieces that are passed on as they come."""

    def is_live(self, reply: "_Stream") -> bool:
        return not reply.is_sample

    def read(self, reply: "_Stream") -> list[ToolCall]:
        return reply.shown.calls

    def tokens(self, reply: "_Stream") -> tuple[int | None, int | None]:
        return openai_chat.tokens({"usage": reply.usage})

    def charged(self, reply: "_Stream", spent: Spent) -> "_Stream":
        reply.spent_beside = [usage for usage in self._usages if usage is not reply.usage]
        return reply

    async def adiscard(self, reply: "_Stream") -> None:
        await reply.aclose()

    async def asend(self, request: Body, *, sampled: bool) -> "_Stream":
        with _ours(is_logged=not sampled):
            source = await litellm.acompletion(**(_unlogged(request) if sampled else request))
        stream = _Stream(source, is_sample=sampled)
        # Of a reply that is not sampled, the first piece shows that the request was not refused.
        await stream.read_until(self._has_shown(stream) if sampled else _anything)
        if stream.usage is not None:
            self._usages.append(stream.usage)
        return stream

    def _has_shown(self, stream: "_Stream") -> Callable[[Any], bool]:
        """Says when a sample has shown what it does: when its only call begins, where one is all there is; or never."""
        if self.needs_arguments or not openai_chat.calls_one_at_most(self._body):
            return _nothing
        return lambda chunk: any(call.name for call in stream.shown.calls)


class _Stream(AsyncBuffered[Any]):
    """A reply in pieces, and what it has shown so far."""

    def __init__(self, source: Any, *, is_sample: bool) -> None:
        self.shown = openai_chat.stream()
        self.usage: Mapping[str, Any] | None = None
        self.is_sample = is_sample
        # The usage of other calls of the turn, which the last piece is to speak of too.
        self.spent_beside: list[Mapping[str, Any]] = []
        self._litellm_stream = source
        super().__init__(self._read_pieces(source))

    async def _read_pieces(self, source: Any) -> AsyncIterator[Any]:
        async for chunk in source:
            body = _as_body(chunk)
            self.shown.add(body)
            if isinstance(body.get("usage"), Mapping):
                self.usage = body["usage"]
            yield chunk

    async def charged_pieces(self) -> AsyncIterator[Any]:
        """The pieces; one that speaks of usage speaks of the whole turn's."""
        async for chunk in self:
            usage = _as_body(chunk).get("usage")
            if isinstance(usage, Mapping) and self.spent_beside:
                chunk.usage = litellm.Usage(**_summed([*self.spent_beside, usage]))
            yield chunk

    async def aclose(self) -> None:
        await super().aclose()
        close = getattr(self._litellm_stream, "aclose", None)
        if close is not None:
            await close()


class _HandedOn:
    """A stream for the agent. Its turn is finished when it was read, when it is closed, and when nobody has it any
    more."""

    def __init__(self, turn: Turn, call: _StreamedCall) -> None:
        self._turn = turn
        self._call = call
        self._pieces = turn.reply.charged_pieces()
        self._passed_on: list[Any] = []
        # Whoever drops a stream unread has been given nothing that counts.
        self._unread = weakref.finalize(self, turn.finish, None)

    def __aiter__(self) -> "_HandedOn":
        return self

    async def __anext__(self) -> Any:
        try:
            piece = await anext(self._pieces)
        except StopAsyncIteration:
            await self._finish(self._call.read(self._turn.reply))
            if self._turn.reply.is_sample:
                await self._log()
            raise
        except BaseException:
            await self._finish(None)
            raise
        self._passed_on.append(piece)
        return piece

    async def aclose(self) -> None:
        await self._finish(None)
        await self._turn.reply.aclose()

    async def _finish(self, calls: Sequence[ToolCall] | None) -> None:
        self._unread.detach()
        await asyncio.shield(self._turn.afinish(calls))

    async def _log(self) -> None:
        """Samples are unseen by LiteLLM's callbacks: the one that was used is shown to them when it is at its end."""
        request = self._call.request
        whole_reply = litellm.stream_chunk_builder(self._passed_on, messages=request["messages"])
        if whole_reply is not None:
            asked = {name: value for name, value in request.items() if not name.startswith("stream")}
            await _logged(asked, whole_reply)


def _anything(_: object) -> bool:
    return True


def _nothing(_: object) -> bool:
    return False


# --- calls of ours -------------------------------------------------------------------------------------------------


@contextmanager
def _ours(*, is_logged: bool) -> Iterator[None]:
    """Calls in here are not marked again; and, unless they are to be logged, are part of another to LiteLLM."""
    ours = _is_ours.set(True)
    internal = None if is_logged else is_internal_call.set(True)
    try:
        yield
    finally:
        _is_ours.reset(ours)
        if internal is not None:
            is_internal_call.reset(internal)


def _unlogged(request: Body) -> Body:
    """A request that is counted with its turn, not by itself, and that no cache of LiteLLM's answers: a sample that
    was drawn before is none."""
    asked = {**request, "litellm_call_id": str(uuid4()), "no-log": True, "cache": {"no-cache": True, "no-store": True}}
    for name in ("metadata", "litellm_metadata"):
        if isinstance(asked.get(name), Mapping):
            # Limits and budgets of the proxy's caller are charged for the turn as a whole.
            kept = {key: value for key, value in asked[name].items() if not str(key).startswith("user_api_key")}
            asked[name] = kept
    return asked


async def _logged(request: Body, reply: Any) -> Any:
    """A turn as one call, with the usage of all of them: for LiteLLM's own log, costs and callbacks."""
    with _ours(is_logged=True):
        return await litellm.acompletion(**{**request, **_handed_on(reply)})


def _handed_on(reply: Any) -> Body:
    """What makes LiteLLM answer with this reply, and log it as its own."""
    return {"mock_response": reply, "cache": {"no-cache": True, "no-store": True}}


# --- who calls, in which run ---------------------------------------------------------------------------------------


def _metadata(request: Body) -> Mapping[str, Any]:
    found: Body = {}
    for name in ("litellm_metadata", "metadata"):
        if isinstance(request.get(name), Mapping):
            found |= request[name]
    return found


def _caller(request: Body) -> Any:
    return _metadata(request).get("user_api_key_auth")


def _run_id(request: Body) -> str | None:
    """What the agent says of its run. The id of a call is none, and a trace that the router began is one call."""
    said = _metadata(request)
    for run_id in (said.get("session_id"), request.get("litellm_session_id"), said.get("trace_id")):
        if isinstance(run_id, str) and run_id:
            return run_id
    return None


def _meta(request: Body) -> Body:
    said = _metadata(request)
    callers = [said.get(name) for name in _CALLERS] + [said.get("user_id"), request.get("user")]
    on_behalf_of = next((str(caller) for caller in callers if caller), None)
    performed_by = said.get("agent_name") or said.get("user_api_key_alias")
    named = {PERFORMED_BY: performed_by, ON_BEHALF_OF: on_behalf_of}
    return {name: str(value) for name, value in named.items() if value}


# --- bodies --------------------------------------------------------------------------------------------------------


def _value(call_type: Any) -> Any:
    return getattr(call_type, "value", call_type)


def _as_body(said: Any) -> Mapping[str, Any]:
    """A message, a reply or a piece of one as the provider's JSON has it."""
    if isinstance(said, Mapping):
        return said
    return said.model_dump() if hasattr(said, "model_dump") else {}


def _with_choice(reply: Any, choice: Any) -> Any:
    """The reply with one choice, the first."""
    one = reply.model_copy(update={"choices": [choice.model_copy(update={"index": 0})]})
    # What LiteLLM noted of the call that it came from, its price among it, is not that of the turn.
    noted = getattr(reply, "_hidden_params", None) or {}
    one._hidden_params = {name: value for name, value in noted.items() if name != "response_cost"}
    return one


def _summed(usages: Sequence[Mapping[str, Any]]) -> Body:
    """Counts add up, those of the parts too."""
    total: Body = {}
    for usage in usages:
        for name, value in usage.items():
            if isinstance(value, Mapping):
                total[name] = _summed([total.get(name) or {}, value])
            elif isinstance(value, int | float) and not isinstance(value, bool):
                total[name] = (total.get(name) or 0) + value
            else:
                total.setdefault(name, value)
    return total


def _asked_aside(request: ChatRequest) -> Body:
    """What a side call asks for besides its messages and tools."""
    asked: Body = settings_of(request)
    if request.schema is not None:
        schema = {"name": "reply", "schema": dict(request.schema), "strict": True}
        asked["response_format"] = {"type": "json_schema", "json_schema": schema}
    return asked


def _chat_reply(reply: Any) -> ChatReply:
    body = _as_body(reply)
    read, written = openai_chat.tokens(body)
    return ChatReply(text=openai_chat.text(body), input_tokens=read, output_tokens=written)
