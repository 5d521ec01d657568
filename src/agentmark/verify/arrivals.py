"""Which records of a growing log count, decided as each arrives and never again (spec, section 9.5).

A context is settled by the first record of it that counts, or that says the agent did not obey. Whatever comes later of
a settled context is reported by its kind and changes nothing. So nobody can take a step back, in whatever way its copy
is written.
"""

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from hashlib import blake2b
from struct import Struct

from agentmark.core.prf import DIGEST_SIZE
from agentmark.record import StepRecord

# What is kept of the record that settled a context: whether its step counts, its payload length, and short digests of
# its key id, of its scheme and choice, and of its list.
_ENTRY = Struct(">?H8s16s16s")
ENTRY_SIZE = DIGEST_SIZE + _ENTRY.size
# A list of which only a part was logged: it can be compared with no other.
_PART = bytes(16)
_ERASED = _ENTRY.pack(False, 0, bytes(8), bytes(16), bytes(16))


class Arrival(StrEnum):
    """What became of a record when it arrived."""

    COUNTED = "counted"
    # Of a context that is not settled, and is not settled by this record, unless it says that the agent did not obey.
    IMPOSSIBLE = "impossible under this key"
    UNREADABLE = "weights not logged"
    UNMARKED = "unmarked"
    NOT_ENFORCED = "not enforced"
    OTHER_KEY = "other key"
    OTHER_LENGTH = "other payload length"
    # Of a context whose step counts. All of these leave it as it is.
    DUPLICATE = "duplicate"
    IN_PART = "copy with a part of the list"
    CONFLICTING_COPY = "conflicting copy"
    UNMARKED_COPY = "copy that says unmarked"
    NOT_ENFORCED_COPY = "copy that says not enforced"
    OTHER_KEY_COPY = "copy under another key"
    OTHER_LENGTH_COPY = "copy of another payload length"


# What would have taken a step out of the evidence, had it been let.
RETRACTIONS = (
    Arrival.CONFLICTING_COPY,
    Arrival.UNMARKED_COPY,
    Arrival.NOT_ENFORCED_COPY,
    Arrival.OTHER_KEY_COPY,
    Arrival.OTHER_LENGTH_COPY,
)


class Contexts:
    """The contexts that are settled, with just enough of the record that settled each to tell what a copy is."""

    def __init__(self) -> None:
        self._settled: dict[bytes, bytes] = {}
        self.arrivals: Counter[Arrival] = Counter()

    def __len__(self) -> int:
        return len(self._settled)

    def copy_kind(self, record: StepRecord) -> Arrival | None:
        """What this record is to the one that settled its context; None if nothing has settled it. Needs no key."""
        entry = self._settled.get(record.context)
        if entry is None:
            return None
        counts, payload_len, key, choice, listed = _ENTRY.unpack(entry)
        if not counts:
            # The agent's disobedience speaks for all copies of the step, as it does in `intake`.
            return Arrival.NOT_ENFORCED
        own = _list_digest(record)
        conflicts = _choice_digest(record) != choice or (own != listed and _PART not in (own, listed))
        kinds = (
            (not record.marked, Arrival.UNMARKED_COPY),
            (record.enforced is False, Arrival.NOT_ENFORCED_COPY),
            (record.payload_len != payload_len, Arrival.OTHER_LENGTH_COPY),
            (_digest(record.key_id, 8) != key, Arrival.OTHER_KEY_COPY),
            (conflicts, Arrival.CONFLICTING_COPY),
            (own != listed, Arrival.IN_PART),
            (True, Arrival.DUPLICATE),
        )
        return next(kind for holds, kind in kinds if holds)

    def settle(self, record: StepRecord) -> None:
        """This record's step counts from now on, whatever is said of it later."""
        self._settled[record.context] = _ENTRY.pack(
            True, record.payload_len, _digest(record.key_id, 8), _choice_digest(record), _list_digest(record)
        )

    def erase(self, record: StepRecord) -> None:
        """The agent did not obey: no record of this step will count."""
        self._settled[record.context] = _ERASED

    def entries(self) -> Iterator[bytes]:
        """What is kept of each context, in the order in which they were settled."""
        return (context + entry for context, entry in self._settled.items())

    def restore(self, entry: bytes) -> None:
        """Take back what `entries` gave; ValueError for what it cannot have given."""
        context, kept = entry[:DIGEST_SIZE], entry[DIGEST_SIZE:]
        if len(entry) != ENTRY_SIZE or context in self._settled:
            raise ValueError("a context was settled twice, or is cut short")
        self._settled[context] = kept


def _digest(text: str, size: int) -> bytes:
    return blake2b(text.encode(), digest_size=size).digest()


def _choice_digest(record: StepRecord) -> bytes:
    return _digest(f"{record.scheme} {record.behavior}", 16)


def _list_digest(record: StepRecord) -> bytes:
    distribution = record.distribution
    return _PART if distribution is None else _digest(repr((distribution.behaviors, distribution.weights)), 16)
