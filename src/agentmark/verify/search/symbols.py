"""Open decoding of R on clean logs: exact search over the symbols that each step leaves possible.

A few steps whose rows determine the payload form a basis: once their symbols are guessed, the payload is a sum of one
vector per guess. So a guess costs one XOR, and the symbols that it implies at other steps come out of the same XOR,
where most guesses end. The number of guesses, the product of the symbol counts of the basis steps, is known before any
is made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from agentmark.core.costs import E_VALUE, GUESS, basis_cost, guess_bits, guess_cost
from agentmark.core.linear import LinearSystem
from agentmark.core.rlnc import row_parities
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT, SymbolSet
from agentmark.verify.readings import Readings, as_readings
from agentmark.verify.work import Work

# How many other steps are checked by the XOR itself, before a guess is looked at in full.
PACKED_CHECKS = 3
# So many steps are checked one after the other, those with the fewest symbols first: a guess that passes is hardly ever
# wrong, and the rest of a long log is checked at once.
FIRST_CHECKS = 4096
_SYMBOL_MASK = SYMBOL_COUNT - 1


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`payloads`: those that agree with every step, at most two (two are enough to know that it is not unique).

    `undetermined`: the steps do not fix every payload bit. `over_limit`: there was not work enough to begin or to end
    the search.
    """

    payloads: tuple[int, ...]
    undetermined: bool = False
    over_limit: bool = False

    @property
    def unique(self) -> int | None:
        """The payload, when the search has proved that there is exactly one."""
        return self.payloads[0] if len(self.payloads) == 1 else None


def search_payloads(system: LinearSystem, readings: Readings | Sequence[SymbolSet], work: Work) -> SearchResult:
    """Every payload that satisfies the linear system and all steps that leave several symbols, if there is enough work
    left for it. Steps that leave one symbol are the system's."""
    readings = as_readings(readings)
    several = sum([count for (_, symbols), count in readings.shapes.items() if symbols > 1])
    ordered = _sets(readings, max(FIRST_CHECKS, system.payload_len + 1))
    narrow = all(rows <= SYMBOL_BITS for rows, symbols in readings.shapes if symbols > 1)
    if not _affordable(system, ordered, work, narrow=narrow):
        return SearchResult((), over_limit=True)
    plan = GuessPlan(system, ordered)
    if not plan.determined and several > len(ordered):
        ordered = _sets(readings, several)
        plan = GuessPlan(system, ordered)
    if not plan.determined:
        return SearchResult((), undetermined=True)
    if not work.take(GUESS * plan.guesses):
        return SearchResult((), over_limit=True)
    checks = plan.unsettled(ordered)
    rest = several - len(ordered)
    payloads: list[int] = []
    for payload in plan.payloads(checks[:PACKED_CHECKS]):
        agrees = _agrees(payload, checks[PACKED_CHECKS:], work)
        if agrees and rest:
            # Who explains so many steps nearly always explains the rest: they are asked all at once.
            agrees = not len(readings.e_values(payload).contradicting) if work.take(E_VALUE * rest) else None
        if agrees is None:
            return SearchResult((), over_limit=True)
        if agrees:
            payloads.append(payload)
        if len(payloads) == 2:
            break
    return SearchResult(tuple(payloads))


def _agrees(payload: int, checks: Sequence[SymbolSet], work: Work) -> bool | None:
    """Whether a payload agrees with these steps; None if the work does not last. The guesses are counted beforehand,
    the checks as they come: a log may be made to need many."""
    for check in checks:
        if not work.take(E_VALUE):
            return None
        if not check.allows(payload):
            return False
    return True


def _sets(readings: Readings, most: int) -> list[SymbolSet]:
    """Steps that leave several symbols, those with the fewest first."""
    return [reading for reading in readings.take(readings.by_symbols(most)) if isinstance(reading, SymbolSet)]


def _affordable(system: LinearSystem, ordered: Sequence[SymbolSet], work: Work, *, narrow: bool) -> bool:
    """Pay for the plan; not if the sizes of the sets, smallest first, show that its guesses would cost too much."""
    missing = system.payload_len - system.rank
    counts = [constraint.symbol_count for constraint in ordered[: missing + 1]]
    if narrow:
        fewest = guess_bits(counts, missing)
        if fewest < float("inf") and guess_cost(fewest, system.payload_len) > work.left:
            work.refuse(guess_cost(fewest, system.payload_len))
            return False
    return work.take(basis_cost(system.payload_len))


class GuessPlan:
    """Which steps to guess, in the order given, so that the payload is determined; and what that costs."""

    def __init__(self, system: LinearSystem, ordered: Sequence[SymbolSet]) -> None:
        basis = _Basis(system.payload_len)
        self._known = [equation.parity for equation in system.pivots() if basis.add(equation.coefficients)]
        self._guessed: list[_GuessedStep] = []
        for constraint in ordered:
            if basis.full:
                break
            rows = [j for j, row in enumerate(constraint.rows) if basis.add(row)]
            if rows:
                self._guessed.append(_GuessedStep(constraint, rows))
        self._basis = basis
        self.determined = basis.full
        self.guesses = prod([step.option_count for step in self._guessed])

    @property
    def guessed(self) -> list[SymbolSet]:
        """The steps whose symbols are guessed."""
        return [step.constraint for step in self._guessed]

    def unsettled(self, constraints: Sequence[SymbolSet]) -> list[SymbolSet]:
        """Those that a guess may contradict: all but the steps whose every row is in the basis."""
        settled = {id(step.constraint) for step in self._guessed if len(step.rows) == len(step.constraint.rows)}
        return [constraint for constraint in constraints if id(constraint) not in settled]

    def payloads(self, checks: Sequence[SymbolSet]) -> Iterator[int]:
        """The payload of every guess that agrees with the checks, which are few and have at most eight rows."""
        vectors = [_pack(vector, checks) for vector in self._basis.dual_vectors()]
        used = len(self._known)
        start = _combine(vectors[:used], self._known)
        for i, check in enumerate(checks):
            start ^= check.pad << (SYMBOL_BITS * i)
        levels = []
        for step in self._guessed:
            levels.append(step.sums(vectors[used : used + len(step.rows)]))
            used += len(step.rows)
        for guess in _surviving_guesses(start, levels, checks):
            yield guess >> (SYMBOL_BITS * len(checks))


@dataclass(frozen=True, slots=True)
class _GuessedStep:
    """A step of the basis: which of its rows are in it. Its symbols allow some parities on those, each counted once."""

    constraint: SymbolSet
    rows: list[int]

    @property
    def option_count(self) -> int:
        if len(self.rows) == len(self.constraint.rows):
            return self.constraint.symbol_count
        last = len(self.constraint.rows) - 1
        mask = sum([1 << (last - j) for j in self.rows])
        return len({symbol & mask for symbol in self.constraint.members()})

    def sums(self, vectors: Sequence[int]) -> list[int]:
        """For each option the sum of the vectors, one for each row of the basis, whose parity is 1."""
        width = len(self.constraint.rows)
        unmasked = [symbol ^ self.constraint.pad for symbol in self.constraint.members()]
        if len(unmasked) * width < 1 << width:
            places = [width - 1 - j for j in self.rows]
            return sorted({_combine(vectors, [symbol >> place & 1 for place in places]) for symbol in unmasked})
        of_row = dict(zip(self.rows, vectors, strict=True))
        by_symbol = [0]
        for j in reversed(range(width)):
            # A row outside the basis adds nothing, so that symbols that differ in it alone come out as one option.
            by_symbol += [total ^ of_row.get(j, 0) for total in by_symbol]
        return sorted({by_symbol[symbol] for symbol in unmasked})


class _Basis:
    """Independent rows, and the vectors dual to them: m is the sum of the duals whose row has parity 1."""

    def __init__(self, payload_len: int) -> None:
        self._payload_len = payload_len
        self._size = 0
        # By leading bit: a reduced row, and which of the rows added sum up to it.
        self._pivots: dict[int, tuple[int, int]] = {}

    @property
    def full(self) -> bool:
        return self._size == self._payload_len

    def add(self, row: int) -> bool:
        """Take the row if it is independent of those before."""
        members = 1 << self._size
        while row:
            pivot = self._pivots.get(row.bit_length())
            if pivot is None:
                self._pivots[row.bit_length()] = row, members
                self._size += 1
                return True
            row ^= pivot[0]
            members ^= pivot[1]
        return False

    def dual_vectors(self) -> list[int]:
        """One payload vector for each row added, in order."""
        duals = [0] * self._size
        solved: dict[int, int] = {}
        for length in sorted(self._pivots):
            row, members = self._pivots[length]
            rest = row ^ 1 << (length - 1)
            while rest:
                # Lower unit vectors are solved already: clear their bits from this row.
                members ^= solved[rest.bit_length()]
                rest ^= 1 << (rest.bit_length() - 1)
            solved[length] = members
            for i in range(self._size):
                if members >> i & 1:
                    duals[i] |= 1 << (length - 1)
        return duals


def _pack(vector: int, checks: Sequence[SymbolSet]) -> int:
    """The payload vector, and below it the symbol that it implies at each check, the first check lowest."""
    packed = vector
    for check in reversed(checks):
        packed = packed << SYMBOL_BITS | row_parities(check.rows, vector)
    return packed


def _combine(vectors: Sequence[int], parities: Sequence[int]) -> int:
    """The sum of those vectors whose parity is 1."""
    total = 0
    for vector, parity in zip(vectors, parities, strict=True):
        if parity:
            total ^= vector
    return total


def _surviving_guesses(start: int, levels: list[list[int]], checks: Sequence[SymbolSet]) -> Iterator[int]:
    """Sums of one vector per level that pass the packed checks. Two half sums keep the inner loop to one XOR."""
    possible = [[bool(check.symbols >> symbol & 1) for symbol in range(SYMBOL_COUNT)] for check in checks]
    while len(possible) < PACKED_CHECKS:
        possible.append([True] * SYMBOL_COUNT)
    first, second, third = possible
    outer, inner = _half_sums(start, levels)
    for left in outer:
        for right in inner:
            guess = left ^ right
            if (
                first[guess & _SYMBOL_MASK]
                and second[guess >> SYMBOL_BITS & _SYMBOL_MASK]
                and third[guess >> 2 * SYMBOL_BITS & _SYMBOL_MASK]
            ):
                yield guess


def _half_sums(start: int, levels: list[list[int]]) -> tuple[list[int], list[int]]:
    """All sums of one vector per level, as two lists of about the same length, so that neither fills the memory."""
    outer, inner = [start], [0]
    for level in sorted(levels, key=len, reverse=True):
        if len(outer) <= len(inner):
            outer = [total ^ vector for total in outer for vector in level]
        else:
            inner = [total ^ vector for total in inner for vector in level]
    return outer, inner
