"""Those who watch a growing log, and adversaries without the key who see what they show and write on accordingly."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution
from agentmark.core.statistics import named
from agentmark.identity.registry import Identity, Registry
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.intake import Step, read_record
from agentmark.verify.judge import Judge
from agentmark.verify.keyring import Keyring
from agentmark.verify.monitor import Monitor
from agentmark.verify.prices import Prices
from agentmark.verify.state import LogState
from agentmark_lab.kit.draws import fresh_context

# What is asked of a log.
CLAIM, REGISTRY, OPEN = "claim", "registry of 16", "open decoding"
QUESTIONS = (CLAIM, REGISTRY, OPEN)
NAMES = 16
# The length that a log has unless somebody moves it, and the lengths that it can be moved to. Open decoding pays for
# every bit, so that its lengths are short.
MAIN_LENGTH = {CLAIM: 8, REGISTRY: 8, OPEN: 4}
LENGTHS = {CLAIM: tuple(range(11, 3, -1)), REGISTRY: tuple(range(11, 3, -1)), OPEN: tuple(range(7, -1, -1))}
CLAIMED = 5
REGISTERED = Registry(MAIN_LENGTH[REGISTRY], [Identity(f"tenant {i}", 11 * i) for i in range(NAMES)])

# Lists that the adversary states: even ones say most for each record that is written.
LIST_SIZES = {"F": (2, 4), "R": (2,)}
FRESH_STEPS = 16
# Blocks that let each of eight lengths be the majority once, each by one record.
FIRST_BLOCK = 1
LAST_BLOCK = 6


class Watcher(Protocol):
    """Somebody who takes records in as they come and shows a number after each."""

    accepted: bool

    def show(self, shown: Step | StepRecord) -> float:
        """Take one record in, read before or not; the surplus that is shown then."""

    def take_in(self, step: Step) -> None:
        """Take one record in, and do not look."""


class MonitorWatches:
    """The monitor, with every number it shows."""

    def __init__(self, key: SharedKey, question: str, threshold: float) -> None:
        asked = {
            CLAIM: {"claim": CLAIMED},
            REGISTRY: {"registry": REGISTERED},
            OPEN: {},
        }[question]
        self._monitor = Monitor(key, threshold=threshold, **asked)  # type: ignore[arg-type]
        self.accepted = False

    def show(self, shown: Step | StepRecord) -> float:
        if isinstance(shown, Step):
            self._monitor.take(shown)
        else:
            self._monitor.update(shown)
        self.accepted = self._monitor.alarm is not None
        return self._monitor.status().surplus

    def take_in(self, step: Step) -> None:
        self._monitor.take(step)


class VerifierWatches:
    """`verify`, asked again about the whole log after every record."""

    def __init__(self, key: SharedKey, question: str, threshold: float) -> None:
        registry = REGISTERED if question == REGISTRY else None
        self._judge = Judge(threshold=threshold, prices=Prices(registry))
        self._payload_len = None if registry is None else registry.payload_len
        self._claim = CLAIMED if question == CLAIM else None
        self._keys = Keyring(key)
        self._state = LogState(self._keys.check)
        self.accepted = False

    def show(self, shown: Step | StepRecord) -> float:
        self._state.update(shown if isinstance(shown, Step) else read_record(shown, self._keys))
        verdict = self._judge.verdict(self._state.intake(self._payload_len), self._claim)
        self.accepted = self.accepted or verdict.accepted
        return verdict.surplus

    def take_in(self, step: Step) -> None:
        self._state.update(step)


@dataclass(frozen=True, slots=True)
class Alteration:
    """A way to write a copy of a step."""

    name: str
    make: Callable[[StepRecord, Random], StepRecord]


def _other_choice(record: StepRecord, rng: Random) -> StepRecord:
    assert record.distribution is not None
    others = [name for name in record.distribution.behaviors if name != record.behavior]
    return replace(record, behavior=rng.choice(others))


WITHDRAWALS = (
    Alteration("another choice", _other_choice),
    Alteration("enforced: false", lambda record, _: record.with_enforced(False)),
    Alteration("unmarked", lambda record, _: replace(record, marked=False, reason="context repeated")),
    Alteration("another length", lambda record, _: replace(record, payload_len=record.payload_len + 1)),
)
REPLAYS = (
    Alteration("as it was", lambda record, _: record),
    Alteration("another place", lambda record, rng: replace(record, session="again", step_index=rng.randrange(1000))),
    Alteration("a part of the list", lambda record, _: record.with_partial_weights({})),
)


class NullLog:
    """The fresh steps that an adversary without the key writes. Every question and every attack is given the same ones,
    which are read once."""

    def __init__(self, scheme: str, key: SharedKey, session: str, rng: Random) -> None:
        self._scheme = scheme
        self._key_id = key.id
        self._keys = Keyring(key)
        self._session = session
        self._lists = [_even(rng.choice(LIST_SIZES[scheme])) for _ in range(8)]
        self._draws = [rng.getrandbits(WEIGHT_BITS) for _ in range(64)]
        self._fresh: dict[tuple[int, int], Step] = {}

    def fresh(self, number: int, payload_len: int) -> Step:
        """The step of this number, written with this length."""
        step = self._fresh.get((number, payload_len))
        if step is None:
            distribution = self._lists[number % len(self._lists)]
            record = StepRecord(
                scheme=self._scheme,
                key_id=self._key_id,
                payload_len=payload_len,
                session=self._session,
                step_index=number,
                context=fresh_context(self._session, number),
                distribution=distribution,
                behavior=distribution.at(self._draws[number % len(self._draws)]),
                marked=True,
            )
            step = self._fresh[number, payload_len] = read_record(record, self._keys)
        return step


def _even(size: int) -> BehaviorDistribution:
    return BehaviorDistribution.quantise(named([1.0] * size))


# The attacks. Each writes until the watcher has accepted, or it has written what it is given to write. --------------


class Attack(Protocol):
    def __call__(self, log: NullLog, watcher: Watcher, question: str, rng: Random) -> None: ...


def peek(log: NullLog, watcher: Watcher, question: str, rng: Random) -> None:
    """Writes at random and looks after every record."""
    for number in range(FRESH_STEPS):
        watcher.show(log.fresh(number, MAIN_LENGTH[question]))
        if watcher.accepted:
            return


def retract(log: NullLog, watcher: Watcher, question: str, rng: Random) -> None:
    """Withdraws every step after which the surplus fell, by a copy of each kind until the number is back."""
    shown = 0.0
    for number in range(FRESH_STEPS):
        step = log.fresh(number, MAIN_LENGTH[question])
        before, shown = shown, watcher.show(step)
        if number and shown < before:
            shown = withdraw(watcher, step, shown, before, rng)
        if watcher.accepted:
            return


def withdraw(watcher: Watcher, step: Step, shown: float, before: float, rng: Random) -> float:
    """Two kinds of copies at most: the adversary knows that one of the first two is enough, if any is."""
    for alteration in rng.sample(WITHDRAWALS[:2], 1) + rng.sample(WITHDRAWALS, 1):
        if shown >= before or watcher.accepted:
            break
        shown = watcher.show(alteration.make(step.record, rng))
    return shown


def move(log: NullLog, watcher: Watcher, question: str, rng: Random) -> None:
    """Lets every length be the majority once, goes back to the one that looked best, and goes on there."""
    counts: dict[int, int] = {}
    looked: dict[int, float] = {}
    number = 0

    def write(payload_len: int, count: int) -> None:
        nonlocal number
        for _ in range(count):
            if watcher.accepted:
                return
            looked[payload_len] = watcher.show(log.fresh(number, payload_len))
            counts[payload_len] = counts.get(payload_len, 0) + 1
            number += 1

    for place, payload_len in enumerate(LENGTHS[question]):
        write(payload_len, FIRST_BLOCK + place)
    best = max(looked, key=lambda payload_len: looked[payload_len])
    write(best, max(counts.values()) + 1 - counts[best] if not watcher.accepted else 0)
    write(best, LAST_BLOCK)


def replay(log: NullLog, watcher: Watcher, question: str, rng: Random) -> None:
    """Shows every step again after which the surplus rose: as it was, under another number, in part."""
    shown = 0.0
    for number in range(FRESH_STEPS):
        step = log.fresh(number, MAIN_LENGTH[question])
        before, shown = shown, watcher.show(step)
        if shown > before or not number:
            for alteration in rng.sample(REPLAYS, 2):
                if not watcher.accepted:
                    shown = watcher.show(alteration.make(step.record, rng))
        if watcher.accepted:
            return


def everything(log: NullLog, watcher: Watcher, question: str, rng: Random) -> None:
    """Moves between lengths, withdraws what looks bad and repeats what looks good, as the numbers have it."""
    shown = 0.0
    best, best_shown = MAIN_LENGTH[question], float("-inf")
    for number in range(FRESH_STEPS + FRESH_STEPS // 4):
        payload_len = rng.choice(LENGTHS[question]) if rng.random() < 0.3 else best
        step = log.fresh(number, payload_len)
        before, shown = shown, watcher.show(step)
        if number and shown < before:
            shown = withdraw(watcher, step, shown, before, rng)
        elif rng.random() < 0.3 and not watcher.accepted:
            shown = watcher.show(rng.choice(REPLAYS).make(step.record, rng))
        if shown > best_shown:
            best, best_shown = payload_len, shown
        if watcher.accepted:
            return


PEEKING, RETRACTING, MOVING, REPLAYING, TOGETHER = (
    "looks after every record",
    "withdraws unlucky steps by altered copies",
    "moves between eight lengths",
    "replays lucky steps",
    "all of these",
)
ATTACKS: dict[str, Attack] = {
    PEEKING: peek,
    RETRACTING: retract,
    MOVING: move,
    REPLAYING: replay,
    TOGETHER: everything,
}
