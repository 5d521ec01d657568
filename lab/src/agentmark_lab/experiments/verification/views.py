"""What a verifier may be left with of a step: the list rounded, cut short, lost, or elicited again."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from agentmark.core.distribution import TOTAL_WEIGHT, BehaviorDistribution
from agentmark.record import StepRecord
from agentmark_lab.kit.worlds import distribution_of, perturbed

View = Callable[[StepRecord, Random], StepRecord]


def _exact(record: StepRecord, rng: Random) -> StepRecord:
    return record


def _rounded(decimals: int) -> View:
    def view(record: StepRecord, rng: Random) -> StepRecord:
        weights = distribution_of(record).as_weights()
        masses = {name: round(weight / TOTAL_WEIGHT, decimals) for name, weight in weights.items()}
        return replace(record, distribution=BehaviorDistribution.quantise(masses))

    return view


def _top(count: int) -> View:
    def view(record: StepRecord, rng: Random) -> StepRecord:
        distribution = distribution_of(record)
        kept = zip(distribution.behaviors[:count], distribution.weights[:count], strict=True)
        return record.with_partial_weights(dict(kept))

    return view


def _chosen(record: StepRecord, rng: Random) -> StepRecord:
    return record.with_partial_weights({record.behavior: distribution_of(record).weight(record.behavior)})


def _action(record: StepRecord, rng: Random) -> StepRecord:
    return record.with_partial_weights({})


def _again(sigma: float) -> View:
    def view(record: StepRecord, rng: Random) -> StepRecord:
        return perturbed(record, rng, sigma)

    return view


VIEWS: dict[str, View] = {
    "exact": _exact,
    "rounded to 4 decimals": _rounded(4),
    "rounded to 3 decimals": _rounded(3),
    "rounded to 2 decimals": _rounded(2),
    "elicited again, sigma 0.1": _again(0.1),
    "elicited again, sigma 0.45": _again(0.45),
    "top 5 weights": _top(5),
    "top 3 weights": _top(3),
    "chosen weight only": _chosen,
    "action only": _action,
}
PARTIAL = ("top 5 weights", "top 3 weights", "chosen weight only", "action only")
