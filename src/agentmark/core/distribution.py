"""P_t as integers: quantised once, in canonical order (laws L1 and L2; spec, section 4)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import lcm
from operator import gt, index
from typing import Any, Protocol, Self, SupportsIndex

from agentmark.core.canonical import is_unicode
from agentmark.core.errors import DistributionError
from agentmark.core.rounding import round_floats, round_masses

WEIGHT_BITS = 32
TOTAL_WEIGHT = 1 << WEIGHT_BITS
# More candidates than any environment offers; it bounds the work that one record can cause.
MAX_BEHAVIORS = 4096


class Rational(Protocol):
    """An exact number: int, float, Fraction, Decimal and NumPy's floats all are."""

    def as_integer_ratio(self) -> tuple[int, int]: ...


Probabilities = Mapping[str, Rational] | Iterable[tuple[str, Rational]]


@dataclass(frozen=True, slots=True)
class BehaviorDistribution:
    """Behaviors by weight, largest first, ties by name; the weights sum to 2^32.

    Build one with `quantise` (any numbers) or `from_weights` (a record's integers): they validate.
    """

    behaviors: tuple[str, ...]
    weights: tuple[int, ...]

    @classmethod
    def quantise(cls, probabilities: Probabilities) -> Self:
        """Largest-remainder rounding in exact arithmetic. A zero stays zero; the sum need not be one."""
        names, numbers = _names_and_numbers(probabilities)
        weights = None
        if _are_names(names) and (type(probabilities) is dict or len(set(names)) == len(names)):
            floats = _as_floats(numbers)
            weights = None if floats is None else round_floats(floats, names, WEIGHT_BITS)
        if weights is None:
            # Unusual numbers, or something is amiss: name by name and number by number.
            masses = _exact_masses(names, numbers)
            if not any(masses):
                raise DistributionError("weights", "all are zero")
            weights = round_masses(masses, names, WEIGHT_BITS)
        return cls._in_canonical_order(names, weights)

    @classmethod
    def from_weights(cls, weights: Mapping[str, int]) -> Self:
        """Take integers that were quantised before; refuse any that could not have been."""
        numbers = list(weights.values())
        if (
            not _are_names(weights)
            or set(map(type, numbers)) != {int}
            or sum(numbers) != TOTAL_WEIGHT
            or min(numbers) < 0
        ):
            # Something is amiss: this says what.
            total = checked_total(weights)
            raise DistributionError("weights", f"sum to {total}, not to 2^{WEIGHT_BITS} = {TOTAL_WEIGHT}")
        names = list(weights)
        if all(map(gt, numbers, numbers[1:])):
            # As whoever wrote a record has put them, and no two alike.
            return cls(tuple(names), tuple(numbers))
        return cls._in_canonical_order(names, numbers)

    @classmethod
    def _in_canonical_order(cls, names: Sequence[str], weights: Sequence[int]) -> Self:
        by_weight = sorted(weights, reverse=True)
        if len(set(weights)) < len(weights):
            # Code points sort as their UTF-8 bytes do, so comparing the text is comparing the bytes. The sort by
            # weight is stable, which leaves equal weights in the order of their names.
            order: Sequence[int] = sorted(range(len(names)), key=names.__getitem__)
        else:
            order = range(len(names))
        order = sorted(order, key=weights.__getitem__, reverse=True)
        return cls(tuple([names[i] for i in order]), tuple(by_weight))

    def __len__(self) -> int:
        return len(self.behaviors)

    def weight(self, behavior: str) -> int:
        """The integer weight of one behavior."""
        return self.weights[self.position(behavior)]

    def probability(self, behavior: str) -> float:
        """P_t(b). Exact: a weight over 2^32 fits a double."""
        return self.weight(behavior) / TOTAL_WEIGHT

    def position(self, behavior: str) -> int:
        """Index in canonical order, from 0."""
        try:
            return self.behaviors.index(behavior)
        except ValueError:
            raise DistributionError("choice", f"{behavior!r} is not among the behaviors") from None

    def as_weights(self) -> dict[str, int]:
        """Name to integer weight: what a record stores."""
        return dict(zip(self.behaviors, self.weights, strict=True))

    def at(self, draw: int) -> str:
        """The behavior on which a uniform draw from [0, 2^32) falls: plain inverse sampling."""
        for behavior, weight in zip(self.behaviors, self.weights, strict=True):
            if draw < weight:
                return behavior
            draw -= weight
        raise DistributionError("draw", f"must lie in [0, {TOTAL_WEIGHT})")


def _names_and_numbers(probabilities: Probabilities) -> tuple[list[str], list[Rational]]:
    """The two columns of a list, unchecked."""
    if type(probabilities) is dict:
        return list(probabilities), list(probabilities.values())
    pairs = probabilities.items() if isinstance(probabilities, Mapping) else _as_pairs(probabilities)
    return [name for name, _ in pairs], [number for _, number in pairs]


def _as_floats(numbers: Sequence[Any]) -> Sequence[float] | None:
    """The same numbers as floats, if they are floats, or integers that fit one."""
    kinds = set(map(type, numbers))
    if kinds == {float}:
        return numbers
    if kinds == {int}:
        return list(map(float, numbers)) if max(numbers) < 1 << 53 and min(numbers) >= 0 else None
    # NumPy's floats are floats of Python, only slower.
    return list(map(float.__pos__, numbers)) if all(issubclass(kind, float) for kind in kinds) else None


def _exact_masses(names: Sequence[str], numbers: Sequence[Rational]) -> list[int]:
    """The numbers over one common denominator: no float is ever added or compared."""
    numerators: list[int] = []
    denominators: list[int] = []
    for name, number in zip(names, numbers, strict=True):
        _check_name(name)
        numerator, denominator = _exact_ratio(name, number)
        numerators.append(numerator)
        denominators.append(denominator)
    _check_count(len(names))
    repeated = first_repeated(names)
    if repeated is not None:
        raise DistributionError("behaviors", f"{repeated!r} appears twice")
    common = lcm(*denominators)
    return [n * (common // d) for n, d in zip(numerators, denominators, strict=True)]


def _as_pairs(probabilities: Iterable[tuple[str, Rational]]) -> list[tuple[str, Rational]]:
    try:
        return [(name, probability) for name, probability in probabilities]
    except (TypeError, ValueError):
        raise DistributionError("weights", "are neither an object nor a list of (name, number) pairs") from None


def _exact_ratio(name: str, probability: Rational) -> tuple[int, int]:
    try:
        numerator, denominator = probability.as_integer_ratio()
    except (ValueError, OverflowError):
        raise DistributionError(f"weights[{name!r}]", f"{probability!r} is not finite") from None
    except AttributeError:
        # NumPy's integers are exact numbers that do not say so.
        if isinstance(probability, SupportsIndex):
            return _exact_ratio(name, index(probability))
        raise DistributionError(f"weights[{name!r}]", f"{probability!r} is not a number") from None
    if numerator < 0:
        raise DistributionError(f"weights[{name!r}]", f"{probability!r} is negative")
    if probability is True or probability is False:
        raise DistributionError(f"weights[{name!r}]", f"{probability!r} is not a number")
    return numerator, denominator


def checked_total(weights: Mapping[str, int]) -> int:
    """The sum of integer weights, each of which could have been quantised: all of a list, or a part."""
    for name, weight in weights.items():
        _check_name(name)
        if type(weight) is not int:
            raise DistributionError(f"weights[{name!r}]", f"{weight!r} is not an integer")
        if not 0 <= weight <= TOTAL_WEIGHT:
            raise DistributionError(f"weights[{name!r}]", f"is outside 0 to 2^{WEIGHT_BITS}")
    _check_count(len(weights))
    return sum(weights.values())


def _are_names(names: Collection[str]) -> bool:
    """Whether these can be the names of a list, all of them looked at once. Which one cannot, `_check_name` says."""
    try:
        joined = "".join(names)
    except TypeError:
        return False
    return 0 < len(names) <= MAX_BEHAVIORS and all(names) and (joined.isascii() or is_unicode(joined))


def first_repeated(names: Sequence[str]) -> str | None:
    """The first name that appears a second time."""
    if len(set(names)) == len(names):
        return None
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _check_count(count: int) -> None:
    if count == 0:
        raise DistributionError("behaviors", "the list is empty")
    if count > MAX_BEHAVIORS:
        raise DistributionError("behaviors", f"{count} are more than {MAX_BEHAVIORS}")


def _check_name(name: object) -> None:
    if type(name) is str and name and name.isascii():
        return
    if not isinstance(name, str):
        raise DistributionError("behaviors", f"{name!r} is not text")
    if not name:
        raise DistributionError("behaviors", "a name is empty")
    if not is_unicode(name):
        raise DistributionError("behaviors", f"{name!r} holds a lone surrogate")
