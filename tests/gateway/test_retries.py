import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from loopback_client import CHAT, chat_body
from raw_upstream import RawUpstream, http_answer
from running import eventually, gateway

from agentmark.testing import Errand, RefusingProvider

FIRST, AGAIN = {"x-stainless-retry-count": "0"}, {"x-stainless-retry-count": "1"}


def test_a_request_with_the_same_name_has_the_same_answer(tmp_path: Path) -> None:
    body = chat_body(Errand(1))
    named = {"idempotency-key": "one"}
    with RefusingProvider() as provider:
        with gateway(tmp_path, provider.root_url) as running:
            first = running.ask(CHAT, body, headers=named)
        # Also after a restart.
        with gateway(tmp_path, provider.root_url) as running:
            again = running.ask(CHAT, body, headers=named)
            assert running.count("agentmark_replayed_total") == 1
            assert len(provider.requests) == 4
            # Another request under the same name is another request.
            assert running.ask(CHAT, chat_body(Errand(2)), headers=named).status == 200
            assert running.ask(CHAT, body, headers={"idempotency-key": "two"}).status == 200
            # And it does not hide the first.
            assert running.ask(CHAT, body, headers=named).content == first.content
            assert running.count("agentmark_replayed_total") == 2
    assert again.content == first.content
    assert again.headers["content-type"] == first.headers["content-type"]
    assert len(running.records()) == 3


def test_who_asks_again_before_the_answer_came_waits_for_it(tmp_path: Path) -> None:
    """A client, or a proxy on the way, that has lost patience; not a second decision."""
    body = chat_body(Errand(1))
    with (
        RefusingProvider(delay_s=0.3) as provider,
        gateway(tmp_path, provider.root_url) as running,
        ThreadPoolExecutor(9) as pool,
    ):
        asked = [pool.submit(running.ask, CHAT, body, headers={"idempotency-key": "one"}) for _ in range(8)]
        # Others do not wait for them.
        other = pool.submit(running.ask, CHAT, body, headers={"idempotency-key": "two"})
        assert other.result().status == 200
        assert len({answering.result().content for answering in asked}) == 1
        assert running.count("agentmark_replayed_total") == 7
    assert len(provider.requests) == 8
    assert len(running.records()) == 2


def test_a_reply_is_kept_no_longer_than_was_said(tmp_path: Path) -> None:
    body = chat_body(Errand(1))
    named = {"idempotency-key": "one"}
    with RefusingProvider() as provider, gateway(tmp_path, provider.root_url, "--keep-replies", "0") as running:
        assert running.ask(CHAT, body, headers=named).status == 200
        assert running.ask(CHAT, body, headers=named).status == 200
        found = running.records()
    # Nothing was kept: the first decision is out of the evidence, and samples were taken anew.
    assert len(provider.requests) == 8
    assert [record.enforced for record in found] == [None, False, None]
    assert found[0].context == found[1].context != found[2].context


def test_the_same_body_is_no_retry(tmp_path: Path) -> None:
    body = chat_body(Errand(1))
    with RefusingProvider() as provider, gateway(tmp_path, provider.root_url) as running:
        for headers in (FIRST, FIRST, {}, {}):
            assert running.ask(CHAT, body, headers=headers).status == 200
        # One that came whole to its client is not what a later client asks for again.
        assert eventually(lambda: running.count("agentmark_in_flight") == 0)
        assert running.ask(CHAT, body, headers=AGAIN).status == 200
        found = running.records()
    assert [record.enforced for record in found] == [None] * 5
    assert len(provider.requests) == 20


def test_a_stated_choice_whose_call_failed_is_forced_again(tmp_path: Path) -> None:
    """No second draw: who asks again gets what was decided."""
    asked: list[bytes] = []

    def answer(request: bytes) -> bytes:
        asked.append(request)
        if b'"tool_choice":"none"' in request:
            weights = dict.fromkeys(["add", "deliver_to", "ship", "(answer)"], 0) | {"search": 0.5, "price": 0.5}
            message = {"content": json.dumps(weights)}
            return http_answer(json.dumps({"choices": [{"message": message}]}).encode())
        if len(asked) == 2:
            return http_answer(b'{"error":{"message":"busy"}}', "Retry-After: 1", status="503 Busy")
        name = "search" if b'"name":"search"}}' in request.partition(b"tool_choice")[2] else "price"
        call = f'{{"id":"c","type":"function","function":{{"name":"{name}","arguments":"{{}}"}}}}'
        reply = f'{{"choices":[{{"message":{{"tool_calls":[{call}]}},"finish_reason":"tool_calls"}}]}}'
        return http_answer(reply.encode(), "Content-Type: application/json")

    body = chat_body(Errand(1))
    with RawUpstream(answer) as upstream, gateway(tmp_path, upstream.root_url, "--mode", "stated") as running:
        failed = running.ask(CHAT, body, headers=FIRST)
        assert (failed.status, failed.headers["retry-after"]) == (503, "1")
        assert failed.content == b'{"error":{"message":"busy"}}'
        [decided] = running.records()
        answered = running.ask(CHAT, body, headers=AGAIN)
        assert answered.status == 200
        # Without a word on retries it would have been another request.
        assert len(asked) == 3
        found = running.records()
    assert found == [decided]
    assert answered.body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == decided.behavior
