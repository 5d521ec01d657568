"""What the steps of a log say, together: the one interface through which a log is judged, however it is kept.

`ReadingList` keeps an object for each step. An engine that reads whole columns of records brings its own `Readings`,
and answers for all its steps at once. A judge asks both the same questions, so that both come to the same verdict, to
the bit: whatever is summed over steps is summed exactly, from counts of equal values.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log2
from typing import Protocol, Self, cast

from agentmark.core.symbols import Reading, SymbolSet
from agentmark.verify.reading_bytes import pack_readings, unpack_readings

# How many rows a step has, and how many symbols it leaves; 0 for a step that weighs every symbol (a part of a list).
Shape = tuple[int, int]


@dataclass(frozen=True, slots=True)
class EValues:
    """What every step of a log says for one payload.

    `counts`: how many steps have which e-value. `values` are aligned with the steps. `contradicting`: the places of
    those that rule the payload out (e-value 0), in ascending order.
    """

    counts: Mapping[float, int]
    values: Sequence[float]
    contradicting: Sequence[int]


class Readings(Protocol):
    """The readings of a log's used steps, in the order of their contexts (or of a part of them, in any order)."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Reading]: ...

    def __getitem__(self, index: int, /) -> Reading: ...

    def take(self, indices: Sequence[int], /) -> "Readings":
        """Those at these places, in this order."""
        ...

    @property
    def shapes(self) -> Mapping[Shape, int]:
        """How many steps have which shape: all that the costs of a search depend on."""
        ...

    @property
    def evidence_bits(self) -> float:
        """What the steps would say if every one agreed: the exact sum, rounded once."""
        ...

    @property
    def most_bits(self) -> float:
        """The same for payloads that suit each step best; no payload has more."""
        ...

    def e_values(self, payload: int, /) -> EValues:
        """What every step says for this payload."""
        ...

    def agreeing(self, payload: int, /) -> Mapping[Shape, int]:
        """How many steps of each shape agree with this payload. Those that weigh every symbol are not counted."""
        ...

    def by_shape(self, values: Mapping[Shape, float], /) -> Sequence[float]:
        """For every step the value of its shape."""
        ...

    def to_bytes(self, payload_len: int, /) -> bytes:
        """The readings as `reading_bytes.pack_readings` writes them: the same bytes, however they are kept."""
        ...

    def bits(self) -> Sequence[float]:
        """`evidence_bits` of every step."""
        ...

    def single(self) -> Sequence[int]:
        """The places of steps that leave one symbol, in ascending order."""
        ...

    def by_symbols(self, most: int, /) -> Sequence[int]:
        """The places of steps that leave more than one symbol, fewest symbols first, so many at most; of equals, in the
        order of the steps. Steps that weigh every symbol are not among them."""
        ...

    def by_evidence(self, most: int, /, *, single: bool = False) -> Sequence[int]:
        """The places of the steps that say most (`evidence_bits` of each), so many at most, largest first; of equals,
        in the order of the steps. `single`: only of those that leave one symbol."""
        ...


class ReadingList(Sequence[Reading]):
    """Readings as objects, one for each step."""

    __slots__ = ("_asked", "_shapes", "_steps")

    def __init__(self, readings: Iterable[Reading] = ()) -> None:
        self._steps = list(readings)
        self._shapes: Counter[Shape] | None = None
        # What was asked last: a search and a judge ask for the same payload.
        self._asked: tuple[int, EValues] | None = None

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Reading]:
        return iter(self._steps)

    # A slice is no step, and `take` says what is meant.
    def __getitem__(self, index: int, /) -> Reading:  # type: ignore[override]
        return self._steps[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadingList) and self._steps == other._steps

    __hash__ = None  # type: ignore[assignment]

    def take(self, indices: Sequence[int], /) -> "ReadingList":
        return ReadingList([self._steps[i] for i in indices])

    @property
    def shapes(self) -> Mapping[Shape, int]:
        if self._shapes is None:
            self._shapes = Counter([shape_of(reading) for reading in self._steps])
        return self._shapes

    @property
    def evidence_bits(self) -> float:
        soft = [reading.evidence_bits for reading in self._steps if not isinstance(reading, SymbolSet)]
        return bits_of_shapes(self.shapes, soft)

    @property
    def most_bits(self) -> float:
        soft = [reading.most_bits for reading in self._steps if not isinstance(reading, SymbolSet)]
        return bits_of_shapes(self.shapes, soft)

    def e_values(self, payload: int, /) -> EValues:
        if self._asked is None or self._asked[0] != payload:
            values = [reading.e_value(payload) for reading in self._steps]
            against = [i for i, value in enumerate(values) if not value > 0]
            self._asked = payload, EValues(Counter(values), values, against)
        return self._asked[1]

    def agreeing(self, payload: int, /) -> Mapping[Shape, int]:
        return agreeing_of(self._steps, payload)

    def by_shape(self, values: Mapping[Shape, float], /) -> Sequence[float]:
        return [values[shape_of(reading)] for reading in self._steps]

    def to_bytes(self, payload_len: int, /) -> bytes:
        return pack_readings(self._steps, payload_len)

    @classmethod
    def from_bytes(cls, data: bytes, payload_len: int) -> Self:
        """The readings that these bytes are of; StateError if they are of none."""
        return cls(unpack_readings(data, payload_len))

    def bits(self) -> Sequence[float]:
        return [reading.evidence_bits for reading in self._steps]

    def single(self) -> Sequence[int]:
        return [i for i, reading in enumerate(self._steps) if shape_of(reading)[1] == 1]

    def by_symbols(self, most: int, /) -> Sequence[int]:
        counts = [shape_of(reading)[1] for reading in self._steps]
        return sorted([i for i, count in enumerate(counts) if count > 1], key=counts.__getitem__)[:most]

    def by_evidence(self, most: int, /, *, single: bool = False) -> Sequence[int]:
        places = self.single() if single else range(len(self._steps))
        said = {i: self._steps[i].evidence_bits for i in places}
        return sorted(places, key=lambda i: -said[i])[:most]


def shape_of(reading: Reading) -> Shape:
    """How many rows a step has, and how many symbols it leaves; 0 for one that weighs every symbol."""
    return len(reading.rows), reading.symbol_count if isinstance(reading, SymbolSet) else 0


def agreeing_of(steps: Iterable[Reading], payload: int) -> Counter[Shape]:
    """How many of these steps, by their shape, agree with a payload."""
    return Counter([shape_of(step) for step in steps if isinstance(step, SymbolSet) and step.allows(payload)])


def bits_of_shapes(shapes: Mapping[Shape, int], soft: Iterable[float] = ()) -> float:
    """What hard steps of these shapes say, and beside them `soft` ones, one by one: the exact sum, rounded once."""
    hard = [count * (rows - log2(symbols)) for (rows, symbols), count in shapes.items() if symbols]
    return fsum([*hard, *soft])


def as_readings(readings: Readings | Iterable[Reading]) -> Readings:
    """Readings that can answer for all steps at once, made of any."""
    return cast("Readings", readings) if hasattr(readings, "e_values") else ReadingList(readings)
