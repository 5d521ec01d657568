"""Spliced logs are judged by names and joint."""

from agentmark_lab.experiments.attacks import splices
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.naming import judge_splice

from agentmark import Verifier


def test_a_spliced_log_is_judged_by_names_and_joint():
    case = splices.Case(splices.TWO, "F", 8, 1)
    rng = generator(1, "splice test")
    key = random_key(rng)
    records, truth, cuts = splices.spliced_log(case, key, rng)
    segments = Verifier(key, payload_len=8).segments(records)
    outcome = judge_splice(segments, truth, cuts)
    assert outcome.named
    assert outcome.error is not None
    assert not judge_splice(segments, truth[::-1], cuts).named
    assert judge_splice(segments, [1 << 9, 1 << 10], cuts).invented
    assert judge_splice(segments, truth, [cuts[0] + 30]).success is False
