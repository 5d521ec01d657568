"""Largest-remainder rounding (law L1): numbers to integer weights with a fixed sum, in exact arithmetic.

Long integers are slow, and floats almost always know the answer: a share that is computed in floats is wrong by less
than a known bound, and the true floors and the true order of remainders are those of the floats wherever these lie
further apart than that. Where they do not, the list is rounded in long integers: the result is exact in any case.
"""

from collections.abc import Sequence
from math import fsum

# A share is made by three roundings, each wrong by a part of 2^-53 at most: of 2^32, by less than 2^-19 in all.
_MOST_BITS = 32
_DOUBT = 2.0**-18
# Totals between these neither overflow nor lose bits when a share is computed from them.
_SMALL, _LARGE = 2.0**-900, 2.0**900


def round_masses(masses: Sequence[int], names: Sequence[str], bits: int) -> list[int]:
    """Weights that sum to 2^bits, for integers that are not all zero. Of equal remainders the first by name goes up."""
    total = sum(masses)
    # Many may be equal: what a model was asked for in whole percent, or counts.
    quota_of = {mass: divmod(mass << bits, total) for mass in set(masses)}
    quotas = [quota_of[mass] for mass in masses]
    weights = [floor for floor, _ in quotas]
    missing = (1 << bits) - sum(weights)
    if missing:
        remainders = [remainder for _, remainder in quotas]
        edge = sorted(remainders, reverse=True)[missing - 1]
        lifted = [i for i, remainder in enumerate(remainders) if remainder > edge]
        tied = [i for i, remainder in enumerate(remainders) if remainder == edge]
        if len(lifted) + len(tied) > missing:
            tied.sort(key=names.__getitem__)
        for i in lifted + tied[: missing - len(lifted)]:
            weights[i] += 1
    return weights


def round_floats(values: Sequence[float], names: Sequence[str], bits: int) -> list[int] | None:
    """The same for floats; None where they cannot be used so: one is negative or not finite, or they are extreme."""
    assert bits <= _MOST_BITS
    try:
        total = fsum(values)
    except (OverflowError, ValueError):
        return None
    # A total that is not a number is not between these either.
    if not _SMALL < total < _LARGE or min(values) < 0:
        return None
    if 2 * len(set(values)) <= len(values):
        # Equal values have equal remainders, and one of these ties is likely to be the one to settle.
        return round_masses(_masses(values), names, bits)
    each = 2.0**bits / total
    shares = [value * each for value in values]
    floors = list(map(int, shares))
    remainders = [share - floor for share, floor in zip(shares, floors, strict=True)]
    ranked = sorted(remainders, reverse=True)
    # Behind the others stand those of zeros, of which there is no doubt.
    smallest = ranked[len(values) - values.count(0.0) - 1]
    if ranked[0] <= 1 - _DOUBT and smallest >= _DOUBT:
        # So every floor is the true one.
        missing = (1 << bits) - sum(floors)
        edge = ranked[missing - 1]
        if ranked[missing] < edge - 2 * _DOUBT:
            return [floor + 1 if rest >= edge else floor for floor, rest in zip(floors, remainders, strict=True)]
    return round_masses(_masses(values), names, bits)


def _masses(values: Sequence[float]) -> list[int]:
    """Floats over one common denominator: theirs are powers of two, and the largest is a multiple of all."""
    ratios = {value: value.as_integer_ratio() for value in set(values)}
    common = max([denominator for _, denominator in ratios.values()])
    mass_of = {value: numerator * (common // denominator) for value, (numerator, denominator) in ratios.items()}
    return [mass_of[value] for value in values]
