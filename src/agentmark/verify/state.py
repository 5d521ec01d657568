"""What has been taken in of a log so far: accumulate its parts anywhere, merge them, judge once (law L9).

    state = LogState()
    state.update(record, keys)       # on any machine that holds the keys, for any part of the log
    state.merge(other)               # in the order of the log; the verdict itself does not depend on it
    verdict = judge.verdict(state.intake())

A verdict from merged states is that of the whole log, to the bit: a state keeps what each record says, and whatever
looks at records together (the payload length, copies of a step, sums of evidence) waits until all of them are here.
"""

from collections.abc import Iterable
from dataclasses import replace
from struct import Struct
from typing import Self

from agentmark.core.symbols import Reading, SoftSymbols, SymbolSet
from agentmark.record import StepRecord
from agentmark.verify.intake import Intake, Outcome, Step, read_record, sort_out
from agentmark.verify.keyring import Keyring

_MAGIC = b"AMST\x01"
_COUNT = Struct(">I")
_DOUBLE = Struct(">d")
# One byte tells which kind of reading follows, one which outcome; the order of the members is the format.
_NO_READING, _SYMBOL_SET, _SOFT_SYMBOLS = range(3)
_OUTCOMES = tuple(Outcome)


class LogState:
    """Records and what they say under one set of keys. It holds no key, but what it holds opens the steps in it: keep
    a state, and the bytes of one, as confidential as the keys."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        # A step that stands in a log many times is read once.
        self._by_context: dict[bytes, Step] = {}

    def __len__(self) -> int:
        """How many records it has taken in."""
        return len(self._steps)

    def update(self, record: StepRecord, keys: Keyring) -> None:
        """Take in one record: read it under its key, and remember what it says."""
        known = self._by_context.get(record.context)
        if known is not None and _reads_alike(known.record, record):
            step = replace(known, record=record)
        else:
            step = read_record(record, keys)
            self._by_context[record.context] = step
        self._steps.append(step)

    def merge(self, other: "LogState") -> None:
        """Add the part of a log that follows this one, taken in elsewhere under the same keys."""
        self._steps += other._steps
        self._by_context.update(other._by_context)

    def intake(self, payload_len: int | None = None) -> Intake:
        """Which records count, now that all are here. `payload_len`: by default the one that most records state."""
        return sort_out(self._steps, payload_len)

    def to_bytes(self) -> bytes:
        """Magic and the number of records; for each its outcome, its line of JSON, and its reading. Big-endian."""
        parts = [_MAGIC, _COUNT.pack(len(self._steps))]
        for step in self._steps:
            parts += [bytes([_OUTCOMES.index(step.outcome)]), _framed(step.record.to_json().encode("utf-8"))]
            parts += _reading_parts(step.reading)
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The state that these bytes are of; ValueError if they are of none."""
        if not data.startswith(_MAGIC):
            raise ValueError("not a log state of version 1")
        source = _Source(data, len(_MAGIC))
        state = cls()
        for number in range(source.count()):
            outcome = _outcome(source.byte())
            record = StepRecord.from_json(source.framed(), where=f"{number + 1} of a log state")
            step = Step(record, outcome, _reading(source))
            state._steps.append(step)
            state._by_context[record.context] = step
        source.expect_end()
        return state


def accumulate(records: Iterable[StepRecord], keys: Keyring) -> LogState:
    """The state of these records."""
    state = LogState()
    for record in records:
        state.update(record, keys)
    return state


def _reads_alike(known: StepRecord, record: StepRecord) -> bool:
    """Whether two records of one context have everything in common that a reading depends on."""
    return (
        known.scheme == record.scheme
        and known.key_id == record.key_id
        and known.payload_len == record.payload_len
        and known.marked == record.marked
        and known.behavior == record.behavior
        and known.distribution == record.distribution
        and known.partial_weights == record.partial_weights
    )


def _framed(data: bytes) -> bytes:
    return _COUNT.pack(len(data)) + data


def _framed_number(number: int) -> bytes:
    return _framed(number.to_bytes(-(-number.bit_length() // 8), "big"))


def _reading_parts(reading: Reading | None) -> list[bytes]:
    if reading is None:
        return [bytes([_NO_READING])]
    shared = [_COUNT.pack(len(reading.rows)), *map(_framed_number, reading.rows), _framed_number(reading.pad)]
    if isinstance(reading, SymbolSet):
        return [bytes([_SYMBOL_SET]), *shared, _framed_number(reading.symbols)]
    return [bytes([_SOFT_SYMBOLS]), *shared, _COUNT.pack(len(reading.values)), *map(_DOUBLE.pack, reading.values)]


def _reading(source: "_Source") -> Reading | None:
    kind = source.byte()
    if kind == _NO_READING:
        return None
    rows = tuple([source.framed_number() for _ in range(source.count())])
    pad = source.framed_number()
    if kind == _SYMBOL_SET:
        return SymbolSet(rows, pad, source.framed_number())
    if kind == _SOFT_SYMBOLS:
        return SoftSymbols(rows, pad, tuple([_DOUBLE.unpack(source.take(8))[0] for _ in range(source.count())]))
    raise ValueError(f"log state holds a reading of unknown kind {kind}")


def _outcome(number: int) -> Outcome:
    if number >= len(_OUTCOMES):
        raise ValueError(f"log state holds an unknown outcome {number}")
    return _OUTCOMES[number]


class _Source:
    """Bytes, taken from the front. What is cut short or padded is refused."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise ValueError("log state is cut short")
        self._at += size
        return self._data[self._at - size : self._at]

    def byte(self) -> int:
        return self.take(1)[0]

    def count(self) -> int:
        number: int = _COUNT.unpack(self.take(_COUNT.size))[0]
        return number

    def framed(self) -> bytes:
        return self.take(self.count())

    def framed_number(self) -> int:
        return int.from_bytes(self.framed(), "big")

    def expect_end(self) -> None:
        if self._at != len(self._data):
            raise ValueError("log state is padded")
