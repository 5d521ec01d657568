"""False attribution in public mode: logs that others made, judged by what the holder of a key chose to disclose.

The chance is over step keys. In most cells they come from a random function, as the proofs of the specification
(section 12.4) have it; some logs of every cell are made with the real one, keys, proofs and disclosures included.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from math import log2
from random import Random
from typing import Protocol, cast

from agentmark.core.context import context_digest, context_fields
from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution
from agentmark.core.schemes import SCHEMES
from agentmark.core.statistics import dirichlet, named
from agentmark.core.symbols import SymbolSet
from agentmark.disclosure.check import DisclosedSteps
from agentmark.disclosure.digest import record_digest
from agentmark.disclosure.document import Disclosure, Entry
from agentmark.embed.embedder import Embedder
from agentmark.keys.public import PublicKey
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.verdict import Verdict
from agentmark.verify.verifier import Verifier
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import bonferroni, exact_interval
from agentmark_lab.kit.worlds import another_payload

NAME = "public"
TITLE = "Public mode: what others made, judged by what a holder chose to disclose"

LEVELS = (1e-1, 1e-2, 1e-3)
CONFIDENCE = 0.95
# Near to even lists of four: a step says two bits, so that eight can reach 10^-3 and the mixture of noise rates too.
STEPS, OPTIONS, FLATNESS = 8, 4, 30.0
POOLED_LISTS = 100
CLAIMED_LEN, OPEN_LEN, OPEN_STEPS = 8, 4, 10
GROUND_KEYS, UNPAID_KEYS = 16, 64
WORK_LIMIT = 20_000

RANDOM_FUNCTION, REAL = "random function", "the real function"
CHUNK_LOGS = {RANDOM_FUNCTION: 1000, REAL: 50}


@dataclass(frozen=True, slots=True)
class Effort:
    """Logs in each cell: of those where one key is read for a log, and several; and with the real function."""

    random_function: int
    ground: int
    unpaid: int
    real: int


FULL = Effort(random_function=50_000, ground=10_000, unpaid=2_000, real=500)
QUICK = Effort(random_function=100, ground=20, unpaid=100, real=3)


# Holders -------------------------------------------------------------------------------------------------------------


class Holder(Protocol):
    """Whoever has the secret: what the key says at a step, and proofs of it."""

    @property
    def id(self) -> str: ...

    def step_key(self, context_digest: bytes, payload_len: int) -> bytes: ...

    def argument_digest(self, session: str, arguments: bytes) -> str: ...

    def disclosed(self, records: Sequence[StepRecord]) -> DisclosedSteps: ...


class RandomFunction(SharedKey):
    """Step keys of a random function in place of a verifiable one, taken at its holder's word."""

    __slots__ = ()

    def disclosed(self, records: Sequence[StepRecord]) -> DisclosedSteps:
        entries = [Entry(record_digest(record), record.context, record.payload_len, b"") for record in records]
        return DisclosedSteps(Disclosure(cast(PublicKey, _AtItsWord(self)), tuple(entries), b""))


class _AtItsWord:
    """A public key whose proofs are empty and always hold."""

    def __init__(self, holder: RandomFunction) -> None:
        self._holder = holder
        self.id = holder.id

    def step_key(self, context_digest: bytes, payload_len: int, proof: bytes) -> bytes:
        return self._holder.step_key(context_digest, payload_len)


def holder_of(function: str, rng: Random) -> Holder:
    if function == RANDOM_FUNCTION:
        return RandomFunction(rng.randbytes(32))
    from agentmark.disclosure.make import disclose
    from agentmark.keys.marking import MarkingKey

    class Real(MarkingKey):
        """A marking key; what it discloses is read back as whoever gets it would."""

        __slots__ = ()

        def disclosed(self, records: Sequence[StepRecord]) -> DisclosedSteps:
            return DisclosedSteps(Disclosure.from_dict(disclose(records, self).as_dict()))

    return Real(rng.randbytes(32))


# Logs that others made -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scene:
    """One log's draws: the scheme, which function step keys come from, and lists."""

    scheme: str
    function: str
    rng: Random
    lists: Sequence[BehaviorDistribution]

    def holder(self) -> Holder:
        return holder_of(self.function, self.rng)

    def sampled(self, key_id: str, *, steps: int = STEPS, payload_len: int = 0) -> list[StepRecord]:
        """What somebody without any key chose, in a session of his own; it states the holder's key."""
        session = self.rng.randbytes(16).hex()
        log = []
        for i in range(steps):
            listed = self.rng.choice(self.lists)
            context, behavior = _context(session, i), listed.at(self.rng.getrandbits(WEIGHT_BITS))
            log.append(
                StepRecord(
                    scheme=self.scheme,
                    key_id=key_id,
                    payload_len=payload_len,
                    session=session,
                    step_index=i,
                    context=context,
                    distribution=listed,
                    behavior=behavior,
                    marked=True,
                )
            )
        return log

    def marked(self, key: Holder, payload: int, *, payload_len: int, key_id: str | None = None) -> list[StepRecord]:
        """What this key chose for an identity; relabelled, if another key's id is given."""
        log = self.sampled(key.id, payload_len=payload_len)
        embedder = Embedder(key, payload, payload_len=payload_len, scheme=self.scheme)
        chosen = []
        for record in log:
            assert record.distribution is not None
            behavior = embedder.choose_in_context(record.distribution, record.context) or record.behavior
            chosen.append(replace(record, behavior=behavior, key_id=key_id or key.id))
        return chosen

    def reading(self, record: StepRecord, key: Holder) -> SymbolSet | None:
        """What the step says under a key, as its holder sees it beforehand; None: impossible, an erasure."""
        assert record.distribution is not None
        step_key = key.step_key(record.context, record.payload_len)
        scheme = SCHEMES[self.scheme]
        return scheme.read(record.distribution, step_key, record.behavior, payload_len=record.payload_len)

    def fitting(self, log: Sequence[StepRecord], key: Holder) -> list[StepRecord]:
        """The steps that it does the holder no harm to disclose: those that agree, and erasures."""
        return [record for record in log if _fits(self.reading(record, key), 0)]


def _fits(reading: SymbolSet | None, payload: int) -> bool:
    return reading is None or reading.e_value(payload) > 0


def _context(session: str, step: int) -> bytes:
    return context_digest(context_fields(session, step))


def verify(steps: DisclosedSteps, log: Sequence[StepRecord], *, tries: int = 1, claim: int | None = 0) -> Verdict:
    """The whole verifier. Without a payload there is one identity, 0, whose price is that of a claim: nothing."""
    return Verifier(steps, threshold=LEVELS[0], work_limit=WORK_LIMIT).for_tries(tries).verify(log, claim=claim)


def no_key(scene: Scene) -> Verdict:
    holder = scene.holder()
    log = scene.sampled(holder.id)
    return verify(holder.disclosed(log), log)


def other_tenant(scene: Scene) -> Verdict:
    holder = scene.holder()
    log = scene.marked(scene.holder(), 0, payload_len=0, key_id=holder.id)
    return verify(holder.disclosed(log), log)


def after_a_disclosure(scene: Scene) -> Verdict:
    """He has the step keys of one session, and goes on in it as they say: the same lists, what they would choose."""
    holder = scene.holder()
    known = scene.marked(holder, 0, payload_len=0)
    steps = holder.disclosed(known)
    forged = []
    for record in known:
        proof = steps.proof_of(record)
        assert proof.step_key is not None
        assert record.distribution is not None
        behavior = SCHEMES[scene.scheme].choose(record.distribution, proof.step_key, payload=0, payload_len=0)
        step = record.step_index + len(known)
        context = _context(record.session, step)
        forged.append(replace(record, step_index=step, context=context, behavior=behavior or record.behavior))
    # In a dispute everything is disclosed. What was disclosed before is not in his log.
    return verify(holder.disclosed([*known, *forged]), forged)


def other_identity(scene: Scene) -> Verdict:
    holder = scene.holder()
    claim = scene.rng.getrandbits(CLAIMED_LEN)
    truth = another_payload(scene.rng, claim, CLAIMED_LEN)
    log = scene.marked(holder, truth, payload_len=CLAIMED_LEN)
    return verify(holder.disclosed(log), log, claim=claim)


def in_full(scene: Scene) -> Verdict:
    """Lists and choices of others who always do the least likely: what is worth most if it agrees."""
    holder = scene.holder()
    log = [
        replace(record, behavior=record.distribution.behaviors[-1])
        for record in scene.sampled(holder.id)
        if record.distribution is not None
    ]
    return verify(holder.disclosed(log), log)


def in_part(scene: Scene) -> Verdict:
    holder = scene.holder()
    log = scene.sampled(holder.id)
    return verify(holder.disclosed(scene.fitting(log, holder)), log)


def whoever_fits(scene: Scene) -> Verdict:
    """He discloses what agrees with the identity that the log happens to fit best, and asks whose it is."""
    holder = scene.holder()
    log = scene.sampled(holder.id, steps=OPEN_STEPS, payload_len=OPEN_LEN)
    readings = [scene.reading(record, holder) for record in log]
    best = max(range(1 << OPEN_LEN), key=lambda payload: sum([_fits(reading, payload) for reading in readings]))
    chosen = [record for record, reading in zip(log, readings, strict=True) if _fits(reading, best)]
    return verify(holder.disclosed(chosen), log, claim=None)


def _best_key(scene: Scene, count: int) -> tuple[Holder, list[StepRecord]]:
    """Of the keys that he registered, the one that the log fits best; others wrote the log, without a key id."""
    log = scene.sampled("none")
    keys = [scene.holder() for _ in range(count)]
    best = max(keys, key=lambda key: sum([_bits(scene.reading(record, key)) for record in log]))
    return best, [replace(record, key_id=best.id) for record in log]


def _bits(reading: SymbolSet | None) -> float:
    """What a step says at one rate of noise, as somebody counts who compares keys; an impossible one nothing."""
    return 0.0 if reading is None else log2(reading.e_value(0) / 2 + 0.5)


def best_of_keys(scene: Scene) -> Verdict:
    best, log = _best_key(scene, GROUND_KEYS)
    return verify(best.disclosed(scene.fitting(log, best)), log, tries=GROUND_KEYS)


def without_the_rule(scene: Scene) -> Verdict:
    """What is kept back is not handed in either: a verdict that did not count it."""
    holder = scene.holder()
    log = scene.fitting(scene.sampled(holder.id), holder)
    return verify(holder.disclosed(log), log)


def keys_not_paid_for(scene: Scene) -> Verdict:
    best, log = _best_key(scene, UNPAID_KEYS)
    return verify(best.disclosed(log), log)


STRANGERS, HOLDERS, CONTROLS = "strangers and other tenants", "claimed by its holder", "control"


@dataclass(frozen=True, slots=True)
class Null:
    """A way in which a log comes about that the holder of the key did not make, and how it is handed in."""

    statement: str
    name: str
    judged: Callable[[Scene], Verdict]

    def logs(self, function: str, effort: Effort) -> int:
        """How many. Where several keys are read for each, fewer; controls need no real function."""
        if function == REAL:
            return 0 if self.statement == CONTROLS else effort.real
        if self.judged is best_of_keys:
            return effort.ground
        return effort.unpaid if self.judged is keys_not_paid_for else effort.random_function


NULLS = (
    Null(STRANGERS, "sampled without a key", no_key),
    Null(STRANGERS, "made with another tenant's key", other_tenant),
    Null(STRANGERS, "goes on where a disclosure ends", after_a_disclosure),
    Null(STRANGERS, "same key, another identity, claimed", other_identity),
    Null(HOLDERS, "least likely choices, all disclosed", in_full),
    Null(HOLDERS, "only what agrees disclosed", in_part),
    Null(HOLDERS, "only what agrees with the identity that fits best", whoever_fits),
    Null(HOLDERS, f"best of {GROUND_KEYS} registered keys", best_of_keys),
    Null(CONTROLS, "what is kept back does not count", without_the_rule),
    Null(CONTROLS, f"best of {UNPAID_KEYS} keys, not paid for", keys_not_paid_for),
)
BY_NAME = {null.name: null for null in NULLS}


# The run -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """What became of the logs of one cell: accepted by the evidence, and by the ownership evidence."""

    logs: int = 0
    accepted: Counter[float] = field(default_factory=Counter)
    owned: Counter[float] = field(default_factory=Counter)

    def add(self, verdict: Verdict) -> None:
        self.logs += 1
        surplus = verdict.surplus if verdict.candidate is not None else 0.0
        owned = (verdict.ownership_bits or 0.0) - verdict.bits_paid
        for level in LEVELS:
            self.accepted[level] += surplus >= -log2(level)
            self.owned[level] += owned >= -log2(level)

    def merge(self, other: "Tally") -> None:
        self.logs += other.logs
        self.accepted.update(other.accepted)
        self.owned.update(other.owned)


@dataclass(frozen=True, slots=True)
class Chunk:
    null: str
    scheme: str
    function: str
    logs: int
    seed: int
    number: int


CellName = tuple[str, str, str]


def run(options: Options, progress: Progress) -> Findings:
    if find_spec("nacl") is None:
        raise MissingError("pynacl", "pip install '.[public]'")
    effort = QUICK if options.quick else FULL
    # The real function first: it is the shorter part.
    chunks = [chunk for function in (REAL, RANDOM_FUNCTION) for chunk in _chunks(function, effort, options.seed)]
    tallies: dict[CellName, Tally] = {}
    label = f"{sum(chunk.logs for chunk in chunks):,} logs"
    done = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label=label)
    for chunk, tally in zip(chunks, done, strict=True):
        tallies.setdefault((chunk.null, chunk.scheme, chunk.function), Tally()).merge(tally)
    return _findings(tallies)


def _chunks(function: str, effort: Effort, seed: int) -> list[Chunk]:
    chunks = []
    for null in NULLS:
        logs, size = null.logs(function, effort), CHUNK_LOGS[function]
        for scheme in ("F", "R"):
            for number, start in enumerate(range(0, logs, size)):
                chunks.append(Chunk(null.name, scheme, function, min(size, logs - start), seed, number))
    return chunks


def run_chunk(chunk: Chunk) -> Tally:
    rng = generator(chunk.seed, NAME, chunk.null, chunk.scheme, chunk.function, chunk.number)
    lists = [BehaviorDistribution.quantise(named(dirichlet(rng, FLATNESS, OPTIONS))) for _ in range(POOLED_LISTS)]
    scene = Scene(chunk.scheme, chunk.function, rng, lists)
    tally = Tally()
    for _ in range(chunk.logs):
        tally.add(BY_NAME[chunk.null].judged(scene))
    return tally


# The report ----------------------------------------------------------------------------------------------------------


def _findings(tallies: dict[CellName, Tally]) -> Findings:
    nulls = {name: tally for name, tally in tallies.items() if BY_NAME[name[0]].statement != CONTROLS}
    controls = {name: tally for name, tally in tallies.items() if name not in nulls}
    claims = [_nominal(nulls, function) for function in (RANDOM_FUNCTION, REAL)]
    claims.append(_noticed(controls))
    data = {
        "cells": [
            {
                "statement": BY_NAME[null].statement,
                "null": null,
                "scheme": scheme,
                "function": function,
                "logs": tally.logs,
                "accepted": {str(level): tally.accepted[level] for level in LEVELS},
                "owned": {str(level): tally.owned[level] for level in LEVELS},
            }
            for (null, scheme, function), tally in tallies.items()
        ]
    }
    return Findings(claims, [_table(tallies, function) for function in (RANDOM_FUNCTION, REAL)], data)


def _rates(tallies: dict[CellName, Tally]) -> list[tuple[CellName, float, int, int]]:
    """Every cell, measure and level. Ownership evidence is no measure against another identity of the same key."""
    rates = []
    for name, tally in tallies.items():
        counted = [tally.accepted] if BY_NAME[name[0]].judged is other_identity else [tally.accepted, tally.owned]
        rates += [(name, level, counts[level], tally.logs) for counts in counted for level in LEVELS]
    return rates


def _nominal(nulls: dict[CellName, Tally], function: str) -> Claim:
    cells = {name: tally for name, tally in nulls.items() if name[2] == function}
    rates = _rates(cells)
    confidence = bonferroni(CONFIDENCE, len(rates))
    above = [rate for rate in rates if exact_interval(rate[2], rate[3], confidence=confidence).low > rate[1]]
    least, most = min(tally.logs for tally in cells.values()), max(tally.logs for tally in cells.values())
    logs = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return Claim(
        f"{function.capitalize()}: no log that others made is accepted more often than the bound says, whoever made it "
        f"and whatever is kept back. In {len(rates)} rates ({len(cells)} cells of {logs} logs; levels "
        f"{', '.join(map(str, LEVELS))}; evidence, and ownership evidence) the lower exact limit lies above the level "
        f"in {len(above)} (Clopper-Pearson, all limits together at 95 %).",
        not above,
    )


def _noticed(controls: dict[CellName, Tally]) -> Claim:
    """What the rules are for: without them the same experiment must find too many."""
    level = LEVELS[0]
    missed = [
        name for name, tally in controls.items() if exact_interval(tally.accepted[level], tally.logs).low <= level
    ]
    return Claim(
        f"It can fail: where the steps kept back do not count, and where several keys are tried and one is paid for, "
        f"more are accepted at {level:g} than the bound says in {len(controls) - len(missed)} of {len(controls)} cells "
        "(lower exact limit above the level).",
        not missed,
    )


def _table(tallies: dict[CellName, Tally], function: str) -> Table:
    rows: list[list[Cell]] = []
    for (null, scheme, by), tally in tallies.items():
        if by == function:
            shares = [_share(tally.accepted[level], tally.logs) for level in LEVELS]
            shares += [_share(tally.owned[level], tally.logs) for level in LEVELS]
            if BY_NAME[null].judged is other_identity:
                shares[len(LEVELS) :] = ["-"] * len(LEVELS)
            rows.append([BY_NAME[null].statement, null, scheme, tally.logs, *shares])
    columns = ["statement", "how the log came about", "scheme", "logs"]
    columns += [f"accepted at {level:g}" for level in LEVELS] + [f"owned at {level:g}" for level in LEVELS]
    note = (
        "Share of logs accepted by the whole verifier, in brackets the exact 95 % interval of the single cell; a new "
        f"key for each log. {STEPS} steps of {OPTIONS} rather even options, no payload (one identity, judged as a "
        f"claim); 'another identity' has {CLAIMED_LEN} bits and is a claim, 'fits best' has {OPEN_LEN} bits, "
        f"{OPEN_STEPS} steps and no claim. 'Accepted' is by the evidence less its price, 'owned' by the ownership "
        f"evidence less the same price. A pool of {POOLED_LISTS} lists serves a chunk of logs: the chance is over "
        "keys, not lists. The rows 'control' leave a rule out, and are meant to exceed the level."
    )
    return Table(f"Accepted, although others made it: {function}", columns, rows, note)


def _share(count: int, logs: int) -> str:
    interval = exact_interval(count, logs)
    return f"{count / logs:.1e} ({interval.low:.0e} to {interval.high:.0e})"
