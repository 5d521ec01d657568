"""Pydantic AI: `Agent(model, tools=tools, capabilities=[AgentMarkCapability(decider)])`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentmark.adapters.observing import observed
from agentmark.adapters.side_calls import chat_reply, model_name, settings_of
from agentmark.decide.decider import Decider
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, Candidate, Message
from agentmark.errors import MissingExtraError
from agentmark.wire.behaviors import left_to_decide
from agentmark.wire.messages import message

try:
    from pydantic_ai import direct, messages
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.settings import ToolOrOutput
except ModuleNotFoundError as error:
    raise MissingExtraError("pydantic-ai", "pydantic-ai") from error

# Parts of a conversation that say something, and who says it.
_ROLES = {
    "system-prompt": "system",
    "user-prompt": "user",
    "retry-prompt": "user",
    "retry-feedback": "user",
    "text": "assistant",
    "tool-return": "tool",
}


@dataclass
class AgentMarkCapability(AbstractCapability[Any]):
    """Decides before each request which tool the model calls, output tools included, or that it answers in text."""

    decider: Decider

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> messages.ModelResponse:
        request, decision = request_context, None
        candidates = _candidates(request_context)
        if candidates:
            decision = await self.decider.adecide(candidates, _conversation(request_context))
            if decision.behavior is not None:
                request = _forced(request_context, decision.behavior)
        with observed(self.decider, decision) as reply:
            response = await handler(request)
            reply.calls = [call.tool_name for call in response.tool_calls]
        return response


def chat(model: Any) -> FunctionChat:
    """The agent's model, by name or as an object, lent for calls aside: `Verbalised(chat(model))`."""

    async def acomplete(request: ChatRequest) -> ChatReply:
        history = [_written(str(said["role"]), str(said["content"])) for said in request.messages]
        response = await direct.model_request(model, history, model_settings=settings_of(request))
        return chat_reply(response.text or "", response.usage)

    return FunctionChat(model if isinstance(model, str) else model_name(model), acomplete=acomplete)


def _written(role: str, text: str) -> Any:
    """A message of a side call in Pydantic AI's words."""
    if role == "system":
        return messages.ModelRequest([messages.SystemPromptPart(text)])
    if role == "user":
        return messages.ModelRequest([messages.UserPromptPart(text)])
    return messages.ModelResponse([messages.TextPart(text)])


def _candidates(request: Any) -> list[Candidate]:
    """The tools on offer, output tools too, and the answer in text; none where the request leaves nothing to decide."""
    settings = request.model_settings or {}
    choice = settings.get("tool_choice")
    if choice == "none":
        return []
    _, offer = request.model.prepare_request(settings, request.model_request_parameters)
    offer = offer.with_default_output_mode("tool")
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


def _conversation(request: Any) -> list[Message]:
    instructions = request.model_request_parameters.instruction_parts or ()
    said = [message("system", part.content) for part in instructions]
    for part in [part for spoken in request.messages for part in spoken.parts]:
        if part.part_kind == "tool-call":
            said.append(message("assistant", "", [(part.tool_name, part.args)]))
        elif part.part_kind in _ROLES:
            said.append(message(_ROLES[part.part_kind], _text_of(part)))
    return said


def _text_of(part: Any) -> str:
    """What a part says, in the words that the model is shown where it has such; of several contents, the text."""
    for shown in ("model_response_str", "model_response"):
        if hasattr(part, shown):
            return str(getattr(part, shown)())
    if isinstance(part.content, str):
        return part.content
    return " ".join([content for content in part.content or () if isinstance(content, str)])


def _forced(request: Any, chosen: str) -> Any:
    """The same request with one way to go. To answer, own tools stay defined where there are no hosted ones."""
    offer = request.model_request_parameters
    settings = dict(request.model_settings or {})
    settings.pop("tool_choice", None)
    function_tools = [tool for tool in offer.function_tools if tool.name == chosen]
    output_tools = [tool for tool in offer.output_tools if tool.name == chosen]
    if chosen == ANSWER:
        if not offer.native_tools:
            function_tools = offer.function_tools
            settings["tool_choice"] = "none"
    elif _may_force(request.model, settings):
        settings["tool_choice"] = [chosen]
    left = replace(offer, function_tools=function_tools, output_tools=output_tools)
    return replace(request, model_settings=settings, model_request_parameters=left)


def _may_force(model: Any, settings: Mapping[str, Any]) -> bool:
    """Whether a model takes a forced choice of a tool, and goes on thinking then."""
    if hasattr(model, "models"):
        # A FallbackModel has models in place of a profile.
        return False
    profile = model.profile
    if not profile.get("supports_forced_tool_choice", True):
        return False
    asked_to_think = any(value for name, value in settings.items() if "thinking" in name or "reasoning" in name)
    thinks_anyway = profile.get("thinking_enabled_by_default") or profile.get("thinking_always_enabled")
    if not (asked_to_think or thinks_anyway):
        return True
    refuses = not profile.get("supports_forced_tool_choice_with_thinking", True)
    stops_thinking = profile.get("forced_tool_choice_disables_thinking", False)
    return not (refuses or stops_thinking)
