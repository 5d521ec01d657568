"""Whether what an upstream sent is one reply, and one that came to something.

What is none calls no tool, and would look like an answer: a record would say that the agent answered, where it was told
of an error, or did something else.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

from agentmark.wire import anthropic_messages, openai_responses
from agentmark.wire.apis import Api
from agentmark.wire.shapes import object_at, objects_at

# With which streams say that they will not come to their end.
_FAILURES = ("error", "response.failed")
# What the Responses API says of a reply that is not there yet, or will not be.
_WITHOUT_REPLY = ("cancelled", "failed", "in_progress", "queued")
# How providers behind a router end a choice that failed on the way.
_BROKEN = "error"


def is_reply(api: Api, said: Mapping[str, Any]) -> bool:
    """Whether a body is one reply of this API."""
    if said.get("error"):
        return False
    if api is anthropic_messages:
        return _are_objects(said.get("content"))
    if api is openai_responses:
        return _are_objects(said.get("output")) and said.get("status") not in _WITHOUT_REPLY
    choices = said.get("choices")
    # One was asked for. Of several, nobody knows which the agent goes by.
    return (
        _are_objects(choices) and len(choices) == 1 and _is_message(choices[0].get("message")) and _is_well(choices[0])
    )


def has_failed(event: Mapping[str, Any]) -> bool:
    """Whether an event of a stream says that something went wrong."""
    response = object_at(event, "response")
    return (
        bool(event.get("error"))
        or event.get("type") in _FAILURES
        or bool(response.get("error"))
        or not all(_is_well(choice) for choice in objects_at(event, "choices"))
    )


def is_of_another_choice(event: Mapping[str, Any]) -> bool:
    """Whether an event belongs to a second reply within the stream."""
    choices = objects_at(event, "choices")
    return len(choices) > 1 or any(choice.get("index") not in (0, None) for choice in choices)


def _is_well(choice: Mapping[str, Any]) -> bool:
    return not choice.get("error") and choice.get("finish_reason") != _BROKEN


def _is_message(said: object) -> bool:
    if not isinstance(said, dict):
        return False
    calls = said.get("tool_calls")
    kinds = ("function", "custom")
    return calls is None or (
        _are_objects(calls) and all(any(isinstance(call.get(kind), dict) for kind in kinds) for call in calls)
    )


def _are_objects(said: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(said, list) and all(isinstance(member, dict) for member in said)
