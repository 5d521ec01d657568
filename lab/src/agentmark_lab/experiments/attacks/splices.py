"""Logs joined from several agents: who made which stretch, and where the joints are."""

from dataclasses import dataclass
from random import Random

from agentmark.core.statistics import wilson_interval
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table, aims_in_words
from agentmark_lab.kit.naming import TOLERANCE, Splice, judge_splice
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.worlds import ALFWORLD, Agent

NAME = "splices"
TITLE = "Two or three agents in one log: identities and joints"

STRETCH = 60
# The joint of two agents is moved by up to this many steps either way, so that its place is not known.
CUT_RANGE = 15
AIM = 0.9

TWO = "two agents"
THREE = "three agents"
HALF_OURS = "ours, then not ours"


@dataclass(frozen=True, slots=True)
class Case:
    kind: str
    scheme: str
    payload_len: int
    trials: int


CASES = (
    Case(TWO, "F", 8, 200),
    Case(TWO, "R", 8, 100),
    Case(TWO, "F", 16, 100),
    Case(TWO, "R", 16, 100),
    Case(THREE, "F", 8, 200),
    Case(THREE, "R", 8, 100),
    Case(THREE, "F", 16, 100),
    Case(THREE, "R", 16, 60),
    Case(HALF_OURS, "F", 8, 100),
    Case(HALF_OURS, "R", 8, 100),
    Case(HALF_OURS, "F", 16, 60),
    Case(HALF_OURS, "R", 16, 60),
)
QUICK_TRIALS = {8: 2, 16: 0}


def run(options: Options, progress: Progress) -> Findings:
    chunks = []
    for case in CASES:
        trials = QUICK_TRIALS[case.payload_len] if options.quick else case.trials
        size = max(1, trials // 10)
        chunks += [Chunk(case, min(size, trials - start), options.seed, start) for start in range(0, trials, size)]
    # The slowest first, so that no worker is left with one at the end.
    chunks.sort(key=lambda chunk: -chunk.case.payload_len)
    parts = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label="spliced logs")
    cells = {}
    for case in CASES:
        outcomes = [o for chunk, part in zip(chunks, parts, strict=True) if chunk.case == case for o in part]
        if outcomes:
            cells[case] = outcomes
    return _findings(cells)


@dataclass(frozen=True, slots=True)
class Chunk:
    case: Case
    trials: int
    seed: int
    number: int


def run_chunk(chunk: Chunk) -> list[Splice]:
    rng = generator(chunk.seed, NAME, chunk.case.kind, chunk.case.scheme, chunk.case.payload_len, chunk.number)
    return [trial(chunk.case, rng) for _ in range(chunk.trials)]


def trial(case: Case, rng: Random) -> Splice:
    key = random_key(rng)
    records, truth, cuts = spliced_log(case, key, rng)
    segments = Verifier(key, payload_len=case.payload_len).segments(records)
    return judge_splice(segments, truth, cuts)


def spliced_log(case: Case, key: SharedKey, rng: Random) -> tuple[list[StepRecord], list[int | None], list[int]]:
    """Sixty steps of each agent on average; payloads in order (None: not ours) and where each but the first begins."""
    count = 3 if case.kind == THREE else 2
    payloads = rng.sample(range(1 << case.payload_len), count)
    truth: list[int | None] = list(payloads)
    cuts = [STRETCH * i + rng.randint(-CUT_RANGE, CUT_RANGE) for i in range(1, count)]
    borders = [0, *cuts, STRETCH * count]
    records = []
    for i, payload in enumerate(payloads):
        agent = Agent(ALFWORLD, key, payload, case.payload_len, case.scheme)
        steps = borders[i + 1] - borders[i]
        if case.kind == HALF_OURS and i == 1:
            records += agent.foreign_log(rng, steps)
            truth[i] = None
        else:
            records += agent.log(rng, steps)
    return records, truth, cuts


# The report ----------------------------------------------------------------------------------------------------------


def _findings(cells: dict[Case, list[Splice]]) -> Findings:
    claims = []
    aims = {}
    rows: list[list[Cell]] = []
    for case, outcomes in cells.items():
        trials = len(outcomes)
        right = sum(outcome.success for outcome in outcomes)
        errors = sorted([outcome.error for outcome in outcomes if outcome.error is not None])
        interval = wilson_interval(right, trials)
        shown = f"{right / trials:.3f} ({interval.low:.3f} to {interval.high:.3f})"
        aims[f"{case.kind}, {case.scheme}, L = {case.payload_len}"] = right >= AIM * trials
        claims.append(
            Claim(
                f"{case.scheme}, L = {case.payload_len}, {case.kind}: identities right and joints within {TOLERANCE} "
                f"steps in {shown} of {trials} logs (aim: {AIM}; Wilson 95 %).",
                right >= AIM * trials,
                aim=True,
            )
        )
        rows.append(
            [
                case.kind,
                case.scheme,
                case.payload_len,
                trials,
                f"{sum(outcome.named for outcome in outcomes) / trials:.3f}",
                errors[len(errors) // 2] if errors else "none",
                errors[int(0.95 * (len(errors) - 1))] if errors else "none",
                shown,
            ]
        )
    invented = sum([outcome.invented for outcomes in cells.values() for outcome in outcomes])
    total = sum([len(outcomes) for outcomes in cells.values()])
    claims.append(
        Claim(f"No stretch is given to an identity that is not in the log: {invented} of {total:,}.", not invented)
    )
    columns = ["log", "scheme", "L", "logs", "identities right", "joint off, median", "95 %", "right within 5 steps"]
    note = (
        f"ALFWorld-like agents, {STRETCH} steps each on average; each joint is moved by up to {CUT_RANGE} steps "
        "either way at random. 'Not ours' is an agent without the key, with our key id on its records."
    )
    data = {
        "cells": [
            {
                "kind": case.kind,
                "scheme": case.scheme,
                "payload_len": case.payload_len,
                "trials": len(outcomes),
                "success": sum(o.success for o in outcomes),
                "named": sum(o.named for o in outcomes),
                "errors": sorted([o.error for o in outcomes if o.error is not None]),
            }
            for case, outcomes in cells.items()
        ]
    }
    return Findings(claims, [Table("Spliced logs", columns, rows, note + aims_in_words(aims))], data)
