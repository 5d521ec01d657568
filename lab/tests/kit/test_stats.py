"""The lab's statistics against SciPy."""

import random

import pytest
from agentmark_lab.kit.stats import (
    bernstein_margin,
    bonferroni,
    chi_square_sf,
    chi_square_test,
    empirical_bernstein_margin,
    exact_interval,
    ks_uniform,
    lower_beta,
    mean_interval,
    moments_interval,
    quantile,
    quantile_interval,
    student_interval,
    student_quantile,
    total_variation,
    two_sample_test,
    upper_gamma,
)
from scipy import special
from scipy import stats as scipy_stats

from agentmark.core.statistics import wilson_interval


@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 99, 999, 5000])
@pytest.mark.parametrize("scaled", [0.001, 0.3, 0.9, 1.0, 1.1, 1.5, 4.0])
def test_chi_square_tail(degrees, scaled):
    statistic = degrees * scaled
    assert chi_square_sf(statistic, degrees) == pytest.approx(
        scipy_stats.chi2.sf(statistic, degrees), rel=1e-10, abs=1e-14
    )


def test_incomplete_gamma_and_beta():
    assert upper_gamma(2.5, 0) == 1
    for a, b, x in [(1, 1, 0.3), (0.5, 7, 0.02), (40, 3, 0.9), (12201, 7800, 0.61), (5, 5, 0), (5, 5, 1)]:
        assert lower_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-9)


@pytest.mark.parametrize("size", [1, 2, 5, 38, 90])
@pytest.mark.parametrize("power", [1.0, 1.3, 3.0, 0.2])
def test_kolmogorov_smirnov_is_exact(size, power):
    rng = random.Random(size)
    values = [rng.random() ** power for _ in range(size)]
    expected = scipy_stats.kstest(values, "uniform", method="exact").pvalue
    assert ks_uniform(values) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (1, 10), (10, 10), (3, 20_000), (12_200, 20_000)])
@pytest.mark.parametrize("confidence", [0.95, 0.9985])
def test_intervals_of_a_proportion(successes, trials, confidence):
    reference = scipy_stats.binomtest(successes, trials)
    for ours, method in ((wilson_interval, "wilson"), (exact_interval, "exact")):
        interval = ours(successes, trials, confidence=confidence)
        expected = reference.proportion_ci(confidence, method)
        assert interval.low == pytest.approx(expected.low, rel=1e-6, abs=1e-12)
        assert interval.high == pytest.approx(expected.high, rel=1e-6)


def test_mean_interval():
    values = [random.Random(1).gauss(3, 2) for _ in range(400)]
    values = [value + i % 7 for i, value in enumerate(values)]
    error = scipy_stats.sem(values)
    mean = sum(values) / len(values)
    interval = mean_interval(values, confidence=0.99)
    assert interval.low == pytest.approx(mean - scipy_stats.norm.ppf(0.995) * error)
    assert interval.high == pytest.approx(mean + scipy_stats.norm.ppf(0.995) * error)
    assert mean in interval
    assert bonferroni(0.95, 10) == pytest.approx(0.995)


@pytest.mark.parametrize("degrees", [1, 9, 23, 199, 5000])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_student_quantile(degrees: int, confidence: float):
    assert student_quantile(confidence, degrees) == pytest.approx(scipy_stats.t.ppf((1 + confidence) / 2, degrees))


def test_student_interval():
    rng = random.Random(2)
    values = [rng.gauss(3, 2) for _ in range(12)]
    expected = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.9)
    interval = student_interval(values, confidence=0.9)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_bernstein_margin_covers():
    # Rare events, where the normal approximation fails: Binomial(trials, p), whose tails are known exactly.
    for trials, p in [(40, 0.001), (400, 0.01), (20_000, 0.3)]:
        margin = bernstein_margin(p * (1 - p), 1, trials)
        binomial = scipy_stats.binom(trials, p)
        outside = binomial.sf(trials * (p + margin)) + binomial.cdf(trials * (p - margin) - 1e-9)
        assert outside <= 0.05


def test_empirical_bernstein_margin_covers():
    """Maurer and Pontil's inequality: 2,000 samples of 500 values of a share of .02; at most 5 % may miss it."""
    rng = random.Random(4)
    missed = 0
    for _ in range(2000):
        values = [float(rng.random() < 0.02) for _ in range(500)]
        missed += abs(sum(values) / 500 - 0.02) > empirical_bernstein_margin(values, 1)
    assert missed <= 100
    # Wider where nothing varies, by what may not have been seen yet.
    assert empirical_bernstein_margin([0.5] * 100, 1) == pytest.approx(7 * 4.382026634673881 / (3 * 99))


def test_chi_square_without_pooling():
    observed, expected = [18, 22, 35, 25], [20.0, 20.0, 30.0, 30.0]
    test = chi_square_test(observed, expected)
    reference = scipy_stats.chisquare(observed, expected)
    assert test.degrees == 3
    assert test.statistic == pytest.approx(reference.statistic)
    assert test.p_value == pytest.approx(reference.pvalue)


@pytest.mark.parametrize(
    ("expected", "degrees"),
    [
        ([90.0, 4.0, 3.0, 3.0], 1),  # the small cells make a cell of their own
        ([50.0, 46.0, 2.0, 2.0], 1),  # still below five: the smaller large cell joins them
        ([50.0, 40.0, 10.0, 0.0], 2),  # a cell that expects none is not a cell
        ([98.0, 1.0, 1.0, 0.0], 0),
    ],
)
def test_small_cells_are_pooled(expected, degrees):
    observed = [round(mean) for mean in expected]
    test = chi_square_test(observed, expected)
    assert test.degrees == degrees
    assert (test.p_value is None) == (degrees == 0)


def test_a_count_where_none_is_expected_refutes():
    assert chi_square_test([99, 1], [100.0, 0.0]).p_value == 0


@pytest.mark.parametrize(("size", "share"), [(500, 0.95), (100, 0.5), (60, 0.95)])
def test_order_statistics_cover_the_quantile(size, share):
    """The ranks against SciPy's binomial, and the coverage itself."""
    interval = quantile_interval(list(range(1, size + 1)), share)
    binomial = scipy_stats.binom(size, share)
    # Pr[the low rank exceeds the quantile] and Pr[the high one falls short of it] are both at most 2.5 %.
    assert binomial.cdf(interval.low - 1) <= 0.025 < binomial.cdf(interval.low)
    if interval.high <= size:
        assert binomial.sf(interval.high - 1) <= 0.025 < binomial.sf(interval.high - 2)
    rng = random.Random(1)
    covered = sum(share in quantile_interval([rng.random() for _ in range(size)], share) for _ in range(60))
    assert covered >= 50


def test_values_that_were_never_reached_are_beyond():
    values = [1.0] * 50 + [float("inf")] * 50
    assert quantile(values, 0.4) == 1
    assert quantile(values, 0.95) == float("inf")
    assert quantile_interval(values, 0.95).high == float("inf")


def test_moments_are_the_mean_interval():
    values = [random.Random(2).gauss(1, 2) for _ in range(400)]
    one, two = mean_interval(values), moments_interval(400, sum(values), sum(v * v for v in values))
    assert (one.low, one.high) == pytest.approx((two.low, two.high))


def test_two_samples_against_a_contingency_table():
    one, other = {"a": 40, "b": 25, "c": 35}, {"a": 90, "b": 60, "c": 50}
    expected = scipy_stats.chi2_contingency([list(one.values()), list(other.values())], correction=False)
    for first, second in ((one, other), (other, one)):
        found = two_sample_test(first, second)
        assert (found.statistic, found.degrees) == (pytest.approx(expected.statistic), expected.dof)
        assert found.p_value == pytest.approx(expected.pvalue)


def test_small_cells_of_two_samples_are_pooled():
    found = two_sample_test({"a": 50, "b": 1, "c": 4}, {"a": 45, "c": 5, "d": 5})
    expected = scipy_stats.chi2_contingency([[50, 5], [45, 10]], correction=False)
    assert (found.statistic, found.degrees) == (pytest.approx(expected.statistic), 1)
    assert two_sample_test({"a": 7}, {"a": 9}).p_value is None, "one cell: nothing to compare"


def test_total_variation_counts_what_only_one_of_them_has():
    assert total_variation({"a": 0.5, "b": 0.5}, {"a": 0.5, "c": 0.5}) == pytest.approx(0.5)
    assert total_variation({"a": 1.0}, {"b": 1.0}) == 1
    assert total_variation({"a": 0.2, "b": 0.8}, {"b": 0.8, "a": 0.2}) == 0
