import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark.log.json_beginning import begins_json_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.booleans(), st.sampled_from([None, 1]))
def test_every_beginning_of_an_object_is_one_and_the_whole_is_not(
    content: dict[str, Any], ascii_only: bool, indent: int | None
) -> None:
    data = json.dumps(content, ensure_ascii=ascii_only, indent=indent).encode()
    assert all(begins_json_object(data[:cut]) for cut in range(1, len(data)))
    assert not begins_json_object(data)


@given(st.dictionaries(st.text(), VALUES, min_size=1, max_size=3), st.binary(min_size=1, max_size=4), st.data())
def test_what_is_called_a_beginning_is_never_json_by_itself(content: Any, noise: bytes, data: st.DataObject) -> None:
    whole = json.dumps(content).encode()
    cut = data.draw(st.integers(1, len(whole)))
    damaged = whole[:cut] + noise
    try:
        json.loads(damaged.decode())
    except ValueError:
        return
    assert not begins_json_object(damaged)


@pytest.mark.parametrize(
    "text",
    [
        '{"agentmark":1 garbage',
        '{"agentmark":1 "b"',
        '{"agentmark":01',
        '{"agentmark":+',
        '{"agentmark":.',
        '{"agentmark":1..',
        '{"agentmark":1ee',
        '{"agentmark":truu',
        '{"agentmark":N',
        '{"agentmark":[1}',
        '{"agentmark":1]',
        '{"agentmark":[,',
        '{"agentmark":1,,',
        '{"agentmark":1,}',
        '{"agentmark"1',
        '{"agentmark":"\\x',
        '{"agentmark":"\\u00g',
        '{"agentmark":"\x00',
        '{"agentmark":1}}',
        '{"agentmark":1}{',
        "{agentmark",
        "{1",
        "{,",
        "[1",
        " {",
        "\ufeff{",
        "",
    ],
)
def test_what_nothing_can_complete(text: str) -> None:
    assert not begins_json_object(text.encode())


@pytest.mark.parametrize(
    ("data", "cut"),
    [
        (b'{"a":"\xe4\xbd', True),
        (b'{"\xf0\x9f\x98', True),
        (b'{"a":1\xe4\xbd', False),
        (b'{"a":"\\\xe4\xbd', False),
        (b'{"a":"\\u12\xe4', False),
        (b'{"a":"\xff', False),
        (b'{"a":"\xed\xa0', False),
        (b'{"a":"\xe4\xbd"', False),
    ],
)
def test_half_a_character_can_end_a_string_alone(data: bytes, cut: bool) -> None:
    assert begins_json_object(data) is cut


def test_depth_costs_no_stack() -> None:
    assert begins_json_object(b'{"a":' + b"[" * 200_000)
    assert not begins_json_object(b'{"a":' + b"[" * 200_000 + b"}")
