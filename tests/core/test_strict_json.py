"""Strict JSON: what Python reads in valid JSON, and nothing that two readers could take for two things."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark import AgentMarkError
from agentmark.core.strict_json import (
    JsonConstantError,
    NotJsonError,
    Pairs,
    RepeatedNameError,
    StrictJsonError,
    TooDeepError,
    parse_json,
    parse_json_at,
    parse_json_object,
    parse_json_pairs,
)

DEPTH = 100_000
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)
PARSERS: dict[str, Callable[[str], Any]] = {
    "parse_json": parse_json,
    "parse_json, constants allowed": lambda text: parse_json(text, allow_constants=True),
    "parse_json_at": lambda text: parse_json_at(text, 0),
    "parse_json_pairs": parse_json_pairs,
}


def plain(value: Any) -> Any:
    """Pairs as the objects they stand for."""
    if isinstance(value, Pairs):
        return {name: plain(member) for name, member in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


@given(value=VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
def test_valid_json_is_what_python_reads(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    expected = json.loads(text)
    assert parse_json(text) == expected
    assert parse_json(text, allow_constants=True) == expected
    assert parse_json_at(f"x{text} and more", 1) == (expected, 1 + len(text))
    assert plain(parse_json_pairs(text)) == expected
    if ascii_only:
        assert parse_json(text.encode("utf-8")) == expected


@given(text=st.text(st.sampled_from('{}[]":,\\u0aNI-+.1eE tfn'), max_size=12) | st.text(max_size=8))
def test_whatever_the_text_only_our_own_error_is_raised(text: str) -> None:
    """And what is accepted means to Python the same, or (a name twice, a constant) was refused."""
    try:
        value = parse_json(text)
    except StrictJsonError:
        return
    assert value == json.loads(text)


@given(data=st.binary(max_size=12))
def test_whatever_the_bytes_only_our_own_error_is_raised(data: bytes) -> None:
    try:
        value = parse_json(data)
    except StrictJsonError:
        return
    assert value == json.loads(data.decode("utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}',
        '{"b":1,"a":1,"a":2,"b":3}',
        '[[[{"x":[{"y":{"a":1,"z":0,"a":2}}]}]]]',
        # One name in two spellings.
        '{"a":1,"\\u0061":2}',
    ],
)
def test_a_name_that_appears_twice_is_named_however_deep(text: str) -> None:
    for parse in (parse_json, lambda text: parse_json(text, allow_constants=True), lambda text: parse_json_at(text, 0)):
        with pytest.raises(RepeatedNameError) as caught:
            parse(text)
        assert caught.value.name == "a"
        assert str(caught.value) == "'a' appears twice in one object"


def test_equal_names_in_different_objects_are_no_repetition() -> None:
    assert parse_json('{"a":{"a":[{"a":1},{"a":2}]}}') == {"a": {"a": [{"a": 1}, {"a": 2}]}}


def test_pairs_keep_both_of_two_equal_names() -> None:
    parsed = parse_json_pairs('{"a":1,"b":{"c":2,"c":3},"a":[]}')
    assert parsed == [("a", 1), ("b", [("c", 2), ("c", 3)]), ("a", [])]
    assert isinstance(parsed, Pairs)
    assert isinstance(parsed[1][1], Pairs)
    assert not isinstance(parsed[2][1], Pairs)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constants_of_python_are_named_or_allowed(constant: str) -> None:
    for text in (constant, f'{{"a":[{constant}]}}'):
        with pytest.raises(JsonConstantError) as caught:
            parse_json(text)
        assert caught.value.constant == constant
        with pytest.raises(JsonConstantError):
            parse_json_at(text, 0)
        assert repr(parse_json(text, allow_constants=True)) == repr(json.loads(text))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1"])
def test_bytes_are_utf8_without_a_mark(encoding: str) -> None:
    """Python's own parser takes all of these but the last."""
    with pytest.raises(NotJsonError):
        parse_json('{"name":"ü"}'.encode(encoding))
    assert parse_json('{"name":"ü"}'.encode()) == {"name": "ü"}


def test_a_byte_order_mark_in_text_is_not_json() -> None:
    with pytest.raises(NotJsonError):
        parse_json("\ufeff{}")


def test_surrogates_have_no_bytes_and_escaped_ones_stay_as_they_are() -> None:
    with pytest.raises(NotJsonError):
        parse_json(b'"\xed\xa0\x80"')
    # Whether text may hold half a pair is for whoever needs text to say: see `is_unicode`.
    assert parse_json(r'"\ud800"') == "\ud800"
    assert parse_json(r'"\ud83d\ude00"') == "😀"


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(
    "text",
    ["[" * DEPTH, "[" * DEPTH + "]" * DEPTH, '{"a":' * DEPTH, '{"a":' * DEPTH + "1" + "}" * DEPTH, '[{"a":' * DEPTH],
    ids=["open arrays", "arrays", "open objects", "objects", "open both"],
)
def test_what_is_nested_too_deeply_is_said_to_be(parser: str, text: str) -> None:
    with pytest.raises(TooDeepError):
        PARSERS[parser](text)


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("text", ["", "{", "nope", '{"a"}', "[1,]", "'a'", "01", '"\t"', "9" * 5000])
def test_what_is_not_json_is_said_to_be(parser: str, text: str) -> None:
    if text == "01" and parser == "parse_json_at":
        assert parse_json_at(text, 0) == (0, 1)
        return
    with pytest.raises(NotJsonError) as caught:
        PARSERS[parser](text)
    assert caught.value.fault == "is not valid JSON"
    assert caught.value.detail


def test_something_may_not_follow_the_value() -> None:
    with pytest.raises(NotJsonError, match="Extra data"):
        parse_json("{} {}")


def test_errors_are_ours_and_hold_nothing_of_the_text() -> None:
    """Key files are parsed too: an error that shows up in a log must not bring the secret along."""
    for text in ('{"secret":"5eed"', '{"secret":"5eed"} x', b'{"secret":"5eed\xff"}'):
        with pytest.raises(AgentMarkError) as caught:
            parse_json(text)
        assert "5eed" not in str(caught.value)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None


# Texts of objects, whole and not: names twice at any depth, colons in strings, constants, something behind the end.
MEMBERS = [
    '"a":1',
    '"b":"x:y"',
    '"meta":{"a":1,"a":2}',
    '"weights":{"a":1}',
    '"weights":[{"a":1}]',
    '"a:":{}',
    '"c":NaN',
]
MARKS = [
    '{"a":',
    '{"weights":{',
    ",",
    "}",
    "}}",
    "]",
    "NaN",
    '"d":[]',
    '"d":[{"a":1,"a":1}]',
    '"\\u003a":1',
    " ",
    "{",
    ":",
]
PIECES = st.sampled_from(MEMBERS + MARKS)


@given(st.lists(PIECES, max_size=12).map("".join) | VALUES.map(json.dumps))
def test_objects_are_parsed_alike_quickly_and_with_care(text: str) -> None:
    def outcome(parse: Callable[[str | bytes], Any], given_text: str | bytes) -> Any:
        try:
            return parse(given_text)
        except StrictJsonError as error:
            return type(error), str(error)

    def quickly(given_text: str | bytes) -> Any:
        return parse_json_object(given_text, ("weights", "meta"))

    assert outcome(quickly, text) == outcome(parse_json, text)
    if text.isascii():
        assert outcome(quickly, text.encode()) == outcome(parse_json, text.encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}',
        '{"weights":{"x":1,"x":2}}',
        '{"weights":{"x":1},"weights":{"y":1}}',
        '{"meta":{"in":{"x":1,"x":2}}}',
        '{"other":{"x":1,"x":2}}',
        '{"other":[{"x":1,"x":2}]}',
        '{"a":"::","b":1,"b":2}',
    ],
)
def test_no_name_is_hidden_by_another_in_an_object_that_is_parsed_quickly(text: str) -> None:
    with pytest.raises(RepeatedNameError):
        parse_json_object(text, ("weights", "meta"))


def test_an_object_that_is_parsed_quickly_is_utf_8_and_has_an_end() -> None:
    for text in (b'{"a":"\xff"}', b'{"a":1} x', b"", b'{"a":' * DEPTH, b'{"a":' + b"1" * 5000 + b"}"):
        with pytest.raises(StrictJsonError):
            parse_json_object(text, ())
