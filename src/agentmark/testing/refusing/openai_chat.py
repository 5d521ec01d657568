"""OpenAI's chat completions, and the many who speak them.

It answers the questions of `agentmark.testing.refusing.apis.Api`.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
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
    TokenInfo,
    Tool,
    Turn,
    Usage,
    arguments_of,
    pieces,
    text_of,
)
from agentmark.testing.refusing.policy import identifier
from agentmark.testing.refusing.profiles import Profile, Refused

_GOOGLE_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
                  429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}  # fmt: skip


def read(body: Body, path: str) -> Request:
    shape = body.get("response_format") or {}
    schema = (shape.get("json_schema") or {}).get("schema") if shape.get("type") == "json_schema" else None
    thinking = (body.get("thinking") or {}).get("type")
    return Request(
        model=str(body.get("model", "")),
        turns=tuple([_turn(message) for message in body.get("messages") or ()]),
        tools=tuple([_tool(tool) for tool in body.get("tools") or ()]),
        choice=read_choice(body.get("tool_choice")),
        count=body.get("n") or 1,
        temperature=body.get("temperature"),
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
        parallel=body.get("parallel_tool_calls") is not False,
        schema=schema,
        json_object=shape.get("type") == "json_object",
        top_logprobs=(body.get("top_logprobs") or 0) if body.get("logprobs") else None,
        thinking=None if thinking is None else thinking != "disabled",
        is_stream=bool(body.get("stream")),
    )


def read_choice(choice: object) -> Choice:
    """`tool_choice` of chat completions and of Responses, which differ in where the name stands."""
    if isinstance(choice, str):
        return {"none": NONE, "required": REQUIRED}.get(choice, AUTO)
    if not isinstance(choice, Mapping):
        return AUTO
    kind = str(choice.get("type"))
    if kind == "allowed_tools":
        inner = choice.get("allowed_tools") or choice
        names = [_named(tool) for tool in inner.get("tools") or ()]
        return Choice(tuple(names), may_answer=inner.get("mode") != "required")
    return Choice((_named(choice),), may_answer=False)


def _named(tool: Mapping[str, Any]) -> str:
    described = tool.get(str(tool.get("type"))) or tool
    return str(described.get("name", ""))


def _tool(tool: Mapping[str, Any]) -> Tool:
    described = tool.get(str(tool.get("type"))) or tool
    return Tool(_named(tool), described.get("parameters") or {})


def _turn(message: Mapping[str, Any]) -> Turn:
    role = str(message.get("role", "user"))
    calls = [
        Call(str(call.get("id", "")), _named(call), arguments_of((call.get("function") or {}).get("arguments")))
        for call in message.get("tool_calls") or ()
    ]
    return Turn(
        "system" if role == "developer" else role,
        text_of(message.get("content")),
        tuple(calls),
        str(message.get("tool_call_id", "")),
    )


def fault(body: Body, request: Request, profile: Profile) -> Refused | None:
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        return Refused(
            400, "Missing required parameter: 'messages'.", param="messages", code="missing_required_parameter"
        )
    if "max_tokens" in body and profile.max_tokens is not None:
        return profile.max_tokens
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) is not None and not request.tools:
            return Refused(
                400, f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.", param=name
            )
    return (
        _unknown_choice(request)
        or _unanswered_calls(request)
        or _bad_logprobs(body, request, profile)
        or _bad_format(body, request)
        or _dropped_thinking(body, request, profile)
    )


def _unknown_choice(request: Request) -> Refused | None:
    for name in request.choice.names or ():
        if name not in [tool.name for tool in request.tools]:
            return Refused(400, f"Tool choice '{name}' not found in 'tools' parameter", param="tool_choice")
    return None


def _unanswered_calls(request: Request) -> Refused | None:
    """Every call is answered before anybody speaks again, and nothing is answered that was not called."""
    waiting: list[str] = []
    for position, turn in enumerate(request.turns):
        if turn.role == "tool":
            if turn.answers not in waiting:
                message = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                return Refused(400, f"Invalid parameter: {message}", param=f"messages.[{position}].role")
            waiting.remove(turn.answers)
            continue
        if waiting:
            break
        waiting = [call.id for call in turn.calls]
    if not waiting:
        return None
    message = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
        f" The following tool_call_ids did not have response messages: {', '.join(waiting)}"
    )
    return Refused(400, message, param="messages")


def _bad_logprobs(body: Body, request: Request, profile: Profile) -> Refused | None:
    wanted = body.get("top_logprobs")
    if wanted is not None and not body.get("logprobs"):
        message = "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled."
        return Refused(400, message, param="top_logprobs")
    if not body.get("logprobs") or profile.logprobs is not None:
        return None
    if profile.logprobs_want_no_effort and body.get("reasoning_effort") != "none":
        message = (
            "Unsupported parameter: 'logprobs' is only supported with this model when 'reasoning_effort' is 'none'."
        )
        return Refused(400, message, param="logprobs", code="unsupported_parameter")
    if not 0 <= (wanted or 0) <= profile.max_top_logprobs:
        message = f"Invalid value for 'top_logprobs': must be less than or equal to {profile.max_top_logprobs}."
        return Refused(400, message, param="top_logprobs", code="integer_above_max_value")
    limit = request.max_tokens
    if limit is not None and limit < profile.min_logprob_tokens:
        message = (
            "Invalid 'max_completion_tokens': integer below minimum value. Expected a value >="
            f" {profile.min_logprob_tokens}, but got {limit} instead."
        )
        return Refused(400, message, param="max_completion_tokens", code="integer_below_min_value")
    return None


def _bad_format(body: Body, request: Request) -> Refused | None:
    if request.json_object and not any("json" in turn.text.lower() for turn in request.turns):
        message = (
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        )
        return Refused(400, message, param="messages")
    described = (body.get("response_format") or {}).get("json_schema") or {}
    if (
        request.schema is not None
        and described.get("strict")
        and request.schema.get("additionalProperties") is not False
    ):
        message = (
            f"Invalid schema for response_format '{described.get('name')}': In context=(), 'additionalProperties' is"
            " required to be supplied and to be false."
        )
        return Refused(400, message, param="response_format")
    return None


def _dropped_thinking(body: Body, request: Request, profile: Profile) -> Refused | None:
    if profile.wants_thinking_back is None or request.thinking is False or profile.lists_errors:
        return None
    for message in body["messages"]:
        if message.get("tool_calls") and not message.get("reasoning_content"):
            return profile.wants_thinking_back
    return None


def in_own_words(refused: Refused) -> Refused:
    """The profiles use OpenAI's words."""
    return refused


def error(refused: Refused, profile: Profile) -> object:
    if profile.lists_errors:
        status = _GOOGLE_STATUS.get(refused.status, "UNKNOWN")
        return [{"error": {"code": refused.status, "message": refused.message, "status": status}}]
    return {
        "error": {
            "message": refused.message,
            "type": refused.kind,
            "param": refused.param,
            "code": refused.code,
        }
    }


def prefix(body: Body) -> list[object]:
    return [*(body.get("tools") or ()), *(body.get("messages") or ())]


def _head(exchange: Exchange, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{identifier(exchange.rng, 29)}",
        "object": kind,
        "created": int(time.time()),
        "model": exchange.request.model,
        "service_tier": "default",
        "system_fingerprint": "fp_agentmark",
    }


def reply(exchange: Exchange) -> object:
    choices = []
    for index, said in enumerate(exchange.replies):
        message: dict[str, Any] = {
            "role": "assistant",
            "content": said.text or (None if said.calls else ""),
            "refusal": None,
            "annotations": [],
        }
        if said.thinking:
            message["reasoning_content"] = said.thinking
        if said.calls:
            message["tool_calls"] = [_call(call) for call in said.calls]
        logprobs = None if said.tokens is None else {"content": _tokens(said.tokens), "refusal": None}
        choices.append({"index": index, "message": message, "logprobs": logprobs, "finish_reason": _finish(said)})
    return {**_head(exchange, "chat.completion"), "choices": choices, "usage": _usage(exchange.usage)}


def events(exchange: Exchange) -> Iterator[Event]:
    wants_usage = bool((exchange.body.get("stream_options") or {}).get("include_usage"))
    head = _head(exchange, "chat.completion.chunk")
    if wants_usage:
        head["usage"] = None
    streams = [_deltas(said) for said in exchange.replies]
    # The choices come interleaved, as they are written side by side.
    while any(streams):
        for index, deltas in enumerate(streams):
            if deltas:
                delta, logprobs, finish = deltas.pop(0)
                choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
                yield None, {**head, "choices": [choice]}
    if wants_usage:
        yield None, {**head, "choices": [], "usage": _usage(exchange.usage)}
    yield None, "[DONE]"


def _deltas(said: Reply) -> list[tuple[dict[str, Any], dict[str, Any] | None, str | None]]:
    found: list[tuple[dict[str, Any], dict[str, Any] | None, str | None]] = []
    found.append(({"role": "assistant", "content": None if said.calls else "", "refusal": None}, None, None))
    found += [({"reasoning_content": piece}, None, None) for piece in pieces(said.thinking)]
    if said.tokens is None:
        found += [({"content": piece}, None, None) for piece in pieces(said.text)]
    else:
        for info in said.tokens:
            found.append(({"content": info.token}, {"content": _tokens([info]), "refusal": None}, None))
    for index, call in enumerate(said.calls):
        begun = {**_call(call), "index": index}
        begun["function"] = {"name": call.name, "arguments": ""}
        found.append(({"tool_calls": [begun]}, None, None))
        for piece in pieces(call.arguments_json):
            found.append(({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, None, None))
    found.append(({}, None, _finish(said)))
    return found


def _call(call: Call) -> dict[str, Any]:
    return {
        "id": f"call_{call.id}",
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments_json},
    }


def _finish(said: Reply) -> str:
    return "length" if said.is_cut_short else "tool_calls" if said.calls else "stop"


def _tokens(infos: Sequence[TokenInfo]) -> list[dict[str, Any]]:
    return [
        {**token_entry(info.token, info.logprob), "top_logprobs": [token_entry(*other) for other in info.top]}
        for info in infos
    ]


def token_entry(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode("utf-8"))}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.thinking,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
