"""Which records of a log count, and what each says of the payload (spec, section 9, steps 1 to 5)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentmark.core import scheme_f, scheme_r
from agentmark.core.symbols import Reading, SymbolSet
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord

# What became of a record. Only USED ones are evidence.
USED = "used"
IMPOSSIBLE = "impossible under this key"
UNREADABLE = "weights not logged"
DUPLICATE = "duplicate"
CONFLICTING = "conflicting copies"
UNMARKED = "unmarked"
NOT_ENFORCED = "not enforced"
OTHER_KEY = "other key"
OTHER_LENGTH = "other payload length"


@dataclass(frozen=True, slots=True)
class Step:
    """One record, what became of it, and what it says if it was used."""

    record: StepRecord
    outcome: str
    reading: Reading | None = None


@dataclass(frozen=True, slots=True)
class Intake:
    """A log, sorted. `steps` stand in the order of the records."""

    payload_len: int
    steps: tuple[Step, ...]

    @property
    def used(self) -> list[Step]:
        return [step for step in self.steps if step.reading is not None]

    @property
    def readings(self) -> list[Reading]:
        """What the used steps say, in an order that does not depend on that of the records."""
        ordered = sorted(self.used, key=lambda step: step.record.context)
        return [step.reading for step in ordered if step.reading is not None]


def take_in(
    records: Iterable[StepRecord],
    keys: Mapping[str, SharedKey],
    *,
    any_key: SharedKey | None = None,
    payload_len: int | None = None,
) -> Intake:
    """Sort a log. Nothing is dropped in silence: every record is in the result, with its outcome."""
    log = list(records)

    # (1) Set aside records of other keys: their randomness is not ours to recompute.
    key_of = [any_key or keys.get(record.key_id) for record in log]
    outcomes: list[str | None] = [OTHER_KEY if key is None else None for key in key_of]

    # (2) Fix the payload length, and set aside records of another.
    if payload_len is None:
        payload_len = _stated_payload_len(log, outcomes)
    for i, record in enumerate(log):
        if outcomes[i] is None and record.payload_len != payload_len:
            outcomes[i] = OTHER_LENGTH

    # (3) Steps without the mark, or that the agent did not obey, are erasures.
    _set_aside_erasures(log, outcomes)

    # (4) A context counts once (L4), by its fullest copy. Copies that disagree cannot all be genuine: none counts.
    _set_aside_copies(log, outcomes)

    # (5) Recompute the draws of every step that is left, and read what it says of the payload.
    steps = []
    for record, key, outcome in zip(log, key_of, outcomes, strict=True):
        if outcome is not None or key is None:
            steps.append(Step(record, outcome or OTHER_KEY))
        else:
            steps.append(read_step(record, key, payload_len))
    return Intake(payload_len, tuple(steps))


def outcomes_without_key(records: Iterable[StepRecord]) -> list[str | None]:
    """What steps 3 and 4 say of each record, for every key and payload length by itself; None: left to be read."""
    log = list(records)
    places: dict[tuple[str, int], list[int]] = defaultdict(list)
    for i, record in enumerate(log):
        places[record.key_id, record.payload_len].append(i)
    outcomes: list[str | None] = [None] * len(log)
    for mine in places.values():
        part = [log[i] for i in mine]
        found: list[str | None] = [None] * len(part)
        _set_aside_erasures(part, found)
        _set_aside_copies(part, found)
        for i, outcome in zip(mine, found, strict=True):
            outcomes[i] = outcome
    return outcomes


def read_step(record: StepRecord, key: SharedKey, payload_len: int) -> Step:
    """Recompute one step's draws: equations from F, a set of symbols from R, soft symbols from a part of a list."""
    step_key = key.step_key(record.context, payload_len)
    if record.distribution is None:
        if record.scheme != "R" or record.partial_weights is None:
            return Step(record, UNREADABLE)
        soft = scheme_r.decode_partial(record.partial_weights, step_key, record.behavior, payload_len=payload_len)
        return Step(record, USED, soft) if any(soft.values) else Step(record, IMPOSSIBLE)
    reading: SymbolSet | None
    if record.scheme == "F":
        equations = scheme_f.decode(record.distribution, step_key, record.behavior, payload_len=payload_len)
        reading = None if equations is None else SymbolSet.of_equations(equations)
    else:
        reading = scheme_r.decode(record.distribution, step_key, record.behavior, payload_len=payload_len)
    return Step(record, IMPOSSIBLE) if reading is None else Step(record, USED, reading)


def _stated_payload_len(log: list[StepRecord], outcomes: list[str | None]) -> int:
    """The length that most of our records state; the longer one if two are as common."""
    stated = Counter(record.payload_len for record, outcome in zip(log, outcomes, strict=True) if outcome is None)
    return max(stated, key=lambda length: (stated[length], length), default=0)


def _set_aside_erasures(log: list[StepRecord], outcomes: list[str | None]) -> None:
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
            outcomes[i] = UNMARKED
        elif record.context in disobeyed:
            outcomes[i] = NOT_ENFORCED


def _set_aside_copies(log: list[StepRecord], outcomes: list[str | None]) -> None:
    copies: dict[bytes, list[int]] = defaultdict(list)
    for i, record in enumerate(log):
        if outcomes[i] is None:
            copies[record.context].append(i)
    for places in copies.values():
        # A copy that has the whole list stands for those that have lost a part of it.
        kept = next((i for i in places if log[i].distribution is not None), places[0])
        agree = all(i == kept or _is_copy(log[i], log[kept]) for i in places)
        for i in places:
            if not agree:
                outcomes[i] = CONFLICTING
            elif i != kept:
                outcomes[i] = DUPLICATE


def _is_copy(record: StepRecord, kept: StepRecord) -> bool:
    """The same, or the same with weights left out: those that are there must be the whole list's to the unit."""
    if (record.scheme, record.key_id, record.behavior) != (kept.scheme, kept.key_id, kept.behavior):
        return False
    if record.partial_weights is not None and kept.distribution is not None:
        whole = kept.distribution.as_weights()
        return all(whole.get(name) == weight for name, weight in record.partial_weights.items())
    return (record.distribution, record.partial_weights) == (kept.distribution, kept.partial_weights)
