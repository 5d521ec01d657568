"""Anthropic's Messages API: a message is a list of content blocks.

It answers the questions of `agentmark.wire.apis.Api`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agentmark.elicit.situation import ANSWER, Candidate, Message, ToolCall, whole
from agentmark.wire.behaviors import left_to_decide
from agentmark.wire.forcing import Rung
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


def runs_hosted_tools(body: Mapping[str, Any]) -> bool:
    return bool(objects_at(body, "mcp_servers")) or any(_runs_at_anthropic(tool) for tool in objects_at(body, "tools"))


def calls_one_at_most(body: Mapping[str, Any]) -> bool:
    return object_at(body, "tool_choice").get("disable_parallel_tool_use") is True


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


def forced(body: Mapping[str, Any], behavior: str, rung: Rung) -> dict[str, Any] | None:
    """Models that think, and some that do not, refuse a named choice. There is no list of allowed tools here, and no
    instruction: thinking is bound to all that was said before it, and the agent sends it back without our sentence."""
    if rung != Rung.NAMED or not _can_be_named(body):
        return None
    if behavior == ANSWER:
        # Nor could a tool of Anthropic's be used on the way to the answer then.
        return None if runs_hosted_tools(body) else {**body, "tool_choice": {"type": "none"}}
    choice: dict[str, Any] = {"type": "tool", "name": behavior}
    # Whether the agent takes several calls at once is said in the choice, and is the agent's to say.
    asked = object_at(body, "tool_choice")
    if "disable_parallel_tool_use" in asked:
        choice["disable_parallel_tool_use"] = asked["disable_parallel_tool_use"]
    return {**body, "tool_choice": choice}


def choices(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(reply)]


def calls(reply: Mapping[str, Any]) -> list[ToolCall]:
    return _calls_of(objects_at(reply, "content"))


def tokens(reply: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """What was read from the cache, or written to it, is counted apart there; it was read all the same."""
    usage = object_at(reply, "usage")
    parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    read = [count for count in [whole(usage.get(part)) for part in parts] if count is not None]
    return sum(read) if read else None, whole(usage.get("output_tokens"))


def text(reply: Mapping[str, Any]) -> str:
    return "".join([text_at(block, "text") for block in objects_at(reply, "content") if block.get("type") == "text"])


def stream() -> "_Stream":
    return _Stream()


class _Stream:
    """A block begins with its kind and name; deltas add text, or arguments in pieces of JSON."""

    def __init__(self) -> None:
        self.finished = False
        self._begun: list[Mapping[str, Any]] = []
        # The pieces of the arguments of each block that was begun.
        self._pieces: list[list[str]] = []
        self._said: list[str] = []

    def add(self, event: Mapping[str, Any]) -> None:
        kind = text_at(event, "type")
        if kind == "content_block_start":
            block = object_at(event, "content_block")
            self._begun.append(block)
            self._pieces.append([])
            self._said.append(text_at(block, "text"))
        elif kind == "content_block_delta":
            delta = object_at(event, "delta")
            self._said.append(text_at(delta, "text"))
            if self._pieces:
                # Blocks come one after the other: a piece belongs to the last that was begun.
                self._pieces[-1].append(text_at(delta, "partial_json"))
        elif kind == "message_delta":
            # Some who speak this API leave out the last event, which comes after this.
            self.finished = self.finished or bool(text_at(object_at(event, "delta"), "stop_reason"))
        elif kind == "message_stop":
            self.finished = True

    @property
    def calls(self) -> list[ToolCall]:
        blocks = []
        for block, pieces in zip(self._begun, self._pieces, strict=True):
            written = "".join(pieces)
            blocks.append({**block, "input": written} if written else block)
        return _calls_of(blocks)

    @property
    def text(self) -> str:
        return "".join(self._said)


def _can_be_named(body: Mapping[str, Any]) -> bool:
    return not any(text_at(tool, "type").startswith(_UNFORCED_KINDS) for tool in objects_at(body, "tools"))


def _runs_at_anthropic(tool: Mapping[str, Any]) -> bool:
    kind = text_at(tool, "type") or "custom"
    return kind != "custom" and not kind.startswith(_CLIENT_KINDS)


def _own_name(tool: Mapping[str, Any]) -> str:
    """What a tool of the agent's is called by; empty if it runs at Anthropic, has no name, or only code may call it."""
    callers = tool.get("allowed_callers")
    only_code_calls_it = isinstance(callers, list) and bool(callers) and "direct" not in callers
    return "" if _runs_at_anthropic(tool) or only_code_calls_it else text_at(tool, "name")


def _calls_of(blocks: Iterable[Mapping[str, Any]]) -> list[ToolCall]:
    """Calls that ran at Anthropic are blocks of other types: server_tool_use, mcp_tool_use."""
    return [_call(block) for block in blocks if block.get("type") == "tool_use"]


def _call(block: Mapping[str, Any]) -> ToolCall:
    return ToolCall(text_at(block, "name"), block.get("input", {}), text_at(block, "id"))


def _read_blocks(role: str, blocks: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The blocks of one message. Results, and instructions in between, stand in messages of their own."""
    messages: list[Message] = []
    said: list[str] = []
    made: list[ToolCall] = []

    def close_message() -> None:
        if said or made:
            messages.append(message(role, " ".join(said), made))
            said.clear()
            made.clear()

    for block in blocks:
        kind = text_at(block, "type")
        if kind.endswith("tool_result"):
            close_message()
            result = text_of(block.get("content"))
            messages.append(message("tool", result, answers=text_at(block, "tool_use_id")))
        elif kind == "mid_conv_system":
            close_message()
            messages.append(message("system", text_of(block.get("content"))))
        elif kind.endswith("tool_use"):
            made.append(_call(block))
        elif kind not in ("thinking", "redacted_thinking"):
            said.append(text_of([block]))
    close_message()
    return messages
