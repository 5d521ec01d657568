"""Evidence as e-values (law L8): additive in bits, mergeable, valid however often one looks.

An e-value has mean at most 1 when the claim is false. So a product of them over steps that reaches 2^b happens with
probability at most 2^-b, at any time (Ville). A step that is wrong with probability `noise` has the e-value
(1 - noise) * e + noise; when the noise is not known, a mixture over a grid of rates is an e-value too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import fsum, inf, log2
from operator import mul
from struct import Struct
from typing import Self

from agentmark.core.errors import StateError

# Half of the prior goes to no noise at all: a clean log pays one bit for the possibility that it is not.
NOISE_RATES = (0.0, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95)
NOISE_PRIOR = (0.5, *[0.5 / (len(NOISE_RATES) - 1)] * (len(NOISE_RATES) - 1))

_MAGIC = b"AMEV\x01"
_DOUBLE = Struct(">d")
IMPOSSIBLE = float("-inf")
# Rounding may lift the weights of a prior above 1 in all by this much.
_PRIOR_SLACK = 1e-9
# The steps of a scheme have no more e-values than this.
_FEW_VALUES = 256


@lru_cache(maxsize=64)
def _logs(prior: tuple[float, ...]) -> tuple[float, ...]:
    return tuple([log2(weight) if weight > 0 else IMPOSSIBLE for weight in prior])


@lru_cache(maxsize=4096)
def _factors(e_value: float, noise_rates: tuple[float, ...]) -> tuple[float, ...]:
    mixed = [(1 - rate) * e_value + rate for rate in noise_rates]
    return tuple([log2(factor) if factor > 0 else IMPOSSIBLE for factor in mixed])


def _terms(counts: Mapping[float, int], rate: float) -> list[float]:
    """What the steps of each e-value add under one noise rate."""
    if rate == 0 and 0.0 in counts:
        return [IMPOSSIBLE]
    share = 1 - rate
    return [count * log2(share * e_value + rate) for e_value, count in counts.items()]


class Evidence:
    """log2 of the product of e-values, for each noise rate."""

    __slots__ = ("_log_prior", "_sums", "noise_rates", "prior", "steps")

    def __init__(self, noise_rates: Sequence[float] = NOISE_RATES, prior: Sequence[float] | None = None) -> None:
        self.noise_rates = tuple(noise_rates)
        if prior is None:
            prior = NOISE_PRIOR if self.noise_rates == NOISE_RATES else [1 / len(noise_rates)] * len(noise_rates)
        self.prior = tuple(prior)
        if len(self.prior) != len(self.noise_rates) or any(not 0 <= rate < 1 for rate in self.noise_rates):
            raise ValueError("noise rates lie in [0, 1), each with its prior weight")
        self._log_prior = _logs(self.prior)
        self.steps = 0
        self._sums = [0.0] * len(self.noise_rates)

    def update(self, e_value: float) -> None:
        """Multiply one step's e-value in."""
        self.multiply(self.factors(e_value))

    def update_all(self, e_values: Iterable[float]) -> None:
        """Multiply in the e-values of many steps."""
        self.update_counts(Counter(e_values))

    def update_counts(self, counts: Mapping[float, int]) -> None:
        """Multiply in so many steps of each e-value. The sum over them is exact and rounded once, so that neither the
        order of the steps nor how they were counted makes a difference to the last bit."""
        self.steps += sum(counts.values())
        if len(counts) > _FEW_VALUES:
            # The odds of a long log are nearly all different: nothing is gained by keeping what they multiply in.
            terms = [_terms(counts, rate) for rate in self.noise_rates]
        else:
            factors = zip(*[_factors(e_value, self.noise_rates) for e_value in counts], strict=True)
            times = list(counts.values())
            terms = [list(map(mul, times, of_rate)) for of_rate in factors] if times else [[] for _ in self._sums]
        self._sums = [fsum([total, *of_rate]) for total, of_rate in zip(self._sums, terms, strict=True)]

    def factors(self, e_value: float) -> tuple[float, ...]:
        """log2 of what a step with this e-value multiplies in, for each noise rate."""
        return _factors(e_value, self.noise_rates)

    def multiply(self, factors: Sequence[float]) -> None:
        """Take in one step whose factors are known: where many payloads are followed, they share them."""
        self.steps += 1
        self._sums = [total + factor for total, factor in zip(self._sums, factors, strict=True)]

    @property
    def bits(self) -> float:
        """log2 of the mixture over noise rates: a bound of 2^-bits on a false claim."""
        return self._mixed(self._sums)

    def least_steps(self, counts: Mapping[float, int], needed_bits: float) -> int:
        """How many of these steps carry the payload, at the least (spec, section 9.2).

        `counts` are the steps taken in, by e-value. However many of the largest are taken away as the payload's own,
        what is left must stay below `needed_bits`, for it is then all of others' making: so many are its own.
        """
        left = self._sums
        if self._mixed(left) < needed_bits:
            return 0
        steps = 0
        # Steps with e-values of at most 1 lower the evidence, whosever they are: nothing is gained by disowning them.
        for e_value, count in sorted([item for item in counts.items() if item[0] > 1], reverse=True):
            factors = self.factors(e_value)
            if self._mixed(_less(left, factors, count)) < needed_bits:
                # Among steps that say the same, halve the range: fewer leave more.
                low, high = 1, count
                while low < high:
                    middle = (low + high) // 2
                    enough = self._mixed(_less(left, factors, middle)) < needed_bits
                    low, high = (low, middle) if enough else (middle + 1, high)
                return steps + low
            left = _less(left, factors, count)
            steps += count
        return steps

    def _mixed(self, sums: Sequence[float]) -> float:
        weighted = [total + weight for total, weight in zip(sums, self._log_prior, strict=True)]
        top = max(weighted)
        if top == IMPOSSIBLE:
            return IMPOSSIBLE
        return top + log2(sum([2.0 ** (term - top) for term in weighted]))

    @property
    def at_most_bits(self) -> float:
        """What `bits` does not exceed: the evidence under the rate that suits the steps best. Cheaper to have."""
        return max(self._sums)

    @property
    def likely_noise(self) -> float:
        """The rate of the grid that explains the steps best; of equals, the lowest."""
        top = max(self._sums)
        return min([rate for total, rate in zip(self._sums, self.noise_rates, strict=True) if total == top])

    def merge(self, other: "Evidence") -> None:
        """Add what another part of the log has shown for the same claim."""
        if (other.noise_rates, other.prior) != (self.noise_rates, self.prior):
            raise ValueError("evidence under other noise rates cannot be merged")
        self.steps += other.steps
        self._sums = [mine + theirs for mine, theirs in zip(self._sums, other._sums, strict=True)]

    def to_bytes(self) -> bytes:
        """Magic, number of steps, number of rates; then rate, prior and sum of each as doubles. Big-endian."""
        head = self.steps.to_bytes(8, "big") + len(self.noise_rates).to_bytes(2, "big")
        numbers = [n for triple in zip(self.noise_rates, self.prior, self._sums, strict=True) for n in triple]
        return _MAGIC + head + b"".join([_DOUBLE.pack(number) for number in numbers])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        start = len(_MAGIC) + 10
        if len(data) < start or not data.startswith(_MAGIC):
            raise StateError("not evidence of version 1")
        count = int.from_bytes(data[start - 2 : start], "big")
        if count == 0 or len(data) != start + 24 * count:
            raise StateError("evidence is cut short or padded")
        numbers = [_DOUBLE.unpack_from(data, start + 8 * i)[0] for i in range(3 * count)]
        rates, prior, sums = numbers[::3], numbers[1::3], numbers[2::3]
        # Evidence under a prior that weighs more than 1 in all would bound nothing, nor would a sum that is no number.
        if any(not 0 <= rate < 1 for rate in rates) or any(not weight >= 0 for weight in prior):
            raise StateError("evidence with noise rates or a prior that are none")
        if not 0 < fsum(prior) <= 1 + _PRIOR_SLACK or any(not total < inf for total in sums):
            raise StateError("evidence with a prior or a sum that bounds nothing")
        evidence = cls(rates, prior)
        evidence.steps = int.from_bytes(data[len(_MAGIC) : start - 2], "big")
        evidence._sums = sums
        return evidence


def _less(sums: Sequence[float], factors: Sequence[float], times: int) -> list[float]:
    return [total - times * factor for total, factor in zip(sums, factors, strict=True)]
