"""The candidates of one log, each weighed once and on all its steps, and the search for those beside the best.

A pooled log may carry several identities. The best leaves steps that contradict it; who else is there is looked for
among these, in the sessions that it does not explain, and in the registry. That only finds candidates: each is weighed
on every step of the log, with its own price, and whoever passes is named.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, log2

from agentmark.core.costs import E_VALUE, EVIDENCE_STEP
from agentmark.core.evidence import Evidence
from agentmark.core.symbols import Reading
from agentmark.core.theory import false_positive_rate
from agentmark.verify.candidates import MOST_FOUND, Candidate, Route, Searcher
from agentmark.verify.intake import Intake
from agentmark.verify.work import Work

# No more than this share of the work goes into sessions by themselves.
PARTS_SHARE = 0.25
# A session that says so many bits more than the payload has: one that is another's hardly ever leaves a payload then.
PART_SURPLUS = 8


@dataclass(frozen=True, slots=True)
class Weighed:
    """A candidate with its evidence, and what naming it costs."""

    payload: int
    route: Route
    evidence: Evidence
    bits_paid: float
    surplus: float
    passes: bool
    # At each step of the log.
    e_values: list[float]


class Weighing:
    """What all steps of a log say for each candidate that was brought."""

    def __init__(self, searcher: Searcher, intake: Intake, work: Work) -> None:
        self.readings = intake.readings
        self._intake = intake
        self._searcher = searcher
        self._work = work
        self._weighed: dict[int, Weighed] = {}

    @property
    def ranked(self) -> list[Weighed]:
        """Most evidence less price first; of equals, the smallest payload."""
        return sorted(self._weighed.values(), key=lambda weighed: (-weighed.surplus, weighed.payload))

    @property
    def best(self) -> Weighed | None:
        return next(iter(self.ranked), None)

    @property
    def found(self) -> list[Weighed]:
        """Everyone who passes, best first, as many as a verdict names."""
        return [weighed for weighed in self.ranked if weighed.passes][:MOST_FOUND]

    def add(self, candidates: Iterable[Candidate]) -> bool:
        """Weigh those that are new; whether one of them passes."""
        passed = False
        for candidate in candidates:
            if candidate.payload not in self._weighed:
                weighed = self._weighed[candidate.payload] = self._weigh(candidate)
                passed = passed or weighed.passes
        return passed

    def look_further(self, *, consistent: bool | None) -> None:
        """Bring whoever else may explain a part of the log, unless the best explains all of it.

        `consistent` as it was settled at first sight. What this costs is bounded by the meter, and by the number of
        identities that a verdict names.
        """
        best = self.best
        if not self._searcher.rates or not self._could_name or (best is not None and not self.unexplained([best])):
            return
        # (a) Every name that has enough on the steps that the best, once it is proved, does not explain.
        self._add_within_work(self._searcher.names_above(self.unexplained(self.found[:1]), self._work))
        # (b) Sessions, and the steps of each key, that nobody explains yet: most are one agent's own, and clean.
        if consistent is not True:
            self._look_at_parts()
        # (c) Everything together, where nobody was found so.
        if not self.found:
            self.add(self._searcher.noisy(self.readings, self._intake.payload_len, self._work))
        # (d) What is left when those who were found have been taken out, until nobody more passes.
        while 0 < len(self.found) < MOST_FOUND and self.add(self._beside(self.unexplained(self.found))):
            pass

    def unexplained(self, found: Sequence[Weighed]) -> list[Reading]:
        """The steps that contradict all of these."""
        rest: Iterable[int] = range(len(self.readings))
        for weighed in found:
            rest = [i for i in rest if not weighed.e_values[i] > 0]
        return [self.readings[i] for i in rest]

    @property
    def _could_name(self) -> bool:
        """Whether the steps say enough to name anyone, if there were one with whom they all agree."""
        cheapest = self._searcher.prices.of(None, self._intake.payload_len)
        return fsum([reading.most_bits for reading in self.readings]) >= cheapest - log2(self._searcher.threshold)

    def _look_at_parts(self) -> None:
        payload_len = self._intake.payload_len
        work = self._work.share(PARTS_SHARE)
        for part in self._intake.parts:
            if len(self.found) >= MOST_FOUND or work.cut_short:
                break
            if fsum([reading.evidence_bits for reading in part]) < payload_len + PART_SURPLUS:
                continue
            if not work.take(E_VALUE * len(part) * (1 + len(self.found))) or self._is_explained(part):
                continue
            candidates, _ = self._searcher.clean(part, payload_len, work)
            self._add_within_work(candidates)
        self._work.spend(work.spent)

    def _is_explained(self, part: Sequence[Reading]) -> bool:
        """Whether one of those found explains every step of a part."""
        return any(all(reading.e_value(weighed.payload) > 0 for reading in part) for weighed in self.found)

    def _beside(self, rest: list[Reading]) -> list[Candidate]:
        """Candidates for the steps that nobody explains, if these alone could name somebody."""
        payload_len = self._intake.payload_len
        if fsum([reading.evidence_bits for reading in rest]) < payload_len - log2(self._searcher.threshold):
            return []
        candidates, _ = self._searcher.clean(rest, payload_len, self._work)
        return candidates or self._searcher.noisy(rest, payload_len, self._work)

    def _add_within_work(self, candidates: Iterable[Candidate]) -> None:
        """As `add`, while there is work left for it: these may be many."""
        for candidate in candidates:
            if candidate.payload in self._weighed:
                continue
            if self._work.left < EVIDENCE_STEP * len(self.readings):
                self._work.refuse(EVIDENCE_STEP * len(self.readings))
                return
            self.add([candidate])

    def _weigh(self, candidate: Candidate) -> Weighed:
        prices = self._searcher.prices
        claimed = candidate.route is Route.CLAIM
        paid = prices.of_claim if claimed else prices.of(candidate.payload, self._intake.payload_len)
        self._work.spend(EVIDENCE_STEP * len(self.readings))
        e_values = [reading.e_value(candidate.payload) for reading in self.readings]
        evidence = Evidence(self._searcher.noise_rates)
        evidence.update_all(e_values)
        surplus = evidence.bits - paid
        passes = false_positive_rate(surplus) <= self._searcher.threshold
        return Weighed(candidate.payload, candidate.route, evidence, paid, surplus, passes, e_values)
