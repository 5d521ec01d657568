"""The steps that say most. A search that cannot look at a whole log looks at these: they say nearly all there is."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from math import fsum

from agentmark.verify.readings import Readings, Shape

# Steps that say so many times the bits of the payload find it as surely as all steps do.
ENOUGH_TIMES = 10


@dataclass(frozen=True, slots=True)
class Telling:
    """The steps that were taken, what looking at them costs, what they say, and what the others would have cost."""

    readings: Readings
    cost: float
    bits: float
    left_out: float


def most_telling(readings: Readings, room: float, cost_of: Callable[[Shape], float], *, at_least: int = 0) -> Telling:
    """The steps that say most, until the room (in operations) is full; `at_least` so many whatever they cost.

    What looking at a step costs depends on its shape alone.
    """
    prices = {shape: cost_of(shape) for shape in readings.shapes}
    # No more than these fit, whichever they are.
    most = at_least + 1 + int(min(room / min(prices.values(), default=1.0), len(readings)))
    places = readings.by_evidence(most)
    chosen = readings.take(places)
    costs = list(accumulate(chosen.by_shape(prices)))
    count = max(min(at_least, len(costs)), bisect_right(costs, room))
    if count < len(chosen):
        chosen = readings.take(places[:count])
    left_out = fsum(
        [prices[shape] * (all_of - chosen.shapes.get(shape, 0)) for shape, all_of in readings.shapes.items()]
    )
    return Telling(chosen, costs[count - 1] if count else 0.0, fsum(chosen.bits()), left_out)
