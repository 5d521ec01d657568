"""Side calls for a list: the agent's own request with our question at its end, in the words of its API.

All that stands before the question is as the agent sends it (tools, thinking, system prompt), so that the provider's
cache holds and nothing that models want back is missing. The model is told not to call a tool.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agentmark.elicit.chat import ChatRequest
from agentmark.elicit.conversation import chat_messages, settled, texts_only
from agentmark.elicit.http_chat import response_format
from agentmark.elicit.situation import Message
from agentmark.wire import anthropic_messages, openai_chat
from agentmark.wire.apis import Api

Body = dict[str, Any]

# What a side call does not take over from the agent's request.
_NOT_ASIDE = (
    "background",
    "include",
    "max_completion_tokens",
    "max_output_tokens",
    "n",
    "parallel_tool_calls",
    "response_format",
    "seed",
    "store",
    "stop",
    "stop_sequences",
    "stream",
    "stream_options",
    "text",
    "tool_choice",
)
# The least that Anthropic's models are given to answer with, where a question names no limit.
_MAX_TOKENS = 1024


def side_body(api: Api, body: Mapping[str, Any], own: Sequence[Message], request: ChatRequest) -> Body:
    """The body of a side call."""
    asked = {name: value for name, value in body.items() if name not in _NOT_ASIDE}
    ours = _ours(own, request.messages)
    if request.temperature is not None:
        asked["temperature"] = request.temperature
    if not request.tools:
        asked.pop("tools", None)
    if api is openai_chat:
        return _chat(asked, body, ours, request)
    if api is anthropic_messages:
        return _messages(asked, body, ours, request)
    return _responses(asked, body, ours, request)


def _ours(own: Sequence[Message], messages: Sequence[Message]) -> Sequence[Message] | None:
    """What stands after the agent's own messages; None if those are not what it begins with."""
    known = texts_only(settled(own))
    return messages[len(known) :] if list(messages[: len(known)]) == known else None


def _chat(asked: Body, body: Mapping[str, Any], ours: Sequence[Message] | None, request: ChatRequest) -> Body:
    if ours is None:
        asked["messages"] = chat_messages(settled(request.messages))
    else:
        asked["messages"] = [*body["messages"], *chat_messages(ours)]
    if request.tools:
        asked["tool_choice"] = "none"
    if request.schema is not None:
        asked["response_format"] = response_format(request.schema)
    if request.max_tokens is not None:
        limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        asked[limit] = request.max_tokens
    return asked


def _messages(asked: Body, body: Mapping[str, Any], ours: Sequence[Message] | None, request: ChatRequest) -> Body:
    said = list(body.get("messages") or [])
    if ours is None:
        said, ours = [], [message for message in request.messages if message.get("role") != "system"]
    asked["messages"] = [*said, *[_plain(message) for message in ours if message.get("role") != "system"]]
    told = [str(message.get("content") or "") for message in ours if message.get("role") == "system"]
    if told:
        # A system prompt stands apart there, and changing it would void the cache: what we say is the user's word.
        asked["messages"].append({"role": "user", "content": "\n\n".join(told)})
    if request.tools:
        asked["tool_choice"] = {"type": "none"}
    if "thinking" in asked:
        # What it thinks counts towards the limit that the agent has set for both.
        asked["max_tokens"] = body.get("max_tokens") or _MAX_TOKENS
    else:
        asked["max_tokens"] = request.max_tokens or _MAX_TOKENS
    return asked


def _responses(asked: Body, body: Mapping[str, Any], ours: Sequence[Message] | None, request: ChatRequest) -> Body:
    given = body.get("input")
    before = [{"role": "user", "content": given}] if isinstance(given, str) else list(given or [])
    if ours is None:
        before, ours = [], request.messages
        asked.pop("instructions", None)
    asked["input"] = [*before, *[_plain(message) for message in ours]]
    asked["store"] = False
    if request.tools:
        asked["tool_choice"] = "none"
    if request.schema is not None:
        asked["text"] = {
            "format": {"type": "json_schema", "name": "reply", "strict": True, "schema": dict(request.schema)}
        }
    if request.max_tokens is not None and "reasoning" not in body:
        asked["max_output_tokens"] = request.max_tokens
    return asked


def _plain(message: Message) -> Body:
    return {"role": message.get("role", "user"), "content": message.get("content") or ""}
