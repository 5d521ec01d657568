"""JSON larger than a line."""

import time

from agentmark.log.read import json_text


def test_a_cut_document_is_closed_in_time_that_grows_with_its_length() -> None:
    depth = 100_000
    text = "[" * depth + "{}," * depth
    begun = time.process_time()
    closed = json_text.completed(text)
    assert time.process_time() - begun < 5, "the square of the depth would take minutes"
    assert closed == text[:-1] + "]" * depth
    assert json_text.completed('{"a":[{"b":[{}]},{"c":[1,{') == '{"a":[{"b":[{}]}],"\\u0000cut short":true}'
