"""Exact maximum likelihood over all 2^L payloads by one fast Walsh-Hadamard transform.

The score of a payload is a sum over steps of a function of the step's symbol, which is linear in the payload. The Walsh
spectrum of such a function has at most 2^k terms, at sums of the step's rows: scatter them, transform once, and every
payload's score stands in the table.
"""

from collections.abc import Sequence
from heapq import nlargest
from importlib.util import find_spec
from math import log2
from typing import Any

from agentmark.core.symbols import Reading

# Without NumPy a transform of 2^18 takes about a second; with it, 2^24 about four.
PLAIN_LIMIT = 18
NUMPY_LIMIT = 24


def transform_limit() -> int:
    """The longest payload, in bits, that can be decoded this way here."""
    return NUMPY_LIMIT if find_spec("numpy") else PLAIN_LIMIT


def likeliest_payloads(readings: Sequence[Reading], payload_len: int, *, noise: float, count: int = 2) -> list[int]:
    """The payloads with the highest product of e-values at this noise rate, best first."""
    if not 0 < noise < 1:
        raise ValueError(f"noise {noise} is not between 0 and 1")
    if payload_len > transform_limit():
        raise ValueError(f"payload_len {payload_len} is beyond the transform's {transform_limit()} bits")
    if payload_len > PLAIN_LIMIT:
        return _likeliest_with_numpy(readings, payload_len, noise, count)
    table = [0.0] * (1 << payload_len)
    for reading in readings:
        for place, value in _spectrum(reading, noise):
            table[place] += value
    _transform(table)
    return nlargest(count, range(len(table)), key=table.__getitem__)


def _spectrum(reading: Reading, noise: float) -> list[tuple[int, float]]:
    """Where each Walsh coefficient of the step's score goes: subset u of the rows stands at the sum of those rows."""
    values = [log2((1 - noise) * value + noise) for value in reading.e_values()]
    # The pad turns the symbol into the bare product A_t m.
    scores = [values[bare ^ reading.pad] for bare in range(len(values))]
    _transform(scores)
    places = [0]
    for row in reversed(reading.rows):
        places += [place ^ row for place in places]
    scale = 1 / len(scores)
    return [(place, scale * score) for place, score in zip(places, scores, strict=True) if score]


def _transform(table: list[float]) -> None:
    """In place, unnormalised."""
    half = 1
    while half < len(table):
        for start in range(0, len(table), 2 * half):
            low = table[start : start + half]
            high = table[start + half : start + 2 * half]
            table[start : start + half] = [a + b for a, b in zip(low, high, strict=True)]
            table[start + half : start + 2 * half] = [a - b for a, b in zip(low, high, strict=True)]
        half *= 2


def _likeliest_with_numpy(readings: Sequence[Reading], payload_len: int, noise: float, count: int) -> list[int]:
    import numpy

    table: Any = numpy.zeros(1 << payload_len, dtype=numpy.float32)
    for reading in readings:
        for place, value in _spectrum(reading, noise):
            table[place] += value
    half = 1
    while half < len(table):
        pairs = table.reshape(-1, 2, half)
        low, high = pairs[:, 0, :], pairs[:, 1, :]
        difference = low - high
        low += high
        high[...] = difference
        half *= 2
    best = numpy.argpartition(table, len(table) - count)[-count:]
    return [int(i) for i in best[numpy.argsort(-table[best])]]
