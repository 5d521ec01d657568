"""What holds of all three APIs: one request and one reply, written in each; and bodies that nobody should send."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark.elicit.situation import ANSWER, Situation
from agentmark.wire.apis import APIS, Api
from agentmark.wire.behaviors import what_was_done

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HOSTED = {
    "/v1/chat/completions": {"type": "web_search"},
    "/v1/responses": {"type": "web_search"},
    "/v1/messages": {"type": "web_search_20260318", "name": "web_search"},
}
each_api = pytest.mark.parametrize("api", APIS.values(), ids=APIS)


def tool(api: Api, name: str) -> dict[str, Any]:
    """A tool of the agent's, as the API has it."""
    described = {"name": name, "description": f"the {name} of a city"}
    if api.PATH == "/v1/chat/completions":
        return {"type": "function", "function": {**described, "parameters": SCHEMA}}
    if api.PATH == "/v1/responses":
        return {"type": "function", **described, "parameters": SCHEMA}
    return {**described, "input_schema": SCHEMA}


def request(api: Api, **members: Any) -> dict[str, Any]:
    return {"model": "m", "tools": [tool(api, "weather"), tool(api, "time")], **members}


def named(api: Api, name: str) -> dict[str, Any]:
    """The choice of one tool."""
    if api.PATH == "/v1/chat/completions":
        return {"type": "function", "function": {"name": name}}
    return {"type": "function" if api.PATH == "/v1/responses" else "tool", "name": name}


def choice(api: Api, word: str) -> Any:
    """A choice in one word, as OpenAI has it."""
    if api.PATH != "/v1/messages":
        return word
    return {"type": {"required": "any"}.get(word, word)}


def reply(api: Api, *names: str) -> dict[str, Any]:
    """A reply that calls tools, or says that it is done."""
    if api.PATH == "/v1/chat/completions":
        made = [{"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
        message = {"role": "assistant", "content": None if names else "Done.", "tool_calls": made}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if names else "stop"}]}
    if api.PATH == "/v1/responses":
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
        items = [{"type": "function_call", "call_id": "c", "name": name, "arguments": "{}"} for name in names]
        return {"output": items or [said]}
    blocks: list[dict[str, Any]] = [{"type": "tool_use", "id": "c", "name": name, "input": {}} for name in names]
    return {"type": "message", "content": blocks or [{"type": "text", "text": "Done."}]}


def test_the_table_has_the_three() -> None:
    assert list(APIS) == ["/v1/chat/completions", "/v1/responses", "/v1/messages"]


@each_api
@pytest.mark.parametrize(
    ("word", "candidates"),
    [(None, ["weather", "time", ANSWER]), ("auto", ["weather", "time", ANSWER]), ("required", ["weather", "time"])],
)
def test_candidates_are_the_tools_and_the_answer(api: Api, word: str | None, candidates: list[str]) -> None:
    body = request(api) if word is None else request(api, tool_choice=choice(api, word))
    found = api.candidates(body)
    assert [candidate.name for candidate in found] == candidates
    assert api.can_force(body)
    assert (found[0].description, found[0].schema) == ("the weather of a city", SCHEMA)
    assert api.candidates({**body, "tools": [HOSTED[api.PATH], *body["tools"]]}) == found


@each_api
def test_a_request_that_leaves_nothing_to_decide(api: Api) -> None:
    assert api.candidates({"model": "m"}) == []
    assert api.candidates(request(api, tools=[])) == []
    assert api.candidates(request(api, tools=[HOSTED[api.PATH]])) == []
    assert api.candidates(request(api, tool_choice=choice(api, "none"))) == []
    assert api.candidates(request(api, tool_choice=named(api, "weather"))) == []
    assert api.candidates(request(api, tools=[tool(api, "time")], tool_choice=choice(api, "required"))) == []
    assert api.candidates(request(api, tool_choice={"type": "allowed_tools", "mode": "auto", "tools": []})) == []


@each_api
def test_a_forced_tool_is_offered_alone_and_named(api: Api) -> None:
    body = request(api, temperature=0.5)
    assert api.forced(body, "time") == {**body, "tools": [tool(api, "time")], "tool_choice": named(api, "time")}
    assert body == request(api, temperature=0.5)
    assert api.forced(body, None) == body


@each_api
def test_a_forced_answer_keeps_the_tools_defined(api: Api) -> None:
    body = request(api)
    assert api.forced(body, ANSWER) == {**body, "tool_choice": choice(api, "none")}


@each_api
def test_tools_that_run_at_the_provider_stay(api: Api) -> None:
    hosted = HOSTED[api.PATH]
    body = request(api, tools=[hosted, tool(api, "weather"), tool(api, "time")])
    assert api.forced(body, "time")["tools"] == [hosted, tool(api, "time")]
    # A choice of "none" would forbid them too; without the agent's tools there is no call but theirs.
    assert api.forced(body, ANSWER) == {**body, "tools": [hosted]}


@each_api
def test_what_is_forced_leaves_nothing_to_decide(api: Api) -> None:
    body = request(api)
    for behavior in ("weather", "time", ANSWER):
        assert api.candidates(api.forced(body, behavior)) == []


@each_api
def test_what_a_reply_calls_and_says(api: Api) -> None:
    assert api.calls(reply(api, "weather", "time")) == ["weather", "time"]
    assert api.text(reply(api, "weather")) == ""
    assert api.calls(reply(api)) == []
    assert api.text(reply(api)) == "Done."
    assert what_was_done(api.calls(reply(api)), "weather") == ANSWER


@each_api
def test_a_stream_that_has_not_begun(api: Api) -> None:
    stream = api.stream()
    assert (stream.calls, stream.text, stream.finished) == ([], "", False)


# The words of the three APIs, so that bodies come close to real ones before they go wrong.
WORDS = st.sampled_from(
    [
        "action",
        "allowed_callers",
        "arguments",
        "auto",
        "call_id",
        "choices",
        "content",
        "content_block",
        "custom",
        "delta",
        "environment",
        "finish_reason",
        "function",
        "function_call",
        "id",
        "index",
        "input",
        "input_schema",
        "instructions",
        "item",
        "message",
        "messages",
        "name",
        "output",
        "parameters",
        "refusal",
        "response",
        "role",
        "system",
        "text",
        "tool_calls",
        "tool_choice",
        "tool_result",
        "tool_use",
        "tools",
        "type",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
EVENT_TYPES = st.sampled_from(
    [
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
        "ping",
        "error",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.completed",
        "response.failed",
    ]
)


@each_api
@given(body=st.dictionaries(WORDS, JSON, max_size=6), behavior=st.sampled_from([None, ANSWER, "weather"]))
def test_no_body_is_too_odd_to_be_read(api: Api, body: dict[str, Any], behavior: str | None) -> None:
    candidates = api.candidates(body)
    if candidates:
        Situation.of(candidates, api.conversation(body))
    assert all(set(message) <= {"role", "content", "tool_calls"} for message in api.conversation(body))
    assert all(isinstance(message["content"], str) for message in api.conversation(body))
    assert set(body) <= set(api.forced(body, behavior))
    assert api.can_force(body) in (True, False)
    assert all(isinstance(name, str) for name in api.calls(body))
    assert isinstance(api.text(body), str)


@each_api
@given(events=st.lists(st.fixed_dictionaries({"type": EVENT_TYPES | JSON}, optional={"choices": JSON, "delta": JSON,
    "item": JSON, "response": JSON, "content_block": JSON, "index": JSON}), max_size=6))  # fmt: skip
def test_no_stream_is_too_odd_to_be_read(api: Api, events: list[dict[str, Any]]) -> None:
    stream = api.stream()
    for event in events:
        stream.add(event)
    assert all(isinstance(name, str) for name in stream.calls)
    assert isinstance(stream.text, str)
    assert isinstance(stream.finished, bool)
