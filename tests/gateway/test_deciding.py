import json
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from loopback_client import (
    CHAT,
    MESSAGES,
    RESPONSES,
    chat_body,
    chat_message,
    client_of,
    message_blocks,
    messages_body,
    response_items,
    responses_body,
    run,
)
from running import eventually, gateway

from agentmark.testing import Errand, RefusingProvider

THREE = ("chat", "responses", "messages")
BODIES = {CHAT: chat_body, RESPONSES: responses_body, MESSAGES: messages_body}


@pytest.mark.parametrize("mode", ["proposals", "stated"])
@pytest.mark.parametrize("api", THREE)
def test_an_agent_finishes_its_task_and_its_identity_is_read_back(tmp_path: Path, api: str, mode: str) -> None:
    with RefusingProvider() as provider, gateway(tmp_path, provider.root_url, "--mode", mode) as running:
        with client_of(running) as client:
            for seed in range(8):
                errand = Errand(seed)
                assert errand.answer in (run(client, api, errand) or "")
                assert errand.done
        found = running.records()
    assert len(found) > 30
    assert all(record.marked for record in found)
    assert len({record.context for record in found}) == len(found)
    assert running.is_attributed()


@pytest.mark.parametrize("mode", ["proposals", "stated"])
@pytest.mark.parametrize("path", BODIES)
def test_a_stream_says_what_the_provider_said_byte_for_byte(tmp_path: Path, path: str, mode: str) -> None:
    errand = Errand(1)
    body = BODIES[path](errand, stream=True)
    with RefusingProvider() as provider, gateway(tmp_path, provider.root_url, "--mode", mode) as running:
        answered = running.ask(path, body)
        found = running.records()
    assert answered.status == 200
    assert answered.headers["content-type"] == "text/event-stream"
    lines = [
        line.removeprefix("data: ") for line in answered.content.decode().splitlines() if line.startswith("data: ")
    ]
    events = [json.loads(line) for line in lines if line != "[DONE]"]
    if path == CHAT:
        done = [call["function"]["name"] for call in chat_message(events)["tool_calls"]]
    elif path == RESPONSES:
        done = [item["name"] for item in response_items(events) if item["type"] == "function_call"]
    else:
        done = [block["name"] for block in message_blocks(events) if block["type"] == "tool_use"]
    assert [" + ".join(sorted(set(done)))] == [record.behavior for record in found]


def test_nothing_to_decide_passes_unmarked_and_is_counted(tmp_path: Path) -> None:
    errand = Errand(1)
    with RefusingProvider() as provider, gateway(tmp_path, provider.root_url) as running:
        for body in (
            {"model": "m", "messages": [{"role": "user", "content": "hello"}]},
            chat_body(errand, tool_choice={"type": "function", "function": {"name": "search"}}),
            chat_body(errand, n=2),
        ):
            assert running.ask(CHAT, body).status == 200
        assert len(provider.requests) == 3
        assert running.records() == []
        assert running.count("agentmark_unmarked_total", reason="no tools on offer") == 1
        assert running.count("agentmark_unmarked_total", reason="nothing is left to decide") == 1
        assert running.count("agentmark_unmarked_total", reason="the agent asks for several replies at once") == 1
        # These would be a choice, and are recorded as unmarked with the reason.
        for members in ({"temperature": 0}, {"seed": 3}):
            assert running.ask(CHAT, chat_body(errand, **members)).status == 200
        assert len(provider.requests) == 5
        found = running.records()
    assert [record.marked for record in found] == [False, False]
    assert ["temperature 0" in (record.reason or "") for record in found] == [True, False]
    assert "seed" in (found[1].reason or "")


def test_samples_are_the_request_as_the_agent_made_it(tmp_path: Path) -> None:
    body = chat_body(Errand(2))
    with RefusingProvider() as provider, gateway(tmp_path, provider.root_url, "--samples", "3") as running:
        headers = {"authorization": "Bearer sk-mine", "openai-beta": "x=1", "traceparent": "00-aa-bb-01"}
        assert running.ask(CHAT, body, headers={**headers, "idempotency-key": "once"}).status == 200
        seen = provider.requests
    assert [asked.body for asked in seen] == [body] * 3
    for asked in seen:
        names = {name.lower(): value for name, value in asked.headers.items()}
        assert headers.items() <= names.items()
        assert "idempotency-key" not in names


def test_an_edit_is_seen_in_the_conversation_though_the_gateway_was_started_anew(tmp_path: Path) -> None:
    errand = Errand(3)
    body = chat_body(errand)
    with RefusingProvider() as provider:
        with gateway(tmp_path, provider.root_url) as running:
            message = running.ask(CHAT, body).body["choices"][0]["message"]
        [decided] = running.records()
        call = message["tool_calls"][0]
        others = [tool["function"]["name"] for tool in body["tools"]]
        call["function"]["name"] = next(name for name in others if name != call["function"]["name"])
        message["tool_calls"] = [call]
        body["messages"] += [message, {"role": "tool", "tool_call_id": call["id"], "content": "done"}]
        with gateway(tmp_path, provider.root_url) as running:
            assert running.ask(CHAT, body).status == 200
            assert running.ask(CHAT, body).status == 200
        found = running.records()
    edited = [record for record in found if record.enforced is False]
    assert [(record.context, record.meta["did"]) for record in edited] == [(decided.context, call["function"]["name"])]


def test_parallel_requests_of_one_session_have_contexts_of_their_own(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    body = chat_body(Errand(4))
    with RefusingProvider() as provider, gateway(tmp_path, provider.root_url, "--samples", "2") as running:

        def ask(_: int) -> int:
            return running.ask(CHAT, body, headers={"x-agentmark-session": "one"}).status

        with ThreadPoolExecutor(16) as pool:
            assert set(pool.map(ask, range(60))) == {200}
        found = running.records()
    assert len({record.context for record in found}) == 60
    assert {(record.session, record.step_index) for record in found} == {("one", 0)}


def test_a_client_that_hangs_up_ends_the_calls_upstream_and_leaves_no_decision(tmp_path: Path) -> None:
    with RefusingProvider(delay_s=1.0) as provider, gateway(tmp_path, provider.root_url) as running:
        connection = running.connect()
        connection.request("POST", CHAT, json.dumps(chat_body(Errand(5))), {"content-type": "application/json"})
        assert eventually(lambda: len(provider.requests) == 4)
        connection.close()
        assert eventually(lambda: running.count("agentmark_errors_total", reason="client gone") == 1)
        assert running.count("agentmark_in_flight") == 0
        assert running.records() == []
