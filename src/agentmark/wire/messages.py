"""A message of a conversation as elicitors read it (`agentmark.elicit.situation.Message`)."""

from collections.abc import Iterable, Mapping
from typing import Any

from agentmark.elicit.situation import Message, ToolCall


def message(role: str, text: str, calls: Iterable[ToolCall] = (), *, answers: str = "") -> Message:
    """Its text, the calls it makes, and the id of the call that it answers, where it is a result."""
    said: dict[str, Any] = {"role": role, "content": text}
    tool_calls = [_written(call) for call in calls]
    if tool_calls:
        said["tool_calls"] = tool_calls
    if answers:
        said["tool_call_id"] = answers
    return said


def _written(call: ToolCall) -> dict[str, Any]:
    named = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, **named} if call.id else named


def text_of(content: object) -> str:
    """The text of a content: plain, or in parts. A part that is not text is named by its kind, such as (image_url)."""
    if content is None:
        return ""
    if isinstance(content, list | tuple):
        return " ".join([_text_of_part(part) for part in content])
    return str(content)


def _text_of_part(part: object) -> str:
    if not isinstance(part, Mapping):
        return str(part)
    for name in ("text", "refusal"):
        if isinstance(part.get(name), str):
            return str(part[name])
    return f"({part.get('type', 'part')})"
