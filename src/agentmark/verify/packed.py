"""Readings as arrays, straight from their bytes (`reading_bytes.pack_readings`): for logs that are kept while others
are judged, and for many short logs asked together. Needs NumPy; `unpacked` makes objects where it is absent.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from math import log2
from typing import Any

from agentmark.core.errors import StateError
from agentmark.core.symbols import SYMBOL_COUNT, Reading, SoftSymbols, SymbolSet
from agentmark.verify.reading_bytes import (
    EQUATIONS,
    MEAN_SLACK,
    MOST_ROWS,
    PACKED,
    PACKED_HEAD,
    SET_SIZE,
    SOFT,
    SYMBOLS,
    Source,
    row_size,
)
from agentmark.verify.readings import EValues, ReadingList, Readings, Shape, agreeing_of, bits_of_shapes

# Logs of so few steps keep the objects that were made of them.
SHORT = 512
# log2 of every number of symbols that a step can leave, as Python's own arithmetic has it.
_LOG2 = [0.0, *[log2(count) for count in range(1, SYMBOL_COUNT + 1)]]


def unpacked(data: bytes, payload_len: int) -> Readings:
    """The readings that these bytes are of; StateError if they are of none."""
    if find_spec("numpy"):
        return PackedReadings.from_bytes(data, payload_len)
    return ReadingList.from_bytes(data, payload_len)


def joined(parts: Sequence[Readings], payload_len: int) -> Readings:
    """The readings of all parts, in their order."""
    if find_spec("numpy"):
        return PackedReadings.concat([_packed(part, payload_len) for part in parts], payload_len)
    return ReadingList([reading for part in parts for reading in part])


def _packed(readings: Readings, payload_len: int) -> "PackedReadings":
    if isinstance(readings, PackedReadings):
        return readings
    return PackedReadings.from_bytes(readings.to_bytes(payload_len), payload_len)


class PackedReadings:
    """Readings whose parts stand in arrays; an object is made of a step when somebody asks for it."""

    # Kind, number of rows, pad and symbol of each step; the rows of all, a step's one behind the other; sets and values
    # of those steps that have them. Then what follows from these.
    def __init__(self, payload_len: int, columns: Mapping[str, Any]) -> None:
        self._payload_len = payload_len
        self._columns = columns
        self._asked: tuple[int, EValues] | None = None
        self._shapes: dict[Shape, int] | None = None
        self._made: list[Reading] | None = None

    # Those that are cut and handed on are many more than those that are asked what they say, so what answers need is
    # made at the first question.

    @cached_property
    def _widths(self) -> Any:
        import numpy

        return self._columns["widths"].astype(numpy.int64)

    @cached_property
    def _starts(self) -> Any:
        """Where the rows of each step begin, and where those of the last one end."""
        import numpy

        return numpy.concatenate([numpy.zeros(1, numpy.int64), numpy.cumsum(self._widths)])

    @cached_property
    def _sets_at(self) -> Any:
        import numpy

        return numpy.cumsum(self._columns["kinds"] == SYMBOLS) - 1

    @cached_property
    def _soft_at(self) -> Any:
        import numpy

        return numpy.cumsum(self._columns["kinds"] == SOFT) - 1

    @cached_property
    def _counts(self) -> Any:
        """How many symbols each step leaves; 0 for one that has values for all of them."""
        import numpy

        kinds = self._columns["kinds"]
        counts = numpy.ones(len(kinds), numpy.int64)
        counts[kinds == SYMBOLS] = numpy.bitwise_count(self._columns["sets"]).sum(axis=1, dtype=numpy.int64)
        counts[kinds == SOFT] = 0
        return counts

    @cached_property
    def _shape_codes(self) -> Any:
        """The shape of each step as a number."""
        return self._widths * (SYMBOL_COUNT + 1) + self._counts

    @cached_property
    def _owner(self) -> Any:
        """Which step a row is of."""
        import numpy

        return numpy.repeat(numpy.arange(len(self)), self._widths)

    @cached_property
    def _shift(self) -> Any:
        """The place of a row's parity in the symbol of its step."""
        import numpy

        owner = self._owner
        return self._widths[owner] - 1 - (numpy.arange(len(owner)) - self._starts[owner])

    @classmethod
    def from_bytes(cls, data: bytes, payload_len: int) -> "PackedReadings":
        """The readings that these bytes are of; StateError if they are of none, or hold what no step can say."""
        import numpy

        if not data.startswith(PACKED):
            raise StateError("not readings of version 1")
        source = Source(data, len(PACKED))
        count, length = PACKED_HEAD.unpack(source.take(PACKED_HEAD.size))
        if length != payload_len:
            raise StateError(f"readings of {length} bits where {payload_len} were expected")

        def column(kind: str, size: int) -> Any:
            array = numpy.dtype(kind)
            return numpy.frombuffer(source.take(array.itemsize * size), dtype=array)

        kinds, widths = column("<u1", count), column("<u1", count)
        pads, symbols = column("<u4", count), column("<u4", count)
        if bool((kinds > SOFT).any()):
            raise StateError("readings of an unknown kind")
        words = row_size(payload_len) // 8
        total = int(widths.sum(dtype=numpy.int64))
        columns = {
            "kinds": kinds,
            "widths": widths,
            "pads": pads,
            "symbols": symbols,
            "rows": column("<u8", total * words).reshape(total, words),
            "sets": column("<u1", SET_SIZE * int((kinds == SYMBOLS).sum())).reshape(-1, SET_SIZE),
            "values": column("<f8", SYMBOL_COUNT * int((kinds == SOFT).sum())).reshape(-1, SYMBOL_COUNT),
        }
        source.expect_end()
        _check(columns, payload_len)
        return cls(payload_len, columns)

    @classmethod
    def concat(cls, parts: Sequence["PackedReadings"], payload_len: int) -> "PackedReadings":
        import numpy

        if not parts:
            return cls.from_bytes(ReadingList().to_bytes(payload_len), payload_len)
        names = parts[0]._columns
        return cls(payload_len, {name: numpy.concatenate([part._columns[name] for part in parts]) for name in names})

    def stretch(self, begin: int, end: int) -> "PackedReadings":
        """The steps from one place to another, without copying them."""
        columns = self._columns
        cut = {name: columns[name][begin:end] for name in ("kinds", "widths", "pads", "symbols")}
        cut["rows"] = columns["rows"][self._starts[begin] : self._starts[end]]
        for name in ("sets", "values"):
            cut[name] = columns[name]
            if len(cut[name]):
                at = self._sets_at if name == "sets" else self._soft_at
                first, last = (0 if place == 0 else int(at[place - 1]) + 1 for place in (begin, end))
                cut[name] = cut[name][first:last]
        return PackedReadings(self._payload_len, cut)

    def __len__(self) -> int:
        return len(self._columns["kinds"])

    def __iter__(self) -> Iterator[Reading]:
        return iter(self._objects())

    def __getitem__(self, index: int, /) -> Reading:
        if len(self) <= SHORT:
            return self._objects()[index]
        return self.take([range(len(self))[index]])._objects()[0]

    def _objects(self) -> list[Reading]:
        """Every step as an object; those of a short log are kept, for they are asked for again and again."""
        if self._made is not None:
            return self._made
        columns = self._columns
        size = row_size(self._payload_len)
        data = columns["rows"].tobytes()
        rows = columns["rows"].ravel().tolist() if size == 8 else _numbers(data, size, int(self._starts[-1]))
        sets = iter(_numbers(columns["sets"].tobytes(), SET_SIZE, len(columns["sets"])))
        values = iter(columns["values"].tolist())
        made: list[Reading] = []
        at = 0
        steps = zip(*[columns[name].tolist() for name in ("kinds", "widths", "pads", "symbols")], strict=True)
        for kind, width, pad, symbol in steps:
            own = tuple(rows[at : at + width])
            at += width
            if kind == SOFT:
                made.append(SoftSymbols(own, pad, tuple(next(values))))
            else:
                made.append(SymbolSet(own, pad, 1 << symbol if kind == EQUATIONS else next(sets)))
        if len(made) <= SHORT:
            self._made = made
        return made

    def take(self, indices: Sequence[int], /) -> "PackedReadings":
        import numpy

        chosen = numpy.asarray(indices, dtype=numpy.int64)
        columns = self._columns
        widths = self._widths[chosen]
        ends = numpy.cumsum(widths)
        places = numpy.arange(ends[-1] if len(ends) else 0) + numpy.repeat(
            self._starts[chosen] - (ends - widths), widths
        )
        kinds = columns["kinds"][chosen]
        taken = {name: columns[name][chosen] for name in ("kinds", "widths", "pads", "symbols")}
        taken["rows"] = columns["rows"][places]
        taken["sets"], taken["values"] = columns["sets"], columns["values"]
        if len(taken["sets"]):
            taken["sets"] = taken["sets"][self._sets_at[chosen][kinds == SYMBOLS]]
        if len(taken["values"]):
            taken["values"] = taken["values"][self._soft_at[chosen][kinds == SOFT]]
        part = PackedReadings(self._payload_len, taken)
        if self._made is not None:
            part._made = [self._made[i] for i in chosen.tolist()]
        return part

    @property
    def shapes(self) -> Mapping[Shape, int]:
        import numpy

        if self._shapes is None:
            self._shapes = _shapes_of(numpy.bincount(self._shape_codes))
        return self._shapes

    @property
    def evidence_bits(self) -> float:
        return bits_of_shapes(self.shapes, [reading.evidence_bits for reading in self._soft()])

    @property
    def most_bits(self) -> float:
        return bits_of_shapes(self.shapes, [reading.most_bits for reading in self._soft()])

    def _soft(self) -> list[Reading]:
        import numpy

        places = numpy.flatnonzero(self._columns["kinds"] == SOFT)
        return self.take(places.tolist())._objects() if len(places) else []

    def e_values(self, payload: int, /) -> EValues:
        if self._asked is None or self._asked[0] != payload:
            self._asked = payload, self._e_values(payload)
        return self._asked[1]

    def agreeing(self, payload: int, /) -> Mapping[Shape, int]:
        import numpy

        if len(self) <= SHORT:
            return agreeing_of(self._objects(), payload)
        _, agree = self._met(payload)
        return _shapes_of(numpy.bincount(self._shape_codes[agree]))

    def by_shape(self, values: Mapping[Shape, float], /) -> Sequence[float]:
        import numpy

        table = numpy.zeros(int(self._shape_codes.max(initial=0)) + 1)
        for (rows, symbols), value in values.items():
            code = rows * (SYMBOL_COUNT + 1) + symbols
            if code < len(table):
                table[code] = value
        found: Sequence[float] = table[self._shape_codes].tolist()
        return found

    def _met(self, payload: int) -> tuple[Any, Any]:
        """The symbol that the payload has at each step, and whether it is among those that the step leaves."""
        import numpy

        columns = self._columns
        symbols = self._symbols(payload) ^ columns["pads"]
        kinds = columns["kinds"]
        agree = (kinds == EQUATIONS) & (symbols == columns["symbols"])
        several = numpy.flatnonzero(kinds == SYMBOLS)
        if len(several):
            own = symbols[several]
            agree[several] = columns["sets"][self._sets_at[several], own >> 3] >> (own & 7).astype(numpy.uint8) & 1
        return symbols, agree

    def _e_values(self, payload: int) -> EValues:
        import numpy

        columns = self._columns
        kinds = columns["kinds"]
        symbols, agree = self._met(payload)
        codes, gains = self._gains()
        values: Any = numpy.where(agree, gains[codes], 0.0)
        counts: Counter[float] = Counter()
        for code, count in enumerate(numpy.bincount(codes[agree]).tolist()):
            if count:
                counts[gains[code].item()] += count
        soft = numpy.flatnonzero(kinds == SOFT)
        if len(soft):
            values[soft] = columns["values"][self._soft_at[soft], symbols[soft]]
            counts.update(values[soft].tolist())
        against: Any = numpy.flatnonzero(~(values > 0))
        if len(against):
            counts[0.0] = len(against)
        return EValues(counts, values, against)

    def _gains(self) -> tuple[Any, Any]:
        """The shape of each step as a number, and 1 / q_t by that number."""
        import numpy

        codes = self._shape_codes
        gains = numpy.zeros(int(codes.max(initial=0)) + 1)
        for rows, symbols in self.shapes:
            if symbols:
                gains[rows * (SYMBOL_COUNT + 1) + symbols] = 1 / (symbols / (1 << rows))
        return codes, gains

    def _symbols(self, payload: int) -> Any:
        """A_t m of each step, the first row's parity most significant."""
        import numpy

        rows = self._columns["rows"]
        said = numpy.frombuffer(payload.to_bytes(row_size(self._payload_len), "little"), dtype="<u8")
        met = numpy.bitwise_count(rows & said)
        parities = (met[:, 0] if met.shape[1] == 1 else met.sum(axis=1, dtype=numpy.int64)) & 1
        if len(self) and bool((self._columns["widths"] == 8).all()):
            # Steps of R: eight flags are a byte.
            return numpy.packbits(parities.reshape(-1, 8).astype(numpy.uint8), axis=1).ravel().astype(numpy.int64)
        weights = parities.astype(numpy.int64) << self._shift
        return numpy.bincount(self._owner, weights=weights, minlength=len(self)).astype(numpy.int64)

    def to_bytes(self, payload_len: int, /) -> bytes:
        if payload_len != self._payload_len:
            raise ValueError(f"readings of {self._payload_len} bits are not of {payload_len}")
        order = ("kinds", "widths", "pads", "symbols", "rows", "sets", "values")
        body = b"".join([self._columns[name].tobytes() for name in order])
        return PACKED + PACKED_HEAD.pack(len(self), payload_len) + body

    def single(self) -> Sequence[int]:
        import numpy

        places: Sequence[int] = numpy.flatnonzero(self._counts == 1).tolist()
        return places

    def by_symbols(self, most: int, /) -> Sequence[int]:
        import numpy

        several = numpy.flatnonzero(self._counts > 1)
        order = several[numpy.argsort(self._counts[several], kind="stable")]
        places: Sequence[int] = order[:most].tolist()
        return places

    def bits(self) -> Sequence[float]:
        found: Sequence[float] = self._bits.tolist()
        return found

    @cached_property
    def _bits(self) -> Any:
        import numpy

        bits = self._widths - numpy.array(_LOG2)[numpy.minimum(self._counts, SYMBOL_COUNT)]
        bits[self._columns["kinds"] == SOFT] = [reading.evidence_bits for reading in self._soft()]
        return bits

    def by_evidence(self, most: int, /, *, single: bool = False) -> Sequence[int]:
        import numpy

        bits = self._bits
        chosen = numpy.flatnonzero(self._counts == 1) if single else numpy.arange(len(self))
        places: Sequence[int] = chosen[numpy.argsort(-bits[chosen], kind="stable")][:most].tolist()
        return places


def _shapes_of(counts: Any) -> dict[Shape, int]:
    """How many steps have which shape, from how many have which number of one."""
    return {divmod(code, SYMBOL_COUNT + 1): count for code, count in enumerate(counts.tolist()) if count}


def _numbers(data: bytes, size: int, count: int) -> list[int]:
    return [int.from_bytes(data[size * i : size * (i + 1)], "little") for i in range(count)]


def _check(columns: Mapping[str, Any], payload_len: int) -> None:
    """StateError for what no step can say: the same as `reading_bytes.unpack_readings` refuses."""
    import numpy

    kinds, widths = columns["kinds"], columns["widths"].astype(numpy.int64)
    sizes = numpy.left_shift(numpy.int64(1), widths.clip(0, 62))
    soft, sets = kinds == SOFT, kinds == SYMBOLS
    if bool((widths > MOST_ROWS).any()) or bool((widths[soft] != 8).any()):
        raise StateError("readings with rows that are not those of a step")
    top = payload_len % 64
    if bool((columns["pads"] >= sizes).any()) or (top and bool((columns["rows"][:, -1] >> numpy.uint64(top)).any())):
        raise StateError("readings with a row or pad that is too long")
    if bool((columns["symbols"] >= sizes).any()) or bool(columns["symbols"][kinds != EQUATIONS].any()):
        raise StateError("readings with a symbol that no step leaves")
    bits = numpy.unpackbits(columns["sets"], axis=1, bitorder="little")
    highest = SYMBOL_COUNT - 1 - numpy.argmax(bits[:, ::-1], axis=1)
    if bool((~bits.any(axis=1)).any()) or bool((highest >= sizes[sets]).any()):
        raise StateError("readings with a set of symbols that no step leaves")
    values = columns["values"]
    fine = numpy.isfinite(values) & (values >= 0)
    if not bool(fine.all()) or bool((values.sum(axis=1) > SYMBOL_COUNT * (1 + MEAN_SLACK)).any()):
        raise StateError("readings with values that are no e-values")
