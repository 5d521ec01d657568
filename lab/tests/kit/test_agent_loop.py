"""The agent loop."""

from random import Random

from agentmark_lab.kit.agent_loop import F, chooser_for, play
from agentmark_lab.kit.draws import random_key
from agentmark_lab.kit.expert_agent import SoftenedExpert
from corridors import Corridor


def test_a_list_that_cannot_be_used_costs_a_step() -> None:
    class Mute(SoftenedExpert):
        def weights(self, episode: object) -> None:  # type: ignore[override]
            return None

    rng = Random(1)
    chooser = chooser_for(F, key=random_key(rng), payload=1, payload_len=8, rng=rng)
    played = play(Corridor(), Mute(0.1), chooser, max_steps=7)
    assert (played.success, played.lost, played.steps, played.records) == (False, 7, 7, ())
