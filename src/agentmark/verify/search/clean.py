"""The one payload that explains every step, if there is one: elimination, then a search over R's symbols."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmark.core.linear import LinearSystem
from agentmark.core.symbols import Reading, SymbolSet
from agentmark.verify.search.symbols import search_payloads


@dataclass(frozen=True, slots=True)
class CleanSearch:
    """What a clean log says.

    `payload`: the only one that explains every step. `consistent`: whether any does; None if that was not settled.
    `by_elimination`: no symbol had to be searched. `work`: guesses that the search took, or would take.
    """

    payload: int | None
    consistent: bool | None
    by_elimination: bool = True
    work: int = 0
    over_limit: bool = False


def clean_search(readings: Sequence[Reading], payload_len: int, *, limit: int) -> CleanSearch:
    """Exact as far as it goes: soft readings settle nothing, and a search beyond the limit is not begun."""
    system = LinearSystem(payload_len)
    sets = []
    for reading in readings:
        if not isinstance(reading, SymbolSet):
            return CleanSearch(None, None)
        if reading.symbol_count > 1:
            sets.append(reading)
            continue
        for equation in reading.equations(reading.members()[0]):
            system.update(equation)
    if not system.consistent:
        return CleanSearch(None, False)
    if not sets:
        return CleanSearch(system.solution(), True)
    result = search_payloads(system, sets, limit=limit)
    if result.undetermined or result.over_limit:
        return CleanSearch(None, None, False, result.work, result.over_limit)
    return CleanSearch(result.unique, bool(result.payloads), False, result.work)
