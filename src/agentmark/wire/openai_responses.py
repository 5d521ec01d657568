"""OpenAI's Responses API: a conversation, and a reply, is a list of items.

It answers the questions of `agentmark.wire.apis.Api`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentmark.elicit.situation import ANSWER, Candidate, Message, ToolCall, whole
from agentmark.wire.behaviors import left_to_decide
from agentmark.wire.forcing import Rung, instruction
from agentmark.wire.messages import message, text_of
from agentmark.wire.shapes import object_at, objects_at, text_at

PATH = "/v1/responses"

# Tools that the agent runs: those that it named itself, and those that are called by their kind.
_NAMED_KINDS = ("function", "custom")
_CALLED_BY_KIND = {
    "apply_patch": "apply_patch",
    "computer": "computer",
    "computer_use_preview": "computer",
    "local_shell": "local_shell",
    "shell": "shell",
}
# Beside these no tool can be forced: no choice names them, or they bring up others within the reply.
_UNFORCED_KINDS = (
    "computer",
    "computer_use_preview",
    "local_shell",
    "namespace",
    "programmatic_tool_calling",
    "tool_search",
)
# Items of a reply that the agent has to act on. Calls of other kinds ran at the provider.
_NAMED_CALLS = ("function_call", "custom_tool_call")
_CALLS_BY_KIND = ("apply_patch_call", "computer_call", "local_shell_call", "shell_call")
# What leaves the choice open, and whether the agent may then answer.
_OPEN_CHOICES = {"auto": True, "required": False}


def candidates(body: Mapping[str, Any]) -> list[Candidate]:
    choice = body.get("tool_choice") or "auto"
    is_list = text_at(choice, "type") == "allowed_tools"
    names = [_own_name(tool) for tool in objects_at(choice, "tools")] if is_list else None
    if is_list:
        choice = text_at(choice, "mode")
    if not isinstance(choice, str) or choice not in _OPEN_CHOICES:
        return []
    tools = []
    for tool in _tools(body):
        name = _own_name(tool)
        if name and (names is None or name in names):
            tools.append(Candidate(name, text_at(tool, "description"), object_at(tool, "parameters") or None))
    return left_to_decide(tools, may_answer=_OPEN_CHOICES[choice])


def runs_hosted_tools(body: Mapping[str, Any]) -> bool:
    return any(not _own_name(tool) for tool in _tools(body))


def calls_one_at_most(body: Mapping[str, Any]) -> bool:
    return body.get("parallel_tool_calls") is False


def conversation(body: Mapping[str, Any]) -> list[Message]:
    """What was said, called and returned. What the provider keeps (`previous_response_id`) is not in the body."""
    messages = []
    instructions = text_at(body, "instructions")
    if instructions:
        messages.append(message("system", instructions))
    if isinstance(body.get("input"), str):
        messages.append(message("user", text_at(body, "input")))
    for item in objects_at(body, "input"):
        read = _read_item(item)
        if read is not None:
            messages.append(read)
    return messages


def forced(body: Mapping[str, Any], behavior: str, rung: Rung) -> dict[str, Any] | None:
    if rung == Rung.INSTRUCTION:
        asked = body.get("input")
        before = [{"role": "user", "content": asked}] if isinstance(asked, str) else objects_at(body, "input")
        return {**body, "input": [*before, {"role": "user", "content": instruction(behavior)}]}
    if not _can_be_named(body):
        return None
    if behavior == ANSWER:
        # Nor could a tool of the provider's be used on the way to the answer then.
        is_forbidden = rung == Rung.NAMED and not runs_hosted_tools(body)
        return {**body, "tool_choice": "none"} if is_forbidden else None
    chosen = [tool for tool in objects_at(body, "tools") if _own_name(tool) == behavior]
    kind = chosen[-1]["type"] if chosen else "function"
    named = {"type": kind} if kind in _CALLED_BY_KIND else {"type": kind, "name": behavior}
    if rung == Rung.NAMED:
        return {**body, "tool_choice": named}
    return {**body, "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [named]}}


def choices(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(reply)]


def calls(reply: Mapping[str, Any]) -> list[ToolCall]:
    return _calls_of(objects_at(reply, "output"))


def tokens(reply: Mapping[str, Any]) -> tuple[int | None, int | None]:
    usage = object_at(reply, "usage")
    return whole(usage.get("input_tokens")), whole(usage.get("output_tokens"))


def text(reply: Mapping[str, Any]) -> str:
    return _text_of_items(objects_at(reply, "output"))


def stream() -> "_Stream":
    return _Stream()


class _Stream:
    """Collects the items on their way, because some providers leave them out of the last event."""

    def __init__(self) -> None:
        self.finished = False
        self._begun: list[Mapping[str, Any]] = []
        self._done: list[Mapping[str, Any]] = []
        self._said: list[str] = []

    def add(self, event: Mapping[str, Any]) -> None:
        kind = text_at(event, "type")
        if kind == "response.output_item.added":
            self._begun.append(object_at(event, "item"))
        elif kind == "response.output_item.done":
            self._done.append(object_at(event, "item"))
        elif kind in ("response.output_text.delta", "response.refusal.delta"):
            self._said.append(text_at(event, "delta"))
        elif kind in ("response.completed", "response.incomplete"):
            self.finished = True
            self._done = objects_at(object_at(event, "response"), "output") or self._done

    @property
    def calls(self) -> list[ToolCall]:
        # An item that is done repeats the one that was begun; without any, what was begun is all that is known.
        return _calls_of(self._done or self._begun)

    @property
    def text(self) -> str:
        return _text_of_items(self._done) or "".join(self._said)


def _can_be_named(body: Mapping[str, Any]) -> bool:
    return not any(tool.get("type") in _UNFORCED_KINDS for tool in objects_at(body, "tools"))


def _tools(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tools of a request, those in namespaces among them: they are called by their own names."""
    tools = []
    for tool in objects_at(body, "tools"):
        if tool.get("type") == "namespace":
            tools += objects_at(tool, "tools")
        else:
            tools.append(tool)
    return tools


def _own_name(tool: Mapping[str, Any]) -> str:
    """What a tool of the agent's is called by; empty if it runs at the provider, or has no name."""
    kind = text_at(tool, "type")
    if kind in _NAMED_KINDS:
        return text_at(tool, "name")
    # A shell runs where its environment is: here, which goes without saying, or in a container of the provider's.
    runs_in_container = text_at(object_at(tool, "environment"), "type") not in ("", "local")
    return "" if runs_in_container else _CALLED_BY_KIND.get(kind, "")


def _calls_of(items: Sequence[Mapping[str, Any]]) -> list[ToolCall]:
    # A shell in the provider's container is called and answered within one reply.
    answered = [text_at(item, "call_id") for item in items if text_at(item, "type").endswith("_call_output")]
    called = []
    for item in items:
        kind, call_id = text_at(item, "type"), text_at(item, "call_id")
        if call_id and call_id in answered:
            continue
        if kind in _NAMED_CALLS:
            called.append(ToolCall(text_at(item, "name"), _arguments(item), call_id))
        elif kind in _CALLS_BY_KIND:
            called.append(ToolCall(kind.removesuffix("_call"), _arguments(item), call_id))
    return called


def _text_of_items(items: Iterable[Mapping[str, Any]]) -> str:
    said = []
    for item in items:
        if item.get("type") == "message":
            said += [text_at(part, "text") or text_at(part, "refusal") for part in objects_at(item, "content")]
    return "".join(said)


def _read_item(item: Mapping[str, Any]) -> Message | None:
    """An item of the conversation; None for one that says nothing to a reader, such as encrypted reasoning."""
    kind = text_at(item, "type") or "message"
    if kind == "message":
        return message(text_at(item, "role") or "user", text_of(item.get("content")))
    if kind.endswith("_call_output"):
        return message("tool", text_of(item.get("output")), answers=text_at(item, "call_id"))
    if kind.endswith("_call"):
        name = text_at(item, "name") or kind.removesuffix("_call")
        return message("assistant", "", [ToolCall(name, _arguments(item), text_at(item, "call_id"))])
    return None


def _arguments(item: Mapping[str, Any]) -> Any:
    """What a call was given: each kind has a word of its own for it."""
    for field in ("arguments", "input", "action"):
        if field in item:
            return item[field]
    return ""
