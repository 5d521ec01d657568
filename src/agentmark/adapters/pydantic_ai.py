"""Pydantic AI: `Agent(model, tools=tools, capabilities=[AgentMarkCapability(decider)])`."""

from dataclasses import dataclass, replace
from typing import Any

from agentmark.adapters import common
from agentmark.decide import Decider
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, Candidate, Message
from agentmark.errors import MissingExtraError

try:
    from pydantic_ai import direct, messages
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.settings import ToolOrOutput
except ModuleNotFoundError as error:
    raise MissingExtraError("pydantic-ai", "pydantic-ai") from error

_SAID = {"system-prompt", "user-prompt", "tool-return", "text", "retry-prompt", "retry-feedback"}


@dataclass
class AgentMarkCapability(AbstractCapability[Any]):
    """Decides before each request which tool the model calls, output tools included, or that it answers in text."""

    decider: Decider

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> messages.ModelResponse:
        candidates = _candidates(request_context)
        decision = await self.decider.adecide(candidates, _messages(request_context)) if candidates else None
        chosen = decision and decision.behavior
        with common.observed(self.decider, decision) as reply:
            response = await handler(_forced(request_context, chosen) if chosen else request_context)
            reply.calls = [call.tool_name for call in response.tool_calls]
        return response


def chat(model: Any) -> FunctionChat:
    """The agent's model, by name or as an object, lent for calls aside: `Verbalised(chat(model))`."""
    parts = {"system": messages.SystemPromptPart, "user": messages.UserPromptPart}

    async def acomplete(request: ChatRequest) -> ChatReply:
        said = [(parts.get(str(one["role"]), messages.TextPart), str(one["content"])) for one in request.messages]
        kinds = [messages.ModelResponse if part is messages.TextPart else messages.ModelRequest for part, _ in said]
        history = [kind([part(text)]) for kind, (part, text) in zip(kinds, said, strict=True)]
        response = await direct.model_request(model, history, model_settings=common.settings_of(request))
        return common.chat_reply(response.text or "", response.usage)

    return FunctionChat(model if isinstance(model, str) else common.model_name(model), acomplete=acomplete)


def _candidates(request: Any) -> list[Candidate]:
    """The tools on offer, output tools too, and the answer in text; none where the request leaves nothing to decide."""
    settings = request.model_settings or {}
    _, offer = request.model.prepare_request(settings, request.model_request_parameters)
    offer, choice = offer.with_default_output_mode("tool"), settings.get("tool_choice")
    functions = [tool for tool in offer.function_tools if offer.visibility_of(tool.name) != "withheld"]
    tools, may_answer = [*functions, *offer.output_tools], offer.allow_text_output or offer.allow_image_output
    if isinstance(choice, ToolOrOutput):
        tools = [tool for tool in tools if tool.name in choice.function_tools or tool in offer.output_tools]
    elif choice not in (None, "auto"):
        named = [tool.name for tool in functions] if choice == "required" else choice
        tools, may_answer = [tool for tool in tools if tool.name in named], False
    listed = [Candidate(tool.name, tool.description or "", tool.parameters_json_schema) for tool in tools]
    listed = common.with_answer(listed, may_answer=may_answer)
    return listed if len(listed) > 1 and choice != "none" else []


def _messages(request: Any) -> list[Message]:
    said = [common.message("system", part.content) for part in request.model_request_parameters.instruction_parts or ()]
    for part in [part for one in request.messages for part in one.parts]:
        if part.part_kind == "tool-call":
            said.append(common.message("assistant", "", [(part.tool_name, part.args)]))
        elif part.part_kind in _SAID:
            shown = getattr(part, "model_response_str", getattr(part, "model_response", None))
            said.append(common.message(part.part_kind, shown() if shown else common.text_of(part.content)))
    return said


def _forced(request: Any, chosen: str) -> Any:
    """The same request with one way to go. To answer, own tools stay defined where there are no hosted ones."""
    offer, settings = request.model_request_parameters, dict(request.model_settings or {})
    settings.pop("tool_choice", None)
    left = {kind: [t for t in getattr(offer, kind) if t.name == chosen] for kind in ("function_tools", "output_tools")}
    if chosen == ANSWER and not offer.native_tools:
        left["function_tools"], settings["tool_choice"] = offer.function_tools, "none"
    # A FallbackModel has models in place of a profile.
    elif (
        chosen != ANSWER and not hasattr(request.model, "models") and common.may_force(request.model.profile, settings)
    ):
        settings["tool_choice"] = [chosen]
    return replace(request, model_settings=settings, model_request_parameters=replace(offer, **left))
