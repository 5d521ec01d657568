"""The unmarked agent: plain sampling from P_t."""

import random

from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution, Probabilities
from agentmark.embed.session import Choice
from agentmark.policies.chooser import PeerLog


class BaselineSession:
    """b_t ~ P_t with ordinary randomness."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.SystemRandom()
        self._log = PeerLog("baseline", rng=rng)

    def choose(self, weights: Probabilities) -> Choice:
        distribution = BehaviorDistribution.quantise(weights)
        return self._log.write(distribution, distribution.at(self._rng.getrandbits(WEIGHT_BITS)))
