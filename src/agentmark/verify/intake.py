"""What each record says by itself, and which records of a log count (spec, section 9, steps 1 to 5).

Reading a record needs the key and nothing else of the log; which records count needs the whole log and no key. So the
first can be done anywhere, in any order, and the second is done once, when all parts have come together.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from math import fsum
from typing import NamedTuple

from agentmark.core.schemes import SCHEMES
from agentmark.core.symbols import DISAGREEING, Reading
from agentmark.disclosure.check import DisclosedSteps, Proved
from agentmark.keys.key import Key
from agentmark.record import StepRecord
from agentmark.verify.keyring import Keyring
from agentmark.verify.readings import ReadingList
from agentmark.verify.work import Work

# Of the keys that nobody gave, so many are named.
LISTED_KEYS = 5


class Outcome(StrEnum):
    """What became of a record. Only those that were used are evidence."""

    USED = "used"
    IMPOSSIBLE = "impossible under this key"
    UNREADABLE = "weights not logged"
    DUPLICATE = "duplicate"
    CONFLICTING = "conflicting copies"
    UNMARKED = "unmarked"
    NOT_ENFORCED = "not enforced"
    OTHER_KEY = "other key"
    OTHER_LENGTH = "other payload length"
    NOT_READ = "not read: work limit"
    # Of public mode: marked records that state the key and are not proved. They count, as disagreeing with everyone.
    NOT_DISCLOSED = Proved.NOT_DISCLOSED.value
    ALTERED = Proved.ALTERED.value
    NOT_PROVED = Proved.NOT_PROVED.value


# Outcomes of records that count against everyone, whatever they say.
COUNTED_AGAINST = frozenset({Outcome.NOT_DISCLOSED, Outcome.ALTERED, Outcome.NOT_PROVED})


# What reading one record can come to; the others need the whole log. States and columns keep an outcome as its place in
# here: the order is part of their formats.
READ_OUTCOMES = (
    Outcome.USED,
    Outcome.IMPOSSIBLE,
    Outcome.UNREADABLE,
    Outcome.UNMARKED,
    Outcome.OTHER_KEY,
    Outcome.NOT_READ,
    Outcome.NOT_DISCLOSED,
    Outcome.ALTERED,
    Outcome.NOT_PROVED,
)


class Step(NamedTuple):
    """One record, what became of it, and what it says if it was used."""

    record: StepRecord
    outcome: Outcome
    reading: Reading | None = None


@dataclass(frozen=True, slots=True)
class Intake:
    """A log, sorted. `steps` stand in the order of the records."""

    payload_len: int
    steps: tuple[Step, ...]
    # False if it was not given and no record of ours states one; it is then 0.
    length_is_known: bool = True
    # The ids of the keys that it was read with.
    keys_given: tuple[str, ...] = ()

    @property
    def used(self) -> list[Step]:
        return [step for step in self.steps if step.reading is not None]

    @property
    def in_order(self) -> list[Step]:
        """The used steps in the order of their contexts, which does not depend on that of the records."""
        return sorted(self.used, key=lambda step: step.record.context)

    @property
    def readings(self) -> ReadingList:
        """What the used steps say, in the order of their contexts."""
        return ReadingList([step.reading for step in self.in_order if step.reading is not None])

    @property
    def tally(self) -> "Tally":
        """What became of the records, in numbers."""
        used = [step.record for step in self.used]
        met = Counter([step.outcome for step in self.steps])
        stated = Counter([step.record.key_id for step in self.steps if step.outcome is Outcome.OTHER_KEY])
        costs = [reading_cost(step.record) for step in self.steps] if met[Outcome.NOT_READ] else []
        return Tally(
            counts={outcome: met[outcome] for outcome in Outcome if met[outcome]},
            schemes=tuple(sorted({record.scheme for record in used})),
            key_ids=tuple(sorted({record.key_id for record in used})),
            mismatches=sum([step.record.context_matches() is False for step in self.steps]),
            other_keys=OtherKeys.of(stated),
            full_cost=fsum(costs),
        )


@dataclass(frozen=True, slots=True)
class OtherKeys:
    """The keys that records state which none of the keys given reads: the commonest, and how many there are."""

    commonest: tuple[str, ...] = ()
    count: int = 0

    @classmethod
    def of(cls, stated: Mapping[str, int]) -> "OtherKeys":
        commonest = sorted(stated, key=lambda key_id: (-stated[key_id], key_id))
        return cls(tuple(commonest[:LISTED_KEYS]), len(stated))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of a log's records, in numbers: all of them that a verdict tells beside what the steps say."""

    # How many records met which outcome.
    counts: Mapping[Outcome, int] = field(default_factory=dict)
    # Of the used steps.
    schemes: tuple[str, ...] = ()
    key_ids: tuple[str, ...] = ()
    # Records whose raw context is not that of their digest.
    mismatches: int = 0
    other_keys: OtherKeys = OtherKeys()
    # What reading all of them costs, in operations, if some were not read; else 0.
    full_cost: float = 0.0

    @property
    def records(self) -> int:
        return sum(self.counts.values())


def reading_cost(record: StepRecord) -> float:
    """What reading a record costs, in operations: known from its size, before any key is used."""
    listed, part = record.distribution, record.partial_weights or {}
    # What has no weight does not run; it stands last in a whole list.
    names: Sequence[str]
    if listed is None:
        names = [name for name, weight in part.items() if weight]
    else:
        names = listed.behaviors[: len(listed) - listed.weights.count(0)]
    return SCHEMES[record.scheme].read_cost(names, payload_len=record.payload_len, whole=listed is not None)


def read_record(record: StepRecord, keys: Keyring, work: Work | None = None) -> Step:
    """Steps 1 and 5, for one record: what it says under the key that is meant to read it.

    It is read under the payload length that it states, since under another it is set aside anyway. A record that the
    work does not reach for is not read. That depends on the order and the sizes of the records, which whoever made the
    log chose before any draw of the key: those that are read have the same bound as if the others were not there.
    """
    key = keys.key_for(record)
    if key is None:
        return Step(record, Outcome.OTHER_KEY)
    if not record.marked:
        # A line that takes a step out has to be proved as well, and one that is not marked never is.
        unproved = record.enforced is False and isinstance(key, DisclosedSteps)
        return Step(record, Outcome.NOT_DISCLOSED if unproved else Outcome.UNMARKED)
    if isinstance(key, DisclosedSteps):
        # Read in any case: lines that somebody adds to a packed log would else keep genuine ones from being read, and
        # choose what is left. Checking the proof costs more than reading does, and only listed records have one.
        return _read_disclosed(record, key)
    if work is not None and not work.take(reading_cost(record)):
        return Step(record, Outcome.NOT_READ)
    return read_step(record, key, record.payload_len)


def _read_disclosed(record: StepRecord, steps: DisclosedSteps) -> Step:
    """What a record says by its disclosed step key. One that is not proved disagrees: whoever may choose what to prove
    would leave out what speaks against him (spec, section 12.3)."""
    proof = steps.proof_of(record)
    if proof.step_key is None:
        return Step(record, Outcome(proof.proved.value), DISAGREEING)
    return _read_under(record, proof.step_key, record.payload_len)


def read_step(record: StepRecord, key: Key, payload_len: int) -> Step:
    """Recompute one step's draws: equations from F, a set of symbols from R, soft symbols from a part of a list."""
    return _read_under(record, key.step_key(record.context, payload_len), payload_len)


def _read_under(record: StepRecord, step_key: bytes, payload_len: int) -> Step:
    scheme = SCHEMES[record.scheme]
    reading: Reading | None
    if record.distribution is not None:
        reading = scheme.read(record.distribution, step_key, record.behavior, payload_len=payload_len)
    elif record.partial_weights is None or not scheme.reads_partial_lists:
        return Step(record, Outcome.UNREADABLE)
    else:
        reading = scheme.read_partial(record.partial_weights, step_key, record.behavior, payload_len=payload_len)
    return Step(record, Outcome.IMPOSSIBLE if reading is None else Outcome.USED, reading)


def sort_out(
    steps: Sequence[Step],
    payload_len: int | None = None,
    *,
    disclosed: Collection[str] = frozenset(),
    divided: Set[bytes] = frozenset(),
) -> Intake:
    """Steps 2 to 4, for the whole log: which of the records that were read count. `disclosed` are the ids of keys that
    were read by what their holders disclosed, `divided` contexts that other logs prove as well (`many.judge_roll`).

    Nothing is dropped in silence: every record is in the result, with its outcome.
    """
    log = [step.record for step in steps]
    # Records of other keys are out already (1); of the others nothing is decided yet.
    outcomes: list[Outcome | None] = [step.outcome if step.outcome is Outcome.OTHER_KEY else None for step in steps]

    # (2) Fix the payload length, and set aside records of another.
    length_is_known = payload_len is not None or None in outcomes
    if payload_len is None:
        payload_len = _stated_payload_len(log, outcomes)
    for i, record in enumerate(log):
        if outcomes[i] is None and record.payload_len != payload_len:
            outcomes[i] = Outcome.OTHER_LENGTH

    # In public mode, before anything can take a step out: one of which a copy is not proved disagrees with everyone.
    disagreeing = _disagreeing(steps, outcomes, _of_several_keys(steps, outcomes, disclosed) | divided)

    # (3) Steps without the mark, or that the agent did not obey, are erasures.
    _set_aside_erasures(log, outcomes)

    # (4) A context counts once (L4), by its fullest copy. Copies that disagree cannot all be genuine: none counts.
    _set_aside_copies(log, outcomes)
    sorted_out = [
        step
        if outcome is None
        else Step(step.record, outcome, DISAGREEING if i in disagreeing and outcome in COUNTED_AGAINST else None)
        for i, (step, outcome) in enumerate(zip(steps, outcomes, strict=True))
    ]
    return Intake(payload_len, tuple(sorted_out), length_is_known)


def outcomes_without_key(records: Iterable[StepRecord]) -> list[Outcome | None]:
    """What steps 3 and 4 say of each record, for every key and payload length by itself; None: left to be read."""
    log = list(records)
    places: dict[tuple[str, int], list[int]] = defaultdict(list)
    for i, record in enumerate(log):
        places[record.key_id, record.payload_len].append(i)
    outcomes: list[Outcome | None] = [None] * len(log)
    for mine in places.values():
        part = [log[i] for i in mine]
        found: list[Outcome | None] = [None] * len(part)
        _set_aside_erasures(part, found)
        _set_aside_copies(part, found)
        for i, outcome in zip(mine, found, strict=True):
            outcomes[i] = outcome
    return outcomes


def _stated_payload_len(log: Sequence[StepRecord], outcomes: Sequence[Outcome | None]) -> int:
    """The length that most steps state: a step is a context, counted once however many copies of it there are.

    Steps that could be read (marked, with weights that their scheme reads) decide; of equals, all steps do; of equals,
    the longer length. No key enters into it, so that a second implementation, and a control, come to the same.
    """
    readable: dict[int, set[bytes]] = defaultdict(set)
    stated: dict[int, set[bytes]] = defaultdict(set)
    for record, outcome in zip(log, outcomes, strict=True):
        if outcome is None:
            stated[record.payload_len].add(record.context)
            if record.marked and _has_weights(record):
                readable[record.payload_len].add(record.context)
    return max(stated, key=lambda length: (len(readable[length]), len(stated[length]), length), default=0)


def _has_weights(record: StepRecord) -> bool:
    """Whether there is enough of the list for the scheme to read: all of it, or any part if the scheme reads parts."""
    if record.distribution is not None:
        return True
    return record.partial_weights is not None and SCHEMES[record.scheme].reads_partial_lists


def _set_aside_erasures(log: list[StepRecord], outcomes: list[Outcome | None]) -> None:
    # A later copy of a record may say that the agent did not obey: it speaks for all copies of that step.
    disobeyed = {
        record.context
        for record, outcome in zip(log, outcomes, strict=True)
        if outcome is None and record.enforced is False
    }
    for i, record in enumerate(log):
        if outcomes[i] is not None:
            continue
        if not record.marked:
            outcomes[i] = Outcome.UNMARKED
        elif record.context in disobeyed:
            outcomes[i] = Outcome.NOT_ENFORCED


def _disagreeing(steps: Sequence[Step], outcomes: list[Outcome | None], divided: Set[bytes]) -> set[int]:
    """The places of records that stand for steps of which not every copy is proved, or whose copies are of several keys
    or in several logs (`divided`; spec, section 12.3); their other copies are set aside. Whoever could erase such a
    step by a line of his own, proved by his own disclosure even, could choose what is left."""
    unproved = {
        step.record.context
        for step, outcome in zip(steps, outcomes, strict=True)
        if outcome is None and step.outcome in COUNTED_AGAINST
    } | divided
    copies: dict[bytes, list[int]] = defaultdict(list)
    for i, step in enumerate(steps):
        if outcomes[i] is None and step.record.context in unproved and step.record.marked:
            copies[step.record.context].append(i)
    standing = set()
    for places in copies.values():
        first = next((i for i in places if steps[i].outcome in COUNTED_AGAINST), places[0])
        for i in places:
            outcomes[i] = Outcome.CONFLICTING
        # All marked copies may be proved, and a line beside them not: it is that line that was added.
        counted = steps[first].outcome in COUNTED_AGAINST
        outcomes[first] = steps[first].outcome if counted else Outcome.ALTERED
        standing.add(first)
    return standing


def _of_several_keys(
    steps: Sequence[Step], outcomes: list[Outcome | None], disclosed: Collection[str]
) -> frozenset[bytes]:
    """Contexts of which records that count, or that take steps out, state a key that disclosed, and another."""
    if not disclosed:
        return frozenset()
    keys: dict[bytes, set[str]] = defaultdict(set)
    for step, outcome in zip(steps, outcomes, strict=True):
        if outcome is None and (step.record.marked or step.record.enforced is False):
            keys[step.record.context].add(step.record.key_id)
    return frozenset([context for context, ids in keys.items() if len(ids) > 1 and not ids.isdisjoint(disclosed)])


def _set_aside_copies(log: list[StepRecord], outcomes: list[Outcome | None]) -> None:
    first: dict[bytes, int] = {}
    # Of the contexts that stand more than once, which are few, all places.
    copies: dict[bytes, list[int]] = {}
    for i, record in enumerate(log):
        if outcomes[i] is None:
            earliest = first.setdefault(record.context, i)
            if earliest != i:
                copies.setdefault(record.context, [earliest]).append(i)
    for places in copies.values():
        # A copy that has the whole list stands for those that have lost a part of it.
        kept = next((i for i in places if log[i].distribution is not None), places[0])
        agree = all(i == kept or _is_copy(log[i], log[kept]) for i in places)
        for i in places:
            if not agree:
                outcomes[i] = Outcome.CONFLICTING
            elif i != kept:
                outcomes[i] = Outcome.DUPLICATE


def _is_copy(record: StepRecord, kept: StepRecord) -> bool:
    """The same, or the same with weights left out: those that are there must be the whole list's to the unit."""
    if (record.scheme, record.key_id, record.behavior) != (kept.scheme, kept.key_id, kept.behavior):
        return False
    if record.partial_weights is not None and kept.distribution is not None:
        whole = kept.distribution.as_weights()
        return all(whole.get(name) == weight for name, weight in record.partial_weights.items())
    return (record.distribution, record.partial_weights) == (kept.distribution, kept.partial_weights)
