"""Identities that explain logs together which are too short alone (spec, section 9.6).

For an identity m let E_s(m) be the e-value of log s. If m made none of the logs, the mean of the product over s of
(1 - share) + share * E_s(m) is at most 1, for any share fixed beforehand, and so is that of a mixture over shares. So
it is an e-value of "m made at least one of them". That each log that speaks for m is m's, it does not show.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp2, log2

from agentmark.core.costs import EVIDENCE_STEP
from agentmark.core.evidence import IMPOSSIBLE
from agentmark.core.payload import PayloadLike
from agentmark.core.symbols import Reading
from agentmark.core.theory import false_positive_rate
from agentmark.verify.intake import Intake
from agentmark.verify.judge import Judge
from agentmark.verify.readings import ReadingList
from agentmark.verify.search.registry_scan import scan
from agentmark.verify.state import LogState
from agentmark.verify.work import Work

# Of all short logs, the share that one identity may have made: half of them, an eighth, and so on.
SHARES = (1 / 2, 1 / 8, 1 / 32, 1 / 128)
# At which shares of foreign steps names of a large registry are ranked, and how many of them are weighed.
SCAN_RATES = (0.5, 0.8, 0.95)
SCANNED = 32
# Searches over the short logs together, each without what the ones before explain.
MOST_SEARCHES = 8


@dataclass(frozen=True, slots=True)
class ShortLog:
    """A log that is too short alone, and its row."""

    row: int
    state: LogState


@dataclass(frozen=True, slots=True)
class WeighedPool:
    """An identity, with what the short logs together say for it."""

    payload: int
    payload_len: int
    evidence_bits: float
    bits_paid: float
    # The rows that more likely than not are its, with their own evidence for it.
    explains: dict[int, float]

    @property
    def surplus(self) -> float:
        return self.evidence_bits - self.bits_paid

    @property
    def rows(self) -> tuple[int, ...]:
        return tuple(sorted(self.explains))

    def passes(self, threshold: float) -> bool:
        return false_positive_rate(self.surplus) <= threshold


def pool_short_logs(
    judge: Judge,
    logs: Sequence[ShortLog],
    payload_len: int,
    *,
    claim: PayloadLike = None,
    offered: Sequence[tuple[int, int]] = (),
) -> list[WeighedPool]:
    """The identities that the short logs together may be of, each weighed over all of them.

    Candidates are the names of the registry; without one, what was found in other logs (`offered`) and what a search
    over the steps of all short logs proposes. What the search may cost is one work limit.
    """
    _, parts = _readings(logs, payload_len)
    readings = {log.row: part for log, part in zip(logs, parts, strict=True)}
    work = Work(judge.work_limit)
    weighing = _Weighing(judge, readings, payload_len, claimed=claim is not None, work=work)
    claimed = judge.claimed(claim, payload_len)
    if claimed is not None:
        return [weighing.of(claimed)]
    registry = judge.prices.registry
    if registry is not None and len(registry):
        named = [identity.payload for identity in registry]
        return [weighing.of(payload) for payload in _worth_weighing(named, readings, payload_len, work)]
    found = {payload: weighing.of(payload) for payload, length in offered if length == payload_len}
    for _ in range(MOST_SEARCHES):
        explained = {row for pool in found.values() if pool.passes(judge.threshold) for row in pool.explains}
        left = ReadingList([reading for row, part in readings.items() if row not in explained for reading in part])
        fresh = [payload for payload in judge.proposed(left, payload_len, work) if payload not in found]
        for payload in fresh:
            found[payload] = weighing.of(payload)
        if not any(found[payload].passes(judge.threshold) for payload in fresh):
            break
    return list(found.values())


def _readings(logs: Sequence[ShortLog], payload_len: int) -> tuple[Intake, list[list[Reading]]]:
    """What the steps of each log say, a context counted once in all of them: a copy of a log under another name adds
    nothing, and copies that disagree do not count at all."""
    whole = LogState()
    for log in logs:
        whole.merge(log.state)
    together = whole.intake(payload_len)
    parts: list[list[Reading]] = []
    first = 0
    for log in logs:
        steps = [step for step in together.steps[first : first + len(log.state)] if step.reading is not None]
        steps.sort(key=lambda step: step.record.context)
        parts.append([step.reading for step in steps if step.reading is not None])
        first += len(log.state)
    return together, parts


def _worth_weighing(
    named: Sequence[int], readings: dict[int, list[Reading]], payload_len: int, work: Work
) -> Sequence[int]:
    """All names if the work suffices; of a large registry, those that the steps of all logs together rank first."""
    steps = [reading for part in readings.values() for reading in part]
    if EVIDENCE_STEP * len(steps) * len(named) <= work.left / 2 or len(named) <= SCANNED:
        return named
    best = scan(named, steps, payload_len=payload_len, noise=SCAN_RATES, work=work, count=SCANNED)
    return [named[i] for i in dict.fromkeys(best)]


class _Weighing:
    """Weighs identities over the same short logs."""

    def __init__(
        self, judge: Judge, readings: dict[int, list[Reading]], payload_len: int, *, claimed: bool, work: Work
    ) -> None:
        self._judge = judge
        self._readings = {row: part for row, part in readings.items() if part}
        self._payload_len = payload_len
        self._claimed = claimed
        self._work = work

    def of(self, payload: int) -> WeighedPool:
        prices = self._judge.prices
        bits = {
            row: self._judge.evidence(ReadingList(part), payload, self._work).bits
            for row, part in self._readings.items()
        }
        by_share = [sum([_factor(share, mine) for mine in bits.values()]) for share in SHARES]
        top = max(by_share)
        weights = [exp2(total - top) for total in by_share]
        explains = {}
        for row, mine in bits.items():
            own = sum([weight * _own(share, mine) for share, weight in zip(SHARES, weights, strict=True)])
            if own > sum(weights) / 2:
                explains[row] = mine
        return WeighedPool(
            payload=payload,
            payload_len=self._payload_len,
            evidence_bits=top + log2(sum(weights)) - log2(len(SHARES)),
            bits_paid=prices.of_claim if self._claimed else prices.of(payload, self._payload_len),
            explains=explains,
        )


def _factor(share: float, bits: float) -> float:
    """log2 of (1 - share) + share * 2^bits, for bits of any size."""
    if bits == IMPOSSIBLE:
        return log2(1 - share)
    own = log2(share) + bits
    other = log2(1 - share)
    top = max(own, other)
    return top + log2(exp2(own - top) + exp2(other - top))


def _own(share: float, bits: float) -> float:
    """The chance that a log is the identity's, if this share of all logs is."""
    return 0.0 if bits == IMPOSSIBLE else exp2(log2(share) + bits - _factor(share, bits))
