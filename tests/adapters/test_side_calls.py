"""What a side call asks of an agent's own model, and what comes back."""

from types import SimpleNamespace

from agentmark.adapters.side_calls import begins_with, chat_reply, model_name, settings_of
from agentmark.elicit.chat import ChatReply, ChatRequest


def test_only_what_was_asked_for_is_set() -> None:
    assert settings_of(ChatRequest(messages=[])) == {}
    assert settings_of(ChatRequest(messages=[], temperature=0.0, max_tokens=9)) == {"temperature": 0.0, "max_tokens": 9}


def test_token_counts_come_from_a_mapping_or_an_object_or_not_at_all() -> None:
    counted = ChatReply(text="{}", input_tokens=3, output_tokens=4)
    assert chat_reply("{}", {"input_tokens": 3, "output_tokens": 4}) == counted
    assert chat_reply("{}", SimpleNamespace(input_tokens=3, output_tokens=4, requests=1)) == counted
    assert chat_reply("{}", None) == ChatReply(text="{}")


def test_a_model_is_called_what_it_calls_itself_or_by_its_class() -> None:
    assert model_name(SimpleNamespace(model_name="gpt-5", model="other")) == "gpt-5"
    assert model_name(SimpleNamespace(model_name="", model="llama")) == "llama"
    assert model_name(SimpleNamespace(model=object())) == "SimpleNamespace"


def test_a_side_call_begins_with_the_agents_own_messages_whatever_else_is_said_of_them() -> None:
    own = [{"role": "user", "content": "Go"}, {"role": "tool", "content": "7", "tool_call_id": "a"}]
    question = {"role": "user", "content": "How likely?"}
    assert begins_with([own[0], {**own[1], "name": "stock"}, question], own)
    assert not begins_with([own[0], {**own[1], "content": "8"}, question], own)
    assert not begins_with(own[:1], own)
