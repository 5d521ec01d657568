"""An agent's own model, lent to an elicitor: what a side call asks of it, and what comes back."""

from collections.abc import Mapping
from typing import Any

from agentmark.elicit.chat import ChatReply, ChatRequest


def settings_of(request: ChatRequest) -> dict[str, Any]:
    """What a side call asks of the model besides its messages, if anything, in the words of most frameworks."""
    settings = {"temperature": request.temperature, "max_tokens": request.max_tokens}
    return {name: value for name, value in settings.items() if value is not None}


def chat_reply(text: object, usage: Any) -> ChatReply:
    """What came back, with token counts from a mapping or an object as far as it has them."""
    counts = usage if isinstance(usage, Mapping) else getattr(usage, "__dict__", {})
    return ChatReply(text=str(text), input_tokens=counts.get("input_tokens"), output_tokens=counts.get("output_tokens"))


def model_name(model: Any) -> str:
    """What a model object calls itself, or its class."""
    for attribute in ("model_name", "model"):
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(model).__name__
