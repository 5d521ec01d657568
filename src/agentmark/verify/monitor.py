"""Watches a log that grows: an alarm that is valid at any time, however often one looks (spec, section 9.5).

`Verifier` judges a log that is all here, and takes back what copies contradict. Whoever sees its numbers and adds to
the log accordingly gets further tries. A monitor takes records one by one and takes nothing back: each context counts
once, by the first record of it that can be read, and each further payload length costs more.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hmac import compare_digest
from typing import Any, Self

from agentmark.core.errors import AgentMarkError
from agentmark.core.payload import PayloadLike
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.core.theory import false_positive_rate
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.keys.key import Key
from agentmark.record import StepRecord
from agentmark.text import counted, listed
from agentmark.verify.arrivals import ENTRY_SIZE, RETRACTIONS, Arrival, Contexts
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.followed import Crossing, Followed, Process, Purse, Question
from agentmark.verify.intake import Outcome, Step, read_record
from agentmark.verify.keyring import CHECK_SIZE, SEAL_SIZE, Keyring
from agentmark.verify.reading_bytes import Source, count_bytes, framed
from agentmark.verify.stranger import LISTED

_MAGIC = b"AMMO\x01"
_QUESTION_SIZE = 16


class MonitorStateError(AgentMarkError, ValueError):
    """A kept state that this monitor cannot go on from."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"monitor state: {fault}")
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Alarm:
    """An identity that has reached the line. It stands, whatever the log shows later."""

    payload: int
    payload_len: int
    identity: str | None
    # The record with which the line was reached, and the one with which that was found out: numbers from 1.
    record: int
    found_at: int
    evidence_bits: float
    bits_paid: float

    @property
    def surplus(self) -> float:
        return self.evidence_bits - self.bits_paid

    @property
    def false_positive_rate(self) -> float:
        return false_positive_rate(self.surplus)

    @property
    def named(self) -> str:
        """Who it is, in words."""
        if self.payload_len == 0:
            return "the holder of this key (the mark carries no identity)"
        digits = f"{self.payload:#0{2 + -(-self.payload_len // 4)}x}"
        return f"payload {digits}" if self.identity is None else f"{self.identity!r} (payload {digits})"

    def as_dict(self) -> dict[str, Any]:
        digits = -(-self.payload_len // 4)
        return {**asdict(self), "payload": f"{self.payload:0{digits}x}" if digits else "", "surplus": self.surplus}


@dataclass(frozen=True, slots=True)
class LengthSeen:
    """A payload length, in the order in which they came: its steps, and what naming one of its payloads costs more."""

    payload_len: int
    steps: int
    length_bits: float


@dataclass(frozen=True, slots=True)
class MonitorStatus:
    """Where a monitor stands. All of it may be shown to its operator; a stranger gets `for_stranger`."""

    threshold: float
    records: int
    # In the order in which they were raised; the first is the one that counts.
    alarms: tuple[Alarm, ...]
    # Of the payload with the largest surplus now. Nobody is named by it.
    evidence_bits: float
    bits_paid: float
    # The largest that any payload ever had.
    most_surplus: float
    arrivals: Counter[Arrival]
    lengths: tuple[LengthSeen, ...]
    searches: int

    @property
    def alarm(self) -> Alarm | None:
        return self.alarms[0] if self.alarms else None

    @property
    def surplus(self) -> float:
        return self.evidence_bits - self.bits_paid

    @property
    def p_value(self) -> float:
        """A p-value that is valid whenever one looks: 2^-(the largest surplus ever)."""
        return false_positive_rate(self.most_surplus)

    @property
    def steps(self) -> int:
        """Steps that count."""
        return self.arrivals[Arrival.COUNTED]

    @property
    def retractions(self) -> int:
        """Records that would have taken a step back, had they been let."""
        return sum(self.arrivals[kind] for kind in RETRACTIONS)

    @property
    def sentence(self) -> str:
        """Where it stands, in one sentence."""
        alarm = self.alarm
        if alarm is None:
            return (
                f"No alarm after {counted(self.records, 'record')}: the best identity has {self.surplus:.1f} bits of "
                f"surplus, and an alarm at {self.threshold:g} takes more."
            )
        return (
            f"Alarm: attributed to {alarm.named} with record {alarm.record:,}{self._further()}; a log made without "
            f"this key, or for another identity, ever comes this far with probability at most {self.threshold:g}."
        )

    def _further(self) -> str:
        """Those for whom the alarm was raised later: none of them is passed over."""
        further = [f"{alarm.named} with record {alarm.record:,}" for alarm in self.alarms[1:]]
        return f", and to {listed(further, LISTED)}" if further else ""

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON data (docs/monitor.md)."""
        return {
            "alarm": None if self.alarm is None else self.alarm.as_dict(),
            "further_alarms": [alarm.as_dict() for alarm in self.alarms[1:]],
            "sentence": self.sentence,
            "threshold": self.threshold,
            "records": self.records,
            "steps": self.steps,
            "evidence_bits": _finite(self.evidence_bits),
            "bits_paid": self.bits_paid,
            "surplus": _finite(self.surplus),
            "most_surplus": self.most_surplus,
            "p_value": self.p_value,
            "arrivals": {kind.value: count for kind, count in self.arrivals.items()},
            "retractions": self.retractions,
            "lengths": [asdict(length) for length in self.lengths],
            "searches": self.searches,
        }

    def for_stranger(self) -> dict[str, Any]:
        """What may be told to those who write the log, or ask from outside: no number that a record moves."""
        # In the order of their names: who came first is a number too.
        identities = sorted([alarm.identity or alarm.as_dict()["payload"] for alarm in self.alarms])
        return {"alarm": bool(self.alarms), "identities": identities, "threshold": self.threshold}


class Monitor:
    """Takes the records of a growing log one by one, in the order in which they arrive.

    What it holds opens the steps that it has seen, and so do the bytes of `to_bytes`: keep both as confidential as the
    keys.
    """

    def __init__(
        self,
        keys: Key | Iterable[Key],
        *,
        claim: PayloadLike = None,
        registry: Registry | None = None,
        payload_len: int | None = None,
        threshold: float = DEFAULT_THRESHOLD,
        noise: float | None = None,
        any_key_id: bool = False,
    ) -> None:
        """`claim` asks for one identity, `registry` for those in it as it is now; without either, any payload is found.

        With a `payload_len` (a registry has its own) records of others never count. Without, each length that comes
        up is followed, and the later it came up the more it costs. The other settings are those of `Verifier`.
        """
        self._keys = Keyring(keys, any_key_id=any_key_id)
        if self._keys.disclosed:
            # What is disclosed is over. And whoever adds a line in front of another's would be counted in its place.
            raise SettingError(
                "keys", "a disclosure proves a log that is finished, and a monitor watches one that grows"
            )
        self._question = Question(
            threshold=threshold, noise=noise, payload_len=payload_len, claim=claim, registry=registry
        )
        self._question_digest = self._question.digest(any_key_id=any_key_id)
        self._records = 0
        self._contexts = Contexts()
        self._lengths: dict[int, Followed] = {}
        self._alarms: list[Alarm] = []
        self._purse = Purse()

    @property
    def records(self) -> int:
        """How many records have arrived."""
        return self._records

    @property
    def alarm(self) -> Alarm | None:
        """The first that was raised, if any. It is never taken back."""
        return self._alarms[0] if self._alarms else None

    def update(self, record: StepRecord) -> Alarm | None:
        """Take in one record; the alarm that it raises, if it raises one."""
        return self._arrive(record, None)

    def take(self, step: Step) -> Alarm | None:
        """The same for a record that was read before, under the same keys (`intake.read_record`)."""
        return self._arrive(step.record, step)

    def _arrive(self, record: StepRecord, read: Step | None) -> Alarm | None:
        self._records += 1
        kind = self._contexts.copy_kind(record) or self._set_aside(record)
        if kind is not None:
            self._contexts.arrivals[kind] += 1
            return None
        step = read or read_record(record, self._keys)
        if step.reading is None:
            # Its pad has not been looked at, and whether it is impossible follows from other draws: another record of
            # this context may still count.
            self._contexts.arrivals[_UNREAD[step.outcome]] += 1
            return None
        self._contexts.arrivals[Arrival.COUNTED] += 1
        self._contexts.settle(record)
        self._purse.earn()
        crossings = self._followed(record.payload_len).take(step.reading, self._records)
        return self._raised(crossings, record.payload_len)

    def _set_aside(self, record: StepRecord) -> Arrival | None:
        """What can be said of the first record of a context before it is read; None if it is to be read."""
        if self._keys.key_for(record) is None:
            return Arrival.OTHER_KEY
        if not self._question.reads(record.payload_len):
            return Arrival.OTHER_LENGTH
        if record.enforced is False:
            self._contexts.erase(record)
        if not record.marked:
            return Arrival.UNMARKED
        return Arrival.NOT_ENFORCED if record.enforced is False else None

    def _followed(self, payload_len: int) -> Followed:
        if payload_len not in self._lengths:
            place = len(self._lengths) + 1
            self._lengths[payload_len] = Followed(self._question, payload_len, place, self._purse)
        return self._lengths[payload_len]

    def _raised(self, crossings: Iterable[Crossing], payload_len: int) -> Alarm | None:
        """The alarms of this record. Several that were found together are raised in the order of their records."""
        before = len(self._alarms)
        for crossing in sorted(crossings, key=lambda crossing: crossing.record):
            self._alarms.append(
                Alarm(
                    payload=crossing.payload,
                    payload_len=payload_len,
                    identity=self._question.name(crossing.payload),
                    record=crossing.record,
                    found_at=self._records,
                    evidence_bits=crossing.evidence_bits,
                    bits_paid=crossing.bits_paid,
                )
            )
        return self._alarms[before] if len(self._alarms) > before else None

    @property
    def surplus(self) -> float:
        """That of `status`, for those who look after every record."""
        best = self._best()
        return -self._cheapest() if best is None else best.surplus

    def _best(self) -> Process | None:
        """The payload with the largest surplus now; None if nobody is followed yet."""
        candidates = [followed.best for followed in self._lengths.values()]
        return max([process for process in candidates if process], key=lambda process: process.surplus, default=None)

    def status(self) -> MonitorStatus:
        """Where it stands. Looking changes nothing, and costs nothing."""
        best = self._best()
        # Before any step, and where a search has found nobody yet: no evidence, for the price of the cheapest.
        least = self._cheapest()
        return MonitorStatus(
            threshold=self._question.threshold,
            records=self._records,
            alarms=tuple(self._alarms),
            evidence_bits=0.0 if best is None else best.bits,
            bits_paid=least if best is None else best.bits_paid,
            most_surplus=max([-least, *[followed.most_surplus for followed in self._lengths.values()]]),
            arrivals=Counter(self._contexts.arrivals),
            lengths=tuple(
                [
                    LengthSeen(followed.payload_len, followed.steps, followed.length_bits)
                    for followed in self._lengths.values()
                ]
            ),
            searches=sum([followed.searches for followed in self._lengths.values()]),
        )

    def _cheapest(self) -> float:
        lengths = self._lengths or ([] if self._question.payload_len is None else [self._question.payload_len])
        first = next(iter(lengths), 0)
        return self._question.length_bits(1) + self._question.cheapest_bits(first)

    # Keeping a state: a restart must not forget.

    def to_bytes(self) -> bytes:
        """All that it knows, sealed under the keys.

        A state that is put back in the place of a newer one has forgotten what came between: those contexts would
        count again, for whoever has seen what they said. Keep states from being rolled back (docs/monitor.md).
        """
        head = {
            "records": self._records,
            "work": self._purse.spent,
            "arrivals": {kind.name: count for kind, count in self._contexts.arrivals.items()},
            "alarms": [_alarm_head(alarm) for alarm in self._alarms],
            "lengths": [followed.head() for followed in self._lengths.values()],
        }
        parts = [_MAGIC, self._keys.check, self._question_digest, framed(json.dumps(head).encode())]
        parts += [count_bytes(len(self._contexts)), *self._contexts.entries()]
        for followed in self._lengths.values():
            kept = followed.kept_steps()
            parts += [count_bytes(len(kept)), *map(framed, kept)]
        data = b"".join(parts)
        return data + self._keys.seal(data)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        keys: Key | Iterable[Key],
        *,
        claim: PayloadLike = None,
        registry: Registry | None = None,
        payload_len: int | None = None,
        threshold: float = DEFAULT_THRESHOLD,
        noise: float | None = None,
        any_key_id: bool = False,
    ) -> Self:
        """The monitor that these bytes are of. Keys and settings must be those that it was made with: another question
        is another monitor. What is damaged, altered or of other keys is refused (`MonitorStateError`)."""
        monitor = cls(
            keys,
            claim=claim,
            registry=registry,
            payload_len=payload_len,
            threshold=threshold,
            noise=noise,
            any_key_id=any_key_id,
        )
        monitor._restore(data)
        return monitor

    def _restore(self, data: bytes) -> None:
        if not data.startswith(_MAGIC):
            raise MonitorStateError("is none of version 1")
        body, seal = data[:-SEAL_SIZE], data[-SEAL_SIZE:]
        source = Source(body, len(_MAGIC))
        try:
            if source.take(CHECK_SIZE) != self._keys.check:
                raise MonitorStateError("was made under other keys, or is damaged")
            if not compare_digest(self._keys.seal(body), seal):
                raise MonitorStateError("is damaged, cut short or altered")
            if source.take(_QUESTION_SIZE) != self._question_digest:
                raise MonitorStateError(
                    "is of another question: claim, registry, payload length, threshold, noise or any_key_id differ. "
                    "Start a new monitor; the bounds of both add up"
                )
            self._take_back(source)
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, MonitorStateError):
                raise
            raise MonitorStateError(f"does not hold together: {error}") from None

    def _take_back(self, source: Source) -> None:
        try:
            head = parse_json(source.framed())
        except StrictJsonError:
            raise MonitorStateError("has a broken head") from None
        self._records = head["records"]
        self._contexts.arrivals.update({Arrival[name]: count for name, count in head["arrivals"].items()})
        self._alarms = [_alarm(**entry) for entry in head["alarms"]]
        self._purse.earn(self._contexts.arrivals[Arrival.COUNTED])
        self._purse.spent = float(head["work"])
        for _ in range(source.count()):
            self._contexts.restore(source.take(ENTRY_SIZE))
        for entry in head["lengths"]:
            kept = [source.framed() for _ in range(source.count())]
            self._followed(entry["payload_len"]).restore(entry, kept)
        source.expect_end()
        if sum(self._contexts.arrivals.values()) != self._records:
            raise MonitorStateError("has lost count of its records")


# What a record comes to that was read and says nothing.
_UNREAD = {Outcome.IMPOSSIBLE: Arrival.IMPOSSIBLE, Outcome.UNREADABLE: Arrival.UNREADABLE}


def _alarm_head(alarm: Alarm) -> dict[str, Any]:
    """Exact: doubles and payloads as hexadecimal text."""
    exact = {"payload": f"{alarm.payload:x}", "evidence": alarm.evidence_bits.hex(), "paid": alarm.bits_paid.hex()}
    return {
        **exact,
        "payload_len": alarm.payload_len,
        "identity": alarm.identity,
        "record": alarm.record,
        "found_at": alarm.found_at,
    }


def _alarm(
    *, payload: str, payload_len: int, identity: str | None, record: int, found_at: int, evidence: str, paid: str
) -> Alarm:
    return Alarm(
        payload=int(payload, 16),
        payload_len=payload_len,
        identity=identity,
        record=record,
        found_at=found_at,
        evidence_bits=float.fromhex(evidence),
        bits_paid=float.fromhex(paid),
    )


def _finite(bits: float) -> float | None:
    """JSON has no infinity: evidence that a single step has ruled out is null."""
    return None if bits == float("-inf") else bits
