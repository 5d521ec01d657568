"""Whether a request asks the model about its own next step, and between which options: the one place that guesses.

A question comes as the last message of the user. Three things may tell the options, and the first that does counts:
a JSON schema with a number for each option; lines such as `A. name: description`, where a letter is asked for; and in
the text a JSON list of names, or lines such as `- name: description`, where probabilities are asked for. A message that
asks for a correction stands for the question before it. What is recognised as none of these is an agent's own request.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentmark.testing.refusing.conversation import Request, Turn

_WANTS_WEIGHTS = re.compile(r"probabilit|how likely", re.IGNORECASE)
_WANTS_LETTER = re.compile(r"\bletter\b", re.IGNORECASE)
_CORRECTION = re.compile(r"cannot be used|reply again|corrected", re.IGNORECASE)
_LETTERED = re.compile(r"^([A-Z])[.):] +(.+?)(?:: .*)?$", re.MULTILINE)
_LISTED = re.compile(r"^- +(.+?)(?:: .*)?$", re.MULTILINE)
_CALL_NOW = re.compile(r"\bcall (?:the tool |the function )?[`'\"]?([\w.:-]+?)[`'\"]? now\b", re.IGNORECASE)
_ANSWER_NOW = re.compile(r"\banswer (?:the user |me )?now\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """The options, by letter or under their own names; `letters` says which."""

    options: Mapping[str, str]
    letters: bool = False
    # Whether the weights belong under "action_weights", beside arguments for each option.
    with_arguments: bool = False


def question_in(request: Request) -> Question | None:
    """The question that a request asks, if it asks one."""
    users = [turn.text for turn in request.turns if turn.role == "user"]
    if not users or request.turns[-1].role != "user":
        return None
    text = users[-1]
    if _CORRECTION.search(text) and len(users) > 1:
        text = users[-2]
    around = text + "\n".join([turn.text for turn in request.turns if turn.role == "system"])
    if request.schema is not None and _WANTS_WEIGHTS.search(around):
        names = numbers_in(request.schema)
        if len(names) > 1:
            return Question({name: name for name in names}, with_arguments="action_args" in text)
    letters = dict(_LETTERED.findall(text))
    if len(letters) > 1 and _WANTS_LETTER.search(around):
        return Question(letters, letters=True)
    if _WANTS_WEIGHTS.search(around):
        names = _names_in(text)
        if len(names) > 1:
            return Question({name: name for name in names}, with_arguments="action_args" in around)
    return None


def instruction_in(turns: Sequence[Turn]) -> str | None:
    """The tool that the last message tells the model to call; an empty name if it shall answer; None if neither."""
    if not turns or turns[-1].role not in ("user", "system"):
        return None
    told = _CALL_NOW.search(turns[-1].text)
    if told is not None:
        return told[1]
    return "" if _ANSWER_NOW.search(turns[-1].text) else None


def numbers_in(schema: Mapping[str, Any]) -> list[str]:
    """The names that a schema wants a number for: of the first object in it all of whose members are numbers."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return []
    kinds = [str(member.get("type", "")).lower() for member in properties.values() if isinstance(member, Mapping)]
    if len(kinds) == len(properties) and all(kind in ("number", "integer") for kind in kinds):
        return [str(name) for name in properties]
    for member in properties.values():
        names = numbers_in(member) if isinstance(member, Mapping) else []
        if names:
            return names
    return []


def _names_in(text: str) -> list[str]:
    """The last JSON list of strings in a text; without any, what the lines of its list begin with."""
    decoder = json.JSONDecoder()
    for start in [found.start() for found in re.finditer(r"\[", text)][::-1]:
        try:
            listed, _ = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if listed and isinstance(listed, list) and all(isinstance(name, str) for name in listed):
            return list(dict.fromkeys(listed))
    return list(dict.fromkeys(_LISTED.findall(text)))
