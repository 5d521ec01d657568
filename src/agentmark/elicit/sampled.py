"""Proposals over an endpoint: the model is asked several times for the agent's next message, and its replies are the
list (`agentmark.elicit.proposals`)."""

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

from agentmark.elicit.chat import ChatRequest, all_of, sum_of
from agentmark.elicit.connections import require_http
from agentmark.elicit.conversation import tool_definitions
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.errors import UnsupportedError, UpstreamError
from agentmark.elicit.http_chat import ROUTE, Body, chat_body
from agentmark.elicit.proposals import METHOD, Proposals
from agentmark.elicit.situation import (
    ANSWER,
    Candidate,
    Elicitation,
    Proposal,
    Situation,
    ToolCall,
    is_tool_name,
    whole,
)

# With what providers refuse several replies to one request, or a choice of tools that leaves none out.
_REFUSES = (400, 403, 422)

Outcome = Body | UpstreamError
# Yields requests that may be sent at once, is sent what came of each, and returns replies of one choice each.
Asking = Generator[list[Body], list[Outcome], list[Body]]


class Sampled:
    """Asks for the agent's next message as the agent would: its conversation, its tools, nothing of ours.

    All replies are asked for in one request where the provider has that (`n`), which bills the prompt once; else in as
    many requests as replies. How many is settled beforehand, and depends on nothing that a reply says. A decision's
    `reply` is then a chat completion of one choice, which the agent goes on with.
    """

    name = METHOD

    def __init__(
        self,
        endpoint: Endpoint,
        settings: Proposals | None = None,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        """`temperature` and `max_tokens` are those of the agent's own requests; further members are the endpoint's
        `extra`."""
        require_http()
        self.endpoint = endpoint
        self.settings = settings or Proposals()
        self._temperature = endpoint.extra.get("temperature", temperature)
        self._max_tokens = max_tokens

    def elicit(self, situation: Situation) -> Elicitation:
        obstacle = self.settings.obstacle(temperature=self._temperature, runs_hosted_tools=False)
        if obstacle is not None:
            return self._none(obstacle)
        begun, asking = perf_counter(), self._asking(situation)
        bodies = next(asking)
        try:
            while True:
                with ThreadPoolExecutor(len(bodies)) as pool:
                    outcomes = list(pool.map(self._post, bodies))
                bodies = asking.send(outcomes)
        except StopIteration as done:
            return self._read(done.value, perf_counter() - begun)

    async def aelicit(self, situation: Situation) -> Elicitation:
        obstacle = self.settings.obstacle(temperature=self._temperature, runs_hosted_tools=False)
        if obstacle is not None:
            return self._none(obstacle)
        begun, asking = perf_counter(), self._asking(situation)
        bodies = next(asking)
        try:
            while True:
                bodies = asking.send(await all_of([self._apost(body) for body in bodies]))
        except StopIteration as done:
            return self._read(done.value, perf_counter() - begun)

    def _asking(self, situation: Situation) -> Asking:
        count, learned = self.settings.count, self.endpoint.learned
        replies: list[Body] = []
        several_refused: str | None = None
        if learned.form.several:
            [outcome] = yield from self._asked(situation, [{"n": count}])
            if isinstance(outcome, UpstreamError):
                if outcome.status not in _REFUSES:
                    raise outcome
                several_refused = outcome.fault
            else:
                replies = _choices(outcome)[:count]
                if len(replies) < count:
                    several_refused = f"{len(replies)} choices where {count} were asked for"
        missing = count - len(replies)
        if missing:
            # After a refusal nobody knows yet whether it was about their number: one shows.
            alone = 1 if several_refused is not None and not replies else 0
            outcomes = (yield from self._asked(situation, [{}] * alone)) if alone else []
            if not any(isinstance(outcome, UpstreamError) for outcome in outcomes):
                outcomes += yield from self._asked(situation, [{}] * (missing - alone))
            singly = [_choices(outcome)[0] for outcome in outcomes if not isinstance(outcome, UpstreamError)]
            if several_refused is not None and singly:
                learned.accept({"several": False}, {"several": several_refused})
            # A request that failed takes no part: whether it does is not about what it would have said.
            replies += singly
            if not replies:
                raise next(outcome for outcome in outcomes if isinstance(outcome, UpstreamError))
        return replies

    def _asked(
        self, situation: Situation, members: Sequence[Mapping[str, Any]]
    ) -> Generator[list[Body], list[Outcome], list[Outcome]]:
        """The agent's own request, with these members each. One that must call a tool is asked without that word if it
        is refused."""
        learned = self.endpoint.learned
        body = self._body(situation)
        outcomes = yield [{**body, **member} for member in members]
        refused = [outcome for outcome in outcomes if isinstance(outcome, UpstreamError)]
        if len(refused) == len(outcomes) and refused[0].status in _REFUSES and "tool_choice" in body:
            del body["tool_choice"]
            again = yield [{**body, **member} for member in members]
            if any(not isinstance(outcome, UpstreamError) for outcome in again):
                learned.accept({"required": False}, {"required": refused[0].fault})
                return again
        return outcomes

    def _body(self, situation: Situation) -> Body:
        request = ChatRequest(messages=situation.messages, temperature=self._temperature, max_tokens=self._max_tokens)
        body = chat_body(request, self.endpoint.learned.form)
        body["tools"] = tool_definitions(self._tools(situation))
        if ANSWER not in situation.names and self.endpoint.learned.form.required:
            body["tool_choice"] = "required"
        return body

    def _tools(self, situation: Situation) -> list[Candidate]:
        tools = [candidate for candidate in situation.candidates if candidate.name != ANSWER]
        for tool in tools:
            if not is_tool_name(tool.name):
                fault = f"{tool.name!r} is no tool that a provider knows; ask for a stated list"
                raise UnsupportedError(self.name, fault, always=False)
        return tools

    def _post(self, body: Body) -> Outcome:
        try:
            return _checked(self.endpoint.post(ROUTE, body, method=self.name))
        except UpstreamError as error:
            return error

    async def _apost(self, body: Body) -> Outcome:
        try:
            return _checked(await self.endpoint.apost(ROUTE, body, method=self.name))
        except UpstreamError as error:
            return error

    def _read(self, replies: Sequence[Body], seconds: float) -> Elicitation:
        # The choices of one request carry its usage once.
        usages = [reply["usage"] for reply in replies if isinstance(reply.get("usage"), Mapping)]
        return Elicitation(
            method=self.name,
            model=str(replies[0].get("model") or self.endpoint.model),
            proposals=tuple([Proposal(calls=_calls(reply), reply=reply) for reply in replies]),
            granularity=self.settings.granularity,
            samples=len(replies),
            failed=self.settings.count - len(replies),
            seconds=seconds,
            input_tokens=sum_of([whole(usage.get("prompt_tokens")) for usage in usages]),
            output_tokens=sum_of([whole(usage.get("completion_tokens")) for usage in usages]),
        )

    def _none(self, obstacle: str) -> Elicitation:
        return Elicitation(method=self.name, model=self.endpoint.model, fault=obstacle)


def _checked(content: Body) -> Body:
    """A chat completion, as far as it is read here."""
    try:
        for choice in content["choices"]:
            for call in choice["message"].get("tool_calls") or ():
                call.get("function", call)["name"].strip()
        if content["choices"]:
            return content
    except (KeyError, TypeError, AttributeError):
        pass
    raise UpstreamError(METHOD, "the reply has not the shape of a chat completion")


def _choices(content: Body) -> list[Body]:
    """A completion of several choices as completions of one each; the first carries what all of them used."""
    first, *others = content["choices"]
    rest = {name: value for name, value in content.items() if name != "usage"}
    return [{**content, "choices": [first]}, *[{**rest, "choices": [choice]} for choice in others]]


def _calls(reply: Body) -> tuple[ToolCall, ...]:
    found = []
    for call in reply["choices"][0]["message"].get("tool_calls") or ():
        function = call.get("function", call)
        found.append(ToolCall(function["name"], function.get("arguments"), str(call.get("id") or "")))
    return tuple(found)
