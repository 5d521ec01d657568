"""Any OpenAI-compatible provider, over the standard library's HTTP client: no SDK is needed to ask for a list."""

import asyncio
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from agentmark.elicit.chat import ChatReply, ChatRequest
from agentmark.elicit.errors import UnsupportedError, UpstreamError
from agentmark.elicit.situation import whole
from agentmark.errors import SettingError

MAX_REPLY_BYTES = 16 << 20
_BAD_PARAMETER = (400, 422)
_OPTIONAL = ("response_format", "max_completion_tokens", "max_tokens", "temperature", "top_logprobs", "logprobs")
# A quoted name beside a word of refusal: text that merely speaks of temperatures is not one.
_NOT_TAKEN = (
    r"(?:unsupported|not support|unrecognized|unknown|not permitted|not allowed)[^.]*['\"`]{name}['\"`]"
    r"|['\"`]{name}['\"`][^.]*(?:unsupported|not supported|not permitted|not allowed|not compatible)"
)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the API key to another host."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is: `base_url` as its SDK takes it, for instance http://127.0.0.1:8080/v1."""

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    # Further members of every request, for instance {"cache_prompt": False} for llama.cpp.
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")):
            raise SettingError("base_url", "does not begin with http:// or https://")
        if "@" in urlsplit(self.base_url).netloc:
            raise SettingError("base_url", "holds a user or a password; give the key as api_key")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise SettingError("api_key", "has characters that no header can carry, such as a line's end")

    def post(self, route: str, body: Mapping[str, Any], *, method: str) -> dict[str, Any]:
        """Send one request. `method` is the elicitor's name, for errors."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.api_key is not None:
            headers["Authorization"] = f"Bearer {self.api_key}"
        data = json.dumps({"model": self.model, **body, **self.extra}).encode("utf-8")
        url = f"{self.base_url.rstrip('/')}/{route}"
        request = urllib.request.Request(url, data=data, headers=headers, method="POST")
        try:
            with _OPENER.open(request, timeout=self.timeout_s) as response:
                content = response.read(MAX_REPLY_BYTES + 1)
        except urllib.error.HTTPError as error:
            with error:
                message, parameter = _said(error)
                raise UpstreamError(method, message, error.code, parameter=parameter) from None
        except (OSError, HTTPException) as error:
            raise UpstreamError(method, f"{url}: {getattr(error, 'reason', None) or error!r}") from None
        if len(content) > MAX_REPLY_BYTES:
            raise UpstreamError(method, f"{url}: the reply is longer than {MAX_REPLY_BYTES} bytes")
        try:
            parsed = json.loads(content)
        except (ValueError, RecursionError):
            raise UpstreamError(method, f"{url}: the reply is not JSON") from None
        if not isinstance(parsed, dict):
            raise UpstreamError(method, f"{url}: the reply is not a JSON object")
        return parsed


def _said(error: urllib.error.HTTPError) -> tuple[str, str | None]:
    """What the provider says of its error, as far as one line goes, and which parameter it names as the cause."""
    try:
        body = error.read(1 << 16)
    except (OSError, HTTPException):
        body = b""
    parameter = None
    try:
        content = json.loads(body)
        said = content.get("error", content)
        text = said.get("message", said) if isinstance(said, dict) else said
        named = said.get("param") if isinstance(said, dict) else None
        parameter = named if isinstance(named, str) else None
    except (ValueError, AttributeError, RecursionError):
        text = body.decode("utf-8", "replace")
    return " ".join(str(text).split())[:300] or str(error.reason), parameter


class HttpChat:
    """Chat completions. What a model refuses among optional parameters is left out from then on."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._refused: frozenset[str] = frozenset()

    @property
    def model(self) -> str:
        return self.endpoint.model

    def complete(self, request: ChatRequest) -> ChatReply:
        while True:
            body = self._body(request)
            try:
                return read_completion(self.endpoint.post("chat/completions", body, method="chat"))
            except UpstreamError as error:
                self._learn(error, body)

    async def acomplete(self, request: ChatRequest) -> ChatReply:
        return await asyncio.to_thread(self.complete, request)

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        if request.top_logprobs and self._refused & {"logprobs", "temperature"}:
            raise self._no_logprobs()
        body: dict[str, Any] = {"messages": list(request.messages)}
        if request.schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "weights", "strict": True, "schema": request.schema},
            }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            # The newer name is for those who refuse the older.
            name = "max_completion_tokens" if "max_tokens" in self._refused else "max_tokens"
            body[name] = request.max_tokens
        body = {name: value for name, value in body.items() if name not in self._refused}
        if request.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        return body

    def _learn(self, error: UpstreamError, body: dict[str, Any]) -> None:
        """Remember an optional parameter that the provider does not take; pass every other error on.

        What a list is read from is not optional: without log-probabilities, or at another temperature, it is another
        list. A length limit may be renamed, never dropped.
        """
        name = _refused_parameter(error, body)
        if name is None or name == "max_completion_tokens":
            raise error
        self._refused |= {"logprobs" if name == "top_logprobs" else name}
        if body.get("logprobs") and name != "max_tokens":
            raise self._no_logprobs() from None

    def _no_logprobs(self) -> UnsupportedError:
        return UnsupportedError("labels", f"{self.model} reports no log-probabilities at temperature 1", always=True)


def _refused_parameter(error: UpstreamError, body: Mapping[str, Any]) -> str | None:
    """Which parameter the provider does not take: named as such, or quoted in a sentence that says so."""
    if error.status not in _BAD_PARAMETER:
        return None
    for name in _OPTIONAL:
        if name in body and (error.parameter == name or re.search(_NOT_TAKEN.format(name=name), error.fault, re.I)):
            return name
    return None


def read_completion(content: dict[str, Any]) -> ChatReply:
    """What a chat completion says."""
    try:
        choice = content["choices"][0]
        text = choice["message"]["content"]
        usage = content.get("usage") or {}
        logprobs = (choice.get("logprobs") or {}).get("content")
        return ChatReply(
            text=text if isinstance(text, str) else "",
            top_logprobs=None if logprobs is None else [_alternatives(token) for token in logprobs],
            input_tokens=whole(usage.get("prompt_tokens")),
            output_tokens=whole(usage.get("completion_tokens")),
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise UpstreamError("chat", "the reply has not the shape of a chat completion") from None


def _alternatives(token: dict[str, Any]) -> list[tuple[str, float]]:
    return [(str(one["token"]), float(one["logprob"])) for one in token["top_logprobs"]]
