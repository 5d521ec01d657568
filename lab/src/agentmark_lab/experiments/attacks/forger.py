"""An adversary without a key, who may ask a verifier about logs of its own making, and forges from the answers.

Every forged step is a choice of scheme F between two options of equal weight, in a context of its own: one of the two
is what the key would have chosen for the claimed identity, and says one bit for it. An answer that tells which one it
is gives that bit away.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.evidence import Evidence
from agentmark.record import StepRecord

COIN = BehaviorDistribution.quantise({"heads": 1, "tails": 1})
SIDES = COIN.behaviors

# What is asked: does this log carry the claimed identity? What an answer is, depends on the view.
Question = Sequence[StepRecord]


@dataclass(slots=True)
class Forger:
    """Knows what any log shows (key id and payload length), and has its own coins."""

    key_id: str
    payload_len: int
    rng: Random
    asked: int = 0
    # Forged steps that, as far as the answers tell, the key would have made.
    log: list[StepRecord] = field(default_factory=list)

    def step(self, side: str) -> StepRecord:
        """A step in a context that nobody has used."""
        return StepRecord(
            scheme="F",
            key_id=self.key_id,
            payload_len=self.payload_len,
            session="forged",
            step_index=self.asked,
            context=self.rng.randbytes(32),
            distribution=COIN,
            behavior=side,
            marked=True,
        )

    def by_numbers(self, evidence_bits: Callable[[Question], float | None], *, limit: int) -> bool:
        """Forge from answers that give evidence in bits (None: accepted). Needs no genuine record."""
        known = Evidence()
        while self.asked < limit:
            guess = self.step(self.rng.choice(SIDES))
            self.asked += 1
            told = evidence_bits([*self.log, guess])
            if told is None:
                self.log.append(guess)
                return True
            right, wrong = _then(known, 2.0), _then(known, 0.0)
            self._keep(guess, right=told > (right + wrong) / 2)
            known.update(2.0)
        return False

    def by_views(self, view: Callable[[Question], str | None], *, limit: int) -> bool:
        """Forge from any difference between two views (None: accepted), whatever it is. Needs no genuine record.

        Each forged step is asked about with either choice. Whether more or less is better is not known: half of the
        questions go with more, and the other half with less, from the beginning.
        """
        for wanted, most in ((max, limit // 2), (min, limit)):
            self.log.clear()
            while self.asked + 2 <= most:
                views = []
                for guess in self.both_sides():
                    self.asked += 1
                    told = view([*self.log, guess])
                    if told is None:
                        self.log.append(guess)
                        return True
                    views.append((_in_order(told), guess))
                self.rng.shuffle(views)
                self.log.append(wanted(views, key=lambda pair: pair[0])[1])
        return False

    def by_yes_and_no(self, accepts: Callable[[Question], bool], *, genuine: Question, steps: int, limit: int) -> None:
        """Forge so many steps from the bare answers, with one genuine log that is accepted.

        The genuine log is cut until it fails by a hair. A forged step beside it then tips the scale, or does not.
        """

        def ask(question: Question) -> bool:
            self.asked += 1
            return accepts(question)

        base = self._a_hair_below(ask, genuine, limit)
        while self.asked < limit and len(self.log) < steps:
            guess = self.step(self.rng.choice(SIDES))
            self._keep(guess, right=ask([*base, guess]))

    def _a_hair_below(self, ask: Callable[[Question], bool], genuine: Question, limit: int) -> list[StepRecord]:
        """A part of the log that is not accepted, but is with one right step more: that is the first forged one."""
        low, high = 0, len(genuine)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if ask(genuine[:middle]) else (middle, high)
        left = list(genuine[:high])
        # Likely choices say least: without one of them the log fails by little.
        for record in sorted(left, key=_probability, reverse=True):
            base = [other for other in left if other is not record]
            if self.asked >= limit:
                break
            if ask(base):
                left = base
                continue
            for guess in self.both_sides():
                if ask([*base, guess]):
                    self.log.append(guess)
                    return base
        return left

    def both_sides(self) -> list[StepRecord]:
        """One step twice, with either choice: one of the two is right."""
        first = self.step(SIDES[0])
        return [first, _turned(first)]

    def _keep(self, guess: StepRecord, *, right: bool) -> None:
        if not right:
            guess = _turned(guess)
        self.log.append(guess)


def _then(evidence: Evidence, e_value: float) -> float:
    """What the evidence would be after one more step."""
    after = Evidence.from_bytes(evidence.to_bytes())
    after.update(e_value)
    return after.bits


def _in_order(text: str) -> list[tuple[float, str]]:
    """A text as what can be compared: its numbers by what they are worth, all else by its letters."""
    parts = re.split(r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)", text)
    return [(float(part), "") if number % 2 else (0.0, part) for number, part in enumerate(parts)]


def _probability(record: StepRecord) -> float:
    assert record.distribution is not None
    return record.distribution.probability(record.behavior)


def _turned(record: StepRecord) -> StepRecord:
    [other] = [side for side in SIDES if side != record.behavior]
    return replace(record, behavior=other)
