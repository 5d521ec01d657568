"""The provider itself: routes, what a profile refuses, and a record of all that was asked."""

import hashlib
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from agentmark.testing.refusing import (
    anthropic_messages,
    decisions,
    gemini,
    openai_chat,
    openai_responses,
    policy,
)
from agentmark.testing.refusing.apis import Api, Event, Exchange
from agentmark.testing.refusing.conversation import Request, Usage
from agentmark.testing.refusing.profiles import PROFILES, Profile, Refused
from agentmark.testing.refusing.questions import question_in
from agentmark.testing.server import Asked, Body, LoopbackServer, Said

# Routes by how their paths end, so that deployments and versions may stand before.
_ROUTES: tuple[tuple[str, Api], ...] = (
    ("/chat/completions", openai_chat),
    ("/responses", openai_responses),
    ("/messages", anthropic_messages),
    (":generateContent", gemini),
    (":streamGenerateContent", gemini),
)
_DECISIONS = re.compile(r"/(decisions|systemone)$")
# What counts tokens, and how it calls them.
_COUNTS = (("/messages/count_tokens", "input_tokens"), (":countTokens", "totalTokens"))
# A part of a second that clients who know this header wait instead of the whole seconds of the other.
_RETRY_AFTER_MS = 20


class Seen(NamedTuple):
    """A request that came in."""

    path: str
    headers: Mapping[str, str]
    body: Body


class RefusingProvider(LoopbackServer):
    """A provider with a competent model, that refuses what its profile refuses. Use it in a `with` block.

    `base_url` is what OpenAI's clients are pointed at, `anthropic_url` and `gemini_url` those of the other two.
    `requests` is what it was asked and `refused` what it refused of that, as (status, message). `cacheable_share()` is
    how much of the requests a provider's prompt cache could have served, and `usage` what each reply cost.
    """

    def __init__(
        self,
        profile: str | Profile = "plain",
        *,
        seed: int = 0,
        api_key: str | None = None,
        delay_s: float = 0.0,
        keep: int | None = None,
    ) -> None:
        """`profile` is one of `PROFILES`, or its name. The same requests with the same seed have the same replies.

        With `api_key`, requests that do not carry it are refused. `delay_s` is how long each request takes. `keep` is
        how many requests it remembers, for one that runs for long: by default all of them.
        """
        super().__init__(self._answer)
        self.profile = PROFILES[profile] if isinstance(profile, str) else profile
        self.requests: list[Seen] = []
        self.refused: list[tuple[int, str]] = []
        self.usage: list[Usage] = []
        self._api_key = api_key
        self._delay_s = delay_s
        self._seed = seed
        self._remembers = keep
        self._count = 0
        self._lock = threading.Lock()
        # How often each request came before, so that a repeated one is a fresh draw; and what caches would hold.
        self._asked_before: Counter[str] = Counter()
        self._prefixes: list[str] = []
        self._cached: list[tuple[int, int]] = []
        self._stream_count = 0
        # What Responses keep for `previous_response_id`.
        self._kept: dict[str, list[Any]] = {}

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.root_url

    @property
    def gemini_url(self) -> str:
        return self.root_url

    def cacheable_share(self) -> float:
        """Of all that was sent to the model, the share that repeats the beginning of an earlier request."""
        with self._lock:
            sent = sum([chars for chars, _ in self._cached])
            return sum([cached for _, cached in self._cached]) / sent if sent else 0.0

    def cacheable_shares(self) -> list[float]:
        """The same for each request to a model, in order."""
        with self._lock:
            return [cached / chars if chars else 0.0 for chars, cached in self._cached]

    # --- one request -------------------------------------------------------------------------------------------------

    def _answer(self, asked: Asked) -> Said:
        if asked.method == "GET":
            models = [{"id": "agentmark", "object": "model", "created": 0, "owned_by": "agentmark"}]
            return Said.json(200, {"object": "list", "data": models})
        path, body = asked.path.partition("?")[0], asked.body
        with self._lock:
            self.requests.append(Seen(asked.path, asked.headers, body or {}))
            self._count += 1
            number = self._count
            self._forget()
        api = next((api for ending, api in _ROUTES if path.endswith(ending)), None)
        if body is None:
            return self._refuse(api or openai_chat, Refused(400, "We could not parse the JSON body of your request."))
        time.sleep(self._delay_s)
        refused = self._untimely(number) or self._uninvited(asked, api)
        if refused is not None:
            return self._refuse(api or openai_chat, refused, body, path)
        return self._elsewhere(path, body) if api is None else self._complete(api, body, asked.path)

    def _forget(self) -> None:
        """Let go of what is older than is to be remembered. Called with the lock held."""
        if self._remembers is None:
            return
        for kept in (self.requests, self.refused, self.usage, self._prefixes, self._cached):
            if len(kept) > 2 * self._remembers:
                del kept[: -self._remembers]
        for known in (self._kept, self._asked_before):
            while len(known) > 2 * self._remembers:
                del known[next(iter(known))]

    def _elsewhere(self, path: str, body: Body) -> Said:
        """Routes that lead to no conversation."""
        route = _DECISIONS.search(path)
        if route is not None:
            return self._decide(body, route[1])
        name = next((name for ending, name in _COUNTS if path.endswith(ending)), None)
        if name is not None:
            return Said.json(200, {name: len(json.dumps(body)) // 4})
        return self._refuse(openai_chat, Refused(404, f"Invalid URL (POST {path})"))

    def _untimely(self, number: int) -> Refused | None:
        """What is refused whatever it asks."""
        if self.profile.always is not None:
            return self.profile.always
        return self.profile.sometimes if number % self.profile.every == 0 else None

    def _uninvited(self, asked: Asked, api: Api | None) -> Refused | None:
        """What is refused for its headers: gateways lose them."""
        headers = {name.lower(): value for name, value in asked.headers.items()}
        if self._api_key is not None and self._api_key not in _keys_in(headers, asked.path):
            return PROFILES["bad-key"].always
        if api is anthropic_messages and "anthropic-version" not in headers:
            return Refused(400, "anthropic-version: header is required")
        return None

    def _refuse(self, api: Api, refused: Refused, body: Body | None = None, path: str = "") -> Said:
        said = api.in_own_words(refused)
        said = replace(said, message=said.message.replace("{model}", _model_in(body or {}, path)))
        with self._lock:
            self.refused.append((said.status, said.message))
        headers = {}
        if said.retry_after_s is not None:
            headers = {"Retry-After": str(said.retry_after_s), "Retry-After-Ms": str(_RETRY_AFTER_MS)}
        return Said.json(said.status, api.error(said, self.profile), headers)

    def _decide(self, body: Body, route: str) -> Said:
        refused = self.profile.decisions
        if refused is not None:
            refused = replace(refused, message=refused.message.replace("{route}", route))
        refused = refused or decisions.fault(body, route)
        if refused is not None:
            return self._refuse(openai_chat, refused, body)
        return Said.json(200, decisions.answer(body, route, len(json.dumps(body)) // 4))

    def _complete(self, api: Api, body: Body, path: str) -> Said:
        previous = body.get("previous_response_id") if api is openai_responses else None
        if previous is not None:
            if previous not in self._kept:
                message = f"Previous response with id '{previous}' not found."
                return self._refuse(
                    api, Refused(400, message, param="previous_response_id", code="previous_response_not_found"), body
                )
            body = {**body, "input": [*self._kept[previous], *_as_items(body.get("input"))]}
        try:
            request = api.read(body, path)
            refused = api.fault(body, request, self.profile) or self._unwanted(request)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            refused = Refused(400, f"The request has not the shape of this API: {error}")
        if refused is not None:
            return self._refuse(api, refused, body, path)
        chars, cached = self._cache(api.prefix(body))
        rng = self._rng(path, body)
        replies = policy.replies(request, question_in(request), self.profile, rng)
        exchange = Exchange(body, request, tuple(replies), Usage.of(chars, cached, replies), rng)
        self.usage.append(exchange.usage)
        if request.is_stream:
            return self._stream(api, exchange, path)
        content = api.reply(exchange)
        if api is openai_responses and isinstance(content, dict):
            self._kept[content["id"]] = [*_as_items(body.get("input")), *content["output"]]
        return Said.json(200, content)

    def _unwanted(self, request: Request) -> Refused | None:
        """What the profile refuses of a request, whatever the API."""
        profile = self.profile
        thinks = profile.thinks and request.thinking is not False
        may_force = profile.forced_choice is None or (profile.thinks and not thinks)
        temperature = profile.temperature
        if temperature is not None:
            message = temperature.message.replace("{value}", str(request.temperature))
            temperature = replace(temperature, message=message)
        checks = (
            (request.choice.is_narrowed and not may_force, profile.forced_choice),
            (request.temperature not in (None, 1), temperature),
            (request.top_logprobs is not None, profile.logprobs),
            (request.schema is not None, profile.json_schema),
            (request.count > 1, profile.several),
        )
        return next((refused for applies, refused in checks if applies and refused is not None), None)

    # --- the model's answer ------------------------------------------------------------------------------------------

    def _rng(self, path: str, body: Body) -> random.Random:
        """Chance that depends on the request and on how often it came, and not on what others ask meanwhile.

        Whether the reply is streamed makes no difference to what it says.
        """
        route = path.partition("?")[0].replace(":streamGenerateContent", ":generateContent")
        asked = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
        digest = hashlib.sha256(json.dumps([route, asked], sort_keys=True).encode("utf-8")).hexdigest()
        with self._lock:
            self._asked_before[digest] += 1
            return random.Random(f"{self._seed} {digest} {self._asked_before[digest]}")

    def _cache(self, prefix: Sequence[object]) -> tuple[int, int]:
        """The length of what goes into the model, and how much of it begins as an earlier request did."""
        text = "\n".join([json.dumps(part, sort_keys=True) for part in prefix if part is not None])
        with self._lock:
            cached = max([_common(text, earlier) for earlier in self._prefixes], default=0)
            self._prefixes.append(text)
            self._cached.append((len(text), cached))
        return len(text), cached

    def _stream(self, api: Api, exchange: Exchange, path: str) -> Said:
        with self._lock:
            self._stream_count += 1
            is_cut = self.profile.cuts_every > 0 and self._stream_count % self.profile.cuts_every == 0
        sent = list(api.events(exchange))
        if api is openai_responses:
            self._keep(exchange.body, sent)
        if api is gemini and "alt=sse" not in path:
            return Said.json(200, [data for _, data in sent])
        if is_cut:
            sent = sent[: max(1, len(sent) // 2)]
        return Said(200, _server_sent(sent), "text/event-stream", {"Cache-Control": "no-cache"}, cut=is_cut)

    def _keep(self, body: Mapping[str, Any], sent: Sequence[Event]) -> None:
        last = sent[-1][1]
        if isinstance(last, dict):
            response = last["response"]
            self._kept[response["id"]] = [*_as_items(body.get("input")), *response["output"]]


def _keys_in(headers: Mapping[str, str], path: str) -> list[str]:
    """The keys that a request carries, in the places of all vendors."""
    found = [headers.get("authorization", "").removeprefix("Bearer ")]
    found += [headers.get(name, "") for name in ("x-api-key", "api-key", "x-goog-api-key")]
    return [*found, *parse_qs(urlsplit(path).query).get("key", [])]


def _model_in(body: Body, path: str) -> str:
    in_path = re.search(r"/models/([^:/?]+)", path)
    return in_path[1] if in_path else str(body.get("model", ""))


def _as_items(given: object) -> list[Any]:
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return list(given) if isinstance(given, list) else []


def _server_sent(events: Sequence[Event]) -> Iterator[bytes]:
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data)
        yield ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode("utf-8")


def _common(text: str, other: str) -> int:
    """How many characters two texts begin alike with."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
