"""JSON as a tree that can be bent out of shape: names twice, numbers as they are written, JSON inside text."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from fuzz import values

MAX_WRAPS = 3000


class Pairs(list[tuple[str, Any]]):
    """An object, whose names may come twice."""


class Raw(str):
    """Text that stands in the JSON as it is."""

    __slots__ = ()


def parse(text: str) -> Any:
    """The tree of valid JSON text; ValueError or RecursionError for what is none."""
    return json.loads(text, object_pairs_hook=Pairs, parse_int=Raw, parse_float=Raw, parse_constant=Raw)


def write(tree: Any) -> str:
    """The text of a tree, whatever it holds."""
    if isinstance(tree, Raw):
        return str(tree)
    if isinstance(tree, Pairs):
        return "{" + ",".join([f"{json.dumps(name)}:{write(value)}" for name, value in tree]) + "}"
    if isinstance(tree, list):
        return "[" + ",".join([write(item) for item in tree]) + "]"
    return json.dumps(tree)


def bend(rng: random.Random, tree: Any) -> Any:
    """Change one place of a tree (in place, where it can be), and return it."""
    places = list(_places(tree))
    if not places:
        return _value(rng)
    holder, at = rng.choice(places)
    rng.choice(_BENDINGS)(rng, holder, at)
    return tree


def _places(tree: Any) -> Iterator[tuple[list[Any], int]]:
    """Every place that holds a value, as the list it is in and its index there."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            for at, item in enumerate(node):
                yield node, at
                waiting.append(item[1] if isinstance(node, Pairs) else item)


def _get(holder: list[Any], at: int) -> Any:
    return holder[at][1] if isinstance(holder, Pairs) else holder[at]


def _put(holder: list[Any], at: int, value: Any) -> None:
    holder[at] = (holder[at][0], value) if isinstance(holder, Pairs) else value


def _value(rng: random.Random) -> Any:
    kind = rng.randrange(6)
    if kind < 2:
        return Raw(rng.choice(values.NUMBERS))
    if kind < 4:
        return values.text(rng)
    return rng.choice(([], Pairs(), [[]], [None], Pairs([("", None)]), Pairs([(rng.choice(values.NAMES), "x")])))


def _replace(rng: random.Random, holder: list[Any], at: int) -> None:
    _put(holder, at, _value(rng))


def _remove(rng: random.Random, holder: list[Any], at: int) -> None:
    del holder[at]


def _repeat(rng: random.Random, holder: list[Any], at: int) -> None:
    """The same item once more; in an object, a name twice."""
    holder[at:at] = [holder[at]] * rng.choice((1, 1, 1, 2, 50))


def _rename(rng: random.Random, holder: list[Any], at: int) -> None:
    if isinstance(holder, Pairs):
        name = rng.choice(values.NAMES) if rng.random() < 0.6 else values.text(rng)
        holder[at] = (name, holder[at][1])


def _wrap(rng: random.Random, holder: list[Any], at: int) -> None:
    value = _get(holder, at)
    if rng.random() < 0.3:
        # Too deep for any parser: written as text, so that writing it needs no depth.
        depth, inner = rng.choice((100, 1000, MAX_WRAPS)), write(value)
        _put(holder, at, Raw("[" * depth + inner + "]" * depth))
    else:
        _put(holder, at, rng.choice(([value], Pairs([(rng.choice(values.NAMES), value)]), write(value))))


def _inside_text(rng: random.Random, holder: list[Any], at: int) -> None:
    """JSON that stands as text is bent as well."""
    value = _get(holder, at)
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            _put(holder, at, write(bend(rng, parse(value))))
        except ValueError:
            _replace(rng, holder, at)
    elif isinstance(value, str) and not isinstance(value, Raw) and value:
        cut = rng.randrange(len(value))
        _put(holder, at, value[:cut] + values.text(rng) + value[cut + rng.randrange(2) :])
    else:
        _replace(rng, holder, at)


def _swap(rng: random.Random, holder: list[Any], at: int) -> None:
    """Two values of one object or list change places, and so perhaps their types."""
    other = rng.randrange(len(holder))
    mine, theirs = _get(holder, at), _get(holder, other)
    _put(holder, at, theirs)
    _put(holder, other, mine)


def _add(rng: random.Random, holder: list[Any], at: int) -> None:
    holder.insert(at, (rng.choice(values.NAMES), _value(rng)) if isinstance(holder, Pairs) else _value(rng))


_BENDINGS: tuple[Callable[[random.Random, list[Any], int], None], ...] = (
    _replace, _replace, _remove, _repeat, _rename, _wrap, _inside_text, _inside_text, _swap, _add,
)  # fmt: skip
