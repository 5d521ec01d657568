"""Reading JSON that may have any shape: what is not as expected counts as absent."""

from collections.abc import Mapping
from typing import Any


def object_at(value: object, name: str) -> Mapping[str, Any]:
    """The object that is the member `name` of a value; an empty one if there is none."""
    member = value.get(name) if isinstance(value, Mapping) else None
    return member if isinstance(member, Mapping) else {}


def objects_at(value: object, name: str) -> list[Mapping[str, Any]]:
    """The objects in the list that is the member `name` of a value."""
    member = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(member, list | tuple):
        return []
    return [item for item in member if isinstance(item, Mapping)]


def text_at(value: object, name: str) -> str:
    """The string that is the member `name` of a value; an empty one if there is none."""
    member = value.get(name) if isinstance(value, Mapping) else None
    return member if isinstance(member, str) else ""
