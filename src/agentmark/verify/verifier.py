"""The verifying side: from whatever is left of a log to a verdict (spec, section 9)."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from math import fsum, log2
from random import Random

from agentmark.core.context import context_digest, context_fields
from agentmark.core.evidence import NOISE_RATES, Evidence
from agentmark.core.linear import LinearSystem
from agentmark.core.payload import check_payload_len
from agentmark.core.rlnc import Equation
from agentmark.core.symbols import Reading, SymbolSet
from agentmark.core.theory import false_positive_rate
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.intake import IMPOSSIBLE, USED, Intake, Step, take_in
from agentmark.verify.search.information_sets import likely_payloads
from agentmark.verify.search.registry_scan import best_identities
from agentmark.verify.search.splice import Stretch, segment, windows
from agentmark.verify.search.symbols import DEFAULT_SEARCH_LIMIT, search_payloads
from agentmark.verify.search.walsh import likeliest_payloads, transform_limit
from agentmark.verify.tamper import tamper_findings
from agentmark.verify.verdict import (
    CLAIM,
    DEFAULT_THRESHOLD,
    ELIMINATION,
    INFORMATION_SETS,
    REGISTRY,
    SYMBOL_SEARCH,
    WALSH_HADAMARD,
    Placement,
    RunnerUp,
    Segment,
    StepFinding,
    Verdict,
)

# The rates at which candidates are looked for; each is then judged under the whole mixture.
SEARCH_NOISE = (0.1, 0.5, 0.8)
# Where a segment that lost its place is looked for, unless said otherwise: from the session's first step on.
DEFAULT_OFFSETS = 1000


class Verifier:
    """Reads identities back. Any subset of records, in any order, from any number of sessions, by the same call."""

    def __init__(
        self,
        key: SharedKey | Iterable[SharedKey],
        *,
        payload_len: int | None = None,
        threshold: float = DEFAULT_THRESHOLD,
        registry: Registry | None = None,
        noise: float | None = None,
        any_key_id: bool = False,
        search_limit: int = DEFAULT_SEARCH_LIMIT,
    ) -> None:
        """Several keys serve logs that cross a key rotation: each record is read with the key it names.

        `payload_len` is by default the one that most records state. `noise` is the share of foreign or altered steps
        to expect; by default a mixture of rates is tried, and 0 tolerates none. `any_key_id` reads every record with
        the one key given, for logs whose key ids were altered or lost.
        """
        keys = [key] if isinstance(key, SharedKey) else list(key)
        if not keys:
            raise SettingError("key", "a verifier needs at least one")
        if any_key_id and len(keys) > 1:
            raise SettingError("any_key_id", "reads all records with one key; pass exactly one")
        if not 0 < threshold < 1:
            raise SettingError("threshold", f"{threshold} is not between 0 and 1")
        if noise is not None and not 0 <= noise < 1:
            raise SettingError("noise", f"{noise} is not in [0, 1)")
        if payload_len is None and registry is not None:
            payload_len = registry.payload_len
        if registry is not None and payload_len != registry.payload_len:
            raise SettingError("payload_len", f"{payload_len} differs from the registry's {registry.payload_len}")
        self._keys = {key.id: key for key in keys}
        self._any_key = keys[0] if any_key_id else None
        self.payload_len = None if payload_len is None else check_payload_len(payload_len)
        self.threshold = threshold
        self.noise_rates = NOISE_RATES if noise is None else (noise,)
        self._registry = registry
        self._search_limit = search_limit
        self._price_of_tries = 0.0

    def verify(self, records: Iterable[StepRecord], *, claim: int | None = None) -> Verdict:
        """Judge a log: what identity does it carry, or (with `claim`) does it carry this one?

        "No watermark here" is a verdict; only broken input raises.
        """
        return self._judge(self._take_in(records, self._keys, self._any_key), claim)

    def control(self, records: Iterable[StepRecord], *, claim: int | None = None) -> Verdict:
        """The same log read with fresh random keys: what a stranger's key finds in it."""
        keys = {key_id: SharedKey.generate() for key_id in self._keys}
        any_key = SharedKey.generate() if self._any_key else None
        return self._judge(self._take_in(records, keys, any_key), claim)

    def segments(self, records: Iterable[StepRecord]) -> tuple[Segment, ...]:
        """Divide a log, in the order given, into stretches of one identity each, or of none that is ours."""
        intake = self.take_in(records)
        readings = [step.reading for step in intake.steps]
        found: dict[int, None] = {}
        # In a window that one identity dominates, a single rate in the middle of the range finds it.
        rates = self._search_rates[1:2] or self._search_rates
        for first, last in windows(len(readings)):
            part = [reading for reading in readings[first:last] if reading is not None]
            known = [_Candidate(payload, CLAIM) for payload in found]
            if self._suffices(known, part, intake.payload_len):
                # An identity that was found in a wider window explains this one as well.
                continue
            for candidate in self._candidates(part, intake.payload_len, rates).candidates:
                found[candidate.payload] = None
        stretches = segment(
            readings, list(found), bits_paid=lambda payload: self._bits_paid(payload, intake.payload_len)
        )
        return tuple([self._segment(stretch, intake) for stretch in stretches])

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

    def locate(
        self,
        session: str,
        records: Sequence[StepRecord],
        *,
        offsets: Iterable[int] = range(DEFAULT_OFFSETS),
        claim: int | None = None,
    ) -> Placement:
        """Place a run of consecutive steps whose digests and indices are lost, given their session.

        Every offset tried is paid for. The contexts must have bound nothing but session and step.
        """
        tried = list(offsets)
        if not tried:
            raise SettingError("offsets", "there must be at least one")
        paying = self.for_tries(len(tried))
        best: Placement | None = None
        for offset in tried:
            placed = [
                replace(record, session=session, step_index=step, context=context_digest(context_fields(session, step)))
                for step, record in enumerate(records, start=offset)
            ]
            verdict = paying.verify(placed, claim=claim)
            if best is None or verdict.surplus > best.verdict.surplus:
                best = Placement(offset if verdict.accepted else None, len(tried), verdict)
            if verdict.accepted:
                break
        assert best is not None
        return best

    def for_tries(self, tries: int) -> "Verifier":
        """A verifier that pays for this many questions of which its own is one: offsets, keys, logs judged apart."""
        if tries < 1:
            raise SettingError("tries", f"{tries} is not a number of tries")
        twin = copy(self)
        twin._price_of_tries = self._price_of_tries + log2(tries)
        return twin

    def take_in(self, records: Iterable[StepRecord]) -> Intake:
        """Sort a log without judging it."""
        return self._take_in(records, self._keys, self._any_key)

    def _take_in(
        self, records: Iterable[StepRecord], keys: Mapping[str, SharedKey], any_key: SharedKey | None
    ) -> Intake:
        return take_in(records, keys, any_key=any_key, payload_len=self.payload_len)

    def _judge(self, intake: Intake, claim: int | None) -> Verdict:
        # (6) Look for payloads that may explain the steps. How one was found does not matter to its evidence.
        if claim is not None:
            if intake.used and not 0 <= claim < 1 << intake.payload_len:
                raise SettingError("claim", f"{claim} does not fit {intake.payload_len} bits")
            search = _Search((_Candidate(claim, CLAIM),), None)
        else:
            search = self._candidates(intake.readings, intake.payload_len, self._search_rates)

        # (7) Judge the best as a claim, with every identity that was tried paid for.
        unique = {candidate.payload: candidate for candidate in reversed(search.candidates)}
        judged = [self._weigh(candidate, intake, claim) for candidate in unique.values()]
        judged.sort(key=lambda verdict: -verdict.surplus)
        best = judged[0] if judged else None
        second = judged[1] if len(judged) > 1 else None
        holder = None
        if best is not None and self._registry is not None:
            holder = self._registry.holder(best.payload)
        return Verdict(
            payload_len=intake.payload_len,
            threshold=self.threshold,
            consistent=_consistent(search, best, intake.readings),
            candidate=None if best is None else best.payload,
            route=None if best is None else best.route,
            evidence_bits=0.0 if best is None else best.evidence.bits,
            bits_paid=self._bits_paid(None, intake.payload_len) if best is None else best.bits_paid,
            ownership_bits=None if best is None else best.ownership.bits,
            likely_noise=0.0 if best is None else best.evidence.likely_noise,
            potential_bits=_potential_bits(intake.readings),
            rank=_rank(intake),
            search_work=search.work,
            search_over_limit=search.over_limit,
            holder=holder,
            runner_up=None if second is None else self._runner_up(second),
            tampering=(*tamper_findings([step.record for step in intake.steps]), *self._mixed(best, second)),
            findings=tuple([_finding(step, best) for step in intake.steps]),
        )

    def _candidates(self, readings: list[Reading], payload_len: int, rates: tuple[float, ...]) -> "_Search":
        """Candidates by every route that applies, cheapest first: registry, clean solution, noisy decoding."""
        if not readings:
            return _Search((), None)
        named: list[_Candidate] = []
        if self._registry is not None and len(self._registry):
            named = _registry_candidates(self._registry, readings, rates or (1e-9,))
            if self._suffices(named, readings, payload_len):
                return _Search(tuple(named), None)
        search = _clean_search(readings, payload_len, self._search_limit)
        candidates = [*search.candidates, *named]
        # No payload has more evidence than every step's best.
        could_name = fsum([reading.most_bits for reading in readings]) >= payload_len - log2(self.threshold)
        if rates and could_name and not search.candidates:
            candidates += self._noisy_candidates(readings, payload_len, rates)
        return _Search(tuple(candidates), search.consistent, search.work, search.over_limit)

    @property
    def _search_rates(self) -> tuple[float, ...]:
        """Where to look for candidates: a few rates of the mixture, or the one rate given; none if that is zero."""
        return SEARCH_NOISE if len(self.noise_rates) > 1 else tuple([rate for rate in self.noise_rates if rate > 0])

    def _suffices(self, candidates: Iterable["_Candidate"], readings: list[Reading], payload_len: int) -> bool:
        needed = -log2(self.threshold)
        for payload in {candidate.payload for candidate in candidates}:
            if self._evidence(readings, payload).bits - self._bits_paid(payload, payload_len) >= needed:
                return True
        return False

    def _noisy_candidates(
        self, readings: list[Reading], payload_len: int, rates: tuple[float, ...]
    ) -> list["_Candidate"]:
        if payload_len <= transform_limit():
            return [
                _Candidate(payload, WALSH_HADAMARD)
                for rate in rates
                for payload in likeliest_payloads(readings, payload_len, noise=rate)
            ]
        hard = [reading for reading in readings if isinstance(reading, SymbolSet)]
        # The trials are random, their outcome is judged; a fixed seed makes the verdict repeatable.
        rng = Random(0)
        best: list[tuple[float, int]] = []
        needed = payload_len - log2(self.threshold)
        for payload in likely_payloads(hard, payload_len, rng=rng, work_limit=self._search_limit):
            bits = self._evidence(readings, payload).bits
            best = sorted([*best, (bits, payload)], reverse=True)[:2]
            if bits >= needed + 10:
                break
        return [_Candidate(payload, INFORMATION_SETS) for _, payload in best]

    def _evidence(self, readings: Iterable[Reading], payload: int) -> Evidence:
        evidence = Evidence(self.noise_rates)
        for reading in readings:
            evidence.update(reading.e_value(payload))
        return evidence

    def _weigh(self, candidate: "_Candidate", intake: Intake, claim: int | None) -> "_Judged":
        paid = self._price_of_tries if claim is not None else self._bits_paid(candidate.payload, intake.payload_len)
        ownership = Evidence(self.noise_rates)
        for step in sorted(intake.steps, key=lambda step: step.record.context):
            distribution = step.record.distribution
            if distribution is None or step.outcome not in (USED, IMPOSSIBLE):
                continue
            # Over keys the payload leads to the logged behavior with probability P_t(b_t): the full surprisal counts.
            agrees = step.reading is not None and step.reading.e_value(candidate.payload) > 0
            ownership.update(1 / distribution.probability(step.record.behavior) if agrees else 0.0)
        evidence = self._evidence(intake.readings, candidate.payload)
        return _Judged(candidate.payload, candidate.route, evidence, ownership, paid)

    def _bits_paid(self, payload: int | None, payload_len: int) -> float:
        """-log2 of the identity's share of the tries: half for the registry's names, half for all payloads."""
        if self._registry is None or not len(self._registry):
            return payload_len + self._price_of_tries
        if payload is not None and self._registry.holder(payload) is None:
            return payload_len + 1 + self._price_of_tries
        # Beyond a thousand bits the second share is nothing to a double.
        return self._price_of_tries - log2(1 / (2 * len(self._registry)) + 2.0 ** -min(payload_len + 1, 1000))

    def _mixed(self, best: "_Judged | None", second: "_Judged | None") -> list[str]:
        """Two identities that both pass the bound share the log between them."""
        needed = -log2(self.threshold)
        if best is None or second is None or min(best.surplus, second.surplus) < needed:
            return []
        return [f"payload {second.payload:#x} explains other steps beyond chance: several agents' records are mixed"]

    def _runner_up(self, judged: "_Judged") -> RunnerUp:
        holder = self._registry.holder(judged.payload) if self._registry is not None else None
        return RunnerUp(judged.payload, holder.name if holder else None, judged.evidence.bits)


@dataclass(frozen=True, slots=True)
class _Candidate:
    payload: int
    route: str


@dataclass(frozen=True, slots=True)
class _Search:
    candidates: tuple[_Candidate, ...]
    consistent: bool | None
    work: int = 0
    over_limit: bool = False


@dataclass(frozen=True, slots=True)
class _Judged:
    payload: int
    route: str
    evidence: Evidence
    ownership: Evidence
    bits_paid: float

    @property
    def surplus(self) -> float:
        return self.evidence.bits - self.bits_paid


def _clean_search(readings: list[Reading], payload_len: int, limit: int) -> _Search:
    """The one payload that explains every step, if there is one: elimination for F, a search over R's symbols."""
    system = LinearSystem(payload_len)
    sets = []
    for reading in readings:
        if not isinstance(reading, SymbolSet):
            return _Search((), None)
        if reading.symbol_count > 1:
            sets.append(reading)
            continue
        for equation in reading.equations(reading.members()[0]):
            system.update(equation)
    if not system.consistent:
        return _Search((), False)
    if not sets:
        payload = system.solution()
        return _Search(() if payload is None else (_Candidate(payload, ELIMINATION),), True)
    result = search_payloads(system, sets, limit=limit)
    if result.undetermined or result.over_limit:
        return _Search((), None, result.work, result.over_limit)
    unique = () if result.unique is None else (_Candidate(result.unique, SYMBOL_SEARCH),)
    return _Search(unique, bool(result.payloads), result.work)


def _registry_candidates(registry: Registry, readings: list[Reading], rates: Sequence[float]) -> list[_Candidate]:
    payloads = [identity.payload for identity in registry]
    best = best_identities(payloads, readings, payload_len=registry.payload_len, noise=rates)
    return [_Candidate(payloads[i], REGISTRY) for i in best]


def _consistent(search: _Search, best: _Judged | None, readings: list[Reading]) -> bool | None:
    """Whether one payload explains every step: as the search has settled it, or as the best candidate shows."""
    if search.consistent is not None or best is None or not readings:
        return search.consistent
    if all(reading.e_value(best.payload) > 0 for reading in readings):
        return True
    # A candidate that most steps support and some rule out leaves no room for another that all support.
    return False if best.surplus > 0 else None


def _potential_bits(readings: Iterable[Reading]) -> float:
    """What the steps would say if every one agreed."""
    return fsum([reading.evidence_bits for reading in readings])


def _rank(intake: Intake) -> int:
    rows = LinearSystem(intake.payload_len)
    for reading in intake.readings:
        if rows.rank == intake.payload_len:
            break
        for row in reading.rows:
            rows.update(Equation(row, 0))
    return rows.rank


def _finding(step: Step, best: _Judged | None) -> StepFinding:
    if step.reading is None:
        return StepFinding(step.record, step.outcome)
    if best is None:
        return StepFinding(step.record, step.outcome, step.reading.evidence_bits)
    e_value = step.reading.e_value(best.payload)
    noise = max(best.evidence.likely_noise, 0.001)
    return StepFinding(step.record, step.outcome, log2((1 - noise) * e_value + noise), agrees=e_value > 0)
