"""OpenAI Agents SDK: `Runner.run(agent, task, run_config=RunConfig(model_provider=AgentMarkProvider(decider)))`."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from agentmark.adapters.side_calls import chat_reply, model_name, settings_of
from agentmark.adapters.streams import AsyncBuffered
from agentmark.decide.call import ModelCall, Spent
from agentmark.decide.decider import Decider
from agentmark.decide.runs import ON_BEHALF_OF, PERFORMED_BY
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, Candidate, Message, ToolCall
from agentmark.errors import MissingExtraError
from agentmark.wire import openai_responses
from agentmark.wire.behaviors import left_to_decide
from agentmark.wire.forcing import Rung, instruction

try:
    import agents
    from agents.models._run_context import get_model_run_owner
except ModuleNotFoundError as error:
    raise MissingExtraError("openai-agents", "openai-agents") from error

# What the SDK gives a model by position, in this order; the rest comes by name.
_ARGUMENTS = "system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing"
# What else the SDK asks of a model, or looks for on it.
_PASSED_ON = "close", "get_retry_advice", "_cleanup_on_run_end", "_supports_default_prompt_cache_key"
# Tools that run at the provider, inside a reply, are no decision of the agent's.
_HOSTED = (
    "FileSearchTool",
    "WebSearchTool",
    "HostedMCPTool",
    "CodeInterpreterTool",
    "ImageGenerationTool",
    "ToolSearchTool",
    "ProgrammaticToolCallingTool",
)
# Beside these, the SDK or the provider takes no named choice.
_UNFORCED = ("ComputerTool", "ToolSearchTool", "ProgrammaticToolCallingTool")
# Names that the SDK reads as kinds of tools: a function of such a name cannot be named.
_KINDS = frozenset(
    [
        *("auto", "required", "none", "file_search", "web_search", "web_search_preview", "image_generation"),
        *("code_interpreter", "mcp", "computer", "computer_use", "computer_use_preview", "programmatic_tool_calling"),
    ]
)

# The arguments of a call of the model, by name.
Arguments = dict[str, Any]

# The runs that are under way, by the object that the SDK has for each.
_RUNS: "WeakKeyDictionary[Any, str]" = WeakKeyDictionary()


class AgentMarkModel(agents.Model):
    """A model of which several replies are drawn at each step, one of them for the agent; or which is told what to
    do, from a stated list. Which tool or handoff comes next, or that the agent answers, carries the mark."""

    def __init__(self, model: agents.Model, decider: Decider) -> None:
        self.model = model
        self.decider = decider
        # What the provider would not take in side calls.
        self._left_out: set[str] = set()
        for name in _PASSED_ON:
            setattr(self, name, getattr(model, name, None))

    async def get_response(self, *args: Any, **kwargs: Any) -> agents.ModelResponse:
        call = _Call(self.model, _named(args, kwargs), self._left_out, is_stream=False)
        turn = await self.decider.aturn(call, session=_run_id(), meta=_who())
        return turn.reply

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        call = _Call(self.model, _named(args, kwargs), self._left_out, is_stream=True)
        turn = await self.decider.aturn(call, session=_run_id(), meta=_who())
        if not call.is_live(turn.reply):
            for event in turn.reply.events:
                yield event
            return
        stream = openai_responses.stream()
        calls = None
        try:
            async for event in turn.reply:
                # An event that cannot be read is the agent's all the same.
                with suppress(Exception):
                    stream.add(_plain(event))
                if stream.finished:
                    calls = stream.calls
                yield call.with_side_calls(event)
        finally:
            try:
                await turn.reply.aclose()
            finally:
                await turn.afinish(calls)


class AgentMarkProvider(agents.ModelProvider):
    """The same for every model that agents name."""

    def __init__(self, decider: Decider, provider: agents.ModelProvider | None = None) -> None:
        self.decider = decider
        self.provider = provider or agents.MultiProvider()
        self.aclose = self.provider.aclose

    def get_model(self, model_name: str | None) -> AgentMarkModel:
        return AgentMarkModel(self.provider.get_model(model_name), self.decider)


@dataclass(frozen=True, slots=True)
class _Streamed:
    """A streamed reply that was read to its end."""

    events: list[Any]

    @property
    def output(self) -> list[dict[str, Any]]:
        """Its items. Some providers leave them out of the last event."""
        last = _plain(self.events[-1])["response"].get("output")
        done = [_plain(event)["item"] for event in self.events if event.type == "response.output_item.done"]
        return last or done


class _Call(ModelCall):
    """A call of the model by the SDK's runner."""

    def __init__(self, model: agents.Model, arguments: Arguments, left_out: set[str], *, is_stream: bool) -> None:
        settings = arguments["model_settings"]
        self.request = arguments
        self.model = model_name(model)
        client = getattr(model, "_client", None)
        self.upstream = f"{type(model).__name__} {getattr(client, 'base_url', 'default')}"
        self.temperature = settings.temperature
        self.seed = {**(settings.extra_body or {}), **(settings.extra_args or {})}.get("seed")
        self.runs_hosted_tools = any(_runs_at_provider(tool) for tool in arguments["tools"])
        self.warms_cache = "claude" in self.model.lower()
        if arguments.get("conversation_id"):
            self.unrepeatable = "the provider keeps the conversation, and would add every sample to it"
        self._model = model
        self._left_out = left_out
        self._is_stream = is_stream
        # What every call of this turn cost, in the SDK's own words; and of these, the side calls.
        self._usages: list[Any] = []
        self._side_usages: list[Any] = []

    def candidates(self) -> list[Candidate]:
        """The agent's own tools, its handoffs and the answer; none where the call leaves nothing to decide."""
        choice = self.request["model_settings"].tool_choice
        if choice not in (None, "auto", "required"):
            return []
        tools = [_candidate_of_tool(tool) for tool in self.request["tools"] if not _runs_at_provider(tool)]
        handoffs = [_candidate_of_handoff(handoff) for handoff in self.request["handoffs"]]
        return left_to_decide(tools + handoffs, may_answer=choice != "required") if tools or handoffs else []

    def conversation(self) -> list[Message]:
        said = {"instructions": self.request["system_instructions"], "input": self.request["input"]}
        return openai_responses.conversation(said)

    def read(self, reply: Any) -> list[ToolCall]:
        items = reply.output if isinstance(reply, _Streamed) else [_plain(item) for item in reply.output]
        return openai_responses.calls({"output": items})

    def tokens(self, reply: Any) -> tuple[int | None, int | None]:
        if self.is_live(reply):
            return None, None
        usage = reply.events[-1].response.usage if isinstance(reply, _Streamed) else reply.usage
        return getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None)

    def charged(self, reply: Any, spent: Spent) -> Any:
        """The SDK adds up what replies say: this one speaks for every call of its turn, each listed by itself."""
        if self.is_live(reply) or len(self._usages) + len(self._side_usages) < 2:
            return reply
        if isinstance(reply, _Streamed):
            return _Streamed([*reply.events[:-1], _with_usage(reply.events[-1], spent)])
        total = agents.Usage()
        for usage in self._usages + self._side_usages:
            total.add(usage)
        return replace(reply, usage=total)

    def with_side_calls(self, event: Any) -> Any:
        """The last event of a live stream with what was asked aside."""
        if not self._side_usages or event.type != "response.completed" or event.response.usage is None:
            return event
        response = event.response
        read = response.usage.input_tokens + sum([usage.input_tokens for usage in self._side_usages])
        written = response.usage.output_tokens + sum([usage.output_tokens for usage in self._side_usages])
        return _with_usage(event, Spent(1 + len(self._side_usages), read, written))

    def forced(self, behavior: str, rung: Rung) -> Arguments | None:
        if rung == Rung.INSTRUCTION:
            return self._instructed(behavior)
        settings = self.request["model_settings"]
        if rung == Rung.NAMED:
            choice = self._named_choice(behavior)
            return None if choice is None else {**self.request, "model_settings": replace(settings, tool_choice=choice)}
        allowed = self._allowed(behavior)
        if allowed is None:
            return None
        body = {**(settings.extra_body or {}), "tool_choice": allowed}
        return {**self.request, "model_settings": replace(settings, extra_body=body)}

    def _named_choice(self, behavior: str) -> str | None:
        if self._is_unforced():
            return None
        if behavior == ANSWER:
            # Nor could a tool of the provider's be used on the way to the answer then.
            return None if self.runs_hosted_tools else "none"
        return None if behavior in _KINDS else behavior

    def _is_unforced(self) -> bool:
        return any(type(tool).__name__ in _UNFORCED for tool in self.request["tools"])

    def _instructed(self, behavior: str) -> Arguments | None:
        if self.request.get("previous_response_id") or self.request.get("conversation_id"):
            # The provider would keep the sentence in the conversation.
            return None
        if self.warms_cache:
            # Thinking is bound to all that was said before it, and the agent sends it back without our sentence.
            return None
        told = {"role": "user", "content": instruction(behavior)}
        return {**self.request, "input": [*_items(self.request["input"]), told]}

    def _allowed(self, name: str) -> dict[str, Any] | None:
        if name == ANSWER or self._is_unforced():
            return None
        if isinstance(self._model, agents.OpenAIResponsesModel):
            own = next((tool for tool in self.request["tools"] if tool.name == name), None)
            is_function = own is None or isinstance(own, agents.FunctionTool)
            named = {"type": "function", "name": name} if is_function else {"type": name}
            return {"type": "allowed_tools", "mode": "required", "tools": [named]}
        if isinstance(self._model, agents.OpenAIChatCompletionsModel):
            function = {"type": "function", "function": {"name": name}}
            return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [function]}}
        return None

    def chat(self) -> FunctionChat:
        return _chat(self._model, self.request, self._side_usages, self._left_out)

    def is_live(self, reply: Any) -> bool:
        return isinstance(reply, AsyncBuffered)

    async def asend(self, request: Arguments, *, sampled: bool) -> Any:
        if not self._is_stream:
            reply = await self._model.get_response(**request)
            self._usages.append(reply.usage)
            return reply
        stream: AsyncBuffered[Any] = AsyncBuffered(aiter(self._model.stream_response(**request)))
        if not sampled:
            # What the provider refuses shows before the first event.
            await stream.read_until(lambda _: True)
            return stream
        events = [event async for event in stream]
        if not events or events[-1].type != "response.completed":
            raise agents.ModelBehaviorError("Model did not produce a final response!")
        self._usages.append(events[-1].response.usage)
        return _Streamed(events)


def chat(model: agents.Model) -> FunctionChat:
    """A model of the SDK's for side calls, untraced: `Verbalised(chat(model))`.

    The agent's own model needs no such thing: the adapter lends it.
    """
    return _chat(model, {"model_settings": agents.ModelSettings(), "tools": [], "handoffs": []}, [], set())


def _chat(model: agents.Model, asked: Arguments, usages: list[Any], left_out: set[str]) -> FunctionChat:
    """The model that was asked, with the agent's own settings, tools and handoffs; what it costs goes to `usages`."""

    async def acomplete(request: ChatRequest) -> ChatReply:
        tools = request.tools
        settings = replace(
            asked["model_settings"],
            tool_choice="none" if tools else None,
            parallel_tool_calls=None,
            **settings_of(request),
        )
        reply = await model.get_response(
            system_instructions=None,
            input=_rendered(request.messages),
            model_settings=settings,
            tools=(asked["tools"] or [_defined(tool) for tool in tools]) if tools else [],
            output_schema=None if request.schema is None else _Form(request.schema),
            handoffs=asked["handoffs"] if tools else [],
            tracing=agents.ModelTracing.DISABLED,
            previous_response_id=None,
            conversation_id=None,
            prompt=None,
        )
        usages.append(reply.usage)
        text = openai_responses.text({"output": [_plain(item) for item in reply.output]})
        return chat_reply(text, reply.usage)

    return FunctionChat(model_name(model), acomplete=acomplete, tools=True, left_out=left_out)


class _Form(agents.AgentOutputSchemaBase):
    """The form of a side call's reply."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = dict(schema)

    def is_plain_text(self) -> bool:
        return False

    def name(self) -> str:
        return "answer"

    def json_schema(self) -> dict[str, Any]:
        return self._schema

    def is_strict_json_schema(self) -> bool:
        return True

    def validate_json(self, json_str: str) -> Any:
        return json.loads(json_str)


async def _never_called(context: Any, arguments: str) -> str:
    return ""


def _defined(tool: Candidate) -> agents.FunctionTool:
    """A tool for a model to know of and not to call."""
    return agents.FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=dict(tool.schema or {"type": "object", "properties": {}}),
        on_invoke_tool=_never_called,
        strict_json_schema=False,
    )


def _rendered(messages: Sequence[Message]) -> list[Any]:
    """A conversation as a list of items."""
    items: list[dict[str, Any]] = []
    for said in messages:
        if said.get("role") == "tool":
            items.append(
                {
                    "type": "function_call_output",
                    "call_id": said.get("tool_call_id", ""),
                    "output": str(said.get("content") or ""),
                }
            )
            continue
        if said.get("content"):
            items.append({"role": said.get("role"), "content": said["content"]})
        for call in said.get("tool_calls") or ():
            given = call.get("arguments")
            items.append(
                {
                    "type": "function_call",
                    "call_id": call.get("id", ""),
                    "name": call["name"],
                    "arguments": given if isinstance(given, str) else json.dumps(given or {}),
                }
            )
    return items


# --- the run ---------------------------------------------------------------------------------------------------------


def _run_id() -> str | None:
    """One id for each `Runner.run`, behind that of its trace if it has one; None outside of a run."""
    owner = get_model_run_owner()
    if owner is None:
        return None
    if owner not in _RUNS:
        trace = agents.get_current_trace()
        own = uuid4().hex[:12]
        _RUNS[owner] = own if trace is None or trace.trace_id == "no-op" else f"{trace.trace_id}/{own}"
    return _RUNS[owner]


def _who() -> dict[str, str]:
    """Who acts, and for whom, as far as the trace says so."""
    said = getattr(agents.get_current_span(), "span_data", None)
    trace = agents.get_current_trace()
    known = {
        PERFORMED_BY: getattr(said, "agent_name", None) or getattr(said, "name", None),
        ON_BEHALF_OF: (getattr(trace, "metadata", None) or {}).get("user_id"),
    }
    return {name: str(value) for name, value in known.items() if value}


# --- the request -----------------------------------------------------------------------------------------------------


def _named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    return {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}


def _items(given: Any) -> list[Any]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def _runs_at_provider(tool: Any) -> bool:
    if type(tool).__name__ == "ShellTool":
        # A shell runs where its environment is: here, or in a container of the provider's.
        environment = tool.environment or {"type": "local"}
        return bool(environment["type"] != "local")
    return type(tool).__name__ in _HOSTED


def _candidate_of_tool(tool: Any) -> Candidate:
    """Tools that are called by their kind, such as a shell, have no description and no schema."""
    name = "computer" if type(tool).__name__ == "ComputerTool" else tool.name
    return Candidate(name, getattr(tool, "description", ""), getattr(tool, "params_json_schema", None))


def _candidate_of_handoff(handoff: Any) -> Candidate:
    return Candidate(handoff.tool_name, handoff.tool_description, handoff.input_json_schema)


def _plain(said: Any) -> dict[str, Any]:
    """An item or an event as the provider's JSON has it."""
    return dict(said) if isinstance(said, Mapping) else said.model_dump(warnings=False)


def _with_usage(event: Any, spent: Spent) -> Any:
    """The last event of a stream, with the usage of a whole turn."""
    usage = event.response.usage
    if usage is None:
        return event
    total = {
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "total_tokens": spent.input_tokens + spent.output_tokens,
    }
    # Built anew: the SDK's own models hang another count on the old one, which would be read first.
    response = event.response.model_copy(update={"usage": type(usage)(**{**usage.model_dump(), **total})})
    return event.model_copy(update={"response": response})
