"""Views of a step: the choice stays, the list goes; and the verifier needs no more than they hold."""

import random

import pytest
from agentmark_lab.experiments.verification.views import PARTIAL, VIEWS
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.naming import named_after
from agentmark_lab.kit.worlds import ALFWORLD, Agent, distribution_of

from agentmark import Verifier
from agentmark.record import StepRecord


def test_views_keep_the_choice_and_lose_what_they_say():
    rng = random.Random(6)
    record = Agent(ALFWORLD, random_key(rng), 3, 8, "R").log(rng, 1)[0]
    for name, view in VIEWS.items():
        seen = view(record, rng)
        assert seen.behavior == record.behavior
        assert (seen.distribution is None) == (name in PARTIAL)
        # It is a record that can be written and read.
        assert StepRecord.from_json(seen.to_json()).partial_weights == seen.partial_weights
    rounded = VIEWS["rounded to 2 decimals"](record, rng)
    assert len({weight % 2**20 for weight in distribution_of(rounded).weights}) <= len(distribution_of(rounded))


@pytest.mark.parametrize("view", ["exact", "chosen weight only", "action only"])
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_the_verifier_names_an_identity_as_soon_as_its_evidence_suffices(view, seed):
    """The experiments count the evidence of the identity they know; a verifier has to find it first."""
    rng = generator(seed, "soon", view)
    key, payload = random_key(rng), rng.getrandbits(8)
    records = Agent(ALFWORLD, key, payload, 8, "R").log(rng, 120)
    records = [VIEWS[view](record, rng) for record in records]
    steps = int(named_after(records, key, payload, payload_len=8))
    verifier = Verifier(key, payload_len=8)
    assert verifier.verify(records[:steps]).payload == payload
    assert not verifier.verify(records[: steps - 1]).accepted
