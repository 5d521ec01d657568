"""The experiment on marginals notices a sampler that bends them."""

from collections import Counter

from agentmark_lab.experiments.theory import marginals
from agentmark_lab.kit.options import Options
from lab_support import silent

from agentmark import BehaviorDistribution


def biased_sampler(scheme: str, seed: int) -> marginals.Sampler:
    """Takes the likeliest behavior a little too often: one step in twenty-five."""
    honest = marginals.marked_sampler(scheme, seed)

    def sample(distribution: BehaviorDistribution, context: bytes) -> str:
        return distribution.behaviors[0] if context[0] < 256 // 25 else honest(distribution, context)

    return sample


def position_sampler(scheme: str, seed: int) -> marginals.Sampler:
    """Ignores the weights."""
    return lambda distribution, context: distribution.behaviors[context[0] % len(distribution)]


def test_marginals_fail_for_a_sampler_that_ignores_the_weights():
    findings = marginals.check(position_sampler, Options(quick=True), silent)
    assert not findings.passed
    assert findings.claims[0].sentence.startswith("DOES NOT HOLD")


def test_marginals_detect_a_slight_bias():
    distribution = marginals.distributions(1)["paper's App. C"]
    p_values = {}
    for make_sampler in (marginals.marked_sampler, biased_sampler):
        chunk = marginals.DrawChunk("bias", distribution, "F", 1, 0, 40_000, make_sampler)
        p_values[make_sampler] = marginals.fit(distribution, marginals.count_choices(chunk)).p_value
    assert p_values[marginals.marked_sampler] > 0.001
    assert p_values[biased_sampler] < 1e-6


def test_marginals_refute_what_is_not_in_the_list():
    distribution = BehaviorDistribution.quantise({"a": 1.0})
    assert marginals.fit(distribution, Counter({"a": 10})).p_value is None
    assert marginals.fit(distribution, Counter({"a": 9, "z": 1})).p_value == 0


def test_there_are_twenty_distributions():
    cases = marginals.distributions(1)
    assert len(cases) == 20
    assert {1, 2, 3, 5, 10, 20, 50, 100, 1000} <= {len(distribution) for distribution in cases.values()}
    assert 1 in cases["two weights of 2^-32"].weights
