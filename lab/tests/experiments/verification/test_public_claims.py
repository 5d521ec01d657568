"""The experiment on public mode asks what users ask, and notices rates above the bound."""

import random
from collections import Counter

import pytest
from agentmark_lab.experiments.verification import public_claims
from agentmark_lab.experiments.verification.public_claims import LEVELS, RANDOM_FUNCTION, Scene, Tally

from agentmark.core.distribution import BehaviorDistribution


def scene(scheme: str = "R", function: str = RANDOM_FUNCTION) -> Scene:
    even = BehaviorDistribution.quantise({"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25})
    return Scene(scheme, function, random.Random(7), [even])


@pytest.mark.parametrize("function", [RANDOM_FUNCTION, public_claims.REAL])
@pytest.mark.parametrize("scheme", ["F", "R"])
def test_a_log_of_its_holders_own_is_accepted(scheme: str, function: str) -> None:
    """With the steps of the experiment: what it counts can happen."""
    if function == public_claims.REAL:
        pytest.importorskip("nacl")
    at = scene(scheme, function)
    holder = at.holder()
    own = [record for _ in range(2) for record in at.marked(holder, 0, payload_len=0)]
    verdict = public_claims.verify(holder.disclosed(own), own)
    assert verdict.accepted
    tally = Tally()
    tally.add(verdict)
    assert tally.accepted == tally.owned == Counter(dict.fromkeys(LEVELS, 1))


def test_without_a_payload_a_claim_is_the_open_question() -> None:
    at = scene()
    holder = at.holder()
    for log in (at.marked(holder, 0, payload_len=0), at.sampled(holder.id)):
        steps = holder.disclosed(at.fitting(log, holder))
        claimed, asked = (public_claims.verify(steps, log, claim=claim) for claim in (0, None))
        assert claimed.bits_paid == asked.bits_paid == 0
        if asked.candidate is not None:
            assert claimed.evidence_bits == asked.evidence_bits


def test_rates_above_the_level_are_noticed() -> None:
    name = ("only what agrees disclosed", "F", RANDOM_FUNCTION)
    level = LEVELS[-1]
    for accepted, holds in ((1, True), (40, False)):
        tally = Tally(logs=1000, accepted=Counter({level: accepted}))
        assert public_claims._nominal({name: tally}, RANDOM_FUNCTION).holds is holds
    control = ("what is kept back does not count", "F", RANDOM_FUNCTION)
    assert not public_claims._noticed({control: Tally(logs=1000)}).holds
