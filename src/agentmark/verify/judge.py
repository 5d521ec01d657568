"""Weighs the candidates, and says what the log shows (spec, section 9, steps 6 and 7)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import log2
from operator import index
from typing import SupportsIndex

from agentmark.core.costs import EVIDENCE_STEP
from agentmark.core.evidence import NOISE_RATES, Evidence
from agentmark.core.payload import PayloadLike, number_in_words, payload_to_int
from agentmark.core.theory import SMALLEST_RATE, false_positive_rate
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.errors import SettingError
from agentmark.identity.errors import RegistryError
from agentmark.identity.registry import Registry
from agentmark.verify.candidates import Candidate, Proposals, Route, Searcher
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.intake import Intake, Step
from agentmark.verify.prices import Prices
from agentmark.verify.readings import ReadingList, Readings
from agentmark.verify.search.clean import eliminate
from agentmark.verify.search.splice import SCORE_COST, Stretch, segment, windows
from agentmark.verify.sorted_log import SortedLog
from agentmark.verify.tamper import erasure_findings, tamper_findings
from agentmark.verify.verdict import FoundIdentity, RunnerUp, Segment, StepFinding, Verdict
from agentmark.verify.weighing import Weighed, Weighing
from agentmark.verify.work import Work, check_work_limit

# A log is divided among the identities that stood out in its windows, this many at most.
MOST_IDENTITIES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """One question, fixed before the log is looked at. Needs no key: it judges what was read."""

    threshold: float = DEFAULT_THRESHOLD
    # The share of foreign or altered steps to expect; None: a mixture of rates.
    noise: float | None = None
    prices: Prices = field(default_factory=Prices)
    # What looking for a payload may cost, in operations (`work.Work`).
    work_limit: int = DEFAULT_WORK_LIMIT

    def __post_init__(self) -> None:
        check_work_limit(self.work_limit)
        if not 0 < self.threshold < 1:
            raise SettingError("threshold", f"{self.threshold} is not between 0 and 1")
        if self.threshold < SMALLEST_RATE:
            raise SettingError("threshold", f"{self.threshold:g} is below {SMALLEST_RATE:g}, the smallest bound stated")
        if self.noise is not None and not 0 <= self.noise < 1:
            raise SettingError("noise", f"{self.noise} is not in [0, 1)")

    @property
    def noise_rates(self) -> tuple[float, ...]:
        return NOISE_RATES if self.noise is None else (self.noise,)

    def for_tries(self, tries: int) -> "Judge":
        """A judge that pays for this many questions of which its own is one."""
        return replace(self, prices=self.prices.for_tries(tries))

    def verdict(self, intake: Intake, claim: PayloadLike = None, *, offered: Sequence[int] = ()) -> Verdict:
        """What identity does this log carry, or (with a claim) does it carry this one?

        `offered` are payloads to look at first: found in other logs, say. They cost what every payload costs.
        """
        tampering = (*tamper_findings([step.record for step in intake.steps]), *erasure_findings(intake))
        verdict = self.judged(SortedLog.of(intake, tampering=tampering), claim, offered=offered)
        return replace(verdict, findings=tuple(_findings(intake.steps, verdict)))

    def judged(
        self, log: SortedLog, claim: PayloadLike = None, *, offered: Sequence[int] = (), glance: bool = False
    ) -> Verdict:
        """The same without the records of the log, and without a finding on each of them.

        A glance ends where a search among payloads that explain a part of the log would begin, unless somebody is found
        by then.
        """
        work = Work(self.work_limit)
        weighing = Weighing(self._searcher, log, work)
        readings = weighing.readings
        eliminated = eliminate(readings, log.payload_len, work)
        # (6) Look for payloads that may explain the steps. How one was found does not matter to its evidence.
        claimed = self.claimed(claim, log.payload_len, length_is_known=log.length_is_known)
        if claimed is not None:
            proposals = Proposals((Candidate(claimed, Route.CLAIM),))
        else:
            proposals = self._searcher.at_first_sight(
                readings, log.payload_len, work, eliminated=eliminated, offered=offered
            )
        weighing.add(proposals.candidates)
        if claimed is None and not (glance and not weighing.found):
            weighing.look_further(consistent=proposals.consistent)

        # (7) Judge each as a claim, with every identity that was tried paid for: whoever passes is named.
        ranked = weighing.ranked
        best = ranked[0] if ranked else None
        beaten = next((weighed for weighed in ranked[1:] if not weighed.passes), None)
        found = weighing.found
        against = 0 if best is None else len(best.said.contradicting)
        return Verdict(
            payload_len=log.payload_len,
            threshold=self.threshold,
            consistent=_consistent(proposals, best, readings),
            candidate=None if best is None else best.payload,
            route=None if best is None else best.route,
            evidence_bits=0.0 if best is None else best.evidence.bits,
            bits_paid=self.prices.of(None, log.payload_len) if best is None else best.bits_paid,
            ownership_bits=None if best is None else self._ownership(best, log, work).bits,
            likely_noise=0.0 if best is None else best.evidence.likely_noise,
            potential_bits=readings.evidence_bits,
            rank=eliminated.rank,
            work=work.spent,
            work_spent=work.cut_short,
            work_limit=self.work_limit,
            work_needed=work.needed,
            holder=None if best is None or self._registry is None else self._registry.holder(best.payload),
            found=tuple([self._found(weighed, log.payload_len) for weighed in found]),
            unexplained=len(weighing.unexplained(found or ranked[:1])),
            runner_up=None if beaten is None else RunnerUp(beaten.evidence.bits),
            keys_given=log.keys_given,
            tampering=log.tampering,
            tally=log.tally,
            agreeing=0 if best is None else len(readings) - against,
            contradicting=against,
        )

    def segments(self, intake: Intake) -> tuple[Segment, ...]:
        """Divide a log, in the order of its records, into stretches of one identity each, or of none that is ours."""
        searcher = self._searcher
        readings = [step.reading for step in intake.steps]
        # One meter for all windows: a log of many is not dearer than a log of one.
        work = Work(self.work_limit)
        found: dict[int, float] = {}
        # In a window that one identity dominates, a single rate in the middle of the range finds it.
        rates = searcher.rates[:1]
        for first, last in windows(len(readings)):
            part = ReadingList([reading for reading in readings[first:last] if reading is not None])
            if work.left < EVIDENCE_STEP * len(part):
                break
            proved = [payload for payload, surplus in found.items() if surplus >= -log2(self.threshold)]
            if searcher.suffices(proved, part, intake.payload_len, work):
                # An identity that was found in a wider window explains this one as well.
                continue
            for candidate in searcher.propose(part, intake.payload_len, work, rates=rates).candidates:
                paid = self.prices.of(candidate.payload, intake.payload_len)
                surplus = searcher.evidence(part, candidate.payload, work).bits - paid
                found[candidate.payload] = max(surplus, found.get(candidate.payload, float("-inf")))
        best = sorted(found, key=lambda payload: -found[payload])[:MOST_IDENTITIES]
        # Linear in the log, and what the windows were looked through for: done whatever is left.
        work.spend(SCORE_COST * len(readings) * (1 + len(best)))
        stretches = segment(readings, best, bits_paid=lambda payload: self.prices.of(payload, intake.payload_len))
        return tuple([self._segment(stretch, intake) for stretch in stretches])

    @property
    def _searcher(self) -> Searcher:
        return Searcher(
            prices=self.prices,
            threshold=self.threshold,
            noise_rates=self.noise_rates,
        )

    @property
    def _registry(self) -> Registry | None:
        return self.prices.registry

    def claimed(self, claim: PayloadLike, payload_len: int, *, length_is_known: bool = True) -> int | None:
        """The payload that is claimed: a name in the registry, or whatever a payload can be."""
        if claim is None:
            return None
        if isinstance(claim, str) and self._registry is not None:
            if claim not in self._registry:
                # Taken as text it would be judged as an identity that nobody has: a typing error would acquit.
                like = self._registry.names_like(claim)
                fault = f"is not in the registry{like}; a claim is a name in it, or a number (0x2a)"
                raise RegistryError(repr(claim), fault)
            return self._registry.named(claim).payload
        if not length_is_known:
            # Nothing here is ours: whatever was claimed, no record speaks of it.
            return 0
        if isinstance(claim, SupportsIndex) and not isinstance(claim, bool):
            number = index(claim)
            if not 0 <= number < 1 << payload_len:
                raise SettingError("claim", f"{number_in_words(number)} does not fit {payload_len} bits")
            return number
        return payload_to_int(claim, payload_len)[0]

    def evidence(self, readings: Readings, payload: int, work: Work) -> Evidence:
        """What the steps say for a payload."""
        return self._searcher.evidence(readings, payload, work)

    def proposed(self, readings: Readings, payload_len: int, work: Work) -> list[int]:
        """Payloads that may explain these steps, likeliest not first."""
        proposals = self._searcher.propose(readings, payload_len, work)
        return list(dict.fromkeys([candidate.payload for candidate in proposals.candidates]))

    def recognised(self, log: SortedLog, payloads: Sequence[int]) -> list[int]:
        """Those of these payloads that this log would name. Linear in the log, and cheap for hundreds of payloads."""
        return self._searcher.recognised(log.readings, payloads, log.payload_len, Work(self.work_limit))

    def _ownership(self, best: Weighed, log: SortedLog, work: Work) -> Evidence:
        """Evidence that the log was made with this key at all, for the payload.

        Over keys the payload leads to the logged behavior with probability P_t(b_t): the full surprisal counts.
        """
        ownership = Evidence(self.noise_rates)
        work.spend(EVIDENCE_STEP * log.tally.records)
        ownership.update_counts(log.ownership(best.said.contradicting))
        return ownership

    def _found(self, weighed: Weighed, payload_len: int) -> FoundIdentity:
        holder = self._registry.holder(weighed.payload) if self._registry is not None else None
        needed = weighed.bits_paid - log2(self.threshold)
        return FoundIdentity(
            payload=weighed.payload,
            payload_len=payload_len,
            identity=None if holder is None else holder.name,
            revoked_at=None if holder is None else holder.revoked_at,
            evidence_bits=weighed.evidence.bits,
            bits_paid=weighed.bits_paid,
            false_positive_rate=false_positive_rate(weighed.surplus),
            # Whoever is accepted has a step at least, whatever rounding says.
            at_least_steps=max(weighed.evidence.least_steps(weighed.said.counts, needed), 1),
        )

    def _segment(self, stretch: Stretch, intake: Intake) -> Segment:
        rate = false_positive_rate(stretch.evidence_bits - stretch.bits_paid)
        accepted = stretch.payload is not None and rate <= self.threshold
        payload = stretch.payload if accepted else None
        holder = self._registry.holder(payload) if self._registry is not None and payload is not None else None
        return Segment(
            first=stretch.first,
            last=stretch.last,
            first_record=intake.steps[stretch.first].record.where,
            last_record=intake.steps[stretch.last].record.where,
            payload=payload,
            identity=holder.name if holder else None,
            evidence_bits=stretch.evidence_bits,
            bits_paid=stretch.bits_paid,
            false_positive_rate=rate if accepted else 1.0,
        )


def _consistent(proposals: Proposals, best: Weighed | None, readings: Readings) -> bool | None:
    """Whether one payload explains every step: as the search has settled it, or as the best candidate shows."""
    if not readings.evidence_bits > 0:
        # Steps that say nothing are explained by everyone, and settle nothing.
        return None
    if proposals.consistent is not None or best is None:
        return proposals.consistent
    if not len(best.said.contradicting):
        return True
    # A candidate that most steps support and some rule out leaves no room for another that all support.
    return False if best.surplus > 0 else None


def _findings(steps: Iterable[Step], verdict: Verdict) -> Iterator[StepFinding]:
    """What became of each record, and what it says for the candidate."""
    noise = max(verdict.likely_noise, 0.001)
    # Steps have few e-values between them.
    bits_of: dict[float, float] = {}
    for step in steps:
        if step.reading is None:
            yield StepFinding(step.record, step.outcome)
        elif verdict.candidate is None:
            yield StepFinding(step.record, step.outcome, step.reading.evidence_bits)
        else:
            e_value = step.reading.e_value(verdict.candidate)
            bits = bits_of.get(e_value)
            if bits is None:
                bits = bits_of[e_value] = log2((1 - noise) * e_value + noise)
            yield StepFinding(step.record, step.outcome, bits, e_value > 0)
