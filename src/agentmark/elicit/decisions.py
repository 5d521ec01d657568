"""Decision endpoints: providers that return the probability of every option themselves."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from agentmark.elicit.connections import require_http
from agentmark.elicit.conversation import as_lines
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.errors import UnsupportedError, UpstreamError
from agentmark.elicit.situation import Elicitation, Situation, whole
from agentmark.errors import SettingError

MIN_OPTIONS, MAX_OPTIONS = 2, 255
_QUESTION = "next_step"
_INSTRUCTIONS = "What should the agent do next?"
# A provider without the route; and one that does not take this request, or not with this model.
_NO_SUCH_ROUTE = (404, 405, 501)
_NOT_LIKE_THIS = (400, 413, 422)


@dataclass(frozen=True, slots=True)
class Decisions:
    """`POST /v1/decisions` (OpenAI and others) or `POST /v1/systemone` (vLLM, SGLang, Ollama and others)."""

    endpoint: Endpoint
    route: str = "decisions"
    # Shuffles the options.
    rng: random.Random = field(default_factory=random.SystemRandom, repr=False)

    def __post_init__(self) -> None:
        if self.route not in ("decisions", "systemone"):
            raise SettingError("route", f"{self.route!r} is neither 'decisions' nor 'systemone'")
        require_http()

    @property
    def name(self) -> str:
        return self.route

    def elicit(self, situation: Situation) -> Elicitation:
        body = self._body(situation)
        try:
            reply = self.endpoint.post(self.route, body, method=self.route)
        except UpstreamError as error:
            raise self._unsupported(error) or error from None
        return self._read(reply, situation)

    async def aelicit(self, situation: Situation) -> Elicitation:
        body = self._body(situation)
        try:
            reply = await self.endpoint.apost(self.route, body, method=self.route)
        except UpstreamError as error:
            raise self._unsupported(error) or error from None
        return self._read(reply, situation)

    def _unsupported(self, error: UpstreamError) -> UnsupportedError | None:
        """What a refusal says of the route, if it says anything. One for want of rights is an error until another way
        of asking has worked with the same key: see `Auto`."""
        if error.status not in _NO_SUCH_ROUTE + _NOT_LIKE_THIS:
            return None
        always = error.status in _NO_SUCH_ROUTE
        return UnsupportedError(self.route, error.fault, always=always, logged=error.logged, status=error.status)

    def _body(self, situation: Situation) -> dict[str, Any]:
        count = len(situation.candidates)
        if not MIN_OPTIONS <= count <= MAX_OPTIONS:
            raise UnsupportedError(self.route, f"{count} candidates, and it takes 2 to 255", always=False)
        text = as_lines(situation.messages)
        shown = self.rng.sample(situation.candidates, len(situation.candidates))
        if self.route == "systemone":
            criteria = {option.name: option.description or None for option in shown}
            question = {"type": "choice", "instructions": _INSTRUCTIONS, "criteria": criteria}
            return {"state": text, "questions": {_QUESTION: question}}
        choices: list[dict[str, str]] = [
            {"value": option.name, **({"description": option.description} if option.description else {})}
            for option in shown
        ]
        asked = {"type": "choice", "name": _QUESTION, "instructions": _INSTRUCTIONS, "choices": choices}
        return {"input": text, "questions": [asked]}

    def _read(self, reply: Mapping[str, Any], situation: Situation) -> Elicitation:
        weights, fault = None, None
        try:
            weights = _checked(self._stated(reply), situation)
        except _UnusableError as unusable:
            fault = str(unusable)
        usage = reply.get("usage")
        used: Mapping[str, Any] = usage if isinstance(usage, Mapping) else {}
        return Elicitation(
            method=self.route,
            model=str(reply.get("model") or self.endpoint.model),
            weights=weights,
            fault=fault,
            logged_fault=None if fault is None else "a decision that cannot be used",
            missing_mass=None if weights is None else max(0.0, 1 - sum(weights.values())),
            input_tokens=whole(used.get("input_tokens")),
            output_tokens=whole(used.get("output_tokens")),
        )

    def _stated(self, reply: Mapping[str, Any]) -> list[tuple[object, object]]:
        """Options and probabilities as they came, in either shape."""
        try:
            answers = reply["answers"]
            answer = answers[_QUESTION] if self.route == "systemone" else answers[0]
            if answer["type"] == "refusal":
                raise _UnusableError("the model declined to decide")
            listed = answer["probabilities"]
            if isinstance(listed, Mapping):
                return list(listed.items())
            return [(one["value"], one["probability"]) for one in listed]
        except (KeyError, IndexError, TypeError):
            raise _UnusableError("the reply has not the shape of a decision") from None


class _UnusableError(ValueError):
    """Why a reply cannot be used."""


def _checked(stated: list[tuple[object, object]], situation: Situation) -> dict[str, int | float]:
    """Every candidate once, nothing else, each with a finite probability (law L6)."""
    weights: dict[str, int | float] = {}
    for name, value in stated:
        if not isinstance(name, str) or name not in situation.names:
            raise _UnusableError(f"{name!r} is no candidate")
        if name in weights:
            raise _UnusableError(f"{name!r} is there twice")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
            raise _UnusableError(f"the probability of {name!r} is {value!r}")
        weights[name] = value
    missing = [name for name in situation.names if name not in weights]
    if missing:
        raise _UnusableError(f"{missing[0]!r} has no probability")
    return weights
