"""Elicitation: how a model's probability list over candidate behaviors is obtained. Each way is one small module."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmark.elicit.auto import elicitor_for
    from agentmark.elicit.chat import Chat, ChatReply, ChatRequest, FunctionChat
    from agentmark.elicit.decisions import Decisions
    from agentmark.elicit.endpoint import Endpoint
    from agentmark.elicit.http_chat import HttpChat
    from agentmark.elicit.labels import Labels
    from agentmark.elicit.local import LocalModel
    from agentmark.elicit.logits import Logits
    from agentmark.elicit.proposals import Proposals
    from agentmark.elicit.sampled import Sampled
    from agentmark.elicit.situation import ANSWER, Candidate, Elicitation, Elicitor, Situation, ToolCall
    from agentmark.elicit.transformers import TransformersModel
    from agentmark.elicit.verbalised import Verbalised

# Imported when first used: who brings a list of its own needs no HTTP client.
_HOMES = {
    "ANSWER": "situation",
    "Candidate": "situation",
    "Chat": "chat",
    "ChatReply": "chat",
    "ChatRequest": "chat",
    "Decisions": "decisions",
    "Elicitation": "situation",
    "Elicitor": "situation",
    "Endpoint": "endpoint",
    "FunctionChat": "chat",
    "HttpChat": "http_chat",
    "Labels": "labels",
    "LocalModel": "local",
    "Logits": "logits",
    "Proposals": "proposals",
    "Sampled": "sampled",
    "Situation": "situation",
    "ToolCall": "situation",
    "TransformersModel": "transformers",
    "Verbalised": "verbalised",
    "elicitor_for": "auto",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'agentmark.elicit' has no attribute {name!r}")
    return getattr(import_module(f"agentmark.elicit.{_HOMES[name]}"), name)


__all__ = [
    "ANSWER",
    "Candidate",
    "Chat",
    "ChatReply",
    "ChatRequest",
    "Decisions",
    "Elicitation",
    "Elicitor",
    "Endpoint",
    "FunctionChat",
    "HttpChat",
    "Labels",
    "LocalModel",
    "Logits",
    "Proposals",
    "Sampled",
    "Situation",
    "ToolCall",
    "TransformersModel",
    "Verbalised",
    "elicitor_for",
]
