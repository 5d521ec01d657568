"""Logs spliced from several agents: which stretch of steps carries which identity, or none of ours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2

from agentmark.core.evidence import Evidence
from agentmark.core.symbols import Reading

# Within a stretch nearly every step is right; this much room is left for those that are not.
STRETCH_NOISE = 0.05
# Stretches shorter than this are not looked for: they could not name an identity.
SHORTEST_WINDOW = 16
# What one step of the division costs for each identity, in operations.
SCORE_COST = 3.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps `first` to `last` (positions among the steps given, both included), and the payload that explains them."""

    first: int
    last: int
    payload: int | None
    evidence_bits: float = 0.0
    bits_paid: float = 0.0


def windows(count: int) -> list[tuple[int, int]]:
    """Overlapping ranges of halving length, in which an identity may dominate that is a minority of the whole."""
    ranges = [(0, count)]
    length = count // 2
    while length >= SHORTEST_WINDOW:
        starts = range(0, count - length + 1, max(1, length // 2))
        ranges += [(start, start + length) for start in starts]
        length //= 2
    return ranges


def segment(
    readings: Sequence[Reading | None],
    payloads: Sequence[int],
    *,
    bits_paid: Callable[[int], float],
) -> list[Stretch]:
    """The division into stretches with the most evidence, each identity and each border paid for.

    Dynamic programming over steps. A reading of None (an erasure) belongs to whatever surrounds it. Ranges are paid
    for as well: there are count * (count + 1) / 2 of them.
    """
    count = len(readings)
    if count == 0:
        return []
    border = log2(count + 1)
    states: list[int | None] = [None, *payloads]
    prices = [border, *[border + bits_paid(payload) for payload in payloads]]
    best = [-price for price in prices]
    came_from: list[list[int]] = []
    for reading in readings:
        leader = max(range(len(states)), key=best.__getitem__)
        arrivals = []
        scores = []
        for state, payload in enumerate(states):
            enter = best[leader] - prices[state]
            stays = best[state] >= enter
            arrivals.append(state if stays else leader)
            scores.append((best[state] if stays else enter) + _score(reading, payload))
        came_from.append(arrivals)
        best = scores
    path = _trace(came_from, max(range(len(states)), key=best.__getitem__))
    return _stretches([states[state] for state in path], readings, bits_paid, log2(count * (count + 1) / 2))


def _score(reading: Reading | None, payload: int | None) -> float:
    if reading is None or payload is None:
        return 0.0
    return log2((1 - STRETCH_NOISE) * reading.e_value(payload) + STRETCH_NOISE)


def _trace(came_from: list[list[int]], last: int) -> list[int]:
    """`came_from[t][s]` is the state before step t of a path that is in state s at step t."""
    path = [last]
    for arrivals in reversed(came_from[1:]):
        path.append(arrivals[path[-1]])
    return path[::-1]


def _stretches(
    labels: list[int | None],
    readings: Sequence[Reading | None],
    bits_paid: Callable[[int], float],
    range_bits: float,
) -> list[Stretch]:
    stretches = []
    first = 0
    for i in range(1, len(labels) + 1):
        if i < len(labels) and labels[i] == labels[first]:
            continue
        payload = labels[first]
        if payload is None:
            stretches.append(Stretch(first, i - 1, None))
        else:
            evidence = Evidence()
            for reading in readings[first:i]:
                if reading is not None:
                    evidence.update(reading.e_value(payload))
            stretches.append(Stretch(first, i - 1, payload, evidence.bits, bits_paid(payload) + range_bits))
        first = i
    return stretches
