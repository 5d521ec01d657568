"""An agent's own model, lent to an elicitor: what a side call asks of it, and what comes back."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentmark.elicit.chat import ChatReply, ChatRequest
from agentmark.elicit.situation import Message


def settings_of(request: ChatRequest) -> dict[str, Any]:
    """What a side call asks of the model besides its messages, if anything, in the words of most frameworks."""
    settings = {"temperature": request.temperature, "max_tokens": request.max_tokens}
    return {name: value for name, value in settings.items() if value is not None}


def chat_reply(text: object, usage: Any) -> ChatReply:
    """What came back, with token counts from a mapping or an object as far as it has them."""
    counts = usage if isinstance(usage, Mapping) else getattr(usage, "__dict__", {})
    return ChatReply(text=str(text), input_tokens=counts.get("input_tokens"), output_tokens=counts.get("output_tokens"))


def begins_with(messages: Sequence[Message], own: Sequence[Message]) -> bool:
    """Whether a side call begins with the agent's own messages, be it with more said of them than an adapter did: then
    the adapter may send them as the agent does, with all that it leaves out when it reads them."""
    return len(messages) >= len(own) and all(
        said.get(name) == value for said, known in zip(messages, own, strict=False) for name, value in known.items()
    )


def model_name(model: Any) -> str:
    """What a model object calls itself, or its class."""
    for attribute in ("model_name", "model"):
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(model).__name__
