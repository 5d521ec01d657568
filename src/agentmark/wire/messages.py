"""A message of a conversation as elicitors read it (`agentmark.elicit.situation.Message`)."""

from collections.abc import Iterable, Mapping
from typing import Any

from agentmark.elicit.situation import Message


def message(role: str, text: str, calls: Iterable[tuple[str, Any]] = ()) -> Message:
    """Its text, and the calls it makes: names with their arguments."""
    tool_calls = [{"name": name, "arguments": arguments} for name, arguments in calls]
    if not tool_calls:
        return {"role": role, "content": text}
    return {"role": role, "content": text, "tool_calls": tool_calls}


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
