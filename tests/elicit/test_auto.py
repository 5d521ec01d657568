"""What providers refuse when they are asked for a list: each falls through to the next way, once.

The wordings are those of the providers' documentation and public reports.
"""

import asyncio
import json
import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentmark import Decider, Embedder, SharedKey
from agentmark.elicit.auto import Auto, elicitor_for
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.errors import UnsupportedError, UpstreamError
from agentmark.elicit.situation import ANSWER_CANDIDATE, Candidate, Elicitation, Situation
from agentmark.errors import SettingError
from agentmark.testing import FakeProvider, ScriptedElicitor
from agentmark.testing.provider import Refusal, chat_answer

CHAT, DECISIONS, SYSTEMONE = "/v1/chat/completions", "/v1/decisions", "/v1/systemone"
CANDIDATES = [Candidate("search", "search the web", {"type": "object"}), Candidate("book"), ANSWER_CANDIDATE]
LIST = {"search": 0.5, "book": 0.3, "(answer)": 0.2}
SITUATION = Situation.of(CANDIDATES, "Book me a flight to Oslo.")
LETTERS = {"A": math.log(0.6), "B": math.log(0.3), "C": math.log(0.1)}
Handler = Callable[[dict[str, Any]], Any]


def endpoint(provider: FakeProvider, **options: Any) -> Endpoint:
    return Endpoint(provider.base_url, "m", timeout_s=10, max_delay_s=0.01, **options)


def words(body: dict[str, Any]) -> Any:
    return chat_answer(json.dumps(LIST))(body)


def letters(body: dict[str, Any]) -> Any:
    return chat_answer("A", top_logprobs=lambda _: LETTERS)(body)


def refusing(refusal: Refusal, when: Callable[[dict[str, Any]], Any], otherwise: Handler = words) -> Handler:
    return lambda body: refusal if when(body) else otherwise(body)


def has(name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda body: name in body


def has_schema(body: dict[str, Any]) -> bool:
    return bool(body.get("response_format", {}).get("type") == "json_schema")


def thinks_first(body: dict[str, Any]) -> Any:
    """vLLM with a thinking model: the first token is no letter, and says so at status 200."""
    if "logprobs" in body:
        return chat_answer("<think>", top_logprobs=lambda _: {"<think>": -1e-6, "\n": -14.0})(body)
    return chat_answer(f"<think>Hm.</think>{json.dumps(LIST)}")(body)


# Each provider's chat route, and how many calls the first step then costs after those for the decision routes.
PROVIDERS: dict[str, tuple[Handler, int]] = {
    "logprobs 403 (gpt-5)": (
        refusing(Refusal(403, "You are not allowed to request logprobs from this model"), has("logprobs")),
        2,
    ),
    "logprobs 422 (Azure)": (refusing(Refusal(422, "logprobs: Extra inputs are not permitted"), has("logprobs")), 2),
    "logprobs 400 (Gemini)": (
        refusing(
            Refusal(400, 'Invalid JSON payload received. Unknown name "logprobs": Cannot find field.'), has("logprobs")
        ),
        2,
    ),
    "thinks first (vLLM)": (thinks_first, 2),
    "no logprobs, no json_schema (DeepSeek)": (
        refusing(
            Refusal(400, "logprobs is not supported"),
            has("logprobs"),
            refusing(Refusal(400, "This response_format type is unavailable now"), has_schema),
        ),
        3,
    ),
    "no response_format at all": (
        refusing(
            Refusal(403, "no"), has("logprobs"), refusing(Refusal(422, "invalid request"), has("response_format"))
        ),
        4,
    ),
    "no tools": (
        refusing(Refusal(403, "no"), has("logprobs"), refusing(Refusal(400, "m does not support tools"), has("tools"))),
        3,
    ),
    "no tool_choice": (
        refusing(
            Refusal(403, "no"),
            has("logprobs"),
            refusing(Refusal(400, "Unsupported parameter: 'tool_choice'"), has("tool_choice")),
        ),
        3,
    ),
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("missing", [400, 401, 403, 404, 405])
@pytest.mark.parametrize("provider_name", PROVIDERS)
def test_every_refusal_falls_through_once_and_is_remembered(provider_name: str, missing: int, is_async: bool) -> None:
    chat, calls = PROVIDERS[provider_name]
    routes: dict[str, Any] = dict.fromkeys([DECISIONS, SYSTEMONE], Refusal(missing, "unknown path"))
    with FakeProvider({**routes, CHAT: chat}) as provider:
        asked = endpoint(provider)
        for step in range(5):
            auto = elicitor_for(asked, "stated")
            said = asyncio.run(auto.aelicit(SITUATION)) if is_async else auto.elicit(SITUATION)
            assert (said.method, said.weights) == ("verbalised", LIST)
            assert len(provider.requests) == 2 + calls + step
    assert isinstance(auto, Auto)
    assert set(auto.passed_over) == {"decisions", "systemone", "labels"}
    assert f"HTTP {missing}: unknown path" in auto.passed_over["decisions"]


def test_a_marked_agent_stays_marked_at_such_providers() -> None:
    for chat, _ in PROVIDERS.values():
        with FakeProvider({CHAT: chat}) as provider:
            decider = Decider(
                Embedder(SharedKey.generate(), 1, payload_len=8), elicitor_for(endpoint(provider), "stated")
            )
            assert all(decider.decide(CANDIDATES, f"Step {i}").marked for i in range(5))


def test_only_what_helped_is_learned() -> None:
    """A model without tools keeps its schema."""
    chat, _ = PROVIDERS["no tools"]
    with FakeProvider({CHAT: chat}) as provider:
        asked = endpoint(provider)
        elicitor_for(asked, "stated").elicit(SITUATION)
    assert asked.learned.refused == {"tools": "HTTP 400: m does not support tools"}
    assert has_schema(provider.requests[-1][1])


@pytest.mark.parametrize("ladder", ["auto", "stated"])
@pytest.mark.parametrize(
    ("refusal", "named"),
    [
        (Refusal(401, "Incorrect API key provided"), "HTTP 401: Incorrect API key provided"),
        (Refusal(403, "Country not supported"), "HTTP 403: Country not supported"),
        (Refusal(404, "The model `m` does not exist"), "HTTP 404: The model `m` does not exist"),
        (Refusal(400, "m is not a valid model ID"), "HTTP 400: m is not a valid model ID"),
    ],
)
def test_a_wrong_key_or_model_is_told_within_one_step_and_nothing_is_learned(
    refusal: Refusal, named: str, ladder: str
) -> None:
    with FakeProvider(dict.fromkeys([DECISIONS, SYSTEMONE, CHAT], refusal)) as provider:
        asked = endpoint(provider, api_key="sk-wrong")
        for _ in range(2):
            with pytest.raises(UpstreamError, match=named) as caught:
                elicitor_for(asked, ladder).elicit(SITUATION)
            assert caught.value.status == refusal.status
            assert str(caught.value).startswith(f"elicitation ({ladder}): {named}")
    assert asked.learned.passed_over == {}
    assert asked.learned.refused == {}


def test_what_is_learned_is_of_one_endpoint() -> None:
    chat, _ = PROVIDERS["thinks first (vLLM)"]
    with FakeProvider({CHAT: chat}) as provider:
        asked = endpoint(provider)
        elicitor_for(asked, "stated").elicit(SITUATION)
    assert asked.learned.passed_over
    assert replace(asked, model="another").learned.passed_over == {}


def test_an_elicitor_that_has_worked_is_refused_for_one_step_only() -> None:
    def choosy(body: dict[str, Any]) -> Any:
        if "too long" in body["input"]:
            return Refusal(400, "input is too long")
        answer = {"type": "choice", "probabilities": [{"value": name, "probability": p} for name, p in LIST.items()]}
        return {"answers": [answer]}

    with FakeProvider({DECISIONS: choosy, CHAT: words}) as provider:
        auto = elicitor_for(endpoint(provider), "stated")
        texts = ["short", "too long", "short"]
        methods = [auto.elicit(Situation.of(CANDIDATES, text)).method for text in texts]
    assert methods == ["decisions", "verbalised", "decisions"]


def test_too_many_options_for_labels_is_about_this_step() -> None:
    answer = chat_answer(lambda _: json.dumps({f"t{i}": 1 for i in range(21)}), top_logprobs=lambda _: LETTERS)
    with FakeProvider({CHAT: answer}) as provider:
        auto = elicitor_for(endpoint(provider), "stated")
        many = Situation.of([f"t{i}" for i in range(21)], "")
        assert [auto.elicit(s).method for s in (many, SITUATION, many, SITUATION)] == [
            *("verbalised", "labels", "verbalised", "labels")
        ]


def test_a_reply_without_a_usable_list_falls_through_for_this_step_and_its_cost_is_counted() -> None:
    vague = chat_answer(
        lambda body: "A" if "logprobs" in body else json.dumps(LIST),
        top_logprobs=lambda _: {"A": math.log(0.1), "The": math.log(0.8)},
    )
    with FakeProvider({CHAT: vague}) as provider:
        auto = elicitor_for(endpoint(provider), "stated")
        said = auto.elicit(SITUATION)
    assert (said.method, said.attempts, said.input_tokens) == ("verbalised", 2, 2)
    assert isinstance(auto, Auto)
    assert "labels" not in auto.passed_over


def test_the_last_fault_is_told_when_nothing_can_be_used() -> None:
    first, second = ScriptedElicitor(["one fault"]), ScriptedElicitor(["another"])
    said = Auto([first, second]).elicit(SITUATION)
    assert (said.weights, said.fault, said.attempts) == (None, "another", 2)


class Failing:
    def __init__(self, name: str, error: Exception) -> None:
        self.name, self._error = name, error

    def elicit(self, situation: Situation) -> Elicitation:
        raise self._error

    async def aelicit(self, situation: Situation) -> Elicitation:
        raise self._error


def test_an_outage_is_not_hidden_by_another_way() -> None:
    for status in (None, 402, 429, 503, 529):
        ladder = Auto([Failing("decisions", UpstreamError("decisions", "down", status)), ScriptedElicitor(LIST)])
        with pytest.raises(UpstreamError, match="down"):
            ladder.elicit(SITUATION)
    fitting = Auto([Failing("labels", UnsupportedError("labels", "40 candidates", always=False))])
    with pytest.raises(UnsupportedError, match="40 candidates"):
        asyncio.run(fitting.aelicit(SITUATION))
    with pytest.raises(SettingError, match="there are none"):
        Auto([])


def test_a_failure_is_an_outage_only_of_what_has_worked() -> None:
    down: list[int] = []

    def decide(body: dict[str, Any]) -> Any:
        if down:
            return Refusal(500, "down")
        answer = {"type": "choice", "probabilities": [{"value": name, "probability": p} for name, p in LIST.items()]}
        return {"answers": [answer]}

    with FakeProvider({DECISIONS: decide, CHAT: words}) as provider:
        auto = elicitor_for(endpoint(provider), "stated")
        assert auto.elicit(SITUATION).method == "decisions"
        down.append(1)
        with pytest.raises(UpstreamError, match="HTTP 500: down"):
            auto.elicit(SITUATION)
        # Nobody knows of this one whether it is there at all.
        assert elicitor_for(endpoint(provider), "stated").elicit(SITUATION).method == "verbalised"


def test_a_server_that_answers_unknown_routes_with_a_page() -> None:
    page: Handler = lambda _: [{"not": "JSON"}]  # noqa: E731 - sent as a stream of events, which is no JSON
    with FakeProvider({DECISIONS: page, SYSTEMONE: page, CHAT: words}) as provider:
        auto = elicitor_for(endpoint(provider), "stated")
        assert [auto.elicit(SITUATION).method for _ in range(2)] == ["verbalised"] * 2
        assert len(provider.requests) == 2 + 2 + 1


def test_passing_over_is_logged_without_the_providers_words(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agentmark")
    with FakeProvider({DECISIONS: Refusal(400, "Patient John Doe"), CHAT: words}) as provider:
        auto = elicitor_for(endpoint(provider), "stated")
        auto.elicit(SITUATION)
        auto.elicit(SITUATION)
    lines = [record.getMessage() for record in caplog.records if record.name == "agentmark.elicit.auto"]
    assert len(lines) == 3
    assert "decisions is passed over from now on (HTTP 400)" in lines[0]
    assert "John Doe" not in caplog.text


# --- what a few models want before they report log-probabilities -----------------------------------------------------


def newer_reasoning_model(body: dict[str, Any]) -> Any:
    """Effort none, at most 5 log-probabilities, at least 4 tokens: each is said when it is missed."""
    if "max_tokens" in body:
        return Refusal(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    if "logprobs" not in body:
        return words(body)
    if body.get("reasoning_effort") != "none":
        return Refusal(400, "logprobs are only supported when reasoning effort is set to 'none'.")
    if body["top_logprobs"] > 5:
        return Refusal(400, "Invalid 'top_logprobs': integer above maximum value. Expected a value <= 5, but got 20.")
    if body["max_completion_tokens"] < 4:
        return Refusal(400, "Invalid 'max_completion_tokens': must be at least 4 for logprobs.")
    return letters(body)


def test_log_probabilities_under_conditions() -> None:
    with FakeProvider({CHAT: newer_reasoning_model}) as provider:
        auto = elicitor_for(endpoint(provider), "stated")
        assert auto.elicit(SITUATION).method == "labels"
        first = len(provider.requests)
        assert auto.elicit(SITUATION).method == "labels"
        assert len(provider.requests) == first + 1
        # Five alternatives do not carry six options.
        assert auto.elicit(Situation.of([f"t{i}" for i in range(6)], "")).fault is not None
        assert "logprobs" not in provider.requests[-1][1]
    assert first == 2 + 5
