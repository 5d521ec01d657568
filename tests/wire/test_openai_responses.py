"""The Responses API, in the shape of the documentation and of providers that leave things out."""

from collections.abc import Sequence
from typing import Any

import pytest

from agentmark.elicit.situation import ANSWER, ToolCall
from agentmark.wire import openai_responses
from agentmark.wire.forcing import Rung

WEATHER = {"type": "function", "name": "weather", "description": "Now.", "parameters": {"type": "object"}}
SQL = {"type": "custom", "name": "sql"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Oslo"}'}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "It is warm.", "annotations": []}],
}


def names(calls: Sequence[ToolCall]) -> list[str]:
    return [call.name for call in calls]


def read(*events: dict[str, Any]) -> Any:
    stream = openai_responses.stream()
    for event in events:
        stream.add(event)
    return stream


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def ended(*output: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"id": "resp_1", "status": status, "output": list(output)}}


CREATED = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}


def test_tools_that_are_called_by_their_kind() -> None:
    tools = [WEATHER, SQL, {"type": "shell", "environment": {"type": "local"}}, {"type": "apply_patch"}]
    body = {"tools": tools}
    offered = [candidate.name for candidate in openai_responses.candidates(body)]
    assert offered == ["weather", "sql", "shell", "apply_patch", ANSWER]
    forced = [openai_responses.forced(body, name, Rung.NAMED) for name in offered[:-1]]
    assert [changed["tool_choice"] for changed in forced if changed] == [
        {"type": "function", "name": "weather"}, {"type": "custom", "name": "sql"},
        {"type": "shell"}, {"type": "apply_patch"},
    ]  # fmt: skip
    assert openai_responses.forced(body, "shell", Rung.ALLOWED) == {
        **body,
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "shell"}]},
    }


@pytest.mark.parametrize(("mode", "answer"), [("auto", [ANSWER]), ("required", [])])
def test_a_list_of_allowed_tools_leaves_those_open(mode: str, answer: list[str]) -> None:
    listed = [{"type": "function", "name": "weather"}, {"type": "shell"}]
    body = {
        "tools": [WEATHER, SQL, {"type": "shell"}],
        "tool_choice": {"type": "allowed_tools", "mode": mode, "tools": listed},
    }
    assert [candidate.name for candidate in openai_responses.candidates(body)] == ["weather", "shell", *answer]


def test_an_instruction_comes_after_the_conversation() -> None:
    told = {"role": "user", "content": "Call weather now."}
    asked = {"role": "user", "content": "Hello."}
    assert openai_responses.forced({"input": "Hello."}, "weather", Rung.INSTRUCTION) == {"input": [asked, told]}
    assert openai_responses.forced({"input": [asked]}, "weather", Rung.INSTRUCTION) == {"input": [asked, told]}


def test_a_shell_in_the_providers_container_is_hosted() -> None:
    shell = {"type": "shell", "environment": {"type": "container_auto"}}
    assert [c.name for c in openai_responses.candidates({"tools": [shell, WEATHER]})] == ["weather", ANSWER]
    assert openai_responses.runs_hosted_tools({"tools": [shell, WEATHER]})
    assert not openai_responses.runs_hosted_tools({"tools": [{"type": "shell"}, WEATHER]})
    reply = {
        "output": [
            {"type": "shell_call", "call_id": "call_2", "action": {"commands": ["ls"]}},
            {"type": "shell_call_output", "call_id": "call_2", "output": []},
            CALL,
        ]
    }
    assert names(openai_responses.calls(reply)) == ["weather"]


@pytest.mark.parametrize(
    ("tool", "offered"),
    [
        ({"type": "computer"}, ["computer"]),
        ({"type": "computer_use_preview", "environment": "browser"}, ["computer"]),
        ({"type": "local_shell"}, ["local_shell"]),
        ({"type": "namespace", "name": "clock", "tools": [{"type": "function", "name": "time"}]}, ["time"]),
        ({"type": "programmatic_tool_calling"}, []),
        ({"type": "tool_search"}, []),
    ],
)
def test_beside_some_tools_none_can_be_forced(tool: dict[str, Any], offered: list[str]) -> None:
    body = {"tools": [WEATHER, tool]}
    assert [candidate.name for candidate in openai_responses.candidates(body)] == ["weather", *offered, ANSWER]
    for rung in (Rung.NAMED, Rung.ALLOWED):
        assert openai_responses.forced(body, "weather", rung) is None
        assert openai_responses.forced({"tools": [WEATHER, SQL]}, "weather", rung)
    assert openai_responses.forced(body, "weather", Rung.INSTRUCTION)


def test_a_conversation_of_items() -> None:
    body = {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Where is it warm?"},
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Look:"}, {"type": "input_image", "image_url": "data:"}],
            },
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            CALL,
            {"type": "function_call_output", "call_id": "call_1", "output": "4 degrees"},
            {"type": "custom_tool_call", "call_id": "call_2", "name": "sql", "input": "SELECT 1"},
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "1"}]},
            {"type": "local_shell_call", "call_id": "call_3", "action": {"command": ["ls"]}},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "item_reference", "id": "msg_0"},
            SAID,
        ],
    }
    assert openai_responses.conversation(body) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is it warm?"},
        {"role": "user", "content": "Look: (input_image)"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_1", "name": "weather", "arguments": '{"city":"Oslo"}'}],
        },
        {"role": "tool", "content": "4 degrees", "tool_call_id": "call_1"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_2", "name": "sql", "arguments": "SELECT 1"}],
        },
        {"role": "tool", "content": "1", "tool_call_id": "call_2"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_3", "name": "local_shell", "arguments": {"command": ["ls"]}}],
        },
        {"role": "assistant", "content": "", "tool_calls": [{"name": "web_search", "arguments": ""}]},
        {"role": "assistant", "content": "It is warm."},
    ]


def test_a_conversation_of_one_line() -> None:
    assert openai_responses.conversation({"input": "Hello."}) == [{"role": "user", "content": "Hello."}]
    assert openai_responses.conversation({}) == []


def test_what_a_reply_calls_and_says() -> None:
    reply = {
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            SAID,
            CALL,
            {"type": "custom_tool_call", "name": "sql", "input": ""},
            {"type": "apply_patch_call", "call_id": "call_3"},
            {"type": "computer_call", "call_id": "call_4"},
            {"type": "function_call"},
        ]
    }
    assert names(openai_responses.calls(reply)) == ["weather", "sql", "apply_patch", "computer", ""]
    assert openai_responses.calls(reply)[0] == ToolCall("weather", '{"city":"Oslo"}')
    assert openai_responses.choices(reply) == [reply]
    used = {**reply, "usage": {"input_tokens": 7, "output_tokens": 9}}
    assert openai_responses.tokens(used) == (7, 9)
    assert openai_responses.text(reply) == "It is warm."


def test_a_reply_with_a_refusal_says_it() -> None:
    refused = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    assert openai_responses.calls({"output": [refused]}) == []
    assert openai_responses.text({"output": [refused]}) == "I cannot."


def test_a_stream_of_a_call() -> None:
    begun = {**CALL, "arguments": "", "status": "in_progress"}
    events: list[dict[str, Any]] = [
        CREATED,
        {"type": "response.in_progress", "response": {}},
        added(0, begun),
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0, "delta": '{"city":'},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 0, "delta": '"Oslo"}'},
        {"type": "response.function_call_arguments.done", "item_id": "fc_1", "arguments": '{"city":"Oslo"}'},
        done(0, CALL),
    ]
    assert not read(*events).finished
    stream = read(*events, ended(CALL))
    assert (names(stream.calls), stream.text, stream.finished) == (["weather"], "", True)


def test_a_stream_of_text() -> None:
    deltas = [{"type": "response.output_text.delta", "item_id": "msg_1", "delta": part} for part in ("It is ", "warm.")]
    begun = [CREATED, added(0, {**SAID, "content": []}), *deltas]
    assert read(*begun).text == "It is warm."
    stream = read(*begun, done(0, SAID), ended(SAID))
    assert (stream.calls, stream.text, stream.finished) == ([], "It is warm.", True)


def test_a_stream_of_a_refusal() -> None:
    stream = read({"type": "response.refusal.delta", "delta": "I cannot."}, ended())
    assert (stream.calls, stream.text, stream.finished) == ([], "I cannot.", True)


def test_a_last_event_without_items() -> None:
    """Some providers send each item, and end without repeating them; some send no word of an item that is done."""
    other = {**CALL, "id": "fc_2", "call_id": "call_2", "name": "time"}
    assert names(read(CREATED, done(0, CALL), done(1, other), ended()).calls) == ["weather", "time"]
    assert names(read(CREATED, added(0, CALL), added(1, other), {"type": "response.completed"}).calls) == [
        "weather",
        "time",
    ]


def test_an_item_that_is_done_has_its_name_even_if_it_began_without() -> None:
    assert names(read(added(0, {**CALL, "name": ""}), done(0, CALL), ended()).calls) == ["weather"]


def test_the_last_event_has_the_last_word() -> None:
    assert names(read(done(0, SAID), ended(SAID, CALL)).calls) == ["weather"]


def test_a_reply_that_a_limit_cut_short_is_finished_and_one_that_failed_is_not() -> None:
    assert read(done(0, CALL), ended(CALL, status="incomplete")).finished
    assert not read(done(0, CALL), ended(status="failed")).finished
    assert not read(done(0, CALL), {"type": "error", "code": "server_error", "message": "gone"}).finished


def test_unknown_and_broken_events_change_nothing() -> None:
    broken: list[dict[str, Any]] = [
        {}, {"type": None}, {"type": "response.moonshine.delta", "delta": "x"}, {"type": "keepalive"},
        {"type": "response.output_text.delta"},
    ]  # fmt: skip
    stream = read(*broken, done(0, CALL), {"type": "response.output_item.done", "item": None}, ended())
    assert (names(stream.calls), stream.text, stream.finished) == (["weather"], "", True)
