"""A strict reader of verbalised lists: what a model wrote, or why it cannot be used. Nothing is repaired (law L6).

docs/elicitation.md has the table of what is accepted and refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from agentmark.core.strict_json import JsonConstantError, RepeatedNameError, StrictJsonError, parse_json_at

MAX_REPLY_CHARS = 1_000_000
_WEIGHTS, _ARGUMENTS, _THOUGHT = "action_weights", "action_args", "thought"
# What stands before an object that is part of something larger: an array, a member's name.
_INSIDE = re.compile(r'(\[|"|"\s*:|,)\s*\Z')


class ParseFault(ValueError):  # noqa: N818 - a finding about a reply, told to the model; not an error of ours
    """Why a reply cannot be used, in words that the model is told too; `kind` is the same without its own words."""

    def __init__(self, kind: str, detail: str | None = None) -> None:
        super().__init__(detail or kind)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Stated:
    """A list as the model stated it, and the arguments it gave for each behavior, if it was asked for them."""

    weights: dict[str, int | float]
    arguments: dict[str, Any] | None = None
    # Candidates the model left out, where a prompt allows that.
    unstated: tuple[str, ...] = ()


def parse_weights(text: str, names: Sequence[str], *, allow_missing: bool = False) -> Stated:
    """Read `{"name": number, ...}`: every candidate once and nothing else.

    `allow_missing` reads a candidate that was left out as one of probability zero, for prompts that say so.
    """
    return _checked(_only_object(text), names, allow_missing)


def parse_weights_and_arguments(text: str, names: Sequence[str]) -> Stated:
    """Read the ToolBench shape: `{"action_weights": {...}, "action_args": {...}}`."""
    content = _only_object(text)
    for key in content:
        if key not in (_WEIGHTS, _ARGUMENTS, _THOUGHT):
            fault = f'the key "{_short(key)}" is unknown; give "{_WEIGHTS}" and "{_ARGUMENTS}"'
            raise ParseFault("an unknown key", fault)
    weights, arguments = content.get(_WEIGHTS), content.get(_ARGUMENTS)
    if not isinstance(weights, dict):
        raise ParseFault(f'"{_WEIGHTS}" is missing, or is not an object of probabilities')
    if not isinstance(arguments, dict):
        raise ParseFault(f'"{_ARGUMENTS}" is missing, or is not an object of arguments')
    stated = _checked(weights, names, allow_missing=False)
    _refuse_unknown(arguments, names)
    return Stated(stated.weights, arguments)


def _only_object(text: str) -> dict[str, Any]:
    """The one JSON object of a reply. Prose, a thinking block and a fence may stand around it; braces may not."""
    if len(text) > MAX_REPLY_CHARS:
        raise ParseFault("the reply is too long")
    text = text.rpartition("</think>")[2]
    if "<think>" in text:
        raise ParseFault("the thinking has no end; give the JSON object after it")
    start = text.find("{")
    if start < 0:
        raise ParseFault("there is no JSON object")
    if _INSIDE.search(text[:start]):
        raise ParseFault("the JSON object stands inside of something else; give the object alone")
    try:
        content, end = parse_json_at(text, start)
    except RepeatedNameError as error:
        raise ParseFault("a key is there twice", f'the key "{_short(error.name)}" is there twice') from None
    except JsonConstantError as error:
        raise ParseFault(f"{error.constant} is not a probability") from None
    except StrictJsonError:
        raise ParseFault("the JSON is not valid, or is cut short") from None
    rest = text[end:]
    if "{" in rest or "}" in rest:
        raise ParseFault("there is more than one JSON object; give one")
    assert isinstance(content, dict)
    return content


def _checked(content: Mapping[str, Any], names: Sequence[str], allow_missing: bool) -> Stated:
    _refuse_unknown(content, names)
    missing = tuple([name for name in names if name not in content])
    if missing and not allow_missing:
        raise ParseFault(f"no probability is given for {_listed(missing)}; every option needs one, 0 if it is out")
    weights = {name: _number(name, content.get(name, 0)) for name in names}
    if not any(weights.values()):
        raise ParseFault("all probabilities are zero")
    return Stated(weights, unstated=missing)


def _refuse_unknown(content: Mapping[str, Any], names: Sequence[str]) -> None:
    unknown = [key for key in content if key not in names]
    if unknown:
        fault = f"{_listed(unknown)} is not among the options; use their names exactly as given"
        raise ParseFault("a name that is not among the options", fault)


def _number(name: str, value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParseFault(f'the probability of "{_short(name)}" is not a number')
    if not 0 <= value < inf:
        raise ParseFault(f'the probability of "{_short(name)}" is negative or not finite')
    return value


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join([f'"{_short(name)}"' for name in names[:5]])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _short(name: str, limit: int = 80) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"
