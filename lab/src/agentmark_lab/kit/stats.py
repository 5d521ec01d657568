"""The statistics that the claims rest on, from the standard library alone; tested against SciPy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, factorial, lgamma, log, log2, sqrt
from statistics import fmean, stdev, variance

from agentmark.core.statistics import Interval, normal_quantile, wilson_interval

MIN_EXPECTED = 5.0

_PRECISION = 1e-15
_TINY = 1e-300
_MAX_TERMS = 100_000


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A goodness-of-fit test. With a single cell there is nothing to test, hence no p-value."""

    statistic: float
    degrees: int
    p_value: float | None


def chi_square_sf(statistic: float, degrees: int) -> float:
    """Pr[a chi-square variable of so many degrees of freedom exceeds the statistic]."""
    return upper_gamma(degrees / 2, statistic / 2)


def upper_gamma(a: float, x: float) -> float:
    """Q(a, x), the regularised upper incomplete gamma function."""
    if x <= 0:
        return 1.0
    scale = exp(a * log(x) - x - lgamma(a))
    # The series converges fast below the mean, the continued fraction above it.
    if x < a + 1:
        return 1 - scale * _gamma_series(a, x)
    return scale * _continued_fraction(x + 1 - a, lambda i: (-i * (i - a), x + 2 * i + 1 - a))


def _gamma_series(a: float, x: float) -> float:
    term = total = 1 / a
    for i in range(1, _MAX_TERMS):
        term *= x / (a + i)
        total += term
        if term < total * _PRECISION:
            break
    return total


def _continued_fraction(first: float, terms: Callable[[int], tuple[float, float]]) -> float:
    """1 / (first + n_1 / (d_1 + n_2 / (d_2 + ...))) by Lentz's method; `terms(i)` gives n_i and d_i."""
    fraction_up = 1 / _TINY
    fraction_down = 1 / (first or _TINY)
    value = fraction_down
    for i in range(1, _MAX_TERMS):
        numerator, denominator = terms(i)
        fraction_down = 1 / ((numerator * fraction_down + denominator) or _TINY)
        fraction_up = (denominator + numerator / fraction_up) or _TINY
        factor = fraction_up * fraction_down
        value *= factor
        if abs(factor - 1) < _PRECISION:
            break
    return value


def chi_square_test(observed: Sequence[int], expected: Sequence[float]) -> ChiSquare:
    """Pearson's test. Cells that expect fewer than five are pooled into one, which takes in the smallest of the
    others if it is still below five. A count where none is expected refutes the hypothesis outright."""
    cells = list(zip(observed, expected, strict=True))
    if any(count and not mean for count, mean in cells):
        return ChiSquare(float("inf"), 0, 0.0)
    cells = _pooled(cells)
    degrees = len(cells) - 1
    statistic = sum([(count - mean) ** 2 / mean for count, mean in cells])
    return ChiSquare(statistic, degrees, chi_square_sf(statistic, degrees) if degrees else None)


def two_sample_test(one: Mapping[str, int], other: Mapping[str, int]) -> ChiSquare:
    """Pearson's test that two samples come from one distribution. Cells that hold fewer than ten of both together are
    pooled as in `chi_square_test`."""
    first, second = sum(one.values()), sum(other.values())
    both = {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}
    share = first / (first + second)
    # What a cell expects of the smaller sample decides whether it is large enough to stand alone.
    smaller = min(share, 1 - share)
    cells = _pooled([(one.get(name, 0), count * smaller) for name, count in both.items() if count])
    statistic = 0.0
    for count, expected in cells:
        total = expected / smaller
        mean = total * share
        statistic += (count - mean) ** 2 / mean + (count - mean) ** 2 / (total - mean)
    degrees = len(cells) - 1
    return ChiSquare(statistic, degrees, chi_square_sf(statistic, degrees) if degrees else None)


def _pooled(cells: list[tuple[int, float]]) -> list[tuple[int, float]]:
    kept = sorted([cell for cell in cells if cell[1] >= MIN_EXPECTED], key=lambda cell: -cell[1])
    small = [cell for cell in cells if 0 < cell[1] < MIN_EXPECTED]
    if not small:
        return kept
    if kept and sum([mean for _, mean in small]) < MIN_EXPECTED:
        small.append(kept.pop())
    return [*kept, (sum([count for count, _ in small]), sum([mean for _, mean in small]))]


def total_variation(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """The distance between two distributions: at most how much likelier one makes anything than the other."""
    return sum([abs(one.get(name, 0.0) - other.get(name, 0.0)) for name in {*one, *other}]) / 2


def divergence(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Jensen-Shannon divergence of two distributions, in bits."""
    middle = {name: (one.get(name, 0.0) + other.get(name, 0.0)) / 2 for name in {*one, *other}}
    return sum([_relative_entropy(shares, middle) for shares in (one, other)]) / 2


def _relative_entropy(shares: Mapping[str, float], middle: Mapping[str, float]) -> float:
    return sum([share * log2(share / middle[name]) for name, share in shares.items() if share])


def ks_uniform(values: Sequence[float]) -> float:
    """p-value of the Kolmogorov-Smirnov test that the values are uniform on [0, 1], two-sided and exact."""
    size = len(values)
    ordered = sorted(values)
    distance = max(max((i + 1) / size - value, value - i / size) for i, value in enumerate(ordered))
    return min(1.0, max(0.0, 1 - _ks_cdf(size, distance)))


def _ks_cdf(size: int, distance: float) -> float:
    """Pr[D_n < d], exactly: an entry of the n-th power of a matrix (Marsaglia, Tsang and Wang, 2003)."""
    half = ceil(size * distance)
    width = 2 * half - 1
    gap = half - size * distance
    matrix = [[1.0 if i - j + 1 >= 0 else 0.0 for j in range(width)] for i in range(width)]
    for i in range(width):
        matrix[i][0] -= gap ** (i + 1)
        matrix[width - 1][i] -= gap ** (width - i)
    matrix[width - 1][0] += max(0.0, 2 * gap - 1) ** width
    for i in range(width):
        for j in range(min(i + 1, width)):
            matrix[i][j] /= factorial(i - j + 1)
    chance = _matrix_power(matrix, size)[half - 1][half - 1]
    for i in range(1, size + 1):
        chance *= i / size
    return chance


def _matrix_power(matrix: list[list[float]], exponent: int) -> list[list[float]]:
    if exponent == 1:
        return matrix
    root = _matrix_power(matrix, exponent // 2)
    square = _matrix_product(root, root)
    return _matrix_product(square, matrix) if exponent % 2 else square


def _matrix_product(left: list[list[float]], right: list[list[float]]) -> list[list[float]]:
    columns = list(zip(*right, strict=True))
    return [[sum([a * b for a, b in zip(row, column, strict=True)]) for column in columns] for row in left]


def share_text(successes: int, trials: int, *, digits: int = 2) -> str:
    """A proportion as it stands in a table, with Wilson's interval."""
    interval = wilson_interval(successes, trials)
    return f"{successes / trials:.{digits}f} ({interval.low:.{digits}f} to {interval.high:.{digits}f})"


def exact_interval(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """Clopper and Pearson's interval for a proportion: it never covers too rarely, also for counts near zero."""
    tail = (1 - confidence) / 2
    low = high = None
    if successes > 0:
        low = _solve(lambda share: lower_beta(successes, trials - successes + 1, share) - tail)
    if successes < trials:
        high = _solve(lambda share: lower_beta(successes + 1, trials - successes, share) - (1 - tail))
    return Interval(0.0 if low is None else low, 1.0 if high is None else high)


def lower_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b), the regularised incomplete beta function: Pr[Binomial(a + b - 1, x) >= a] for whole a and b."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - lower_beta(b, a, 1 - x)

    def terms(i: int) -> tuple[float, float]:
        m = i // 2
        if i % 2 == 0:
            return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1.0
        return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1.0

    scale = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    return scale * _continued_fraction(1.0, terms)


def _solve(rising: Callable[[float], float]) -> float:
    """The root on [0, 1] of a rising function, by halving in relative precision as well as absolute."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
        if high - low <= high * 1e-12:
            break
    return (low + high) / 2


def quantile_interval(values: Sequence[float], share: float, *, confidence: float = 0.95) -> Interval:
    """Order statistics around a quantile: valid whatever the values are distributed like.

    Values that were not reached may be infinite; so may then be the limits.
    """
    ordered = sorted(values)
    size = len(ordered)
    tail = (1 - confidence) / 2
    # The k-th smallest exceeds the quantile when fewer than k values lie at or below it.
    low = max((k for k in range(1, size + 1) if 1 - lower_beta(k, size - k + 1, share) <= tail), default=0)
    high = min((k for k in range(1, size + 1) if lower_beta(k, size - k + 1, share) <= tail), default=size + 1)
    return Interval(ordered[low - 1] if low else 0.0, ordered[high - 1] if high <= size else float("inf"))


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many of them do not exceed."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def moments_interval(count: int, total: float, squares: float, *, confidence: float = 0.95) -> Interval:
    """As `mean_interval`, from the number of values, their sum and the sum of their squares."""
    mean = total / count
    variance = max(0.0, squares / count - mean * mean) * count / (count - 1)
    margin = normal_quantile(confidence) * sqrt(variance / count)
    return Interval(mean - margin, mean + margin)


def mean_interval(values: Sequence[float], *, confidence: float = 0.95) -> Interval:
    """The mean of independent values, with the normal approximation."""
    margin = normal_quantile(confidence) * stdev(values) / sqrt(len(values))
    mean = fmean(values)
    return Interval(mean - margin, mean + margin)


def student_interval(values: Sequence[float], *, confidence: float = 0.95) -> Interval:
    """The mean of a few independent values: as `mean_interval`, with Student's t for the normal quantile."""
    margin = student_quantile(confidence, len(values) - 1) * stdev(values) / sqrt(len(values))
    mean = fmean(values)
    return Interval(mean - margin, mean + margin)


def bernstein_margin(variance: float, largest: float, trials: int, *, confidence: float = 0.95) -> float:
    """How far the mean of independent values may lie from its expectation (Bernstein's inequality).

    `variance` is their mean variance, and none is further than `largest` from its own mean. Unlike the normal
    approximation it holds for any number of trials, also where almost all values are the same.
    """
    budget = log(2 / (1 - confidence))
    skew = largest * budget / 3
    return (skew + sqrt(skew * skew + 2 * trials * variance * budget)) / trials


def empirical_bernstein_margin(values: Sequence[float], width: float, *, confidence: float = 0.95) -> float:
    """The same from the values' own spread (Maurer and Pontil 2009): independent, and in an interval of this width."""
    budget = log(4 / (1 - confidence))
    count = len(values)
    return sqrt(2 * variance(values) * budget / count) + 7 * width * budget / (3 * (count - 1))


def student_quantile(confidence: float, degrees: int) -> float:
    """As `normal_quantile`, when the spread was estimated with so many degrees of freedom: 2.07 for 0.95 and 23."""
    # Of t * t / (degrees + t * t), which is of the beta distribution.
    share = _solve(lambda x: lower_beta(0.5, degrees / 2, x) - confidence)
    return sqrt(degrees * share / (1 - share))


def bonferroni(confidence: float, tests: int) -> float:
    """The confidence of each of so many intervals, so that all of them cover together with `confidence`."""
    return 1 - (1 - confidence) / tests
