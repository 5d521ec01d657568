"""Anthropic's Messages, with thinking blocks that are bound to what stood before them where a profile says so.

It answers the questions of `agentmark.testing.refusing.apis.Api`.
"""

import base64
import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentmark.testing.refusing.apis import Body, Event, Exchange
from agentmark.testing.refusing.conversation import (
    AUTO,
    NONE,
    REQUIRED,
    Call,
    Choice,
    Reply,
    Request,
    Tool,
    Turn,
    Usage,
    arguments_of,
    pieces,
    text_of,
)
from agentmark.testing.refusing.policy import identifier
from agentmark.testing.refusing.profiles import Profile, Refused

# What agents of other APIs ask for, and this one does not know.
_UNKNOWN = ("n", "logprobs", "top_logprobs", "response_format", "max_completion_tokens", "parallel_tool_calls")
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_CHOICES = {"auto": AUTO, "any": REQUIRED, "none": NONE}


def read(body: Body, path: str) -> Request:
    choice = body.get("tool_choice") or {}
    shape = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    thinking = (body.get("thinking") or {}).get("type")
    system = text_of(body.get("system"))
    turns = [Turn("system", system)] if system else []
    for message in body.get("messages") or ():
        turns += _turns(message)
    return Request(
        model=str(body.get("model", "")),
        turns=tuple(turns),
        tools=tuple([Tool(tool.get("name", ""), tool.get("input_schema") or {}) for tool in body.get("tools") or ()]),
        choice=_CHOICES.get(choice.get("type", "auto")) or Choice((str(choice.get("name", "")),), may_answer=False),
        temperature=body.get("temperature"),
        max_tokens=body.get("max_tokens"),
        parallel=not choice.get("disable_parallel_tool_use"),
        schema=shape.get("schema") if shape.get("type") == "json_schema" else None,
        thinking=None if thinking is None else thinking != "disabled",
        is_stream=bool(body.get("stream")),
    )


def _turns(message: Mapping[str, Any]) -> list[Turn]:
    """A message as turns: the results of tools stand in messages of the user, and are turns of their own."""
    content = message.get("content")
    role = str(message.get("role", "user"))
    blocks = _blocks(content)
    results = [
        Turn("tool", text_of(block.get("content")), answers=str(block.get("tool_use_id", "")))
        for block in blocks
        if block.get("type") == "tool_result"
    ]
    calls = [
        Call(str(block.get("id", "")), str(block.get("name", "")), arguments_of(block.get("input")))
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    text = text_of([block for block in blocks if block.get("type") == "text"])
    spoken = [Turn(role, text, tuple(calls))] if text or calls or not results else []
    return results + spoken


def _blocks(content: object) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def fault(body: Body, request: Request, profile: Profile) -> Refused | None:
    if not isinstance(body.get("max_tokens"), int):
        return Refused(400, "max_tokens: Field required")
    if not body.get("messages"):
        return Refused(400, "messages: at least one message is required")
    for name in _UNKNOWN:
        if name in body:
            return Refused(400, f"{name}: Extra inputs are not permitted")
    if profile.prefill is not None and body["messages"][-1].get("role") == "assistant":
        return profile.prefill
    unanswered = _bad_choice(body, request) or _unanswered_calls(body)
    return unanswered or (_bad_thinking(body, request) if profile.binds_thinking else None)


def _bad_choice(body: Body, request: Request) -> Refused | None:
    if body.get("tool_choice") and not request.tools:
        return Refused(400, "tool_choice may only be specified while providing tools.")
    for name in request.choice.names or ():
        if name not in [tool.name for tool in request.tools]:
            return Refused(400, f"Tool '{name}' not found in provided tools")
    return None


def _unanswered_calls(body: Body) -> Refused | None:
    """The results of all calls stand in the next message, and results stand nowhere else."""
    called: list[str] = []
    for position, message in enumerate(body["messages"]):
        blocks = _blocks(message.get("content"))
        answered = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        for place, block in enumerate(blocks):
            if block.get("type") == "tool_result" and block.get("tool_use_id") not in called:
                return Refused(
                    400,
                    f"messages.{position}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks:"
                    f" {block.get('tool_use_id')}. Each `tool_result` block must have a corresponding `tool_use` block"
                    " in the previous message.",
                )
        missing = [call for call in called if call not in answered]
        if missing:
            return _without_results(position - 1, missing)
        called = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
    return _without_results(len(body["messages"]) - 1, called) if called else None


def _without_results(position: int, missing: Sequence[str]) -> Refused:
    return Refused(
        400,
        f"messages.{position}: `tool_use` ids were found without `tool_result` blocks immediately after:"
        f" {', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next"
        " message.",
    )


# --- preserved thinking ----------------------------------------------------------------------------------------------


def _bad_thinking(body: Body, request: Request) -> Refused | None:
    """A thinking block that comes back must be as it was, behind what it stood behind."""
    if request.thinking is False:
        return Refused(400, '"thinking.type.disabled" is not supported for this model.')
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    if binding.get("prefix_mismatch_behavior") == "drop_block":
        return None
    for position, message in enumerate(body["messages"]):
        for place, block in enumerate(_blocks(message.get("content"))):
            if block.get("type") != "thinking":
                continue
            expected = _signature(body, position, str(block.get("thinking", "")))
            where, given = f"messages.{position}.content.{place}", str(block.get("signature", ""))
            if given == expected:
                continue
            if given[:16] != expected[:16]:
                return Refused(400, f"{where}: Invalid `signature` in `thinking` block")
            return Refused(
                400,
                f"{where}: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
                ' Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
            )
    return None


def _signature(body: Body, position: int, thinking: str) -> str:
    """Of the thought itself, and of the system prompt, the tools and the messages before it."""
    prefix = [body.get("system"), body.get("tools"), *body["messages"][:position]]
    thought = hashlib.sha256(thinking.encode("utf-8")).digest()[:12]
    bound = hashlib.sha256(json.dumps(_plain(prefix), sort_keys=True).encode("utf-8")).digest()[:24]
    return base64.b64encode(thought + bound).decode("ascii")


def _plain(value: Any) -> Any:
    """A part of a request without what may change freely: marks for the cache, and text that is written in two ways."""
    if isinstance(value, Mapping):
        members = {name: _plain(member) for name, member in value.items() if name != "cache_control"}
        if isinstance(value.get("content"), str):
            members["content"] = [{"type": "text", "text": value["content"]}]
        return members
    return [_plain(member) for member in value] if isinstance(value, list | tuple) else value


# --- replies ---------------------------------------------------------------------------------------------------------


def in_own_words(refused: Refused) -> Refused:
    if refused.code == "invalid_api_key":
        return replace(refused, message="invalid x-api-key")
    if refused.code == "model_not_found":
        return replace(refused, message="model: {model}")
    if refused.status == 429:
        return replace(refused, message="This request would exceed your organization's rate limit.")
    if refused.status == 503:
        return replace(refused, status=529, message="Overloaded")
    return refused


def error(refused: Refused, profile: Profile) -> object:
    kind = _KINDS.get(refused.status, "api_error")
    said = {"type": kind, "message": refused.message}
    return {"type": "error", "error": said, "request_id": f"req_{identifier(random.Random(refused.message))}"}


def prefix(body: Body) -> list[object]:
    return _plain([*(body.get("tools") or ()), body.get("system"), *(body.get("messages") or ())])  # type: ignore[no-any-return]


def reply(exchange: Exchange) -> object:
    said, usage = exchange.replies[0], exchange.usage
    return {
        **_head(exchange),
        "content": _content(exchange.body, said),
        "stop_reason": _stop(said),
        "stop_sequence": None,
        "usage": {**_input_usage(usage), "output_tokens": usage.output},
    }


def _head(exchange: Exchange) -> dict[str, Any]:
    model = exchange.request.model
    return {"id": f"msg_{identifier(exchange.rng)}", "type": "message", "role": "assistant", "model": model}


def _content(body: Body, said: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if said.thinking:
        signature = _signature(body, len(body["messages"]), said.thinking)
        blocks.append({"type": "thinking", "thinking": said.thinking, "signature": signature})
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    blocks += [
        {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": dict(call.arguments)}
        for call in said.calls
    ]
    return blocks


def _stop(said: Reply) -> str:
    return "max_tokens" if said.is_cut_short else "tool_use" if said.calls else "end_turn"


def _input_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "service_tier": "standard",
    }


def events(exchange: Exchange) -> Iterator[Event]:
    said, usage = exchange.replies[0], exchange.usage
    begun = {
        **_head(exchange),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**_input_usage(usage), "output_tokens": 1},
    }
    yield _event("message_start", message=begun)
    for index, block in enumerate(_content(exchange.body, said)):
        yield from _block_events(index, block)
        if index == 0:
            yield _event("ping")
    delta = {"stop_reason": _stop(said), "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage={**_input_usage(usage), "output_tokens": usage.output})
    yield _event("message_stop")


def _block_events(index: int, block: dict[str, Any]) -> Iterator[Event]:
    kind = block["type"]
    if kind == "thinking":
        begun = {"type": kind, "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif kind == "text":
        begun = {"type": kind, "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    else:
        begun = {**block, "input": {}}
        parts = ["", *pieces(json.dumps(block["input"]))]
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    yield _event("content_block_start", index=index, content_block=begun)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(kind: str, **members: Any) -> Event:
    return kind, {"type": kind, **members}
