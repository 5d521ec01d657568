"""Every identity of a registry against every step, on packed integers.

Bit i of a plane belongs to identity i, so one operation on Python's long integers serves all identities at once. Rows
of the steps are summed with the method of four Russians: four payload bits at a time from a table of sixteen planes.
Where NumPy is there, `identity_arrays` comes to the same scores, sooner. What is prepared from the payloads is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from importlib.util import find_spec
from math import ceil, log2
from typing import Any

from agentmark.core.costs import E_VALUE, PLANE, PLANE_BIT
from agentmark.core.rlnc import row_parities
from agentmark.core.symbols import Reading, SymbolSet
from agentmark.verify.readings import Readings, Shape, as_readings
from agentmark.verify.search.identity_arrays import IdentityArrays, largest
from agentmark.verify.search.telling import ENOUGH_TIMES, Telling, telling_steps
from agentmark.verify.work import Work

# Scores are kept in whole sixteenths of a bit; they only rank the identities, the best are then judged exactly.
SCORE_SCALE = 16
GROUP_BITS = 4
# Where a score is compared with a level, and not with other scores, it has to be finer.
FINE_SCALE = 256
# No more than this share of the work goes into the scan, but always so many steps: how many names a registry has is not
# in the hands of whoever made the log.
SCAN_SHARE = 0.5
FEWEST_STEPS = 32
# So many of the best, for each noise rate, are asked of more steps than all others can be.
SHORT_LIST = 512
FEWEST_OF_SHORT_LIST = 256
# Up to so many names are asked one by one: planes pay for those that have many.
FEW_NAMES = 32


# For each bit of a byte: what turns bytes into that bit's digit.
_BIT_DIGITS = [bytes([48 + (byte >> bit & 1) for byte in range(256)]) for bit in range(8)]


@dataclass(frozen=True, slots=True)
class _Columns:
    """The payloads of all identities, sliced by bit and prepared in groups."""

    tables: tuple[tuple[int, ...], ...]
    everyone: int

    @classmethod
    def of(cls, payloads: Sequence[int], payload_len: int) -> "_Columns":
        planes = _bit_planes(payloads, payload_len)
        tables = []
        for start in range(0, payload_len, GROUP_BITS):
            sums = [0]
            for plane in planes[start : start + GROUP_BITS]:
                sums += [total ^ plane for total in sums]
            tables.append(tuple(sums))
        return cls(tuple(tables), (1 << len(payloads)) - 1)

    def parity_plane(self, row: int) -> int:
        """parity(row & payload) of every identity."""
        total = 0
        for table in self.tables:
            total ^= table[row & (1 << GROUP_BITS) - 1]
            row >>= GROUP_BITS
        return total


def scan(
    payloads: Sequence[int],
    readings: Readings | Sequence[Reading],
    *,
    payload_len: int,
    noise: Sequence[float],
    work: Work,
    count: int = 2,
) -> list[int]:
    """`best_identities` on as many steps as the work allows; among many names, a short list is asked of more."""
    asked = _asked(payloads, readings, payload_len=payload_len, noise=noise, work=work)
    best = best_identities(asked.payloads, asked.readings, payload_len=payload_len, noise=noise, count=count)
    return [asked.places[i] for i in best]


def scan_above(
    payloads: Sequence[int],
    readings: Readings | Sequence[Reading],
    *,
    payload_len: int,
    noise: Sequence[float],
    level: float,
    most: int,
    work: Work,
) -> list[int]:
    """Indices of all identities whose evidence reaches the level, in bits, under one of the noise rates.

    For each rate the `most` best at most, on as many steps as the work allows; among many names, a short list is
    asked of more.
    """
    asked = _asked(payloads, readings, payload_len=payload_len, noise=noise, work=work)
    passing = _best_above(asked.payloads, asked.readings, payload_len=payload_len, noise=noise, level=level, most=most)
    return [asked.places[i] for i in passing]


def _best_above(
    payloads: Sequence[int],
    told: Readings,
    *,
    payload_len: int,
    noise: Sequence[float],
    level: float,
    most: int,
) -> list[int]:
    found: dict[int, None] = {}
    if _weighs_every_symbol(told):
        for rate in noise:
            scores = _scores_by_table(payloads, list(told), payload_len, rate)
            best = nlargest(most, range(len(payloads)), key=scores.__getitem__)
            found |= dict.fromkeys([i for i in best if scores[i] >= level])
        return list(found)
    # Scores count from what a step says against those who do not agree.
    levels = [ceil(FINE_SCALE * (level - len(told) * log2(rate))) for rate in noise]
    if len(payloads) <= FEW_NAMES:
        for few, least in zip(_asked_one_by_one(payloads, told, noise, FINE_SCALE), levels, strict=True):
            found |= dict.fromkeys([i for i in _best_of(few, most) if few[i] >= least])
        return list(found)
    hard = _hard(told)
    if _by_arrays(payloads):
        for scores, least in zip(
            _kept_arrays(payloads, payload_len).scores(hard, _gains(hard, noise, FINE_SCALE)), levels, strict=True
        ):
            found |= dict.fromkeys([i for i in largest(scores, most) if scores[i] >= least])
        return list(found)
    columns = _kept_columns(payloads, payload_len)
    for counter, least in zip(_counted(columns, hard, noise, FINE_SCALE), levels, strict=True):
        found |= dict.fromkeys(_largest(counter, _at_least(counter, columns.everyone, least), most))
    return list(found)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who is asked of which steps, and the places that they have among all names."""

    payloads: Sequence[int]
    places: Sequence[int]
    readings: Readings


def _asked(
    payloads: Sequence[int],
    readings: Readings | Sequence[Reading],
    *,
    payload_len: int,
    noise: Sequence[float],
    work: Work,
) -> _Asked:
    """As many steps as the work allows. If these are not all and names are many, the best are asked of more."""
    readings = as_readings(readings)
    rates = len(noise)
    kept = SHORT_LIST if len(payloads) > SHORT_LIST * rates else 1
    told = _told(len(payloads), readings, payload_len, rates, work, at_least=FEWEST_STEPS, kept=kept)
    if not told.left_out or kept == 1:
        return _Asked(payloads, range(len(payloads)), told.readings)
    best = best_identities(payloads, told.readings, payload_len=payload_len, noise=noise, count=kept)
    places = sorted(set(best))
    told = _told(len(places), readings, payload_len, rates, work, at_least=FEWEST_OF_SHORT_LIST)
    return _Asked([payloads[i] for i in places], places, told.readings)


def _told(
    names: int, readings: Readings, payload_len: int, rates: int, work: Work, *, at_least: int, kept: int = 1
) -> Telling:
    """As many steps as the work allows, paid for: enough to tell who is among the `kept` best, or refused."""
    has_soft = _weighs_every_symbol(readings)

    def cost_of(shape: Shape) -> float:
        if has_soft:
            return rates * _table_cost(names, payload_len)
        return _planes_cost(shape, names, payload_len, rates)

    work.spend(payload_len * names * 0.004)
    told = telling_steps(readings, min(SCAN_SHARE * work.limit, work.left), cost_of, at_least=at_least)
    work.spend(told.cost)
    if told.left_out and told.bits < ENOUGH_TIMES * log2(2 * names / kept):
        work.refuse(told.left_out)
    return told


def _weighs_every_symbol(readings: Readings) -> bool:
    """Whether there is a step, read from a part of its list, that does."""
    return any(not symbols for _, symbols in readings.shapes)


def _hard(readings: Readings) -> list[SymbolSet]:
    return [reading for reading in readings if isinstance(reading, SymbolSet)]


def _planes_cost(shape: Shape, names: int, payload_len: int, rates: int) -> float:
    """Sums of rows, the tree of the step's symbols, and a counter for each rate."""
    width, symbols = shape
    if names <= FEW_NAMES:
        return E_VALUE * names + 60 * rates * PLANE
    leaves = min(1 << width, 256) if symbols > 1 else width
    operations = width * (payload_len / GROUP_BITS) + 3 * leaves + 60 * rates
    return operations * (PLANE + PLANE_BIT * names)


def _table_cost(names: int, payload_len: int) -> float:
    width = -(-payload_len // 8)
    return 330 * width + names * ((0.01 + 0.004 * width) if find_spec("numpy") else (0.1 + 0.07 * width))


def best_identities(
    payloads: Sequence[int],
    readings: Readings | Sequence[Reading],
    *,
    payload_len: int,
    noise: Sequence[float],
    count: int = 2,
) -> list[int]:
    """Indices of the identities with the highest product of e-values, best first, for each noise rate in turn."""
    readings = as_readings(readings)
    if _weighs_every_symbol(readings):
        return [i for rate in noise for i in _best_by_table(payloads, list(readings), payload_len, rate, count)]
    if len(payloads) <= FEW_NAMES:
        asked = _asked_one_by_one(payloads, readings, noise, SCORE_SCALE)
        return [i for scores in asked for i in _best_of(scores, count)]
    hard = _hard(readings)
    if _by_arrays(payloads):
        scored = _kept_arrays(payloads, payload_len).scores(hard, _gains(hard, noise, SCORE_SCALE))
        return [i for scores in scored for i in largest(scores, count)]
    columns = _kept_columns(payloads, payload_len)
    counters = _counted(columns, hard, noise, SCORE_SCALE)
    return [i for counter in counters for i in _largest(counter, columns.everyone, count)]


def _asked_one_by_one(
    payloads: Sequence[int], readings: Readings, noise: Sequence[float], scale: int
) -> list[list[int]]:
    """For each noise rate what the steps say for every identity, in fractions of a bit."""
    gains = [
        {(rows, symbols): _gain(symbols / (1 << rows), rate, scale) for rows, symbols in readings.shapes}
        for rate in noise
    ]
    agreeing = [readings.agreeing(payload) for payload in payloads]
    return [[sum([gain[shape] * count for shape, count in of.items()]) for of in agreeing] for gain in gains]


def _best_of(scores: Sequence[int], count: int) -> list[int]:
    """The places of the largest scores, largest first; of equals, the lowest place."""
    return nlargest(count, range(len(scores)), key=scores.__getitem__)


def _gains(readings: Sequence[SymbolSet], noise: Sequence[float], scale: int) -> list[list[int]]:
    """For each noise rate what agreeing with a step is worth beside not agreeing, in fractions of a bit."""
    shares = [reading.share for reading in readings]
    return [[_gain(share, rate, scale) for share in shares] for rate in noise]


@lru_cache(maxsize=8192)
def _gain(share: float, rate: float, scale: int) -> int:
    return round(scale * (log2((1 - rate) / share + rate) - log2(rate)))


def _counted(columns: _Columns, readings: Sequence[SymbolSet], noise: Sequence[float], scale: int) -> list[list[int]]:
    """For each noise rate what the steps say for every identity, in fractions of a bit: counters, sliced by bit."""
    counters: list[list[int]] = [[] for _ in noise]
    for reading, gains in zip(readings, zip(*_gains(readings, noise, scale), strict=True), strict=True):
        # Who agrees is the same for every rate, and takes most of the time.
        agreeing = _agreeing(columns, reading)
        for gain, counter in zip(gains, counters, strict=True):
            _add(counter, gain, agreeing)
    return counters


# What was prepared last, by whom it was prepared for: a registry is asked again and again, and hands on one object.
_KEPT: dict[str, tuple[Sequence[int], int, Any]] = {}


def _kept(kind: str, payloads: Sequence[int], payload_len: int, make: Callable[[Sequence[int], int], Any]) -> Any:
    kept = _KEPT.get(kind)
    if kept is not None and kept[0] is payloads and kept[1] == payload_len:
        return kept[2]
    made = make(payloads, payload_len)
    # A list may change before it is asked again.
    if isinstance(payloads, tuple):
        _KEPT[kind] = payloads, payload_len, made
    return made


def _kept_columns(payloads: Sequence[int], payload_len: int) -> _Columns:
    columns: _Columns = _kept("planes", payloads, payload_len, _Columns.of)
    return columns


def _kept_arrays(payloads: Sequence[int], payload_len: int) -> IdentityArrays:
    arrays: IdentityArrays = _kept("arrays", payloads, payload_len, IdentityArrays)
    return arrays


def _by_arrays(payloads: Sequence[int]) -> bool:
    return len(payloads) > 0 and find_spec("numpy") is not None


def _best_by_table(
    payloads: Sequence[int], readings: Sequence[Reading], payload_len: int, noise: float, count: int
) -> list[int]:
    scores = _scores_by_table(payloads, readings, payload_len, noise)
    return nlargest(count, range(len(payloads)), key=scores.__getitem__)


def _scores_by_table(payloads: Sequence[int], readings: Sequence[Reading], payload_len: int, noise: float) -> Any:
    """For readings that weigh every symbol differently: a table lookup for each step and identity.

    With NumPy a million identities take about ten milliseconds a step; without it, ten thousand do.
    """
    worth = [[log2((1 - noise) * value + noise) for value in reading.e_values()] for reading in readings]
    if _by_arrays(payloads):
        return _kept_arrays(payloads, payload_len).sums(readings, worth)
    width = -(-payload_len // 8)
    data = b"".join([payload.to_bytes(width, "big") for payload in payloads])
    columns = [data[i::width] for i in range(width)]
    scores = [0.0] * len(payloads)
    for reading, values in zip(readings, worth, strict=True):
        tables = [_byte_table(reading, 8 * (width - 1 - i)) for i in range(width)]
        symbols = [reading.pad] * len(payloads)
        for column, table in zip(columns, tables, strict=True):
            symbols = [symbol ^ table[byte] for symbol, byte in zip(symbols, column, strict=True)]
        scores = [score + values[symbol] for score, symbol in zip(scores, symbols, strict=True)]
    return scores


def _byte_table(reading: Reading, shift: int) -> list[int]:
    """What each value of one payload byte adds to the symbol."""
    return [row_parities(reading.rows, byte << shift) for byte in range(256)]


def _bit_planes(payloads: Sequence[int], payload_len: int) -> list[int]:
    """Plane j holds bit j of every payload, counted from the least significant."""
    width = -(-payload_len // 8)
    data = b"".join([payload.to_bytes(width, "big") for payload in payloads])
    planes = []
    for j in range(payload_len):
        column = data[width - 1 - j // 8 :: width]
        digits = column.translate(_BIT_DIGITS[j % 8])
        # The first payload is the lowest bit, hence the last digit.
        planes.append(int(digits[::-1], 2) if digits else 0)
    return planes


def _agreeing(columns: _Columns, reading: SymbolSet) -> int:
    """The identities whose symbol at this step is in the step's set."""
    planes = []
    width = len(reading.rows)
    for j, row in enumerate(reading.rows):
        plane = columns.parity_plane(row)
        planes.append(plane ^ columns.everyone if reading.pad >> (width - 1 - j) & 1 else plane)

    def members(symbols: int, depth: int) -> int:
        """Split the set by its next bit, most significant first; halves that are empty, full or equal cost nothing."""
        size = 1 << (width - depth)
        if symbols == 0:
            return 0
        if symbols == (1 << size) - 1:
            return columns.everyone
        low, high = symbols & (1 << size // 2) - 1, symbols >> size // 2
        if low == high:
            return members(low, depth + 1)
        without, with_bit = members(low, depth + 1), members(high, depth + 1)
        return without ^ ((without ^ with_bit) & planes[depth])

    return members(reading.symbols, 0)


def _add(counters: list[int], amount: int, chosen: int) -> None:
    """Add `amount` to the counter of every chosen identity; counters are sliced by bit, lowest first."""
    carry = 0
    place = 0
    while amount >> place or carry:
        if place == len(counters):
            counters.append(0)
        addend = chosen if amount >> place & 1 else 0
        old = counters[place]
        counters[place] = old ^ addend ^ carry
        carry = (old & addend) | (carry & (old ^ addend))
        place += 1


def _at_least(counters: list[int], everyone: int, level: int) -> int:
    """Those whose counter is at least this: where the highest place that differs from the level's is a one."""
    if level <= 0:
        return everyone
    if level >> len(counters):
        return 0
    above, equal = 0, everyone
    for place in reversed(range(len(counters))):
        if level >> place & 1:
            equal &= counters[place]
        else:
            above |= equal & counters[place]
            equal &= ~counters[place]
    return above | equal


def _largest(counters: list[int], everyone: int, count: int) -> list[int]:
    found: list[int] = []
    left = everyone
    while left and len(found) < count:
        top = left
        for plane in reversed(counters):
            top = (top & plane) or top
        lowest = top & -top
        found.append(lowest.bit_length() - 1)
        left ^= lowest
    return found
