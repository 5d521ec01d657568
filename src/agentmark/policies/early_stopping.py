"""Proposals that stop early, bent on purpose: for tests that must notice.

Proposals take the counts of a fixed number of samples as the list, and what they choose is distributed as the agent's
own list. Whoever saves the third sample when the first two agree lets the samples decide how many there are, and the
likeliest behavior is chosen too often: 0.9 becomes 0.924.
"""

import random
from collections import Counter

from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution, Probabilities
from agentmark.embed.session import Choice, Session
from agentmark.policies.chooser import PeerLog

POLICY = "early stopping"


class EarlyStoppingSession:
    """Samples the list twice, and a third time only where the two differ; a marked session chooses by the counts."""

    def __init__(self, marked: Session, *, rng: random.Random | None = None) -> None:
        self._marked = marked
        self._rng = rng or random.SystemRandom()
        self._log = PeerLog(POLICY, rng=rng)

    def choose(self, weights: Probabilities) -> Choice:
        distribution = BehaviorDistribution.quantise(weights)
        drawn = [self._sample(distribution), self._sample(distribution)]
        if drawn[0] != drawn[1]:
            drawn.append(self._sample(distribution))
        # The record holds the agent's own list, as that of any policy, and not the counts.
        return self._log.write(distribution, self._marked.choose(Counter(drawn)).behavior)

    def _sample(self, distribution: BehaviorDistribution) -> str:
        return distribution.at(self._rng.getrandbits(WEIGHT_BITS))
