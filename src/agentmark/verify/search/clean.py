"""The one payload that explains every step, if there is one: elimination, then a search over R's symbols."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmark.core.costs import reduction_cost
from agentmark.core.linear import LinearSystem
from agentmark.core.rlnc import Equation
from agentmark.core.symbols import Reading, SymbolSet
from agentmark.verify.search.symbols import search_payloads
from agentmark.verify.work import Work


@dataclass(frozen=True, slots=True)
class Elimination:
    """The rows of a log, eliminated once for all that need it.

    `system`: the equations of steps that leave one symbol. `sets`: hard readings that leave more. `rank`: of all rows;
    if it was cut short, of those up to there.
    """

    system: LinearSystem
    sets: tuple[SymbolSet, ...]
    has_soft: bool
    rank: int
    cut_short: bool = False


@dataclass(frozen=True, slots=True)
class CleanSearch:
    """What a clean log says.

    `payload`: the only one that explains every step. `consistent`: whether any does; None if that was not settled.
    `by_elimination`: no symbol had to be searched.
    """

    payload: int | None
    consistent: bool | None
    by_elimination: bool = True


def eliminate(readings: Sequence[Reading], payload_len: int, work: Work) -> Elimination:
    """Rank and equations of these steps, as far as the work lasts."""
    system, rows = LinearSystem(payload_len), LinearSystem(payload_len)
    single = [isinstance(reading, SymbolSet) and reading.symbol_count == 1 for reading in readings]
    cut_short = False
    for reading, is_single in zip(readings, single, strict=True):
        if not is_single and rows.rank == payload_len:
            continue
        rank = system.rank if is_single else rows.rank
        if not work.take(len(reading.rows) * reduction_cost(rank % payload_len if payload_len else 0, payload_len)):
            cut_short = True
            break
        if is_single and isinstance(reading, SymbolSet):
            for equation in reading.equations(reading.members()[0]):
                system.update(equation)
        else:
            for row in reading.rows:
                rows.update(Equation(row, 0))
    if not all(single) and rows.rank < payload_len:
        # Both kinds of rows count; the equations are few after their own elimination.
        for equation in system.pivots():
            work.spend(reduction_cost(rows.rank, payload_len))
            rows.update(Equation(equation.coefficients, 0))
    sets = [r for r, one in zip(readings, single, strict=True) if isinstance(r, SymbolSet) and not one]
    has_soft = any(not isinstance(reading, SymbolSet) for reading in readings)
    return Elimination(system, tuple(sets), has_soft, max(system.rank, rows.rank), cut_short)


def clean_search(eliminated: Elimination, work: Work) -> CleanSearch:
    """Exact as far as it goes: soft readings settle nothing, and a search beyond the limit is not begun."""
    if not eliminated.system.consistent:
        return CleanSearch(None, False)
    if eliminated.has_soft or eliminated.cut_short:
        return CleanSearch(None, None)
    if not eliminated.sets:
        return CleanSearch(eliminated.system.solution(), True)
    result = search_payloads(eliminated.system, eliminated.sets, work)
    if result.undetermined or result.over_limit:
        return CleanSearch(None, None, False)
    return CleanSearch(result.unique, bool(result.payloads), False)
