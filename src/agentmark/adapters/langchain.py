"""LangChain: `create_agent(model, tools, middleware=[AgentMarkMiddleware(decider)])`."""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from agentmark.adapters.side_calls import chat_reply, model_name, settings_of
from agentmark.decide.call import ModelCall
from agentmark.decide.decider import Decider
from agentmark.decide.runs import ON_BEHALF_OF, PERFORMED_BY
from agentmark.decide.turn import Turn
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, Candidate, Message, ToolCall
from agentmark.errors import MissingExtraError
from agentmark.wire.behaviors import left_to_decide
from agentmark.wire.forcing import Rung, instruction
from agentmark.wire.messages import message

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
    from langchain_core.callbacks import AsyncCallbackManager, CallbackManager, StreamingStdOutCallbackHandler
    from langchain_core.callbacks.base import BaseCallbackManager
    from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, LLMResult
    from langchain_core.runnables.config import var_child_runnable_config
    from langchain_core.tracers._streaming import _StreamingCallbackHandler
    from langchain_core.utils.function_calling import convert_to_openai_function
except ModuleNotFoundError as error:
    raise MissingExtraError("langchain", "langchain") from error

# What LangChain calls the sides of a conversation, where others have another word.
_ROLES = {"human": "user", "ai": "assistant"}
# Choices of a tool that leave it open which one, and whether the agent may then answer.
_MAY_ANSWER = (None, "auto")
_MUST_CALL = ("any", "required", True)
# Callbacks that show a reply to the user while it is made.
_WATCHERS = (_StreamingCallbackHandler, StreamingStdOutCallbackHandler)
# Where models keep the address they were given.
_ADDRESSES = ("openai_api_base", "anthropic_api_url", "azure_endpoint", "base_url", "endpoint_url")
# Where LangChain's reviewer middleware keeps the calls that a person changed.
_EDITED = "hitl_edited_tool_calls"


class AgentMarkMiddleware(AgentMiddleware):
    """Samples the agent's model at each step and hands on one reply; or decides from a stated list, and forces it."""

    def __init__(self, decider: Decider) -> None:
        self.decider = decider
        # What providers would not take in side calls, by upstream.
        self._left_out: dict[str, set[str]] = {}

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        call = _Call(request, self._left_out, handler=handler)
        turn = self.decider.turn(call, session=_run_of(request), meta=_who(request))
        if _was_sampled(turn):
            _show(request, turn.reply)
        return turn.reply

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        call = _Call(request, self._left_out, ahandler=handler)
        turn = await self.decider.aturn(call, session=_run_of(request), meta=_who(request))
        if _was_sampled(turn):
            await _ashow(request, turn.reply)
        return turn.reply


class _Call(ModelCall):
    """A call of the model by an agent of `create_agent`."""

    def __init__(
        self,
        request: ModelRequest,
        left_out: dict[str, set[str]],
        *,
        handler: Callable[[ModelRequest], ModelResponse] | None = None,
        ahandler: Callable[[ModelRequest], Awaitable[ModelResponse]] | None = None,
    ) -> None:
        model = request.model
        self.request = request
        self.upstream = _upstream(model)
        self.model = model_name(model)
        self.temperature = request.model_settings.get("temperature", getattr(model, "temperature", None))
        self.seed = request.model_settings.get("seed", getattr(model, "seed", None))
        self.runs_hosted_tools = any(isinstance(tool, dict) for tool in request.tools)
        self.warms_cache = _is_anthropic(model)
        self._left_out = left_out.setdefault(f"{self.upstream} {self.model}", set())
        self._handler = handler
        self._ahandler = ahandler

    def candidates(self) -> list[Candidate]:
        """The agent's own tools and the answer, structured or not; none where the call leaves nothing to decide."""
        own_tools = _own_tools(self.request)
        choice = self.request.tool_choice
        if not own_tools or choice not in _MAY_ANSWER + _MUST_CALL:
            return []
        functions = [convert_to_openai_function(tool) for tool in own_tools]
        tools = [
            Candidate(function["name"], function.get("description", ""), function.get("parameters"))
            for function in functions
        ]
        # A structured answer is a call of a tool, so a call can be required and the answer be open all the same.
        may_answer = choice in _MAY_ANSWER or self.request.response_format is not None
        return left_to_decide(tools, may_answer=may_answer)

    def conversation(self) -> list[Message]:
        said = list(self.request.messages)
        if self.request.system_message:
            said.insert(0, self.request.system_message)
        return [_read_message(spoken) for spoken in said]

    def read(self, reply: ModelResponse) -> list[ToolCall]:
        """The tools that a reply calls. The one that holds a structured answer is not the agent's own: it is the
        answer."""
        called = [call for said in reply.result for call in _calls_of(said)]
        if self.request.response_format is None:
            return called
        own_names = [tool.name for tool in _own_tools(self.request)]
        if not any(call.name in own_names for call in called):
            return []
        return [call if call.name in own_names else ToolCall(ANSWER, call.arguments) for call in called]

    def as_done(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """A reviewer's edit leaves the model's message as it is: what ran is in the agent's state, and in the name on
        the result."""
        edited = self.request.state.get(_EDITED) or {}
        ran = {said.tool_call_id: said.name for said in self.request.messages if said.type == "tool" and said.name}
        done = []
        for call in calls:
            if call.id in edited:
                done.append(ToolCall(edited[call.id]["name"], edited[call.id]["args"], call.id))
            else:
                done.append(ToolCall(ran.get(call.id, call.name), call.arguments, call.id))
        return done

    def tokens(self, reply: ModelResponse) -> tuple[int | None, int | None]:
        counts = [getattr(said, "usage_metadata", None) or {} for said in reply.result]
        return _sum(counts, "input_tokens"), _sum(counts, "output_tokens")

    def forced(self, behavior: str, rung: Rung) -> ModelRequest | None:
        request = self.request
        if rung == Rung.INSTRUCTION:
            if _is_anthropic(request.model):
                # Thinking is bound to all that was said before it, and the agent sends it back without our sentence.
                return None
            return request.override(messages=[*request.messages, HumanMessage(instruction(behavior))])
        if request.response_format is None:
            choice = self._choice([behavior], rung) if behavior != ANSWER else self._no_tool(rung)
            return None if choice is None else request.override(tool_choice=choice)
        if behavior != ANSWER:
            choice = self._choice([behavior], rung)
            return None if choice is None else _choosing(request, by_tool=choice, by_format=choice)
        by_tool = self._choice(_answer_tools(request.response_format), rung)
        by_format = self._no_tool(rung)
        if by_tool is None and by_format is None:
            return None
        return _choosing(request, by_tool=by_tool, by_format=by_format)

    def _choice(self, names: Sequence[str], rung: Rung) -> Any | None:
        """What tells this model to call one of these."""
        model = self.request.model
        if (model.profile or {}).get("tool_choice") is False:
            return None
        if rung == Rung.NAMED:
            # Anthropic's client drops a forced choice when the model thinks: that would be forcing in name only.
            thinks = _is_anthropic(model) and (getattr(model, "thinking", None) or {}).get("type") != "disabled"
            is_dropped = thinks and getattr(model, "thinking", None) is not None
            return names[0] if len(names) == 1 and not is_dropped else None
        if "openai" not in str(model._llm_type) or not names:
            return None
        if getattr(model, "use_responses_api", False):
            listed = [{"type": "function", "name": name} for name in names]
            return {"type": "allowed_tools", "mode": "required", "tools": listed}
        functions = [{"type": "function", "function": {"name": name}} for name in names]
        return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": functions}}

    def _no_tool(self, rung: Rung) -> Any | None:
        """What tells this model to answer. With the provider's own tools on offer it would lose them, too."""
        if rung != Rung.NAMED or self.runs_hosted_tools:
            return None
        return {"type": "none"} if _is_anthropic(self.request.model) else "none"

    def chat(self) -> FunctionChat:
        return _chat(self.request.model, self._left_out)

    def send(self, request: ModelRequest, *, sampled: bool) -> ModelResponse:
        if self._handler is None:
            return super().send(request, sampled=sampled)
        if not sampled:
            return self._handler(request)
        with _unwatched():
            return self._handler(request.override(model=_unwatched_model(request.model)))

    async def asend(self, request: ModelRequest, *, sampled: bool) -> ModelResponse:
        if self._ahandler is None:
            return await super().asend(request, sampled=sampled)
        if not sampled:
            return await self._ahandler(request)
        with _unwatched():
            return await self._ahandler(request.override(model=_unwatched_model(request.model)))


def chat(model: Any) -> FunctionChat:
    """A model of LangChain's for side calls: `Verbalised(chat(model))`. Its words stay out of the agent's stream.

    The agent's own model needs no such thing: the middleware lends it.
    """
    return _chat(model, set())


def _chat(model: Any, left_out: set[str]) -> FunctionChat:
    def complete(request: ChatRequest) -> ChatReply:
        with _unwatched():
            said = _asked_aside(model, request).invoke(_rendered(request.messages), **settings_of(request))
        return chat_reply(said.text, said.usage_metadata)

    async def acomplete(request: ChatRequest) -> ChatReply:
        with _unwatched():
            said = await _asked_aside(model, request).ainvoke(_rendered(request.messages), **settings_of(request))
        return chat_reply(said.text, said.usage_metadata)

    return FunctionChat(model_name(model), complete=complete, acomplete=acomplete, tools=True, left_out=left_out)


def _asked_aside(model: Any, request: ChatRequest) -> Any:
    """The model as a side call wants it: with tools that it knows and does not call, and the form of its reply."""
    model = _unwatched_model(model)
    settings: dict[str, Any] = {}
    if request.schema is not None and (model.profile or {}).get("structured_output"):
        settings |= ProviderStrategy({"title": "answer", **request.schema}).to_model_kwargs()
    tools = [_function(tool) for tool in request.tools]
    if not tools:
        return model.bind(**settings) if settings else model
    if settings and "openai" in str(model._llm_type):
        # OpenAI's client takes a form beside strict tools only, which the agent's are not. The provider takes both.
        body = {} if getattr(model, "use_responses_api", False) else settings
        settings = {"extra_body": {**(getattr(model, "extra_body", None) or {}), **body}}
    none: Any = {"type": "none"} if _is_anthropic(model) else "none"
    return model.bind_tools(tools, tool_choice=none, **settings)


def _function(tool: Candidate) -> dict[str, Any]:
    parameters = tool.schema or {"type": "object", "properties": {}}
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def _rendered(messages: Sequence[Message]) -> list[Any]:
    """A conversation in LangChain's words."""
    said: list[Any] = []
    for spoken in messages:
        text = str(spoken.get("content") or "")
        role = spoken.get("role")
        if role == "system":
            said.append(SystemMessage(text))
        elif role == "assistant":
            calls = [
                {
                    "name": call["name"],
                    "args": _object(call.get("arguments")),
                    "id": call.get("id", ""),
                    "type": "tool_call",
                }
                for call in spoken.get("tool_calls") or ()
            ]
            said.append(AIMessage(text, tool_calls=calls))
        elif role == "tool":
            said.append(ToolMessage(text, tool_call_id=spoken.get("tool_call_id", "")))
        else:
            said.append(HumanMessage(text))
    return said


def _object(arguments: Any) -> dict[str, Any]:
    """The arguments of a call as an object. What a model wrote wrongly is shown as it wrote it."""
    try:
        read = json.loads(arguments) if isinstance(arguments, str) and arguments else arguments
    except ValueError:
        read = {"text": arguments}
    return dict(read) if isinstance(read, Mapping) else {}


# --- who watches -----------------------------------------------------------------------------------------------------


@contextmanager
def _unwatched() -> Iterator[None]:
    """What the model says meanwhile is shown to nobody: samples and side calls are no part of the agent's stream.

    Tracers and usage counters see them, as calls that were made and paid for.
    """
    config = var_child_runnable_config.get()
    callbacks = (config or {}).get("callbacks")
    if not _watchers(callbacks):
        yield
        return
    token = var_child_runnable_config.set({**(config or {}), "callbacks": _without_watchers(callbacks)})
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _unwatched_model(model: Any) -> Any:
    """The same model; a copy if it has watchers of its own."""
    callbacks = getattr(model, "callbacks", None)
    return model.model_copy(update={"callbacks": _without_watchers(callbacks)}) if _watchers(callbacks) else model


def _watchers(callbacks: Any) -> list[Any]:
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks or ()
    return [handler for handler in handlers if isinstance(handler, _WATCHERS)]


def _without_watchers(callbacks: Any) -> Any:
    watchers = _watchers(callbacks)
    if not isinstance(callbacks, BaseCallbackManager):
        return [handler for handler in callbacks if handler not in watchers]
    quiet = callbacks.copy()
    for watcher in watchers:
        quiet.remove_handler(watcher)
    return quiet


def _show(request: ModelRequest, response: ModelResponse) -> None:
    """Show a chosen sample to those who watch, as the one reply that the model made."""
    for said, told in _to_show(request, response, CallbackManager):
        for run in told.on_chat_model_start({}, [request.messages], name=request.model.get_name()):
            run.on_llm_new_token(str(said.text), chunk=_chunk(said))
            run.on_llm_end(LLMResult(generations=[[ChatGeneration(message=said)]]))


async def _ashow(request: ModelRequest, response: ModelResponse) -> None:
    for said, told in _to_show(request, response, AsyncCallbackManager):
        for run in await told.on_chat_model_start({}, [request.messages], name=request.model.get_name()):
            await run.on_llm_new_token(str(said.text), chunk=_chunk(said))
            await run.on_llm_end(LLMResult(generations=[[ChatGeneration(message=said)]]))


def _to_show(request: ModelRequest, response: ModelResponse, kind: type[Any]) -> list[tuple[AIMessage, Any]]:
    """The messages of a reply, each with callbacks of the watchers alone."""
    config = var_child_runnable_config.get() or {}
    callbacks = config.get("callbacks")
    watchers = _watchers(callbacks) + _watchers(getattr(request.model, "callbacks", None))
    if not watchers:
        return []
    told = kind(
        handlers=watchers,
        parent_run_id=getattr(callbacks, "parent_run_id", None),
        tags=list(config.get("tags") or ()),
        metadata=dict(config.get("metadata") or {}),
    )
    return [(said, told) for said in response.result if isinstance(said, AIMessage)]


def _chunk(said: AIMessage) -> ChatGenerationChunk:
    """A message that is there already, as a stream of one part."""
    calls = [
        {
            "name": call["name"],
            "args": json.dumps(call["args"]),
            "id": call["id"],
            "index": i,
            "type": "tool_call_chunk",
        }
        for i, call in enumerate(said.tool_calls)
    ]
    part = AIMessageChunk(
        content=said.content,
        tool_call_chunks=calls,
        id=said.id,
        name=said.name,
        additional_kwargs=said.additional_kwargs,
        response_metadata=said.response_metadata,
        usage_metadata=said.usage_metadata,
        chunk_position="last",
    )
    return ChatGenerationChunk(message=part)


def _was_sampled(turn: Turn) -> bool:
    return turn.decision is not None and turn.decision.elicitation.proposals is not None


# --- the request -----------------------------------------------------------------------------------------------------


def _run_of(request: ModelRequest) -> str | None:
    """The thread, which outlives an interruption; else the run, if it was given an id; else its first message."""
    info = getattr(request.runtime, "execution_info", None)
    for name in ("thread_id", "run_id"):
        known = getattr(info, name, None)
        if known:
            return str(known)
    said = request.state.get("messages") or request.messages
    return str(said[0].id) if said and said[0].id else None


def _who(request: ModelRequest) -> dict[str, str]:
    """Who acts, and for whom, as far as the run's configuration says so."""
    config = var_child_runnable_config.get() or {}
    server = getattr(request.runtime, "server_info", None)
    context = getattr(request.runtime, "context", None)
    of_context = context.get("user_id") if isinstance(context, Mapping) else getattr(context, "user_id", None)
    user = getattr(getattr(server, "user", None), "identity", None)
    known = {
        PERFORMED_BY: (config.get("metadata") or {}).get("lc_agent_name"),
        ON_BEHALF_OF: user or of_context or (config.get("configurable") or {}).get("user_id"),
    }
    return {name: str(value) for name, value in known.items() if value}


def _upstream(model: Any) -> str:
    addresses = [getattr(model, name, None) for name in _ADDRESSES]
    address = next((str(address) for address in addresses if address), "default")
    return f"{type(model).__name__} {address}"


def _is_anthropic(model: Any) -> bool:
    return "anthropic" in str(model._llm_type)


def _own_tools(request: ModelRequest) -> list[Any]:
    """Tools that the agent runs. Those given as dicts run at the provider, inside a reply."""
    return [tool for tool in request.tools if not isinstance(tool, dict)]


def _answer_tools(response_format: Any) -> list[str]:
    """The tools that LangChain adds for a structured answer, unless the provider has a format for it."""
    if isinstance(response_format, ProviderStrategy):
        return []
    if isinstance(response_format, ToolStrategy):
        return [spec.name for spec in response_format.schema_specs]
    schema = response_format.schema if isinstance(response_format, AutoStrategy) else response_format
    return [spec.name for spec in ToolStrategy(schema).schema_specs]


def _choosing(request: ModelRequest, *, by_tool: Any, by_format: Any) -> ModelRequest:
    """The request with a choice of tool that holds for a structured answer, too.

    LangChain sets the choice itself there, or none, when it binds the tools; whether the answer is a tool or a format
    is known then. So a copy of the model is told what to make of it; a choice of None leaves it as it is.
    """
    model = request.model
    choosing = model.model_copy()

    def bind_tools(tools: Any, **settings: Any) -> Any:
        choice = by_format if "response_format" in settings else by_tool
        return model.bind_tools(tools, **settings if choice is None else {**settings, "tool_choice": choice})

    object.__setattr__(choosing, "bind_tools", bind_tools)
    return request.override(model=choosing)


def _read_message(said: Any) -> Message:
    answers = str(getattr(said, "tool_call_id", "") or "")
    return message(_ROLES.get(said.type, said.type), str(said.text), _calls_of(said), answers=answers)


def _calls_of(said: Any) -> list[ToolCall]:
    """The calls of a message, those that cannot be read as JSON included."""
    called = [*(getattr(said, "tool_calls", None) or ()), *(getattr(said, "invalid_tool_calls", None) or ())]
    return [ToolCall(call["name"] or "(unnamed)", call["args"], call.get("id") or "") for call in called]


def _sum(counts: Sequence[Mapping[str, Any]], name: str) -> int | None:
    known = [count[name] for count in counts if count.get(name) is not None]
    return sum(known) if known else None
