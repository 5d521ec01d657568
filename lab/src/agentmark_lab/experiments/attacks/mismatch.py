"""The verifier's lists are not those that the step was marked with: what still agrees, and who can be named from it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log2
from random import Random

from agentmark.core import scheme_f, scheme_r
from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.core.evidence import NOISE_RATES, Evidence
from agentmark.core.symbols import SymbolSet
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.search.walsh import likeliest_payloads
from agentmark.verify.verifier import Verifier

# What a verifier would be told who knows how the lists came about.
TOLD_NOISE = {"F": 0.95, "R": 0.3}

# A step's list when it was marked, and as the verifier has it.
Pair = tuple[BehaviorDistribution, BehaviorDistribution]


@dataclass(frozen=True, slots=True)
class Match:
    """How often a step reads the same with another list. `sigma` is that of the noise which made the other list; 0
    where it was not noise."""

    sigma: float
    steps: int
    # Steps in which F places any bits.
    marked: int
    behavior_f: float
    bits_f: float
    # Of the steps from which equations are read: how often the identity satisfies them, and how often any other would.
    agree_f: float
    chance_f: float
    behavior_r: float
    divergence: float


def match_of(pairs: Iterable[Pair], key: SharedKey, rng: Random, *, sigma: float = 0.0) -> Match:
    """How often a verifier with the second list of a pair reads the same step as one with the first."""
    steps = same_f = same_r = marked = bits = read = agree = 0
    chance = divergence = 0.0
    for before, after in pairs:
        steps += 1
        payload = rng.getrandbits(8)
        step_key = key.step_key(rng.randbytes(32), 8)
        first = scheme_f.encode(before, step_key, payload=payload, payload_len=8)
        second = scheme_f.encode(after, step_key, payload=payload, payload_len=8)
        same_f += first.behavior == second.behavior
        equations = scheme_f.decode(after, step_key, first.behavior, payload_len=8)
        if first.capacity:
            marked += 1
            bits += equations == scheme_f.decode(before, step_key, first.behavior, payload_len=8)
        if equations:
            read += 1
            agree += SymbolSet.of_equations(equations).allows(payload)
            chance += 2.0 ** -len(equations)
        race = [scheme_r.encode(x, step_key, payload=payload, payload_len=8) for x in (before, after)]
        same_r += race[0] == race[1]
        divergence += kl_bits(before, after)
    return Match(
        sigma=sigma,
        steps=steps,
        marked=marked,
        behavior_f=same_f / steps,
        bits_f=bits / max(marked, 1),
        agree_f=agree / max(read, 1),
        chance_f=chance / max(read, 1),
        behavior_r=same_r / steps,
        divergence=divergence / steps,
    )


def kl_bits(before: BehaviorDistribution, after: BehaviorDistribution) -> float:
    """A weight that is gone counts as the least there is."""
    weights = before.as_weights().items()
    return sum([w / TOTAL_WEIGHT * log2(w / max(after.weight(name), 1)) for name, w in weights if w])


@dataclass(slots=True)
class Tally:
    """Logs; those whose most likely payload is right; those accepted at 1e-6 for the right one, and also when the noise
    is told; those accepted for a wrong one."""

    trials: int = 0
    identified: int = 0
    accepted: int = 0
    told: int = 0
    wrong: int = 0

    def add(self, other: "Tally") -> None:
        self.trials += other.trials
        self.identified += other.identified
        self.accepted += other.accepted
        self.told += other.told
        self.wrong += other.wrong


def identify(
    records: Sequence[StepRecord], payload: int, verifier: Verifier, rate: float, tallies: dict[int, Tally]
) -> None:
    """One log grows; at each length, the most likely payload by the transform, and the evidence for the right one."""
    intake = verifier.take_in(records)
    needed = intake.payload_len - log2(DEFAULT_THRESHOLD)
    for count, tally in tallies.items():
        readings = [step.reading for step in intake.steps[:count] if step.reading is not None]
        best = likeliest_payloads(readings, intake.payload_len, noise=rate, count=1)
        tally.trials += 1
        tally.identified += best == [payload]
        # Named by an open reading at 1e-6: its evidence pays for all payloads that were tried.
        e_values = [reading.e_value(payload) for reading in readings]
        tally.accepted += evidence_bits(e_values, NOISE_RATES) >= needed
        tally.told += evidence_bits(e_values, (rate,)) >= needed


def evidence_bits(e_values: Sequence[float], rates: Sequence[float]) -> float:
    evidence = Evidence(rates)
    for e_value in e_values:
        evidence.update(e_value)
    return evidence.bits
