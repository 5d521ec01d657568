"""OpenAI Agents SDK: `Runner.run(agent, task, run_config=RunConfig(model_provider=AgentMarkProvider(decider)))`."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from agentmark.adapters.observing import observed
from agentmark.adapters.side_calls import chat_reply, model_name, settings_of
from agentmark.decide.decider import Decider
from agentmark.decide.decision import Decision
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, Candidate
from agentmark.errors import MissingExtraError
from agentmark.wire import openai_responses
from agentmark.wire.behaviors import with_answer

try:
    import agents
except ModuleNotFoundError as error:
    raise MissingExtraError("openai-agents", "openai-agents") from error

# What the SDK gives a model by position, in this order; the rest comes by name.
_ARGUMENTS = "system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing"
# What else the SDK asks of a model, or looks for on it.
_PASSED_ON = "close", "get_retry_advice", "_cleanup_on_run_end", "_supports_default_prompt_cache_key"
# Tools that run at the provider, inside a reply, are no decision of the agent's.
_HOSTED = ("FileSearchTool", "WebSearchTool", "HostedMCPTool", "CodeInterpreterTool", "ImageGenerationTool")
# Beside these, none can be forced.
_UNFORCED = ("ComputerTool", "ToolSearchTool", "ProgrammaticToolCallingTool")

# The arguments of a call of the model, by name.
Call = dict[str, Any]


class AgentMarkModel(agents.Model):
    """A model for which the decider decides: which tool or handoff comes next, or that the agent answers."""

    def __init__(self, model: agents.Model, decider: Decider) -> None:
        self.model = model
        self.decider = decider
        for name in _PASSED_ON:
            setattr(self, name, getattr(model, name, None))

    async def get_response(self, *args: Any, **kwargs: Any) -> agents.ModelResponse:
        call, decision = await self._decided(_named(args, kwargs))
        with observed(self.decider, decision) as reply:
            response = await self.model.get_response(**call)
            reply.calls = openai_responses.calls({"output": [_body_of_item(item) for item in response.output]})
        return response

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        call, decision = await self._decided(_named(args, kwargs))
        stream = openai_responses.stream()
        with observed(self.decider, decision) as reply:
            async for event in self.model.stream_response(**call):
                stream.add(_body_of_event(event))
                if stream.finished:
                    reply.calls = stream.calls
                yield event

    async def _decided(self, call: Call) -> tuple[Call, Decision | None]:
        """The call as it shall be made, and the decision it follows, if there was one to make."""
        candidates = _candidates(call)
        if not candidates:
            return call, None
        said = {"instructions": call["system_instructions"], "input": call["input"]}
        decision = await self.decider.adecide(candidates, openai_responses.conversation(said))
        if decision.behavior is None:
            return call, decision
        return _forced(call, decision.behavior), decision


class AgentMarkProvider(agents.ModelProvider):
    """The same for every model that agents name."""

    def __init__(self, decider: Decider, provider: agents.ModelProvider | None = None) -> None:
        self.decider = decider
        self.provider = provider or agents.MultiProvider()
        self.aclose = self.provider.aclose

    def get_model(self, model_name: str | None) -> AgentMarkModel:
        return AgentMarkModel(self.provider.get_model(model_name), self.decider)


def chat(model: agents.Model | str) -> FunctionChat:
    """The agent's model, lent for calls aside, untraced: `Verbalised(chat(model))`."""

    async def acomplete(request: ChatRequest) -> ChatReply:
        settings = agents.ModelSettings(**settings_of(request))
        agent = agents.Agent("agentmark", model=model, model_settings=settings)
        untraced = agents.RunConfig(tracing_disabled=True)
        run = await agents.Runner.run(agent, list(request.messages), run_config=untraced)
        return chat_reply(run.final_output, run.context_wrapper.usage)

    return FunctionChat(model if isinstance(model, str) else model_name(model), acomplete=acomplete)


def _named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    return {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}


def _runs_at_provider(tool: Any) -> bool:
    if type(tool).__name__ == "ShellTool":
        # A shell runs where its environment is: here, or in a container of the provider's.
        environment = tool.environment or {"type": "local"}
        return bool(environment["type"] != "local")
    return type(tool).__name__ in _HOSTED


def _candidates(call: Call) -> list[Candidate]:
    """The agent's own tools, its handoffs and the answer; none where the call leaves nothing to decide."""
    choice = call["model_settings"].tool_choice
    if choice not in (None, "auto", "required"):
        return []
    if any(type(tool).__name__ in _UNFORCED for tool in call["tools"]):
        return []
    own_tools = [_candidate_of_tool(tool) for tool in call["tools"] if not _runs_at_provider(tool)]
    handoffs = [_candidate_of_handoff(handoff) for handoff in call["handoffs"]]
    if not own_tools and not handoffs:
        return []
    return with_answer(own_tools + handoffs, may_answer=choice != "required")


def _candidate_of_tool(tool: Any) -> Candidate:
    """Tools that are called by their kind, such as a shell, have no description and no schema."""
    return Candidate(tool.name, getattr(tool, "description", ""), getattr(tool, "params_json_schema", None))


def _candidate_of_handoff(handoff: Any) -> Candidate:
    return Candidate(handoff.tool_name, handoff.tool_description, handoff.input_json_schema)


def _forced(call: Call, chosen: str) -> Call:
    """The call with one way to go."""
    hosted = [tool for tool in call["tools"] if _runs_at_provider(tool)]
    if chosen == ANSWER:
        if not hosted:
            return {**call, "model_settings": replace(call["model_settings"], tool_choice="none")}
        settings = replace(call["model_settings"], tool_choice=None)
        return {**call, "tools": hosted, "handoffs": [], "model_settings": settings}
    tools = [tool for tool in call["tools"] if tool.name == chosen and tool not in hosted]
    handoffs = [handoff for handoff in call["handoffs"] if handoff.tool_name == chosen]
    # A lone tool is required, not named: the SDK reads some names as kinds of tools.
    settings = replace(call["model_settings"], tool_choice="required")
    return {**call, "tools": tools, "handoffs": handoffs, "model_settings": settings}


def _body_of_event(event: Any) -> dict[str, Any]:
    """What of an event says which tools a reply calls, as the provider's JSON has it."""
    body: dict[str, Any] = {"type": event.type}
    if hasattr(event, "item"):
        body["item"] = _body_of_item(event.item)
    if hasattr(event, "response"):
        output = getattr(event.response, "output", None) or ()
        body["response"] = {"output": [_body_of_item(item) for item in output]}
    return body


def _body_of_item(item: Any) -> dict[str, Any]:
    members = ("type", "name", "call_id")
    return {name: getattr(item, name) for name in members if hasattr(item, name)}
