"""JSON larger than a line."""

import json
import time
import tracemalloc

import pytest

from agentmark.log.read import json_text


def test_a_cut_document_is_closed_in_time_that_grows_with_its_length() -> None:
    depth = 100_000
    text = "[" * depth + "{}," * depth
    begun = time.process_time()
    closed = json_text.completed(text)
    assert time.process_time() - begun < 5, "the square of the depth would take minutes"
    assert closed == text[:-1] + "]" * depth
    assert json_text.completed('{"a":[{"b":[{}]},{"c":[1,{') == '{"a":[{"b":[{}]}],"\\u0000cut short":true}'


def test_a_cut_document_is_closed_where_its_last_whole_item_ends() -> None:
    """At any place of a text with every kind of bracket, strings of brackets and backslashes, and closed depths."""
    text = json.dumps({"a": [{"b": ["\\", '"', "]}[{"]}, {"c": {"d": [[{}], 1]}}, '\\\\"'], "e": [{"f": [[[{}]]]}, {}]})
    whole = json.loads(text)
    for cut in range(len(text)):
        closed = json_text.completed(text[:cut])
        if closed is None:
            continue
        # Nothing is lost but what was cut off, and nothing is there that was not.
        found = json.loads(closed)
        found.pop(json_text.CUT_MEMBER, None)
        first = [item for item in found["a"] if "cut short" not in str(item)]
        assert first == whole["a"][: len(first)], cut
    assert json_text.completed(text) is None
    assert json_text.completed('[{"a":[{"b":{}') is None
    assert json_text.completed("[{},[[1],[2]],[{") == "[{}]"
    assert json_text.completed('{"x":[[{}],[[') == '{"x":[[{}]],"\\u0000cut short":true}'


@pytest.mark.parametrize("unit", ["a", '\\"', "\\\\", '\\\\\\"'])
def test_a_long_string_costs_no_memory_to_look_through(unit: str) -> None:
    """A pattern that goes back over what it has matched keeps a hundred bytes for each letter."""
    text = '[{},"' + unit * (1_000_000 // len(unit))
    tracemalloc.start()
    closed = json_text.completed(text)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert closed == "[{}]"
    assert most < 100_000
