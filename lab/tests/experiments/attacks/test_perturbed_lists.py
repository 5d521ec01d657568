"""Noise on the lists, as the paper's rewriting amounts to."""

from agentmark_lab.experiments.attacks import perturbed_lists as rewriting


def test_no_noise_leaves_every_match():
    match = rewriting.measure_match(0.0, 100, 1)
    assert (match.behavior_f, match.bits_f, match.behavior_r, match.divergence) == (1, 1, 1, 0)
    assert rewriting.measure_match(3.0, 100, 1).behavior_f < 0.6
