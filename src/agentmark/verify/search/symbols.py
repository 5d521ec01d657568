"""Open decoding of R on clean logs: exact search over the symbols that each step leaves possible.

A few steps whose rows determine the payload form a basis: once their symbols are guessed, the payload is a sum of one
vector per guess. So a guess costs one XOR, and the symbols that it implies at other steps come out of the same XOR,
where most guesses end. The number of guesses, the product of the symbol counts of the basis steps, is known before any
is made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from agentmark.core.linear import LinearSystem
from agentmark.core.rlnc import row_parities
from agentmark.core.symbols import SYMBOL_BITS, SYMBOL_COUNT, SymbolSet

DEFAULT_SEARCH_LIMIT = 1 << 24

# How many other steps are checked by the XOR itself, before a guess is looked at in full.
PACKED_CHECKS = 3
# One check in full takes as long as this many guesses; checks may cost a few times what the guesses may.
CHECK_COST = 32
SPENT_LIMIT = 4
_SYMBOL_MASK = SYMBOL_COUNT - 1


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`payloads`: those that agree with every step, at most two (two are enough to know that it is not unique).

    `undetermined`: the steps do not fix every payload bit. `over_limit`: the search would cost `work` guesses or more,
    and was not begun or not finished.
    """

    payloads: tuple[int, ...]
    work: int
    undetermined: bool = False
    over_limit: bool = False

    @property
    def unique(self) -> int | None:
        """The payload, when the search has proved that there is exactly one."""
        return self.payloads[0] if len(self.payloads) == 1 else None


def search_payloads(
    system: LinearSystem, constraints: Sequence[SymbolSet], *, limit: int = DEFAULT_SEARCH_LIMIT
) -> SearchResult:
    """Every payload that satisfies the linear system and all constraints, if that takes at most `limit` guesses."""
    ordered = sorted(constraints, key=lambda constraint: constraint.symbol_count)
    plan = GuessPlan(system, ordered)
    if not plan.determined:
        return SearchResult((), 0, undetermined=True)
    if plan.work > limit:
        return SearchResult((), plan.work, over_limit=True)
    checks = plan.unsettled(ordered)
    payloads: list[int] = []
    spent = plan.work
    for payload in plan.payloads(checks[:PACKED_CHECKS]):
        agrees = True
        for check in checks[PACKED_CHECKS:]:
            spent += CHECK_COST
            agrees = check.allows(payload)
            if not agrees:
                break
        # The guesses are counted beforehand, the checks as they come: a log may be made to need many.
        if spent > SPENT_LIMIT * limit:
            return SearchResult((), spent, over_limit=True)
        if agrees:
            payloads.append(payload)
            if len(payloads) == 2:
                break
    return SearchResult(tuple(payloads), spent)


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
        self.work = prod([len(step.options) for step in self._guessed])

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
            own = vectors[used : used + len(step.rows)]
            levels.append([_combine(own, option) for option in step.options])
            used += len(own)
        for guess in _surviving_guesses(start, levels, checks):
            yield guess >> (SYMBOL_BITS * len(checks))


@dataclass(frozen=True, slots=True)
class _GuessedStep:
    """A step of the basis: which of its rows are in it, and the parities that its symbols allow on those, each once."""

    constraint: SymbolSet
    rows: list[int]

    @property
    def options(self) -> list[tuple[int, ...]]:
        allowed = set()
        for symbol in self.constraint.members():
            equations = self.constraint.equations(symbol)
            allowed.add(tuple([equations[j].parity for j in self.rows]))
        return sorted(allowed)


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
