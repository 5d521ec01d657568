"""Decoding payloads too long for a transform when some steps are wrong: guess a set of steps that are all right.

Each trial draws from the few hundred steps that say most, in a random order, until they determine the payload; if they
happen to be right, so is the payload. A payload is first compared on these steps alone, and only one that explains them
far better than chance is worth a look at the whole log. What a trial costs is known before it is begun.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt
from random import Random

from agentmark.core.costs import E_VALUE, GUESS, SHUFFLED_STEP, basis_cost, guess_bits, guess_cost, set_trial_cost
from agentmark.core.linear import LinearSystem
from agentmark.core.symbols import SYMBOL_BITS, SymbolSet
from agentmark.verify.readings import Readings, as_readings
from agentmark.verify.search.symbols import PACKED_CHECKS, GuessPlan
from agentmark.verify.work import Work

# Trials draw from so many steps; more would add steps that say less, and make each trial dearer.
TELLING_STEPS = 400
# With payloads so long that those do not determine them, from as many as have this many times its equations.
EQUATION_TIMES = 2
# A payload is compared on so many steps before the whole log is looked at.
SCREEN_STEPS = 128
# Standard errors by which it must be better there than chance. Trials compare millions of payloads.
SCREEN_LEVEL = 5.0
# More trials would find payloads that hardly any log is long enough to name.
TRIALS = 4096
# One trial of R may take at most this share of the work: several must fit.
TRIAL_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Likely:
    """A payload that is better than chance on the steps it was compared on, by so many standard errors."""

    payload: int
    level: float

    @property
    def stands_out(self) -> bool:
        return self.level >= SCREEN_LEVEL


def likely_payloads(
    readings: Readings | Sequence[SymbolSet], payload_len: int, *, rng: Random, work: Work
) -> Iterator[Likely]:
    """Payloads that stand out, as they are found; at the end the best of the others, if none did.

    Steps that weigh every symbol have no part in it.
    """
    readings = as_readings(readings)
    # A step that leaves every symbol says nothing.
    says = {shape: count for shape, count in readings.shapes.items() if 0 < shape[1] < 1 << shape[0]}
    best: Likely | None = None
    decoders = []
    if sum([rows * count for (rows, symbols), count in says.items() if symbols == 1]) > payload_len:
        most = max(TELLING_STEPS, EQUATION_TIMES * payload_len)
        decoders.append(_linear(_hard(readings, readings.by_evidence(most, single=True)), payload_len, rng, work))
    if any(symbols > 1 for _, symbols in says):
        soft = sum([count for (_, symbols), count in readings.shapes.items() if not symbols])
        telling = _hard(readings, readings.by_evidence(TELLING_STEPS + soft))
        decoders.append(_guessing(telling[:TELLING_STEPS], payload_len, rng, work))
    seen: set[int] = set()
    for decoder in decoders:
        for likely in decoder:
            if likely.stands_out and likely.payload not in seen:
                seen.add(likely.payload)
                yield likely
            elif best is None or likely.level > best.level:
                best = likely
    if best is not None and not seen:
        yield best


def _hard(readings: Readings, places: Sequence[int]) -> list[SymbolSet]:
    """The steps at these places that say something, but for those that weigh every symbol."""
    chosen = readings.take(places)
    return [reading for reading in chosen if isinstance(reading, SymbolSet) and reading.evidence_bits > 0]


# Equations -----------------------------------------------------------------------------------------------------------


def _linear(telling: Sequence[SymbolSet], payload_len: int, rng: Random, work: Work) -> Iterator[Likely]:
    """Information sets of equations, with up to two wrong ones in each put right.

    A row stands for a payload bit: which equations have it (low bits), and the bit itself (high bits). Sums of rows are
    payloads with what they change, and the word beside them is what a payload gets wrong. After an elimination on the
    equations of a set, the word satisfies the set, and each row turns one of its equations.
    """
    steps = _enough(telling, EQUATION_TIMES * payload_len)
    columns = [equation for step in steps for equation in step.equations(step.members()[0])]
    width = len(columns)
    cost = set_trial_cost(payload_len, width, len(steps))
    if not work.take(cost + 0.03 * width * payload_len):
        return
    digits = [f"{equation.coefficients:0{payload_len}b}"[::-1] for equation in reversed(columns)]
    of_bits = [int("".join(column), 2) for column in zip(*digits, strict=True)]
    matrix = [1 << (width + bit) | have for bit, have in enumerate(of_bits)]
    word = sum([equation.parity << i for i, equation in enumerate(columns)])
    own_columns = _column_ranges(steps)
    draw = _Draw([float(len(step.rows) ** 2) for step in steps], rng)
    mask = (1 << width) - 1
    for _ in range(TRIALS):
        order = draw.order(2 * payload_len)
        # What was eliminated in the last trial is as good a start as the first matrix, and has no meaning of its own.
        fixed, word = _systematic(matrix, word, [column for i in order for column in own_columns[i]])
        if not fixed:
            return
        found, wrong = _fewest_wrong(word, [row & mask for row in matrix], mask)
        payload = word
        for row in found:
            payload ^= matrix[row]
        # The set itself is satisfied by construction: only the other equations say anything.
        others = max(width - payload_len, 1)
        yield Likely(payload >> width, (others - 2 * wrong) / sqrt(others))
        if not work.take(cost):
            return


class _Draw:
    """Random orders of the steps, in which those that say much tend to come first."""

    def __init__(self, weights: Sequence[float], rng: Random) -> None:
        self._totals = list(accumulate(weights))
        self._places = range(len(weights))
        self._rng = rng

    def order(self, drawn: int) -> list[int]:
        """So many draws by weight, each step once; then all others, which are hardly ever needed."""
        first = self._rng.choices(self._places, cum_weights=self._totals, k=drawn)
        return list(dict.fromkeys([*first, *self._places]))


def _enough(telling: Sequence[SymbolSet], equations: int) -> Sequence[SymbolSet]:
    """The most telling steps: the usual number of them, or as many as have so many equations."""
    count = total = 0
    while count < len(telling) and (count < TELLING_STEPS or total < equations):
        total += len(telling[count].rows)
        count += 1
    return telling[:count]


def _column_ranges(steps: Sequence[SymbolSet]) -> list[range]:
    ranges = []
    at = 0
    for step in steps:
        ranges.append(range(at, at + len(step.rows)))
        at += len(step.rows)
    return ranges


def _systematic(matrix: list[int], word: int, order: Sequence[int]) -> tuple[bool, int]:
    """Eliminate, in place, so that each row alone has a column of its own, from the first columns that will do.

    False if the columns do not determine the payload. The word that comes back has none of those columns.
    """
    free = set(range(len(matrix)))
    for column in order:
        bit = 1 << column
        chosen = next((i for i in free if matrix[i] & bit), None)
        if chosen is None:
            continue
        free.remove(chosen)
        pivot = matrix[chosen]
        matrix[:] = [row ^ pivot if row & bit else row for row in matrix]
        matrix[chosen] = pivot
        if word & bit:
            word ^= pivot
        if not free:
            return True, word
    return False, word


def _fewest_wrong(word: int, rows: Sequence[int], mask: int) -> tuple[tuple[int, ...], int]:
    """Which rows to add to the word, none, one or two, so that it is lightest: that gets the fewest equations wrong."""
    word &= mask
    best: tuple[int, ...] = ()
    fewest = word.bit_count()
    for i, row in enumerate(rows):
        turned = word ^ row
        weights = [(turned ^ other).bit_count() for other in rows[i + 1 :]]
        one = turned.bit_count()
        if one < fewest:
            best, fewest = (i,), one
        if weights and min(weights) < fewest:
            fewest = min(weights)
            best = (i, i + 1 + weights.index(fewest))
    return best, fewest


# Sets of symbols -----------------------------------------------------------------------------------------------------


def _guessing(telling: Sequence[SymbolSet], payload_len: int, rng: Random, work: Work) -> Iterator[Likely]:
    """Steps of R: guess their symbols as well."""
    counts = sorted([reading.symbol_count for reading in telling])
    fewest = guess_bits(counts, payload_len)
    narrow = all(len(reading.rows) <= SYMBOL_BITS for reading in telling)
    if narrow and GUESS * 2.0 ** min(fewest, 1000.0) > TRIAL_SHARE * work.limit:
        # No trial could be finished, whichever steps it drew.
        work.refuse(guess_cost(fewest, payload_len))
        return
    draw = _Draw([reading.evidence_bits**2 for reading in telling], rng)
    cost = basis_cost(payload_len) + SHUFFLED_STEP * len(telling)
    for _ in range(TRIALS):
        if not work.take(cost):
            return
        ordered = [telling[i] for i in draw.order(payload_len + 8 * PACKED_CHECKS)]
        plan = GuessPlan(LinearSystem(payload_len), ordered)
        if not plan.determined:
            return
        if GUESS * plan.guesses > TRIAL_SHARE * work.limit:
            # Another order may need fewer.
            continue
        if not work.take(GUESS * plan.guesses):
            return
        # The rest of the order begins with steps that say much; take the checks from there.
        unsettled = [step for step in plan.unsettled(ordered) if len(step.rows) <= SYMBOL_BITS]
        checks = sorted(unsettled[: 4 * PACKED_CHECKS], key=lambda step: step.share)[:PACKED_CHECKS]
        # What was guessed or checked is satisfied by construction: only the other steps say anything.
        used = {id(step) for step in [*plan.guessed, *checks]}
        screen = _Screen([step for step in telling if id(step) not in used][:SCREEN_STEPS])
        for payload in plan.payloads(checks):
            if not work.take(E_VALUE * len(screen)):
                return
            yield Likely(payload, screen.level(payload))


class _Screen:
    """How well a payload explains a few steps, against what chance would."""

    def __init__(self, steps: Sequence[SymbolSet]) -> None:
        self._steps = [(step, step.evidence_bits) for step in steps]
        self._mean = sum([step.share * bits for step, bits in self._steps])
        self._deviation = sqrt(sum([step.share * (1 - step.share) * bits**2 for step, bits in self._steps])) or 1.0

    def __len__(self) -> int:
        return len(self._steps)

    def level(self, payload: int) -> float:
        explained = sum([bits for step, bits in self._steps if step.allows(payload)])
        return (explained - self._mean) / self._deviation
