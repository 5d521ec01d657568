"""Payloads that may explain the steps (spec, section 9.3). How one was found makes no difference to its evidence.

A new decoder is a file in `search/`, a route here, and a place in the order below.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import log2
from random import Random

from agentmark.core.costs import EVIDENCE_STEP
from agentmark.core.evidence import NOISE_RATES, Evidence
from agentmark.core.symbols import Reading
from agentmark.verify.prices import Prices
from agentmark.verify.readings import Readings, as_readings
from agentmark.verify.search.clean import Elimination, clean_search, eliminate
from agentmark.verify.search.information_sets import likely_payloads
from agentmark.verify.search.registry_scan import scan, scan_above
from agentmark.verify.search.walsh import likeliest_by_rate, transform_limit
from agentmark.verify.work import Work

# The rates at which candidates are looked for; each is then judged under the whole mixture. The first finds most.
SEARCH_NOISE = (0.5, 0.1, 0.8)
# Evidence beyond what is needed, in bits, at which nothing better is looked for.
PLENTY_BITS = 10
# A verdict names so many identities at most.
MOST_FOUND = 64
# A registry of so few names needs no scan: all of them are weighed.
FEW_NAMES = 8
# Whoever has this part of the evidence that naming takes, on steps that the best does not explain, is weighed on all.
NAME_PART = 0.5


class Route(StrEnum):
    """How a payload was found."""

    CLAIM = "claim"
    ELIMINATION = "Gaussian elimination"
    SYMBOL_SEARCH = "search over symbols"
    REGISTRY = "registry"
    OTHER_LOG = "found in another log"
    WALSH_HADAMARD = "Walsh-Hadamard transform"
    INFORMATION_SETS = "information sets"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A payload to be judged."""

    payload: int
    route: Route


@dataclass(frozen=True, slots=True)
class Proposals:
    """All candidates, and whether one payload explains every step, if that was settled on the way."""

    candidates: tuple[Candidate, ...]
    consistent: bool | None = None
    # Whether one of them will do, or there is nothing to look at.
    settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """Looks for candidates by every route that applies, cheapest first: registry, clean solution, noisy decoding.

    Whatever it does is paid for from a meter of work, and ends when that is spent.
    """

    prices: Prices
    threshold: float
    noise_rates: tuple[float, ...] = NOISE_RATES

    @property
    def rates(self) -> tuple[float, ...]:
        """Where to look for candidates: a few rates of the mixture, or the one rate given; none if that is zero."""
        return SEARCH_NOISE if len(self.noise_rates) > 1 else tuple([rate for rate in self.noise_rates if rate > 0])

    def propose(
        self,
        readings: Readings | Sequence[Reading],
        payload_len: int,
        work: Work,
        *,
        rates: tuple[float, ...] | None = None,
    ) -> Proposals:
        """The candidates for these steps; `rates` in place of those of the question."""
        readings = as_readings(readings)
        proposals = self.at_first_sight(readings, payload_len, work, rates=rates)
        if proposals.settled:
            return proposals
        return replace(proposals, candidates=(*proposals.candidates, *self.noisy(readings, payload_len, work, rates)))

    def at_first_sight(
        self,
        readings: Readings,
        payload_len: int,
        work: Work,
        *,
        rates: tuple[float, ...] | None = None,
        eliminated: Elimination | None = None,
        offered: Sequence[int] = (),
    ) -> Proposals:
        """The best names of the registry, and the one payload that explains every step if no name will do.

        `offered` payloads come first: where one of them will do, nobody else is looked for.
        """
        rates = self.rates if rates is None else rates
        if not len(readings):
            return Proposals((), settled=True)
        # Without noise only the one payload that explains every step may be named (spec, section 9.1): a name of the
        # registry that explains them beside others may be the wrong one. Parts of lists are judged by 9.2 at any rate.
        strict = not rates and all(symbols for _, symbols in readings.shapes)
        named = [] if strict else [Candidate(payload, Route.OTHER_LOG) for payload in offered]
        if not strict and not self.suffices(offered, readings, payload_len, work):
            named += self._named(readings, rates, work)
        if self.suffices([candidate.payload for candidate in named], readings, payload_len, work):
            return Proposals(tuple(named), settled=True)
        clean, consistent = self.clean(readings, payload_len, work, eliminated=eliminated)
        return Proposals((*clean, *named), consistent, settled=bool(clean))

    def clean(
        self, readings: Readings, payload_len: int, work: Work, *, eliminated: Elimination | None = None
    ) -> tuple[list[Candidate], bool | None]:
        """The one payload that explains every step, if there is one, and whether any does."""
        if eliminated is None:
            eliminated = eliminate(readings, payload_len, work)
        clean = clean_search(eliminated, work)
        if clean.payload is None:
            return [], clean.consistent
        return [Candidate(clean.payload, Route.ELIMINATION if clean.by_elimination else Route.SYMBOL_SEARCH)], True

    def noisy(
        self, readings: Readings, payload_len: int, work: Work, rates: tuple[float, ...] | None = None
    ) -> list[Candidate]:
        """Payloads that explain more of the steps than chance does, if the steps are enough to name one."""
        rates = self.rates if rates is None else rates
        # No payload has more evidence than every step's best.
        could_name = readings.most_bits >= payload_len - log2(self.threshold)
        if not rates or not could_name:
            return []
        if payload_len <= transform_limit():
            return self._transformed(readings, payload_len, rates, work)
        return self._from_sets(readings, payload_len, work)

    def names_above(self, readings: Readings, work: Work) -> list[Candidate]:
        """Every name of the registry for which these steps say enough that it is worth being weighed on all."""
        registry = self.prices.registry
        # Of the registry that a report states, perhaps nobody is here.
        payloads = () if registry is None else registry.payloads
        if registry is None or not payloads:
            return []
        chosen: Iterable[int] = range(len(payloads))
        if len(payloads) > FEW_NAMES:
            chosen = scan_above(
                payloads,
                readings,
                payload_len=registry.payload_len,
                noise=[rate for rate in self.noise_rates if rate > 0],
                # What these steps say is a part of what all of them do.
                level=NAME_PART * (self.prices.of(payloads[0], registry.payload_len) - log2(self.threshold)),
                most=MOST_FOUND,
                work=work,
            )
        return [Candidate(payloads[i], Route.REGISTRY) for i in chosen]

    def suffices(self, payloads: Iterable[int], readings: Readings, payload_len: int, work: Work) -> bool:
        """Whether one of these payloads would be accepted: then there is no need to look further."""
        needed = -log2(self.threshold)
        return any(
            self.evidence(readings, payload, work).bits - self.prices.of(payload, payload_len) >= needed
            for payload in dict.fromkeys(payloads)
        )

    def recognised(self, readings: Readings, payloads: Sequence[int], payload_len: int, work: Work) -> list[int]:
        """Those of these payloads that would be accepted, as far as they are among the best of them."""
        if not payloads or not self.rates:
            return []
        best = scan(payloads, readings, payload_len=payload_len, noise=self.rates, work=work)
        likely = dict.fromkeys([payloads[i] for i in best])
        return [payload for payload in likely if self.suffices([payload], readings, payload_len, work)]

    def evidence(self, readings: Readings, payload: int, work: Work) -> Evidence:
        """What the steps say for a payload."""
        work.spend(EVIDENCE_STEP * len(readings))
        evidence = Evidence(self.noise_rates)
        evidence.update_counts(readings.e_values(payload).counts)
        return evidence

    def _named(self, readings: Readings, rates: Sequence[float], work: Work) -> list[Candidate]:
        registry = self.prices.registry
        # Of the registry that a report states, perhaps nobody is here.
        payloads = () if registry is None else registry.payloads
        if registry is None or not payloads:
            return []
        best = scan(payloads, readings, payload_len=registry.payload_len, noise=rates or (1e-9,), work=work)
        return [Candidate(payloads[i], Route.REGISTRY) for i in best]

    def _from_sets(self, readings: Readings, payload_len: int, work: Work) -> list[Candidate]:
        # The trials are random, their outcome is judged; a fixed seed makes the verdict repeatable.
        best: list[tuple[float, int]] = []
        needed = payload_len - log2(self.threshold) + PLENTY_BITS
        for likely in likely_payloads(readings, payload_len, rng=Random(0), work=work):
            bits = self.evidence(readings, likely.payload, work).bits
            best = sorted([*best, (bits, likely.payload)], reverse=True)[:2]
            if bits >= needed:
                break
        return [Candidate(payload, Route.INFORMATION_SETS) for _, payload in best]

    def _transformed(self, readings: Readings, payload_len: int, rates: Sequence[float], work: Work) -> list[Candidate]:
        found: list[Candidate] = []
        for payloads in likeliest_by_rate(readings, payload_len, noise=rates, work=work):
            found += [Candidate(payload, Route.WALSH_HADAMARD) for payload in payloads]
        return found
