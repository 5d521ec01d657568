"""What has been taken in of a log so far: accumulate its parts anywhere, merge them, judge once (law L9).

    state = accumulate(records, keys)    # on any machine that holds the keys, for any part of the log
    state.merge(other)                   # in the order of the log, as far as findings are to stand in it
    verdict = judge.verdict(state.intake())

A verdict from states that were merged in the order of the log is that of the whole log, to the bit; in another order
its numbers are the same. A state keeps what each record says, and whatever looks at records together (the payload
length, copies of a step, sums of evidence) waits until all of them are here.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import fsum, isfinite
from struct import Struct
from typing import Self

from agentmark.core.distribution import MAX_BEHAVIORS
from agentmark.core.errors import StateError
from agentmark.core.symbols import SYMBOL_BITS, Reading, SoftSymbols, SymbolSet
from agentmark.record import RecordError, StepRecord
from agentmark.verify.intake import Intake, Outcome, Step, read_record, sort_out
from agentmark.verify.keyring import CHECK_SIZE, Keyring

_MAGIC = b"AMST\x01"
_COUNT = Struct(">I")
_DOUBLE = Struct(">d")
# One byte tells which kind of reading follows, one which outcome; the order of the members is the format.
_NO_READING, _SYMBOL_SET, _SOFT_SYMBOLS = range(3)
# What reading one record can come to. The other outcomes need the whole log, and are no part of a state.
_OUTCOMES = (Outcome.USED, Outcome.IMPOSSIBLE, Outcome.UNREADABLE, Outcome.UNMARKED, Outcome.OTHER_KEY)
# Rounding may lift the mean of soft values above 1 by this much.
_MEAN_SLACK = 1e-9


class LogState:
    """Records and what they say under one set of keys. It holds no key, but what it holds opens the steps in it: keep
    a state, and the bytes of one, as confidential as the keys."""

    def __init__(self, keys_check: bytes | None = None) -> None:
        """`keys_check` is that of the keyring (`Keyring.check`); an empty state without one takes that of the first
        state merged into it."""
        self._keys_check = keys_check
        self._steps: list[Step] = []

    def __len__(self) -> int:
        """How many records it has taken in."""
        return len(self._steps)

    def update(self, step: Step) -> None:
        """Take in one record, as it was read."""
        self._steps.append(step)

    def merge(self, other: "LogState") -> None:
        """Add the part of a log that follows this one, taken in elsewhere under the same keys."""
        if self._keys_check is None and not self._steps:
            self._keys_check = other._keys_check
        elif other._keys_check != self._keys_check and (other._steps or other._keys_check is not None):
            raise ValueError("log states that were read with other keys cannot be merged")
        self._steps += other._steps

    def intake(self, payload_len: int | None = None) -> Intake:
        """Which records count, now that all are here. `payload_len`: by default the one that most records state."""
        return sort_out(self._steps, payload_len)

    def to_bytes(self) -> bytes:
        """Magic, the check of the keys, the number of records; for each its outcome, its line of JSON, and its
        reading. Big-endian."""
        parts = [_MAGIC, (self._keys_check or b"").ljust(CHECK_SIZE, b"\0"), _COUNT.pack(len(self._steps))]
        for step in self._steps:
            parts += [bytes([_OUTCOMES.index(step.outcome)]), _framed(step.record.to_json().encode("utf-8"))]
            parts += _reading_parts(step.reading)
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The state that these bytes are of; StateError if they are of none.

        What no reading can be is refused. Whether a reading is that of its record, only the keys could tell.
        """
        if not data.startswith(_MAGIC):
            raise StateError("not a log state of version 1")
        source = _Source(data, len(_MAGIC))
        check = source.take(CHECK_SIZE)
        state = cls(check if any(check) else None)
        for number in range(source.count()):
            state._steps.append(_step(source, f"{number + 1} of a log state"))
        source.expect_end()
        return state


def accumulate(records: Iterable[StepRecord], keys: Keyring) -> LogState:
    """The state of these records. A step that stands in them many times is read once."""
    state = LogState(keys.check)
    read: dict[bytes, Step] = {}
    for record in records:
        known = read.get(record.context)
        if known is not None and _reads_alike(known.record, record):
            step = replace(known, record=record)
        else:
            step = read[record.context] = read_record(record, keys)
        state.update(step)
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
    return [bytes([_SOFT_SYMBOLS]), *shared, *map(_DOUBLE.pack, reading.values)]


def _step(source: "_Source", where: str) -> Step:
    number = source.byte()
    if number >= len(_OUTCOMES):
        raise StateError(f"record {where}: unknown outcome {number}")
    outcome = _OUTCOMES[number]
    try:
        record = StepRecord.from_json(source.framed(), where=where)
    except RecordError as error:
        raise StateError(str(error)) from None
    reading = _reading(source, record.payload_len, where)
    if (outcome is Outcome.USED) != (reading is not None) or (outcome is Outcome.USED and not record.marked):
        raise StateError(f"record {where}: its outcome and its reading contradict each other")
    return Step(record, outcome, reading)


def _reading(source: "_Source", payload_len: int, where: str) -> Reading | None:
    kind = source.byte()
    if kind == _NO_READING:
        return None
    count = source.count()
    if count > MAX_BEHAVIORS.bit_length() or (kind == _SOFT_SYMBOLS and count != SYMBOL_BITS):
        raise StateError(f"record {where}: {count} rows are not those of a step")
    rows = tuple([source.framed_number() for _ in range(count)])
    pad = source.framed_number()
    if any(row >> payload_len for row in rows) or pad >> count:
        raise StateError(f"record {where}: a row or pad is too long")
    if kind == _SYMBOL_SET:
        symbols = source.framed_number()
        # The highest symbol must be one of 2^count; compared by lengths, so that no count makes a huge number.
        if symbols == 0 or (symbols.bit_length() - 1).bit_length() > count:
            raise StateError(f"record {where}: a set of symbols that no step leaves")
        return SymbolSet(rows, pad, symbols)
    if kind == _SOFT_SYMBOLS:
        values = tuple([_DOUBLE.unpack(source.take(8))[0] for _ in range(1 << count)])
        # Each step's e-value has mean 1 at most (law L8): evidence that was made up would not.
        valid = all(isfinite(value) and value >= 0 for value in values)
        if not valid or fsum(values) > len(values) * (1 + _MEAN_SLACK):
            raise StateError(f"record {where}: values that are no e-values")
        return SoftSymbols(rows, pad, values)
    raise StateError(f"record {where}: a reading of unknown kind {kind}")


class _Source:
    """Bytes, taken from the front. What is cut short or padded is refused."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise StateError("log state is cut short")
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
        digits = self.framed()
        if digits.startswith(b"\0"):
            raise StateError("log state holds a number with leading zeros")
        return int.from_bytes(digits, "big")

    def expect_end(self) -> None:
        if self._at != len(self._data):
            raise StateError("log state is padded")
