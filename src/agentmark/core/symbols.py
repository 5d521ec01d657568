"""What one logged step says of the payload, in the same form for both schemes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from typing import Self

from agentmark.core.rlnc import Equation, row_parities

# A step carries a symbol of at most this many coded bits, as far as it is searched for symbol by symbol.
SYMBOL_BITS = 8
SYMBOL_COUNT = 1 << SYMBOL_BITS


@dataclass(frozen=True, slots=True)
class SymbolSet:
    """The step's coded symbol, A_t m xor Z_t, is one of `symbols` (bit s set: s is possible).

    R: eight rows and any number of symbols. F: c_t rows and one symbol.
    """

    rows: tuple[int, ...]
    pad: int
    symbols: int

    @classmethod
    def of_equations(cls, equations: Sequence[Equation]) -> Self:
        """The one symbol that a step of F leaves; its pad is already removed."""
        parities = 0
        for equation in equations:
            parities = parities << 1 | equation.parity
        return cls(tuple([equation.coefficients for equation in equations]), 0, 1 << parities)

    @property
    def symbol_count(self) -> int:
        return self.symbols.bit_count()

    @property
    def share(self) -> float:
        """q_t: the share of all symbols that lead to the logged behavior."""
        return self.symbols.bit_count() / (1 << len(self.rows))

    @property
    def evidence_bits(self) -> float:
        """-log2 q_t."""
        return len(self.rows) - log2(self.symbols.bit_count())

    @property
    def most_bits(self) -> float:
        """What the step says for a payload that suits it best."""
        return self.evidence_bits

    def symbol(self, payload: int) -> int:
        """The symbol that this payload has at this step."""
        return row_parities(self.rows, payload) ^ self.pad

    def allows(self, payload: int) -> bool:
        return bool(self.symbols >> self.symbol(payload) & 1)

    def members(self) -> list[int]:
        members = []
        left = self.symbols
        while left:
            lowest = left & -left
            members.append(lowest.bit_length() - 1)
            left ^= lowest
        return members

    def equations(self, symbol: int) -> list[Equation]:
        """What holds if this symbol was the one: an equation for each row."""
        unmasked = symbol ^ self.pad
        last = len(self.rows) - 1
        return [Equation(row, unmasked >> (last - j) & 1) for j, row in enumerate(self.rows)]

    def e_values(self) -> list[float]:
        """The step's e-value under each symbol: 1 / q_t if it leads to the logged behavior, else 0."""
        gain = 1 / self.share if self.symbols else 0.0
        return [gain if self.symbols >> symbol & 1 else 0.0 for symbol in range(1 << len(self.rows))]

    def e_value(self, payload: int) -> float:
        """[Enc_t(m) = b_t] / q_t (law L8)."""
        symbol = row_parities(self.rows, payload) ^ self.pad
        return 1 / self.share if self.symbols >> symbol & 1 else 0.0


@dataclass(frozen=True, slots=True)
class SoftSymbols:
    """A weaker view of a step of R: not which symbols are possible, but how much each is worth as an e-value."""

    rows: tuple[int, ...]
    pad: int
    values: tuple[float, ...]

    @property
    def evidence_bits(self) -> float:
        """What the step says on average if the payload is right: symbols are then as likely as their values."""
        total = len(self.values)
        return sum([value * log2(value) for value in self.values if value > 0]) / total

    @property
    def most_bits(self) -> float:
        """What the step says for a payload that suits it best; no payload has more."""
        most = max(self.values)
        # A step that disagrees with everyone says less than nothing.
        return log2(most) if most > 0 else 0.0

    def symbol(self, payload: int) -> int:
        """The symbol that this payload has at this step."""
        return row_parities(self.rows, payload) ^ self.pad

    def e_values(self) -> list[float]:
        return list(self.values)

    def e_value(self, payload: int) -> float:
        return self.values[self.symbol(payload)]


Reading = SymbolSet | SoftSymbols

# A step that counts against every payload: e_t = 0 under all symbols (spec, section 12.3).
DISAGREEING = SoftSymbols((0,) * SYMBOL_BITS, 0, (0.0,) * SYMBOL_COUNT)
