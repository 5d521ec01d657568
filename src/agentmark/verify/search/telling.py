"""The steps that say most. A search that cannot look at a whole log looks at these: they say nearly all there is."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import fsum

from agentmark.verify.readings import Readings, Shape, shape_of

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
    taken: Counter[Shape] = Counter()
    cost = bits = 0.0
    count = 0
    for reading in chosen:
        shape = shape_of(reading)
        if cost + prices[shape] > room and count >= at_least:
            break
        cost += prices[shape]
        bits += reading.evidence_bits
        taken[shape] += 1
        count += 1
    left_out = fsum([prices[shape] * (all_of - taken[shape]) for shape, all_of in readings.shapes.items()])
    return Telling(chosen if count == len(chosen) else readings.take(places[:count]), cost, bits, left_out)
