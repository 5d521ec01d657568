"""What it takes to name somebody when many logs are judged at once (spec, section 9.6).

One log in a million is named by chance at a threshold of 1e-6; among a million logs, one is expected to be. So the
number of questions enters into every answer, in one of two ways. Both hold whatever the logs have to do with each
other, copies of one log under many names included.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentmark.core.theory import SMALLEST_RATE, false_positive_rate
from agentmark.errors import SettingError
from agentmark.verify.defaults import DEFAULT_THRESHOLD


@dataclass(frozen=True, slots=True)
class Familywise:
    """One promise for all rows: that any of them is wrong is as unlikely as the threshold says."""

    threshold: float = DEFAULT_THRESHOLD

    def __post_init__(self) -> None:
        _check_rate("threshold", self.threshold)

    @property
    def explained(self) -> str:
        return (
            f"the chance that any of these names is wrong is at most {self.threshold:g}: every row has paid for the "
            "number of questions asked"
        )

    def as_dict(self) -> dict[str, Any]:
        """The promise as plain JSON data."""
        return {"kind": "familywise", "threshold": self.threshold, "explained": self.explained}

    def tries_paid(self, questions: int) -> int:
        """How many questions each answer pays for in its own bound."""
        return max(questions, 1)

    def strictest(self, questions: int) -> float:
        """The threshold that an answer passes whatever the other answers are."""
        return self.threshold

    def mildest(self, questions: int) -> float:
        """The threshold that no answer is accepted above, whatever the other answers are."""
        return self.threshold

    def settled(self, surpluses: Sequence[float], questions: int) -> float:
        """The threshold of these answers, each given as log2 of its e-value less the price of the name."""
        return self.threshold


@dataclass(frozen=True, slots=True)
class FalseDiscovery:
    """One promise for the list of names: on average, no more than this share of them is wrong.

    The e-BH procedure (Wang and Ramdas, "False discovery rate control with e-values", 2022): the more rows name
    somebody, the less each has to show.
    """

    rate: float

    def __post_init__(self) -> None:
        _check_rate("rate", self.rate)

    @property
    def explained(self) -> str:
        return (
            f"of the names in this list a share of {self.rate:g} is expected to be wrong, at most, on average over "
            "audits like this one; that one of them is wrong may be likely"
        )

    def as_dict(self) -> dict[str, Any]:
        """The promise as plain JSON data."""
        return {"kind": "false discovery rate", "rate": self.rate, "explained": self.explained}

    def tries_paid(self, questions: int) -> int:
        """The questions are paid for by the threshold, not in each bound."""
        return 1

    def strictest(self, questions: int) -> float:
        return _at_least_smallest(self.rate / max(questions, 1))

    def mildest(self, questions: int) -> float:
        return self.rate

    def settled(self, surpluses: Sequence[float], questions: int) -> float:
        """k* rate / questions, where k* is the largest k of which k e-values reach questions / (k rate)."""
        most = 1
        for count, surplus in enumerate(sorted(surpluses, reverse=True), start=1):
            if false_positive_rate(surplus) <= _at_least_smallest(count * self.rate / questions):
                most = count
        return _at_least_smallest(most * self.rate / max(questions, 1))


Correction = Familywise | FalseDiscovery


def _check_rate(name: str, rate: float) -> None:
    if not SMALLEST_RATE <= rate < 1:
        raise SettingError(name, f"{rate:g} is not a rate from {SMALLEST_RATE:g} to below 1")


def _at_least_smallest(rate: float) -> float:
    return max(rate, SMALLEST_RATE)
