"""One short episode and nothing else: how often it names its 8-bit identity."""

from dataclasses import dataclass
from typing import NamedTuple

from agentmark.core.statistics import wilson_interval
from agentmark.verify.verifier import Verifier
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import share_text
from agentmark_lab.kit.worlds import TOOLBENCH, Agent

NAME = "single_episode"
TITLE = "A single episode: the 8-bit identity, uniquely recovered"

PAYLOAD_LEN = 8
LENGTHS = (10, 20)
EPISODES = {"F": 4000, "R": 2000}
QUICK_EPISODES = {"F": 60, "R": 12}
AIMS = {("R", 10): 0.39, ("R", 20): 0.93, ("F", 10): 0.06, ("F", 20): 0.61}


def run(options: Options, progress: Progress) -> Findings:
    episodes = QUICK_EPISODES if options.quick else EPISODES
    chunks = []
    for scheme, total in episodes.items():
        size = max(1, total // 20)
        chunks += [Chunk(scheme, min(size, total - start), options.seed, start) for start in range(0, total, size)]
    outcomes = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label="episodes")
    cells = []
    for scheme in episodes:
        merged = [part for chunk, part in zip(chunks, outcomes, strict=True) if chunk.scheme == scheme]
        cells += [
            EpisodeCell(scheme, steps, [outcome for part in merged for outcome in part[steps]]) for steps in LENGTHS
        ]
    return _findings(cells)


@dataclass(frozen=True, slots=True)
class Chunk:
    scheme: str
    episodes: int
    seed: int
    number: int


class Outcome(NamedTuple):
    """How many payloads explain every step; whether the verifier, told of no noise, names the one; whether the default
    verifier accepts; and whether what it accepts is wrong."""

    explaining: int
    unique: bool
    accepted: bool
    wrong: bool


def run_chunk(chunk: Chunk) -> dict[int, list[Outcome]]:
    rng = generator(chunk.seed, NAME, chunk.scheme, chunk.number)
    outcomes: dict[int, list[Outcome]] = {steps: [] for steps in LENGTHS}
    for _ in range(chunk.episodes):
        key = random_key(rng)
        payload = rng.getrandbits(PAYLOAD_LEN)
        records = Agent(TOOLBENCH, key, payload, PAYLOAD_LEN, chunk.scheme).log(rng, LENGTHS[-1])
        clean = Verifier(key, payload_len=PAYLOAD_LEN, noise=0.0)
        default = Verifier(key, payload_len=PAYLOAD_LEN)
        for steps in LENGTHS:
            episode = records[:steps]
            explaining = list(range(1 << PAYLOAD_LEN))
            for reading in clean.take_in(episode).readings:
                explaining = [m for m in explaining if reading.e_value(m) > 0]
            named = clean.verify(episode).candidate
            verdict = default.verify(episode)
            outcomes[steps].append(
                Outcome(
                    len(explaining), named == payload, verdict.accepted, verdict.accepted and verdict.payload != payload
                )
            )
    return outcomes


@dataclass(frozen=True, slots=True)
class EpisodeCell:
    scheme: str
    steps: int
    outcomes: list[Outcome]

    @property
    def unique(self) -> int:
        return sum(outcome.unique for outcome in self.outcomes)

    @property
    def accepted(self) -> int:
        return sum(outcome.accepted for outcome in self.outcomes)

    @property
    def likeliest(self) -> float:
        """The chance that the most likely payload is right, ties broken at random: on a clean log the most likely ones
        are those that explain every step, and the true one is among them."""
        return sum([1 / outcome.explaining for outcome in self.outcomes]) / len(self.outcomes)


def _findings(cells: list[EpisodeCell]) -> Findings:
    claims = []
    for cell in cells:
        trials = len(cell.outcomes)
        aim = AIMS[cell.scheme, cell.steps]
        claims.append(
            Claim(
                f"{cell.scheme}, {cell.steps} steps: the identity is uniquely recovered in "
                f"{share_text(cell.unique, trials, digits=3)} of {trials:,} episodes (aim: {aim}; Wilson 95 %).",
                wilson_interval(cell.unique, trials).high >= aim,
                aim=True,
            )
        )
    disagreeing = sum([o.unique != (o.explaining == 1) for cell in cells for o in cell.outcomes])
    total = sum([len(cell.outcomes) for cell in cells])
    claims.append(
        Claim(
            f"The verifier names an identity exactly when one payload explains every step: {disagreeing} differences "
            f"from trying all 256 in {total:,} episodes.",
            disagreeing == 0,
        )
    )
    wrong = sum([o.wrong for cell in cells for o in cell.outcomes])
    claims.append(Claim(f"No episode is accepted as another identity: {wrong} of {total:,}.", wrong == 0))
    rows: list[list[Cell]] = [
        [
            cell.scheme,
            cell.steps,
            len(cell.outcomes),
            share_text(cell.unique, len(cell.outcomes), digits=3),
            AIMS[cell.scheme, cell.steps],
            f"{cell.likeliest:.3f}",
            share_text(cell.accepted, len(cell.outcomes), digits=3),
        ]
        for cell in cells
    ]
    columns = ["scheme", "steps", "episodes", "uniquely recovered", "aim", "most likely is right", "accepted at 1e-6"]
    note = (
        "ToolBench-like: 10 behaviors, Dirichlet 0.055, 0.83 bits of entropy a step in the mean. Uniquely recovered: "
        "exactly one of the 256 payloads explains every step. Accepting it at 1e-6 takes 28 bits, which so short an "
        "episode rarely holds. The most likely payload, with ties broken at random. Wilson 95 % intervals in brackets."
    )
    data = {
        "cells": [
            {
                "scheme": cell.scheme,
                "steps": cell.steps,
                "episodes": len(cell.outcomes),
                "unique": cell.unique,
                "likeliest": cell.likeliest,
                "accepted": cell.accepted,
            }
            for cell in cells
        ]
    }
    return Findings(claims, [Table("Single episodes", columns, rows, note)], data)
