"""Pydantic AI: `Agent(model, tools=tools, capabilities=[AgentMarkCapability(decider)])`.

The capability stands in for the model that serves a request. Hooks, history processors, instrumentation and fallbacks
of the agent run around it as they run around the model; it asks that model as often as a turn needs.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from agentmark.adapters.side_calls import begins_with, chat_reply, model_name, settings_of
from agentmark.adapters.streams import AsyncBuffered
from agentmark.decide.call import ModelCall, Spent
from agentmark.decide.decider import Decider
from agentmark.decide.runs import ON_BEHALF_OF, PERFORMED_BY
from agentmark.decide.turn import Turn
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, OTHER, Candidate, Message, ToolCall
from agentmark.errors import MissingExtraError
from agentmark.wire.behaviors import left_to_decide
from agentmark.wire.forcing import Rung, instruction
from agentmark.wire.messages import message

try:
    from pydantic_ai import messages, models
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.settings import ToolOrOutput
    from pydantic_ai.tools import ToolDefinition
except ModuleNotFoundError as error:
    raise MissingExtraError("pydantic-ai", "pydantic-ai") from error

# Parts of a request that say something, and who says it.
_ROLES = {
    "system-prompt": "system",
    "user-prompt": "user",
    "retry-prompt": "user",
    "retry-feedback": "user",
    "tool-return": "tool",
}


@dataclass
class AgentMarkCapability(AbstractCapability[Any]):
    """Chooses, at each request of an agent to its model, which tool is called (output tools included), or that it
    answers in text.

    `on_behalf_of` says for which user or tenant a run is: it is given the run's context, and goes into the records.
    """

    decider: Decider
    on_behalf_of: Callable[[Any], object] | None = None
    # The run that this copy serves.
    run: Any = field(default=None, init=False, repr=False, compare=False)
    # What was learned to leave out of side calls, by where they go and the model that they name.
    left_out: dict[tuple[str, str], set[str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    async def for_run(self, ctx: Any) -> "AgentMarkCapability":
        served = copy(self)
        served.run = ctx
        return served

    def get_wrapper_model(self, model: Any) -> Any:
        # A hook that tries again may name the model that it was shown, which is marked already.
        return None if _is_marked(model) else _MarkedModel(model, self)

    async def turn(self, call: "_Call") -> Turn:
        meta = {}
        name = getattr(getattr(self.run, "agent", None), "name", None)
        if name:
            meta[PERFORMED_BY] = str(name)
        if self.on_behalf_of is not None:
            meta[ON_BEHALF_OF] = str(self.on_behalf_of(self.run))
        return await self.decider.aturn(call, session=getattr(self.run, "run_id", None), meta=meta)


class _MarkedModel(WrapperModel):
    """The model that serves a request, with a turn of the decider around each request."""

    def __init__(self, model: Any, capability: AgentMarkCapability) -> None:
        super().__init__(model)
        self._capability = capability

    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> Any:
        request = _Request(messages, model_settings, model_request_parameters)
        turn = await self._capability.turn(_Call(self.wrapped, request, self._capability))
        return turn.reply

    @asynccontextmanager
    async def request_stream(
        self, messages: Any, model_settings: Any, model_request_parameters: Any, run_context: Any = None
    ) -> AsyncIterator[Any]:
        request = _Request(messages, model_settings, model_request_parameters, run_context)
        call = _StreamedCall(self.wrapped, request, self._capability)
        turn = await self._capability.turn(call)
        reply: _OpenStream = turn.reply
        try:
            yield reply.stream
        except BaseException as error:
            await reply.close(error)
            raise
        finally:
            await reply.close()
            await turn.afinish(_calls_of(reply.source.get()) if reply.is_at_end else None)


@dataclass(frozen=True)
class _Request:
    """What a model is handed."""

    messages: Sequence[Any]
    settings: Mapping[str, Any] | None
    parameters: Any
    # Streams are handed the context of their run as well.
    context: Any = field(default=None, repr=False)


class _Call(ModelCall):
    """A request of an agent to its model."""

    request: _Request

    def __init__(self, model: Any, request: _Request, capability: AgentMarkCapability) -> None:
        self._model = model
        self._run = capability.run
        self.request = request
        self.upstream = f"{_innermost(model).__name__} {_base_url(model)}"
        self.model = str(getattr(model, "model_name", type(model).__name__))
        self._left_out = capability.left_out.setdefault((self.upstream, self.model), set())
        self.warms_cache = "AnthropicModel" in _kinds(model)
        # The settings with the model's own, and the tools and the way of output that this model is sent.
        self._settings, self._offer = _prepared(model, request)
        self.temperature = self._settings.get("temperature")
        self.seed = self._settings.get("seed")
        self.runs_hosted_tools = bool(self._offer.native_tools)
        self._counted: list[Any] = []
        self._side_usage: list[Any] = []

    def candidates(self) -> list[Candidate]:
        """The tools on offer, output tools too, and the answer in text; none where there is nothing to decide."""
        last = self.request.messages[-1] if self.request.messages else None
        if getattr(last, "state", "complete") == "suspended":
            # What the provider has begun is waited for, or continued.
            return []
        choice = self._settings.get("tool_choice")
        if choice in ("none", []):
            return []
        offer = self._offer
        functions = [tool for tool in offer.function_tools if offer.visibility_of(tool.name) != "withheld"]
        outputs = list(offer.output_tools)
        may_answer = offer.allow_text_output or offer.allow_image_output
        if choice in (None, "auto"):
            tools = functions + outputs
        elif choice == "required":
            tools, may_answer = functions, False
        elif isinstance(choice, ToolOrOutput):
            tools = [tool for tool in functions if tool.name in choice.function_tools] + outputs
        else:
            # A list of names.
            tools, may_answer = [tool for tool in functions + outputs if tool.name in choice], False
        listed = [Candidate(tool.name, tool.description or "", tool.parameters_json_schema) for tool in tools]
        return left_to_decide(listed, may_answer=may_answer)

    def conversation(self) -> list[Message]:
        instructions = self.request.parameters.instruction_parts or ()
        said = [message("system", part.content) for part in instructions]
        for spoken in self.request.messages:
            said += _said_by_model(spoken) if spoken.kind == "response" else _said_to_model(spoken)
        return said

    def read(self, reply: Any) -> list[ToolCall]:
        return _calls_of(reply)

    # --- costs ---

    def tokens(self, reply: Any) -> tuple[int | None, int | None]:
        self._counted.append(reply)
        usage = _response_of(reply).usage
        return usage.input_tokens, usage.output_tokens

    def charged(self, reply: Any, spent: Spent) -> Any:
        """Adds what the agent is not handed to the run's usage. The framework adds the reply's own, as always: what a
        reply says of its input is also how the length of the context is told."""
        usage = getattr(self._run, "usage", None)
        if usage is not None:
            unused = [_priced(_response_of(other)) for other in self._counted if other is not reply]
            for cost in unused + self._side_usage:
                usage.incr(cost)
        return reply

    # --- stated lists ---

    def forced(self, behavior: str, rung: Rung) -> _Request | None:
        if rung is Rung.INSTRUCTION:
            return self._instructed(behavior)
        if rung is Rung.ALLOWED:
            allowed = _allowed(self._model, behavior)
            body = {**((self._settings or {}).get("extra_body") or {}), "tool_choice": allowed}
            return None if allowed is None else self._with_settings(extra_body=body)
        if behavior == ANSWER:
            # "none" leaves output tools callable, and forbids tools of the provider, which an answer may use.
            has_others = self._offer.output_tools or self._offer.native_tools
            return None if has_others else self._with_settings(tool_choice="none")
        return self._with_settings(tool_choice=[behavior]) if self._may_force() else None

    def _may_force(self) -> bool:
        """Whether the model takes a forced choice of a tool, as far as its profile knows, and goes on thinking then."""
        if "FallbackModel" in _kinds(self._model):
            # It has no profile of its own: the first refusal will tell.
            return True
        profile = self._model.profile
        if not profile.get("supports_forced_tool_choice", True):
            return False
        asked_to_think = self._offer.thinking or any(
            value for name, value in self._settings.items() if "thinking" in name or "reasoning" in name
        )
        thinks_anyway = profile.get("thinking_enabled_by_default") or profile.get("thinking_always_enabled")
        if not (asked_to_think or thinks_anyway):
            return True
        refuses = not profile.get("supports_forced_tool_choice_with_thinking", True)
        stops_thinking = profile.get("forced_tool_choice_disables_thinking", False)
        return not (refuses or stops_thinking)

    def _with_settings(self, **settings: Any) -> _Request:
        return replace(self.request, settings={**(self.request.settings or {}), **settings})

    def _instructed(self, behavior: str) -> _Request | None:
        if self.warms_cache or "claude" in self.model:
            # Claude's thinking is bound to all that was said before it, and is sent back without our sentence.
            return None
        *before, last = self.request.messages
        told = replace(last, parts=[*last.parts, messages.UserPromptPart(instruction(behavior))])
        return replace(self.request, messages=[*before, told])

    def chat(self) -> FunctionChat:
        async def acomplete(request: ChatRequest) -> ChatReply:
            response = await _side_call(self._model, self._side_request(request), request)
            self._side_usage.append(_priced(response))
            return chat_reply(response.text or "", response.usage)

        return FunctionChat(self.model, acomplete=acomplete, tools=True, left_out=self._left_out)

    def _side_request(self, request: ChatRequest) -> _Request:
        """The agent's own messages where they come first, with all that providers want back in them; then ours."""
        own = self.conversation()
        tools = [tool for tool in self.request.parameters.function_tools if request.tools]
        if begins_with(request.messages, own):
            ours = _written(request.messages[len(own) :])
            parameters = replace(_without_output(self.request.parameters), function_tools=tools)
            return _Request([*self.request.messages, *ours], self._settings, parameters)
        parameters = models.ModelRequestParameters(function_tools=tools)
        return _Request(_written(request.messages), self._settings, parameters)

    # --- asking ---

    async def asend(self, request: _Request, *, sampled: bool) -> Any:
        return await self._model.request(list(request.messages), request.settings, request.parameters)

    async def adiscard(self, reply: Any) -> None:
        if reply.state == "suspended":
            with suppress(Exception):
                await self._model.cancel_suspended_response(reply)


class _StreamedCall(_Call):
    """The same where the reply is streamed."""

    def __init__(self, model: Any, request: _Request, capability: AgentMarkCapability) -> None:
        super().__init__(model, request, capability)
        fallback = capability.decider.fallback
        reads_arguments = fallback is not None and fallback.granularity == "call"
        # Whether the first call that begins is all there will be, and its name all that tells replies apart.
        # Where callers are limited, a stream that is held open may keep the next sample out.
        is_single = self._settings.get("parallel_tool_calls") is False
        self._shows_early = is_single and not reads_arguments and not _limits_callers(model)

    def read(self, reply: Any) -> list[ToolCall]:
        return _calls_of(reply.source.get())

    def is_live(self, reply: Any) -> bool:
        return not reply.is_at_end

    async def asend(self, request: _Request, *, sampled: bool) -> "_OpenStream":
        asked = self._model.request_stream(
            list(request.messages), request.settings, request.parameters, request.context
        )
        opened = await _OpenStream.open(asked)
        try:
            await opened.read_ahead(self._has_shown if sampled else _any_event)
            if opened.is_at_end:
                # A model that limits its callers lets the next sample in.
                await opened.close()
        except BaseException as error:
            await opened.close(error)
            raise
        return opened

    def _has_shown(self, event: Any) -> bool:
        return self._shows_early and _begins_call(event)

    async def adiscard(self, reply: Any) -> None:
        await super().adiscard(reply.source.get())
        await reply.close()


# --- streams -------------------------------------------------------------------------------------------------------


class _OpenStream:
    """A streamed reply. One task opens and closes it, since some models keep things by the task; anyone may read it."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[Any] = loop.create_future()
        self._released: asyncio.Future[None] = loop.create_future()
        self._owner: asyncio.Task[None] | None = None
        # What the model streams, and what is passed on of it.
        self.source: Any = None
        self.stream: Any = None
        self.is_at_end = False
        self._events: AsyncBuffered[Any]

    @classmethod
    async def open(cls, asked: Any) -> "_OpenStream":
        opened = cls()
        opened._owner = asyncio.create_task(opened._own(asked))
        try:
            source = await opened._opened
        except asyncio.CancelledError:
            opened._owner.cancel()
            raise
        opened._events = AsyncBuffered(source)
        opened.source = source
        opened.stream = _PassedOn(source, opened._passed_on())
        return opened

    async def _own(self, asked: Any) -> None:
        try:
            async with asked as source:
                self._opened.set_result(source)
                await self._released
        except BaseException as error:
            if not self._opened.done():
                self._opened.set_exception(error)

    async def _passed_on(self) -> AsyncIterator[Any]:
        async for event in self._events:
            yield event
        self.is_at_end = True

    async def read_ahead(self, sees: Callable[[Any], bool]) -> None:
        await self._events.read_until(sees)
        self.is_at_end = self._events.is_at_end

    async def close(self, error: BaseException | None = None) -> None:
        """Leave the stream, with the error that ended the reading if there was one. Once is enough."""
        if not self._released.done():
            if error is None or isinstance(error, GeneratorExit | asyncio.CancelledError):
                self._released.set_result(None)
            else:
                self._released.set_exception(error)
        if self._owner is not None:
            await asyncio.wait([self._owner])


class _PassedOn:
    """A stream of which the beginning was read ahead: what it says it has so far is what was passed on so far. In all
    else it is the stream itself."""

    def __init__(self, source: Any, events: AsyncIterator[Any]) -> None:
        self._source = source
        self._parts: dict[int, Any] = {}
        self._is_whole = False
        self._event_iterator = self._pass_on(events)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._event_iterator

    async def _pass_on(self, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for event in events:
            if isinstance(event, messages.PartDeltaEvent):
                self._parts[event.index] = event.delta.apply(self._parts[event.index])
            elif isinstance(event, messages.PartStartEvent | messages.PartEndEvent):
                self._parts[event.index] = event.part
            yield event
        self._is_whole = True

    def get(self) -> Any:
        response = self._source.get()
        if self._is_whole:
            return response
        parts = [self._parts[index] for index in sorted(self._parts)]
        state = "interrupted" if self._source.cancelled else "incomplete"
        return replace(response, parts=parts, state=state if response.state == "complete" else response.state)

    def _enforce_request_deadline(self, deadline: Any) -> None:
        self._event_iterator = deadline.iterate(self._event_iterator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _any_event(event: Any) -> bool:
    return True


def _begins_call(event: Any) -> bool:
    return isinstance(event, messages.PartStartEvent) and event.part.part_kind == "tool-call"


# --- models --------------------------------------------------------------------------------------------------------


def chat(model: Any) -> FunctionChat:
    """A model object, lent for side calls: `Verbalised(chat(model))`. Without one, the agent's own is asked."""

    async def acomplete(request: ChatRequest) -> ChatReply:
        tools = [_definition(tool) for tool in request.tools]
        parameters = models.ModelRequestParameters(function_tools=tools)
        response = await _side_call(model, _Request(_written(request.messages), None, parameters), request)
        return chat_reply(response.text or "", response.usage)

    return FunctionChat(model_name(model), acomplete=acomplete, tools=True)


async def _side_call(model: Any, asked: _Request, request: ChatRequest) -> Any:
    settings = {**(asked.settings or {}), **settings_of(request)}
    settings.pop("tool_choice", None)
    if asked.parameters.function_tools:
        settings["tool_choice"] = "none"
    history = model.prepare_messages(list(asked.messages), asked.parameters)
    if request.schema is not None and model.profile.get("supports_json_schema_output"):
        described = OutputObjectDefinition(json_schema=dict(request.schema), name="reply")
        in_schema = replace(asked.parameters, output_mode="native", output_object=described)
        # Some models take a schema only without tools: those are asked in words alone.
        with suppress(UserError):
            return await model.request(history, settings, in_schema)
    return await model.request(history, settings, asked.parameters)


def _without_output(parameters: Any) -> Any:
    """The same offer with an answer in text, and nothing that runs at the provider."""
    return replace(
        parameters,
        native_tools=[],
        output_tools=[],
        output_object=None,
        output_mode="text",
        allow_text_output=True,
        allow_image_output=False,
    )


def _definition(tool: Candidate) -> Any:
    schema = dict(tool.schema or {"type": "object", "properties": {}})
    return ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=schema)


def _prepared(model: Any, request: _Request) -> tuple[Mapping[str, Any], Any]:
    """The request as this model will send it. What a fallback model will send is not known: output is taken to come
    from tools."""
    settings, offer = model.prepare_request(request.settings, request.parameters)
    return settings or {}, offer.with_default_output_mode("tool")


def _kinds(model: Any) -> list[str]:
    return [kind.__name__ for kind in _innermost(model).__mro__]


def _innermost(model: Any) -> type:
    """The class of the model that speaks to a provider."""
    return type(_layers(model)[-1])


def _layers(model: Any) -> list[Any]:
    """A model, and those that it wraps, from the outermost."""
    layers = [model]
    while isinstance(layers[-1], WrapperModel):
        layers.append(layers[-1].wrapped)
    return layers


def _is_marked(model: Any) -> bool:
    return any(isinstance(layer, _MarkedModel) for layer in _layers(model))


def _limits_callers(model: Any) -> bool:
    return any(type(layer).__name__ == "ConcurrencyLimitedModel" for layer in _layers(model))


def _base_url(model: Any) -> str:
    return str(getattr(model, "base_url", None) or "")


def _allowed(model: Any, behavior: str) -> dict[str, Any] | None:
    """The one tool to be called, in the words of OpenAI's APIs; None where there are none."""
    if behavior == ANSWER:
        return None
    kinds = _kinds(model)
    if "OpenAIChatModel" in kinds:
        tools = [{"type": "function", "function": {"name": behavior}}]
        return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": tools}}
    if "OpenAIResponsesModel" in kinds:
        return {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": behavior}]}
    return None


def _response_of(reply: Any) -> Any:
    return reply.source.get() if isinstance(reply, _OpenStream) else reply


def _priced(response: Any) -> Any:
    """The usage of a response with its price, where that is known: prices go by single requests."""
    usage = response.usage
    if usage.cost is None:
        with suppress(Exception):
            return replace(usage, cost=response.cost().total_price)
    return usage


# --- messages ------------------------------------------------------------------------------------------------------


def _calls_of(response: Any) -> list[ToolCall]:
    if response.state == "suspended":
        # The provider works on it still: what it will do is not known.
        return [ToolCall(OTHER)]
    return [ToolCall(call.tool_name, call.args, call.tool_call_id) for call in response.tool_calls]


def _said_by_model(response: Any) -> list[Message]:
    text = "".join([part.content for part in response.parts if part.part_kind == "text"])
    calls = [
        ToolCall(part.tool_name, part.args, part.tool_call_id)
        for part in response.parts
        if part.part_kind == "tool-call"
    ]
    return [message("assistant", text, calls)] if text or calls else []


def _said_to_model(request: Any) -> list[Message]:
    said = []
    for part in request.parts:
        if part.part_kind in _ROLES:
            answers = part.tool_call_id if getattr(part, "tool_name", None) else ""
            role = "tool" if answers else _ROLES[part.part_kind]
            said.append(message(role, _text_of(part), answers=answers))
    return said


def _text_of(part: Any) -> str:
    """What a part says, in the words that the model is shown where it has such; of several contents, the text."""
    for shown in ("model_response_str", "model_response"):
        if hasattr(part, shown):
            return str(getattr(part, shown)())
    if isinstance(part.content, str):
        return part.content
    return " ".join([content for content in part.content or () if isinstance(content, str)])


def _written(said: Sequence[Message]) -> list[Any]:
    """Messages of a side call in Pydantic AI's words."""
    names = {call.get("id"): str(call.get("name")) for message in said for call in message.get("tool_calls") or ()}
    history: list[Any] = []
    for spoken in said:
        text = str(spoken.get("content") or "")
        if spoken["role"] == "assistant":
            calls = [
                messages.ToolCallPart(str(call.get("name")), call.get("arguments"), tool_call_id=call.get("id") or "")
                for call in spoken.get("tool_calls") or ()
            ]
            history.append(messages.ModelResponse([*([messages.TextPart(text)] if text else []), *calls]))
            continue
        part: Any
        if spoken["role"] == "system":
            part = messages.SystemPromptPart(text)
        elif spoken["role"] == "tool" and spoken.get("tool_call_id") in names:
            answers = spoken["tool_call_id"]
            part = messages.ToolReturnPart(names[answers], text, tool_call_id=answers)
        else:
            part = messages.UserPromptPart(text)
        if history and isinstance(history[-1], messages.ModelRequest):
            history[-1] = messages.ModelRequest([*history[-1].parts, part])
        else:
            history.append(messages.ModelRequest([part]))
    return history
