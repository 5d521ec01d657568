"""Option labels: the options are lettered, and the probability of each letter as the next token is the list."""

import random
from collections.abc import Mapping, Sequence
from math import exp
from string import ascii_uppercase
from typing import ClassVar

from agentmark.elicit.chat import Chat, ChatElicitor, ChatReply, ChatRequest, Dialogue
from agentmark.elicit.errors import UnsupportedError, UpstreamError
from agentmark.elicit.prompts import transcript
from agentmark.elicit.situation import Candidate, Elicitation, Message, Situation
from agentmark.errors import SettingError

# What the large providers allow; local servers often allow more.
MAX_TOP_LOGPROBS = 20
MAX_LOGPROB = 0.01

_SYSTEM = (
    "You plan the next step of an agent. You are shown its conversation and its options, each with a letter. Reply with"
    " the letter of the option that the agent should take next, and with nothing else."
)


class Labels(ChatElicitor):
    """One token of output. Options are shuffled; with `rotations`, asked in several orders and averaged."""

    name: ClassVar[str] = "labels"

    def __init__(
        self,
        chat: Chat | None = None,
        *,
        rotations: int = 1,
        min_mass: float = 0.5,
        top_logprobs: int = MAX_TOP_LOGPROBS,
        rng: random.Random | None = None,
    ) -> None:
        """If less than `min_mass` of the model's probability goes to the letters, its list is not used."""
        super().__init__(chat)
        if rotations < 1:
            raise SettingError("rotations", f"{rotations} is less than 1")
        self._rotations = rotations
        self._min_mass = min_mass
        self._top_logprobs = top_logprobs
        self._rng = rng or random.SystemRandom()

    def dialogue(self, situation: Situation) -> Dialogue:
        count = len(situation.candidates)
        most = min(self._top_logprobs, len(ascii_uppercase))
        if count > most:
            raise UnsupportedError(self.name, f"{count} candidates, and labels carry {most}", always=False)
        shown = self._rng.sample(situation.candidates, count)
        totals = dict.fromkeys(situation.names, 0.0)
        rounds = min(self._rotations, count)
        for turn in range(rounds):
            offset = turn * count // rounds
            order = shown[offset:] + shown[:offset]
            reply = yield ChatRequest(
                messages=label_messages(situation, order),
                max_tokens=1,
                temperature=1.0,
                top_logprobs=self._top_logprobs,
            )
            for name, mass in zip([one.name for one in order], self._masses(reply, count), strict=True):
                totals[name] += mass / rounds
        return judged(totals, method=self.name, model=self.chat.model, min_mass=self._min_mass)

    def _masses(self, reply: ChatReply, count: int) -> list[float]:
        if not reply.top_logprobs or not reply.top_logprobs[0]:
            raise UnsupportedError(self.name, f"{self.chat.model} reports no log-probabilities", always=True)
        return label_masses(reply.top_logprobs[0], count)


def label_messages(situation: Situation, order: Sequence[Candidate]) -> list[Message]:
    """The question, with the options in this order."""
    lines = [
        f"{letter}. {one.name}: {one.description}" if one.description else f"{letter}. {one.name}"
        for letter, one in zip(ascii_uppercase, order, strict=False)
    ]
    text = f"Conversation:\n{transcript(situation.messages)}\n\nOptions:\n" + "\n".join(lines) + "\n\nLetter:"
    return [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": text}]


def label_masses(alternatives: Sequence[tuple[str, float]], count: int) -> list[float]:
    """Probability of each letter; a letter with a space before it is the same letter."""
    masses = dict.fromkeys(ascii_uppercase[:count], 0.0)
    for token, logprob in alternatives:
        # Rounding may leave a little above zero; more than that, or no number, is no log-probability.
        if not logprob <= MAX_LOGPROB:
            raise UpstreamError("labels", f"{logprob} is no log-probability")
        letter = token.strip()
        if letter in masses:
            masses[letter] += exp(logprob)
    return list(masses.values())


def judged(masses: Mapping[str, float], *, method: str, model: str, min_mass: float) -> Elicitation:
    """Weights from probabilities that need not sum to one: what is missing is recorded, and too much is a fault.

    An option that was not seen has weight zero. The rest is divided by its sum when it is quantised (law L1).
    """
    missing = max(0.0, 1 - sum(masses.values()))
    unseen = tuple([name for name, mass in masses.items() if mass == 0])
    fault = None
    if 1 - missing < min_mass:
        fault = f"the options have {1 - missing:.1%} of the model's probability, less than {min_mass:.0%}"
    return Elicitation(
        method=method,
        model=model,
        weights=None if fault else masses,
        fault=fault,
        missing_mass=missing,
        unseen=unseen,
    )
