"""Those who watch a growing log, and adversaries without the key who see what they show and write on accordingly."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log2
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
LENGTHS = {CLAIM: tuple(range(4, 12)), REGISTRY: tuple(range(4, 12)), OPEN: tuple(range(8))}
CLAIMED = 5
REGISTERED = Registry(MAIN_LENGTH[REGISTRY], [Identity(f"tenant {i}", 11 * i) for i in range(NAMES)])

# Lists that the adversary states: even ones say most for each record that is written.
LIST_SIZES = {"F": (2, 4), "R": (2,)}
FRESH_STEPS = 16
# Blocks that let each of eight lengths be the majority once: `verify` takes the longer of two that are as frequent.
# Open decoding pays so much for long payloads that only the short ones are worth going on with.
BLOCKS = {CLAIM: (1, 1, 2, 2, 3, 3, 4, 4), REGISTRY: (1, 1, 2, 2, 3, 3, 4, 4), OPEN: (1,) * 8}
# The best of them is gone on with until it has so many steps: with fewer, R could not pay for a name of the registry.
STEPS_OF_THE_BEST = 15
# More than anyone writes of one length.
MOST_OF_A_LENGTH = 64
# The most that a step says for a payload, for each bit of its even list. F: exactly that. R: 256 races are not quite
# evenly won; eight steps in a row hardly ever say a fifth more.
MOST_PER_BIT = {"F": 1.0, "R": 1.2}
# What a monitor charges at least for a second length.
SECOND_LENGTH_BITS = log2(6)


class Watcher(Protocol):
    """Somebody who takes records in as they come and shows a number after each."""

    accepted: bool
    # The surplus that is accepted.
    line: float

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
        self.line = -log2(threshold)
        self._monitor = Monitor(key, threshold=threshold, **asked)  # type: ignore[arg-type]
        self.accepted = False

    def show(self, shown: Step | StepRecord) -> float:
        if isinstance(shown, Step):
            self._monitor.take(shown)
        else:
            self._monitor.update(shown)
        self.accepted = self._monitor.alarm is not None
        return self._monitor.surplus

    def take_in(self, step: Step) -> None:
        self._monitor.take(step)


class VerifierWatches:
    """`verify`, asked again about the whole log after every record."""

    def __init__(self, key: SharedKey, question: str, threshold: float) -> None:
        self.line = -log2(threshold)
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
    """The fresh steps that an adversary without the key writes, some of every length. Every question and every attack
    is given the same ones, which are read once, for reading a step of R takes longer than watching it."""

    def __init__(self, scheme: str, key: SharedKey, session: str, rng: Random) -> None:
        self._scheme = scheme
        self._key_id = key.id
        self._keys = Keyring(key)
        self._session = session
        sizes = [rng.choice(LIST_SIZES[scheme]) for _ in range(8)]
        self._lists = [EVEN_LISTS[size] for size in sizes]
        self._most_bits = [MOST_PER_BIT[scheme] * log2(size) for size in sizes]
        self._draws = [rng.getrandbits(WEIGHT_BITS) for _ in range(MOST_OF_A_LENGTH)]
        self._fresh: dict[tuple[int, int], Step] = {}

    def fresh(self, number: int, payload_len: int) -> Step:
        """The step of this number, from 0, among those of this length."""
        step = self._fresh.get((number, payload_len))
        if step is None:
            distribution = self._lists[number % len(self._lists)]
            # No two lengths share a context.
            place = payload_len * MOST_OF_A_LENGTH + number
            record = StepRecord(
                scheme=self._scheme,
                key_id=self._key_id,
                payload_len=payload_len,
                session=self._session,
                step_index=place,
                context=fresh_context(self._session, place),
                distribution=distribution,
                behavior=distribution.at(self._draws[number]),
                marked=True,
            )
            step = self._fresh[number, payload_len] = read_record(record, self._keys)
        return step

    @property
    def most_bits_of_a_step(self) -> float:
        return max(self._most_bits)

    def most_bits(self, first: int, count: int) -> float:
        """What so many steps of one length can say at most, from the one of this number on."""
        return sum([self._most_bits[number % len(self._lists)] for number in range(first, first + count)])


EVEN_LISTS = {size: BehaviorDistribution.quantise(named([1.0] * size)) for size in (2, 4)}


# The attacks. Each writes until the watcher has accepted, or it has written what it is given to write, or has no hope:
# were all that it may still write lucky, the number that it was shown last would not come to the line. That spares it
# the logs that nobody would accept, and no others.


class Attack(Protocol):
    def __call__(self, log: NullLog, watcher: Watcher, question: str, rng: Random) -> None: ...


def peek(log: NullLog, watcher: Watcher, question: str, rng: Random) -> None:
    """Writes at random and looks after every record."""
    for number in range(FRESH_STEPS):
        shown = watcher.show(log.fresh(number, MAIN_LENGTH[question]))
        if watcher.accepted or without_hope(log, watcher, shown, number + 1):
            return


def without_hope(log: NullLog, watcher: Watcher, shown: float, written: int) -> bool:
    """Of one length, so many steps have been written."""
    return shown + log.most_bits(written, FRESH_STEPS - written) < watcher.line


def retract(log: NullLog, watcher: Watcher, question: str, rng: Random) -> None:
    """Withdraws every step after which the surplus fell, by a copy of each kind until the number is back."""
    shown = 0.0
    for number in range(FRESH_STEPS):
        step = log.fresh(number, MAIN_LENGTH[question])
        before, shown = shown, watcher.show(step)
        if number and shown < before:
            shown = withdraw(watcher, step, shown, before, rng)
        if watcher.accepted or without_hope(log, watcher, shown, number + 1):
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
    counts: Counter[int] = Counter()
    looked: dict[int, float] = {}
    shown = 0.0

    def write(payload_len: int, count: int) -> None:
        nonlocal shown
        for _ in range(count):
            if watcher.accepted:
                return
            shown = looked[payload_len] = watcher.show(log.fresh(counts[payload_len], payload_len))
            counts[payload_len] += 1

    for payload_len, count in zip(LENGTHS[question], BLOCKS[question], strict=True):
        write(payload_len, count)
    best = max(looked, key=lambda payload_len: looked[payload_len])
    for left in range(STEPS_OF_THE_BEST - counts[best], 0, -1):
        if watcher.accepted or shown + log.most_bits(counts[best], left) < watcher.line:
            return
        write(best, 1)


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
        if watcher.accepted or without_hope(log, watcher, shown, number + 1):
            return


def everything(log: NullLog, watcher: Watcher, question: str, rng: Random) -> None:
    """Moves between lengths, withdraws what looks bad and repeats what looks good, as the numbers have it."""
    shown = 0.0
    counts: Counter[int] = Counter()
    best, best_shown = MAIN_LENGTH[question], float("-inf")
    most = FRESH_STEPS + FRESH_STEPS // 4
    for number in range(most):
        payload_len = rng.choice(LENGTHS[question]) if rng.random() < 0.3 else best
        step = log.fresh(counts[payload_len], payload_len)
        counts[payload_len] += 1
        before, shown = shown, watcher.show(step)
        if number and shown < before:
            shown = withdraw(watcher, step, shown, before, rng)
        elif rng.random() < 0.3 and not watcher.accepted:
            shown = watcher.show(rng.choice(REPLAYS).make(step.record, rng))
        if shown > best_shown:
            best, best_shown = payload_len, shown
        # A length that comes up anew may look better than what is shown now.
        hope = max(shown, -SECOND_LENGTH_BITS) + (most - number - 1) * log.most_bits_of_a_step
        if watcher.accepted or hope < watcher.line:
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
