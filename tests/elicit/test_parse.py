"""The strict reader of verbalised lists: what it accepts, what it refuses, and that nothing comes out changed."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parser_cases import FLAT, GIVEN, NAMES, TOOLS, USUAL

from agentmark import BehaviorDistribution
from agentmark.elicit.parse import ParseFault, Stated, parse_weights, parse_weights_and_arguments

REAL = Path(__file__).parent / "data" / "model_replies.jsonl"


@pytest.mark.parametrize(("reply", "expected"), FLAT, ids=range(len(FLAT)))
def test_a_list(reply: str, expected: dict[str, float] | str) -> None:
    check(parse_weights, reply, expected)


@pytest.mark.parametrize(("reply", "expected"), TOOLS, ids=range(len(TOOLS)))
def test_weights_with_arguments(reply: str, expected: dict[str, float] | str) -> None:
    stated = check(parse_weights_and_arguments, reply, expected)
    if stated is not None and expected == USUAL:
        assert stated.arguments == GIVEN


def check(parse: object, reply: str, expected: dict[str, float] | str) -> Stated | None:
    assert callable(parse)
    if isinstance(expected, str):
        with pytest.raises(ParseFault, match=re.escape(expected)):
            parse(reply, NAMES)
        return None
    stated = parse(reply, NAMES)
    assert isinstance(stated, Stated)
    assert stated.weights == expected
    assert list(stated.weights) == NAMES
    return stated


def test_what_may_be_left_out_is_named() -> None:
    stated = parse_weights('{"search": 1}', NAMES, allow_missing=True)
    assert (stated.weights, stated.unstated) == ({"search": 1, "book": 0, "Finish": 0}, ("book", "Finish"))
    with pytest.raises(ParseFault, match="zero"):
        parse_weights("{}", NAMES, allow_missing=True)


def test_a_list_that_does_not_sum_to_one_is_divided_by_its_sum_exactly() -> None:
    """Renormalising is quantisation (law L1): the shares are those that were stated."""
    stated = parse_weights('{"search": 50, "book": 30, "Finish": 20}', NAMES)
    assert BehaviorDistribution.quantise(stated.weights) == BehaviorDistribution.quantise(
        {"search": Fraction(1, 2), "book": Fraction(3, 10), "Finish": Fraction(1, 5)}
    )


# --- fuzzing: no crash, and never a distribution that was not stated ----------------------------------------------

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def assert_stated(reply: str, names: list[str], parse: object = parse_weights) -> None:
    """Independent of the parser: each weight must stand in the reply after its name, and no other after it."""
    assert callable(parse)
    try:
        stated = parse(reply, names)
    except ParseFault:
        return
    for name in names:
        pattern = re.escape(json.dumps(name)) + r"\s*:\s*(" + NUMBER.pattern + ")"
        found = re.findall(pattern, reply) or re.findall(
            re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:\s*(" + NUMBER.pattern + ")", reply
        )
        assert [float(number) for number in found] == [float(stated.weights[name])], reply
    assert set(stated.weights) == set(names)


ALPHABET = [
    *list('{}[]",:.0123456789eE+-% \n'),
    "search",
    "book",
    "Finish",
    '"search"',
    "NaN",
    "null",
    "```",
    "</think>",
]


@settings(max_examples=2000)
@given(st.lists(st.sampled_from(ALPHABET), max_size=60).map("".join))
def test_soup(reply: str) -> None:
    assert_stated(reply, NAMES)


@settings(max_examples=2000)
@given(st.text(max_size=300))
def test_any_text(reply: str) -> None:
    assert_stated(reply, NAMES)


@settings(max_examples=2000)
@given(
    st.sampled_from([reply for reply, expected in FLAT if isinstance(expected, dict) and "\\u" not in reply]),
    st.lists(
        st.tuples(st.integers(0, 10_000), st.integers(0, 3), st.sampled_from([*ALPHABET, ""])), min_size=1, max_size=4
    ),
)
def test_damaged_replies(reply: str, edits: list[tuple[int, int, str]]) -> None:
    """Cut, insert and replace in good replies: either refused, or what is left was really stated."""
    for place, length, text in edits:
        at = place % (len(reply) + 1)
        reply = reply[:at] + text + reply[at + length :]
    # Thinking blocks may hold drafts of the same names, which are not the list.
    if "</think>" in reply:
        reply = reply.rpartition("</think>")[2]
    assert_stated(reply, NAMES)


@settings(max_examples=2000)
@given(
    st.dictionaries(
        st.sampled_from([*NAMES, "pay", "search "]),
        st.one_of(
            st.floats(), st.integers(-3, 10**40), st.text(max_size=3), st.booleans(), st.none(), st.lists(st.floats())
        ),
        max_size=5,
    ),
    st.sampled_from(["{}", "```json\n{}\n```", "Thought: hm\n{}", "[{}]", "{} {}"]),
)
def test_structured(content: dict[str, object], frame: str) -> None:
    assert_stated(frame.replace("{}", json.dumps(content)), NAMES)


# --- what models really said ---------------------------------------------------------------------------------------


def real_replies() -> list[dict[str, object]]:
    if not REAL.exists():
        return []
    cases = [json.loads(line) for line in REAL.read_text(encoding="utf-8").splitlines()]
    # A reply that nobody has read by eye yet has no expected outcome, and is no case.
    return [case for case in cases if "expected" in case]


@pytest.mark.parametrize("case", real_replies(), ids=lambda case: f"{case['model']}-{case['elicitor']}")
def test_what_models_really_said(case: dict[str, object]) -> None:
    """Outcomes were read by eye; the parser must agree."""
    names, reply, expected = case["candidates"], case["reply"], case["expected"]
    assert isinstance(names, list)
    assert isinstance(reply, str)
    parse = parse_weights_and_arguments if case.get("shape") == "toolbench" else parse_weights
    if isinstance(expected, str):
        with pytest.raises(ParseFault, match=re.escape(expected)):
            parse(reply, names)
    else:
        assert parse(reply, names).weights == expected


def test_there_are_enough_cases() -> None:
    assert len(FLAT) + len(TOOLS) + len(real_replies()) >= 330
    assert len({reply for reply, _ in FLAT}) == len(FLAT)
