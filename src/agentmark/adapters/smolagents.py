"""smolagents: a model whose choice among the tools of a `ToolCallingAgent` carries the mark.

agent = ToolCallingAgent(tools=tools, model=AgentMarkModel(model, decider))
"""

import ast
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from agentmark.adapters.side_calls import chat_reply, settings_of
from agentmark.adapters.streams import Buffered
from agentmark.decide.call import ModelCall, Spent
from agentmark.decide.decider import Decider
from agentmark.decide.runs import PERFORMED_BY
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.conversation import NO_OUTPUT
from agentmark.elicit.situation import Candidate, Message, ToolCall
from agentmark.errors import MissingExtraError
from agentmark.wire import openai_chat
from agentmark.wire.forcing import Rung, instruction
from agentmark.wire.messages import message, text_of

try:
    from smolagents.agents import MultiStepAgent
    from smolagents.memory import TaskStep
    from smolagents.models import (
        REMOVE_PARAMETER,
        AmazonBedrockModel,
        ApiModel,
        ChatMessage,
        ChatMessageStreamDelta,
        LiteLLMModel,
        MessageRole,
        MLXModel,
        OpenAIModel,
        TransformersModel,
        VLLMModel,
        agglomerate_stream_deltas,
        get_tool_json_schema,
    )
    from smolagents.monitoring import TokenUsage
except ModuleNotFoundError as error:
    raise MissingExtraError("smolagents", "smolagents") from error

# Models that take no choice of a tool in the words of chat completions; and those that may know a list of allowed ones.
_NO_CHOICE = (AmazonBedrockModel, MLXModel, TransformersModel, VLLMModel)
_ALLOWED_LISTS = (LiteLLMModel, OpenAIModel)
# How smolagents writes calls into its memory: the sign, and then a list as Python writes it.
_CALLS_SIGN = "Calling tools:\n"

# The run that an agent is in, by its last task: each run begins with one.
_runs: "WeakKeyDictionary[MultiStepAgent, tuple[TaskStep, str]]" = WeakKeyDictionary()
_runs_lock = threading.Lock()


class AgentMarkModel:
    """Stands before a model. What it does not do itself, the model does."""

    def __init__(self, model: Any, decider: Decider, *, meta: Mapping[str, Any] | None = None) -> None:
        """`meta` goes into the records of this model's steps, such as `{"on_behalf_of": tenant}`."""
        self.model = model
        self.decider = decider
        self.meta = dict(meta or {})

    def __getattr__(self, name: str) -> Any:
        # Copying and pickling ask for special methods before there is a model to ask.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.model, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.generate(*args, **kwargs)

    def generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        call = _Call(self.model, self.decider, _Request(messages, args, kwargs))
        run_id, meta = self._run()
        return self.decider.turn(call, session=run_id, meta=meta).reply

    @property
    def generate_stream(self) -> Any:
        """There only if the model has it: agents ask with `hasattr`."""
        _ = self.model.generate_stream

        def generate_stream(messages: list[Any], *args: Any, **kwargs: Any) -> Iterator[Any]:
            call = _StreamedCall(self.model, self.decider, _Request(messages, args, kwargs))
            run_id, meta = self._run()
            turn = self.decider.turn(call, session=run_id, meta=meta)
            calls = None
            try:
                yield from turn.reply
                calls = call.read(turn.reply)
            finally:
                turn.reply.close()
                turn.finish(calls)

        return generate_stream

    def _run(self) -> tuple[str | None, dict[str, Any]]:
        """Which run of which agent this is, and what its records say of that."""
        agent = _calling_agent()
        if agent is None:
            return None, self.meta
        performed_by = agent.name or type(agent).__name__
        return _run_id(agent), {PERFORMED_BY: performed_by, **self.meta}


def chat(model: Any) -> FunctionChat:
    """A model for side calls: `Verbalised(chat(other_model))`. Without one, an elicitor is lent the agent's own."""
    return _chat(model, (), set())


@dataclass(frozen=True, slots=True)
class _Request:
    """What an agent asks its model for, and which of the model's own settings are others this once."""

    messages: Sequence[Any]
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    changed: Mapping[str, Any] = field(default_factory=dict)


class _Call(ModelCall):
    """A request for the next tool call of an agent."""

    request: _Request

    def __init__(self, model: Any, decider: Decider, request: _Request) -> None:
        self.upstream = f"{type(model).__name__} {_host(model)}".strip()
        self.model = _name(model)
        self.request = request
        self._model = model
        self._decider = decider
        # What the model was made with goes before what the agent asks for.
        own = {name: value for name, value in _own_settings(model).items() if value is not REMOVE_PARAMETER}
        self._settings = {**request.options, **own}
        temperature = self._settings.get("temperature")
        self.temperature = temperature if isinstance(temperature, int | float) else None
        self.seed = self._settings.get("seed")
        self.runs_hosted_tools = openai_chat.runs_hosted_tools(self._settings)
        self.warms_cache = "claude" in self.model.lower()
        # Models behind an API are asked several times at once. Those that run here, or that smolagents knows nothing
        # of, may not be: their samples come one after the other.
        self._one_at_a_time: AbstractContextManager[Any] = (
            nullcontext() if isinstance(model, ApiModel) else threading.Lock()
        )

    @property
    def _tools(self) -> list[Any]:
        return list(self.request.options.get("tools_to_call_from") or ())

    def candidates(self) -> list[Candidate]:
        """Nothing without tools (plans, code agents), or with a tool that was chosen already.

        `final_answer` is a tool like any other, so no answer without a tool is added.
        """
        choice = self._settings.get("tool_choice")
        if isinstance(choice, Mapping) or choice == "none":
            return []
        return [
            Candidate(tool.name, tool.description, get_tool_json_schema(tool)["function"]["parameters"])
            for tool in self._tools
        ]

    def conversation(self) -> list[Message]:
        return _read_messages(self.request.messages)

    def read(self, reply: Any) -> list[ToolCall]:
        """The calls of a reply, in its text if need be; to the agent a reply without any is an error."""
        calls = reply.tool_calls
        if not calls:
            try:
                calls = self._model.parse_tool_calls(replace(reply)).tool_calls
            except Exception:
                return []
        return [ToolCall(call.function.name, call.function.arguments, call.id or "") for call in calls]

    def forced(self, behavior: str, rung: Rung) -> _Request | None:
        if rung == Rung.INSTRUCTION:
            told = ChatMessage(MessageRole.USER, [{"type": "text", "text": instruction(behavior)}])
            return replace(self.request, messages=[*self.request.messages, told])
        if isinstance(self._model, _NO_CHOICE) or (
            rung == Rung.ALLOWED and not isinstance(self._model, _ALLOWED_LISTS)
        ):
            return None
        body = openai_chat.forced({"tools": [get_tool_json_schema(tool) for tool in self._tools]}, behavior, rung)
        return None if body is None else replace(self.request, changed={"tool_choice": body["tool_choice"]})

    def chat(self) -> FunctionChat:
        return _chat(self._model, self._tools, self._decider.refusals.left_out((self.upstream, self.model)))

    def tokens(self, reply: Any) -> tuple[int | None, int | None]:
        usage = reply.token_usage
        return (None, None) if usage is None else (usage.input_tokens, usage.output_tokens)

    def charged(self, reply: Any, spent: Spent) -> Any:
        if reply.token_usage is None:
            return reply
        return replace(reply, token_usage=TokenUsage(spent.input_tokens, spent.output_tokens))

    def send(self, request: _Request, *, sampled: bool) -> Any:
        with self._one_at_a_time:
            return _ask(self._model, "generate", request)


class _StreamedCall(_Call):
    """The same, with its reply in pieces."""

    def read(self, reply: "_Stream") -> list[ToolCall]:
        return super().read(agglomerate_stream_deltas(reply.seen))

    def tokens(self, reply: "_Stream") -> tuple[int | None, int | None]:
        return super().tokens(agglomerate_stream_deltas(reply.seen))

    def charged(self, reply: "_Stream", spent: Spent) -> "_Stream":
        """What the stream will not say itself: the usage of the others."""
        read, written = self.tokens(reply)
        rest = TokenUsage(spent.input_tokens - (read or 0), spent.output_tokens - (written or 0))
        reply.surcharge = rest if rest.total_tokens else None
        return reply

    def is_live(self, reply: "_Stream") -> bool:
        return not reply.is_sample

    def discard(self, reply: "_Stream") -> None:
        reply.close()

    def send(self, request: _Request, *, sampled: bool) -> "_Stream":
        with self._one_at_a_time:
            stream = _Stream(_ask(self._model, "generate_stream", request), is_sample=sampled)
            # Of a reply that is not sampled, the first piece shows that the request was not refused.
            stream.read_until(self._shows_its_call if sampled else _anything)
            return stream

    def _shows_its_call(self, delta: ChatMessageStreamDelta) -> bool:
        """Whether a sample has shown what it does: at its end, or with a call that begins where it is the only one."""
        if self.needs_arguments or not openai_chat.calls_one_at_most(self._settings):
            return False
        return any(call.function is not None and call.function.name for call in delta.tool_calls or ())


class _Stream(Buffered[Any]):
    """A reply in pieces, which remembers those that it was read by."""

    def __init__(self, source: Iterator[Any], *, is_sample: bool) -> None:
        self.seen: list[Any] = []
        self.is_sample = is_sample
        # Tokens of the turn that no piece of this stream speaks of.
        self.surcharge: TokenUsage | None = None
        super().__init__(self._remembered(source))

    def _remembered(self, source: Iterator[Any]) -> Iterator[Any]:
        try:
            for delta in source:
                self.seen.append(delta)
                yield delta
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()
        if self.surcharge is not None:
            yield ChatMessageStreamDelta(content="", token_usage=self.surcharge)


def _anything(_: object) -> bool:
    return True


# --- asking the model ----------------------------------------------------------------------------------------------


def _ask(model: Any, method: str, request: _Request) -> Any:
    """Ask the very model that the agent has. What its own settings say goes before what is asked for, so where a
    setting is to be another, a copy without it is asked: its client is the same."""
    own = _own_settings(model)
    if any(name in own for name in request.changed):
        model = copy(model)
        model.kwargs = {name: value for name, value in own.items() if name not in request.changed}
    return getattr(model, method)(request.messages, *request.args, **{**request.options, **request.changed})


def _chat(model: Any, tools: Sequence[Any], refused: set[str]) -> FunctionChat:
    """A model for side calls. It is told of the agent's tools, where a side call names them, and not to call any.
    What it refuses of them is kept for the next step."""

    def complete(request: ChatRequest) -> ChatReply:
        changed: dict[str, Any] = settings_of(request)
        options: dict[str, Any] = {}
        if request.schema is not None:
            schema = {"name": "reply", "schema": dict(request.schema), "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        named = {candidate.name for candidate in request.tools}
        offered = [tool for tool in tools if tool.name in named]
        if offered and not isinstance(model, _NO_CHOICE):
            options["tools_to_call_from"] = offered
            changed["tool_choice"] = "none"
        messages = [_written(said) for said in _without_fillers(request.messages)]
        reply = _ask(model, "generate", _Request(messages, (), options, changed))
        return chat_reply(reply.content or "", reply.token_usage)

    return FunctionChat(_name(model), complete=complete, tools=True, left_out=refused)


def _own_settings(model: Any) -> Mapping[str, Any]:
    own = getattr(model, "kwargs", None)
    return own if isinstance(own, Mapping) else {}


def _name(model: Any) -> str:
    return str(getattr(model, "model_id", None) or type(model).__name__)


def _host(model: Any) -> str:
    """Where a model is asked, as far as it says."""
    base = getattr(model, "api_base", None) or getattr(getattr(model, "client", None), "base_url", None)
    return str(base or "")


# --- the run of the agent ------------------------------------------------------------------------------------------


def _calling_agent() -> MultiStepAgent | None:
    """The agent that asks. It does not say who it is when it asks its model, but it stands on the stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        holder = frame.f_locals.get("self")
        if isinstance(holder, MultiStepAgent):
            return holder
        frame = frame.f_back
    return None


def _run_id(agent: MultiStepAgent) -> str | None:
    """One for each run of an agent, also if it goes on with its memory. An agent is in one run at a time."""
    tasks = [step for step in agent.memory.steps if isinstance(step, TaskStep)]
    if not tasks:
        return None
    with _runs_lock:
        known = _runs.get(agent)
        if known is None or known[0] is not tasks[-1]:
            known = _runs[agent] = (tasks[-1], str(uuid4()))
        return known[1]


# --- messages ------------------------------------------------------------------------------------------------------

_ROLES = {MessageRole.TOOL_CALL.value: "assistant", MessageRole.TOOL_RESPONSE.value: "tool"}


def _read_messages(messages: Sequence[Any]) -> list[Message]:
    read: list[Message] = []
    answered = ""
    for said in messages:
        members = said if isinstance(said, dict) else vars(said)
        role, text = MessageRole(members["role"]).value, text_of(members["content"])
        calls = _calls_in(text) if role == MessageRole.TOOL_CALL.value else []
        if calls:
            # One result answers all calls of a step, and is given to the first.
            answered = calls[0].id
        answers = answered if role == MessageRole.TOOL_RESPONSE.value else ""
        read.append(message(_ROLES.get(role, role), "" if calls else text, calls, answers=answers))
    return read


def _calls_in(text: str) -> list[ToolCall]:
    """The calls that smolagents wrote into a message; none if it is written otherwise, and then it is read as text."""
    try:
        listed = ast.literal_eval(text.removeprefix(_CALLS_SIGN))
        called = [(call["function"], call["id"]) for call in listed]
        return [ToolCall(str(function["name"]), function["arguments"], str(made)) for function, made in called]
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError):
        return []


def _without_fillers(messages: Sequence[Message]) -> Iterator[Message]:
    """Without what was said to stand for results that smolagents does not write: the first call has that of all."""
    first = ""
    for said in messages:
        calls = said.get("tool_calls") or ()
        if calls:
            first = calls[0]["id"]
        if said["role"] != "tool" or said.get("tool_call_id") == first or said["content"] != NO_OUTPUT:
            yield said


def _written(said: Message) -> ChatMessage:
    """A message as the agent's memory has it, calls and results included."""
    calls = []
    for call in said.get("tool_calls") or ():
        function = {"name": call["name"], "arguments": call["arguments"]}
        calls.append({"id": call.get("id", ""), "type": "function", "function": function})
    if calls:
        return _text_message(MessageRole.TOOL_CALL, f"{said['content']}{_CALLS_SIGN}{calls}")
    role = MessageRole.TOOL_RESPONSE if said["role"] == "tool" else MessageRole(said["role"])
    return _text_message(role, said["content"])


def _text_message(role: MessageRole, text: str) -> ChatMessage:
    return ChatMessage(role=role, content=[{"type": "text", "text": text}])
