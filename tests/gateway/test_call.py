import pytest

pytest.importorskip("httptools")

from loopback_client import chat_body, messages_body, responses_body

from agentmark.gateway.call import GatewayCall
from agentmark.gateway.replies import is_reply
from agentmark.gateway.upstream import Target, Upstreams
from agentmark.testing import Errand
from agentmark.wire import anthropic_messages, openai_chat, openai_responses
from agentmark.wire.apis import Api


def call_of(api: Api, body: dict[str, object]) -> GatewayCall:
    upstreams = Upstreams(connect_s=1, silence_s=1, max_reply=1000)
    return GatewayCall(
        api, b"", body, target=Target("http://x/", [], "x"), upstreams=upstreams, model="m", max_reply=1000
    )


def test_what_cannot_be_repeated_is_said() -> None:
    errand = Errand(1)
    assert call_of(openai_chat, chat_body(errand)).unrepeatable is None
    assert call_of(openai_responses, responses_body(errand, previous_response_id="r")).unrepeatable is None
    assert "background" in (call_of(openai_responses, responses_body(errand, background=True)).unrepeatable or "")
    kept = call_of(openai_responses, responses_body(errand, conversation="conv_1"))
    assert "conversation" in (kept.unrepeatable or "")
    assert call_of(anthropic_messages, messages_body(errand, top_k=1)).temperature == 0


def test_what_leaves_nothing_to_decide_is_said() -> None:
    errand = Errand(1)
    assert call_of(openai_chat, chat_body(errand)).unmarkable() is None
    assert call_of(openai_chat, {"messages": []}).unmarkable() == "no tools on offer"
    assert call_of(openai_chat, chat_body(errand, tool_choice="none")).unmarkable() == "nothing is left to decide"
    assert "several" in (call_of(openai_chat, chat_body(errand, n=2)).unmarkable() or "")


@pytest.mark.parametrize(
    ("api", "body", "is_one"),
    [
        (openai_chat, {"choices": [{"message": {"content": "hello"}}]}, True),
        (openai_chat, {"choices": [{"message": {"tool_calls": [{"function": {"name": "a"}}]}}]}, True),
        (openai_chat, {"choices": [{"message": {"tool_calls": [{"function": 7}, None, 3]}}]}, False),
        (openai_chat, {"choices": [{"message": None}]}, False),
        (openai_chat, {"choices": []}, False),
        (openai_chat, {"error": {"message": "no"}}, False),
        (openai_responses, {"output": []}, True),
        (openai_responses, {"output": [7]}, False),
        (openai_responses, {"choices": [{"message": {"content": "hello"}}]}, False),
        (anthropic_messages, {"content": [{"type": "text", "text": "hello"}]}, True),
        (anthropic_messages, {"content": "hello"}, False),
        (anthropic_messages, {}, False),
    ],
)
def test_a_body_that_is_no_reply_is_not_taken_for_an_answer(api: Api, body: dict[str, object], is_one: bool) -> None:
    assert is_reply(api, body) is is_one
