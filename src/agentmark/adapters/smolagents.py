"""smolagents: a model whose choice among the tools of a `ToolCallingAgent` carries the mark.

agent = ToolCallingAgent(tools=tools, model=AgentMarkModel(model, decider))
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from agentmark.adapters.observing import observed
from agentmark.adapters.side_calls import chat_reply
from agentmark.decide.decider import Decider
from agentmark.decide.decision import Decision
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.elicit.situation import Candidate, Message
from agentmark.errors import MissingExtraError
from agentmark.wire.messages import message, text_of

try:
    from smolagents.models import ChatMessage, MessageRole, agglomerate_stream_deltas, get_tool_json_schema
except ModuleNotFoundError as error:
    raise MissingExtraError("smolagents", "smolagents") from error


class AgentMarkModel:
    """Stands before a model. What it does not do itself, the model does."""

    def __init__(self, model: Any, decider: Decider) -> None:
        self.model = model
        self.decider = decider

    def __getattr__(self, name: str) -> Any:
        # Copying and pickling ask for special methods before there is a model to ask.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.model, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.generate(*args, **kwargs)

    def generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        decision = self._decide(messages, kwargs)
        with observed(self.decider, decision) as reply:
            answer = self.model.generate(messages, *args, **_forced(kwargs, decision))
            reply.calls = self._calls(answer)
        return answer

    @property
    def generate_stream(self) -> Any:
        """There only if the model has it: agents ask with `hasattr`."""
        model_stream = self.model.generate_stream

        def generate_stream(messages: list[Any], *args: Any, **kwargs: Any) -> Iterator[Any]:
            decision = self._decide(messages, kwargs)
            with observed(self.decider, decision) as reply:
                deltas = []
                for delta in model_stream(messages, *args, **_forced(kwargs, decision)):
                    deltas.append(delta)
                    yield delta
                reply.calls = self._calls(agglomerate_stream_deltas(deltas))

        return generate_stream

    def _decide(self, messages: list[Any], kwargs: dict[str, Any]) -> Decision | None:
        """None where nothing is to be decided: no tools (plans, code agents), or a tool that was chosen already."""
        tools = kwargs.get("tools_to_call_from")
        # What the model was made with goes before what the agent asks for.
        settings = {**kwargs, **getattr(self.model, "kwargs", {})}
        choice = settings.get("tool_choice")
        if not tools or isinstance(choice, dict) or choice == "none":
            return None
        return self.decider.decide([_candidate(tool) for tool in tools], [_read_message(said) for said in messages])

    def _calls(self, answer: Any) -> list[str] | None:
        """The tools that a reply calls, in its text if need be. To the agent a reply without any is an error: None."""
        try:
            calls = answer.tool_calls or self.model.parse_tool_calls(replace(answer)).tool_calls
        except Exception:
            return None
        return [call.function.name for call in calls]


def chat(model: Any) -> FunctionChat:
    """The agent's model, lent for side calls: `Verbalised(chat(model))`."""

    def complete(request: ChatRequest) -> ChatReply:
        messages = []
        for said in request.messages:
            content = [{"type": "text", "text": said["content"]}]
            messages.append(ChatMessage(role=MessageRole(said["role"]), content=content))
        reply = model.generate(messages)
        return chat_reply(reply.content or "", reply.token_usage)

    return FunctionChat(str(model.model_id or type(model).__name__), complete=complete)


def _candidate(tool: Any) -> Candidate:
    """`final_answer` is a tool like any other, so no answer without a tool is added."""
    return Candidate(tool.name, tool.description, get_tool_json_schema(tool)["function"]["parameters"])


def _read_message(said: Any) -> Message:
    members = said if isinstance(said, dict) else vars(said)
    return message(MessageRole(members["role"]).value, text_of(members["content"]))


def _forced(kwargs: dict[str, Any], decision: Decision | None) -> dict[str, Any]:
    """One tool on offer. smolagents asks for `required` by itself: together, a forced choice with every provider."""
    if decision is None or decision.behavior is None:
        return kwargs
    chosen = [tool for tool in kwargs["tools_to_call_from"] if tool.name == decision.behavior]
    return {**kwargs, "tools_to_call_from": chosen}
