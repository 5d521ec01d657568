"""The steps that say most. A search that cannot look at a whole log looks at these: they say nearly all there is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentmark.core.symbols import Reading

# Steps that say so many times the bits of the payload find it as surely as all steps do.
ENOUGH_TIMES = 10


@dataclass(frozen=True, slots=True)
class Telling:
    """The steps that were taken, what looking at them costs, what they say, and what the others would have cost."""

    readings: tuple[Reading, ...]
    cost: float
    bits: float
    left_out: float


def most_telling(
    readings: Iterable[Reading], room: float, cost_of: Callable[[Reading], float], *, at_least: int = 0
) -> Telling:
    """The steps that say most, until the room (in operations) is full; `at_least` so many whatever they cost."""
    taken: list[Reading] = []
    cost = bits = left_out = 0.0
    for said, reading in _ordered(readings):
        price = cost_of(reading)
        if left_out or (cost + price > room and len(taken) >= at_least):
            left_out += price
            continue
        cost += price
        bits += said
        taken.append(reading)
    return Telling(tuple(taken), cost, bits, left_out)


def _ordered(readings: Iterable[Reading]) -> list[tuple[float, Reading]]:
    return sorted([(reading.evidence_bits, reading) for reading in readings], key=lambda pair: -pair[0])
