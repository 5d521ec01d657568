"""JSON that means one thing: no name twice in one object, no NaN, UTF-8 alone (spec, section 8).

Python's own parser keeps the last of two equal names, takes UTF-16 and a byte order mark, and knows NaN and Infinity.
What else it makes of valid JSON stays: an escaped half of a surrogate pair, for one, is judged where text is needed.
"""

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from agentmark.core.distribution import first_repeated
from agentmark.core.errors import AgentMarkError


class StrictJsonError(AgentMarkError, ValueError):
    """Text that is refused; the kinds below say why. `fault` reads on from the name of a file or a line."""

    fault: str


class NotJsonError(StrictJsonError):
    """Not JSON at all, or not UTF-8. `detail` is what the parser says, and where."""

    fault = "is not valid JSON"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class JsonConstantError(NotJsonError):
    """NaN, Infinity or -Infinity, which Python writes, and which are not JSON."""

    def __init__(self, constant: str) -> None:
        super().__init__(f"{constant} is Python's, not JSON")
        self.constant = constant


class RepeatedNameError(StrictJsonError):
    """A name that appears twice in one object: the last would hide the first."""

    fault = "names a member twice in one object"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} appears twice in one object")
        self.name = name


class TooDeepError(StrictJsonError):
    """Nested more deeply than the parser can follow."""

    fault = "is nested too deeply"

    def __init__(self) -> None:
        super().__init__("nested too deeply")


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its pairs of names and values, in their order."""


def parse_json(text: str | bytes, *, allow_constants: bool = False) -> Any:
    """Parse one value. `allow_constants` is for what other tools wrote, which may hold NaN where we do not look."""
    return _parse(_TOLERANT if allow_constants else _STRICT, text)


def parse_json_object(text: str | bytes, inner: Sequence[str]) -> Any:
    """As `parse_json`, and quicker for an object in which only the members `inner` hold objects, flat ones at that.

    Each member has a colon, so a text that has no more colons than there are members left has none that was hidden by
    another of its name. Where that does not show, the text is parsed with care.
    """
    try:
        plain = text if isinstance(text, str) else text.decode("utf-8")
        value, end = _scan(plain, 0)
    except (StopIteration, ValueError, RecursionError):
        return parse_json(text)
    if type(value) is dict and end == len(plain):
        members = len(value)
        for name in inner:
            held = value.get(name)
            if type(held) is dict:
                members += len(held)
        if members == plain.count(":"):
            return value
    return parse_json(plain)


def parse_json_pairs(text: str | bytes, *, allow_constants: bool = True) -> Any:
    """Parse one value, each object in it as `Pairs`: for callers who tell repeated names and NaN in their own words."""
    return _parse(_PAIRS if allow_constants else _STRICT_PAIRS, text)


def parse_json_at(text: str, start: int, *, allow_constants: bool = False) -> tuple[Any, int]:
    """Parse the value that begins at `start`; also where it ends. Anything may follow it."""
    decoder = _TOLERANT if allow_constants else _STRICT
    try:
        return decoder.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        fault = _typed(error)
    raise fault


def _parse(decoder: json.JSONDecoder, text: str | bytes) -> Any:
    try:
        return decoder.decode(text if isinstance(text, str) else text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        fault = _typed(error)
    # Raised out here, because the parser's own error holds the whole text, and a key file's must not travel along.
    raise fault


def _typed(error: ValueError | RecursionError) -> StrictJsonError:
    if isinstance(error, StrictJsonError):
        return error
    return TooDeepError() if isinstance(error, RecursionError) else NotJsonError(str(error))


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        repeated = first_repeated([name for name, _ in pairs])
        assert repeated is not None
        raise RepeatedNameError(repeated)
    return members


def _refuse_constant(constant: str) -> NoReturn:
    raise JsonConstantError(constant)


_QUICK = json.JSONDecoder(parse_constant=_refuse_constant)
# What `raw_decode` calls, without a layer in between; it says that there is no value by StopIteration.
_scan = _QUICK.scan_once  # type: ignore[attr-defined]
_STRICT = json.JSONDecoder(object_pairs_hook=_refuse_repeated_names, parse_constant=_refuse_constant)
_TOLERANT = json.JSONDecoder(object_pairs_hook=_refuse_repeated_names)
_PAIRS = json.JSONDecoder(object_pairs_hook=Pairs)
_STRICT_PAIRS = json.JSONDecoder(object_pairs_hook=Pairs, parse_constant=_refuse_constant)
