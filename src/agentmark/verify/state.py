"""What has been taken in of a log so far: accumulate its parts anywhere, merge them, judge once (law L9).

    state = accumulate(records, keys)    # on any machine that holds the keys, for any part of the log
    state.merge(other)                   # in the order of the log, as far as findings are to stand in it
    verdict = judge.verdict(state.intake())

A verdict from states that were merged in the order of the log is that of the whole log, to the bit; in another order
its numbers are the same. A state keeps what each record says, and whatever looks at records together (the payload
length, copies of a step, sums of evidence) waits until all of them are here.
"""

from collections.abc import Collection, Iterable, Set
from typing import Self

from agentmark.core.errors import StateError
from agentmark.core.symbols import DISAGREEING
from agentmark.record import RecordError, StepRecord
from agentmark.verify.intake import COUNTED_AGAINST, READ_OUTCOMES, Intake, Outcome, Step, read_record, sort_out
from agentmark.verify.keyring import CHECK_SIZE, Keyring
from agentmark.verify.reading_bytes import Source, count_bytes, framed, read_reading, reading_parts
from agentmark.verify.work import Work

_MAGIC = b"AMST\x01"


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

    def intake(
        self,
        payload_len: int | None = None,
        *,
        disclosed: Collection[str] = frozenset(),
        divided: Set[bytes] = frozenset(),
    ) -> Intake:
        """Which records count, now that all are here. `payload_len`: by default the one that most steps state.
        `disclosed`: the keys that were read by disclosures (`Keyring.disclosed`). `divided`: as `sort_out` has it."""
        return sort_out(self._steps, payload_len, disclosed=disclosed, divided=divided)

    def proved(self, payload_len: int, disclosed: Collection[str]) -> frozenset[bytes]:
        """The contexts of records of this length that a disclosure proves."""
        return frozenset(
            [
                step.record.context
                for step in self._steps
                if step.record.key_id in disclosed
                and step.record.payload_len == payload_len
                and step.record.marked
                and step.outcome not in COUNTED_AGAINST
            ]
        )

    def to_bytes(self) -> bytes:
        """Magic, the check of the keys, the number of records; for each its outcome, its line of JSON, and its
        reading. Big-endian."""
        parts = [_MAGIC, (self._keys_check or b"").ljust(CHECK_SIZE, b"\0"), count_bytes(len(self._steps))]
        for step in self._steps:
            parts += [bytes([READ_OUTCOMES.index(step.outcome)]), framed(step.record.to_json().encode("utf-8"))]
            parts += reading_parts(step.reading)
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The state that these bytes are of; StateError if they are of none.

        What no reading can be is refused. Whether a reading is that of its record, only the keys could tell.
        """
        if not data.startswith(_MAGIC):
            raise StateError("not a log state of version 1")
        source = Source(data, len(_MAGIC))
        check = source.take(CHECK_SIZE)
        state = cls(check if any(check) else None)
        for number in range(source.count()):
            state._steps.append(_step(source, f"{number + 1} of a log state"))
        source.expect_end()
        return state


def accumulate(records: Iterable[StepRecord], keys: Keyring, work: Work | None = None) -> LogState:
    """The state of these records. A step that stands in them many times is read once; with `work`, records that are
    beyond it are not."""
    state = LogState(keys.check)
    read: dict[bytes, Step] = {}
    for record in records:
        known = read.get(record.context)
        # A disclosure proves records, not steps: what it says of one it does not say of a copy.
        if known is not None and _reads_alike(known.record, record) and not keys.is_disclosed(record):
            step = known._replace(record=record)
        else:
            step = read[record.context] = read_record(record, keys, work)
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


def _step(source: Source, where: str) -> Step:
    number = source.byte()
    if number >= len(READ_OUTCOMES):
        raise StateError(f"record {where}: unknown outcome {number}")
    outcome = READ_OUTCOMES[number]
    try:
        record = StepRecord.from_json(source.framed(), where=where)
    except RecordError as error:
        raise StateError(str(error)) from None
    reading = read_reading(source, record.payload_len, where)
    against = outcome in COUNTED_AGAINST
    counts = outcome is Outcome.USED or (against and record.marked)
    if counts != (reading is not None) or (outcome is Outcome.USED and not record.marked):
        raise StateError(f"record {where}: its outcome and its reading contradict each other")
    if against and reading not in (None, DISAGREEING):
        raise StateError(f"record {where}: it is not proved, and speaks for somebody")
    return Step(record, outcome, reading)
