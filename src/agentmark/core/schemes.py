"""The table of schemes. Everything outside the core speaks to a scheme through this one protocol, by its name.

A new scheme is a module of primitives beside `scheme_f` and `scheme_r`, a class here, and a line in the table.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from agentmark.core import costs, scheme_f, scheme_r, theory
from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.symbols import SoftSymbols, SymbolSet


class Scheme(Protocol):
    """One way to carry coded bits in a choice. It has no state: all that varies is in the arguments."""

    # What a record states, and what help texts say.
    name: str
    summary: str
    # Whether each step says equations on the payload, so that elimination alone reads a clean log.
    is_linear: bool
    # Whether a step can be read when only a part of its list was logged.
    reads_partial_lists: bool

    def choose(
        self, distribution: BehaviorDistribution, step_key: bytes, *, payload: int, payload_len: int
    ) -> str | None:
        """The marked behavior; None when this step cannot be marked."""

    def read(
        self, distribution: BehaviorDistribution, step_key: bytes, behavior: str, *, payload_len: int
    ) -> SymbolSet | None:
        """What the step says of the payload; None when this key cannot have chosen this behavior."""

    def read_partial(
        self, partial_weights: Mapping[str, int], step_key: bytes, behavior: str, *, payload_len: int
    ) -> SoftSymbols | None:
        """The same from a part of the list. Asked only of a scheme that `reads_partial_lists`."""

    def read_cost(self, names: Collection[str], *, payload_len: int, whole: bool) -> float:
        """What reading a step costs at most, in operations (`costs`), for a list of these names or a part of it."""

    def capacity(self, distribution: BehaviorDistribution) -> float:
        """The evidence that a step with this list is expected to carry, in bits, in closed form."""


class SchemeF:
    """AgentMark-F, the paper's: differential recombination and a cyclic-shift code (spec, section 6)."""

    name = "F"
    summary = "the paper's"
    is_linear = True
    reads_partial_lists = False

    def choose(self, distribution: BehaviorDistribution, step_key: bytes, *, payload: int, payload_len: int) -> str:
        return scheme_f.encode(distribution, step_key, payload=payload, payload_len=payload_len).behavior

    def read(
        self, distribution: BehaviorDistribution, step_key: bytes, behavior: str, *, payload_len: int
    ) -> SymbolSet | None:
        read = scheme_f.decode_rows(distribution, step_key, behavior, payload_len=payload_len)
        if read is None:
            return None
        rows, parities = read
        # The pad is removed already, and one symbol is left.
        return SymbolSet(tuple(rows), 0, 1 << parities)

    def read_partial(
        self, partial_weights: Mapping[str, int], step_key: bytes, behavior: str, *, payload_len: int
    ) -> None:
        """The bins depend on the whole list."""

    def read_cost(self, names: Collection[str], *, payload_len: int, whole: bool) -> float:
        return costs.read_f_cost(len(names), payload_len) if whole else 0.0

    def capacity(self, distribution: BehaviorDistribution) -> float:
        return theory.capacity(distribution)


class SchemeR:
    """AgentMark-R: an exponential race under a symbol of eight coded bits (spec, section 7)."""

    name = "R"
    summary = "the race"
    is_linear = False
    reads_partial_lists = True

    def choose(
        self, distribution: BehaviorDistribution, step_key: bytes, *, payload: int, payload_len: int
    ) -> str | None:
        return scheme_r.encode(distribution, step_key, payload=payload, payload_len=payload_len)

    def read(
        self, distribution: BehaviorDistribution, step_key: bytes, behavior: str, *, payload_len: int
    ) -> SymbolSet | None:
        return scheme_r.decode(distribution, step_key, behavior, payload_len=payload_len)

    def read_partial(
        self, partial_weights: Mapping[str, int], step_key: bytes, behavior: str, *, payload_len: int
    ) -> SoftSymbols | None:
        soft = scheme_r.decode_partial(partial_weights, step_key, behavior, payload_len=payload_len)
        return soft if any(soft.values) else None

    def read_cost(self, names: Collection[str], *, payload_len: int, whole: bool) -> float:
        cost = costs.read_r_cost(len(names), sum(map(len, names)), payload_len)
        return cost if whole else cost + costs.PARTIAL_STEP + costs.PARTIAL_OPTION * len(names)

    def capacity(self, distribution: BehaviorDistribution) -> float:
        return theory.race_capacity(distribution)


SCHEMES: Mapping[str, Scheme] = {scheme.name: scheme for scheme in (SchemeF(), SchemeR())}
DEFAULT_SCHEME = SchemeF.name
