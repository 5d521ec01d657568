"""Exact maximum likelihood over all 2^L payloads by one fast Walsh-Hadamard transform.

The score of a payload is a sum over steps of a function of the step's symbol, which is linear in the payload. The Walsh
spectrum of such a function has at most 2^k terms, at sums of the step's rows: scatter them, transform once, and every
payload's score stands in the table.
"""

from collections.abc import Iterator, Sequence
from heapq import nlargest
from importlib.util import find_spec
from math import log2
from typing import Any

from agentmark.core.costs import SPECTRUM, SPECTRUM_TERM, transform_cost
from agentmark.core.symbols import SYMBOL_BITS, Reading, SymbolSet
from agentmark.verify.readings import Readings, Shape, as_readings
from agentmark.verify.search.telling import ENOUGH_TIMES, telling_steps
from agentmark.verify.work import Work

# Without NumPy a transform of 2^18 takes about half a second; with it, 2^24 about one.
PLAIN_LIMIT = 18
NUMPY_LIMIT = 24
# No more than this share of the work goes into the table, so that something is left for transforming it.
TABLE_SHARE = 0.4


def transform_limit() -> int:
    """The longest payload, in bits, that can be decoded this way here."""
    return NUMPY_LIMIT if find_spec("numpy") else PLAIN_LIMIT


def one_transform(payload_len: int) -> float:
    """What transforming the table of one rate costs."""
    return transform_cost(payload_len, with_numpy=payload_len > PLAIN_LIMIT)


def likeliest_by_rate(
    readings: Readings | Sequence[Reading], payload_len: int, *, noise: Sequence[float], work: Work, count: int = 2
) -> Iterator[list[int]]:
    """For one noise rate after the other the likeliest payloads, as far as the work lasts.

    Of a long log, as many steps come into the table as there is room for.
    """
    if one_transform(payload_len) > work.left:
        work.refuse(one_transform(payload_len))
        return
    room = min(TABLE_SHARE * work.limit, work.left - one_transform(payload_len))
    told = telling_steps(as_readings(readings), room, lambda shape: _reading_cost(shape, len(noise)))
    work.spend(told.cost)
    if told.left_out and told.bits < ENOUGH_TIMES * payload_len:
        work.refuse(told.left_out)
    spectra = [_Spectrum(reading) for reading in told.readings]
    for rate in noise:
        if not work.take(one_transform(payload_len)):
            return
        yield _likeliest(spectra, payload_len, rate, count)


def likeliest_payloads(readings: Sequence[Reading], payload_len: int, *, noise: float, count: int = 2) -> list[int]:
    """The payloads with the highest product of e-values at this noise rate, best first, whatever it costs."""
    if not 0 < noise < 1:
        raise ValueError(f"noise {noise} is not between 0 and 1")
    if payload_len > transform_limit():
        raise ValueError(f"payload_len {payload_len} is beyond the transform's {transform_limit()} bits")
    return _likeliest([_Spectrum(reading) for reading in readings], payload_len, noise, count)


def _reading_cost(shape: Shape, rates: int) -> float:
    rows, symbols = shape
    size = 1 << rows
    # Which symbols are possible is transformed once; what each is worth depends on the rate.
    transforms = 1 if symbols else rates
    return (SPECTRUM * transforms + SPECTRUM_TERM * (1 << SYMBOL_BITS) * rates) * size / (1 << SYMBOL_BITS)


class _Spectrum:
    """Where each Walsh coefficient of a step's score goes: subset u of the rows stands at the sum of those rows."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.places = [0]
        for row in reversed(reading.rows):
            self.places += [place ^ row for place in self.places]
        self._possible: list[float] | None = None
        if isinstance(reading, SymbolSet):
            possible = [0.0] * len(self.places)
            for symbol in reading.members():
                # The pad turns the symbol into the bare product A_t m.
                possible[symbol ^ reading.pad] = 1 / len(self.places)
            self._possible = _transformed(possible)

    def values(self, noise: float) -> list[float]:
        """The coefficients at this rate, in the order of the places."""
        reading = self._reading
        if self._possible is not None and isinstance(reading, SymbolSet):
            # Two levels, up to a constant that every payload has.
            gain = log2((1 - noise) / reading.share + noise) - log2(noise)
            return [gain * value for value in self._possible]
        scores = [log2((1 - noise) * value + noise) / len(self.places) for value in reading.e_values()]
        return _transformed([scores[bare ^ reading.pad] for bare in range(len(scores))])


def _likeliest(spectra: Sequence[_Spectrum], payload_len: int, noise: float, count: int) -> list[int]:
    if payload_len > PLAIN_LIMIT:
        return _likeliest_with_numpy(spectra, payload_len, noise, count)
    table = [0.0] * (1 << payload_len)
    for spectrum in spectra:
        for place, value in zip(spectrum.places, spectrum.values(noise), strict=True):
            table[place] += value
    table = _transformed(table)
    return nlargest(count, range(len(table)), key=table.__getitem__)


def _transformed(table: list[float]) -> list[float]:
    """The Walsh-Hadamard transform, unnormalised. Each round transforms the lowest bit of the index and makes it the
    highest, so that after all rounds the order is the same again."""
    for _ in range(len(table).bit_length() - 1):
        even, odd = table[::2], table[1::2]
        table = [a + b for a, b in zip(even, odd, strict=True)] + [a - b for a, b in zip(even, odd, strict=True)]
    return table


def _likeliest_with_numpy(spectra: Sequence[_Spectrum], payload_len: int, noise: float, count: int) -> list[int]:
    import numpy

    table: Any = numpy.zeros(1 << payload_len, dtype=numpy.float32)
    for spectrum in spectra:
        numpy.add.at(table, spectrum.places, numpy.array(spectrum.values(noise), dtype=numpy.float32))
    half = 1
    while half < len(table):
        pairs = table.reshape(-1, 2, half)
        low, high = pairs[:, 0, :], pairs[:, 1, :]
        difference = low - high
        low += high
        high[...] = difference
        half *= 2
    best = []
    for _ in range(count):
        best.append(int(table.argmax()))
        table[best[-1]] = -numpy.inf
    return best
