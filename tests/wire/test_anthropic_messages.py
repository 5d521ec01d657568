"""The Messages API, in the shape of the documentation and of those who only speak it."""

from collections.abc import Sequence
from typing import Any

import pytest

from agentmark.elicit.situation import ANSWER, ToolCall
from agentmark.wire import anthropic_messages
from agentmark.wire.forcing import Rung

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"name": "weather", "description": "Now.", "input_schema": SCHEMA}
BASH = {"type": "bash_20250124", "name": "bash"}
WEB_SEARCH = {"type": "web_search_20260318", "name": "web_search", "max_uses": 3}
USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}, "caller": {"type": "direct"}}


def names(calls: Sequence[ToolCall]) -> list[str]:
    return [call.name for call in calls]


def read(*events: dict[str, Any]) -> Any:
    stream = anthropic_messages.stream()
    for event in events:
        stream.add(event)
    return stream


def block_start(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def block_delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def message_delta(stop_reason: str | None) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None}, "usage": {}}


START = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "stop_reason": None}}
STOP = {"type": "message_stop"}


def test_tools_that_anthropic_defines_and_the_agent_runs_are_candidates() -> None:
    body = {"tools": [WEATHER, {**WEATHER, "type": "custom", "name": "time"}, BASH, WEB_SEARCH]}
    assert [c.name for c in anthropic_messages.candidates(body)] == ["weather", "time", "bash", ANSWER]
    forced = anthropic_messages.forced(body, "bash", Rung.NAMED)
    assert forced == {**body, "tool_choice": {"type": "tool", "name": "bash"}}
    assert anthropic_messages.runs_hosted_tools(body)
    assert not anthropic_messages.runs_hosted_tools({"tools": [WEATHER, BASH]})
    assert anthropic_messages.runs_hosted_tools({"tools": [WEATHER], "mcp_servers": [{"type": "url"}]})
    # There is no list of allowed tools here.
    assert anthropic_messages.forced(body, "bash", Rung.ALLOWED) is None


@pytest.mark.parametrize("kind", ["browser_toolset_20260801", "computer_toolset_20260801", "tool_search_tool_bm25_1"])
def test_beside_some_tools_none_can_be_forced(kind: str) -> None:
    body = {"tools": [WEATHER, BASH, {"type": kind}]}
    assert [c.name for c in anthropic_messages.candidates(body)] == ["weather", "bash", ANSWER]
    assert anthropic_messages.forced(body, "weather", Rung.NAMED) is None
    assert anthropic_messages.forced({"tools": [WEATHER, BASH, WEB_SEARCH]}, "weather", Rung.NAMED)
    assert anthropic_messages.forced(body, "weather", Rung.INSTRUCTION) is None


def test_a_tool_that_only_code_may_call_is_no_candidate() -> None:
    by_code = {**WEATHER, "name": "rows", "allowed_callers": ["code_execution_20260521"]}
    body = {"tools": [WEATHER, by_code]}
    assert [c.name for c in anthropic_messages.candidates(body)] == ["weather", ANSWER]
    assert not anthropic_messages.runs_hosted_tools(body)


def test_whether_calls_may_be_parallel_stays_the_agents_to_say() -> None:
    body = {"tools": [WEATHER, BASH], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    choice = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}
    assert anthropic_messages.forced(body, "weather", Rung.NAMED) == {**body, "tool_choice": choice}
    # "none" takes no such member.
    assert anthropic_messages.forced(body, ANSWER, Rung.NAMED) == {**body, "tool_choice": {"type": "none"}}


def test_a_conversation() -> None:
    body = {
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "Where is it warm?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                    {"type": "text", "text": "I shall look."},
                    USE,
                    {"type": "tool_use", "id": "toolu_2", "name": "time", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "4 degrees"},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "noon"}]},
                    {"type": "text", "text": "Go on."},
                    {"type": "image", "source": {}},
                    {"type": "mid_conv_system", "content": [{"type": "text", "text": "Be briefer."}]},
                ],
            },
        ],
    }
    assert anthropic_messages.conversation(body) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is it warm?"},
        {
            "role": "assistant",
            "content": "I shall look.",
            "tool_calls": [
                {"id": "toolu_1", "name": "weather", "arguments": {"city": "Oslo"}},
                {"id": "toolu_2", "name": "time", "arguments": {}},
            ],
        },
        {"role": "tool", "content": "4 degrees", "tool_call_id": "toolu_1"},
        {"role": "tool", "content": "noon", "tool_call_id": "toolu_2"},
        {"role": "user", "content": "Go on. (image)"},
        {"role": "system", "content": "Be briefer."},
    ]


def test_a_call_that_ran_at_anthropic_stands_before_its_result() -> None:
    found = {"type": "web_search_tool_result", "content": [{"type": "web_search_result", "title": "Oslo"}]}
    blocks = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "Oslo"}},
        found,
        {"type": "text", "text": "It is cold."},
    ]
    assert anthropic_messages.conversation({"messages": [{"role": "assistant", "content": blocks}]}) == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "srvtoolu_1", "name": "web_search", "arguments": {"query": "Oslo"}}],
        },
        {"role": "tool", "content": "(web_search_result)"},
        {"role": "assistant", "content": "It is cold."},
    ]


def test_what_a_reply_calls_and_says() -> None:
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "text", "text": "I shall "},
        {"type": "text", "text": "look."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "input": {}},
        USE,
        {"type": "tool_use"},
    ]
    reply = {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"}
    assert names(anthropic_messages.calls(reply)) == ["weather", ""]
    usage = {"input_tokens": 7, "cache_read_input_tokens": 100, "output_tokens": 9}
    assert anthropic_messages.tokens({**reply, "usage": usage}) == (107, 9)
    assert anthropic_messages.choices(reply) == [reply]
    assert anthropic_messages.text(reply) == "I shall look."


def test_a_refusal_calls_nothing() -> None:
    reply = {"type": "message", "content": [], "stop_reason": "refusal"}
    assert (anthropic_messages.calls(reply), anthropic_messages.text(reply)) == ([], "")
    stream = read(START, message_delta("refusal"), STOP)
    assert (stream.calls, stream.text, stream.finished) == ([], "", True)


def test_a_stream_of_text_and_parallel_calls() -> None:
    events = [
        START,
        block_start(0, {"type": "thinking", "thinking": "", "signature": ""}),
        block_delta(0, type="thinking_delta", thinking="Hm."),
        block_delta(0, type="signature_delta", signature="x"),
        {"type": "content_block_stop", "index": 0},
        {"type": "ping"},
        block_start(1, {"type": "text", "text": ""}),
        block_delta(1, type="text_delta", text="I shall "),
        block_delta(1, type="text_delta", text="look."),
        {"type": "content_block_stop", "index": 1},
        block_start(2, {**USE, "input": {}}),
        block_delta(2, type="input_json_delta", partial_json=""),
        block_delta(2, type="input_json_delta", partial_json='{"city": "Oslo"}'),
        {"type": "content_block_stop", "index": 2},
        block_start(3, {"type": "tool_use", "id": "toolu_2", "name": "time", "input": {}}),
        {"type": "content_block_stop", "index": 3},
        block_start(4, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
        {"type": "content_block_stop", "index": 4},
    ]
    assert not read(*events).finished
    stream = read(*events, message_delta("tool_use"), STOP)
    assert (names(stream.calls), stream.text, stream.finished) == (["weather", "time"], "I shall look.", True)
    assert stream.calls == [ToolCall("weather", '{"city": "Oslo"}'), ToolCall("time", {})]


def test_either_of_the_last_two_events_ends_a_stream() -> None:
    assert read(START, message_delta("end_turn")).finished
    assert read(START, STOP).finished
    assert not read(START, message_delta(None)).finished
    assert read(START, message_delta("end_turn"), message_delta(None)).finished


def test_a_stream_that_ends_in_an_error_is_not_finished() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert not read(START, block_start(0, USE), error).finished


def test_unknown_and_broken_events_change_nothing() -> None:
    broken: list[dict[str, Any]] = [
        {}, {"type": "content_block_start"}, {"type": "content_block_start", "content_block": None},
        {"type": "content_block_delta", "delta": None}, {"type": "message_delta"}, {"type": "moonshine", "index": 0},
    ]  # fmt: skip
    stream = read(*broken, {"type": "content_block_start", "content_block": USE}, *broken, STOP)
    assert (names(stream.calls), stream.text, stream.finished) == (["weather"], "", True)
