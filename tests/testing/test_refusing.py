"""Every profile refuses what it says, in its vendor's shape, and nothing else; with each an agent finishes its task."""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from http.client import HTTPConnection, IncompleteRead
from math import exp
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from loopback_client import (
    APIS,
    CHAT,
    GEMINI,
    GEMINI_STREAM,
    MESSAGES,
    RESPONSES,
    Client,
    chat_body,
    chat_message,
    chat_step,
    client_of,
    gemini_body,
    gemini_step,
    message_blocks,
    messages_body,
    messages_step,
    response_items,
    responses_body,
    run,
    user,
)

from agentmark.elicit import ANSWER, Candidate, Decisions, Endpoint, HttpChat, Labels, Situation, Verbalised
from agentmark.testing import PROFILES, Errand, RefusingProvider

REFUSES_ALL = {"bad-key", "no-such-model"}
ERRAND = Errand(1)
SCHEMA = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"], "additionalProperties": False}
FORMAT = {"type": "json_schema", "json_schema": {"name": "weights", "strict": True, "schema": SCHEMA}}
NAMED = {"type": "function", "function": {"name": "ship"}}
ALLOWED = {
    "type": "allowed_tools",
    "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "add"}}]},
}
DECISION = {
    "model": "m",
    "input": ERRAND.task,
    "questions": [{"type": "choice", "name": "q", "choices": [{"value": "add"}, {"value": "ship"}]}],
}
SYSTEM_ONE = {
    "model": "m",
    "state": ERRAND.task,
    "questions": {"q": {"type": "choice", "instructions": "?", "criteria": {"add": None, "ship": None}}},
}


class Case(NamedTuple):
    """A request that a profile refuses."""

    profile: str
    path: str
    body: dict[str, Any]
    status: int
    # A part of the message.
    message: str


def reasoned(kept: bool) -> list[dict[str, Any]]:
    """A conversation in which the model called a tool, with or without what it thought."""
    call = {"id": "c1", "type": "function", "function": {"name": "price", "arguments": '{"item": "lamp"}'}}
    thought = {"reasoning_content": "Hm."} if kept else {}
    said = {"role": "assistant", "content": None, "tool_calls": [call], **thought}
    return [user(ERRAND.task), said, {"role": "tool", "tool_call_id": "c1", "content": "lamp: 8 crowns."}]


def signed(kept: bool) -> list[dict[str, Any]]:
    called = {
        "functionCall": {"name": "price", "args": {"item": "lamp"}},
        **({"thoughtSignature": "eA=="} if kept else {}),
    }
    answered = {"functionResponse": {"name": "price", "response": {"result": "lamp: 8 crowns."}}}
    return [
        {"role": "user", "parts": [{"text": ERRAND.task}]},
        {"role": "model", "parts": [called]},
        {"role": "user", "parts": [answered]},
    ]


FORCED = 'tool_choice: type "tool" and "any" are not supported for this model.'
THINKING_FORCED = "Thinking mode does not support this tool_choice"
NO_SCHEMA = "'response_format' of type 'json_schema' is not supported"
PREFILLED = [user(ERRAND.task), {"role": "assistant", "content": "I will"}]
# `plain` takes each of these requests.
CASES = [
    Case("claude-preserved-thinking", MESSAGES, messages_body(ERRAND, tool_choice={"type": "any"}), 400, FORCED),
    Case(
        "claude-preserved-thinking",
        MESSAGES,
        messages_body(ERRAND, tool_choice={"type": "tool", "name": "add"}),
        400,
        FORCED,
    ),
    Case("claude-preserved-thinking", CHAT, chat_body(ERRAND, tool_choice="required"), 400, FORCED),
    Case("claude-preserved-thinking", CHAT, chat_body(ERRAND, n=2), 400, "n: must be exactly 1"),
    Case(
        "claude-preserved-thinking", MESSAGES, messages_body(ERRAND, temperature=0), 400, "`temperature` is deprecated"
    ),
    Case(
        "claude-preserved-thinking",
        MESSAGES,
        messages_body(ERRAND, messages=PREFILLED),
        400,
        "assistant message prefill",
    ),
    Case(
        "claude-preserved-thinking",
        MESSAGES,
        messages_body(ERRAND, thinking={"type": "disabled"}),
        400,
        "thinking.type.disabled",
    ),
    Case("claude-forced-choice", MESSAGES, messages_body(ERRAND, tool_choice={"type": "any"}), 400, FORCED),
    Case(
        "claude-forced-choice",
        MESSAGES,
        messages_body(ERRAND, tool_choice={"type": "tool", "name": "add"}),
        400,
        FORCED,
    ),
    Case("deepseek-thinking", CHAT, chat_body(ERRAND, tool_choice="required"), 400, THINKING_FORCED),
    Case("deepseek-thinking", CHAT, chat_body(ERRAND, tool_choice=NAMED), 400, THINKING_FORCED),
    Case("deepseek-thinking", CHAT, chat_body(ERRAND, tool_choice=ALLOWED), 400, THINKING_FORCED),
    Case(
        "deepseek-thinking",
        CHAT,
        chat_body(ERRAND, response_format=FORMAT),
        400,
        "response_format type is unavailable now",
    ),
    Case("deepseek-thinking", CHAT, chat_body(ERRAND, n=2), 400, "Invalid n value"),
    Case("deepseek-thinking", "/v1/decisions", DECISION, 404, "Invalid URL (POST /v1/decisions)"),
    Case("deepseek-wants-reasoning", CHAT, chat_body(ERRAND, messages=reasoned(False)), 400, "`reasoning_content`"),
    Case("gpt-5-logprobs-403", CHAT, chat_body(ERRAND, logprobs=True), 403, "not allowed to request logprobs"),
    Case("gpt-5-logprobs-403", CHAT, chat_body(ERRAND, temperature=0), 400, "'temperature' does not support 0"),
    Case("gpt-5-logprobs-403", CHAT, chat_body(ERRAND, max_tokens=9), 400, "Use 'max_completion_tokens'"),
    Case("gpt-5-few-logprobs", CHAT, chat_body(ERRAND, logprobs=True), 400, "when 'reasoning_effort' is 'none'"),
    Case(
        "gpt-5-few-logprobs",
        CHAT,
        chat_body(ERRAND, logprobs=True, top_logprobs=20, reasoning_effort="none"),
        400,
        "equal to 5",
    ),
    Case(
        "gpt-5-few-logprobs",
        CHAT,
        chat_body(ERRAND, logprobs=True, max_completion_tokens=1, reasoning_effort="none"),
        400,
        ">= 4",
    ),
    Case("azure-logprobs-422", CHAT, chat_body(ERRAND, logprobs=True), 422, "doesn't support logprobs"),
    Case("gemini-logprobs-400", CHAT, chat_body(ERRAND, logprobs=True), 400, 'Unknown name "logprobs"'),
    Case(
        "gemini-logprobs-400",
        GEMINI,
        gemini_body(ERRAND, generationConfig={"responseLogprobs": True}),
        400,
        "not enabled for models/gemini-x",
    ),
    Case(
        "gemini-wants-signatures",
        GEMINI,
        gemini_body(ERRAND, contents=signed(False)),
        400,
        "missing a thought_signature",
    ),
    Case("decisions-401", "/v1/decisions", DECISION, 401, "credentials"),
    Case("decisions-401", "/v1/systemone", SYSTEM_ONE, 401, "credentials"),
    Case("decisions-400", "/v1/decisions", DECISION, 400, "Model m does not support"),
    Case("decisions-400", "/v1/systemone", SYSTEM_ONE, 400, "Model m does not support"),
    Case("no-json-schema", CHAT, chat_body(ERRAND, response_format=FORMAT), 400, NO_SCHEMA),
    Case(
        "no-json-schema",
        RESPONSES,
        responses_body(ERRAND, text={"format": {"type": "json_schema", "name": "w", "schema": SCHEMA}}),
        400,
        NO_SCHEMA,
    ),
    Case(
        "no-json-schema",
        MESSAGES,
        messages_body(ERRAND, output_config={"format": {"type": "json_schema", "schema": SCHEMA}}),
        400,
        NO_SCHEMA,
    ),
    Case(
        "no-json-schema", GEMINI, gemini_body(ERRAND, generationConfig={"responseJsonSchema": SCHEMA}), 400, NO_SCHEMA
    ),
    Case("no-n", CHAT, chat_body(ERRAND, n=2), 400, "n = 1"),
    Case(
        "no-n",
        GEMINI,
        gemini_body(ERRAND, generationConfig={"candidateCount": 2}),
        400,
        "Multiple candidates is not enabled",
    ),
    Case("bad-key", CHAT, chat_body(ERRAND), 401, "Incorrect API key"),
    Case("bad-key", MESSAGES, messages_body(ERRAND), 401, "invalid x-api-key"),
    Case("bad-key", GEMINI, gemini_body(ERRAND), 400, "API key not valid"),
    Case("no-such-model", CHAT, chat_body(ERRAND), 404, "The model `m` does not exist"),
    Case("no-such-model", RESPONSES, responses_body(ERRAND), 404, "The model `m` does not exist"),
    Case("no-such-model", MESSAGES, messages_body(ERRAND), 404, "model: m"),
    Case("no-such-model", GEMINI, gemini_body(ERRAND), 404, "models/gemini-x is not found"),
]
# What these do is no refusal of a request, or not of every one: it has tests of its own below.
OTHERWISE = {
    "plain", "thinks-first", "ignores-json-schema", "ignores-n", "rate-limited", "overloaded", "stream-cut", "disobeys",
}  # fmt: skip


@pytest.fixture
def plain() -> Iterator[Client]:
    with RefusingProvider() as provider, client_of(provider) as client:
        yield client


def error_in(path: str, body: Any) -> dict[str, Any]:
    """What an error says, checked for the shape that the vendor's SDK reads."""
    if path == MESSAGES:
        assert body["type"] == "error"
        assert body["request_id"].startswith("req_")
        assert set(body["error"]) == {"type", "message"}
        return body["error"]
    if isinstance(body, list):
        body = body[0]
        assert body["error"]["status"].isupper()
    if path == GEMINI:
        assert set(body["error"]) == {"code", "message", "status"}
        return body["error"]
    assert "code" in body["error"]
    return body["error"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.profile} {case.message}")
def test_a_refusal_fires_and_is_absent_in_plain(case: Case, plain: Client) -> None:
    with RefusingProvider(case.profile) as provider, client_of(provider) as client:
        refused = client.post(case.path, case.body)
    said = error_in(case.path, refused.body)["message"]
    assert refused.status == case.status
    assert case.message in said
    assert provider.refused == [(case.status, said)]
    assert [seen.path for seen in provider.requests] == [case.path]
    assert plain.post(case.path, case.body).status == 200


def test_every_profile_is_tested() -> None:
    assert {case.profile for case in CASES} | OTHERWISE == set(PROFILES)
    assert all(profile.who and profile.name == name for name, profile in PROFILES.items())


def test_the_page_has_a_row_for_every_profile() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
    rows = page.partition("## Profiles")[2].partition("## The errand")[0].splitlines()
    listed = [name for row in rows if row.startswith("| `") for name in re.findall(r"`([\w-]+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(PROFILES)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("profile", sorted(set(PROFILES) - REFUSES_ALL))
def test_an_agent_that_asks_for_nothing_special_finishes(profile: str, api: str) -> None:
    errand = Errand(3)
    with RefusingProvider(profile) as provider, client_of(provider) as client:
        said = run(client, api, errand)
    assert errand.finished(said), said
    assert not [refused for refused in provider.refused if refused[0] not in (429, 503, 529)]


# --- what each profile takes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "path", "body"),
    [
        ("claude-preserved-thinking", MESSAGES, messages_body(ERRAND, tool_choice={"type": "none"})),
        ("claude-preserved-thinking", CHAT, chat_body(ERRAND, logprobs=True)),
        ("deepseek-thinking", CHAT, chat_body(ERRAND, tool_choice="none")),
        ("deepseek-thinking", CHAT, chat_body(ERRAND, tool_choice="required", thinking={"type": "disabled"})),
        ("deepseek-wants-reasoning", CHAT, chat_body(ERRAND, messages=reasoned(True))),
        ("gemini-wants-signatures", GEMINI, gemini_body(ERRAND, contents=signed(True))),
        ("gpt-5-logprobs-403", CHAT, chat_body(ERRAND, temperature=1, tool_choice=NAMED, n=3)),
        ("gpt-5-few-logprobs", CHAT, chat_body(ERRAND, logprobs=True, top_logprobs=5, reasoning_effort="none")),
        ("decisions-401", CHAT, chat_body(ERRAND, response_format=FORMAT)),
        (
            "no-json-schema",
            CHAT,
            chat_body(ERRAND, messages=[user("As JSON.")], response_format={"type": "json_object"}),
        ),
        ("no-n", CHAT, chat_body(ERRAND, n=1)),
    ],
)
def test_what_is_not_refused_is_taken(profile: str, path: str, body: dict[str, Any]) -> None:
    with RefusingProvider(profile) as provider, client_of(provider) as client:
        client.ok(path, body)
    assert provider.refused == []


def test_deepseek_states_its_reasoning_beside_the_reply() -> None:
    with RefusingProvider("deepseek-thinking") as provider, client_of(provider) as client:
        reply = client.ok(CHAT, chat_body(ERRAND))
        assert reply["choices"][0]["message"]["reasoning_content"]
        assert reply["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0
        # What it thinks is spent first, so that a small limit leaves no room for an answer.
        short = client.ok(CHAT, chat_body(ERRAND, tool_choice="none", max_tokens=1))["choices"][0]
    assert short["message"]["content"] == ""
    assert short["finish_reason"] == "length"


def test_some_give_one_choice_whatever_is_asked() -> None:
    with RefusingProvider("ignores-n") as provider, client_of(provider) as client:
        assert len(client.ok(CHAT, chat_body(ERRAND, n=4))["choices"]) == 1
        many = gemini_body(ERRAND, generationConfig={"candidateCount": 4})
        assert len(client.ok(GEMINI, many)["candidates"]) == 1


def test_a_model_that_thinks_aloud_leaves_no_mass_to_letters() -> None:
    question = user("Reply with a letter.\nA. add: an item\nB. ship\nLetter:")
    body = {"model": "m", "messages": [question], "logprobs": True, "top_logprobs": 5, "max_tokens": 1}
    with RefusingProvider("thinks-first") as provider, client_of(provider) as client:
        choice = client.ok(CHAT, body)["choices"][0]
        whole = client.ok(CHAT, {**body, "max_tokens": 100})["choices"][0]["message"]["content"]
    first = choice["logprobs"]["content"][0]
    assert choice["message"]["content"] == first["token"] == "<think>"
    assert max([exp(other["logprob"]) for other in first["top_logprobs"][1:]]) < 1e-6
    assert whole.rpartition("</think>")[2].strip() in ("A", "B")


@pytest.mark.parametrize(("profile", "obeys"), [("plain", True), ("disobeys", False)])
def test_the_last_message_is_an_instruction_unless_the_model_disobeys(profile: str, obeys: bool) -> None:
    said = []
    with RefusingProvider(profile) as provider, client_of(provider) as client:
        for role in ("user", "system"):
            # Too early to ship, so that nobody would do it unasked.
            messages = [user(ERRAND.task), {"role": role, "content": "Call `ship` now."}]
            for _ in range(10):
                reply = client.ok(CHAT, chat_body(ERRAND, messages=messages))
                said += reply["choices"][0]["message"].get("tool_calls") or []
    names = {call["function"]["name"] for call in said}
    assert (names == {"ship"}) is obeys


def test_a_schema_that_is_passed_over_leaves_words_around_the_json() -> None:
    situation = Situation.of([Candidate("add"), Candidate("ship"), ANSWER], [user(ERRAND.task)])
    texts = {}
    for profile in ("plain", "ignores-json-schema"):
        with RefusingProvider(profile) as provider:
            elicitation = Verbalised(HttpChat(Endpoint(provider.base_url, "m"))).elicit(situation)
        assert elicitation.weights is not None
        texts[profile] = elicitation.replies[0]
    assert texts["plain"].startswith("{")
    assert not texts["ignores-json-schema"].startswith("{")


# --- now and then ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "path", "body", "status"),
    [
        ("rate-limited", CHAT, chat_body(ERRAND), 429),
        ("rate-limited", MESSAGES, messages_body(ERRAND), 429),
        ("rate-limited", GEMINI, gemini_body(ERRAND), 429),
        ("overloaded", CHAT, chat_body(ERRAND), 503),
        ("overloaded", MESSAGES, messages_body(ERRAND), 529),
        ("overloaded", GEMINI, gemini_body(ERRAND), 503),
    ],
)
def test_every_third_request_is_too_many(profile: str, path: str, body: dict[str, Any], status: int) -> None:
    with RefusingProvider(profile) as provider, client_of(provider) as client:
        answers = [client.post(path, body) for _ in range(7)]
    assert [answered.status for answered in answers] == [200, 200, status, 200, 200, status, 200]
    assert error_in(path, answers[2].body)
    if status == 429:
        assert answers[2].headers["Retry-After"] == "1"


def test_how_often_can_be_said() -> None:
    often = replace(PROFILES["rate-limited"], every=2)
    with RefusingProvider(often) as provider, client_of(provider) as client:
        assert [client.post(CHAT, chat_body(ERRAND)).status for _ in range(4)] == [200, 429, 200, 429]


@pytest.mark.parametrize(
    ("path", "body", "end"),
    [
        (CHAT, chat_body(ERRAND, stream=True), b"[DONE]"),
        (RESPONSES, responses_body(ERRAND, stream=True), b"response.completed"),
        (MESSAGES, messages_body(ERRAND, stream=True), b"message_stop"),
        (GEMINI_STREAM, gemini_body(ERRAND, toolConfig={"functionCallingConfig": {"mode": "NONE"}}), b"STOP"),
    ],
)
def test_every_third_stream_breaks_off(path: str, body: dict[str, Any], end: bytes) -> None:
    with RefusingProvider("stream-cut") as provider, client_of(provider) as client:
        for _ in range(2):
            client.events(path, body)
            client.events(path, body)
            with pytest.raises(IncompleteRead) as cut:
                client.events(path, body)
            assert b"data: " in cut.value.partial
            assert end not in cut.value.partial
        # What is no stream never breaks off.
        for _ in range(3):
            client.ok(CHAT, chat_body(ERRAND))


# --- preserved thinking ----------------------------------------------------------------------------------------------

BOUND = "The block is bound to a different conversation"
DROP = {"prefix_mismatch_behavior": "drop_block"}


@pytest.fixture
def replayed() -> dict[str, Any]:
    """A request that carries the thinking of two turns, with something said at its end."""
    errand = Errand(1)
    body = messages_body(errand)
    with RefusingProvider("claude-preserved-thinking") as provider, client_of(provider) as client:
        for _ in range(2):
            messages_step(body, client.ok(MESSAGES, body), errand)
    assert body["messages"][1]["content"][0]["type"] == "thinking"
    return body


def asked_of_claude(body: dict[str, Any]) -> tuple[int, str]:
    with RefusingProvider("claude-preserved-thinking") as provider, client_of(provider) as client:
        answered = client.post(MESSAGES, body)
    return answered.status, json.dumps(answered.body)


def test_thinking_is_taken_back_as_it_was(replayed: dict[str, Any]) -> None:
    assert asked_of_claude(replayed)[0] == 200
    later = deepcopy(replayed)
    later["messages"][-1]["content"].append({"type": "text", "text": "Call ship now."})
    assert asked_of_claude(later)[0] == 200


def test_marks_for_the_cache_change_nothing(replayed: dict[str, Any]) -> None:
    replayed["system"] = "You shop."
    replayed["tools"][-1] = {**replayed["tools"][-1], "cache_control": {"type": "ephemeral"}}
    replayed["messages"][0]["content"] = [
        {"type": "text", "text": replayed["messages"][0]["content"], "cache_control": {"type": "ephemeral"}}
    ]
    assert asked_of_claude(replayed)[0] == 200


@pytest.mark.parametrize("change", ["tools", "system", "message", "result", "earlier thinking left out"])
def test_thinking_behind_something_else_is_refused(change: str, replayed: dict[str, Any]) -> None:
    whole = deepcopy(replayed)
    messages = replayed["messages"]
    if change == "tools":
        replayed["tools"] = replayed["tools"][:1]
    elif change == "system":
        replayed["system"] += " Now."
    elif change == "message":
        messages[0]["content"] += "!"
    elif change == "result":
        messages[2]["content"][0]["content"] += "!"
    else:
        messages[1]["content"] = messages[1]["content"][1:]
    status, said = asked_of_claude(replayed)
    assert status == 400
    assert BOUND in said
    place = 3 if change in ("result", "earlier thinking left out") else 1
    assert f"messages.{place}.content.0: Invalid `signature` in `thinking` block." in said
    assert asked_of_claude({**replayed, "thinking": {"type": "adaptive", "block_binding": DROP}})[0] == 200
    with RefusingProvider("claude-forced-choice") as provider, client_of(provider) as client:
        client.ok(MESSAGES, replayed)
    assert asked_of_claude(whole)[0] == 200


def test_thinking_that_was_edited_is_refused(replayed: dict[str, Any]) -> None:
    replayed["messages"][1]["content"][0]["thinking"] += "!"
    status, said = asked_of_claude(replayed)
    assert status == 400
    assert "messages.1.content.0: Invalid `signature` in `thinking` block" in said
    assert BOUND not in said


# --- what every provider refuses -------------------------------------------------------------------------------------

LOOSE = {"type": "json_schema", "json_schema": {"name": "w", "strict": True, "schema": {"type": "object"}}}
CALL_ITEM = {"type": "function_call", "call_id": "c", "name": "ship", "arguments": "{}"}
OUTPUT_ITEM = {"type": "function_call_output", "call_id": "c", "output": ""}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ship", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": ""}]}
AUTO_ALLOWED = {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["add"]}}


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (CHAT, {"model": "m"}, "'messages'"),
        (CHAT, {"model": "m", "messages": [user("x")], "tool_choice": "auto"}, "only allowed when 'tools' are"),
        (CHAT, chat_body(ERRAND, messages=reasoned(True)[:2]), "must be followed by tool messages"),
        (CHAT, chat_body(ERRAND, messages=[*reasoned(True)[:2], user("x")]), "must be followed by tool messages"),
        (CHAT, chat_body(ERRAND, messages=reasoned(True)[2:]), "must be a response to a preceeding message"),
        (CHAT, chat_body(ERRAND, tool_choice={"type": "function", "function": {"name": "x"}}), "'x' not found"),
        (CHAT, chat_body(ERRAND, top_logprobs=3), "only allowed when 'logprobs'"),
        (CHAT, chat_body(ERRAND, logprobs=True, top_logprobs=21), "less than or equal to 20"),
        (CHAT, chat_body(ERRAND, response_format={"type": "json_object"}), "the word 'json'"),
        (CHAT, chat_body(ERRAND, response_format=LOOSE), "additionalProperties"),
        (RESPONSES, {"model": "m"}, "'input'"),
        (RESPONSES, responses_body(ERRAND, n=2), "Unknown parameter: 'n'"),
        (RESPONSES, responses_body(ERRAND, max_output_tokens=1), ">= 16"),
        (RESPONSES, responses_body(ERRAND, input=[CALL_ITEM]), "No tool output found"),
        (RESPONSES, responses_body(ERRAND, input=[OUTPUT_ITEM]), "No tool call found"),
        (RESPONSES, responses_body(ERRAND, previous_response_id="resp_x"), "not found"),
        (MESSAGES, {"model": "m", "messages": [user("x")]}, "max_tokens: Field required"),
        (MESSAGES, messages_body(ERRAND, n=2), "n: Extra inputs are not permitted"),
        (MESSAGES, messages_body(ERRAND, tools=[], tool_choice={"type": "auto"}), "while providing tools"),
        (MESSAGES, messages_body(ERRAND, messages=[user("x"), USE, user("y")]), "without `tool_result` blocks"),
        (MESSAGES, messages_body(ERRAND, messages=[RESULT]), "unexpected `tool_use_id`"),
        (GEMINI, {}, "contents is not specified"),
        (GEMINI, gemini_body(ERRAND, contents=signed(True)[:2]), "number of function response parts"),
        (GEMINI, gemini_body(ERRAND, toolConfig=AUTO_ALLOWED), "only when function calling mode is ANY"),
        ("/v1/decisions", {**DECISION, "questions": [{"type": "choice", "choices": [{"value": "add"}]}]}, "2 to 255"),
    ],
)
def test_what_no_provider_takes_is_refused_by_plain_too(
    path: str, body: dict[str, Any], message: str, plain: Client
) -> None:
    answered = plain.post(path, body)
    assert answered.status == 400
    assert message in error_in(path, answered.body)["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"model": "m", "messages": ["x"]}),
        (CHAT, chat_body(ERRAND, tools=["add"])),
        (CHAT, chat_body(ERRAND, n="three")),
        (CHAT, chat_body(ERRAND, response_format="json")),
        (RESPONSES, {"model": "m", "input": [1]}),
        (MESSAGES, messages_body(ERRAND, messages=[None])),
        (MESSAGES, messages_body(ERRAND, tool_choice="any")),
        (GEMINI, {"contents": [{"parts": [1]}]}),
    ],
)
def test_what_has_no_shape_is_refused_as_such(
    path: str, body: dict[str, Any], plain: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    answered = plain.post(path, body)
    assert answered.status == 400
    assert error_in(path, answered.body)["message"]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        (CHAT, chat_body(ERRAND), {"Authorization": "Bearer sk-1"}),
        (CHAT, chat_body(ERRAND), {"api_key": "sk-1"}),
        (MESSAGES, messages_body(ERRAND), {"x_api_key": "sk-1"}),
        (GEMINI, gemini_body(ERRAND), {"x_goog_api_key": "sk-1"}),
        (f"{GEMINI}?key=sk-1", gemini_body(ERRAND), {}),
    ],
)
def test_a_key_can_be_asked_for(path: str, body: dict[str, Any], headers: dict[str, str]) -> None:
    with RefusingProvider(api_key="sk-1") as provider:
        with client_of(provider, **headers) as client:
            client.ok(path, body)
        with client_of(provider, Authorization="Bearer sk-2") as client:
            assert client.post(path.partition("?")[0], body).status in (400, 401)
    assert len(provider.refused) == 1


def test_anthropic_wants_its_version_said() -> None:
    with RefusingProvider() as provider:
        connection = HTTPConnection(provider.base_url.split("/")[2], timeout=5)
        connection.request("POST", MESSAGES, json.dumps(messages_body(ERRAND)))
        response = connection.getresponse()
        assert (response.status, "anthropic-version" in response.read().decode()) == (400, True)
        connection.close()


def test_unknown_routes_and_broken_bodies(plain: Client) -> None:
    assert plain.post("/v1/elsewhere", {}).status == 404
    assert plain.post(CHAT, ["no object"]).status == 400


# --- what is asked for is done ---------------------------------------------------------------------------------------


def called(choice: dict[str, Any]) -> set[str]:
    return {call["function"]["name"] for call in choice["message"].get("tool_calls") or ()}


def test_tool_choice_is_obeyed(plain: Client) -> None:
    def names(**members: Any) -> list[set[str]]:
        return [called(choice) for choice in plain.ok(CHAT, chat_body(ERRAND, n=30, **members))["choices"]]

    assert set().union(*names()) >= {"search", "price", "add", "deliver_to"}
    assert names(tool_choice="none") == [set()] * 30
    assert names(tool_choice=NAMED) == [{"ship"}] * 30
    assert names(tool_choice=ALLOWED) == [{"add"}] * 30
    assert all(names(tool_choice="required"))
    together = [len(choice["message"].get("tool_calls") or ()) for choice in
                plain.ok(CHAT, chat_body(ERRAND, n=60))["choices"]]  # fmt: skip
    assert 2 in together
    apart = plain.ok(CHAT, chat_body(ERRAND, n=60, parallel_tool_calls=False))["choices"]
    assert {len(choice["message"]["tool_calls"]) for choice in apart} == {1}
    forced = plain.ok(MESSAGES, messages_body(ERRAND, tool_choice={"type": "tool", "name": "ship"}))
    assert [block["name"] for block in forced["content"] if block["type"] == "tool_use"] == ["ship"]
    anywhere = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["price"]}}
    parts = plain.ok(GEMINI, gemini_body(ERRAND, toolConfig=anywhere))["candidates"][0]["content"]["parts"]
    assert {part["functionCall"]["name"] for part in parts if "functionCall" in part} == {"price"}
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "ship"}]}
    items = plain.ok(RESPONSES, responses_body(ERRAND, tool_choice=choice))["output"]
    assert [item["name"] for item in items if item["type"] == "function_call"] == ["ship"]


@pytest.mark.parametrize("api", APIS)
def test_at_temperature_zero_every_reply_is_the_same(api: str) -> None:
    path, make_body, _ = APIS[api]
    members: dict[str, Any] = {"generationConfig": {"temperature": 0}} if api == "gemini" else {"temperature": 0}
    said = set()
    for seed in range(3):
        with RefusingProvider(seed=seed) as provider, client_of(provider) as client:
            for _ in range(3):
                reply = json.dumps(client.ok(path, make_body(ERRAND, **members)))
                said.add(json.dumps(without_ids(json.loads(reply))))
    assert len(said) == 1
    # The likeliest behavior.
    assert '"add"' in reply


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        gone = ("id", "call_id", "created", "created_at", "responseId", "usage", "usageMetadata")
        return {name: without_ids(member) for name, member in value.items() if name not in gone}
    return [without_ids(member) for member in value] if isinstance(value, list) else value


def test_a_repeated_request_is_a_fresh_draw_and_a_seed_repeats_all() -> None:
    runs = []
    for _ in range(2):
        with RefusingProvider(seed=7) as provider, client_of(provider) as client:
            runs.append([client.ok(CHAT, chat_body(ERRAND))["choices"] for _ in range(12)])
    assert runs[0] == runs[1]
    assert len({str(called(choices[0])) for choices in runs[0]}) > 1


def test_responses_are_kept_for_the_next_request(plain: Client) -> None:
    errand = Errand(1)
    body = responses_body(errand)
    for _ in range(40):
        reply = plain.ok(RESPONSES, body)
        outputs = [
            {"type": "function_call_output", "call_id": item["call_id"],
             "output": errand.call(item["name"], json.loads(item["arguments"]))}
            for item in reply["output"] if item["type"] == "function_call"
        ]  # fmt: skip
        if not outputs:
            break
        body = responses_body(errand, input=outputs, previous_response_id=reply["id"])
    assert errand.finished(reply["output"][0]["content"][0]["text"])


# --- streams ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["plain", "claude-preserved-thinking"])
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_a_stream_says_what_the_whole_reply_says(profile: str, api: str) -> None:
    path, make_body, _ = APIS[api]
    for seed in range(10):
        with RefusingProvider(profile, seed=seed) as provider, client_of(provider) as client:
            events = client.events(path, make_body(ERRAND, stream=True))
        with RefusingProvider(profile, seed=seed) as provider, client_of(provider) as client:
            whole = client.ok(path, make_body(ERRAND))
        if api == "chat":
            message = {**whole["choices"][0]["message"], "role": None, "refusal": None, "annotations": None}
            assert chat_message(events) == {name: value for name, value in message.items() if value}
        elif api == "responses":
            assert response_items(events) == whole["output"]
        else:
            assert message_blocks(events) == whole["content"]


def test_a_stream_of_several_choices_with_usage(plain: Client) -> None:
    body = chat_body(ERRAND, n=3, stream=True, stream_options={"include_usage": True})
    events = plain.events(CHAT, body)
    pieces: dict[int, str] = {}
    for event in events[:-1]:
        assert event["usage"] is None
        for choice in event["choices"]:
            for call in choice["delta"].get("tool_calls") or ():
                pieces[choice["index"]] = pieces.get(choice["index"], "") + call["function"]["arguments"]
    assert sorted(pieces) == [0, 1, 2]
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["total_tokens"] > 0
    finished = [choice["index"] for event in events for choice in event["choices"] if choice["finish_reason"]]
    assert sorted(finished) == [0, 1, 2]


def test_gemini_streams_events_or_a_list(plain: Client) -> None:
    calls = {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}
    events = plain.events(GEMINI_STREAM, gemini_body(ERRAND, **calls))
    assert events[-1]["candidates"][0]["finishReason"] == "STOP"
    assert "functionCall" in json.dumps(events[-1])
    listed = plain.ok(GEMINI_STREAM.partition("?")[0], gemini_body(ERRAND, **calls))
    assert "functionCall" in json.dumps(listed[-1])
    with RefusingProvider() as provider, client_of(provider) as client:
        whole = client.ok(GEMINI, gemini_body(ERRAND, **calls))["candidates"][0]["content"]["parts"]
    said = [event["candidates"][0]["content"]["parts"][0] for event in events]
    assert [part["functionCall"] for part in said if "functionCall" in part] == [
        part["functionCall"] for part in whole if "functionCall" in part
    ]


# --- counts ----------------------------------------------------------------------------------------------------------


def test_every_reply_counts_its_tokens(plain: Client) -> None:
    usage = plain.ok(CHAT, chat_body(ERRAND))["usage"]
    assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"]
    # The tools and the task are some 1,200 characters of JSON.
    assert 200 < usage["prompt_tokens"] < 600
    assert 0 < usage["completion_tokens"] < 60
    assert plain.ok(RESPONSES, responses_body(ERRAND))["usage"]["output_tokens"] > 0
    assert plain.ok(MESSAGES, messages_body(ERRAND))["usage"]["input_tokens"] > 0
    assert plain.ok(GEMINI, gemini_body(ERRAND))["usageMetadata"]["totalTokenCount"] > 0
    assert plain.ok("/v1/messages/count_tokens", {"messages": [user("x" * 400)]})["input_tokens"] > 100
    assert plain.ok("/v1/decisions", DECISION)["usage"]["input_tokens"] > 0


def test_the_provider_knows_what_it_was_paid_for() -> None:
    with RefusingProvider(delay_s=0.05) as provider, client_of(provider) as client:
        began = time.monotonic()
        said = [client.ok(CHAT, chat_body(ERRAND, n=count))["usage"] for count in (1, 4)]
        assert time.monotonic() - began >= 0.1
    assert [usage.total for usage in provider.usage] == [usage["total_tokens"] for usage in said]
    assert provider.usage[1].output > provider.usage[0].output
    # The second request begins as the first did, and ends so: all of it is cached.
    assert provider.usage[1].cached > 0.9 * provider.usage[1].input


def test_the_cacheable_share_falls_when_tools_are_filtered() -> None:
    shares = []
    for is_filtered in (False, True):
        errand = Errand(2)
        body = chat_body(errand)
        with RefusingProvider() as provider, client_of(provider) as client:
            for step in range(8):
                tools = errand.chat_tools
                sent = {**body, "tools": [tools[step % 5]] if is_filtered else tools}
                reply = client.ok(CHAT, sent)
                if chat_step(body, reply, errand) is not None:
                    break
            assert len(provider.cacheable_shares()) == len(provider.requests)
            assert provider.cacheable_shares()[0] == 0.0
            shares.append(provider.cacheable_share())
    untouched, filtered = shares
    assert untouched > 0.7
    assert filtered < 0.5


# --- our own questions -----------------------------------------------------------------------------------------------


def test_all_ways_of_asking_hear_the_same_policy() -> None:
    situation = Situation.of([*[Candidate(tool["name"]) for tool in ERRAND.schemas], ANSWER], [user(ERRAND.task)])
    with RefusingProvider() as provider:
        endpoint = Endpoint(provider.base_url, "m")
        chat = HttpChat(endpoint)
        heard = [
            elicitor.elicit(situation).weights
            for elicitor in (
                Decisions(endpoint),
                Decisions(endpoint, route="systemone"),
                Labels(chat),
                Verbalised(chat),
                Verbalised(chat, strict_schema=False),
            )
        ]
    for weights in heard:
        assert weights is not None
        total = sum([float(weight) for weight in weights.values()])
        assert {name: round(float(weight) / total, 2) for name, weight in weights.items()} == pytest.approx(
            {name: round(float(weight), 2) for name, weight in (heard[0] or {}).items()}, abs=0.011
        )


# --- the server ------------------------------------------------------------------------------------------------------


def test_many_at_once() -> None:
    def one_run(seed: int) -> bool:
        errand = Errand(seed)
        with client_of(provider) as client:
            return errand.finished(run(client, list(APIS)[seed % 4], errand))

    with RefusingProvider() as provider, ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one_run, range(16)))
        assert len(provider.requests) == len(provider.cacheable_shares())


def test_who_hangs_up_leaves_no_trace(capfd: pytest.CaptureFixture[str]) -> None:
    body = json.dumps(chat_body(ERRAND, stream=True, n=50))
    with RefusingProvider() as provider:
        for _ in range(5):
            connection = HTTPConnection(provider.base_url.split("/")[2], timeout=5)
            connection.request("POST", CHAT, body, {"Content-Type": "application/json"})
            connection.close()
        with client_of(provider) as client:
            client.ok(CHAT, chat_body(ERRAND))
    assert capfd.readouterr() == ("", "")


def test_a_provider_that_is_gone_answers_nobody() -> None:
    with RefusingProvider() as provider:
        client = Client(provider)
        client.ok(CHAT, chat_body(ERRAND))
    with pytest.raises(OSError):  # noqa: PT011 - reset or refused, as the system has it
        client.post(CHAT, chat_body(ERRAND))
    client.close()


def test_gemini_thinks_with_a_signature_on_the_first_call() -> None:
    body = gemini_body(ERRAND, toolConfig={"functionCallingConfig": {"mode": "ANY"}})
    with RefusingProvider("gemini-wants-signatures") as provider, client_of(provider) as client:
        reply = client.ok(GEMINI, body)
        gemini_step(body, reply, Errand(1))
        client.ok(GEMINI, body)
    signed_parts = [
        "thoughtSignature" in part for part in reply["candidates"][0]["content"]["parts"] if "functionCall" in part
    ]
    assert signed_parts[0]
    assert not any(signed_parts[1:])
