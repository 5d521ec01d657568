"""Identities that explain logs together which are too short alone (spec, section 9.6).

For an identity m let E_s(m) be the e-value of log s. If m made none of the logs, the mean of the product over s of
(1 - share) + share * E_s(m) is at most 1, for any share fixed beforehand, and so is that of a mixture over shares. So
it is an e-value of "m made at least one of them". That each log that speaks for m is m's, it does not show.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from math import exp2, fsum, log2
from typing import Any

from agentmark.core.costs import EVIDENCE_STEP
from agentmark.core.evidence import IMPOSSIBLE, Evidence
from agentmark.core.payload import PayloadLike
from agentmark.core.symbols import DISAGREEING, Reading
from agentmark.core.theory import false_positive_rate
from agentmark.verify.judge import Judge
from agentmark.verify.packed import joined
from agentmark.verify.readings import ReadingList, Readings
from agentmark.verify.search.registry_scan import scan
from agentmark.verify.sorted_log import SortedLog
from agentmark.verify.work import Work

# Of all short logs, the share that one identity may have made: half of them, an eighth, and so on.
SHARES = (1 / 2, 1 / 8, 1 / 32, 1 / 128)
# At which shares of foreign steps names of a large registry are ranked, and how many of them are weighed.
SCAN_RATES = (0.5, 0.8, 0.95)
SCANNED = 32
# Searches over the short logs together, each without what the ones before explain.
MOST_SEARCHES = 8
# All short logs are held at once: where they have more usable steps than this, nothing is asked about them together.
MOST_POOLED_STEPS = 500_000


@dataclass(frozen=True, slots=True)
class ShortLog:
    """A log that is too short alone: its row, and all that is needed of it."""

    row: int
    name: str
    contexts: tuple[bytes, ...]
    readings: Readings

    @classmethod
    def of(cls, row: int, log: SortedLog) -> "ShortLog":
        return cls(row, log.name, tuple(log.step_contexts()), log.readings)


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
    logs: Iterable[ShortLog],
    payload_len: int,
    *,
    claim: PayloadLike = None,
    offered: Sequence[tuple[int, int]] = (),
    disclosed: bool = False,
) -> list[WeighedPool]:
    """The identities that the short logs together may be of, each weighed over all of them.

    Candidates are the names of the registry; without one, what was found in other logs (`offered`) and what a search
    over the steps of all short logs proposes. What the search may cost is one work limit. `disclosed`: the logs were
    read by what holders of keys disclosed.
    """
    together = _Together.of(sorted(logs, key=lambda log: log.name), payload_len, disclosed=disclosed)
    work = Work(judge.work_limit)
    claimed = judge.claimed(claim, payload_len)
    weighing = _Weighing(judge, together, payload_len, claimed=claimed is not None, work=work)
    if claimed is not None:
        return [weighing.of(claimed)]
    registry = judge.prices.registry
    if registry is not None and len(registry):
        return [weighing.of(payload) for payload in _worth_weighing(registry.payloads, together, payload_len, work)]
    found = {payload: weighing.of(payload) for payload, length in offered if length == payload_len}
    for _ in range(MOST_SEARCHES):
        explained = {row for pool in found.values() if pool.passes(judge.threshold) for row in pool.explains}
        left = together.without(explained)
        fresh = [payload for payload in judge.proposed(left, payload_len, work) if payload not in found]
        for payload in fresh:
            found[payload] = weighing.of(payload)
        if not any(found[payload].passes(judge.threshold) for payload in fresh):
            break
    return list(found.values())


class _Together:
    """The steps of all short logs, a log's one behind the other, each context once."""

    def __init__(self, rows: Sequence[int], sizes: Sequence[int], readings: Readings) -> None:
        self.rows = rows
        self.readings = readings
        # Log i has the steps from `starts[i]` to `starts[i + 1]`.
        self.starts = [0]
        for size in sizes:
            self.starts.append(self.starts[-1] + size)

    @classmethod
    def of(cls, logs: Sequence[ShortLog], payload_len: int, *, disclosed: bool) -> "_Together":
        """A context that several logs use counts once, in the first of them: a copy of a log under another name adds
        nothing. Where they differ in what it says, it does not count at all.

        In public mode it counts in each of them as a step that disagrees with everyone: who adds a log of copies under
        a name of his own takes no step out of another."""
        readings = joined([log.readings for log in logs], payload_len)
        first: dict[bytes, int] = {}
        doubled: dict[bytes, list[int]] = {}
        at = 0
        for log in logs:
            for context in log.contexts:
                if context in first:
                    doubled.setdefault(context, [first[context]]).append(at)
                else:
                    first[context] = at
                at += 1
        if disclosed and doubled:
            everywhere = {place for places in doubled.values() for place in places}
            readings, doubled = _disagreeing_at(everywhere, readings, payload_len), {}
        dropped = {place for places in doubled.values() for place in _not_counted(places, readings)}
        sizes, kept, at = [], [], 0
        for log in logs:
            mine = [place for place in range(at, at + len(log.contexts)) if place not in dropped]
            at += len(log.contexts)
            kept += mine
            sizes.append(len(mine))
        left = readings.take(kept) if dropped else readings
        return cls([log.row for log in logs], sizes, left)

    def without(self, rows: set[int]) -> Readings:
        """The steps of all other logs."""
        if not rows:
            return self.readings
        spans = zip(self.rows, pairwise(self.starts), strict=True)
        return self.readings.take([i for row, (begin, end) in spans if row not in rows for i in range(begin, end)])

    def bits(self, payload: int, rates: Sequence[float]) -> Any:
        """The evidence of each log for a payload: doubles, in the order of the logs."""
        values = self.readings.e_values(payload).values
        if find_spec("numpy"):
            return self._bits_by_arrays(values, Evidence(rates))
        bits = []
        for begin, end in pairwise(self.starts):
            evidence = Evidence(rates)
            evidence.update_all(values[begin:end])
            bits.append(evidence.bits)
        return bits

    def _bits_by_arrays(self, values: Sequence[float], evidence: Evidence) -> Any:
        import numpy

        sizes = numpy.diff(self.starts)
        log_of = numpy.repeat(numpy.arange(len(sizes)), sizes)
        distinct, which = numpy.unique(numpy.asarray(values, dtype=float), return_inverse=True)
        # Equal values have equal factors.
        factors = numpy.array([evidence.factors(value) for value in distinct.tolist()]).reshape(
            len(distinct), len(evidence.prior)
        )
        by_rate = [
            numpy.bincount(log_of, weights=factors[:, rate][which], minlength=len(sizes))
            + (log2(weight) if weight > 0 else IMPOSSIBLE)
            for rate, weight in enumerate(evidence.prior)
        ]
        return numpy.logaddexp2.reduce(numpy.array(by_rate), axis=0)


def _disagreeing_at(places: Collection[int], readings: Readings, payload_len: int) -> Readings:
    changed = ReadingList([DISAGREEING if place in places else reading for place, reading in enumerate(readings)])
    return joined([changed], payload_len)


def _not_counted(places: Sequence[int], readings: Readings) -> Sequence[int]:
    """Of the copies of one context: all but the first, or all if they differ."""
    said: Reading = readings[places[0]]
    return places[1:] if all(readings[place] == said for place in places[1:]) else places


def _worth_weighing(named: Sequence[int], together: _Together, payload_len: int, work: Work) -> Sequence[int]:
    """All names if the work suffices; of a large registry, those that the steps of all logs together rank first."""
    steps = together.readings
    if EVIDENCE_STEP * len(steps) * len(named) <= work.left / 2 or len(named) <= SCANNED:
        return named
    best = scan(named, steps, payload_len=payload_len, noise=SCAN_RATES, work=work, count=SCANNED)
    return [named[i] for i in dict.fromkeys(best)]


class _Weighing:
    """Weighs identities over the same short logs."""

    def __init__(self, judge: Judge, together: _Together, payload_len: int, *, claimed: bool, work: Work) -> None:
        self._judge = judge
        self._together = together
        self._payload_len = payload_len
        self._claimed = claimed
        self._work = work

    def of(self, payload: int) -> WeighedPool:
        prices = self._judge.prices
        self._work.spend(EVIDENCE_STEP * len(self._together.readings))
        bits = self._together.bits(payload, self._judge.noise_rates)
        by_share = [_by_logs(share, bits) for share in SHARES]
        totals = [fsum(factors) for factors, _ in by_share]
        top = max(totals)
        weights = [exp2(total - top) for total in totals]
        # The chance that each log is its own, over the shares.
        own = [
            fsum([w * c for w, c in zip(weights, chances, strict=True)])
            for chances in zip(*[o for _, o in by_share], strict=True)
        ]
        explains = {
            row: float(mine)
            for row, mine, chance in zip(self._together.rows, bits, own, strict=True)
            if chance > sum(weights) / 2
        }
        return WeighedPool(
            payload=payload,
            payload_len=self._payload_len,
            evidence_bits=top + log2(sum(weights)) - log2(len(SHARES)),
            bits_paid=prices.of_claim(self._payload_len) if self._claimed else prices.of(payload, self._payload_len),
            explains=explains,
        )


def _by_logs(share: float, bits: Any) -> tuple[list[float], list[float]]:
    """For each log: log2 of (1 - share) + share * 2^bits, and the chance that it is the identity's if this share is."""
    if find_spec("numpy"):
        import numpy

        own = numpy.asarray(bits, dtype=float) + log2(share)
        mixed = numpy.logaddexp2(own, log2(1 - share))
        return mixed.tolist(), numpy.exp2(own - mixed).tolist()
    factors = [_factor(share, mine) for mine in bits]
    return factors, [
        0.0 if mine == IMPOSSIBLE else exp2(log2(share) + mine - factor)
        for mine, factor in zip(bits, factors, strict=True)
    ]


def _factor(share: float, bits: float) -> float:
    """log2 of (1 - share) + share * 2^bits, for bits of any size."""
    if bits == IMPOSSIBLE:
        return log2(1 - share)
    own = log2(share) + bits
    other = log2(1 - share)
    top = max(own, other)
    return top + log2(exp2(own - top) + exp2(other - top))
