"""Every elicitor against every provider of `agentmark.testing.refusing`: which one answers, and at what cost."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from agentmark.elicit.auto import elicitor_for
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.errors import UpstreamError
from agentmark.elicit.situation import ANSWER_CANDIDATE, Candidate, Situation
from agentmark.testing.refusing.profiles import PROFILES, Refused
from agentmark.testing.refusing.provider import RefusingProvider

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SITUATION = Situation.of(
    [Candidate("search_flights", "Search for flights", SCHEMA), Candidate("book_flight", "", SCHEMA), ANSWER_CANDIDATE],
    [
        {"role": "system", "content": "You book flights."},
        {"role": "user", "content": "A flight to Oslo."},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"name": "search_flights", "arguments": {"city": "Oslo"}}],
            "reasoning_content": "Search first.",
        },
        {"role": "tool", "content": "SK101"},
    ],
)
WRONG = {"bad-key": 401, "no-such-model": 404}
# Refuses now and then, whatever is asked.
UNSTEADY = ("rate-limited", "overloaded")
# Who reports log-probabilities to a side call; all others are asked in words.
LETTERS = (
    *("plain", "claude-forced-choice", "gpt-5-few-logprobs", "decisions-401", "decisions-400", "no-json-schema"),
    *("ignores-json-schema", "no-n", "ignores-n", "rate-limited", "overloaded", "stream-cut", "disobeys"),
)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("ladder", ["auto", "stated"])
@pytest.mark.parametrize("name", [name for name in PROFILES if name not in WRONG])
def test_a_list_at_every_step_and_from_the_second_on_without_a_refusal(name: str, ladder: str, is_async: bool) -> None:
    profile = PROFILES[name]
    profile = replace(profile, decisions=profile.decisions or Refused(404, "Invalid URL (POST /v1/{route})"))
    with RefusingProvider(profile) as provider:
        asked = Endpoint(provider.base_url, "m", timeout_s=10, max_delay_s=0.05)
        refused = []
        for _ in range(3):
            elicitor: Any = elicitor_for(asked, ladder)
            said = asyncio.run(elicitor.aelicit(SITUATION)) if is_async else elicitor.elicit(SITUATION)
            assert said.proposals or said.weights
            assert said.method == ("proposals" if ladder == "auto" else "labels" if name in LETTERS else "verbalised")
            refused.append(len(provider.refused))
    if name not in UNSTEADY:
        assert refused == [refused[0]] * 3
    assert {"decisions", "systemone"} <= set(elicitor.passed_over)


@pytest.mark.parametrize("ladder", ["auto", "stated", "labels", "verbalised", "proposals"])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_key_or_model_is_told_at_the_first_step(name: str, ladder: str) -> None:
    with RefusingProvider(name) as provider:
        asked = Endpoint(provider.base_url, "m", max_delay_s=0.05)
        with pytest.raises(UpstreamError, match=f"HTTP {WRONG[name]}: ") as caught:
            elicitor_for(asked, ladder).elicit(SITUATION)
    assert caught.value.status == WRONG[name]
    assert asked.learned.passed_over == {}


@pytest.mark.parametrize("name", ["gpt-5-logprobs-403", "azure-logprobs-422"])
def test_labels_alone_say_that_it_is_the_log_probabilities(name: str) -> None:
    with RefusingProvider(name) as provider:
        asked = Endpoint(provider.base_url, "m", max_delay_s=0.05)
        for calls in (2, 3):
            with pytest.raises(UpstreamError, match="logprobs"):
                elicitor_for(asked, "labels").elicit(SITUATION)
            assert len(provider.requests) == calls


def test_the_prompt_cache_holds() -> None:
    """Side calls begin as the agent's own requests do: after the first, all but the question is cached."""
    with RefusingProvider(replace(PROFILES["plain"], decisions=Refused(404, "Invalid URL"))) as provider:
        asked = Endpoint(provider.base_url, "m")
        elicitor_for(asked, "proposals").elicit(SITUATION)
        for _ in range(3):
            elicitor_for(asked, "verbalised").elicit(SITUATION)
    first, *others = provider.cacheable_shares()
    assert first == 0
    assert others[0] > 0.3
    assert min(others[1:]) > 0.5
