"""The candidates of one log, each weighed once and on all its steps, and the search for those beside the best.

A pooled log may carry several identities. The best leaves steps that contradict it; who else is there is looked for
among these, in the sessions that it does not explain, and in the registry. That only finds candidates: each is weighed
on every step of the log, with its own price, and whoever passes is named.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log2

from agentmark.core.costs import E_VALUE, EVIDENCE_STEP
from agentmark.core.evidence import Evidence
from agentmark.core.theory import false_positive_rate
from agentmark.verify.candidates import MOST_FOUND, Candidate, Route, Searcher
from agentmark.verify.readings import EValues, Readings
from agentmark.verify.sorted_log import SortedLog
from agentmark.verify.work import Work

# No more than this share of the work goes into sessions by themselves.
PARTS_SHARE = 0.25
# Nor more than this into somebody beside those found whom a registry does not know, at each turn.
UNKNOWN_SHARE = 0.1
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
    # What each step of the log says for it.
    said: EValues


class Weighing:
    """What all steps of a log say for each candidate that was brought."""

    def __init__(self, searcher: Searcher, log: SortedLog, work: Work) -> None:
        self.readings = log.readings
        self._log = log
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
        if not self._searcher.rates or not self._could_name or (best is not None and not len(self.unexplained([best]))):
            return
        # (a) Every name that has enough on the steps that the best, once it is proved, does not explain.
        self._add_within_work(self._searcher.names_above(self._unexplained(self.found[:1]), self._work))
        # (b) Sessions, and the steps of each key, that nobody explains yet: most are one agent's own, and clean.
        if consistent is not True:
            self._look_at_parts()
        # (c) Everything together, where nobody was found so.
        if not self.found:
            self.add(self._searcher.noisy(self.readings, self._log.payload_len, self._work))
        # (d) What is left when those who were found have been taken out, until nobody more passes.
        while 0 < len(self.found) < MOST_FOUND and self.add(self._beside(self._unexplained(self.found))):
            pass

    def unexplained(self, found: Sequence[Weighed]) -> Sequence[int]:
        """The places of the steps that contradict all of these."""
        if not found:
            return range(len(self.readings))
        rest = found[0].said.contradicting
        for weighed in found[1:]:
            others = set(weighed.said.contradicting)
            rest = [i for i in rest if i in others]
        return rest

    def _unexplained(self, found: Sequence[Weighed]) -> Readings:
        """The steps that contradict all of these."""
        return self.readings.take(self.unexplained(found)) if found else self.readings

    @property
    def _could_name(self) -> bool:
        """Whether the steps say enough to name anyone, if there were one with whom they all agree."""
        cheapest = self._searcher.prices.of(None, self._log.payload_len)
        return self.readings.most_bits >= cheapest - log2(self._searcher.threshold)

    def _look_at_parts(self) -> None:
        payload_len = self._log.payload_len
        work = self._work.share(PARTS_SHARE)
        for part in self._log.parts():
            if len(self.found) >= MOST_FOUND or work.cut_short:
                break
            if part.evidence_bits < payload_len + PART_SURPLUS:
                continue
            if not work.take(E_VALUE * len(part) * (1 + len(self.found))) or self._is_explained(part):
                continue
            candidates, _ = self._searcher.clean(part, payload_len, work)
            self._add_within_work(candidates)
        self._work.spend(work.spent)

    def _is_explained(self, part: Readings) -> bool:
        """Whether one of those found explains every step of a part."""
        return any(not len(part.e_values(weighed.payload).contradicting) for weighed in self.found)

    def _beside(self, rest: Readings) -> list[Candidate]:
        """Candidates for the steps that nobody explains, if these alone could name somebody."""
        payload_len = self._log.payload_len
        if rest.evidence_bits < payload_len - log2(self._searcher.threshold):
            return []
        # With a registry its names have been looked at already: somebody whom it does not know is rare.
        work = self._work.share(1.0 if self._searcher.prices.registry is None else UNKNOWN_SHARE)
        candidates, _ = self._searcher.clean(rest, payload_len, work)
        candidates = candidates or self._searcher.noisy(rest, payload_len, work)
        self._work.spend(work.spent)
        if work.needed is not None and self._searcher.prices.registry is None:
            self._work.refuse(work.needed - work.spent)
        return candidates

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
        prices, length = self._searcher.prices, self._log.payload_len
        paid = prices.of_claim(length) if candidate.route is Route.CLAIM else prices.of(candidate.payload, length)
        self._work.spend(EVIDENCE_STEP * len(self.readings))
        said = self.readings.e_values(candidate.payload)
        evidence = Evidence(self._searcher.noise_rates)
        evidence.update_counts(said.counts)
        surplus = evidence.bits - paid
        passes = false_positive_rate(surplus) <= self._searcher.threshold
        return Weighed(candidate.payload, candidate.route, evidence, paid, surplus, passes, said)
