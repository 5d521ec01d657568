"""The peers behind the same `choose`: baseline, red-green and proposals that stop early."""

import random
from collections import Counter

from scipy.stats import chisquare
from support import TICKET_WEIGHTS, dirichlet

from agentmark import Embedder, SharedKey, Verifier
from agentmark.policies import BaselineSession, EarlyStoppingSession, RedGreenSession, green_test

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


def test_early_stopping_bends_the_list_by_as_much_as_it_must() -> None:
    """Of (0.9, 0.1): two alike in 0.82 of the decisions; else two against one in the third. H0: the likelier behavior
    is chosen as often as the list says. 20,000 decisions, more than eight standard errors off, and within four of
    what stopping early makes of it."""
    rng = random.Random(6)
    session = EarlyStoppingSession(Embedder(KEY, 5, payload_len=8, scheme="R").session("early"), rng=rng)
    trials = 20_000
    hits = sum([session.choose({"go": 0.9, "stay": 0.1}).behavior == "go" for _ in range(trials)])
    bent = 0.9**2 + 2 * 0.9 * 0.1 * (0.9 * 2 + 0.1) / 3
    assert round(bent, 3) == 0.924
    assert hits / trials > 0.9 + 8 * (0.9 * 0.1 / trials) ** 0.5
    assert abs(hits / trials - bent) < 4 * (bent * (1 - bent) / trials) ** 0.5


def test_early_stopping_logs_the_agents_own_list() -> None:
    session = EarlyStoppingSession(Embedder(KEY, 5, payload_len=8).session("early"), rng=random.Random(7))
    record = session.choose(TICKET_WEIGHTS).record
    assert record.distribution is not None
    assert set(record.distribution.behaviors) == set(TICKET_WEIGHTS)
    assert not record.marked
