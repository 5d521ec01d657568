"""The peers behind the same `choose`: baseline and red-green."""

import random
from collections import Counter

from scipy.stats import chisquare
from support import TICKET_WEIGHTS, dirichlet

from agentmark import SharedKey, Verifier
from agentmark.policies import BaselineSession, RedGreenSession, green_test

KEY = SharedKey(bytes(range(100, 132)))


def test_the_baseline_samples_the_list() -> None:
    session = BaselineSession(random.Random(1))
    counts = Counter(session.choose(TICKET_WEIGHTS).behavior for _ in range(20_000))
    expected = [20_000 * weight for weight in TICKET_WEIGHTS.values()]
    assert chisquare([counts[name] for name in TICKET_WEIGHTS], expected).pvalue > 1e-6


def test_red_green_bends_the_list_and_is_found_by_its_key_only() -> None:
    rng = random.Random(2)
    session = RedGreenSession(KEY, rng=rng)
    records = [session.choose(dirichlet(rng, 8, 1.0)).record for _ in range(300)]
    found = green_test(records, KEY)
    assert found.steps == 300
    assert found.expected == 150
    assert found.z > 6
    assert found.p_value < 1e-9
    assert green_test(records, SharedKey.generate()).z < 6


def test_red_green_is_calibrated_on_unmarked_logs() -> None:
    """200 null logs of 50 steps: p < 0.05 in about one of twenty (five standard errors)."""
    rng = random.Random(3)
    false = 0
    for _ in range(200):
        session = BaselineSession(rng)
        records = [session.choose(dirichlet(rng, 6, 1.0)).record for _ in range(50)]
        false += green_test(records, KEY).p_value < 0.05
    assert false < 200 * 0.05 + 5 * (200 * 0.05 * 0.95) ** 0.5


def test_no_bias_means_no_change() -> None:
    session = RedGreenSession(KEY, green_bias=0.0, rng=random.Random(4))
    counts = Counter(session.choose(TICKET_WEIGHTS).behavior for _ in range(20_000))
    expected = [20_000 * weight for weight in TICKET_WEIGHTS.values()]
    assert chisquare([counts[name] for name in TICKET_WEIGHTS], expected).pvalue > 1e-6


def test_the_verifier_counts_peers_as_unmarked() -> None:
    session = RedGreenSession(KEY)
    records = [session.choose(TICKET_WEIGHTS).record for _ in range(5)]
    verdict = Verifier(KEY).verify(records)
    assert verdict.counts == {"unmarked": 5}
