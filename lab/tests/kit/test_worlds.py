"""Agents like the paper's."""

import random

import pytest
from agentmark_lab.kit.worlds import ALFWORLD, TOOLBENCH


def test_worlds_have_the_entropies_of_the_paper():
    from agentmark.core.theory import entropy

    rng = random.Random(7)
    for world, expected in ((TOOLBENCH, 0.86), (ALFWORLD, 1.95)):
        mean = sum([entropy(world.draw(rng)) for _ in range(800)]) / 800
        assert mean == pytest.approx(expected, abs=0.12)
