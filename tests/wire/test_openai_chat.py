"""Chat completions, in the shape of the documentation and of providers that differ from it."""

from collections.abc import Sequence
from typing import Any

import pytest

from agentmark.elicit.situation import ANSWER, ToolCall
from agentmark.wire import openai_chat
from agentmark.wire.forcing import Rung

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Now.", "parameters": SCHEMA}}
SQL = {"type": "custom", "custom": {"name": "sql", "description": "Any query."}}


def names(calls: Sequence[ToolCall]) -> list[str]:
    return [call.name for call in calls]


def chunk(delta: dict[str, Any], finish_reason: str | None = None, index: int = 0) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def call(
    index: int | None, name: str | None = None, arguments: str = "", *, call_id: str | None = None
) -> dict[str, Any]:
    """A piece of a call, with what it has."""
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    part: dict[str, Any] = {"function": function}
    if index is not None:
        part["index"] = index
    if call_id is not None:
        part |= {"id": call_id, "type": "function"}
    return part


def read(*events: dict[str, Any]) -> Any:
    stream = openai_chat.stream()
    for event in events:
        stream.add(event)
    return stream


def calls_in(*parts: dict[str, Any]) -> list[str]:
    """What is called by a stream of one piece an event."""
    return names(read(*[chunk({"tool_calls": [part]}) for part in parts], chunk({}, "tool_calls")).calls)


def test_custom_tools_are_the_agents_too_and_forced_in_their_own_words() -> None:
    body = {"messages": [], "tools": [WEATHER, SQL]}
    assert [candidate.name for candidate in openai_chat.candidates(body)] == ["weather", "sql", ANSWER]
    named = {"type": "custom", "custom": {"name": "sql"}}
    assert openai_chat.forced(body, "sql", Rung.NAMED) == {**body, "tool_choice": named}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}
    assert openai_chat.forced(body, "sql", Rung.ALLOWED) == {**body, "tool_choice": allowed}
    assert openai_chat.forced(body, ANSWER, Rung.ALLOWED) is None


@pytest.mark.parametrize(("mode", "answer"), [("auto", [ANSWER]), ("required", [])])
def test_a_list_of_allowed_tools_leaves_those_open(mode: str, answer: list[str]) -> None:
    clock = {"type": "function", "function": {"name": "clock"}}
    allowed = {
        "mode": mode,
        "tools": [{"type": "function", "function": {"name": name}} for name in ("weather", "clock")],
    }
    body = {"tools": [WEATHER, SQL, clock], "tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}}
    assert [candidate.name for candidate in openai_chat.candidates(body)] == ["weather", "clock", *answer]


def test_a_model_that_looks_things_up_runs_tools_at_the_provider() -> None:
    assert openai_chat.runs_hosted_tools({"tools": [WEATHER], "web_search_options": {}})
    assert not openai_chat.runs_hosted_tools({"tools": [WEATHER, SQL]})


def test_tools_that_cannot_be_read_are_no_candidates() -> None:
    broken = [None, "weather", {}, {"type": "function"}, {"type": "function", "function": {"name": ""}}]
    body: dict[str, Any] = {"tools": [*broken, {"function": {"name": "time", "parameters": "none"}}]}
    found = openai_chat.candidates(body)
    assert [(candidate.name, candidate.schema) for candidate in found] == [("time", None), (ANSWER, None)]


def test_any_is_read_as_required() -> None:
    """Mistral's word for it."""
    body = {"tools": [WEATHER, SQL], "tool_choice": "any"}
    assert [candidate.name for candidate in openai_chat.candidates(body)] == ["weather", "sql"]


def test_a_conversation() -> None:
    body = {
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Where?"}, {"type": "image_url", "image_url": {}}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
                    {"id": "b", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "4 degrees"},
            {"role": "assistant", "content": None, "refusal": "I cannot say."},
            {"content": "no role"},
        ]
    }
    assert openai_chat.conversation(body) == [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Where? (image_url)"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "a", "name": "weather", "arguments": '{"city":"Oslo"}'},
                {"id": "b", "name": "sql", "arguments": "SELECT 1"},
            ],
        },
        {"role": "tool", "content": "4 degrees", "tool_call_id": "a"},
        {"role": "assistant", "content": "I cannot say."},
        {"role": "user", "content": "no role"},
    ]


def test_a_reply_with_a_refusal_says_it() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I cannot do that."}
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    assert (openai_chat.calls(reply), openai_chat.text(reply)) == ([], "I cannot do that.")


def test_a_reply_in_parts_says_its_text_and_not_its_thinking() -> None:
    """Mistral's models that think."""
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Yes."}]
    assert openai_chat.text({"choices": [{"message": {"content": parts}}]}) == "Yes."
    assert (
        read(chunk({"content": parts[:1]}), chunk({"content": "Y"}), chunk({"content": "es."}, "stop")).text == "Yes."
    )


def test_a_call_without_a_name_is_still_a_call() -> None:
    message = {"tool_calls": [{"id": "a", "type": "function", "function": None}, {"custom": {"name": "sql"}}]}
    assert names(openai_chat.calls({"choices": [{"message": message}]})) == ["", "sql"]


def test_several_choices_are_several_replies() -> None:
    made = [{"message": {"tool_calls": [{"function": {"name": name}}]}} for name in ("weather", "time")]
    reply = {"id": "x", "choices": made, "usage": {"prompt_tokens": 7, "completion_tokens": 9}}
    assert names(openai_chat.calls(reply)) == ["weather", "time"]
    parts = openai_chat.choices(reply)
    assert [names(openai_chat.calls(part)) for part in parts] == [["weather"], ["time"]]
    assert [part["id"] for part in parts] == ["x", "x"]
    assert openai_chat.tokens(reply) == (7, 9)
    assert openai_chat.tokens({"usage": {"prompt_tokens": -1, "completion_tokens": "many"}}) == (None, None)


def test_a_stream_of_text() -> None:
    usage: dict[str, Any] = {"object": "chat.completion.chunk", "choices": [], "usage": {"total_tokens": 9}}
    begun = [chunk({"role": "assistant", "content": ""}), chunk({"content": "It is "}), chunk({"content": "warm."})]
    assert not read(*begun).finished
    stream = read(*begun, chunk({}, "stop"), usage)
    assert (stream.calls, stream.text, stream.finished) == ([], "It is warm.", True)


def test_a_stream_of_a_refusal() -> None:
    stream = read(chunk({"role": "assistant", "refusal": "I "}), chunk({"refusal": "cannot."}), chunk({}, "stop"))
    assert (stream.calls, stream.text) == ([], "I cannot.")


def test_a_stream_of_parallel_calls() -> None:
    """As OpenAI sends them: id and name once, then arguments under the index alone."""
    pieces = [
        call(0, "weather", call_id="a"), call(0, arguments='{"city":'), call(0, arguments='"Oslo"}'),
        call(1, "time", call_id="b"), call(1, arguments="{}"),
    ]  # fmt: skip
    assert calls_in(*pieces) == ["weather", "time"]
    stream = read(*[chunk({"tool_calls": [piece]}) for piece in pieces])
    assert stream.calls == [ToolCall("weather", '{"city":"Oslo"}'), ToolCall("time", "{}")]
    assert [call.id for call in stream.calls] == ["a", "b"]


def test_pieces_of_two_calls_in_turn() -> None:
    assert calls_in(call(0, "weather", call_id="a"), call(1, "time", call_id="b"), call(0, arguments="{"), call(1)) == [
        "weather",
        "time",
    ]


def test_a_name_in_pieces() -> None:
    assert calls_in(call(0, "wea", call_id="a"), call(0, "ther"), call(0, "", "{}")) == ["weather"]


def test_a_name_that_is_repeated_whole() -> None:
    assert calls_in(call(0, "weather", "{", call_id="a"), call(0, "weather", "}", call_id="a")) == ["weather"]


def test_parallel_calls_that_all_have_the_index_0() -> None:
    assert calls_in(call(0, "weather", "{}", call_id="a"), call(0, "time", "{}", call_id="b")) == ["weather", "time"]


def test_calls_without_an_index() -> None:
    """Gemini's endpoint sends each whole and without an index, in one event or in several."""
    one, other = call(None, "weather", "{}", call_id="a"), call(None, "time", "{}", call_id="b")
    assert calls_in(one, other) == ["weather", "time"]
    assert names(read(chunk({"tool_calls": [one, other]}), chunk({}, "stop")).calls) == ["weather", "time"]
    assert calls_in(call(None, "weather", "{", call_id="a"), call(None, arguments="}")) == ["weather"]
    without_ids = [call(None, "weather", "{}"), call(None, "time", "{}")]
    assert names(read(chunk({"tool_calls": without_ids}), chunk({}, "stop")).calls) == ["weather", "time"]


def test_a_new_id_in_every_piece_of_a_call() -> None:
    assert calls_in(
        call(0, "weather", call_id="a"), call(0, arguments="{", call_id="b"), call(0, arguments="}", call_id="c")
    ) == ["weather"]


def test_a_call_whose_name_comes_late_or_never() -> None:
    assert calls_in(call(0), call(0, "weather", call_id="a")) == ["weather"]
    assert calls_in(call(0, arguments="{}", call_id="a")) == [""]


def test_empty_and_broken_chunks_change_nothing() -> None:
    broken: list[Any] = [
        {}, {"choices": None}, {"choices": [None, {}]}, {"choices": [{"index": 0, "delta": None}]},
        chunk({"tool_calls": None}), chunk({"content": None}),
    ]  # fmt: skip
    stream = read(*broken, chunk({"tool_calls": [call(0, "weather", call_id="a")]}), *broken, chunk({}, "tool_calls"))
    assert (names(stream.calls), stream.text, stream.finished) == (["weather"], "", True)


def test_a_stream_that_ends_in_an_error_is_not_finished() -> None:
    error = {"error": {"message": "overloaded", "type": "server_error"}}
    assert not read(chunk({"tool_calls": [call(0, "weather", call_id="a")]}), error).finished


def test_choices_are_kept_apart_and_all_must_finish() -> None:
    parts = [
        chunk({"content": "One"}),
        chunk({"tool_calls": [call(0, "weather", call_id="a")]}, index=1),
        chunk({}, "stop"),
    ]
    stream = read(*parts)
    assert (stream.text, names(stream.calls), stream.finished) == ("One", ["weather"], False)
    assert read(*parts, chunk({}, "tool_calls", index=1)).finished


def test_a_call_as_it_was_said_before_there_could_be_several() -> None:
    called = {"name": "search", "arguments": '{"q": 1}'}
    said = {"role": "assistant", "content": None, "function_call": called}
    assert openai_chat.calls({"choices": [{"message": said}]}) == [ToolCall("search", '{"q": 1}', "")]
    [message] = openai_chat.conversation({"messages": [said]})
    assert [call["name"] for call in message["tool_calls"]] == ["search"]
    stream = openai_chat.stream()
    for piece in ({"name": "search", "arguments": '{"q"'}, {"arguments": ": 1}"}):
        stream.add({"choices": [{"index": 0, "delta": {"function_call": piece}}]})
    assert stream.calls == [ToolCall("search", '{"q": 1}', "")]
