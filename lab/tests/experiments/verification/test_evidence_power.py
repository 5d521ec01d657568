"""When evidence suffices, and the test of fixed length beside it."""

import random

from agentmark_lab.experiments.verification import (
    evidence_power,
)
from agentmark_lab.kit.draws import fresh_context, random_key
from agentmark_lab.kit.worlds import ALFWORLD
from scipy import stats as scipy_stats


def test_crossings_are_counted_from_the_first_step():
    # Two bits a step without noise: 20 bits for L = 0 after ten, 28 after fourteen.
    times = evidence_power._crossings([4.0] * 30, (0.0,))
    assert times == [10, 14, 18, 26]


def test_the_gamma_test_is_calibrated():
    """Exponential values, as any other identity has, pass as rarely as the level says."""
    rng = random.Random(4)
    sums = []
    for _ in range(4000):
        total = 0.0
        sums.append([total := total + rng.expovariate(1) for _ in range(20)])
    passed = evidence_power._passing(sums, 20, 5.0)
    low, high = scipy_stats.binom(4000, 2.0**-5).interval(0.999)
    assert low <= passed <= high


def test_a_marked_step_has_a_late_uniform():
    """The chosen behavior's u tends to 1, so that its -ln(1 - u) exceeds the null's mean of 1."""
    rng = random.Random(5)
    key = random_key(rng)
    values = []
    for i in range(200):
        step_key = key.step_key(fresh_context("g", i), evidence_power.PAYLOAD_LEN)
        values.append(evidence_power._read_uniform("R", ALFWORLD.draw(rng), step_key, 77))
    assert sum(values) / len(values) > 1.5
