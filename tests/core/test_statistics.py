"""An interval for a share, against SciPy; and lists drawn at random."""

from random import Random

import pytest
from scipy import stats as scipy_stats

from agentmark.core.statistics import dirichlet, named, normal_quantile, wilson_interval


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (1, 10), (10, 10), (3, 20_000), (12_200, 20_000)])
@pytest.mark.parametrize("confidence", [0.95, 0.9985])
def test_wilsons_interval(successes: int, trials: int, confidence: float) -> None:
    interval = wilson_interval(successes, trials, confidence=confidence)
    expected = scipy_stats.binomtest(successes, trials).proportion_ci(confidence, "wilson")
    assert interval.low == pytest.approx(expected.low, rel=1e-6, abs=1e-12)
    assert interval.high == pytest.approx(expected.high, rel=1e-6)
    assert (interval.low + interval.high) / 2 in interval
    assert interval.high + 0.1 not in interval


def test_normal_quantile() -> None:
    assert normal_quantile(0.95) == pytest.approx(scipy_stats.norm.ppf(0.975))


def test_the_masses_of_a_list_are_gamma_draws_one_after_another() -> None:
    """What is drawn is fixed by the generator: results repeat to the digit."""
    twin = Random(1)
    assert dirichlet(Random(1), 0.3, 4) == [twin.gammavariate(0.3, 1.0) for _ in range(4)]
    assert list(named([0.5, 0.25])) == ["b0", "b1"]


def test_the_share_of_a_name_is_beta() -> None:
    """Of a symmetric Dirichlet list with alpha 2 over 3 names each share is Beta(2, 4)."""
    rng = Random(2)
    shares = []
    for _ in range(2000):
        masses = dirichlet(rng, 2.0, 3)
        shares.append(masses[0] / sum(masses))
    assert scipy_stats.kstest(shares, scipy_stats.beta(2, 4).cdf).pvalue > 1e-4


def test_a_list_that_underflows_is_drawn_again() -> None:
    class Small(Random):
        draws = 0

        def gammavariate(self, alpha: float, beta: float) -> float:
            self.draws += 1
            return 0.0 if self.draws <= 4 else 1.0

    rng = Small()
    assert dirichlet(rng, 0.001, 2) == [1.0, 1.0]
    assert rng.draws == 6
