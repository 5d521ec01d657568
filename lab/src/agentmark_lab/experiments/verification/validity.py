"""Is the bound true? Logs that are not the claimed identity's, hundreds of thousands of them, judged as claims."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import log2
from random import Random

from agentmark.core import scheme_f, scheme_r
from agentmark.core.distribution import TOTAL_WEIGHT, WEIGHT_BITS, BehaviorDistribution
from agentmark.core.evidence import Evidence
from agentmark.core.statistics import Interval, dirichlet, named
from agentmark.core.symbols import SYMBOL_COUNT, Reading, SymbolSet
from agentmark.embed.embedder import Embedder
from agentmark.identity.registry import Identity, Registry
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.intake import Outcome, read_step
from agentmark.verify.verifier import Verifier
from agentmark_lab.kit.draws import fresh_context, generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import bonferroni, exact_interval, moments_interval
from agentmark_lab.kit.worlds import another_payload

NAME = "validity"
TITLE = "The false-positive bound, tried on logs that are not the claimed identity's"

LEVELS = (1e-2, 1e-3, 1e-4)
PAYLOAD_LEN = 8
CONFIDENCE = 0.95

# How a log came about that does not carry the claimed identity.
NO_KEY = "no key"
OTHER_IDENTITY = "our key, another identity"
REPEATED = "repeated contexts"
LEAST_LIKELY = "always the least likely"
MOST_LIKELY = "always the most likely"
PATTERN = "a pattern that looks keyed"
MODES = (NO_KEY, OTHER_IDENTITY, REPEATED, LEAST_LIKELY, MOST_LIKELY, PATTERN)

FULL_LIST = "full list"
CHOSEN_WEIGHT = "chosen weight only"
ACTION_ONLY = "action only"

# Lists are short and rather flat, so that a log of a few steps can reach 10^-4 at all: it takes 14.3 bits, one of which
# pays for the mixture over noise rates. Of R, a list of two costs least to read for each bit it can show.
SIZES = {"F": (2, 3, 4) * 4, "R": (2, 2, 2, 3, 2, 2, 2, 2)}
FLATNESS = {"F": 10.0, "R": 2.0}
VIEW_FLATNESS = 30.0
# The chance of a false acceptance is over keys, whatever the lists are: a few hundred lists serve all logs of a chunk.
POOLED_LISTS = 200
# A step of which only the chosen weight is left says up to 4.3 bits on these lists; the action alone up to 2.2.
VIEW_STEPS = {CHOSEN_WEIGHT: 4, ACTION_ONLY: 7}
VIEW_SIZE = 20
COPIES = 3
CONFLICTS = 3


@dataclass(frozen=True, slots=True)
class Effort:
    """Logs of each kind."""

    claims: int
    views: dict[tuple[str, str], int]
    open_f: int
    open_r: int


FULL = Effort(
    claims=200_000,
    views={
        (CHOSEN_WEIGHT, NO_KEY): 200_000,
        (CHOSEN_WEIGHT, OTHER_IDENTITY): 200_000,
        (CHOSEN_WEIGHT, LEAST_LIKELY): 200_000,
        (ACTION_ONLY, NO_KEY): 200_000,
        (ACTION_ONLY, OTHER_IDENTITY): 200_000,
    },
    open_f=25_000,
    open_r=10_000,
)
QUICK = Effort(claims=300, views=dict.fromkeys(FULL.views, 40), open_f=40, open_r=10)
CHUNK_LOGS = 2_000


@dataclass(frozen=True, slots=True)
class Method:
    """How evidence is counted. A test puts a wrong one in its place, and the experiment must notice."""

    sort: Callable[[Sequence[StepRecord], SharedKey], list[StepRecord]]
    e_value: Callable[[Reading, int], float]


def run(options: Options, progress: Progress) -> Findings:
    return check(SHIPPED, options, progress)


def check(method: Method, options: Options, progress: Progress) -> Findings:
    effort = QUICK if options.quick else FULL
    tallies: dict[CellName, Tally] = defaultdict(Tally)
    chunks: list[Chunk] = []
    for scheme in ("F", "R"):
        chunks += _chunks(f"claims {scheme}", effort.claims, options.seed, method)
    for (view, mode), logs in effort.views.items():
        chunks += _chunks(f"view {view}/{mode}", logs, options.seed, method)
    for scheme, logs in (("F", effort.open_f), ("R", effort.open_r)):
        chunks += _chunks(f"open {scheme}", logs, options.seed, method)
    label = f"{sum(chunk.logs for chunk in chunks):,} logs"
    for part in map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label=label):
        for name, tally in part.items():
            tallies[name].merge(tally)
    return _findings(dict(tallies), effort)


CellName = tuple[str, str, str]


@dataclass(slots=True)
class Tally:
    """What became of the logs of one cell."""

    logs: int = 0
    accepted: Counter[float] = field(default_factory=Counter)
    ever_accepted: Counter[float] = field(default_factory=Counter)
    steps: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, e_values: Sequence[float]) -> None:
        """One log, by the e-values of its steps in order: the last look, and the best of all looks."""
        evidence = Evidence()
        best = bits = 0.0
        for e_value in e_values:
            evidence.update(e_value)
            self.total += e_value
            self.squares += e_value * e_value
            if e_value > 1:
                best = max(best, evidence.bits)
        bits = evidence.bits
        self.steps += len(e_values)
        self.count(bits, best)

    def count(self, bits: float, best: float | None = None) -> None:
        self.logs += 1
        for level in LEVELS:
            self.accepted[level] += bits >= -log2(level)
            if best is not None:
                self.ever_accepted[level] += best >= -log2(level)

    def merge(self, other: "Tally") -> None:
        self.logs += other.logs
        self.accepted.update(other.accepted)
        self.ever_accepted.update(other.ever_accepted)
        self.steps += other.steps
        self.total += other.total
        self.squares += other.squares


@dataclass(frozen=True, slots=True)
class Chunk:
    kind: str
    logs: int
    seed: int
    number: int
    method: Method


def _chunks(kind: str, logs: int, seed: int, method: Method) -> list[Chunk]:
    size = max(1, min(CHUNK_LOGS, logs // 10))
    starts = range(0, logs, size)
    return [Chunk(kind, min(size, logs - start), seed, number, method) for number, start in enumerate(starts)]


def run_chunk(chunk: Chunk) -> dict[CellName, Tally]:
    rng = generator(chunk.seed, NAME, chunk.kind, chunk.number)
    lists = Lists(rng)
    tallies: dict[CellName, Tally] = defaultdict(Tally)
    kind, _, rest = chunk.kind.partition(" ")
    for number in range(chunk.logs):
        session = f"{chunk.kind} {chunk.number} {number}"
        if kind == "claims":
            _judge_claims(rest, session, rng=rng, lists=lists, method=chunk.method, tallies=tallies)
        elif kind == "view":
            view, _, mode = rest.partition("/")
            _judge_view(view, mode, session, rng=rng, lists=lists, method=chunk.method, tallies=tallies)
        else:
            _judge_open(rest, rng, lists, tallies)
    return dict(tallies)


class Lists:
    """A pool of lists of each size and flatness, drawn when they are first asked for."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._pools: dict[tuple[int, float], list[BehaviorDistribution]] = {}

    def pick(self, size: int, flatness: float) -> BehaviorDistribution:
        pool = self._pools.setdefault((size, flatness), [])
        if len(pool) < POOLED_LISTS:
            pool.append(BehaviorDistribution.quantise(named(dirichlet(self._rng, flatness, size))))
            return pool[-1]
        return pool[self._rng.randrange(POOLED_LISTS)]


# Claims on full lists --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadStep:
    """A step of a null log: its list and context, and what each behavior would say."""

    distribution: BehaviorDistribution
    context: bytes
    step_key: bytes
    readings: dict[str, SymbolSet | None]


def _judge_claims(
    scheme: str, session: str, *, rng: Random, lists: Lists, method: Method, tallies: dict[CellName, Tally]
) -> None:
    """One key and one claimed identity serve a log of every mode, on the same contexts and lists."""
    key = random_key(rng)
    claim = rng.getrandbits(PAYLOAD_LEN)
    truth = another_payload(rng, claim, PAYLOAD_LEN)
    steps = []
    for i, size in enumerate(SIZES[scheme]):
        distribution = lists.pick(size, FLATNESS[scheme])
        context = fresh_context(session, i)
        step_key = key.step_key(context, PAYLOAD_LEN)
        steps.append(ReadStep(distribution, context, step_key, read_all(scheme, distribution, step_key)))
    embedder = Embedder(key, truth, payload_len=PAYLOAD_LEN, scheme=scheme)
    choices = {
        NO_KEY: [step.distribution.at(rng.getrandbits(WEIGHT_BITS)) for step in steps],
        OTHER_IDENTITY: [
            embedder.choose_in_context(step.distribution, step.context) or step.distribution.behaviors[0]
            for step in steps
        ],
        LEAST_LIKELY: [step.distribution.behaviors[-1] for step in steps],
        MOST_LIKELY: [step.distribution.behaviors[0] for step in steps],
        # Anyone can compute the digest: a choice that looks random and follows from the context, without the key.
        PATTERN: [step.distribution.behaviors[step.context[0] % len(step.distribution)] for step in steps],
    }
    for mode, behaviors in choices.items():
        e_values = [_e_value(method, step, name, claim) for step, name in zip(steps, behaviors, strict=True)]
        tallies[scheme, FULL_LIST, mode].add(e_values)
    by_context = {step.context: step for step in steps}
    copied = copied_records(key.id, session, steps, choices[NO_KEY])
    kept = method.sort(copied, key)
    e_values = [_e_value(method, by_context[record.context], record.behavior, claim) for record in kept]
    tallies[scheme, FULL_LIST, REPEATED].add(e_values)


def read_all(scheme: str, distribution: BehaviorDistribution, step_key: bytes) -> dict[str, SymbolSet | None]:
    """What each behavior would say. Of R the last behavior has the symbols that the others leave."""
    readings: dict[str, SymbolSet | None] = {}
    if scheme == "F":
        for name in distribution.behaviors:
            equations = scheme_f.decode(distribution, step_key, name, payload_len=PAYLOAD_LEN)
            readings[name] = None if equations is None else SymbolSet.of_equations(equations)
        return readings
    left = (1 << SYMBOL_COUNT) - 1
    first: SymbolSet | None = None
    for name in distribution.behaviors[:-1]:
        reading = scheme_r.decode(distribution, step_key, name, payload_len=PAYLOAD_LEN)
        readings[name] = reading
        if reading is not None:
            first = reading
            left ^= reading.symbols
    last = distribution.behaviors[-1]
    if first is None:
        readings[last] = scheme_r.decode(distribution, step_key, last, payload_len=PAYLOAD_LEN)
    else:
        readings[last] = SymbolSet(first.rows, first.pad, left) if left else None
    return readings


def _e_value(method: Method, step: ReadStep, behavior: str, claim: int) -> float:
    reading = step.readings[behavior]
    # Impossible under this key: an erasure, which neither adds nor takes.
    return 1.0 if reading is None else method.e_value(reading, claim)


def copied_records(key_id: str, session: str, steps: Sequence[ReadStep], behaviors: Sequence[str]) -> list[StepRecord]:
    """Every step several times over, and the first few also with every other choice.

    Intake compares copies before it reads them, in the same way under both schemes: labelled F they are cheap to read.
    """
    records = []
    for i, (step, behavior) in enumerate(zip(steps, behaviors, strict=True)):
        record = StepRecord(
            scheme="F",
            key_id=key_id,
            payload_len=PAYLOAD_LEN,
            session=session,
            step_index=i,
            context=step.context,
            distribution=step.distribution,
            behavior=behavior,
            marked=True,
        )
        records += [record] * COPIES
        if i < CONFLICTS:
            records += [replace(record, behavior=name) for name in step.distribution.behaviors if name != behavior]
    return records


def shipped_sort(records: Sequence[StepRecord], key: SharedKey) -> list[StepRecord]:
    """The records that count, by the verifier's own intake."""
    intake = Verifier(key, payload_len=PAYLOAD_LEN).take_in(records)
    return [step.record for step in intake.steps if step.outcome in (Outcome.USED, Outcome.IMPOSSIBLE)]


def shipped_e_value(reading: Reading, payload: int) -> float:
    return reading.e_value(payload)


SHIPPED = Method(shipped_sort, shipped_e_value)


# Weaker views of R ---------------------------------------------------------------------------------------------------


def _judge_view(
    view: str, mode: str, session: str, *, rng: Random, lists: Lists, method: Method, tallies: dict[CellName, Tally]
) -> None:
    key = random_key(rng)
    claim = rng.getrandbits(PAYLOAD_LEN)
    embedder = Embedder(key, another_payload(rng, claim, PAYLOAD_LEN), payload_len=PAYLOAD_LEN, scheme="R")
    e_values = []
    for i in range(VIEW_STEPS[view]):
        distribution = lists.pick(VIEW_SIZE, VIEW_FLATNESS)
        context = fresh_context(session, i)
        behavior = distribution.at(rng.getrandbits(WEIGHT_BITS))
        weights = {behavior: distribution.weight(behavior)}
        if mode == OTHER_IDENTITY:
            behavior = embedder.choose_in_context(distribution, context) or behavior
            weights = {behavior: distribution.weight(behavior)}
        elif mode == LEAST_LIKELY:
            # Whoever writes the record also says how likely the choice was.
            weights = {behavior: TOTAL_WEIGHT // rng.choice((30, 100, 1000))}
        record = StepRecord(
            scheme="R",
            key_id=key.id,
            payload_len=PAYLOAD_LEN,
            session=session,
            step_index=i,
            context=context,
            distribution=distribution,
            behavior=behavior,
            marked=True,
        ).with_partial_weights(weights if view == CHOSEN_WEIGHT else {})
        reading = read_step(record, key, PAYLOAD_LEN).reading
        e_values.append(1.0 if reading is None else method.e_value(reading, claim))
    tallies["R", view, mode].add(e_values)


# Open decoding and registries: the whole verifier --------------------------------------------------------------------

OPEN = "open decoding"
IN_REGISTRY = "registry of 1,000"
REGISTRY_SIZE = 1000
REGISTRY_LEN = 32
OPEN_SIZES = {"F": (4,) * 16, "R": (4,) * 12}


def _judge_open(scheme: str, rng: Random, lists: Lists, tallies: dict[CellName, Tally]) -> None:
    """A log without our key; and the same records stating the registry's length."""
    key = random_key(rng)
    payloads = rng.sample(range(1 << REGISTRY_LEN), REGISTRY_SIZE)
    registry = Registry(REGISTRY_LEN, [Identity(f"tenant {i}", payload) for i, payload in enumerate(payloads)])
    records = _foreign_records(scheme, key.id, rng, lists)
    for question, length, named_ones in ((OPEN, PAYLOAD_LEN, None), (IN_REGISTRY, REGISTRY_LEN, registry)):
        verifier = Verifier(key, payload_len=length, registry=named_ones, threshold=LEVELS[0], work_limit=20_000)
        verdict = verifier.verify([replace(record, payload_len=length) for record in records])
        tallies[scheme, question, NO_KEY].count(verdict.surplus if verdict.candidate is not None else 0.0)


def _foreign_records(scheme: str, key_id: str, rng: Random, lists: Lists) -> list[StepRecord]:
    session = rng.randbytes(16).hex()
    records = []
    for i, size in enumerate(OPEN_SIZES[scheme]):
        distribution = lists.pick(size, VIEW_FLATNESS)
        records.append(
            StepRecord(
                scheme=scheme,
                key_id=key_id,
                payload_len=PAYLOAD_LEN,
                session=session,
                step_index=i,
                context=fresh_context(session, i),
                distribution=distribution,
                behavior=distribution.at(rng.getrandbits(WEIGHT_BITS)),
                marked=True,
            )
        )
    return records


# The report ----------------------------------------------------------------------------------------------------------


def _findings(tallies: dict[CellName, Tally], effort: Effort) -> Findings:
    rates = [
        (name, looks, level, counts[level], tally.logs)
        for name, tally in tallies.items()
        for looks, counts in (("one", tally.accepted), ("all", tally.ever_accepted))
        if looks == "one" or tally.steps
        for level in LEVELS
    ]
    confidence = bonferroni(CONFIDENCE, len(rates))
    above = [rate for rate in rates if exact_interval(rate[3], rate[4], confidence=confidence).low > rate[2]]
    means = {name: tally for name, tally in tallies.items() if tally.steps}
    mean_confidence = bonferroni(CONFIDENCE, len(means))
    intervals = {
        name: moments_interval(t.steps, t.total, t.squares, confidence=mean_confidence) for name, t in means.items()
    }
    larger = [name for name, interval in intervals.items() if interval.low > 1]
    apart = [name for name, interval in intervals.items() if 1 not in interval]
    claims = [
        Claim(
            f"No log that is not the claimed identity's is accepted more often than the bound says: in {len(rates)} "
            f"cells (schemes, views, ways to make the log, levels {', '.join(map(str, LEVELS))}, one look and all "
            f"looks; {effort.claims:,} logs in each cell with full lists, "
            f"{min(effort.views.values(), default=0):,} with weaker views, open decoding and registries "
            f"{effort.open_f:,} of F and {effort.open_r:,} of R) the lower exact limit lies above the level in "
            f"{len(above)} (Clopper-Pearson, all limits together at 95 %).",
            not above,
        ),
        Claim(
            f"The mean e-value of a step is at most 1: of {len(means)} cells with "
            f"{min(t.steps for t in means.values()):,} to {max(t.steps for t in means.values()):,} steps, the lower "
            f"limit exceeds 1 in {len(larger)} and 1 lies outside the interval in {len(apart)} (normal intervals, "
            "together at 95 %).",
            not larger,
        ),
    ]
    tables = [_rate_table(tallies), _mean_table(means, intervals)]
    data = {
        "cells": [
            {
                "scheme": name[0],
                "view": name[1],
                "mode": name[2],
                "logs": tally.logs,
                "accepted": {str(level): tally.accepted[level] for level in LEVELS},
                "ever_accepted": {str(level): tally.ever_accepted[level] for level in LEVELS} if tally.steps else None,
                "steps": tally.steps,
                "mean_e_value": tally.total / tally.steps if tally.steps else None,
            }
            for name, tally in tallies.items()
        ]
    }
    return Findings(claims, tables, data)


def _rate_table(tallies: dict[CellName, Tally]) -> Table:
    rows: list[list[Cell]] = []
    for (scheme, view, mode), tally in tallies.items():
        for looks, counts in (("the end", tally.accepted), ("after every step", tally.ever_accepted)):
            if looks == "the end" or tally.steps:
                shares = [_share(counts[level], tally.logs) for level in LEVELS]
                rows.append([scheme, view, mode, looks, tally.logs, *shares])
    columns = ["scheme", "view", "how the log was made", "looks", "logs", *[f"accepted at {x:g}" for x in LEVELS]]
    note = (
        "Share of logs accepted, in brackets the exact 95 % interval of the single cell. Claims: evidence for one "
        f"identity of {PAYLOAD_LEN} bits under the default mixture of noise rates. Full lists: F {len(SIZES['F'])} "
        f"steps of two to four behaviors, R {len(SIZES['R'])} steps of two or three, all rather flat. What is shared: "
        "one key, one claimed identity, one set of contexts and lists serve one log of each way to make it, so rows "
        "of one scheme with full lists depend on each other, and logs within a row do not; a pool of 200 lists "
        "serves 2,000 logs (the chance is over keys, not lists); of R the last behavior's symbols are those that the "
        "others leave; the repeated contexts are the first row's log, each record three times and three of the "
        "contexts with every other choice too, sorted by the verifier's own intake. 'After every step' is the best "
        "of all looks at the same logs. Views: lists of 20, 4 steps (chosen weight) and 7 (action); in the row "
        "'least likely' the forger states a weight of 1/30 to 1/1000. Open decoding and the registry: the whole "
        "verifier at a threshold of 0.01, 16 (F) or 12 (R) steps of four behaviors, 8-bit payloads or 1,000 "
        "identities of 32 bits, on fewer logs, both from the same records."
    )
    return Table("Accepted, although not theirs", columns, rows, note)


def _share(count: int, logs: int) -> str:
    interval = exact_interval(count, logs)
    return f"{count / logs:.2e} ({interval.low:.1e} to {interval.high:.1e})"


def _mean_table(means: dict[CellName, Tally], intervals: dict[CellName, Interval]) -> Table:
    rows: list[list[Cell]] = []
    for name, tally in means.items():
        margin = (intervals[name].high - intervals[name].low) / 2
        rows.append([*name, tally.steps, f"{tally.total / tally.steps:.5f} ± {margin:.5f}"])
    note = (
        "Steps one by one, not products: a product of many is rarely large and then very large, so that its mean "
        "cannot be measured. Margins hold together with 95 % confidence. An impossible step counts as 1, an erasure."
    )
    return Table("Mean e-value of a step", ["scheme", "view", "how the log was made", "steps", "mean"], rows, note)
