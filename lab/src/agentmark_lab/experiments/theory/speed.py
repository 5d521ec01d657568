"""What a step costs, in microseconds and as a multiple of one bare keyed hash in the same run."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TypeVar

from agentmark.core import scheme_f, scheme_r
from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.linear import LinearSystem
from agentmark.core.prf import STEP_KEY, prf
from agentmark.core.rlnc import Equation
from agentmark.core.statistics import dirichlet, named
from agentmark.decide.decider import Decider
from agentmark.elicit.proposals import Proposals
from agentmark.elicit.situation import Elicitation, Situation, ToolCall
from agentmark.embed.embedder import Embedder
from agentmark.log.jsonl import LogWriter
from agentmark.record import StepRecord
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress

NAME = "speed"
TITLE = "What a step costs"

SIZES = (5, 20, 100, 1000)
PAYLOAD_LEN = 128
ELIMINATED_EQUATIONS = 140
# Of a model that is sampled: so many, again and again.
REPLIES = 1009

Name = TypeVar("Name")

MAX_F_US = 10.0
MAX_RACE_US = 40.0
MAX_IMPORT_MS = 50.0

# Prints the modules that the import brought in and that are neither Python's nor ours.
_FOREIGN_MODULES = """
import json, sys
before = set(sys.modules)
from agentmark import *
names = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps(sorted(names - set(sys.stdlib_module_names) - {"agentmark"})))
"""


@dataclass(frozen=True, slots=True)
class Effort:
    """In every round each call is repeated for about `batch_s`; its fastest round counts."""

    rounds: int
    batch_s: float
    starts: int


FULL = Effort(rounds=60, batch_s=0.01, starts=20)
QUICK = Effort(rounds=3, batch_s=0.002, starts=3)

HASH = "keyed hash"
BARE, IMPORT = "bare Python", "import agentmark"
# Public names are imported when they are first used; the two halves of the library show what that costs.
STARTS = {
    BARE: "pass",
    IMPORT: "import agentmark",
    "from agentmark import Embedder": "from agentmark import Embedder",
    "from agentmark import Verifier": "from agentmark import Verifier",
}
ELIMINATION = "elimination"


def run(options: Options, progress: Progress) -> Findings:
    """In this process only, whatever the workers: a second one on the machine would be measured too."""
    effort = QUICK if options.quick else FULL
    key = generator(options.seed, NAME).randbytes(32)
    calls: dict[tuple[int, str], Callable[[], object]] = {(0, HASH): lambda: prf(key, STEP_KEY, key)}
    with tempfile.TemporaryDirectory() as logs, ExitStack() as opened:
        for size in SIZES:
            calls.update({(size, what): call for what, call in step_calls(size, options.seed).items()})
            logged = logged_calls(size, options.seed, Path(logs) / str(size), opened)
            calls.update({(size, what): call for what, call in logged.items()})
        calls[0, ELIMINATION] = elimination_call(options.seed)
        times = microseconds(calls, effort, progress)
    by_size = {size: {what: time_us for (n, what), time_us in times.items() if n == size} for size in SIZES}
    hash_us, elimination_us = times[0, HASH], times[0, ELIMINATION]
    progress("imports")
    starts = {what: start_ms(code, effort) for what, code in STARTS.items()}
    foreign = foreign_modules()
    claims = [*_aims(by_size, starts[IMPORT] - starts[BARE]), _light_claim(foreign)]
    tables = [_step_table(by_size, hash_us), _other_table(hash_us, elimination_us, starts, foreign)]
    data = {
        "hash_us": hash_us,
        "microseconds": {str(size): times for size, times in by_size.items()},
        "elimination_us": elimination_us,
        "start_ms": starts,
        "foreign_modules": foreign,
    }
    return Findings(claims, tables, data)


# What is timed -------------------------------------------------------------------------------------------------------


def step_calls(size: int, seed: int) -> dict[str, Callable[[], object]]:
    """The parts of a step on one flat random list, each as a call without arguments."""
    rng = generator(seed, NAME, size)
    key = random_key(rng)
    payload = rng.getrandbits(PAYLOAD_LEN)
    masses = named(dirichlet(rng, 1.0, size))
    distribution = BehaviorDistribution.quantise(masses)
    step_key = _step_key_of_full_bin(distribution, rng.randbytes(16))
    behavior_f = scheme_f.encode(distribution, step_key, payload=payload, payload_len=PAYLOAD_LEN).behavior
    behavior_r = scheme_r.encode(distribution, step_key, payload=payload, payload_len=PAYLOAD_LEN) or ""
    session_f = Embedder(key, payload, payload_len=PAYLOAD_LEN, scheme="F").session()
    session_r = Embedder(key, payload, payload_len=PAYLOAD_LEN, scheme="R").session()
    record = session_f.choose(masses).record
    line = record.to_json()
    return {
        "quantise": lambda: BehaviorDistribution.quantise(masses),
        "F encode": lambda: scheme_f.encode(distribution, step_key, payload=payload, payload_len=PAYLOAD_LEN),
        "F decode": lambda: scheme_f.decode(distribution, step_key, behavior_f, payload_len=PAYLOAD_LEN),
        "R encode": lambda: scheme_r.encode(distribution, step_key, payload=payload, payload_len=PAYLOAD_LEN),
        "R decode": lambda: scheme_r.decode(distribution, step_key, behavior_r, payload_len=PAYLOAD_LEN),
        "Session.choose, F": lambda: session_f.choose(masses),
        "Session.choose, R": lambda: session_r.choose(masses),
        "record to JSON": record.to_json,
        "record from JSON": lambda: StepRecord.from_json(line),
    }


def logged_calls(size: int, seed: int, folder: Path, opened: ExitStack) -> dict[str, Callable[[], object]]:
    """Whole steps, with the record in a file: of an agent that has its list, that is given one by a model, and that
    samples its model's replies. Models cost nothing here."""
    rng = generator(seed, NAME, size, "logged")
    key, payload = random_key(rng), rng.getrandbits(PAYLOAD_LEN)
    masses = named(dirichlet(rng, 1.0, size))
    names = list(masses)
    folder.mkdir()

    def marker(scheme: str) -> Embedder:
        return Embedder(key, payload, payload_len=PAYLOAD_LEN, scheme=scheme)

    def chosen(scheme: str) -> Callable[[], object]:
        session = marker(scheme).session()
        log = opened.enter_context(LogWriter(folder / f"choose-{scheme}.jsonl"))
        return lambda: log.write(session.choose(masses).record)

    given = opened.enter_context(Decider(marker("R"), _Given(masses), folder / "given.jsonl"))
    sampled = opened.enter_context(Decider(marker("R"), Proposals(at_once=False), folder / "sampled.jsonl"))
    replies = cycle(rng.choices(names, weights=list(masses.values()), k=REPLIES))
    return {
        "Session.choose, F, logged": chosen("F"),
        "Session.choose, R, logged": chosen("R"),
        "Decider.decide, R, logged": lambda: given.decide(names, "What next?"),
        "Decider.propose, R, 4 samples, logged": lambda: sampled.propose(lambda: next(replies), _read_call, names),
    }


def _read_call(reply: str) -> list[ToolCall]:
    return [ToolCall(reply)]


class _Given:
    """An elicitor whose model costs nothing."""

    name = "given"

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._said = Elicitation(method=self.name, model="none", weights=weights)

    def elicit(self, situation: Situation) -> Elicitation:
        return self._said

    async def aelicit(self, situation: Situation) -> Elicitation:
        return self._said


def _step_key_of_full_bin(distribution: BehaviorDistribution, prefix: bytes) -> bytes:
    """A step key whose bin holds more than half of the list: the costly case of F, not a lucky bin of one."""
    for i in range(10_000):
        step_key = prefix + i.to_bytes(16, "big")
        if scheme_f.draw_bin(distribution, scheme_f.step_bits(step_key)).size > len(distribution) // 2:
            return step_key
    raise RuntimeError("no step key found: this list has no large bins")


def elimination_call(seed: int) -> Callable[[], LinearSystem]:
    """140 random equations that a payload of 128 bits satisfies and that have full rank."""
    rng = generator(seed, NAME, "elimination")
    payload = rng.getrandbits(PAYLOAD_LEN)
    rows = [rng.getrandbits(PAYLOAD_LEN) for _ in range(ELIMINATED_EQUATIONS)]
    equations = [Equation(row, (row & payload).bit_count() & 1) for row in rows]

    def eliminate() -> LinearSystem:
        system = LinearSystem(PAYLOAD_LEN)
        for equation in equations:
            system.update(equation)
        return system

    if eliminate().solution() != payload:
        raise RuntimeError("the equations do not determine the payload")
    return eliminate


def microseconds(calls: Mapping[Name, Callable[[], object]], effort: Effort, progress: Progress) -> dict[Name, float]:
    """Time of one call of each: the fastest of several rounds.

    Noise only ever slows, and it comes in spells: rounds over all calls keep a spell from falling on one of them.
    """
    repeats = {name: _repeats(call, effort.batch_s) for name, call in calls.items()}
    fastest = {name: float("inf") for name in calls}
    for number in range(effort.rounds):
        if number % 10 == 0:
            progress(f"round {number + 1} of {effort.rounds}")
        for name, call in calls.items():
            fastest[name] = min(fastest[name], _batch(call, repeats[name]) / repeats[name] * 1e6)
    return fastest


def _repeats(call: Callable[[], object], batch_s: float) -> int:
    return max(1, int(batch_s / max(_batch(call, 3) / 3, 1e-7)))


def _batch(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return time.perf_counter() - start


def start_ms(code: str, effort: Effort) -> float:
    """Time to start Python and run the code: the fastest of several starts, the first of which may have to compile."""
    with tempfile.TemporaryDirectory() as cache:
        # A cache of our own: whether the user's Python keeps compiled files is not what is measured.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return min(_start(code, environment) for _ in range(effort.starts + 1)) * 1e3


def _start(code: str, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return time.perf_counter() - start


def foreign_modules() -> list[str]:
    """Third-party modules that agentmark brings in, with every public name loaded."""
    output = subprocess.run([sys.executable, "-c", _FOREIGN_MODULES], check=True, capture_output=True, text=True).stdout
    return [str(name) for name in json.loads(output)]


# The report ----------------------------------------------------------------------------------------------------------


def _aims(by_size: dict[int, dict[str, float]], import_ms: float) -> list[Claim]:
    times = by_size[5]
    aims = [
        ("F encode", times["F encode"], MAX_F_US, "us at n = 5"),
        ("F decode", times["F decode"], MAX_F_US, "us at n = 5"),
        ("R encode", times["R encode"], MAX_RACE_US, "us at n = 5"),
        ("import agentmark beyond bare Python", import_ms, MAX_IMPORT_MS, "ms"),
    ]
    return [
        Claim(f"{what} takes {found:.1f} {unit} (aim: under {limit:g}).", found < limit, aim=True)
        for what, found, limit, unit in aims
    ]


def _light_claim(foreign: list[str]) -> Claim:
    found = ", ".join(foreign) or "none"
    return Claim(f"agentmark, fully loaded, brings in no third-party module (found: {found}).", not foreign)


def _step_table(by_size: dict[int, dict[str, float]], hash_us: float) -> Table:
    rows: list[list[Cell]] = [
        [what, *[f"{times[what]:.1f} ({times[what] / hash_us:.0f}x)" for times in by_size.values()]]
        for what in by_size[SIZES[0]]
    ]
    note = (
        f"Microseconds, and in brackets multiples of one keyed hash of 32 bytes ({hash_us:.2f} us). Fastest of several "
        f"rounds, one thread, payload of {PAYLOAD_LEN} bits, a flat random list (Dirichlet 1), and for F a bin of "
        "more than half of it. R decode reads the whole set of 256 symbols. Session.choose quantises too. Logged: the "
        "record is written to a file as well, which is then all that AgentMark adds to a step beside the calls of the "
        "model: with Session.choose the agent has its list, with Decider.decide a model states it, and with "
        "Decider.propose it is the counts of four of the model's replies, one of which the agent is handed."
    )
    return Table("Cost of a step", ["", *[f"n = {size}" for size in by_size]], rows, note)


def _other_table(hash_us: float, elimination_us: float, starts: dict[str, float], foreign: list[str]) -> Table:
    rows: list[list[Cell]] = [
        ["keyed hash of 32 bytes", f"{hash_us:.2f} us", "1x"],
        [
            f"elimination, {ELIMINATED_EQUATIONS} equations, {PAYLOAD_LEN} bits",
            f"{elimination_us:.0f} us",
            f"{elimination_us / hash_us:.0f}x",
        ],
    ]
    rows += [[f"{what}, start and exit", f"{time_ms:.1f} ms", ""] for what, time_ms in starts.items()]
    rows.append(["third-party modules imported", ", ".join(foreign) or "none", ""])
    note = "Starts read compiled modules from a cache, as they do from the second start on."
    return Table("Beside the steps", ["", "cost", "keyed hashes"], rows, note)
