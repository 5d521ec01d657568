"""Texts under their key and under wrong ones."""

import pytest
from agentmark_lab.experiments.social.synthid import TextReading
from agentmark_lab.peers.synthid_text import GValues


def test_the_p_value_counts_the_right_key_in():
    means = [0.5] * 98 + [0.6]
    assert TextReading(9, GValues(61, 100), means).p_value == pytest.approx(0.01)
    assert TextReading(9, GValues(60, 100), means).p_value == pytest.approx(0.02)
    assert not TextReading(9, GValues(60, 100), means).detected
