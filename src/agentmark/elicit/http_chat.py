"""Chat completions over HTTP. What a model refuses in a request is left out from then on, if that is what helps."""

import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from typing import Any

from agentmark.elicit.chat import ChatReply, ChatRequest
from agentmark.elicit.connections import require_http
from agentmark.elicit.conversation import chat_messages, in_words, merged, settled, tool_definitions
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.errors import UnsupportedError, UpstreamError
from agentmark.elicit.learned import Form
from agentmark.elicit.situation import whole

ROUTE = "chat/completions"
Body = dict[str, Any]
# A part of a request that is not taken, and the same said of tools by servers that call it their own failure.
_REFUSES = (400, 403, 404, 422)
_REFUSES_UNNAMED = (400, 422)
_REFUSES_TOOLS = (500,)
_PARAMETERS = (
    "response_format",
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "top_logprobs",
    "logprobs",
    "tool_choice",
    "tools",
)
# A quoted name beside a word of refusal: text that merely speaks of temperatures is not one.
_NOT_TAKEN = (
    r"(?:unsupported|not support|unrecognized|unknown|not permitted|not allowed)[^.]*['\"`]{name}['\"`]"
    r"|['\"`]{name}['\"`][^.]*(?:unsupported|not supported|not permitted|not allowed|not compatible)"
)
_TOO_LONG = re.compile(r"context.{0,10}(length|window|size)|too (long|large|many tokens)|maximum.{0,20}tokens", re.I)
_AT_MOST = re.compile(
    r"(?:at most|maximum(?: value)?(?: is| of)?|<=|less than or equal to|up to|between \d+ and) ?(\d+)", re.I
)
_AT_LEAST = re.compile(r"(?:at least|minimum(?: value)?(?: is| of)?|>=|greater than or equal to) ?(\d+)", re.I)
MOST_LEAST_TOKENS = 64

# Members of a `Form`, and what they are changed to.
Change = dict[str, Any]


class HttpChat:
    """The chat of an endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        require_http()
        self.endpoint = endpoint

    @property
    def model(self) -> str:
        return self.endpoint.model

    def complete(self, request: ChatRequest) -> ChatReply:
        tries = self._tries(request)
        body = next(tries)
        try:
            while True:
                try:
                    reply: Body | UpstreamError = self.endpoint.post(ROUTE, body, method="chat")
                except UpstreamError as error:
                    reply = error
                body = tries.send(reply)
        except StopIteration as done:
            return read_completion(done.value)

    async def acomplete(self, request: ChatRequest) -> ChatReply:
        tries = self._tries(request)
        body = next(tries)
        try:
            while True:
                try:
                    reply: Body | UpstreamError = await self.endpoint.apost(ROUTE, body, method="chat")
                except UpstreamError as error:
                    reply = error
                body = tries.send(reply)
        except StopIteration as done:
            return read_completion(done.value)

    def _tries(self, request: ChatRequest) -> Generator[Body, Body | UpstreamError, Body]:
        """Yields the request as it is known to be taken, is sent what came back, and yields it otherwise if it was
        refused. A part that the provider names is left out from then on. What is only guessed is learned when it is
        accepted; if nothing is, the first refusal that named no part is the one to tell."""
        learned, first = self.endpoint.learned, None
        named: dict[str, Any] = {}
        guessed: dict[str, Any] = {}
        reasons: dict[str, str] = {}
        guesses: Iterator[Change] | None = None
        while True:
            form = replace(learned.form, **named | guessed)
            if request.top_logprobs and not _fits(request, form):
                learned.accept(named, reasons)
                raise self._no_logprobs(request, form)
            body = chat_body(request, form)
            reply = yield body
            if not isinstance(reply, UpstreamError):
                learned.accept(named | guessed, {part: reasons[part] for part in named | guessed})
                return reply
            change = named_change(reply, request, body, form)
            if change is not None:
                named |= change
                reasons |= dict.fromkeys(change, reply.fault)
                if "response_format" not in change:
                    # Said outright. A format may be refused for the schema in it, which is of this step.
                    learned.accept(change, {part: reasons[part] for part in change})
                continue
            first = first or reply
            if is_refusal_of_a_part(reply, request):
                guesses = guesses or iter(likely_changes(reply, request, replace(learned.form, **named)))
                guessed = next(guesses, {})
            else:
                guessed = {}
            if not guessed:
                raise first
            reasons |= dict.fromkeys(guessed, reply.fault)

    def _no_logprobs(self, request: ChatRequest, form: Form) -> UnsupportedError:
        fault = f"{self.model} reports no log-probabilities at temperature 1"
        too_few = form.logprobs and form.temperature
        if too_few:
            fault = f"{self.model} reports {form.most_logprobs} alternatives, and {request.least_logprobs} are needed"
        return UnsupportedError("labels", fault, always=not too_few)


def _fits(request: ChatRequest, form: Form) -> bool:
    """Whether log-probabilities can be asked for. At another temperature, or cut short, a list is another list."""
    few = form.most_logprobs is not None and form.most_logprobs < request.least_logprobs
    return form.logprobs and form.temperature and not few


def chat_body(request: ChatRequest, form: Form) -> Body:
    """A request in the words of chat completions."""
    body: Body = {"messages": _messages(request, form)}
    if request.tools and form.tools:
        # The same tools in the same order as the agent's own requests, so that their common beginning stays cached.
        body["tools"] = tool_definitions(request.tools)
        if form.tool_choice:
            body["tool_choice"] = "none"
    if request.schema is not None and form.response_format != "none":
        body["response_format"] = response_format(request.schema, form.response_format)
    if request.temperature is not None and form.temperature:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        # The newer name is for those who refuse the older.
        body[form.length] = max(request.max_tokens, form.least_tokens if request.top_logprobs else 1)
    if request.top_logprobs:
        most = request.top_logprobs if form.most_logprobs is None else min(request.top_logprobs, form.most_logprobs)
        body |= {"logprobs": True, "top_logprobs": most}
        if form.no_reasoning:
            body["reasoning_effort"] = "none"
    return body


def _messages(request: ChatRequest, form: Form) -> list[Body]:
    messages = settled(request.messages)
    if not form.tool_roles:
        messages = in_words(messages)
    return chat_messages(merged(messages) if form.merged else messages)


def response_format(schema: Mapping[str, Any], kind: str = "json_schema") -> Body:
    """A reply's shape in the words of chat completions."""
    if kind == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": dict(schema)}}


def named_change(error: UpstreamError, request: ChatRequest, body: Body, form: Form) -> Change | None:
    """How to write a refused request otherwise, if the provider says what it does not take. A length limit may be
    renamed, never dropped."""
    if error.status not in _REFUSES:
        return None
    if request.top_logprobs:
        change = _logprob_change(error, body, form)
        if change is not None:
            return change
    named = _named_parameter(error, body)
    if named is not None:
        return _without(named, form)
    if re.search(r"roles?\b.{0,40}alternat|alternat.{0,40}\broles?\b", error.fault, re.I) and not form.merged:
        return {"merged": True}
    return None


def is_refusal_of_a_part(error: UpstreamError, request: ChatRequest) -> bool:
    """Whether a refusal that names no part of the request may be about one, rather than about what the request says,
    its length, or who asks. Log-probabilities are then the part: without them there is nothing to ask for."""
    if request.top_logprobs:
        return False
    if error.status in _REFUSES_TOOLS:
        return bool(request.tools) and re.search(r"tools?\b|jinja", error.fault, re.I) is not None
    return error.status in _REFUSES_UNNAMED and not _TOO_LONG.search(error.fault)


def likely_changes(error: UpstreamError, request: ChatRequest, form: Form) -> list[Change]:
    """What to try when a provider does not say what it refuses: the response format, the tools, both. Each by itself,
    so that only what helped is learned; what its words point to first."""
    formats: list[Change] = []
    if request.schema is not None:
        lesser = {"json_schema": ("json_object", "none"), "json_object": ("none",), "none": ()}[form.response_format]
        formats = [{"response_format": name} for name in lesser]
    tools: list[Change] = []
    if request.tools and form.tools:
        tools.append({"tools": False})
    if form.tool_roles and any(message.get("role") == "tool" for message in request.messages):
        tools.append({"tools": False, "tool_roles": False})
    both = [{**formats[-1], **tools[-1]}] if formats and tools else []
    about_tools = re.search(r"tools?\b|jinja", error.fault, re.I) is not None
    return [*tools, *formats, *both] if about_tools else [*formats, *tools, *both]


def _logprob_change(error: UpstreamError, body: Body, form: Form) -> Change | None:
    """Newer reasoning models report a few log-probabilities, for a few tokens and more, if they do not reason."""
    said = error.fault
    if re.search(r"effort", said, re.I) and re.search(r"\bnone\b", said, re.I) and not form.no_reasoning:
        return {"no_reasoning": True}
    most = _AT_MOST.search(said)
    if "logprobs" in said and most and 0 < int(most[1]) < body["top_logprobs"]:
        return {"most_logprobs": int(most[1])}
    least = _AT_LEAST.search(said)
    if re.search(r"max_\w*tokens", said) and least and body[form.length] < int(least[1]) <= MOST_LEAST_TOKENS:
        return {"least_tokens": int(least[1])}
    return None


def _named_parameter(error: UpstreamError, body: Mapping[str, Any]) -> str | None:
    """Which parameter the provider does not take: named as such, or quoted in a sentence that says so."""
    for name in _PARAMETERS:
        if name in body and (error.parameter == name or re.search(_NOT_TAKEN.format(name=name), error.fault, re.I)):
            return name
    return None


def _without(name: str, form: Form) -> Change | None:
    lesser: dict[str, Change] = {
        "max_tokens": {"length": "max_completion_tokens"},
        "temperature": {"temperature": False},
        "logprobs": {"logprobs": False},
        "top_logprobs": {"logprobs": False},
        "response_format": {"response_format": "json_object" if form.response_format == "json_schema" else "none"},
        "tool_choice": {"tool_choice": False},
        "tools": {"tools": False},
    }
    return lesser.get(name)


def read_completion(content: dict[str, Any]) -> ChatReply:
    """What a chat completion says."""
    try:
        choice = content["choices"][0]
        text = choice["message"].get("content")
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
