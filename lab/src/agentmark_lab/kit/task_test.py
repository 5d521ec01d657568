"""Does anything change in any task? A test over all tasks at once, for gains and losses that cancel in the mean.

H0: within each task the values of both policies are exchangeable. Then the difference of a task's two means, squared
and divided by its variance over all ways to deal the task's values to two policies, has the mean 1; its variance over
those ways is known in closed form. The sum over tasks is compared with a gamma distribution of the same mean and
variance. Trials that share an environment's seed may resemble each other, which makes the test careful, not eager.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from agentmark_lab.kit.stats import lower_beta, upper_gamma


@dataclass(frozen=True, slots=True)
class TaskTest:
    """`statistic`: the sum over the tasks in which anything varies; `p_value`: that it is so large by chance."""

    tasks: int
    statistic: float
    p_value: float


def task_test(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> TaskTest:
    """Of each task: the values under one policy, and as many under the other."""
    statistic = variance = 0.0
    tasks = 0
    for one, other in pairs:
        dealt = _squared(one, other)
        if dealt is not None:
            tasks += 1
            statistic += dealt[0]
            variance += dealt[1]
    if not tasks or variance <= 0:
        # Where every way to deal gives the same there is nothing to test.
        return TaskTest(tasks, statistic, 1.0)
    # Shape and scale of the gamma distribution with this mean (a 1 for each task) and this variance.
    scale = variance / tasks
    return TaskTest(tasks, statistic, upper_gamma(tasks / scale, statistic / scale))


def _squared(one: Sequence[float], other: Sequence[float]) -> tuple[float, float] | None:
    """The squared difference in units of its mean over all deals, and the variance of that; None if nothing varies."""
    count, size = len(one), len(one) + len(other)
    middle = fmean([*one, *other])
    values = [value - middle for value in [*one, *other]]
    squares = sum([value * value for value in values])
    if squares <= 1e-12 or count != len(other):
        return None
    fourths = sum([value**4 for value in values])
    # Of drawing so many without replacement: the chance that one, two, three, four given values are all among them.
    chance = [1.0]
    for taken in range(4):
        chance.append(chance[-1] * max(0, count - taken) / max(1, size - taken))
    # Sums of products of two, three and four distinct values, which the values' zero sum gives.
    two_two, three, four = squares * squares - fourths, 2 * fourths - squares * squares, 0.0
    four = -3 * three
    second = chance[1] * squares - chance[2] * squares
    fourth = chance[1] * fourths + chance[2] * (3 * two_two - 4 * fourths) + chance[3] * 6 * three + chance[4] * four
    drawn = sum(values[:count])
    return drawn * drawn / second, fourth / (second * second) - 1


def mean_p_value(means: Sequence[float]) -> float:
    """Two-sided, of Student's test that the mean over tasks is zero; 1 where the tasks do not differ at all."""
    spread = stdev(means)
    if spread == 0:
        return 1.0
    t = fmean(means) / (spread / sqrt(len(means)))
    degrees = len(means) - 1
    return lower_beta(degrees / 2, 0.5, degrees / (degrees + t * t))
