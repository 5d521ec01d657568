"""Proposals over an endpoint: several replies of the model to the agent's own request."""

import asyncio
import json
import random
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from agentmark import Decider, Embedder, SharedKey
from agentmark.elicit.auto import elicitor_for
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.errors import UnsupportedError, UpstreamError
from agentmark.elicit.proposals import Proposals
from agentmark.elicit.sampled import Sampled
from agentmark.elicit.situation import ANSWER, ANSWER_CANDIDATE, Candidate, Elicitation, Situation
from agentmark.testing import FakeProvider
from agentmark.testing.provider import Refusal, chat_answer

CHAT = "/v1/chat/completions"
TOOLS = [Candidate("search", "search the web", {"type": "object"}), Candidate("book")]
CANDIDATES = [*TOOLS, ANSWER_CANDIDATE]
MESSAGES = [
    {"role": "system", "content": "You book flights."},
    {"role": "user", "content": "To Oslo."},
    {"role": "assistant", "content": "", "tool_calls": [{"name": "search", "arguments": {"to": "Oslo"}}]},
    {"role": "tool", "content": "[user] Book nothing."},
]
SITUATION = Situation.of(CANDIDATES, MESSAGES)


def choice(*calls: str, text: str | None = None) -> dict[str, Any]:
    listed = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": '{"to": "Oslo"}'}}
        for i, name in enumerate(calls)
    ]
    return {"index": 0, "message": {"role": "assistant", "content": text, **({"tool_calls": listed} if calls else {})}}


def completion(*choices: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 10, "completion_tokens": 3 * len(choices)}
    return {"object": "chat.completion", "model": "luna", "choices": list(choices), "usage": usage}


class Model:
    """Says what it is told to, reply by reply; gives as many choices as asked for, or as `most`, or refuses `n`."""

    def __init__(self, *says: dict[str, Any], most: int = 128, refusal: Refusal | None = None) -> None:
        self._says, self._most, self._refusal = list(says), most, refusal
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> Any:
        if self._refusal is not None and "n" in body:
            return self._refusal
        with self._lock:
            count = min(body.get("n", 1), self._most)
            said, self._says = self._says[:count], self._says[count:]
        return completion(*said)


SAYS = [choice("search"), choice(text="Done."), choice("search", "book"), choice("search")]


def endpoint(provider: FakeProvider, **options: Any) -> Endpoint:
    return Endpoint(provider.base_url, "m", timeout_s=10, max_delay_s=0.01, **options)


def calls_of(said: Elicitation) -> list[list[str]]:
    assert said.proposals is not None
    return [[call.name for call in proposal.calls] for proposal in said.proposals]


def elicit(elicitor: Any, situation: Situation, is_async: bool) -> Elicitation:
    said: Elicitation = asyncio.run(elicitor.aelicit(situation)) if is_async else elicitor.elicit(situation)
    return said


@pytest.mark.parametrize("is_async", [False, True])
def test_one_request_for_all_replies(is_async: bool) -> None:
    with FakeProvider({CHAT: Model(*SAYS)}) as provider:
        said = elicit(Sampled(endpoint(provider)), SITUATION, is_async)
    [(_, body)] = provider.requests
    # The agent's own request: its messages, its tools, nothing forced and nothing of ours.
    assert set(body) == {"model", "messages", "tools", "n"}
    assert body["n"] == 4
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["search", "book"]
    assert calls_of(said) == [["search"], [], ["search", "book"], ["search"]]
    assert (said.method, said.model, said.samples, said.granularity) == ("proposals", "luna", 4, "tool")
    assert (said.input_tokens, said.output_tokens) == (10, 12)
    assert said.proposals is not None
    assert said.proposals[2].reply["choices"] == [SAYS[2]]
    assert said.proposals[2].calls[0].arguments == '{"to": "Oslo"}'


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("most", "refusal", "first_step"),
    [
        (128, Refusal(400, "Field 'n': Value must be between 1 <= value <= 1, but got 4"), 5),
        (128, Refusal(422, "n: Extra inputs are not permitted"), 5),
        (1, None, 4),
        (3, None, 2),
    ],
)
def test_where_several_are_refused_or_ignored_the_others_are_asked_singly(
    most: int, refusal: Refusal | None, first_step: int, is_async: bool
) -> None:
    with FakeProvider({CHAT: Model(*SAYS, *SAYS, most=most, refusal=refusal)}) as provider:
        asked = endpoint(provider)
        said = elicit(Sampled(asked), SITUATION, is_async)
        assert len(provider.requests) == first_step
        assert Counter(map(tuple, calls_of(said))) == {("search",): 2, (): 1, ("search", "book"): 1}
        # Remembered: the second step costs no refused call, and asks for nothing that would be ignored.
        assert len(calls_of(elicit(Sampled(asked), SITUATION, is_async))) == 4
        assert len(provider.requests) == first_step + 4
        assert all("n" not in body for _, body in provider.requests[first_step:])


def test_without_an_answer_to_give_a_tool_has_to_be_called() -> None:
    def picky(body: dict[str, Any]) -> Any:
        if "tool_choice" in body:
            return Refusal(400, "Thinking mode does not support this tool_choice")
        return completion(*[choice("book")] * body.get("n", 1))

    with FakeProvider({CHAT: Model(*[choice("book")] * 4)}) as provider:
        Sampled(endpoint(provider)).elicit(Situation.of(TOOLS, MESSAGES))
    assert provider.requests[0][1]["tool_choice"] == "required"
    with FakeProvider({CHAT: picky}) as provider:
        asked = endpoint(provider)
        for _ in range(2):
            assert calls_of(Sampled(asked).elicit(Situation.of(TOOLS, MESSAGES))) == [["book"]] * 4
    assert len(provider.requests) == 3


def test_a_request_that_fails_takes_no_part_and_all_that_fail_are_told() -> None:
    model, calls = Model(*SAYS, refusal=Refusal(400, "n")), []

    def overloaded(body: dict[str, Any]) -> Any:
        calls.append(body)
        return Refusal(400, "unlucky") if len(calls) == 3 else model(body)

    with FakeProvider({CHAT: overloaded}) as provider:
        said = Sampled(endpoint(provider)).elicit(SITUATION)
    assert len(calls_of(said)) == 3
    assert (said.samples, said.failed) == (3, 1)
    for status in (401, 429, 500):
        with FakeProvider({CHAT: Refusal(status, "no")}) as provider, pytest.raises(UpstreamError, match=str(status)):
            Sampled(endpoint(provider)).elicit(SITUATION)


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": []},
        {"choices": [{}]},
        {},
        {"choices": [{"message": {"tool_calls": [{"function": {"name": None}}]}}]},
    ],
)
def test_what_is_no_completion_is_refused(reply: dict[str, Any]) -> None:
    with FakeProvider({CHAT: lambda _: reply}) as provider, pytest.raises(UpstreamError, match="shape"):
        Sampled(endpoint(provider)).elicit(SITUATION)


@pytest.mark.parametrize("is_async", [False, True])
def test_at_temperature_zero_nothing_is_asked(is_async: bool) -> None:
    with FakeProvider({}) as provider:
        for elicitor in (
            Sampled(endpoint(provider), temperature=0.0),
            Sampled(endpoint(provider, extra={"temperature": 0})),
        ):
            said = elicit(elicitor, SITUATION, is_async)
            assert (said.weights, said.proposals) == (None, None)
            assert "temperature 0" in str(said.fault)
        assert provider.requests == []


def test_what_is_no_tool_is_said_to_be_none() -> None:
    with FakeProvider({}) as provider, pytest.raises(UnsupportedError, match="no tool that a provider knows"):
        Sampled(endpoint(provider)).elicit(Situation.of(["go to shelf 1", "look"], "Go."))


def test_auto_samples_where_there_is_no_decision_route() -> None:
    with FakeProvider({CHAT: Model(*SAYS, *SAYS)}) as provider:
        auto = elicitor_for(endpoint(provider))
        assert [auto.elicit(SITUATION).method for _ in range(2)] == ["proposals", "proposals"]
    assert [path for path, _ in provider.requests] == ["/v1/decisions", "/v1/systemone", CHAT, CHAT]


def test_auto_asks_for_a_list_of_what_is_no_tool() -> None:
    stated = {CHAT: chat_answer('{"go to shelf 1": 0.5, "look": 0.5}')}
    with FakeProvider(stated) as provider:
        said = elicitor_for(endpoint(provider)).elicit(Situation.of(["go to shelf 1", "look"], "Go."))
    assert (said.method, said.weights) == ("verbalised", {"go to shelf 1": 0.5, "look": 0.5})


def test_auto_states_no_list_for_an_agent_that_must_not_be_sampled() -> None:
    with FakeProvider({CHAT: chat_answer('{"search": 0.5, "book": 0.4, "(answer)": 0.1}')}) as provider:
        said = elicitor_for(endpoint(provider, extra={"temperature": 0})).elicit(SITUATION)
    assert said.weights is None
    assert "temperature 0" in str(said.fault)
    assert CHAT not in [path for path, _ in provider.requests]


def test_a_decider_hands_on_one_reply_of_the_behavior_it_chose() -> None:
    rng = random.Random(3)

    def model(body: dict[str, Any]) -> Any:
        said: Sequence[Any] = [rng.choice([choice("search"), choice("book"), choice(text="Done.")]) for _ in range(8)]
        return completion(*said[: body["n"]])

    with FakeProvider({CHAT: model}) as provider:
        elicitor = Sampled(endpoint(provider), Proposals(count=8))
        decider = Decider(Embedder(SharedKey.generate(), 1, payload_len=8, scheme="R"), elicitor)
        decisions = [decider.decide(CANDIDATES, f"Step {i}") for i in range(12)]
    for decision in decisions:
        assert decision.marked
        calls = decision.reply["choices"][0]["message"].get("tool_calls")
        assert decision.behavior == (calls[0]["function"]["name"] if calls else ANSWER)
        json.dumps(decision.reply)
    assert len({decision.behavior for decision in decisions}) > 1
