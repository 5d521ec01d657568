"""What public mode costs for each step, beside a shared key: CPU time, and how large a disclosure is.

Every round makes new keys and logs of the same lists and times all of it, one after the other. So a ratio compares what
was measured within a second, whatever else the machine did, and its spread over the rounds shows how much that matters.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import TypeVar

from agentmark.audit.case import Case, ReportOrder
from agentmark.cli.verify_report import as_json
from agentmark.core import ecvrf
from agentmark.core.public_step import step_input
from agentmark.core.statistics import dirichlet, named
from agentmark.disclosure.basis import PublicBasis
from agentmark.disclosure.check import DisclosedSteps
from agentmark.disclosure.document import Disclosure
from agentmark.disclosure.make import disclose
from agentmark.embed.embedder import Embedder
from agentmark.keys import vrf
from agentmark.keys.marking import MarkingKey
from agentmark.keys.shared import SharedKey
from agentmark.log.jsonl import LogWriter
from agentmark.record import StepRecord
from agentmark.report import render_report
from agentmark.verify.verdict import Verdict
from agentmark.verify.verifier import Verifier
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress

NAME = "public_costs"
TITLE = "What public mode costs"

OPTIONS = 6
PAYLOAD_LEN = 16
PAYLOAD = 42
WORK_LIMIT = 200_000
REPORTED = 120
# How many are checked alone: one takes milliseconds in plain Python.
PROOFS = 30

CHOOSE, HOLDER, DISCLOSE, ANYONE = "choose", "verify by the holder", "disclose", "verify by the disclosure"
CHECK, PLAIN = "check a proof, with pynacl", "check a proof, in plain Python"

MAX_TIMES_CHOOSING = 10.0
MIN_TIMES_PLAIN = 5.0
MAX_DISCLOSED_BYTES = 400

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Effort:
    rounds: int
    steps: int


FULL = Effort(rounds=40, steps=300)
QUICK = Effort(rounds=3, steps=40)


@dataclass(frozen=True, slots=True)
class Timed:
    """What is timed, for which scheme, with which kind of key."""

    what: str
    scheme: str
    key: str


SHARED, MARKING = "shared key", "marking key"
# CPU microseconds a step.
Times = dict[Timed, float]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes a record: of a disclosure, and of a report that carries it, as data and as a page."""

    records: int
    disclosure: float
    report: float
    page: float


def run(options: Options, progress: Progress) -> Findings:
    """In this process only, whatever the workers: a second one on the machine would be measured too."""
    if find_spec("nacl") is None:
        raise MissingError("pynacl", "pip install '.[public]'")
    effort = QUICK if options.quick else FULL
    rng = generator(options.seed, NAME)
    lists = [named(dirichlet(rng, 1.0, OPTIONS)) for _ in range(effort.steps)]
    # Once untimed: what is imported and compiled when it is first used costs no step.
    one_round(rng, lists)
    rounds: list[Times] = []
    wrong = 0
    for number in range(effort.rounds):
        if number % 10 == 0:
            progress(f"round {number + 1} of {effort.rounds}")
        times, verdicts = one_round(rng, lists)
        rounds.append(times)
        wrong += len([verdict for verdict in verdicts if verdict.payload != PAYLOAD])
    key = MarkingKey(rng.randbytes(32))
    return _findings(rounds, len(lists), wrong, sizes(marked_log(key, "R", lists[:REPORTED]), key))


# What is timed -------------------------------------------------------------------------------------------------------


class Clock:
    """CPU time of one thing after the other, divided by how many steps it was."""

    def __init__(self) -> None:
        self.times: Times = {}

    def timed(self, timed: Timed, work: Callable[[], T], count: int) -> T:
        began = time.process_time()
        done = work()
        self.times[timed] = (time.process_time() - began) / count * 1e6
        return done


def one_round(rng: Random, lists: Sequence[dict[str, float]]) -> tuple[Times, list[Verdict]]:
    """Everything once, under new keys: nothing can be left of the round before."""
    shared, marking = random_key(rng), MarkingKey(rng.randbytes(32))
    clock = Clock()
    verdicts = [verdict for scheme in ("F", "R") for verdict in _timed_scheme(clock, scheme, lists, shared, marking)]
    disclosure = disclose(marked_log(marking, "R", lists[:PROOFS]), marking)
    clock.timed(Timed(CHECK, "", MARKING), lambda: check_proofs(disclosure, vrf.proof_output), PROOFS)
    clock.timed(Timed(PLAIN, "", MARKING), lambda: check_proofs(disclosure, ecvrf.proof_output), PROOFS)
    return clock.times, verdicts


def _timed_scheme(
    clock: Clock, scheme: str, lists: Sequence[dict[str, float]], shared: SharedKey, marking: MarkingKey
) -> list[Verdict]:
    def timed(what: str, key: str, work: Callable[[], T]) -> T:
        return clock.timed(Timed(what, scheme, key), work, len(lists))

    log = timed(CHOOSE, SHARED, lambda: marked_log(shared, scheme, lists))
    proved = timed(CHOOSE, MARKING, lambda: marked_log(marking, scheme, lists))
    by_shared = timed(HOLDER, SHARED, lambda: _judged(shared, log))
    by_marking = timed(HOLDER, MARKING, lambda: _judged(marking, proved))
    disclosure = timed(DISCLOSE, MARKING, lambda: disclose(proved, marking))
    # Its proofs are checked anew by each reader of a disclosure.
    by_anyone = timed(ANYONE, MARKING, lambda: _judged(DisclosedSteps(disclosure), proved))
    return [by_shared, by_marking, by_anyone]


def _judged(key: SharedKey | MarkingKey | DisclosedSteps, log: Sequence[StepRecord]) -> Verdict:
    return Verifier(key, work_limit=WORK_LIMIT).verify(log, claim=PAYLOAD)


def marked_log(key: SharedKey | MarkingKey, scheme: str, lists: Sequence[dict[str, float]]) -> list[StepRecord]:
    session = Embedder(key, PAYLOAD, payload_len=PAYLOAD_LEN, scheme=scheme).session()
    return [session.choose(weights).record for weights in lists]


def check_proofs(disclosure: Disclosure, output_of: Callable[[bytes, bytes, bytes], bytes | None]) -> None:
    for entry in disclosure.entries:
        alpha = step_input(entry.context, entry.payload_len)
        if output_of(disclosure.public_key.point, alpha, entry.proof) is None:
            raise RuntimeError("a genuine proof does not hold")


def sizes(log: Sequence[StepRecord], key: MarkingKey) -> Sizes:
    disclosure = disclose(log, key)
    with TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        with LogWriter(path) as writer:
            for record in log:
                writer.write(record)
        case = Case(
            logs=[path],
            keys=[DisclosedSteps(disclosure)],
            basis=PublicBasis.of((key.public,)),
            work_limit=WORK_LIMIT,
            report=ReportOrder(command="agentmark verify log.jsonl"),
        )
        report = case.answer().report
    assert report is not None
    texts = (json.dumps(disclosure.as_dict()), as_json(report), render_report(report))
    return Sizes(len(log), *[len(text.encode()) / len(log) for text in texts])


# The report ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spread:
    """Of one number over the rounds: its median, and the middle half."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        low, _, high = quantiles(values, n=4, method="inclusive")
        return cls(median(values), low, high)

    def __str__(self) -> str:
        return f"{self.middle:.1f} ({self.low:.1f} to {self.high:.1f})"


def _ratio(rounds: Sequence[Times], above: Timed, below: Timed) -> Spread:
    return Spread.of([times[above] / times[below] for times in rounds])


def _findings(rounds: Sequence[Times], steps: int, wrong: int, found: Sizes) -> Findings:
    choosing = {s: _ratio(rounds, Timed(CHOOSE, s, MARKING), Timed(CHOOSE, s, SHARED)) for s in ("F", "R")}
    plain = _ratio(rounds, Timed(PLAIN, "", MARKING), Timed(CHECK, "", MARKING))
    claims = [
        Claim(
            f"The holder and whoever has the disclosure name the same identity in each of {len(rounds)} rounds, under "
            f"both schemes: {wrong} verdicts do not.",
            wrong == 0,
        ),
        Claim(
            f"A disclosure has {found.disclosure:.0f} bytes a record (limit: {MAX_DISCLOSED_BYTES}).",
            found.disclosure <= MAX_DISCLOSED_BYTES,
        ),
        Claim(
            "Choosing with a marking key takes so many times the CPU time of a shared key: "
            f"F {choosing['F']}, R {choosing['R']} (aim: under {MAX_TIMES_CHOOSING:g}).",
            all(ratio.middle < MAX_TIMES_CHOOSING for ratio in choosing.values()),
            aim=True,
        ),
        Claim(
            f"Checking a proof in plain Python takes {plain} times as long as with pynacl (aim, for pynacl to be worth "
            f"it: over {MIN_TIMES_PLAIN:g}).",
            plain.middle > MIN_TIMES_PLAIN,
            aim=True,
        ),
    ]
    sizes_table = Table(
        "Bytes a record",
        ["what", "bytes a record"],
        [
            ["a disclosure", f"{found.disclosure:.0f}"],
            ["a report that carries its disclosure, as data", f"{found.report:.0f}"],
            ["the same, as a page", f"{found.page:.0f}"],
        ],
        f"Of {found.records} records of {OPTIONS} options (scheme R).",
    )
    data = {
        "rounds": [
            [{"what": t.what, "scheme": t.scheme, "key": t.key, "microseconds": us} for t, us in times.items()]
            for times in rounds
        ]
    }
    return Findings(claims, [_costs_table(rounds, steps), sizes_table], data)


def _costs_table(rounds: Sequence[Times], steps: int) -> Table:
    rows: list[list[Cell]] = []
    for timed in [timed for timed in rounds[0] if timed.key == MARKING]:
        shared = Timed(timed.what, timed.scheme, SHARED)
        by_shared, ratio = "-", "-"
        if shared in rounds[0]:
            by_shared, ratio = _middle(rounds, shared), str(_ratio(rounds, timed, shared))
        elif timed.what == PLAIN:
            ratio = str(_ratio(rounds, timed, Timed(CHECK, "", MARKING)))
        rows.append([timed.what, timed.scheme or "-", by_shared, _middle(rounds, timed), ratio])
    note = (
        f"CPU microseconds a step (a proof in the last two rows), median of {len(rounds)} rounds, one thread. Logs of "
        f"{steps} steps with lists of {OPTIONS} options (Dirichlet 1), a payload of {PAYLOAD_LEN} bits, the verdict on "
        "a claim. Every round makes new keys and times each row once, so what stands in one row was measured beside "
        "one another. Times as much: beside the shared key, and in the last row beside pynacl; median over the rounds, "
        "in brackets the middle half of them."
    )
    return Table("CPU time of a step", ["what", "scheme", SHARED, MARKING, "times as much"], rows, note)


def _middle(rounds: Sequence[Times], timed: Timed) -> str:
    return f"{median([times[timed] for times in rounds]):.0f}"
