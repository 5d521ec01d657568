"""OpenAI Agents SDK: `Runner.run(agent, task, run_config=RunConfig(model_provider=AgentMarkProvider(decider)))`."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

from agentmark.adapters import common
from agentmark.decide import Decider, Decision
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, Candidate
from agentmark.errors import MissingExtraError

try:
    import agents
except ModuleNotFoundError as error:
    raise MissingExtraError("openai-agents", "openai-agents") from error

_ARGUMENTS = "system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing"
# Tools that run at the provider, inside a reply, are no decision of the agent's; beside the next, none can be forced.
_HOSTED = {"FileSearchTool", "WebSearchTool", "HostedMCPTool", "CodeInterpreterTool", "ImageGenerationTool"}
_UNFORCED = {"ComputerTool", "ToolSearchTool", "ProgrammaticToolCallingTool"}
_CALLS = {"function_call", "custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call"}


class AgentMarkModel(agents.Model):
    """A model for which the decider decides: which tool or handoff comes next, or that the agent answers."""

    def __init__(self, model: agents.Model, decider: Decider) -> None:
        self.model, self.decider = model, decider
        for name in ("close", "get_retry_advice", "_cleanup_on_run_end", "_supports_default_prompt_cache_key"):
            setattr(self, name, getattr(model, name, None))

    async def get_response(self, *args: Any, **kwargs: Any) -> agents.ModelResponse:
        call, decision = await self._decided(args, kwargs)
        with common.observed(self.decider, decision) as reply:
            response = await self.model.get_response(**call)
            reply.calls = _calls(response.output)
        return response

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        call, decision = await self._decided(args, kwargs)
        items: list[Any] = []
        with common.observed(self.decider, decision) as reply:
            async for event in self.model.stream_response(**call):
                if common.ends_stream(event, items):
                    reply.calls = _calls(items)
                yield event

    async def _decided(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], Decision | None]:
        call = {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}
        candidates, said = _candidates(**call), common.messages_of_items(call["system_instructions"], call["input"])
        decision = await self.decider.adecide(candidates, said) if candidates else None
        return {**call, **_forced(decision.behavior, **call)} if decision and decision.behavior else call, decision


class AgentMarkProvider(agents.ModelProvider):
    """The same for every model that agents name."""

    def __init__(self, decider: Decider, provider: agents.ModelProvider | None = None) -> None:
        self.decider, self.provider = decider, provider or agents.MultiProvider()
        self.aclose = self.provider.aclose

    def get_model(self, model_name: str | None) -> AgentMarkModel:
        return AgentMarkModel(self.provider.get_model(model_name), self.decider)


def chat(model: agents.Model | str) -> FunctionChat:
    """The agent's model, lent for calls aside, untraced: `Verbalised(chat(model))`."""

    async def acomplete(request: ChatRequest) -> ChatReply:
        settings = agents.ModelSettings(**common.settings_of(request))
        agent = agents.Agent("agentmark", model=model, model_settings=settings)
        run = await agents.Runner.run(agent, list(request.messages), run_config=agents.RunConfig(tracing_disabled=True))
        return common.chat_reply(run.final_output, run.context_wrapper.usage)

    return FunctionChat(model if isinstance(model, str) else common.model_name(model), acomplete=acomplete)


def _candidates(*, tools: list[Any], handoffs: list[Any], model_settings: Any, **_: Any) -> list[Candidate]:
    """The agent's own tools, its handoffs and the answer; none where the call leaves nothing to decide."""
    own = [tool for tool in tools if type(tool).__name__ not in _HOSTED]
    listed = [Candidate(t.name, getattr(t, "description", ""), getattr(t, "params_json_schema", None)) for t in own]
    listed += [Candidate(h.tool_name, h.tool_description, h.input_json_schema) for h in handoffs]
    free = model_settings.tool_choice in (None, "auto", "required") and not _UNFORCED & {type(t).__name__ for t in own}
    return common.with_answer(listed, may_answer=model_settings.tool_choice != "required") if listed and free else []


def _forced(chosen: str, *, tools: list[Any], handoffs: list[Any], model_settings: Any, **_: Any) -> dict[str, Any]:
    """What a call with one way to go has in place of its own. A lone tool is required: some names are read as kinds."""
    hosted = [tool for tool in tools if type(tool).__name__ in _HOSTED]
    if chosen == ANSWER and not hosted:
        return {"model_settings": replace(model_settings, tool_choice="none")}
    left = hosted if chosen == ANSWER else [tool for tool in tools if tool.name == chosen and tool not in hosted]
    settings = replace(model_settings, tool_choice=None if chosen == ANSWER else "required")
    return {"tools": left, "handoffs": [h for h in handoffs if h.tool_name == chosen], "model_settings": settings}


def _calls(output: Iterable[Any]) -> list[str]:
    return [getattr(item, "name", None) or item.type.removesuffix("_call") for item in output if item.type in _CALLS]
