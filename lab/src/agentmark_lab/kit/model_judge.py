"""A language model as judge: of social quality, on the paper's five dimensions, and of whether a task was solved.

It is asked only where one is given."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import exp
from typing import Any

from agentmark.elicit.chat import Chat, ChatRequest
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.errors import UnsupportedError
from agentmark.elicit.http_chat import HttpChat
from agentmark.elicit.labels import MAX_TOP_LOGPROBS
from agentmark.elicit.situation import Message
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
# A score is one digit, so that its probabilities are those of one token.
LOWEST, HIGHEST = 1, 9
# With less of the model's probability on these digits, it is not answering with one.
MIN_MASS = 0.5
# It is then asked to write the score, within so many tokens.
MOST_WORDS = 32

# A local judge on a machine that has other work to do takes its time.
PATIENCE_S = 600.0

# What never changes stands first and the question last: a server that keeps the beginning computes it once.
SCORING = (
    "You judge how well a simulated user of a social platform plays its role, in these dimensions:\n"
    + "\n".join([f"- {name}: {meaning}" for name, meaning in DIMENSIONS.items()])
    + f"\nYou are asked for one score at a time, from {LOWEST} (poor) to {HIGHEST} (excellent). Reply with one digit."
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
        """A score for every dimension, each asked for by itself; None if the judge said nothing that can be used."""
        found = {name: self._score(persona, transcript, name) for name in DIMENSIONS}
        usable = {name: score for name, score in found.items() if score is not None}
        return usable if len(usable) == len(found) else None

    def _score(self, persona: str, transcript: str, dimension: str) -> float | None:
        """The mean of the digits under the judge's own probabilities, which tells apart what the likeliest digit does
        not; the digit that it writes, where its server does not say how likely the others are."""
        user = f"Persona:\n{persona}\n\nWhat it did, step by step:\n{transcript}\n\nScore for {dimension}:"
        messages: list[Message] = [{"role": "system", "content": SCORING}, {"role": "user", "content": user}]
        request = ChatRequest(
            messages=messages,
            max_tokens=1,
            temperature=1.0,
            top_logprobs=MAX_TOP_LOGPROBS,
            least_logprobs=HIGHEST,
        )
        # A judge that thinks first, whose server tells no probabilities, is not cut short.
        most = None
        with suppress(UnsupportedError):
            reply = self.chat.complete(request)
            if reply.top_logprobs:
                weighed = _weighed(reply.top_logprobs[0])
                if weighed is not None:
                    return weighed
                most = MOST_WORDS
        return _written(self.chat.complete(ChatRequest(messages=messages, temperature=0.0, max_tokens=most)).text)

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


def _weighed(said: Sequence[tuple[str, float]]) -> float | None:
    """None where the judge begins with something else than a digit."""
    masses = [(token.strip(), exp(logprob)) for token, logprob in said]
    digits = [(int(text), mass) for text, mass in masses if re.fullmatch(f"[{LOWEST}-{HIGHEST}]", text)]
    total = sum([mass for _, mass in digits])
    return sum([digit * mass for digit, mass in digits]) / total if total >= MIN_MASS else None


def _written(text: str) -> float | None:
    """One number and no other, on the scale."""
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
    return numbers[0] if len(numbers) == 1 and LOWEST <= numbers[0] <= HIGHEST else None


def open_judge(stated: JudgeChoice | None) -> Judge | None:
    """The judge that was given, if one was."""
    if stated is None:
        return None
    return Judge(HttpChat(Endpoint(stated.base_url, stated.name, api_key=stated.api_key, timeout_s=PATIENCE_S)))
