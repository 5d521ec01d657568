"""Bodies that nobody would send: the gateway has no 500 of its own for them, and claims no step that was not taken."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz.mutate import mutate
from gateway_process import MODES, Gateway, is_evidence, unique_contexts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_agent import APIS, PATHS, Answer, PlainAgent, ask, events, headers_for

from agentmark.elicit.proposals import JOINT
from agentmark.elicit.situation import ANSWER, OTHER
from agentmark.testing import Errand, RefusingProvider

# What the gateway says by itself, where an upstream cannot be asked.
OWN_ERRORS = (502, 503, 504)

# Fields that decide how a request is read, with values of every kind in them.
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = [
    *("model", "messages", "input", "instructions", "system", "tools", "tool_choice", "parallel_tool_calls"),
    *("stream", "stream_options", "n", "temperature", "seed", "top_k", "max_tokens", "thinking", "background", "store"),
    *("metadata", "conversation", "previous_response_id", "functions", "function_call"),
]


@pytest.fixture(scope="module", params=MODES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Place"]:
    with RefusingProvider() as provider:
        gateway = Gateway(tmp_path_factory.mktemp("fuzzed"), provider.root_url, mode=request.param)
        with gateway:
            here = Place(gateway)
            yield here
        here.check_records()


class Place:
    """A gateway, and what came of every request to it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.answers: dict[str, tuple[str, bool, Answer]] = {}

    def ask(self, api: str, body: bytes) -> Answer:
        session = f"fuzz-{len(self.answers)}"
        headers = {**headers_for(api, "k"), "x-agentmark-session": session}
        answer = ask(self.gateway.url, PATHS[api], body, headers)
        is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
        self.answers[session] = api, is_stream, answer
        assert answer.status, f"no answer to {body!r}: {self.gateway.said[-3000:]}"
        if "x-agentmark-error" in answer.headers and answer.status >= 500:
            assert answer.status in OWN_ERRORS, f"{answer} to {body!r}: {self.gateway.said[-3000:]}"
        assert answer.status != 500, f"{answer} to {body!r}: {self.gateway.said[-3000:]}"
        return answer

    def check_records(self) -> None:
        """A step that is in the evidence was answered, and the reply does what the record says."""
        faults = [line for line in self.gateway.said.splitlines() if "went unmarked" in line or "Traceback" in line]
        assert faults == [], "a fault of the gateway's own"
        records = self.gateway.records()
        unique_contexts(records)
        taken_back = {record.context for record in records if record.enforced is False}
        for record in records:
            if not is_evidence(record) or record.context in taken_back:
                continue
            api, is_stream, answer = self.answers[record.session]
            assert answer.status == 200, (record, answer)
            said = set(record.behavior.split(JOINT))
            called = {name if name in said else OTHER for name in calls_in(api, is_stream, answer)}
            assert said == called or (said == {ANSWER} and not called), (record, answer)
        print(f"{len(self.answers)} requests, {sum(map(is_evidence, records))} marked")


def calls_in(api: str, is_stream: bool, answer: Answer) -> list[str]:
    """The tools that a reply calls, read without any of the gateway's code."""
    if api == "chat" and is_stream:
        deltas = [choice["delta"] for data in events(answer.body) for choice in data.get("choices") or ()]
        parts = [part for delta in deltas for part in delta.get("tool_calls") or ()]
        return [part["function"]["name"] for part in parts if part["function"].get("name")]
    if api == "chat":
        message = answer.data["choices"][0]["message"]
        return [call["function"]["name"] for call in message.get("tool_calls") or ()]
    if api == "responses":
        data = answer.data if not is_stream else last_of(answer, "response.completed")["response"]
        return [item["name"] for item in data["output"] if item["type"] == "function_call"]
    if is_stream:
        blocks = [data["content_block"] for data in events(answer.body) if data["type"] == "content_block_start"]
    else:
        blocks = answer.data["content"]
    return [block["name"] for block in blocks if block["type"] == "tool_use"]


def last_of(answer: Answer, kind: str) -> dict[str, Any]:
    return [data for data in events(answer.body) if data.get("type") == kind][-1]


def conversations(api: str) -> list[bytes]:
    """Real requests of an errand, from the first to the last, whole and streamed."""
    found = []
    for stream in (False, True):
        with RefusingProvider() as provider:
            agent = PlainAgent(provider.root_url, api, Errand(1, items=2), stream=stream)
            for _ in range(5):
                found.append(json.dumps(agent.body()).encode())
                _, calls = agent.turn()
                if not calls:
                    break
    return found


@pytest.mark.parametrize("count", [60, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("api", APIS)
def test_requests_that_were_changed(api: str, count: int, place: Place) -> None:
    rng = random.Random(f"{api} {count}")
    real = conversations(api)
    for body in real:
        assert place.ask(api, body).status == 200
    for _ in range(count):
        place.ask(api, mutate(rng, rng.choice(real), real))


@pytest.mark.parametrize("api", APIS)
def test_requests_that_were_made_up(api: str, place: Place) -> None:
    real = json.loads(conversations(api)[0])

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=4) | _JSON)
    def made_up(changes: Any) -> None:
        place.ask(api, json.dumps({**real, **changes} if isinstance(changes, dict) else changes).encode())

    made_up()


def test_what_is_no_json_at_all(place: Place, tmp_path: Path) -> None:
    for api in APIS:
        for body in (
            b"",
            b"{",
            b"null",
            b"[]",
            b"\xff\xfe",
            b"{" * 20000,
            b'{"model": "\\ud800"}',
            b"\x00",
            b"0" * 70000,
        ):
            place.ask(api, body)
