"""The steps that a search looks at if it cannot look at a whole log: they say nearly all there is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


def telling_steps(readings: Readings, room: float, cost_of: Callable[[Shape], float], *, at_least: int = 0) -> Telling:
    """As many steps as there is room for (in operations), and `at_least` so many whatever they cost; all, if they fit.

    Half of them are those that say most, and half are spread evenly over the others: what somebody else chose is
    mostly what our agent hardly ever would, so that among the steps that say most of all may be few of ours.
    What looking at a step costs depends on its shape alone.
    """
    prices = {shape: cost_of(shape) for shape in readings.shapes}
    all_cost = fsum([prices[shape] * count for shape, count in readings.shapes.items()])
    fewest = min(at_least, len(readings))
    count, cost, chosen = len(readings), all_cost, readings
    ranking = readings.by_evidence(len(readings)) if cost > room else ()
    while cost > room and count > fewest:
        count = max(fewest, min(count - 1, int(count * room / cost)))
        chosen = readings.take(_half_spread(ranking, count))
        cost = fsum(chosen.by_shape(prices))
    return Telling(chosen, cost, fsum(chosen.bits()), all_cost - cost if count < len(readings) else 0.0)


def _half_spread(ranking: Sequence[int], count: int) -> list[int]:
    """So many of a ranking: half of them the first ones, and half at even distances among the others."""
    spread = count // 2
    first, others = ranking[: count - spread], ranking[count - spread :]
    return [*first, *[others[i * len(others) // spread] for i in range(spread)]]
