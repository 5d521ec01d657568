"""Option labels: the options are lettered, and the probability of each letter as the next token is the list."""

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import exp
from string import ascii_uppercase
from typing import ClassVar

from agentmark.core.distribution import Rational
from agentmark.elicit.chat import Chat, ChatElicitor, ChatReply, ChatRequest, Dialogue
from agentmark.elicit.errors import UnsupportedError, UpstreamError
from agentmark.elicit.orders import checked_orders, mean_list, rotated
from agentmark.elicit.situation import Candidate, Elicitation, Message, Situation

# What the large providers allow; local servers often allow more.
MAX_TOP_LOGPROBS = 20
MAX_LOGPROB = 0.01

# Below this share of the probability, the model is not answering with a letter at all.
NO_MASS = 0.01

_QUESTION = (
    "Before you go on: which of these options is your next step? Take none of them yet. Reply with the letter of the"
    " option, and with nothing else."
)


class Labels(ChatElicitor):
    """One token of output. Options are shuffled; with `orders`, asked in several orders and averaged."""

    name: ClassVar[str] = "labels"

    def __init__(
        self,
        chat: Chat | None = None,
        *,
        orders: int = 1,
        min_mass: float = 0.5,
        top_logprobs: int = MAX_TOP_LOGPROBS,
        rng: random.Random | None = None,
    ) -> None:
        """If less than `min_mass` of the model's probability goes to the letters, its list is not used."""
        super().__init__(chat)
        self._orders = checked_orders(orders)
        self._min_mass = min_mass
        self._top_logprobs = top_logprobs
        self._rng = rng or random.SystemRandom()

    def dialogues(self, situation: Situation) -> list[Dialogue]:
        count = len(situation.candidates)
        most = min(self._top_logprobs, len(ascii_uppercase))
        if count > most:
            raise UnsupportedError(self.name, f"{count} candidates, and labels carry {most}", always=False)
        return [self._read(situation, order) for order in rotated(situation.candidates, self._orders, self._rng)]

    def _read(self, situation: Situation, order: Sequence[Candidate]) -> Dialogue:
        reply = yield ChatRequest(
            messages=label_messages(situation, order),
            tools=situation.tools,
            max_tokens=1,
            temperature=1.0,
            top_logprobs=self._top_logprobs,
            least_logprobs=len(order),
        )
        masses = dict(zip([option.name for option in order], self._masses(reply, len(order)), strict=True))
        # In the order of the candidates: a list says nothing of how its options were shown.
        weights = {name: masses[name] for name in situation.names}
        return Elicitation(method=self.name, model=self.chat.model, weights=weights)

    def joined(self, said: Sequence[Elicitation]) -> Elicitation:
        masses = mean_masses([part.weights or {} for part in said])
        seen = sum(masses.values())
        if seen < min(NO_MASS, self._min_mass):
            fault = f"the letters have {seen:.1%} of the probability of {self.chat.model}'s first token"
            raise UnsupportedError(self.name, f"{fault}, as with models that think first", always=True)
        return judged(masses, method=self.name, model=self.chat.model, min_mass=self._min_mass)

    def _masses(self, reply: ChatReply, count: int) -> list[float]:
        if not reply.top_logprobs or not reply.top_logprobs[0]:
            raise UnsupportedError(self.name, f"{self.chat.model} reports no log-probabilities", always=True)
        return label_masses(reply.top_logprobs[0], count)


def label_messages(situation: Situation, order: Sequence[Candidate]) -> list[Message]:
    """The agent's conversation, and the question with the options in this order."""
    lines = [
        f"{letter}. {option.name}: {option.description}" if option.description else f"{letter}. {option.name}"
        for letter, option in zip(ascii_uppercase, order, strict=False)
    ]
    text = f"{_QUESTION}\n\nOptions:\n" + "\n".join(lines) + "\n\nLetter:"
    return [*situation.messages, {"role": "user", "content": text}]


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


def mean_masses(readings: Sequence[Mapping[str, Rational]]) -> dict[str, float]:
    """One reading from several orders. Lists are averaged, each divided by its sum; what they miss is averaged apart.

    So an order in which the model says something else more often does not count for less. One in which it says nothing
    of the options has no list, and only adds to what is missing.
    """
    if len(readings) == 1:
        return {name: float(Fraction(*mass.as_integer_ratio())) for name, mass in readings[0].items()}
    seen = [reading for reading in readings if any(mass.as_integer_ratio()[0] for mass in reading.values())]
    if not seen:
        return dict.fromkeys(readings[0], 0.0)
    total = sum([Fraction(*mass.as_integer_ratio()) for reading in seen for mass in reading.values()])
    return {name: float(share * total / len(readings)) for name, share in mean_list(seen).items()}


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
