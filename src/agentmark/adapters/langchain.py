"""LangChain: `create_agent(model, tools, middleware=[AgentMarkMiddleware(decider)])`."""

from collections.abc import Callable
from typing import Any

from agentmark.adapters.observing import observed
from agentmark.adapters.side_calls import chat_reply, model_name, settings_of
from agentmark.decide.decider import Decider
from agentmark.decide.decision import Decision
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, Candidate, Message
from agentmark.errors import MissingExtraError
from agentmark.wire.behaviors import with_answer
from agentmark.wire.messages import message

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.utils.function_calling import convert_to_openai_function
except ModuleNotFoundError as error:
    raise MissingExtraError("langchain", "langchain") from error

# What LangChain calls the sides of a conversation, where others have another word.
_ROLES = {"human": "user", "ai": "assistant"}
# Choices of a tool that leave it open which one, and whether the agent may then answer.
_MAY_ANSWER = (None, "auto")
_MUST_CALL = ("any", "required", True)


class AgentMarkMiddleware(AgentMiddleware):
    """Decides before each call of the model, offers it the chosen tool alone, and observes what it did."""

    def __init__(self, decider: Decider) -> None:
        self.decider = decider

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        candidates = _candidates(request)
        decision = self.decider.decide(candidates, _conversation(request)) if candidates else None
        with observed(self.decider, decision) as reply:
            response = handler(_forced(request, decision))
            reply.calls = _calls(response, request)
        return response

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> ModelResponse:
        candidates = _candidates(request)
        decision = await self.decider.adecide(candidates, _conversation(request)) if candidates else None
        with observed(self.decider, decision) as reply:
            response = await handler(_forced(request, decision))
            reply.calls = _calls(response, request)
        return response


def chat(model: Any) -> FunctionChat:
    """The agent's model, lent for side calls: `Verbalised(chat(model))`. Its words stay out of the agent's stream."""

    def call(request: ChatRequest) -> dict[str, Any]:
        return {"input": list(request.messages), "config": {"tags": ["nostream"]}, **settings_of(request)}

    def complete(request: ChatRequest) -> ChatReply:
        said = model.invoke(**call(request))
        return chat_reply(said.text, said.usage_metadata)

    async def acomplete(request: ChatRequest) -> ChatReply:
        said = await model.ainvoke(**call(request))
        return chat_reply(said.text, said.usage_metadata)

    return FunctionChat(model_name(model), complete=complete, acomplete=acomplete)


def _own_tools(request: ModelRequest) -> list[Any]:
    """Tools that the agent runs."""
    return [tool for tool in request.tools if not isinstance(tool, dict)]


def _hosted_tools(request: ModelRequest) -> list[Any]:
    """Tools given as dicts run at the provider, inside a reply, and are no decision of the agent's."""
    return [tool for tool in request.tools if isinstance(tool, dict)]


def _candidates(request: ModelRequest) -> list[Candidate]:
    """The agent's own tools and the answer, structured or not; none where the call leaves nothing to decide."""
    own_tools = _own_tools(request)
    if not own_tools or request.tool_choice not in _MAY_ANSWER + _MUST_CALL:
        return []
    functions = [convert_to_openai_function(tool) for tool in own_tools]
    tools = [
        Candidate(function["name"], function.get("description", ""), function.get("parameters"))
        for function in functions
    ]
    # A structured answer is a call of a tool, so a call can be required and the answer be open all the same.
    may_answer = request.tool_choice in _MAY_ANSWER or request.response_format is not None
    return with_answer(tools, may_answer=may_answer)


def _conversation(request: ModelRequest) -> list[Message]:
    said = list(request.messages)
    if request.system_message:
        said.insert(0, request.system_message)
    return [_read_message(spoken) for spoken in said]


def _read_message(said: Any) -> Message:
    calls = [(call["name"], call["args"]) for call in getattr(said, "tool_calls", ())]
    return message(_ROLES.get(said.type, said.type), str(said.text), calls)


def _forced(request: ModelRequest, decision: Decision | None) -> ModelRequest:
    """The same request with one way to go. LangChain adds the tool of a structured answer after this."""
    if decision is None or decision.behavior is None:
        return request
    if decision.behavior == ANSWER:
        return _forced_to_answer(request)
    return _forced_to_call(request, decision.behavior)


def _forced_to_answer(request: ModelRequest) -> ModelRequest:
    hosted = _hosted_tools(request)
    is_anthropic = "anthropic" in str(request.model._llm_type)
    if is_anthropic and not hosted and request.response_format is None:
        # It wants the tools of earlier calls to be defined.
        return request.override(tool_choice={"type": "none"})
    settings = dict(request.model_settings)
    if not hosted:
        # Providers refuse this setting where there are no tools.
        settings.pop("parallel_tool_calls", None)
    return request.override(tools=hosted, tool_choice=None, model_settings=settings)


def _forced_to_call(request: ModelRequest, name: str) -> ModelRequest:
    chosen = [tool for tool in _own_tools(request) if tool.name == name]
    profile = request.model.profile or {}
    if profile.get("tool_choice") is False:
        # The model cannot be forced: one tool on offer must do.
        return request.override(tools=chosen)
    return request.override(tools=chosen, tool_choice=name, response_format=None)


def _calls(response: ModelResponse, request: ModelRequest) -> list[str]:
    """The tools that a reply calls. The one that holds a structured answer is not the agent's own: it is the answer."""
    called = []
    for said in response.result:
        called += [call["name"] or "(unnamed)" for call in getattr(said, "tool_calls", ())]
        called += [call["name"] or "(unnamed)" for call in getattr(said, "invalid_tool_calls", ())]
    if request.response_format is None:
        return called
    own_names = [tool.name for tool in _own_tools(request)]
    return [name if name in own_names else ANSWER for name in called]
