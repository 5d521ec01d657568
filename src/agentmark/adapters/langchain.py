"""LangChain: `create_agent(model, tools, middleware=[AgentMarkMiddleware(decider)])`."""

from collections.abc import Callable
from typing import Any

from agentmark.adapters.common import chat_reply, message, model_name, observed, settings_of, with_answer
from agentmark.decide import Decider, Decision
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, Candidate, Message
from agentmark.errors import MissingExtraError

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.utils.function_calling import convert_to_openai_function
except ModuleNotFoundError as error:
    raise MissingExtraError("langchain", "langchain") from error


class AgentMarkMiddleware(AgentMiddleware):
    """Decides before each call of the model, offers it the chosen tool alone, and observes what it did."""

    def __init__(self, decider: Decider) -> None:
        self.decider = decider

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        candidates = _candidates(request)
        decision = self.decider.decide(candidates, _messages(request)) if candidates else None
        with observed(self.decider, decision) as reply:
            response = handler(_forced(request, decision))
            reply.calls = _calls(response, request)
        return response

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> ModelResponse:
        candidates = _candidates(request)
        decision = await self.decider.adecide(candidates, _messages(request)) if candidates else None
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


def _candidates(request: ModelRequest) -> list[Candidate]:
    """The agent's own tools and the answer, structured or not; none where the call leaves nothing to decide."""
    if not _own(request) or request.tool_choice not in (None, "auto", "any", "required", True):
        return []
    tools = [convert_to_openai_function(tool) for tool in _own(request)]
    listed = [Candidate(tool["name"], tool.get("description", ""), tool.get("parameters")) for tool in tools]
    return with_answer(listed, may_answer=request.tool_choice in (None, "auto") or request.response_format is not None)


def _own(request: ModelRequest) -> list[Any]:
    """Tools that the agent runs. Those given as dicts run at the provider, inside a reply, and are left alone."""
    return [tool for tool in request.tools if not isinstance(tool, dict)]


def _messages(request: ModelRequest) -> list[Message]:
    said = [*([request.system_message] if request.system_message else []), *request.messages]
    calls = [[(call["name"], call["args"]) for call in getattr(one, "tool_calls", ())] for one in said]
    return [message(one.type, str(one.text), made) for one, made in zip(said, calls, strict=True)]


def _forced(request: ModelRequest, decision: Decision | None) -> ModelRequest:
    """The same request with one way to go. LangChain adds the tool of a structured answer after this."""
    if decision is None or decision.behavior is None:
        return request
    if decision.behavior == ANSWER:
        hosted = [tool for tool in request.tools if isinstance(tool, dict)]
        if "anthropic" in str(request.model._llm_type) and not hosted and request.response_format is None:
            return request.override(tool_choice={"type": "none"})  # It wants the tools of earlier calls defined.
        settings = {k: v for k, v in request.model_settings.items() if hosted or k != "parallel_tool_calls"}
        return request.override(tools=hosted, tool_choice=None, model_settings=settings)
    unforced = (request.model.profile or {}).get("tool_choice") is False
    forced = {} if unforced else {"tool_choice": decision.behavior, "response_format": None}
    return request.override(tools=[tool for tool in _own(request) if tool.name == decision.behavior], **forced)


def _calls(response: ModelResponse, request: ModelRequest) -> list[str]:
    """The tools that a reply calls. The one that holds a structured answer is not the agent's own: it is the answer."""
    own = {tool.name for tool in _own(request)}
    made = [getattr(one, kind, ()) for one in response.result for kind in ("tool_calls", "invalid_tool_calls")]
    called = [call["name"] or "(unnamed)" for calls in made for call in calls]
    return [ANSWER if request.response_format is not None and name not in own else name for name in called]
