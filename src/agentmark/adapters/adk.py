"""Google ADK: a plugin that decides which tool an agent calls next, or that it answers.

app = App(name="shop", root_agent=agent, plugins=[AgentMarkPlugin(decider)])
"""

from collections.abc import Iterator
from typing import Any

from agentmark.adapters.common import message, what_was_done, with_answer
from agentmark.decide import Decider, Decision
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import ANSWER, Candidate, Message
from agentmark.errors import MissingExtraError

try:
    from google.adk.models import BaseLlm, LlmRequest, LlmResponse
    from google.adk.plugins import BasePlugin
    from google.genai import types
except ModuleNotFoundError as error:
    raise MissingExtraError("google-adk", "adk") from error


class AgentMarkPlugin(BasePlugin):
    """Decides before each call of a model, in every agent of the app, and observes what the reply did."""

    def __init__(self, decider: Decider, name: str = "agentmark") -> None:
        super().__init__(name=name)
        self.decider = decider
        self._open: dict[int, tuple[Any, str, Decision]] = {}  # By the id of a call's actions, which are held.

    async def before_model_callback(self, *, callback_context: Any, llm_request: LlmRequest) -> None:
        candidates, actions = _candidates(llm_request.config), callback_context.actions
        if candidates and callback_context._invocation_context.live_request_queue is None:
            decision = await self.decider.adecide(candidates, list(_messages(llm_request)))
            self._open[id(actions)] = (actions, callback_context.invocation_id, decision)
            if decision.behavior is not None:
                _force(llm_request.config, decision.behavior)

    async def after_model_callback(self, *, callback_context: Any, llm_response: LlmResponse) -> None:
        if not llm_response.partial:  # A stream's last response holds all of it.
            calls = [call.name or "" for call in llm_response.get_function_calls()]
            self._close(callback_context.actions, calls if llm_response.content else None)

    async def after_run_callback(self, *, invocation_context: Any, **_: Any) -> None:
        for actions in [one for one, run, _ in self._open.values() if run == invocation_context.invocation_id]:
            self._close(actions, None)  # The model failed, or was never asked.

    on_run_error_callback = after_run_callback

    def _close(self, actions: Any, calls: list[str] | None) -> None:
        *_, decision = self._open.pop(id(actions), (None,))
        if decision is not None:
            self.decider.observe(decision, None if calls is None else what_was_done(calls, decision.behavior))


def chat(model: BaseLlm) -> FunctionChat:
    """The agent's model, lent for side calls: `Verbalised(chat(model))`."""

    async def acomplete(request: ChatRequest) -> ChatReply:
        system = "\n".join([one["content"] for one in request.messages if one["role"] == "system"])
        config = types.GenerateContentConfig(system_instruction=system, temperature=request.temperature)
        kinds = {"user": types.UserContent, "assistant": types.ModelContent}
        said = [kinds[one["role"]](one["content"]) for one in request.messages if one["role"] in kinds]
        asked = LlmRequest(model=model.model, contents=said, config=config)
        *_, reply = [one async for one in model.generate_content_async(asked)]
        return ChatReply(text="".join([part.text or "" for part in reply.content.parts if not part.thought]))

    return FunctionChat(model.model, acomplete=acomplete)


def _candidates(config: types.GenerateContentConfig) -> list[Candidate]:
    """The functions on offer and the answer; none where the call leaves nothing to decide."""
    asked = (config.tool_config and config.tool_config.function_calling_config) or types.FunctionCallingConfig()
    declared = [one for tool in config.tools or () for one in getattr(tool, "function_declarations", None) or ()]
    offered = {one.name: one for one in declared if one.name in (asked.allowed_function_names or [one.name])}
    nothing = not offered or asked.mode == "NONE" or (asked.mode == "ANY" and len(offered) == 1)
    listed = [Candidate(one.name, one.description or "", one.parameters_json_schema) for one in offered.values()]
    return [] if nothing else with_answer(listed, may_answer=asked.mode != "ANY")


def _force(config: types.GenerateContentConfig, behavior: str) -> None:
    """Changes the request's config alone: what it shares with the agent's is replaced. Tools run by Google stay."""
    calling = {"mode": "NONE"} if behavior == ANSWER else {"mode": "ANY", "allowed_function_names": [behavior]}
    update = {"function_calling_config": types.FunctionCallingConfig(**calling)}
    config.tool_config = (config.tool_config or types.ToolConfig()).model_copy(update=update)
    if behavior != ANSWER:
        offers = [(tool, getattr(tool, "function_declarations", None) or []) for tool in config.tools]
        chosen = [one for _, declared in offers for one in declared if one.name == behavior][-1:]
        config.tools = [*[tool for tool, declared in offers if not declared], types.Tool(function_declarations=chosen)]


def _messages(request: LlmRequest) -> Iterator[Message]:
    yield message("system", str(request.config.system_instruction or ""))
    for content in request.contents:
        parts = [part for part in content.parts or () if not part.thought]
        calls = [(part.function_call.name, part.function_call.args) for part in parts if part.function_call]
        results = [part.function_response for part in parts if part.function_response]
        said = [*[part.text for part in parts if part.text], *[f"{one.name}: {one.response}" for one in results]]
        yield message(content.role or "user", " ".join(said), calls)
