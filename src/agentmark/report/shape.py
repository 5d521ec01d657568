"""Whether data has exactly the members and types that its `TypedDict` says: no fewer, no more, at every level."""

from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

_NAMES = {str: "text", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}


def shape_fault(value: Any, kind: Any, where: str) -> str | None:
    """What is wrong with a value of this kind, as a sentence that begins with its place; None if nothing is."""
    return next(_faults(value, kind, where), None)


def _faults(value: Any, kind: Any, where: str) -> Iterator[str]:
    origin, inside = get_origin(kind), get_args(kind)
    if origin is UnionType:
        # Of two kinds, one of which is null: the fault of the other says more.
        if value is not None:
            yield from _faults(value, next(other for other in inside if other is not NoneType), where)
    elif is_typeddict(kind):
        yield from _member_faults(value, _hints(kind), where)
    elif origin is None:
        # `type` and not `isinstance`: true is no integer.
        if type(value) is not kind:
            yield f"{where} is not {_NAMES[kind]}"
    else:
        parts = _parts(value, origin, inside)
        if parts is None:
            yield f"{where} is not {f'a list of {len(inside)}' if origin is tuple else _NAMES[origin]}"
        for place, item, other in parts or ():
            yield from _faults(item, other, f"{where}{place}")


def _parts(value: Any, origin: Any, inside: tuple[Any, ...]) -> list[tuple[str, Any, Any]] | None:
    """What a container holds: where, what, and of which kind it has to be. None if it is not that container."""
    if origin is dict and isinstance(value, dict):
        return [(f".{name}", item, inside[1]) for name, item in value.items()]
    if origin is list and isinstance(value, list):
        return [(f"[{i}]", item, inside[0]) for i, item in enumerate(value)]
    # JSON has no tuples: a list of so many.
    if origin is tuple and isinstance(value, list | tuple) and len(value) == len(inside):
        return [(f"[{i}]", item, inside[i]) for i, item in enumerate(value)]
    return None


def _member_faults(value: Any, kinds: dict[str, Any], where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} is not an object"
        return
    yield from [f"{where} has no {name}" for name in kinds if name not in value]
    yield from [f"{where} has a member {name!r} that is not expected" for name in value if name not in kinds]
    for name, kind in kinds.items():
        yield from _faults(value[name], kind, f"{where}.{name}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
