"""Red-green watermarking of behaviors (section 5.1, the paper's baseline): a bias towards a keyed green half.

It shows what bending the distribution costs. The detector asks whether choices fall into the green set more often than
its share of the candidates.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from math import erfc, exp, floor, sqrt

from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution, Probabilities
from agentmark.core.prf import prf
from agentmark.embed.session import Choice
from agentmark.keys.shared import SharedKey
from agentmark.policies.chooser import PeerLog
from agentmark.record import StepRecord

GREEN = b"agentmark/1 red-green"
POLICY = "red-green"


def green_set(distribution: BehaviorDistribution, step_key: bytes, green_fraction: float) -> frozenset[str]:
    """floor(gamma * n) behaviors, picked by the order of their keyed hashes."""
    ranked = sorted(distribution.behaviors, key=lambda name: prf(step_key, GREEN, name.encode()))
    return frozenset(ranked[: floor(green_fraction * len(ranked))])


class RedGreenSession:
    """Adds `green_bias` (delta) to the logit of every green behavior, then samples."""

    def __init__(
        self,
        key: SharedKey,
        *,
        green_fraction: float = 0.5,
        green_bias: float = 2.0,
        rng: random.Random | None = None,
    ) -> None:
        self._key = key
        self._green_fraction = green_fraction
        self._boost = exp(green_bias)
        self._rng = rng or random.SystemRandom()
        self._log = PeerLog(POLICY, key_id=key.id, rng=rng)

    def choose(self, weights: Probabilities) -> Choice:
        distribution = BehaviorDistribution.quantise(weights)
        step_key = self._key.step_key(self._log.next_context(), 0)
        green = green_set(distribution, step_key, self._green_fraction)
        biased = BehaviorDistribution.quantise(
            {
                name: weight * (self._boost if name in green else 1.0)
                for name, weight in distribution.as_weights().items()
            }
        )
        return self._log.write(distribution, biased.at(self._rng.getrandbits(WEIGHT_BITS)))


@dataclass(frozen=True, slots=True)
class GreenTest:
    """`hits` of `steps` choices were green, where chance gives `expected`."""

    steps: int
    hits: int
    expected: float
    z: float
    p_value: float


def green_test(records: Iterable[StepRecord], key: SharedKey, *, green_fraction: float = 0.5) -> GreenTest:
    """z and its one-sided normal p-value. Without the key, a choice among n is green with chance floor(gamma n) / n."""
    steps = hits = 0
    expected = variance = 0.0
    for record in records:
        if record.distribution is None:
            continue
        green = green_set(record.distribution, key.step_key(record.context, 0), green_fraction)
        share = len(green) / len(record.distribution)
        steps += 1
        hits += record.behavior in green
        expected += share
        variance += share * (1 - share)
    z = (hits - expected) / sqrt(variance) if variance else 0.0
    return GreenTest(steps, hits, expected, z, erfc(z / sqrt(2)) / 2)
