"""What the library and the lab count with: an interval for a share of trials, and lists drawn at random."""

from dataclasses import dataclass
from math import sqrt
from random import Random
from statistics import NormalDist

# Below this a sum of masses has underflowed: there is no list to speak of.
_SMALLEST_MASS = 1e-200


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def normal_quantile(confidence: float) -> float:
    """How many standard errors a two-sided interval of this confidence reaches: 1.96 for 0.95."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson_interval(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """Wilson's interval for a proportion."""
    z = normal_quantile(confidence)
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    margin = z * sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2) / (1 + z * z / trials)
    return Interval(max(0.0, centre - margin), min(1.0, centre + margin))


def dirichlet(rng: Random, alpha: float, size: int) -> list[float]:
    """Masses of a symmetric Dirichlet distribution, up to their sum. Small alphas give peaked lists.

    Where all masses underflow they are drawn again, which is independent of that.
    """
    while True:
        masses = [rng.gammavariate(alpha, 1.0) for _ in range(size)]
        if sum(masses) > _SMALLEST_MASS:
            return masses


def named(masses: list[float]) -> dict[str, float]:
    """Masses under plain names: b0, b1, and so on."""
    return {f"b{i}": mass for i, mass in enumerate(masses)}
