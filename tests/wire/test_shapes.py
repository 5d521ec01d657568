"""What is not as expected counts as absent."""

import pytest

from agentmark.wire.shapes import object_at, objects_at, text_at


def test_members_that_are_as_expected() -> None:
    assert object_at({"a": {"b": 1}}, "a") == {"b": 1}
    assert objects_at({"a": [{"b": 1}, None, "text", {}]}, "a") == [{"b": 1}, {}]
    assert text_at({"a": "text"}, "a") == "text"


@pytest.mark.parametrize("value", [None, 7, "a", ["a"], {}, {"a": None}, {"a": 7}])
def test_members_that_are_not(value: object) -> None:
    assert object_at(value, "a") == {}
    assert objects_at(value, "a") == []
    assert text_at(value, "a") == ""
