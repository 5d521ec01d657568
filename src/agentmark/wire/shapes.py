"""Reading JSON that may have any shape: what is not as expected counts as absent."""

from collections.abc import Mapping
from typing import Any

# Most are dicts, and asking a type is ten times as fast as asking what is like one.
_OBJECTS = (dict, Mapping)


def object_at(value: object, name: str) -> Mapping[str, Any]:
    """The object that is the member `name` of a value; an empty one if there is none."""
    member = value.get(name) if isinstance(value, _OBJECTS) else None
    return member if isinstance(member, _OBJECTS) else {}


def objects_at(value: object, name: str) -> list[Mapping[str, Any]]:
    """The objects in the list that is the member `name` of a value."""
    member = value.get(name) if isinstance(value, _OBJECTS) else None
    if not isinstance(member, list | tuple):
        return []
    return [item for item in member if isinstance(item, _OBJECTS)]


def text_at(value: object, name: str) -> str:
    """The string that is the member `name` of a value; an empty one if there is none."""
    member = value.get(name) if isinstance(value, _OBJECTS) else None
    return member if isinstance(member, str) else ""
