"""A log of which is settled what counts: all that judging takes, without its records (spec, section 9, after step 5).

Records are large, and a verdict needs little of them. What is kept here is what each used step says, which context it
has, and what became of the records in numbers. It opens the steps in it: keep it, and the bytes of it, as confidential
as the keys.
"""

import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from json import dumps
from math import inf, isfinite
from typing import Any, Self

from agentmark.core.errors import StateError
from agentmark.core.payload import MAX_PAYLOAD_LEN
from agentmark.core.prf import DIGEST_SIZE
from agentmark.core.schemes import SCHEMES
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.verify.intake import COUNTED_AGAINST, Intake, OtherKeys, Outcome, Step, Tally
from agentmark.verify.reading_bytes import Source, framed
from agentmark.verify.readings import ReadingList, Readings

_MAGIC = b"AMSL\x01"


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedLog:
    """One log. Whatever is said of each step stands in the order of the contexts, which are all different."""

    # What it is called among others, and where its records were found.
    name: str = ""
    files: tuple[str, ...] = ()
    payload_len: int
    # False if it was not given and no record of ours states one; it is then 0.
    length_is_known: bool = True
    readings: Readings
    # The digests of the contexts, one behind the other.
    contexts: bytes
    # W / w_b of each step: 1 over the probability of the choice; 0 where not the whole list was logged.
    odds: "array[float]" = field(default_factory=lambda: array("d"))
    # Steps with whole lists whose choice is impossible under the key: they speak against everyone's ownership.
    impossible_lists: int = 0
    # Which key (a place in `tally.key_ids`) and which session each step is of. Empty where all are of one.
    key_of: "array[int]" = field(default_factory=lambda: array("i"))
    session_of: "array[int]" = field(default_factory=lambda: array("i"))
    tally: Tally
    keys_given: tuple[str, ...] = ()
    # What the records show of tampering, in sentences.
    tampering: tuple[str, ...] = ()

    def __len__(self) -> int:
        """How many steps count."""
        return len(self.readings)

    @classmethod
    def of(cls, intake: Intake, *, name: str = "", files: tuple[str, ...] = (), tampering: Iterable[str] = ()) -> Self:
        """What judging takes of a log whose records are here."""
        used = intake.in_order
        tally = intake.tally
        sessions = sorted({(step.record.key_id, step.record.session) for step in used})
        key_of, session_of = array("i"), array("i")
        if len(tally.key_ids) > 1:
            key_of.extend([tally.key_ids.index(step.record.key_id) for step in used])
        if len(sessions) > 1:
            number = {session: i for i, session in enumerate(sessions)}
            session_of.extend([number[step.record.key_id, step.record.session] for step in used])
        impossible = [step for step in intake.steps if step.outcome is Outcome.IMPOSSIBLE]
        return cls(
            name=name,
            files=files,
            payload_len=intake.payload_len,
            length_is_known=intake.length_is_known,
            readings=ReadingList([step.reading for step in used if step.reading is not None]),
            contexts=b"".join([step.record.context for step in used]),
            odds=array("d", [_odds(step) for step in used]),
            impossible_lists=sum([step.record.distribution is not None for step in impossible]),
            key_of=key_of,
            session_of=session_of,
            tally=tally,
            keys_given=intake.keys_given,
            tampering=tuple(tampering),
        )

    def context(self, place: int) -> bytes:
        """The context of one step."""
        return self.contexts[DIGEST_SIZE * place : DIGEST_SIZE * (place + 1)]

    def step_contexts(self) -> list[bytes]:
        """The contexts of all steps."""
        return [self.context(place) for place in range(len(self))]

    def parts(self) -> list[Readings]:
        """What the steps of each key say, and those of each session, where there are several: one agent's own, perhaps.
        Those that could say most come first."""
        groups = _grouped(self.key_of)
        sessions = _grouped(self.session_of)
        if len(sessions) > max(len(groups), 1):
            groups += sessions
        parts = [self.readings.take(places) for places in groups]
        return sorted(parts, key=lambda part: -part.evidence_bits)

    def ownership(self, contradicting: Sequence[int]) -> Counter[float]:
        """How many steps have which e-value in the evidence that the log was made with the key at all (spec, 9.4), if
        these contradict the payload."""
        counts = Counter(self.odds.tolist())
        against = self.impossible_lists
        for place in contradicting:
            counts[self.odds[place]] -= 1
            against += self.odds[place] > 0
        # Steps of which the whole list was not logged are left out.
        counts[0.0] = against
        return +counts

    def with_keys(self, keys_given: tuple[str, ...]) -> "SortedLog":
        """The same, said to be read with these keys."""
        return replace(self, keys_given=keys_given)

    def to_bytes(self) -> bytes:
        """Magic; a head of JSON; readings, contexts, odds, keys and sessions of the steps, each framed."""
        parts = [self._head(), self.readings.to_bytes(self.payload_len), self.contexts]
        parts += [_little_endian(column) for column in (self.odds, self.key_of, self.session_of)]
        return _MAGIC + b"".join([framed(part) for part in parts])

    def _head(self) -> bytes:
        tally = self.tally
        head = {
            "name": self.name,
            "files": self.files,
            "payload_len": self.payload_len,
            "length_is_known": self.length_is_known,
            "impossible_lists": self.impossible_lists,
            "counts": {outcome.name: count for outcome, count in tally.counts.items()},
            "schemes": tally.schemes,
            "key_ids": tally.key_ids,
            "mismatches": tally.mismatches,
            "other_keys": tally.other_keys.commonest,
            "other_key_count": tally.other_keys.count,
            "full_cost": float(tally.full_cost),
            "keys_given": self.keys_given,
            "tampering": self.tampering,
        }
        return dumps(head, ensure_ascii=True, separators=(",", ":")).encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes, read: Callable[[bytes, int], Readings] = ReadingList.from_bytes) -> Self:
        """The log that these bytes are of; StateError if they are of none. `read` makes the readings of their bytes and
        the payload length."""
        if not data.startswith(_MAGIC):
            raise StateError("not a sorted log of version 1")
        source = Source(data, len(_MAGIC))
        head = _head(source.framed())
        log = cls(
            name=head["name"],
            files=tuple(head["files"]),
            payload_len=head["payload_len"],
            length_is_known=head["length_is_known"],
            readings=read(source.framed(), head["payload_len"]),
            contexts=source.framed(),
            odds=_column("d", source.framed()),
            impossible_lists=head["impossible_lists"],
            key_of=_column("i", source.framed()),
            session_of=_column("i", source.framed()),
            tally=_tally(head),
            keys_given=tuple(head["keys_given"]),
            tampering=tuple(head["tampering"]),
        )
        source.expect_end()
        log._check()
        return log

    def _check(self) -> None:
        count = len(self.readings)
        contexts = self.step_contexts()
        if len(self.contexts) != DIGEST_SIZE * count or any(a >= b for a, b in pairwise(contexts)):
            raise StateError("sorted log: its contexts are not those of its steps, each once and in order")
        if len(self.odds) != count or not all(odds == 0 or 1 <= odds < inf for odds in self.odds):
            raise StateError("sorted log: odds that no choice has")
        if sum([self.tally.counts.get(outcome, 0) for outcome in (Outcome.USED, *COUNTED_AGAINST)]) != count:
            raise StateError("sorted log: its outcomes are not those of its steps")
        for column, most in ((self.key_of, len(self.tally.key_ids)), (self.session_of, count)):
            if column and (len(column) != count or not all(0 <= number < most for number in column)):
                raise StateError("sorted log: keys or sessions that are not those of its steps")


def _odds(step: Step) -> float:
    listed = step.record.distribution
    if step.outcome in COUNTED_AGAINST:
        # It counts against ownership too, whatever is left of its list.
        return 1.0
    return 0.0 if listed is None else 1 / listed.probability(step.record.behavior)


def _grouped(numbers: Sequence[int]) -> list[list[int]]:
    """The places of each number, lowest number first."""
    places: dict[int, list[int]] = {}
    for place, number in enumerate(numbers):
        places.setdefault(number, []).append(place)
    return [places[number] for number in sorted(places)]


def _little_endian(column: "array[Any]") -> bytes:
    if sys.byteorder == "little":
        return column.tobytes()
    swapped = array(column.typecode, column)
    swapped.byteswap()
    return swapped.tobytes()


def _column(typecode: str, data: bytes) -> "array[Any]":
    column = array(typecode)
    if len(data) % column.itemsize:
        raise StateError("sorted log: a column is cut short")
    column.frombytes(data)
    if sys.byteorder != "little":
        column.byteswap()
    return column


def _are_texts(said: object) -> bool:
    return isinstance(said, list) and all(isinstance(text, str) for text in said)


def _is_count(said: object) -> bool:
    return type(said) is int and said >= 0


_OUTCOMES = {outcome.name: outcome for outcome in Outcome}
# What a head holds, and what each entry is.
_HEAD: dict[str, Callable[[Any], bool]] = {
    "name": lambda said: isinstance(said, str),
    "files": _are_texts,
    "payload_len": lambda said: _is_count(said) and said <= MAX_PAYLOAD_LEN,
    "length_is_known": lambda said: isinstance(said, bool),
    "impossible_lists": _is_count,
    "counts": lambda said: isinstance(said, dict) and all(k in _OUTCOMES and _is_count(n) for k, n in said.items()),
    "schemes": lambda said: _are_texts(said) and all(scheme in SCHEMES for scheme in said),
    "key_ids": lambda said: _are_texts(said) and said == sorted(set(said)),
    "mismatches": _is_count,
    "other_keys": _are_texts,
    "other_key_count": _is_count,
    "full_cost": lambda said: isinstance(said, float) and isfinite(said) and said >= 0,
    "keys_given": _are_texts,
    "tampering": _are_texts,
}


def _head(data: bytes) -> dict[str, Any]:
    """The head of a log's bytes, each entry of its kind and none beside them."""
    try:
        head = parse_json(data)
    except StrictJsonError as error:
        raise StateError(f"sorted log: its head {error.fault}") from None
    if not isinstance(head, dict) or set(head) != set(_HEAD):
        raise StateError("sorted log: its head is not that of version 1")
    for name, fits in _HEAD.items():
        if not fits(head[name]):
            raise StateError(f"sorted log: {name} in its head is none")
    return head


def _tally(head: Mapping[str, Any]) -> Tally:
    return Tally(
        counts={_OUTCOMES[name]: count for name, count in head["counts"].items()},
        schemes=tuple(head["schemes"]),
        key_ids=tuple(head["key_ids"]),
        mismatches=head["mismatches"],
        other_keys=OtherKeys(tuple(head["other_keys"]), head["other_key_count"]),
        full_cost=head["full_cost"],
    )
