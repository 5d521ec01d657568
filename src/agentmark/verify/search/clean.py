"""The one payload that explains every step, if there is one: elimination, then a search over R's symbols."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmark.core.costs import reduction_cost
from agentmark.core.linear import LinearSystem
from agentmark.core.rlnc import Equation
from agentmark.core.symbols import Reading, SymbolSet
from agentmark.verify.readings import Readings, as_readings
from agentmark.verify.search.symbols import search_payloads
from agentmark.verify.work import Work


@dataclass(frozen=True, slots=True)
class Elimination:
    """The rows of a log, eliminated once for all that need it.

    `system`: equations of steps that leave one symbol, up to full rank at least. `consistent`: whether all such steps
    agree. `rank`: of all rows; if it was cut short, of those up to there.
    """

    readings: Readings
    system: LinearSystem
    consistent: bool
    rank: int
    cut_short: bool = False

    @property
    def has_soft(self) -> bool:
        return any(not symbols for _, symbols in self.readings.shapes)

    @property
    def has_sets(self) -> bool:
        """Whether a hard step leaves more than one symbol."""
        return any(symbols > 1 for _, symbols in self.readings.shapes)


@dataclass(frozen=True, slots=True)
class CleanSearch:
    """What a clean log says.

    `payload`: the only one that explains every step. `consistent`: whether any does; None if that was not settled.
    `by_elimination`: no symbol had to be searched.
    """

    payload: int | None
    consistent: bool | None
    by_elimination: bool = True


def eliminate(readings: Readings | Sequence[Reading], payload_len: int, work: Work) -> Elimination:
    """Rank and equations of these steps, as far as the work lasts.

    Once the equations determine the payload, the others are compared with it all at once; and once the rank is full,
    steps that leave several symbols add nothing to it.
    """
    return _Eliminating(as_readings(readings), payload_len, work).result()


class _Eliminating:
    def __init__(self, readings: Readings, payload_len: int, work: Work) -> None:
        self._readings = readings
        self._payload_len = payload_len
        self._work = work
        # Equations of steps that leave one symbol; and rows of the others, of which only the rank counts.
        self._system, self._rows = LinearSystem(payload_len), LinearSystem(payload_len)
        self._is_single = bytearray(len(readings))
        for i in readings.single():
            self._is_single[i] = 1
        self._singles_left = sum(self._is_single)
        self._others_left = len(readings) - self._singles_left

    def result(self) -> Elimination:
        has_others = bool(self._others_left)
        finished = self._walk()
        consistent = self._system.consistent
        if finished and self._singles_left:
            finished, agree = self._compare()
            consistent = consistent and agree
        if has_others and self._rows.rank < self._payload_len:
            # Both kinds of rows count; the equations are few after their own elimination.
            for equation in self._system.pivots():
                self._work.spend(reduction_cost(self._rows.rank, self._payload_len))
                self._rows.update(Equation(equation.coefficients, 0))
        rank = max(self._system.rank, self._rows.rank)
        return Elimination(self._readings, self._system, consistent, rank, cut_short=not finished)

    def _walk(self) -> bool:
        """Every step until both kinds are settled; False if the work does not last."""
        for i, is_single in enumerate(self._is_single):
            determined = not self._singles_left or self._system.solution() is not None
            rows_full = not self._others_left or self._rows.rank == self._payload_len
            if determined and rows_full:
                break
            if not (determined if is_single else rows_full) and not self._take(self._readings[i]):
                return False
        return True

    def _take(self, reading: Reading) -> bool:
        is_single = isinstance(reading, SymbolSet) and reading.symbol_count == 1
        rank = self._system.rank if is_single else self._rows.rank
        # Beyond full rank an equation is only compared.
        left = rank % self._payload_len if self._payload_len else 0
        if not self._work.take(len(reading.rows) * reduction_cost(left, self._payload_len)):
            return False
        if is_single and isinstance(reading, SymbolSet):
            self._singles_left -= 1
            for equation in reading.equations(reading.members()[0]):
                self._system.update(equation)
        else:
            self._others_left -= 1
            for row in reading.rows:
                self._rows.update(Equation(row, 0))
        return True

    def _compare(self) -> tuple[bool, bool]:
        """Whether there was work to compare the equations that are left with the solution, and whether all agree."""
        shapes = self._readings.shapes
        equations = sum([rows * count for (rows, symbols), count in shapes.items() if symbols == 1])
        left = equations - self._system.equation_count
        solution = self._system.solution()
        if solution is None or not self._work.take(left * reduction_cost(0, self._payload_len)):
            return False, True
        return True, not any(self._is_single[i] for i in self._readings.e_values(solution).contradicting)


def clean_search(eliminated: Elimination, work: Work) -> CleanSearch:
    """Exact as far as it goes: soft readings settle nothing, and a search beyond the limit is not begun."""
    if not eliminated.consistent:
        return CleanSearch(None, False)
    if eliminated.has_soft or eliminated.cut_short:
        return CleanSearch(None, None)
    if not eliminated.has_sets:
        return CleanSearch(eliminated.system.solution(), True)
    result = search_payloads(eliminated.system, eliminated.readings, work)
    if result.undetermined or result.over_limit:
        return CleanSearch(None, None, False)
    return CleanSearch(result.unique, bool(result.payloads), False)
