"""Gemini's `generateContent` and `streamGenerateContent`, with thought signatures on its calls where it thinks.

It answers the questions of `agentmark.testing.refusing.apis.Api`.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentmark.testing.refusing.apis import Body, Event, Exchange
from agentmark.testing.refusing.conversation import (
    AUTO,
    NONE,
    Call,
    Choice,
    Reply,
    Request,
    TokenInfo,
    Tool,
    Turn,
    arguments_of,
    pieces,
)
from agentmark.testing.refusing.policy import identifier
from agentmark.testing.refusing.profiles import Profile, Refused

_MODEL = re.compile(r"models/([^:/?]+)")
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def read(body: Body, path: str) -> Request:
    named = _MODEL.search(path)
    settings = _at(body, "generationConfig") or {}
    schema = _at(settings, "responseJsonSchema") or _at(settings, "responseSchema")
    wants_json = _at(settings, "responseMimeType") == "application/json"
    logprobs = (_at(settings, "logprobs") or 0) if _at(settings, "responseLogprobs") else None
    system = _text(_at(body, "systemInstruction") or {})
    turns = [Turn("system", system)] if system else []
    for content in body.get("contents") or ():
        turns += _turns(content)
    return Request(
        model=named[1] if named else "",
        turns=tuple(turns),
        tools=tuple(_tools(body)),
        choice=_choice(body),
        count=_at(settings, "candidateCount") or 1,
        temperature=settings.get("temperature"),
        max_tokens=_at(settings, "maxOutputTokens"),
        schema=schema if isinstance(schema, Mapping) else None,
        json_object=wants_json and schema is None,
        top_logprobs=logprobs,
        is_stream="streamGenerateContent" in path,
    )


def _at(value: Mapping[str, Any], name: str) -> Any:
    """A member by its name in either case: this API takes both."""
    snake = re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), name)
    return value.get(name, value.get(snake))


def _tools(body: Body) -> list[Tool]:
    declared = [tool for group in body.get("tools") or () for tool in _at(group, "functionDeclarations") or ()]
    return [
        Tool(str(tool.get("name", "")), _at(tool, "parametersJsonSchema") or tool.get("parameters") or {})
        for tool in declared
    ]


def _calling(body: Body) -> Mapping[str, Any]:
    return _at(_at(body, "toolConfig") or {}, "functionCallingConfig") or {}


def _choice(body: Body) -> Choice:
    calling = _calling(body)
    names = _at(calling, "allowedFunctionNames")
    mode = str(calling.get("mode", "AUTO")).upper()
    if mode == "NONE":
        return NONE
    if mode == "ANY":
        return Choice(tuple(names) if names else None, may_answer=False)
    return Choice(tuple(names)) if names else AUTO


def _turns(content: Mapping[str, Any]) -> list[Turn]:
    parts = content.get("parts") or ()
    results = [
        Turn("tool", json.dumps(answered.get("response"), ensure_ascii=False), answers=str(answered.get("id") or ""))
        for answered in [_at(part, "functionResponse") for part in parts]
        if answered
    ]
    calls = [
        Call(str(made.get("id") or ""), str(made.get("name", "")), arguments_of(made.get("args") or {}))
        for made in [_at(part, "functionCall") for part in parts]
        if made
    ]
    text = _text(content)
    role = "assistant" if content.get("role") == "model" else "user"
    return results + ([Turn(role, text, tuple(calls))] if text or calls or not results else [])


def _text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts") or ()
    return "\n".join([part["text"] for part in parts if part.get("text") and not part.get("thought")])


def fault(body: Body, request: Request, profile: Profile) -> Refused | None:
    if not body.get("contents"):
        return Refused(400, "* GenerateContentRequest.contents: contents is not specified")
    calling = _calling(body)
    if _at(calling, "allowedFunctionNames") and str(calling.get("mode", "AUTO")).upper() not in ("ANY", "VALIDATED"):
        return Refused(400, "Please set allowed_function_names only when function calling mode is ANY.")
    for name in request.choice.names or ():
        if name not in [tool.name for tool in request.tools]:
            return Refused(400, f"Allowed function name '{name}' is not among the function declarations.")
    if profile.wants_thinking_back is not None and not _is_signed(body):
        return profile.wants_thinking_back
    return _uneven_calls(body)


def _uneven_calls(body: Body) -> Refused | None:
    """As many responses as calls, right after them."""
    waiting = 0
    for content in body["contents"]:
        parts = content.get("parts") or ()
        answered = len([part for part in parts if _at(part, "functionResponse")])
        if answered != waiting:
            break
        waiting = len([part for part in parts if _at(part, "functionCall")])
    else:
        if not waiting:
            return None
    return Refused(
        400,
        "Please ensure that the number of function response parts is equal to the number of function call parts of the"
        " function call turn.",
    )


def _is_signed(body: Body) -> bool:
    """Whether the first call of every turn that calls has its signature; parallel calls share the first one's."""
    for content in body["contents"]:
        calling = [part for part in content.get("parts") or () if _at(part, "functionCall")]
        if calling and not _at(calling[0], "thoughtSignature"):
            return False
    return True


_OWN_WORDS = {
    401: "API key not valid. Please pass a valid API key.",
    404: "models/{model} is not found for API version v1beta, or is not supported for generateContent.",
    429: "You exceeded your current quota, please check your plan and billing details.",
    503: "The model is overloaded. Please try again later.",
}


def in_own_words(refused: Refused) -> Refused:
    if refused.status in _OWN_WORDS:
        # A wrong key is an invalid argument here.
        status = 400 if refused.status == 401 else refused.status
        return replace(refused, status=status, message=_OWN_WORDS[refused.status])
    if refused.param == "n":
        return replace(refused, message="Multiple candidates is not enabled for this model")
    if "logprobs" in refused.message:
        return replace(refused, status=400, message="Logprobs is not enabled for models/{model}")
    return refused


def error(refused: Refused, profile: Profile) -> object:
    status = _STATUS.get(refused.status, "UNKNOWN")
    return {"error": {"code": refused.status, "message": refused.message, "status": status}}


def prefix(body: Body) -> list[object]:
    return [_at(body, "systemInstruction"), *(body.get("tools") or ()), *(body.get("contents") or ())]


def reply(exchange: Exchange) -> object:
    candidates = []
    for index, said in enumerate(exchange.replies):
        parts = [{"text": said.text}] if said.text or not said.calls else []
        candidate = _candidate(index, [*parts, *_call_parts(said)], "MAX_TOKENS" if said.is_cut_short else "STOP")
        if said.tokens is not None:
            candidate["avgLogprobs"] = sum([info.logprob for info in said.tokens]) / max(1, len(said.tokens))
            candidate["logprobsResult"] = _logprobs(said.tokens)
        candidates.append(candidate)
    return {**_head(exchange), "candidates": candidates}


def events(exchange: Exchange) -> Iterator[Event]:
    head = _head(exchange)
    for index, said in enumerate(exchange.replies):
        steps: list[list[dict[str, Any]]] = [[{"text": piece}] for piece in pieces(said.text)]
        steps += [[part] for part in _call_parts(said)]
        steps = steps or [[{"text": ""}]]
        for step, parts in enumerate(steps):
            finish = ("MAX_TOKENS" if said.is_cut_short else "STOP") if step == len(steps) - 1 else None
            yield None, {**head, "candidates": [_candidate(index, parts, finish)]}


def _candidate(index: int, parts: list[dict[str, Any]], finish: str | None) -> dict[str, Any]:
    content = {"role": "model", "parts": parts}
    return {"content": content, **({"finishReason": finish} if finish else {}), "index": index}


def _call_parts(said: Reply) -> list[dict[str, Any]]:
    parts = []
    for position, call in enumerate(said.calls):
        part: dict[str, Any] = {"functionCall": {"id": call.id, "name": call.name, "args": dict(call.arguments)}}
        if said.thinking and position == 0:
            part["thoughtSignature"] = base64.b64encode(said.thinking.encode("utf-8")).decode("ascii")
        parts.append(part)
    return parts


def _logprobs(infos: Sequence[TokenInfo]) -> dict[str, Any]:
    top = [{"candidates": [_token(*other) for other in info.top]} for info in infos]
    return {"topCandidates": top, "chosenCandidates": [_token(info.token, info.logprob) for info in infos]}


def _token(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "tokenId": sum(token.encode("utf-8")), "logProbability": logprob}


def _head(exchange: Exchange) -> dict[str, Any]:
    usage = exchange.usage
    counts = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - usage.thinking,
        "totalTokenCount": usage.total,
        "cachedContentTokenCount": usage.cached,
        "thoughtsTokenCount": usage.thinking,
    }
    return {"usageMetadata": counts, "modelVersion": exchange.request.model, "responseId": identifier(exchange.rng, 22)}
