"""Google ADK: a plugin that decides which tool an agent calls next, or that it answers.

app = App(name="shop", root_agent=agent, plugins=[AgentMarkPlugin(decider)])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentmark.adapters.observing import observe
from agentmark.decide.decider import Decider
from agentmark.decide.decision import Decision
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, Candidate, Message
from agentmark.errors import MissingExtraError
from agentmark.wire.behaviors import left_to_decide
from agentmark.wire.messages import message

try:
    from google.adk.models import BaseLlm, LlmRequest, LlmResponse
    from google.adk.plugins import BasePlugin
    from google.genai import types
except ModuleNotFoundError as error:
    raise MissingExtraError("google-adk", "adk") from error

# What Google calls the sides of a conversation, where others have another word.
_ROLES = {"model": "assistant"}


@dataclass(frozen=True, slots=True)
class _OpenDecision:
    """A decision whose reply has not come yet. It holds the call's actions, so that no other object takes their id."""

    actions: Any
    invocation_id: str
    decision: Decision


class AgentMarkPlugin(BasePlugin):
    """Decides before each call of a model, in every agent of the app, and observes what the reply did."""

    def __init__(self, decider: Decider, name: str = "agentmark") -> None:
        super().__init__(name=name)
        self.decider = decider
        # The callbacks before and after one call of a model are given the same actions, and calls of agents that run
        # at once are given others: their id is what the two callbacks meet by.
        self._open: dict[int, _OpenDecision] = {}

    async def before_model_callback(self, *, callback_context: Any, llm_request: LlmRequest) -> None:
        if callback_context._invocation_context.live_request_queue is not None:
            # In live runs ADK calls plugins to screen what the user says, with a config that the session shares.
            return
        candidates = _candidates(llm_request.config)
        if not candidates:
            return
        decision = await self.decider.adecide(candidates, _conversation(llm_request))
        actions = callback_context.actions
        self._open[id(actions)] = _OpenDecision(actions, callback_context.invocation_id, decision)
        if decision.behavior is not None:
            _force(llm_request.config, decision.behavior)

    async def after_model_callback(self, *, callback_context: Any, llm_response: LlmResponse) -> None:
        if llm_response.partial:
            # A stream's last response holds all of it.
            return
        calls = None
        if llm_response.content:
            calls = [call.name or "" for call in llm_response.get_function_calls()]
        self._close(callback_context.actions, calls)

    async def after_run_callback(self, *, invocation_context: Any, **_: Any) -> None:
        self._close_run(invocation_context.invocation_id)

    async def on_run_error_callback(self, *, invocation_context: Any, **_: Any) -> None:
        self._close_run(invocation_context.invocation_id)

    def _close(self, actions: Any, calls: Sequence[str] | None) -> None:
        opened = self._open.pop(id(actions), None)
        if opened is not None:
            observe(self.decider, opened.decision, calls)

    def _close_run(self, invocation_id: str) -> None:
        """Decisions that are open at the end of a run got no reply: the model failed, or was never asked."""
        left = [opened.actions for opened in self._open.values() if opened.invocation_id == invocation_id]
        for actions in left:
            self._close(actions, None)


def chat(model: BaseLlm) -> FunctionChat:
    """The agent's model, lent for side calls: `Verbalised(chat(model))`."""

    async def acomplete(request: ChatRequest) -> ChatReply:
        replies = [reply async for reply in model.generate_content_async(_side_request(model, request))]
        parts = replies[-1].content.parts
        return ChatReply(text="".join([part.text or "" for part in parts if not part.thought]))

    return FunctionChat(model.model, acomplete=acomplete)


def _side_request(model: BaseLlm, request: ChatRequest) -> LlmRequest:
    """A side call in ADK's words: system messages go into the config, the others are contents."""
    system = "\n".join([said["content"] for said in request.messages if said["role"] == "system"])
    contents = []
    for said in request.messages:
        if said["role"] == "user":
            contents.append(types.UserContent(said["content"]))
        elif said["role"] == "assistant":
            contents.append(types.ModelContent(said["content"]))
    config = types.GenerateContentConfig(system_instruction=system, temperature=request.temperature)
    return LlmRequest(model=model.model, contents=contents, config=config)


def _declarations(tool: Any) -> list[Any]:
    """The functions that a tool declares. One without any runs at Google, and is no decision of the agent's."""
    return getattr(tool, "function_declarations", None) or []


def _function_calling(config: types.GenerateContentConfig) -> types.FunctionCallingConfig:
    """What the call says of how functions may be called; an empty config if it says nothing."""
    asked = config.tool_config and config.tool_config.function_calling_config
    return asked or types.FunctionCallingConfig()


def _candidates(config: types.GenerateContentConfig) -> list[Candidate]:
    """The functions on offer and the answer; none where the call leaves nothing to decide."""
    calling = _function_calling(config)
    if calling.mode == "NONE":
        return []
    declared = [function for tool in config.tools or () for function in _declarations(tool)]
    allowed = calling.allowed_function_names
    tools = [
        Candidate(function.name, function.description or "", function.parameters_json_schema)
        for function in declared
        if not allowed or function.name in allowed
    ]
    return left_to_decide(tools, may_answer=calling.mode != "ANY")


def _force(config: types.GenerateContentConfig, behavior: str) -> None:
    """Changes the request's config alone: what it shares with the agent's is replaced. Tools run by Google stay."""
    if behavior == ANSWER:
        calling = types.FunctionCallingConfig(mode="NONE")
    else:
        calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=[behavior])
        hosted = [tool for tool in config.tools if not _declarations(tool)]
        declared = [function for tool in config.tools for function in _declarations(tool)]
        # A function that is declared twice is the later one, as among the candidates.
        chosen = [function for function in declared if function.name == behavior][-1:]
        config.tools = [*hosted, types.Tool(function_declarations=chosen)]
    shared = config.tool_config or types.ToolConfig()
    config.tool_config = shared.model_copy(update={"function_calling_config": calling})


def _conversation(request: LlmRequest) -> list[Message]:
    instruction = message("system", str(request.config.system_instruction or ""))
    return [instruction, *[_read_content(content) for content in request.contents]]


def _read_content(content: types.Content) -> Message:
    said, results, calls = [], [], []
    for part in content.parts or ():
        if part.thought:
            continue
        if part.text:
            said.append(part.text)
        if part.function_response:
            results.append(f"{part.function_response.name}: {part.function_response.response}")
        if part.function_call:
            calls.append((part.function_call.name, part.function_call.args))
    role = content.role or "user"
    return message(_ROLES.get(role, role), " ".join(said + results), calls)
