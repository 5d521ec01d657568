"""Canonical bytes and the context digest."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmark import ContextError
from agentmark.core.canonical import MAX_SAFE_INTEGER, canonical_bytes
from agentmark.core.context import Places, context_digest, context_fields

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_canonical_bytes_are_json_and_do_not_depend_on_member_order(fields: dict[str, object]) -> None:
    encoded = canonical_bytes(fields)
    assert json.loads(encoded) == fields
    assert canonical_bytes(dict(reversed(fields.items()))) == encoded


@given(st.dictionaries(TEXT, VALUES, max_size=3), st.dictionaries(TEXT, VALUES, max_size=3))
def test_different_contexts_have_different_bytes(one: dict[str, object], other: dict[str, object]) -> None:
    same = canonical_bytes(one) == canonical_bytes(other)
    assert same == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


def test_members_are_sorted_by_utf16_code_units() -> None:
    """RFC 8785, 3.2.3: U+1F600 is the pair D83D DE00 and comes before U+FB33."""
    assert canonical_bytes({"\ufb33": 1, "\U0001f600": 2}).decode() == '{"\U0001f600":2,"\ufb33":1}'


def test_a_true_is_not_a_one() -> None:
    assert canonical_bytes({"a": True}) != canonical_bytes({"a": 1})


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"x": 0.5}, r"\$\.x: float"),
        ({"x": [1, {"y": 2.0}]}, r"\$\.x\[1\]\.y: float"),
        ({"x": 2**53}, "beyond"),
        ({"x": "\ud800"}, "surrogate"),
        ({1: "x"}, "not text"),
        ({"x": b"bytes"}, "bytes"),
    ],
)
def test_values_without_a_canonical_form_are_refused_by_path(value: object, fault: str) -> None:
    with pytest.raises(ContextError, match=fault):
        canonical_bytes(value)


def test_the_session_owns_its_two_fields() -> None:
    with pytest.raises(ContextError, match="session"):
        context_fields("s", 0, {"session": "other"})
    plain, bound = context_fields("s", 0), context_fields("s", 0, {"observation": "x"})
    assert context_digest(plain) != context_digest(bound)


@pytest.mark.parametrize("name", ["session", "step"])
def test_what_the_session_sets_is_never_overwritten(name: str) -> None:
    with pytest.raises(ContextError, match=name):
        context_fields("s", 0, {name: "another"})


def test_no_other_name_is_reserved() -> None:
    extra = {"Session": 1, "step ": 2, "context": 3, "agentmark": 4, "": 5}
    assert context_fields("s", 0, extra) == {"session": "s", "step": 0, **extra}


@given(TEXT, st.integers(0, MAX_SAFE_INTEGER))
def test_the_places_of_a_session_are_its_contexts(session: str, step: int) -> None:
    assert Places(session).digest(step) == context_digest(context_fields(session, step))


def test_a_place_that_is_none_is_refused_in_the_same_words() -> None:
    for step in (MAX_SAFE_INTEGER + 1, 1.5):
        with pytest.raises(ContextError) as expected:
            context_digest(context_fields("s", step))  # type: ignore[arg-type]
        with pytest.raises(ContextError) as found:
            Places("s").digest(step)  # type: ignore[arg-type]
        assert str(found.value) == str(expected.value)
    with pytest.raises(ContextError):
        Places("\ud800")
