"""Google ADK: a plugin that chooses which tool an agent calls next, or that it answers.

app = App(name="shop", root_agent=agent, plugins=[AgentMarkPlugin(decider)])

ADK lets a plugin answer in place of the model, but then skips the callbacks of other plugins and of the agent. So the
plugin answers nothing: for the one call that follows, it stands in for the model that the agent resolves. Every
callback runs as it would, and what the model is asked is what they have left of the request.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass
from typing import Any

from agentmark.adapters.side_calls import begins_with
from agentmark.adapters.streams import AsyncBuffered
from agentmark.decide.call import ModelCall, Spent
from agentmark.decide.decider import Decider
from agentmark.decide.runs import ON_BEHALF_OF, PERFORMED_BY
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, Candidate, Message, ToolCall
from agentmark.errors import MissingExtraError
from agentmark.wire.behaviors import left_to_decide
from agentmark.wire.forcing import Rung, instruction
from agentmark.wire.messages import message

try:
    from google.adk.models import BaseLlm, LlmRequest, LlmResponse
    from google.adk.plugins import BasePlugin
    from google.genai import types
except ModuleNotFoundError as error:
    raise MissingExtraError("google-adk", "adk") from error


class AgentMarkPlugin(BasePlugin):
    """Marks the decisions of every agent in an app."""

    def __init__(self, decider: Decider, name: str = "agentmark") -> None:
        super().__init__(name=name)
        self.decider = decider
        # What was learned to leave out of side calls, by where they go and the model that they name.
        self.left_out: dict[tuple[str, str], set[str]] = {}

    async def before_model_callback(self, *, callback_context: Any, llm_request: LlmRequest) -> None:
        context = callback_context._invocation_context
        is_live = context.live_request_queue is not None or getattr(context.run_config, "support_cfc", False)
        if is_live:
            # There ADK calls plugins to screen what the user says, not before the model decides.
            return
        if isinstance(context.agent, _StandIn):
            # It was not asked for a model: another callback answered in its place.
            context.agent = context.agent.original
        context.agent = _StandIn(context.agent, context, self)


class _StandIn:
    """An agent that resolves, once, a marked model. In all else it is the agent itself, which then takes its place."""

    def __init__(self, original: Any, context: Any, plugin: AgentMarkPlugin) -> None:
        self.original = original
        self._context = context
        self._plugin = plugin

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        # So that `isinstance` knows it for the agent that it is.
        return type(self.original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    async def canonical_model_async(self, context: Any) -> "_MarkedModel":
        self._context.agent = self.original
        if hasattr(self.original, "canonical_model_async"):
            model = await self.original.canonical_model_async(context)
        else:
            model = self.original.canonical_model
        return _MarkedModel(model, self._context, self._plugin)


class _MarkedModel:
    """The model of one call, with a turn of the decider around it. In all else it is the model itself."""

    def __init__(self, model: Any, context: Any, plugin: AgentMarkPlugin) -> None:
        self._model = model
        self._context = context
        self._plugin = plugin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        context = self._context
        meta = {PERFORMED_BY: str(context.agent.name), ON_BEHALF_OF: str(context.user_id)}
        run_id = f"{context.session.id}/{context.invocation_id}"
        call = _Call(self._model, llm_request, stream, self._plugin.left_out)
        turn = await self._plugin.decider.aturn(call, session=run_id, meta=meta)
        reply: _Reply = turn.reply
        try:
            async with aclosing(reply):
                async for response in reply.passed_on():
                    yield response
        finally:
            await turn.afinish(reply.calls if reply.is_at_end else None)


class _Reply:
    """What a model says: one response, or, where it streams, parts and then a response that holds all of them."""

    def __init__(self, responses: AsyncIterator[LlmResponse]) -> None:
        self._responses = AsyncBuffered(responses)
        self._seen: set[int] = set()
        # Read when the response comes: those who are handed it may change it.
        self.calls: list[ToolCall] = []
        self.text = ""
        self.usage = types.GenerateContentResponseUsageMetadata()
        self.is_at_end = False
        # Tokens that the turn spent on what is not handed on.
        self.beside = 0

    async def read_ahead(self, *, to_the_end: bool) -> None:
        def is_enough(response: LlmResponse) -> bool:
            self._see(response)
            self._seen.add(id(response))
            return not to_the_end

        await self._responses.read_until(is_enough)
        self.is_at_end = self._responses.is_at_end

    async def passed_on(self) -> AsyncIterator[LlmResponse]:
        async for response in self._responses:
            if id(response) not in self._seen:
                self._see(response)
            yield self._charged(response)
        self.is_at_end = True

    def _see(self, response: LlmResponse) -> None:
        if response.partial:
            return
        self.calls += [ToolCall(call.name or "", call.args, call.id or "") for call in response.get_function_calls()]
        parts = (response.content and response.content.parts) or ()
        self.text += "".join([part.text for part in parts if part.text and not part.thought])
        self.usage = response.usage_metadata or self.usage

    def _charged(self, response: LlmResponse) -> LlmResponse:
        """A response with the tokens of the whole turn as its total. Its other counts stay: by that of the prompt, ADK
        tells how long the context is."""
        usage = response.usage_metadata
        if response.partial or usage is None or not self.beside:
            return response
        whole = usage.model_copy(update={"total_token_count": _total(usage) + self.beside})
        self.beside = 0
        return response.model_copy(update={"usage_metadata": whole})

    def as_chat_reply(self) -> ChatReply:
        usage = self.usage
        return ChatReply(
            text=self.text, input_tokens=usage.prompt_token_count, output_tokens=usage.candidates_token_count
        )

    async def aclose(self) -> None:
        await self._responses.aclose()


def _total(usage: Any) -> int:
    parts = (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count)
    return usage.total_token_count or sum([part or 0 for part in parts])


@dataclass(frozen=True)
class _Asked:
    """What a model is asked. LiteLLM's reads the mode of calling alone: there the tool is named beside the request."""

    request: LlmRequest
    named: str | None = None


class _Call(ModelCall):
    """A call of an agent's model."""

    request: _Asked

    def __init__(
        self, model: Any, request: LlmRequest, stream: bool, left_out: dict[tuple[str, str], set[str]]
    ) -> None:
        self._model = model
        self._stream = stream
        self._config = request.config
        self.request = _Asked(request)
        self.upstream = f"{type(model).__name__} {_base_url(model, request.config)}"
        self.model = str(request.model or model.model)
        self._left_out = left_out.setdefault((self.upstream, self.model), set())
        self.seed = request.config.seed
        self.temperature = request.config.temperature
        if self.temperature is None:
            self.temperature = _given_to_litellm(model).get("temperature")
        self.runs_hosted_tools = any(not _declarations(tool) for tool in request.config.tools or ())
        self.warms_cache = self._is_anthropic = "claude" in self.model.lower() or "anthropic" in self.model.lower()
        self._counted: list[_Reply] = []
        self._side_tokens = 0

    def candidates(self) -> list[Candidate]:
        """The functions on offer and the answer; none where the call leaves nothing to decide."""
        calling = _function_calling(self._config)
        if calling.mode == "NONE":
            return []
        allowed = calling.allowed_function_names
        tools = [
            Candidate(function.name, function.description or "", _schema_of(function))
            for function in _declared(self._config)
            if not allowed or function.name in allowed
        ]
        return left_to_decide(tools, may_answer=calling.mode != "ANY")

    def conversation(self) -> list[Message]:
        instructions = _instructions(self._config)
        said = [message("system", instructions)] if instructions else []
        ids = _Ids()
        for content in self.request.request.contents:
            said += _read_content(content, ids)
        return said

    def read(self, reply: _Reply) -> list[ToolCall]:
        return reply.calls

    def is_live(self, reply: _Reply) -> bool:
        return not reply.is_at_end

    # --- costs ---

    def tokens(self, reply: _Reply) -> tuple[int | None, int | None]:
        self._counted.append(reply)
        return reply.usage.prompt_token_count, reply.usage.candidates_token_count

    def charged(self, reply: _Reply, spent: Spent) -> _Reply:
        unused = [_total(other.usage) for other in self._counted if other is not reply]
        reply.beside = sum(unused) + self._side_tokens
        return reply

    # --- stated lists ---

    def forced(self, behavior: str, rung: Rung) -> _Asked | None:
        if rung is Rung.INSTRUCTION:
            # Claude's thinking is bound to all that was said before it, and is sent back without our sentence.
            return None if self._is_anthropic else self._instructed(behavior)
        reads = _reads(self._model)
        if behavior == ANSWER:
            return self._calling(mode="NONE") if rung is Rung.NAMED and reads != "nothing" else None
        if reads == "the mode, and a name":
            return _Asked(_copied(self.request.request), behavior) if rung is Rung.NAMED else None
        if reads == "all" and rung is Rung.ALLOWED:
            # To allow one function and require a call is to name it: there is no other way.
            return self._calling(mode="ANY", allowed_function_names=[behavior])
        return None

    def _calling(self, **calling: Any) -> _Asked:
        """Replaces what the request's config shares with the agent's. The tools stay as they are."""
        shared = self._config.tool_config or types.ToolConfig()
        choice = shared.model_copy(update={"function_calling_config": types.FunctionCallingConfig(**calling)})
        return _Asked(_copied(self.request.request, tool_config=choice))

    def _instructed(self, behavior: str) -> _Asked:
        told = _copied(self.request.request)
        told.contents.append(types.UserContent(instruction(behavior)))
        return _Asked(told)

    def chat(self) -> FunctionChat:
        async def acomplete(request: ChatRequest) -> ChatReply:
            reply = await _heard(self._model, _side_request(self._model, request, self._beginning(request)))
            self._side_tokens += _total(reply.usage)
            return reply.as_chat_reply()

        return FunctionChat(self.model, acomplete=acomplete, tools=True, left_out=self._left_out)

    def _beginning(self, request: ChatRequest) -> "_Beginning":
        """The agent's own contents where they come first, with all that providers want back in them."""
        own = self.conversation()
        tools = self._config.tools if request.tools else None
        if begins_with(request.messages, own):
            return _Beginning(len(own), self.request.request.contents, self._config.system_instruction, tools)
        return _Beginning(tools=tools)

    # --- asking ---

    async def asend(self, asked: _Asked, *, sampled: bool) -> _Reply:
        model = self._model if asked.named is None else _litellm_naming(self._model, asked.named)
        reply = _Reply(model.generate_content_async(_copied(asked.request), stream=self._stream))
        await reply.read_ahead(to_the_end=sampled or not self._stream)
        return reply


# --- models --------------------------------------------------------------------------------------------------------


def chat(model: BaseLlm) -> FunctionChat:
    """A model object, lent for side calls: `Verbalised(chat(model))`. Without one, the agent's own is asked."""

    async def acomplete(request: ChatRequest) -> ChatReply:
        declared = [_declaration(tool) for tool in request.tools]
        tools = [types.Tool(function_declarations=declared)] if declared else None
        reply = await _heard(model, _side_request(model, request, _Beginning(tools=tools)))
        return reply.as_chat_reply()

    return FunctionChat(model.model, acomplete=acomplete, tools=True)


@dataclass(frozen=True)
class _Beginning:
    """What a side call begins with: contents in place of the first messages, instructions, tools."""

    messages: int = 0
    contents: Sequence[types.Content] = ()
    instructions: Any = None
    tools: Any = None


async def _heard(model: Any, request: LlmRequest) -> _Reply:
    reply = _Reply(model.generate_content_async(request))
    await reply.read_ahead(to_the_end=True)
    return reply


def _side_request(model: Any, request: ChatRequest, beginning: _Beginning) -> LlmRequest:
    """A side call in ADK's words: system messages go into the config, the others are contents."""
    ours = request.messages[beginning.messages :]
    system = "\n".join([str(said["content"]) for said in ours if said["role"] == "system"])
    config = types.GenerateContentConfig(
        system_instruction=beginning.instructions or system or None,
        temperature=request.temperature,
        max_output_tokens=request.max_tokens,
        tools=beginning.tools,
    )
    if beginning.tools:
        calling = types.FunctionCallingConfig(mode="NONE")
        config.tool_config = types.ToolConfig(function_calling_config=calling)
    if request.schema is not None:
        if _is_litellm(model):
            config.response_schema = dict(request.schema)
        else:
            config.response_json_schema = dict(request.schema)
            config.response_mime_type = "application/json"
    return LlmRequest(model=model.model, contents=[*beginning.contents, *_written(ours)], config=config)


def _kinds(model: Any) -> list[str]:
    return [kind.__name__ for kind in type(model).__mro__]


def _is_litellm(model: Any) -> bool:
    return "LiteLlm" in _kinds(model)


def _reads(model: Any) -> str:
    """What a model of ADK's reads of how functions may be called."""
    kinds = _kinds(model)
    if "LiteLlm" in kinds:
        return "the mode, and a name"
    if "AnthropicLlm" in kinds:
        return "nothing"
    return "the mode" if any(kind.startswith(("OpenAI", "OCI")) for kind in kinds) else "all"


def _given_to_litellm(model: Any) -> Mapping[str, Any]:
    """What a LiteLLM model adds to each request."""
    return getattr(model, "_additional_args", None) or {} if _is_litellm(model) else {}


def _litellm_naming(model: Any, name: str) -> Any:
    """The same LiteLLM model, with one tool named in its requests."""
    naming = copy(model)
    choice = {"type": "function", "function": {"name": name}}
    naming._additional_args = {**_given_to_litellm(model), "tool_choice": choice}
    return naming


def _base_url(model: Any, config: types.GenerateContentConfig) -> str:
    options = config.http_options
    asked = options.base_url if options else None
    given = _given_to_litellm(model)
    return str(asked or getattr(model, "base_url", None) or given.get("api_base") or given.get("base_url") or "")


# --- requests ------------------------------------------------------------------------------------------------------


def _copied(request: LlmRequest, **config: Any) -> LlmRequest:
    """Models write into what they are handed: each call has a request of its own."""
    own = request.config.model_copy(update=config)
    return request.model_copy(update={"contents": list(request.contents), "config": own})


def _declarations(tool: Any) -> list[Any]:
    """The functions that a tool declares. One without any runs at Google, and is no decision of the agent's."""
    return getattr(tool, "function_declarations", None) or []


def _declared(config: types.GenerateContentConfig) -> list[Any]:
    return [function for tool in config.tools or () for function in _declarations(tool)]


def _schema_of(function: Any) -> Mapping[str, Any] | None:
    if function.parameters_json_schema is not None or function.parameters is None:
        return function.parameters_json_schema  # type: ignore[no-any-return]
    return function.parameters.model_dump(mode="json", exclude_none=True)  # type: ignore[no-any-return]


def _declaration(tool: Candidate) -> Any:
    schema = dict(tool.schema or {"type": "object", "properties": {}})
    return types.FunctionDeclaration(name=tool.name, description=tool.description, parameters_json_schema=schema)


def _function_calling(config: types.GenerateContentConfig) -> types.FunctionCallingConfig:
    """What the call says of how functions may be called; an empty config if it says nothing."""
    asked = config.tool_config and config.tool_config.function_calling_config
    return asked or types.FunctionCallingConfig()


def _instructions(config: types.GenerateContentConfig) -> str:
    given = config.system_instruction
    if isinstance(given, types.Content):
        return " ".join([part.text for part in given.parts or () if part.text])
    return str(given or "")


# --- messages ------------------------------------------------------------------------------------------------------


class _Ids:
    """Gives calls without an id one by their place, and results that of the first open call of their name."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[str, list[str]] = {}

    def of_call(self, call: Any) -> str:
        self._count += 1
        given = str(call.id or f"call-{self._count}")
        self._open.setdefault(str(call.name), []).append(given)
        return given

    def of_result(self, result: Any) -> str:
        waiting = self._open.get(str(result.name)) or [""]
        given = str(result.id or waiting[0])
        if given in waiting:
            waiting.remove(given)
        return given


def _read_content(content: types.Content, ids: _Ids) -> list[Message]:
    texts, calls, results = [], [], []
    for part in content.parts or ():
        if part.function_call:
            calls.append(
                ToolCall(str(part.function_call.name), part.function_call.args, ids.of_call(part.function_call))
            )
        elif part.function_response:
            result = part.function_response
            text = json.dumps(result.response, ensure_ascii=False, default=str)
            results.append(message("tool", text, answers=ids.of_result(result)))
        elif part.text and not part.thought:
            texts.append(part.text)
    role = "assistant" if content.role == "model" else "user"
    said = message(role, " ".join(texts), calls)
    return [*results, said] if texts or calls or not results else results


def _written(said: Sequence[Message]) -> list[types.Content]:
    """Messages of a side call as contents; results that follow each other are one."""
    names = {call.get("id"): str(call.get("name")) for spoken in said for call in spoken.get("tool_calls") or ()}
    contents: list[types.Content] = []
    for spoken in said:
        text, role = str(spoken.get("content") or ""), spoken["role"]
        if role == "assistant":
            parts = [types.Part(text=text)] if text else []
            parts += [types.Part(function_call=_written_call(call)) for call in spoken.get("tool_calls") or ()]
            contents.append(types.ModelContent(parts))
        elif role == "tool" and spoken.get("tool_call_id") in names:
            answers = spoken["tool_call_id"]
            result = types.FunctionResponse(id=answers, name=names[answers], response={"result": text})
            part = types.Part(function_response=result)
            if contents and contents[-1].parts and contents[-1].parts[-1].function_response:
                contents[-1].parts.append(part)
            else:
                contents.append(types.UserContent([part]))
        elif role != "system":
            contents.append(types.UserContent(text))
    return contents


def _written_call(call: Mapping[str, Any]) -> types.FunctionCall:
    arguments = call.get("arguments") or {}
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    return types.FunctionCall(id=call.get("id"), name=str(call.get("name")), args=arguments)
