"""What holds of all three APIs: one request and one reply, written in each; and bodies that nobody should send."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark.elicit.situation import ANSWER, Situation
from agentmark.wire.apis import APIS, Api
from agentmark.wire.behaviors import what_was_done
from agentmark.wire.forcing import Rung

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
    assert api.forced(body, "weather", Rung.NAMED)
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
def test_a_forced_tool_is_named_and_the_others_stay(api: Api) -> None:
    body = request(api, temperature=0.5)
    assert api.forced(body, "time", Rung.NAMED) == {**body, "tool_choice": named(api, "time")}
    assert body == request(api, temperature=0.5)


@each_api
def test_a_forced_answer_keeps_the_tools_defined(api: Api) -> None:
    body = request(api)
    assert api.forced(body, ANSWER, Rung.NAMED) == {**body, "tool_choice": choice(api, "none")}


@each_api
@pytest.mark.parametrize("rung", list(Rung))
@pytest.mark.parametrize("behavior", ["weather", "time", ANSWER])
def test_no_way_of_forcing_touches_the_tools_or_what_was_said(api: Api, rung: Rung, behavior: str) -> None:
    """Both stand in the provider's cache, and thinking that is sent back is bound to them."""
    said = [{"role": "user", "content": "Where is it warm?"}]
    conversation = {"input": said} if api.PATH == "/v1/responses" else {"messages": said}
    body = request(api, **conversation)
    forced = api.forced(body, behavior, rung)
    if forced is not None:
        assert forced["tools"] == body["tools"]
        (where,) = conversation
        assert forced[where][:1] == said


@each_api
def test_an_instruction_is_the_last_word(api: Api) -> None:
    forced = api.forced(request(api), "time", Rung.INSTRUCTION)
    if api.PATH == "/v1/messages":
        # Thinking is bound to what was said before it, and would come back without this sentence.
        assert forced is None
        return
    assert forced is not None
    assert api.conversation(forced)[-1] == {"role": "user", "content": "Call time now."}
    assert "tool_choice" not in forced


@each_api
def test_an_answer_beside_tools_of_the_provider_is_not_forced_by_forbidding_them(api: Api) -> None:
    body = request(api, tools=[HOSTED[api.PATH], tool(api, "weather"), tool(api, "time")])
    assert api.runs_hosted_tools(body)
    assert not api.runs_hosted_tools(request(api))
    assert api.forced(body, ANSWER, Rung.NAMED) is None
    assert api.forced(body, "time", Rung.NAMED) == {**body, "tool_choice": named(api, "time")}


@each_api
def test_what_is_named_leaves_nothing_to_decide(api: Api) -> None:
    for behavior in ("weather", "time", ANSWER):
        assert api.candidates(api.forced(request(api), behavior, Rung.NAMED) or {}) == []


@each_api
def test_whether_several_calls_may_come_in_one_reply(api: Api) -> None:
    one = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    body = request(api, **(one if api.PATH == "/v1/messages" else {"parallel_tool_calls": False}))
    assert api.calls_one_at_most(body)
    assert not api.calls_one_at_most(request(api))


@each_api
def test_what_a_reply_calls_and_says(api: Api) -> None:
    assert [call.name for call in api.calls(reply(api, "weather", "time"))] == ["weather", "time"]
    assert api.text(reply(api, "weather")) == ""
    assert api.calls(reply(api)) == []
    assert api.text(reply(api)) == "Done."
    assert what_was_done(api.calls(reply(api)), "weather") == ANSWER
    assert api.choices(reply(api, "weather")) == [reply(api, "weather")]
    assert api.tokens(reply(api)) == (None, None)


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
@given(body=st.dictionaries(WORDS, JSON, max_size=6), behavior=st.sampled_from([ANSWER, "weather"]))
def test_no_body_is_too_odd_to_be_read(api: Api, body: dict[str, Any], behavior: str) -> None:
    candidates = api.candidates(body)
    if candidates:
        Situation.of(candidates, api.conversation(body))
    assert all(set(message) <= {"role", "content", "tool_calls", "tool_call_id"} for message in api.conversation(body))
    assert all(isinstance(message["content"], str) for message in api.conversation(body))
    for rung in Rung:
        forced = api.forced(body, behavior, rung)
        assert forced is None or set(body) <= set(forced)
    assert api.runs_hosted_tools(body) in (True, False)
    assert api.calls_one_at_most(body) in (True, False)
    assert all(isinstance(call.name, str) for call in api.calls(body))
    assert all(isinstance(part, dict) for part in api.choices(body))
    assert all(count is None or count >= 0 for count in api.tokens(body))
    assert isinstance(api.text(body), str)


@each_api
@given(events=st.lists(st.fixed_dictionaries({"type": EVENT_TYPES | JSON}, optional={"choices": JSON, "delta": JSON,
    "item": JSON, "response": JSON, "content_block": JSON, "index": JSON}), max_size=6))  # fmt: skip
def test_no_stream_is_too_odd_to_be_read(api: Api, events: list[dict[str, Any]]) -> None:
    stream = api.stream()
    for event in events:
        stream.add(event)
    assert all(isinstance(call.name, str) for call in stream.calls)
    assert isinstance(stream.text, str)
    assert isinstance(stream.finished, bool)
