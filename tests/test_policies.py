"""The peers behind the same `choose`: baseline, red-green, repetition."""

import random
from collections import Counter

from scipy.stats import chisquare
from support import TICKET_WEIGHTS, dirichlet

from agentmark import SharedKey, Verifier
from agentmark.policies import (
    BaselineSession,
    RedGreenSession,
    RepetitionSession,
    contains_intact_segment,
    green_test,
    surviving_bits,
)

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


def test_the_repetition_code_runs_in_a_circle_until_a_step_is_lost() -> None:
    session = RepetitionSession(KEY, 0xA5C3, payload_len=16)
    rng = random.Random(5)
    records = [session.choose(dirichlet(rng, 6, 1.0)).record for _ in range(60)]
    stream = surviving_bits(records, KEY)
    circle = f"{0xA5C3:016b}" * (len(stream) // 16 + 1)
    assert stream == circle[: len(stream)]
    assert contains_intact_segment(stream, 0xA5C3, payload_len=16)
    every_other = surviving_bits(records[::2], KEY)
    assert not contains_intact_segment(every_other, 0xA5C3, payload_len=16)


def test_the_repetition_code_keeps_the_list_too() -> None:
    """It shares F's channel, pad included: the payload of all ones does not show."""
    session = RepetitionSession(KEY, 0xFF, payload_len=8)
    counts = Counter(session.choose(TICKET_WEIGHTS).behavior for _ in range(20_000))
    expected = [20_000 * weight for weight in TICKET_WEIGHTS.values()]
    assert chisquare([counts[name] for name in TICKET_WEIGHTS], expected).pvalue > 1e-6


def test_the_verifier_counts_peers_as_unmarked() -> None:
    session = RedGreenSession(KEY)
    records = [session.choose(TICKET_WEIGHTS).record for _ in range(5)]
    verdict = Verifier(KEY).verify(records)
    assert verdict.counts == {"unmarked": 5}
