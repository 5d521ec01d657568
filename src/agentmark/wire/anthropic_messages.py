"""Anthropic's Messages API: a message is a list of content blocks.

It answers the questions of `agentmark.wire.apis.Api`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agentmark.elicit.situation import ANSWER, Candidate, Message
from agentmark.wire.behaviors import left_to_decide
from agentmark.wire.messages import message, text_of
from agentmark.wire.shapes import object_at, objects_at, text_at

PATH = "/v1/messages"

# Tools without a type, or of the type "custom", are the agent's. Of those that Anthropic defines, with a date at the
# end of their type, these run at the agent too; the others run at Anthropic, inside a reply.
_CLIENT_KINDS = ("bash_", "computer_", "memory_", "text_editor_")
# Beside these no tool can be forced: a toolset stands for many without naming them, and a search brings up others
# within the reply.
_UNFORCED_KINDS = ("browser_toolset_", "computer_toolset_", "tool_search_tool_")
# What leaves the choice open, and whether the agent may then answer.
_OPEN_CHOICES = {"auto": True, "any": False}


def candidates(body: Mapping[str, Any]) -> list[Candidate]:
    choice = "auto" if body.get("tool_choice") is None else text_at(object_at(body, "tool_choice"), "type")
    if choice not in _OPEN_CHOICES:
        return []
    tools = []
    for tool in objects_at(body, "tools"):
        name = _own_name(tool)
        if name:
            tools.append(Candidate(name, text_at(tool, "description"), object_at(tool, "input_schema") or None))
    return left_to_decide(tools, may_answer=_OPEN_CHOICES[choice])


def can_force(body: Mapping[str, Any]) -> bool:
    return not any(text_at(tool, "type").startswith(_UNFORCED_KINDS) for tool in objects_at(body, "tools"))


def conversation(body: Mapping[str, Any]) -> list[Message]:
    messages = []
    system = text_of(body.get("system"))
    if system:
        messages.append(message("system", system))
    for said in objects_at(body, "messages"):
        role = text_at(said, "role") or "user"
        if isinstance(said.get("content"), str):
            messages.append(message(role, said["content"]))
        else:
            messages += _read_blocks(role, objects_at(said, "content"))
    return messages


def forced(body: Mapping[str, Any], behavior: str | None) -> dict[str, Any]:
    """The body with one way to go. Tools that run at Anthropic stay; for an answer without any, the agent's too.

    Models that think, and some that do not, refuse a forced choice or a change of tools: then it is for the caller
    to send the request as it was.
    """
    if behavior is None:
        return dict(body)
    tools = objects_at(body, "tools")
    hosted = [tool for tool in tools if not _own_name(tool)]
    if behavior == ANSWER:
        return {**body, "tools": hosted} if hosted else {**body, "tool_choice": {"type": "none"}}
    chosen = [tool for tool in tools if _own_name(tool) == behavior]
    choice = {"type": "tool", "name": behavior}
    # Whether the agent takes several calls at once is said in the choice, and is the agent's to say.
    asked = object_at(body, "tool_choice")
    if "disable_parallel_tool_use" in asked:
        choice["disable_parallel_tool_use"] = asked["disable_parallel_tool_use"]
    return {**body, "tools": [*hosted, *chosen], "tool_choice": choice}


def calls(reply: Mapping[str, Any]) -> list[str]:
    return _calls_of(objects_at(reply, "content"))


def text(reply: Mapping[str, Any]) -> str:
    return "".join([text_at(block, "text") for block in objects_at(reply, "content") if block.get("type") == "text"])


def stream() -> "_Stream":
    return _Stream()


class _Stream:
    """A block begins with its kind and name; deltas add text, or arguments that need not be read."""

    def __init__(self) -> None:
        self.finished = False
        self._begun: list[Mapping[str, Any]] = []
        self._said: list[str] = []

    def add(self, event: Mapping[str, Any]) -> None:
        kind = text_at(event, "type")
        if kind == "content_block_start":
            block = object_at(event, "content_block")
            self._begun.append(block)
            self._said.append(text_at(block, "text"))
        elif kind == "content_block_delta":
            self._said.append(text_at(object_at(event, "delta"), "text"))
        elif kind == "message_delta":
            # Some who speak this API leave out the last event, which comes after this.
            self.finished = self.finished or bool(text_at(object_at(event, "delta"), "stop_reason"))
        elif kind == "message_stop":
            self.finished = True

    @property
    def calls(self) -> list[str]:
        return _calls_of(self._begun)

    @property
    def text(self) -> str:
        return "".join(self._said)


def _own_name(tool: Mapping[str, Any]) -> str:
    """What a tool of the agent's is called by; empty if it runs at Anthropic, has no name, or only code may call it."""
    kind = text_at(tool, "type") or "custom"
    callers = tool.get("allowed_callers")
    only_code_calls_it = isinstance(callers, list) and bool(callers) and "direct" not in callers
    runs_here = kind == "custom" or kind.startswith(_CLIENT_KINDS)
    return text_at(tool, "name") if runs_here and not only_code_calls_it else ""


def _calls_of(blocks: Iterable[Mapping[str, Any]]) -> list[str]:
    """Calls that ran at Anthropic are blocks of other types: server_tool_use, mcp_tool_use."""
    return [text_at(block, "name") for block in blocks if block.get("type") == "tool_use"]


def _read_blocks(role: str, blocks: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The blocks of one message. Results, and instructions in between, stand in messages of their own."""
    messages: list[Message] = []
    said: list[str] = []
    made: list[tuple[str, Any]] = []

    def close_message() -> None:
        if said or made:
            messages.append(message(role, " ".join(said), made))
            said.clear()
            made.clear()

    for block in blocks:
        kind = text_at(block, "type")
        if kind.endswith("tool_result"):
            close_message()
            messages.append(message("tool", text_of(block.get("content"))))
        elif kind == "mid_conv_system":
            close_message()
            messages.append(message("system", text_of(block.get("content"))))
        elif kind.endswith("tool_use"):
            made.append((text_at(block, "name"), block.get("input", {})))
        elif kind not in ("thinking", "redacted_thinking"):
            said.append(text_of([block]))
    close_message()
    return messages
