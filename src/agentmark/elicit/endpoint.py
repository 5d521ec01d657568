"""Any OpenAI-compatible provider over HTTP: no SDK is needed to ask for a list."""

import asyncio
import json
import random
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from agentmark.elicit.connections import MAX_REPLY_BYTES, Answered, Sent, Unanswered, asend, send
from agentmark.elicit.delays import own_delay_s, stated_delay_s, worth_another_try
from agentmark.elicit.errors import UpstreamError
from agentmark.elicit.learned import Learned
from agentmark.errors import SettingError

_jitter = random.SystemRandom()
_NO_ANSWER = "the provider did not answer as it should"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is: `base_url` as its SDK takes it, for instance http://127.0.0.1:8080/v1."""

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    # For one try: its whole time, and the time until it is connected.
    timeout_s: float = 60.0
    connect_timeout_s: float = 10.0
    # Further tries after a 429, a 5xx or a connection that broke. The provider says how long to wait between them, else
    # we double it; a provider that wants to be left alone for longer than `max_delay_s` is not waited for.
    retries: int = 2
    max_delay_s: float = 20.0
    # Further members of every request, for instance {"cache_prompt": False} for llama.cpp.
    extra: Mapping[str, Any] = field(default_factory=dict)
    # What this provider was seen to refuse for this model. Elicitors that share the endpoint share it; a copy with
    # another model or another key begins with nothing.
    learned: Learned = field(default_factory=Learned, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")):
            raise SettingError("base_url", "does not begin with http:// or https://")
        if "@" in urlsplit(self.base_url).netloc:
            raise SettingError("base_url", "holds a user or a password; give the key as api_key")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise SettingError("api_key", "has characters that no header can carry, such as a line's end")
        if self.api_key is not None and (not self.api_key or self.api_key != self.api_key.strip()):
            # The client would refuse the header, and quote it.
            raise SettingError("api_key", "is empty, or begins or ends with a space")
        for name in ("timeout_s", "connect_timeout_s"):
            if not getattr(self, name) > 0:
                raise SettingError(name, "is not above zero")
        for name in ("retries", "max_delay_s"):
            if not getattr(self, name) >= 0:
                raise SettingError(name, "is below zero")

    def post(self, route: str, body: Mapping[str, Any], *, method: str) -> dict[str, Any]:
        """Send one request, again if need be. `method` is the elicitor's name, for errors."""
        request, exchange = self._request(route, body), self._exchange(route, method)
        delay_s = next(exchange)
        try:
            while True:
                time.sleep(delay_s)
                delay_s = exchange.send(send(request))
        except StopIteration as done:
            return dict(done.value)

    async def apost(self, route: str, body: Mapping[str, Any], *, method: str) -> dict[str, Any]:
        """The same on the running event loop."""
        request, exchange = self._request(route, body), self._exchange(route, method)
        delay_s = next(exchange)
        try:
            while True:
                await asyncio.sleep(delay_s)
                delay_s = exchange.send(await asend(request))
        except StopIteration as done:
            return dict(done.value)

    def _request(self, route: str, body: Mapping[str, Any]) -> Sent:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.api_key is not None:
            headers["Authorization"] = f"Bearer {self.api_key}"
        content = json.dumps({"model": self.model, **body, **self.extra}).encode("utf-8")
        return Sent(self._url(route), headers, content, self.timeout_s, self.connect_timeout_s)

    def _url(self, route: str) -> str:
        return f"{self.base_url.rstrip('/')}/{route}"

    def _exchange(self, route: str, method: str) -> Generator[float, Answered | Unanswered, dict[str, Any]]:
        """Yields how long to wait before the next try, is sent its outcome, and returns what was answered at last."""
        delay_s = 0.0
        for attempt in range(self.retries + 1):
            outcome = yield delay_s
            last = attempt == self.retries
            if isinstance(outcome, Unanswered):
                if last or not outcome.again:
                    raise UpstreamError(method, outcome.fault)
                delay_s = own_delay_s(attempt, _jitter)
            elif 200 <= outcome.status < 300:
                return _parsed(outcome, self._url(route), method)
            else:
                stated_s = stated_delay_s(outcome.headers)
                if last or not worth_another_try(outcome.status, outcome.headers) or (stated_s or 0) > self.max_delay_s:
                    raise _refusal(outcome, method)
                delay_s = own_delay_s(attempt, _jitter) if stated_s is None else stated_s
            delay_s = min(delay_s, self.max_delay_s)
        raise AssertionError("the last try returns or raises")


def _parsed(reply: Answered, url: str, method: str) -> dict[str, Any]:
    if reply.content is None:
        raise UpstreamError(method, f"{url}: the reply is longer than {MAX_REPLY_BYTES} bytes")
    try:
        parsed = json.loads(reply.content)
    except (ValueError, RecursionError):
        raise UpstreamError(method, f"{url}: the reply is not JSON", reply.status, logged=_NO_ANSWER) from None
    if not isinstance(parsed, dict):
        raise UpstreamError(method, f"{url}: the reply is not a JSON object", reply.status, logged=_NO_ANSWER)
    return parsed


def _refusal(reply: Answered, method: str) -> UpstreamError:
    """What the provider says of its error, as far as one line goes, and which parameter it names as the cause."""
    body, parameter = (reply.content or b"")[: 1 << 16], None
    try:
        content = json.loads(body)
        # Gemini's compatible endpoint puts its error into a list.
        content = content[0] if isinstance(content, list) and content else content
        said = content.get("error", content)
        text = said.get("message", said) if isinstance(said, dict) else said
        named = said.get("param") if isinstance(said, dict) else None
        parameter = named if isinstance(named, str) else None
    except (ValueError, AttributeError, RecursionError):
        text = body.decode("utf-8", "replace")
    return UpstreamError(
        method, " ".join(str(text).split())[:300] or _phrase(reply.status), reply.status, parameter=parameter
    )


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason given"
