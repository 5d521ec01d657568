"""A message as elicitors read it."""

from agentmark.elicit.situation import ToolCall
from agentmark.wire.messages import message, text_of


def test_a_message_has_calls_only_if_it_makes_any() -> None:
    assert message("user", "Go.") == {"role": "user", "content": "Go."}
    assert message("assistant", "", [ToolCall("search", {"query": "tea"})]) == {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"name": "search", "arguments": {"query": "tea"}}],
    }
    with_ids = message("assistant", "", [ToolCall("search", "{}", "call_1")])
    assert with_ids["tool_calls"] == [{"id": "call_1", "name": "search", "arguments": "{}"}]
    assert message("tool", "4 degrees", answers="call_1")["tool_call_id"] == "call_1"


def test_a_content_is_plain_or_in_parts_of_which_others_than_text_are_named() -> None:
    assert text_of(None) == ""
    assert text_of("plain") == "plain"
    assert text_of(["loose", {"type": "text", "text": "written"}]) == "loose written"
    assert text_of([{"type": "refusal", "refusal": "No."}]) == "No."
    assert text_of([{"type": "image_url", "image_url": {"url": "data:"}}, {"text": None}]) == "(image_url) (part)"
    assert text_of({"odd": 1}) == "{'odd': 1}"
