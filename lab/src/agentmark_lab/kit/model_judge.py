"""A language model as judge: of social quality, on the paper's five dimensions, and of whether a task was solved.

It is asked only where one is given."""

import json
from dataclasses import dataclass
from typing import Any

from agentmark.elicit.chat import Chat, ChatRequest
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.http_chat import HttpChat
from agentmark_lab.kit.options import JudgeChoice

# How a user names the judge; the command line reads them.
URL_VARIABLE, MODEL_VARIABLE, KEY_VARIABLE = "AGENTMARK_JUDGE_URL", "AGENTMARK_JUDGE_MODEL", "AGENTMARK_JUDGE_KEY"
DIMENSIONS = {
    "coherence": "the actions follow from what the agent saw and did before",
    "memory accuracy": "it does not contradict or forget what it did before",
    "character stability": "it stays in its persona",
    "social norms and common sense": "it behaves as a reasonable member of the platform would",
    "language diversity": "its texts are varied, not formulaic",
}
LOWEST, HIGHEST = 1, 10

_SYSTEM = (
    "You judge how well a simulated user of a social platform plays its role. Score each dimension from"
    f" {LOWEST} (poor) to {HIGHEST} (excellent). Reply with one JSON object only, with every dimension's exact name."
)
_SOLVED_SYSTEM = (
    "You judge whether an agent with tools has solved a user's task. It has if the replies of its tools hold what the"
    ' user asked for. Reply with one JSON object only: {"solved": true} or {"solved": false}.'
)


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges one trajectory at a time, without being told which group it is from."""

    chat: Chat

    def scores(self, persona: str, transcript: str) -> dict[str, float] | None:
        """A score for every dimension; None if the judge said nothing that can be used."""
        dimensions = "\n".join([f"- {name}: {meaning}" for name, meaning in DIMENSIONS.items()])
        user = f"Persona:\n{persona}\n\nWhat it did, step by step:\n{transcript}\n\nDimensions:\n{dimensions}"
        schema = {
            "type": "object",
            "properties": {name: {"type": "number"} for name in DIMENSIONS},
            "required": list(DIMENSIONS),
            "additionalProperties": False,
        }
        messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": user}]
        return _read(self.chat.complete(ChatRequest(messages=messages, schema=schema, temperature=0.0)).text)

    def solved(self, task: str, transcript: str) -> bool | None:
        """Whether the steps solve the task; None if the judge said nothing that can be used."""
        schema = {
            "type": "object",
            "properties": {"solved": {"type": "boolean"}},
            "required": ["solved"],
            "additionalProperties": False,
        }
        user = f"Task:\n{task}\n\nWhat the agent did, step by step:\n{transcript}"
        messages = [{"role": "system", "content": _SOLVED_SYSTEM}, {"role": "user", "content": user}]
        reply = self.chat.complete(ChatRequest(messages=messages, schema=schema, temperature=0.0)).text
        try:
            stated = _object_in(reply)["solved"]
        except (ValueError, KeyError, TypeError):
            return None
        return stated if isinstance(stated, bool) else None


def _object_in(text: str) -> Any:
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


def _read(text: str) -> dict[str, float] | None:
    try:
        stated = _object_in(text)
        scores = {name: float(stated[name]) for name in DIMENSIONS}
    except (ValueError, KeyError, TypeError):
        return None
    return scores if all(LOWEST <= score <= HIGHEST for score in scores.values()) else None


def open_judge(stated: JudgeChoice | None) -> Judge | None:
    """The judge that was given, if one was."""
    if stated is None:
        return None
    return Judge(HttpChat(Endpoint(stated.base_url, stated.name, api_key=stated.api_key)))
