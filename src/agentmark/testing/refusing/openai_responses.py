"""OpenAI's Responses: a conversation, and a reply, is a list of items.

It answers the questions of `agentmark.testing.refusing.apis.Api`.
"""

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

from agentmark.testing.refusing.apis import Body, Event, Exchange
from agentmark.testing.refusing.conversation import (
    Call,
    Reply,
    Request,
    Tool,
    Turn,
    Usage,
    arguments_of,
    pieces,
    text_of,
)
from agentmark.testing.refusing.openai_chat import error, in_own_words, read_choice, token_entry
from agentmark.testing.refusing.policy import identifier
from agentmark.testing.refusing.profiles import Profile, Refused

__all__ = ["error", "events", "fault", "in_own_words", "prefix", "read", "reply"]

MIN_OUTPUT_TOKENS = 16
_UNKNOWN = ("n", "messages", "logprobs", "response_format", "max_tokens", "max_completion_tokens")
_LOGPROBS = "message.output_text.logprobs"


def read(body: Body, path: str) -> Request:
    shape = (body.get("text") or {}).get("format") or {}
    has_logprobs = _LOGPROBS in (body.get("include") or ()) or body.get("top_logprobs")
    return Request(
        model=str(body.get("model", "")),
        turns=read_items(body),
        tools=tuple([Tool(tool["name"], tool.get("parameters") or {}) for tool in _own_tools(body)]),
        choice=read_choice(body.get("tool_choice")),
        temperature=body.get("temperature"),
        max_tokens=body.get("max_output_tokens"),
        parallel=body.get("parallel_tool_calls") is not False,
        schema=shape.get("schema") if shape.get("type") == "json_schema" else None,
        json_object=shape.get("type") == "json_object",
        top_logprobs=(body.get("top_logprobs") or 0) if has_logprobs else None,
        is_stream=bool(body.get("stream")),
    )


def _own_tools(body: Body) -> list[Mapping[str, Any]]:
    return [tool for tool in body.get("tools") or () if tool.get("type") in ("function", "custom")]


def read_items(body: Body) -> tuple[Turn, ...]:
    """The turns of `instructions` and `input`, which may be plain text."""
    turns = [Turn("system", body["instructions"])] if body.get("instructions") else []
    given = body.get("input")
    if isinstance(given, str):
        return (*turns, Turn("user", given))
    for item in given or ():
        turns += _turns(item)
    return tuple(turns)


def _turns(item: Mapping[str, Any]) -> list[Turn]:
    kind = item.get("type", "message")
    if kind == "message":
        role = str(item.get("role", "user"))
        return [Turn("system" if role == "developer" else role, text_of(item.get("content")))]
    call_id = str(item.get("call_id", ""))
    if kind == "function_call":
        call = Call(call_id, str(item.get("name", "")), arguments_of(item.get("arguments")))
        return [Turn("assistant", calls=(call,))]
    if kind == "function_call_output":
        return [Turn("tool", text_of(item.get("output")), answers=call_id)]
    return []


def fault(body: Body, request: Request, profile: Profile) -> Refused | None:
    if not body.get("input"):
        return Refused(400, "Missing required parameter: 'input'.", param="input", code="missing_required_parameter")
    for name in _UNKNOWN:
        if name in body:
            return Refused(400, f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    limit = body.get("max_output_tokens")
    if limit is not None and limit < MIN_OUTPUT_TOKENS:
        return Refused(
            400,
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got"
            f" {limit} instead.",
            param="max_output_tokens",
            code="integer_below_min_value",
        )
    for name in request.choice.names or ():
        if name not in [tool.name for tool in request.tools]:
            return Refused(400, f"Tool choice '{name}' not found in 'tools' parameter.", param="tool_choice")
    return _unanswered_calls(request)


def _unanswered_calls(request: Request) -> Refused | None:
    called = [call.id for turn in request.turns for call in turn.calls]
    answered = [turn.answers for turn in request.turns if turn.role == "tool"]
    for call_id in called:
        if call_id not in answered:
            return Refused(400, f"No tool output found for function call {call_id}.", param="input")
    for call_id in answered:
        if call_id not in called:
            return Refused(400, f"No tool call found for function call output with call_id {call_id}.", param="input")
    return None


def prefix(body: Body) -> list[object]:
    given = body.get("input")
    return [*(body.get("tools") or ()), body.get("instructions"), *([given] if isinstance(given, str) else given or ())]


def reply(exchange: Exchange) -> object:
    said = exchange.replies[0]
    return {**_head(exchange), **_end(said, _items(said, exchange.rng), exchange.usage)}


def _head(exchange: Exchange) -> dict[str, Any]:
    body, request = exchange.body, exchange.request
    return {
        "id": f"resp_{identifier(exchange.rng, 48)}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": request.model,
        "output": [],
        "parallel_tool_calls": request.parallel,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None},
        "store": body.get("store", True),
        "temperature": 1.0 if request.temperature is None else request.temperature,
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
    }


def _end(said: Reply, items: list[dict[str, Any]], usage: Usage) -> dict[str, Any]:
    return {
        "status": "incomplete" if said.is_cut_short else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if said.is_cut_short else None,
        "output": items,
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.thinking},
            "total_tokens": usage.total,
        },
    }


def _items(said: Reply, rng: random.Random) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if said.thinking:
        summary = [{"type": "summary_text", "text": said.thinking}]
        items.append({"type": "reasoning", "id": f"rs_{identifier(rng)}", "summary": summary})
    if said.text or not said.calls:
        part: dict[str, Any] = {"type": "output_text", "text": said.text, "annotations": []}
        part["logprobs"] = [
            {**token_entry(info.token, info.logprob), "top_logprobs": [token_entry(*other) for other in info.top]}
            for info in said.tokens or ()
        ]
        status = "incomplete" if said.is_cut_short else "completed"
        message = {"type": "message", "id": f"msg_{identifier(rng)}", "status": status, "role": "assistant"}
        items.append({**message, "content": [part]})
    items += [
        {
            "type": "function_call",
            "id": f"fc_{identifier(rng)}",
            "call_id": f"call_{call.id}",
            "name": call.name,
            "arguments": call.arguments_json,
            "status": "completed",
        }
        for call in said.calls
    ]
    return items


def events(exchange: Exchange) -> Iterator[Event]:
    for number, (kind, members) in enumerate(_unnumbered(exchange)):
        yield kind, {"type": kind, "sequence_number": number, **members}


def _unnumbered(exchange: Exchange) -> Iterator[tuple[str, dict[str, Any]]]:
    said = exchange.replies[0]
    head = _head(exchange)
    items = _items(said, exchange.rng)
    yield "response.created", {"response": head}
    yield "response.in_progress", {"response": head}
    for index, item in enumerate(items):
        yield from _item_events(index, item)
    ended = "response.incomplete" if said.is_cut_short else "response.completed"
    yield ended, {"response": {**head, **_end(said, items, exchange.usage)}}


def _item_events(index: int, item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    place = {"item_id": item["id"], "output_index": index}
    if item["type"] == "message":
        part = item["content"][0]
        where = {**place, "content_index": 0}
        yield (
            "response.output_item.added",
            {
                "output_index": index,
                "item": {**item, "status": "in_progress", "content": []},
            },
        )
        yield "response.content_part.added", {**where, "part": {**part, "text": "", "logprobs": []}}
        if part["logprobs"]:
            for entry in part["logprobs"]:
                yield "response.output_text.delta", {**where, "delta": entry["token"], "logprobs": [entry]}
        else:
            for piece in pieces(part["text"]):
                yield "response.output_text.delta", {**where, "delta": piece, "logprobs": []}
        yield "response.output_text.done", {**where, "text": part["text"], "logprobs": part["logprobs"]}
        yield "response.content_part.done", {**where, "part": part}
    elif item["type"] == "function_call":
        begun = {**item, "status": "in_progress", "arguments": ""}
        yield "response.output_item.added", {"output_index": index, "item": begun}
        for piece in pieces(item["arguments"]):
            yield "response.function_call_arguments.delta", {**place, "delta": piece}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield "response.function_call_arguments.done", {**place, **done}
    else:
        where = {**place, "summary_index": 0}
        text = item["summary"][0]["text"]
        yield "response.output_item.added", {"output_index": index, "item": {**item, "summary": []}}
        yield "response.reasoning_summary_part.added", {**where, "part": {"type": "summary_text", "text": ""}}
        for piece in pieces(text):
            yield "response.reasoning_summary_text.delta", {**where, "delta": piece}
        yield "response.reasoning_summary_text.done", {**where, "text": text}
        yield "response.reasoning_summary_part.done", {**where, "part": item["summary"][0]}
    yield "response.output_item.done", {"output_index": index, "item": item}
