"""Is the alarm of a monitor valid whenever one looks, against those who see its numbers? And does it come in time?"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from agentmark.core.symbols import Reading
from agentmark.keys.shared import SharedKey
from agentmark.power import LIKE, Setup, dirichlet_source, steps_needed
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.intake import read_record
from agentmark.verify.keyring import Keyring
from agentmark_lab.experiments.verification.watching import (
    ATTACKS,
    CLAIM,
    CLAIMED,
    FRESH_STEPS,
    NAMES,
    OPEN,
    QUESTIONS,
    REGISTERED,
    REGISTRY,
    RETRACTING,
    TOGETHER,
    MonitorWatches,
    NullLog,
    VerifierWatches,
    Watcher,
)
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import bonferroni, exact_interval
from agentmark_lab.kit.worlds import ALFWORLD, Agent

NAME = "monitor"
TITLE = "A log that grows under an adversary's eyes: the monitor's alarm, and the verdict asked again and again"

LEVEL = 1e-2
CONFIDENCE = 0.95
MONITOR, VERIFY = "monitor", "verify"

# Honest logs: an agent like the paper's in ALFWorld, watched at the usual threshold.
OPEN_LENGTH = 16
LONGEST_HONEST = 80
LATEST_RATIO = 1.25
POWER_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class Effort:
    """Null logs of each scheme, and honest ones. `verify` reads the whole log at every look, hence fewer."""

    watched: dict[str, int]
    verified: dict[tuple[str, str], int]
    honest: int
    trials: int


FULL = Effort(
    watched={"F": 20_000, "R": 20_000},
    verified={
        ("F", CLAIM): 400,
        ("F", REGISTRY): 60,
        ("F", OPEN): 60,
        ("R", CLAIM): 200,
        ("R", REGISTRY): 12,
        ("R", OPEN): 12,
    },
    honest=60,
    trials=200,
)
QUICK = Effort(watched={"F": 10, "R": 2}, verified={("F", CLAIM): 40}, honest=2, trials=10)
CHUNK_LOGS = 250

CellName = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Null logs for one watcher; `questions` of each."""

    watcher: str
    scheme: str
    questions: tuple[str, ...]
    logs: int
    number: int
    seed: int


@dataclass(frozen=True, slots=True)
class HonestChunk:
    scheme: str
    question: str
    logs: int
    seed: int


@dataclass(frozen=True, slots=True)
class Honest:
    """When an honest log was named: by the monitor, by `verify` asked after every record. None: not within it."""

    monitor: int | None
    verify: int | None


def run(options: Options, progress: Progress) -> Findings:
    effort = QUICK if options.quick else FULL
    chunks = _chunks(effort, options.seed)
    counts: Counter[CellName] = Counter()
    logs: Counter[CellName] = Counter()
    total = sum(chunk.logs for chunk in chunks)
    parts = map_chunks(
        attack_chunk, chunks, workers=options.workers, progress=progress, label=f"{total:,} logs without the key"
    )
    for chunk, part in zip(chunks, parts, strict=True):
        counts.update(part)
        for question in chunk.questions:
            logs.update({(chunk.watcher, chunk.scheme, question, attack): chunk.logs for attack in ATTACKS})
    honest_chunks = [HonestChunk(s, q, effort.honest, options.seed) for s in ("F", "R") for q in QUESTIONS]
    honest = map_chunks(honest_chunk, honest_chunks, workers=options.workers, progress=progress, label="honest logs")
    foreseen = {(c.scheme, c.question): _foreseen(c.scheme, c.question, effort.trials) for c in honest_chunks}
    by_cell = {(c.scheme, c.question): runs for c, runs in zip(honest_chunks, honest, strict=True)}
    return _findings(counts, logs, by_cell, foreseen)


def _chunks(effort: Effort, seed: int) -> list[Chunk]:
    chunks = []
    for scheme, count in effort.watched.items():
        for number, start in enumerate(range(0, count, CHUNK_LOGS)):
            chunks.append(Chunk(MONITOR, scheme, QUESTIONS, min(CHUNK_LOGS, count - start), number, seed))
    for (scheme, question), count in effort.verified.items():
        chunks.append(Chunk(VERIFY, scheme, (question,), count, 0, seed))
    return chunks


def attack_chunk(chunk: Chunk) -> Counter[CellName]:
    """How often each attack was accepted. Every log has a key of its own; its attacks share it and the fresh steps."""
    accepted: Counter[CellName] = Counter()
    for number in range(chunk.logs):
        rng = generator(chunk.seed, NAME, chunk.scheme, chunk.number, number)
        key = random_key(rng)
        log = NullLog(chunk.scheme, key, f"{chunk.number} {number}", rng)
        for question in chunk.questions:
            for name, attack in ATTACKS.items():
                watcher = WATCHERS[chunk.watcher](key, question, LEVEL)
                attack(log, watcher, question, generator(chunk.seed, name, question, chunk.number, number))
                accepted[chunk.watcher, chunk.scheme, question, name] += watcher.accepted
    return accepted


WATCHERS: dict[str, Callable[[SharedKey, str, float], Watcher]] = {MONITOR: MonitorWatches, VERIFY: VerifierWatches}


# Honest logs ---------------------------------------------------------------------------------------------------------


def honest_chunk(chunk: HonestChunk) -> list[Honest]:
    return [_honest(chunk, number) for number in range(chunk.logs)]


def _honest(chunk: HonestChunk, number: int) -> Honest:
    rng = generator(chunk.seed, NAME, "honest", chunk.scheme, chunk.question, number)
    key = random_key(rng)
    payload_len = OPEN_LENGTH if chunk.question == OPEN else REGISTERED.payload_len
    payload = {CLAIM: CLAIMED, REGISTRY: rng.choice(list(REGISTERED)).payload, OPEN: rng.getrandbits(OPEN_LENGTH)}
    agent = Agent(ALFWORLD, key, payload[chunk.question], payload_len, chunk.scheme)
    keys = Keyring(key)
    steps = [read_record(record, keys) for record in agent.log(rng, LONGEST_HONEST)]
    named: dict[str, int | None] = dict.fromkeys(WATCHERS)
    for name, watches in WATCHERS.items():
        watcher = watches(key, chunk.question, DEFAULT_THRESHOLD)
        potential = 0.0
        for count, step in enumerate(steps, start=1):
            potential += _most(step.reading)
            # Before that nobody can be named, and `verify` need not be asked.
            if name == VERIFY and potential < SOONEST[chunk.question]:
                watcher.take_in(step)
                continue
            watcher.show(step)
            if watcher.accepted:
                named[name] = count
                break
    return Honest(named[MONITOR], named[VERIFY])


# Bits that nobody is named without at a threshold of 10^-6.
SOONEST = {CLAIM: 19.9, REGISTRY: 19.9, OPEN: 19.9 + OPEN_LENGTH}


def _most(reading: Reading | None) -> float:
    return 0.0 if reading is None else reading.most_bits


def _foreseen(scheme: str, question: str, trials: int) -> int | None:
    """Steps by which `agentmark power` expects the asked share of logs to be named."""
    payload_len = {CLAIM: 0, REGISTRY: REGISTERED.payload_len, OPEN: OPEN_LENGTH}[question]
    setup = Setup(
        scheme=scheme,
        payload_lens=(payload_len,),
        registry_size=NAMES if question == REGISTRY else None,
        power=POWER_SHARE,
        trials=trials,
        max_steps=LONGEST_HONEST,
    )
    return steps_needed(dirichlet_source(*LIKE["alfworld"]), setup).needed[0].steps


# What came out -------------------------------------------------------------------------------------------------------


def _findings(
    counts: Counter[CellName],
    logs: Counter[CellName],
    honest: dict[tuple[str, str], list[Honest]],
    foreseen: dict[tuple[str, str], int | None],
) -> Findings:
    watched = [cell for cell in logs if cell[0] == MONITOR]
    verified = [cell for cell in logs if cell[0] == VERIFY]
    confidence = bonferroni(CONFIDENCE, len(watched))
    intervals = {cell: exact_interval(counts[cell], logs[cell], confidence=confidence) for cell in watched}
    above = [cell for cell in watched if intervals[cell].low > LEVEL]
    below = [cell for cell in watched if intervals[cell].high <= LEVEL]
    worst = max(watched, key=lambda cell: counts[cell] / logs[cell])
    sizes = sorted({logs[cell] for cell in watched}, reverse=True)
    claims = [
        Claim(
            f"No adversary without the key raises the alarm more often than the threshold of {LEVEL:g} says: of "
            f"{len(watched)} cells (two schemes, three questions, five attacks; {' or '.join(f'{n:,}' for n in sizes)} "
            f"logs each) the lower exact limit lies above it in {len(above)}, and the upper one at or below it in "
            f"{len(below)} (Clopper-Pearson, all limits together at 95 %); the highest share is "
            f"{counts[worst] / logs[worst]:.4f} ({', '.join(worst[1:])}).",
            not above,
        ),
        _verify_claim(counts, logs),
        *[_power_claim(*cell, runs) for cell, runs in honest.items()],
    ]
    tables = [_attack_table(counts, logs, watched, verified), _honest_table(honest, foreseen)]
    data = {
        "level": LEVEL,
        "cells": [
            {
                "watcher": cell[0],
                "scheme": cell[1],
                "question": cell[2],
                "attack": cell[3],
                "logs": logs[cell],
                "accepted": counts[cell],
            }
            for cell in logs
        ],
        "honest": [
            {
                "scheme": cell[0],
                "question": cell[1],
                "monitor": [run.monitor for run in runs],
                "verify": [run.verify for run in runs],
                "power": foreseen[cell],
            }
            for cell, runs in honest.items()
        ],
    }
    return Findings(claims, tables, data)


def _verify_claim(counts: Counter[CellName], logs: Counter[CellName]) -> Claim:
    """The attacks are real: they beat what takes records back."""
    cells = [cell for cell in logs if cell[0] == VERIFY and cell[2] == CLAIM]
    lows = {cell: exact_interval(counts[cell], logs[cell]).low for cell in cells}
    said = {cell: f"{cell[1]} {cell[3]}: {counts[cell]} of {logs[cell]}" for cell in cells}
    beaten = [said[cell] for cell, low in lows.items() if low > LEVEL]
    others = [said[cell] for cell, low in lows.items() if low <= LEVEL]
    return Claim(
        f"Withdrawing steps beats `verify` when it is asked after every record at {LEVEL:g} and shows its numbers "
        f"(claims): {'; '.join(beaten) or 'nobody'} (lower exact limits above the level). What it bounds is one look "
        f"at a log that is all there. Not seen to go beyond the level: {'; '.join(others) or 'none'}.",
        all(low > LEVEL for cell, low in lows.items() if cell[3] in (RETRACTING, TOGETHER)),
    )


def _power_claim(scheme: str, question: str, runs: list[Honest]) -> Claim:
    """Logs that one of the two does not name in time count as its longest."""
    watched = [run.monitor or LONGEST_HONEST for run in runs]
    verified = [run.verify or LONGEST_HONEST for run in runs]
    ratio = sum(watched) / sum(verified)
    return Claim(
        f"{scheme}, {question}: on {len(runs)} honest logs the monitor's alarm takes {ratio:.2f} times as many steps "
        f"as `verify` (median {median(watched):g} against {median(verified):g} at {DEFAULT_THRESHOLD:g}; aim: at most "
        f"{LATEST_RATIO}).",
        ratio <= LATEST_RATIO,
        aim=True,
    )


def _attack_table(
    counts: Counter[CellName], logs: Counter[CellName], watched: list[CellName], verified: list[CellName]
) -> Table:
    rows: list[list[Cell]] = []
    for _, scheme, question, attack in watched:
        row: list[Cell] = [scheme, question, attack]
        for watcher, cells in ((MONITOR, watched), (VERIFY, verified)):
            cell = (watcher, scheme, question, attack)
            row += [logs[cell], _share(counts[cell], logs[cell])] if cell in cells else ["", ""]
        rows.append(row)
    columns = ["scheme", "question", "the adversary", "logs", "monitor: alarms", "logs of verify", "verify: accepted"]
    note = (
        f"Share of logs that are ever accepted at {LEVEL:g}, in brackets the exact 95 % interval of the single cell. "
        "Hypothesis: at most the level. The adversary has no key, chooses even lists (F: two or four behaviors, R: "
        f"two), sees the surplus after every record and writes {FRESH_STEPS} fresh steps or some more, besides "
        "copies; it gives a log up once luck in all that is left would not bring that number to the line. "
        "Withdrawing: after each step with which the surplus fell, copies of it with another choice, with "
        "`enforced: false`, unmarked, or of another length. Moving: blocks that make each of eight lengths the one "
        "that `verify` takes, then on with the best (4 to 11 bits; open decoding 0 to 7; a registry fixes its length). "
        "Replaying: what raised the surplus again as it was, under another session and step, or in part. Claims: one "
        "payload; registry: 16 names of 8 bits; open decoding: 4 bits. Every log has a key of its own; the fifteen "
        "cells of one log share it and its fresh steps, so that cells depend on each other, and logs within a cell do "
        "not; where copies change nothing, cells are equal. `verify` judges the whole log anew after every record, on "
        "fewer logs."
    )
    return Table("Accepted, although made without the key", columns, rows, note)


def _share(count: int, logs: int) -> str:
    interval = exact_interval(count, logs)
    return f"{count / logs:.4f} ({interval.low:.4f} to {interval.high:.4f})"


def _honest_table(honest: dict[tuple[str, str], list[Honest]], foreseen: dict[tuple[str, str], int | None]) -> Table:
    rows: list[list[Cell]] = []
    for (scheme, question), runs in honest.items():
        steps = foreseen[scheme, question]
        in_time = sum(run.monitor is not None and steps is not None and run.monitor <= steps for run in runs)
        watched = [run.monitor or LONGEST_HONEST for run in runs]
        verified = [run.verify or LONGEST_HONEST for run in runs]
        ratio = sum(watched) / sum(verified)
        rows.append(
            [
                scheme,
                question,
                len(runs),
                f"{median(watched):g}",
                f"{median(verified):g}",
                f"{ratio:.2f}",
                "-" if steps is None else steps,
                f"{in_time} of {len(runs)}",
            ]
        )
    columns = [
        "scheme",
        "question",
        "logs",
        "monitor: median step",
        "verify: median step",
        "steps, monitor / verify",
        f"power: {POWER_SHARE:.0%} by step",
        "alarms by then",
    ]
    note = (
        f"Honest logs of an agent like the paper's in ALFWorld (lists of {ALFWORLD.size}, 1.94 bits a step), at "
        f"{DEFAULT_THRESHOLD:g}. Step of the alarm, and step after which `verify`, asked after every record, first "
        "accepts. The monitor is told no payload length and pays one bit for it (with a registry it knows it). Open "
        f"decoding: {OPEN_LENGTH} bits, found by searches. The last two columns: by when `agentmark power` expects "
        "that share of logs to be named by `verify`, and how many alarms there are by then."
    )
    return Table("Honest logs: when the alarm comes", columns, rows, note)
