"""E-processes that a monitor follows: for each payload length seen, those of the payloads that may be named.

Each is a product of e-values, mixed over noise rates (`core.evidence`), and begins at its share: the shares of all
payloads of all lengths that could ever be named sum to at most 1. So the sum of all of them, followed or not, is a
supermartingale, and whichever is found to have reached 1 / threshold, at any time and by any search, has done so with
probability at most `threshold` if it is false (Ville).
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf, log2
from operator import index
from struct import Struct
from typing import SupportsIndex

from agentmark.core.errors import PayloadError
from agentmark.core.evidence import NOISE_RATES, Evidence
from agentmark.core.payload import MAX_PAYLOAD_LEN, PayloadLike, check_payload_len, number_in_words, payload_to_int
from agentmark.core.symbols import Reading
from agentmark.core.theory import SMALLEST_RATE
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.verify.candidates import Searcher
from agentmark.verify.prices import Prices
from agentmark.verify.reading_bytes import Source, read_reading, reading_parts
from agentmark.verify.search.registry_scan import scan
from agentmark.verify.work import Work

# So many payloads are followed from the first record on, each with every record. Of more, those are followed that a
# search has found.
FOLLOWED_FROM_THE_START = 256
FOLLOWED_CANDIDATES = 64
# A search is repeated when the log has grown by an eighth: all searches together cost a few times the last.
GROWTH_BETWEEN_SEARCHES = 8
# Where no noise is allowed for, a scan of a registry still needs a rate to rank by.
_NEARLY_CLEAN = (1e-9,)

# What searches may cost, all lengths together: this much to begin with, and so much more for each record that counts.
FIRST_WORK = DEFAULT_WORK_LIMIT
WORK_PER_RECORD = 300
# A search with less than this is not worth its while: it waits until more records have come.
LEAST_SEARCH = 100_000
# To unpack a step that was kept, and to multiply it into the evidence of a candidate that was found.
UNPACK_COST = 15

_PLACE = Struct(">Q")


class Purse:
    """What a monitor may spend on searches. Whoever writes the log decides how hard they are; this, how many."""

    def __init__(self) -> None:
        self.spent = 0.0
        self._earned = float(FIRST_WORK)

    def earn(self, records: int = 1) -> None:
        self._earned += WORK_PER_RECORD * records

    def draw(self) -> Work | None:
        """A meter for one search, to be handed back; None if there is not enough for one."""
        left = min(self._earned - self.spent, DEFAULT_WORK_LIMIT)
        return Work(left) if left >= LEAST_SEARCH else None

    def hand_back(self, work: Work) -> None:
        self.spent += work.spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a monitor asks, fixed before it sees a record."""

    threshold: float
    noise: float | None = None
    payload_len: int | None = None
    claim: PayloadLike = None
    registry: Registry | None = None
    # The lengths asked about so far, each with the claim as a payload of it.
    _claims: dict[int, int | None] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not SMALLEST_RATE <= self.threshold < 1:
            raise SettingError("threshold", f"{self.threshold:g} is not between {SMALLEST_RATE:g} and 1")
        if self.noise is not None and not 0 <= self.noise < 1:
            raise SettingError("noise", f"{self.noise} is not in [0, 1)")
        if self.payload_len is not None:
            check_payload_len(self.payload_len)
        if self.registry is not None:
            self._fix_names(self.registry)
        if self.claim is not None:
            self._check_claim()

    def _fix_names(self, registry: Registry) -> None:
        if not len(registry):
            raise SettingError("registry", "holds nobody to look for")
        if self.payload_len not in (None, registry.payload_len):
            raise SettingError("payload_len", f"{self.payload_len} differs from the registry's {registry.payload_len}")
        # As it is now: names that are issued later belong to another question.
        object.__setattr__(self, "registry", deepcopy(registry))
        object.__setattr__(self, "payload_len", registry.payload_len)
        if isinstance(self.claim, str):
            object.__setattr__(self, "claim", registry.named(self.claim).payload)

    def _check_claim(self) -> None:
        if isinstance(self.claim, SupportsIndex) and not isinstance(self.claim, bool):
            number = index(self.claim)
            longest = MAX_PAYLOAD_LEN if self.payload_len is None else self.payload_len
            if not 0 <= number < 1 << longest:
                raise SettingError("claim", f"{number_in_words(number)} does not fit {longest} bits")
        else:
            payload_to_int(self.claim, self.payload_len)

    @property
    def noise_rates(self) -> tuple[float, ...]:
        return NOISE_RATES if self.noise is None else (self.noise,)

    @property
    def bits_needed(self) -> float:
        """The surplus that raises the alarm."""
        return -log2(self.threshold)

    def reads(self, payload_len: int) -> bool:
        """Whether steps of this length can speak for anyone who is asked for."""
        if self.payload_len is not None:
            return payload_len == self.payload_len
        return self.claim is None or self._claimed(payload_len) is not None

    def length_bits(self, place: int) -> float:
        """The price of the length that was the `place`-th to come, from 1: shares 1 / (k (k + 1)) sum to 1. A length
        that was given beforehand costs nothing."""
        return 0.0 if self.payload_len is not None else log2(place * (place + 1))

    def payload_bits(self, payload: int, payload_len: int) -> float:
        """The price of a payload among those of its length."""
        return 0.0 if self.claim is not None else Prices(self.registry).of(payload, payload_len)

    def cheapest_bits(self, payload_len: int) -> float:
        """The price of the cheapest payload of a length."""
        return 0.0 if self.claim is not None else Prices(self.registry).of(None, payload_len)

    def payloads(self, payload_len: int) -> list[int] | None:
        """All that may be named, if they are few enough to be followed from the start; else None."""
        if self.claim is not None:
            claimed = self._claimed(payload_len)
            return [] if claimed is None else [claimed]
        if self.registry is not None:
            return self._registered if len(self.registry) <= FOLLOWED_FROM_THE_START else None
        return list(range(1 << payload_len)) if 1 << payload_len <= FOLLOWED_FROM_THE_START else None

    def search(self, readings: list[Reading], payload_len: int, work: Work) -> list[int]:
        """Payloads that may explain the steps, within a bounded amount of work."""
        searcher = Searcher(prices=Prices(self.registry), threshold=self.threshold, noise_rates=self.noise_rates)
        if self.registry is None:
            return [candidate.payload for candidate in searcher.propose(readings, payload_len, work).candidates]
        payloads = self._registered
        rates = searcher.rates or _NEARLY_CLEAN
        best = scan(payloads, readings, payload_len=payload_len, noise=rates, work=work)
        return [payloads[i] for i in best]

    @property
    def _registered(self) -> list[int]:
        return [identity.payload for identity in self.registry or ()]

    def name(self, payload: int) -> str | None:
        identity = None if self.registry is None else self.registry.holder(payload)
        return None if identity is None else identity.name

    def digest(self, *, any_key_id: bool) -> bytes:
        """Tells questions apart, so that a state is not carried on under another."""
        claim = self.claim
        if isinstance(claim, SupportsIndex):
            claim = index(claim)
        names = sorted([(identity.payload, identity.name) for identity in self.registry or ()])
        said = (self.threshold, self.noise, self.payload_len, claim, names, any_key_id)
        return blake2b(repr(said).encode(errors="surrogatepass"), digest_size=16).digest()

    def _claimed(self, payload_len: int) -> int | None:
        """The payload that is claimed, as one of this length; None if it cannot be."""
        if payload_len not in self._claims:
            self._claims[payload_len] = self._claim_as(payload_len)
        return self._claims[payload_len]

    def _claim_as(self, payload_len: int) -> int | None:
        claim = self.claim
        if isinstance(claim, SupportsIndex) and not isinstance(claim, bool):
            number = index(claim)
            return number if 0 <= number < 1 << payload_len else None
        try:
            return payload_to_int(claim, payload_len)[0]
        except PayloadError:
            return None


@dataclass(slots=True)
class Process:
    """One payload, and its evidence."""

    payload: int
    bits_paid: float
    evidence: Evidence
    alarmed: bool = False
    # The evidence in bits, as long as no step has come since: looking at many payloads is then cheap.
    _bits: float | None = 0.0

    @property
    def bits(self) -> float:
        if self._bits is None:
            self._bits = self.evidence.bits
        return self._bits

    @property
    def surplus(self) -> float:
        return self.bits - self.bits_paid

    @property
    def at_most(self) -> float:
        """What the surplus does not exceed."""
        return self.evidence.at_most_bits - self.bits_paid

    def multiply(self, factors: Sequence[float]) -> None:
        self.evidence.multiply(factors)
        self._bits = None


@dataclass(frozen=True, slots=True)
class Crossing:
    """A payload that has reached the line, and the record with which it did."""

    payload: int
    record: int
    evidence_bits: float
    bits_paid: float


class Followed:
    """The payloads of one length, and what the steps of that length have shown for them."""

    def __init__(self, question: Question, payload_len: int, place: int, purse: Purse) -> None:
        self._question = question
        self._purse = purse
        self.payload_len = payload_len
        self.length_bits = question.length_bits(place)
        self.steps = 0
        self.searches = 0
        # The largest surplus that any payload of this length ever had.
        self.most_surplus = -self.length_bits - question.cheapest_bits(payload_len)
        self._best: Process | None = None
        self._processes: dict[int, Process] = {}
        payloads = question.payloads(payload_len)
        self._searches = payloads is None
        for payload in payloads or ():
            self._follow(payload)
        # Kept only where payloads have to be searched for: the number of each record, and what it says as bytes.
        self._kept: list[tuple[int, bytes]] = []
        self._potential_bits = 0.0
        self._next_search = 1

    @property
    def best(self) -> Process | None:
        """The payload with the largest surplus now; None if nobody is followed yet."""
        if self._best is None:
            most = -inf
            for process in self._processes.values():
                # Most are far behind, and one need not know how far.
                if process.at_most >= most and (self._best is None or process.surplus > most):
                    self._best, most = process, process.surplus
        return self._best

    def take(self, reading: Reading, number: int) -> list[Crossing]:
        """Multiply one step in; who has reached the line with it, or is found to have done so before."""
        self.steps += 1
        self._best = None
        crossings = self._multiply(list(self._processes.values()), reading, number)
        if self._searches:
            self._kept.append((number, b"".join(reading_parts(reading))))
            self._potential_bits += reading.most_bits
            if self.steps >= self._next_search and self._can_name and (work := self._purse.draw()) is not None:
                crossings += self._search(work)
                self._purse.hand_back(work)
        return crossings

    @property
    def _can_name(self) -> bool:
        """No payload has more evidence than every step's best."""
        cheapest = self._question.cheapest_bits(self.payload_len)
        return self._potential_bits >= self.length_bits + cheapest + self._question.bits_needed

    def _search(self, work: Work) -> list[Crossing]:
        self.searches += 1
        self._next_search = self.steps + max(1, self.steps // GROWTH_BETWEEN_SEARCHES)
        readings = [self._unpacked(packed) for _, packed in self._kept]
        crossings: list[Crossing] = []
        work.spend(UNPACK_COST * len(readings))
        for payload in dict.fromkeys(self._question.search(readings, self.payload_len, work)):
            if payload in self._processes:
                continue
            work.spend(UNPACK_COST * len(readings))
            process = self._follow(payload)
            # What it would have shown had it been followed from the start: it was one of those paid for all along.
            for (number, _), reading in zip(self._kept, readings, strict=True):
                crossings += self._multiply([process], reading, number)
        self._drop_the_least()
        return crossings

    def _multiply(self, processes: list[Process], reading: Reading, number: int) -> list[Crossing]:
        """Multiply one step into these; those that reach the line with it."""
        crossings = []
        # Most payloads have the same few e-values.
        factors: dict[float, tuple[float, ...]] = {}
        bits_needed = self._question.bits_needed
        for process in processes:
            e_value = reading.e_value(process.payload)
            if e_value not in factors:
                factors[e_value] = process.evidence.factors(e_value)
            process.multiply(factors[e_value])
            # Evidence grows with no other step, and most of what grows is far behind.
            at_most = process.at_most
            if e_value <= 1 or (at_most < bits_needed and at_most <= self.most_surplus):
                continue
            surplus = process.surplus
            self.most_surplus = max(self.most_surplus, surplus)
            if not process.alarmed and surplus >= bits_needed:
                process.alarmed = True
                crossings.append(Crossing(process.payload, number, process.bits, process.bits_paid))
        return crossings

    def _drop_the_least(self) -> None:
        """Those that are no longer followed may be found again; forgetting a candidate forgets no step."""
        kept = sorted(self._processes.values(), key=lambda process: (process.alarmed, process.surplus), reverse=True)
        self._processes = {process.payload: process for process in kept[:FOLLOWED_CANDIDATES]}

    def _follow(self, payload: int) -> Process:
        paid = self.length_bits + self._question.payload_bits(payload, self.payload_len)
        process = self._processes[payload] = Process(payload, paid, Evidence(self._question.noise_rates))
        return process

    def _unpacked(self, packed: bytes) -> Reading:
        source = Source(packed, 0)
        reading = read_reading(source, self.payload_len, "kept")
        source.expect_end()
        if reading is None:
            raise ValueError("a step was kept that says nothing")
        return reading

    # A state to be kept: numbers for the head of it, and steps apart.

    def head(self) -> dict[str, object]:
        return {
            "payload_len": self.payload_len,
            "steps": self.steps,
            "searches": self.searches,
            "next_search": self._next_search,
            "potential_bits": self._potential_bits.hex(),
            "most_surplus": self.most_surplus.hex(),
            "processes": [[f"{p.payload:x}", p.evidence.to_bytes().hex(), p.alarmed] for p in self._processes.values()],
        }

    def kept_steps(self) -> list[bytes]:
        return [_PLACE.pack(number) + packed for number, packed in self._kept]

    def restore(self, head: dict[str, object], kept: Sequence[bytes]) -> None:
        """Take back what `head` and `kept_steps` gave; ValueError for what they cannot have given."""
        self.steps = _whole(head["steps"])
        self.searches = _whole(head["searches"])
        self._next_search = _whole(head["next_search"])
        self._potential_bits = _double(head["potential_bits"])
        self.most_surplus = _double(head["most_surplus"])
        processes = head["processes"]
        if not isinstance(processes, list) or (not self._searches and len(processes) != len(self._processes)):
            raise ValueError("other payloads were followed")
        self._processes = {}
        for payload, evidence, alarmed in processes:
            process = self._follow(int(payload, 16))
            process.evidence, process._bits = Evidence.from_bytes(bytes.fromhex(evidence)), None
            if process.evidence.noise_rates != self._question.noise_rates:
                raise ValueError("evidence under other noise rates")
            process.alarmed = bool(alarmed)
        for entry in kept:
            self._unpacked(entry[_PLACE.size :])
            self._kept.append((_PLACE.unpack_from(entry)[0], entry[_PLACE.size :]))
        if self._searches and len(self._kept) != self.steps:
            raise ValueError("steps are missing")


def _whole(number: object) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is not a count")
    return number


def _double(text: object) -> float:
    return float.fromhex(str(text))
