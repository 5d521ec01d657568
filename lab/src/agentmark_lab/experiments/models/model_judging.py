"""What the episodes of a language model show: which logs name their identity, and which policy can be told apart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import erfc, inf, sqrt
from statistics import NormalDist, fmean

from agentmark.core.statistics import Interval, normal_quantile
from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.experiments.models.model_plan import PlannedPlace
from agentmark_lab.experiments.models.model_trials import (
    LABEL,
    PAYLOAD_LEN,
    REFERENCES,
    Chunk,
    Outcome,
    Tally,
    identity,
)
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.equivalence import MARGIN, Comparison
from agentmark_lab.kit.models import ModelSpec
from agentmark_lab.kit.naming import named_after
from agentmark_lab.kit.plan import Level
from agentmark_lab.kit.task_test import task_test
from agentmark_lab.kit.utility_tests import Judged


@dataclass(frozen=True, slots=True)
class PlayedSet:
    """One set of trials: the outcome of each task."""

    label: str
    chunks: list[Chunk]
    outcomes: list[Outcome]

    def tallies(self, policy: str) -> list[Tally]:
        return [outcome.by_policy[policy] for outcome in self.outcomes]


@dataclass(frozen=True, slots=True)
class PlayedPlace:
    """All that one model did in one place: several sets of trials, each judged by itself."""

    model: ModelSpec
    place: PlannedPlace
    sets: list[PlayedSet]

    @property
    def where(self) -> str:
        return f"{self.model.label} on {self.place.title}"

    @property
    def outcomes(self) -> list[Outcome]:
        return [outcome for one in self.sets for outcome in one.outcomes]

    def tallies(self, policy: str) -> list[Tally]:
        """Of every task in every set."""
        return [tally for one in self.sets for tally in one.tallies(policy)]


# Their logs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Log:
    """What a verifier makes of one identity's log. `named_after`: so many decisions, or infinity."""

    decisions: int
    bits: float
    named_after: float
    named: bool
    # Another identity is named; or anyone, with a key that marked nothing here.
    wrong: bool


def read_back(played: PlayedPlace, policy: str) -> list[Log]:
    """The log of each identity, in every set."""
    return [log for one in played.sets for log in _logs(one, policy)]


def _logs(played: PlayedSet, policy: str) -> list[Log]:
    """Of each identity all its episodes, in an order of its own."""
    chunk = played.chunks[0]
    tasks = [tally.logs for tally in played.tallies(policy)]
    each = chunk.place.each
    found = []
    for number in range(chunk.place.identities):
        episodes = [log for logs in tasks for log in logs[number * each : (number + 1) * each]]
        order = generator(chunk.seed, LABEL, "episodes", number).sample(episodes, len(episodes))
        found.append(_read(chunk, number, [record for episode in order for record in episode]))
    return found


def _read(chunk: Chunk, number: int, records: Sequence[StepRecord]) -> Log:
    key, payload = identity(chunk, number)
    verifier = Verifier(key, payload_len=PAYLOAD_LEN)
    judged = verifier.verify(records)
    stranger, _ = identity(chunk, number + chunk.place.read)
    claimed = [replace(record, key_id=stranger.id) for record in records]
    misled = Verifier(stranger, payload_len=PAYLOAD_LEN).verify(claimed)
    return Log(
        len(records),
        sum([reading.evidence_bits for reading in verifier.take_in(records).readings]),
        named_after(records, key, payload, payload_len=PAYLOAD_LEN),
        judged.accepted and judged.payload == payload,
        misled.accepted or (judged.accepted and judged.payload != payload),
    )


# The tests -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfTheseTasks(Comparison):
    """A comparison on tasks that were selected and stand for no others: what varies is the trials within each, which
    share nothing. `error`: the standard error of the mean over tasks."""

    error: float = 0.0

    def at(self, confidence: float) -> Interval:
        reach = normal_quantile(confidence) * self.error
        return Interval(self.difference - reach, self.difference + reach)

    def power(self, margin: float = MARGIN) -> float:
        """By the normal distribution, as these intervals are; where nothing varies nothing can be missed."""
        reach = margin / self.error - normal_quantile(0.90) if self.error else inf
        return max(0.0, 2 * NormalDist().cdf(reach) - 1)

    @property
    def p_value(self) -> float:
        """Two-sided, of H0 that the means are the same; 1 where nothing varies."""
        return erfc(abs(self.difference) / self.error / sqrt(2)) if self.error else 1.0


def judge(played: PlayedPlace, policy: str) -> list[Judged]:
    """A policy against the one that it must not be told apart from, set by set."""
    return [_judged(one, played.place.level, policy) for one in played.sets]


def _judged(played: PlayedSet, level: Level, policy: str) -> Judged:
    mine, reference = played.tallies(policy), played.tallies(REFERENCES[policy])
    success, steps = compared(policy, mine, reference), compared(policy, mine, reference, of_steps=True)
    p_values = {
        "success": success.p_value,
        "success by task": task_test([(a.won, b.won) for a, b in zip(mine, reference, strict=True)]).p_value,
        "steps": steps.p_value,
        "steps by task": task_test([(a.steps, b.steps) for a, b in zip(mine, reference, strict=True)]).p_value,
    }
    return Judged(played.label, level, policy, success, steps, p_values)


def compared(policy: str, mine: Sequence[Tally], reference: Sequence[Tally], *, of_steps: bool = False) -> OfTheseTasks:
    pairs = [(a.steps, b.steps) if of_steps else (a.won, b.won) for a, b in zip(mine, reference, strict=True)]
    means = tuple([fmean(a) - fmean(b) for a, b in pairs])
    error = sqrt(sum([variance_of_mean(a) + variance_of_mean(b) for a, b in pairs])) / len(pairs)
    episodes = sum([len(a) for a, _ in pairs])
    return OfTheseTasks(policy, len(means), episodes, means, is_share=not of_steps, error=error)


def variance_of_mean(values: Sequence[int]) -> float:
    """Of their mean; exact, for there are many."""
    count, total = len(values), sum(values)
    return (count * sum([value * value for value in values]) - total * total) / count**3
