"""The closed forms of capacity, two ways."""

import pytest
from agentmark_lab.experiments.theory import capacity

from agentmark import BehaviorDistribution
from agentmark.core import theory


@pytest.mark.parametrize("probability", [2.0**-32, 1e-6, 0.01, 0.3, 0.5, 0.9, 1 - 2.0**-32, 1.0])
def test_race_capacity_two_ways(probability):
    weight = round(probability * 2**32)
    rest = {"b": 2**32 - weight} if weight < 2**32 else {}
    distribution = BehaviorDistribution.from_weights({"a": weight, **rest})
    moments = [capacity.race_moment(w / 2**32, power=1) for w in distribution.weights]
    assert theory.race_capacity(distribution) == pytest.approx(sum(moments), rel=1e-9, abs=1e-15)
