"""The repetition code of App. H.2."""

import random
from collections import Counter

from agentmark_lab.peers.repetition import RepetitionSession, contains_intact_segment, surviving_bits
from scipy.stats import chisquare
from support import TICKET_WEIGHTS, dirichlet

from agentmark import SharedKey

KEY = SharedKey(bytes(range(100, 132)))


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
