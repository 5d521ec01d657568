"""Lost records (Fig. 5, App. H.2): RLNC rows against a repetition code, one episode alone and all together."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from random import Random

from agentmark.core.statistics import wilson_interval
from agentmark.core.symbols import Reading
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Curve, Figure, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.worlds import TOOLBENCH, Agent
from agentmark_lab.peers.repetition import RepetitionSession, contains_intact_segment, surviving_bits

NAME = "erasure"
TITLE = "Lost records: RLNC against repetition (Fig. 5)"

PAYLOAD_LEN = 8
STEPS = 60
# As the paper: episodes that decode when nothing is lost, so many of one identity. The paper erases the same ones
# thirty times; here there are thirty identities, so that every trial stands for itself.
EPISODES = {"F": 25, "R": 25, "repetition": 19}
IDENTITIES, QUICK_IDENTITIES, QUICK_EPISODES = 30, 5, 5
RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99, 1.0)
QUICK_RATES = (0.0, 0.5, 0.8, 1.0)
SINGLE, GLOBAL, TRUNCATED = "one episode", "all episodes", "one episode, cut off"
LABELS = {"F": "AgentMark-F (RLNC)", "R": "AgentMark-R (RLNC)", "repetition": "repetition code"}


@dataclass(frozen=True, slots=True)
class Chunk:
    """The episodes of one identity, at every rate."""

    code: str
    rates: tuple[float, ...]
    episodes: int
    identity: int
    seed: int


@dataclass(slots=True)
class Tally:
    """Successes and trials by regime."""

    successes: dict[str, int] = field(default_factory=lambda: dict.fromkeys((SINGLE, GLOBAL, TRUNCATED), 0))
    trials: dict[str, int] = field(default_factory=lambda: dict.fromkeys((SINGLE, GLOBAL, TRUNCATED), 0))

    def count(self, regime: str, outcomes: Sequence[bool]) -> None:
        self.successes[regime] += sum(outcomes)
        self.trials[regime] += len(outcomes)


def run(options: Options, progress: Progress) -> Findings:
    rates = QUICK_RATES if options.quick else RATES
    chunks = [
        Chunk(code, rates, QUICK_EPISODES if options.quick else count, identity, options.seed)
        for identity in range(QUICK_IDENTITIES if options.quick else IDENTITIES)
        for code, count in EPISODES.items()
    ]
    outcomes = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label="identities")
    by_cell = {(code, rate): Tally() for code in EPISODES for rate in rates}
    for chunk, outcome in zip(chunks, outcomes, strict=True):
        for (rate, regime), decoded in outcome.items():
            by_cell[chunk.code, rate].count(regime, decoded)
    return Findings(_claims(by_cell), [_table(by_cell, rates)], _data(by_cell), [_figure(by_cell, rates)])


def run_chunk(chunk: Chunk) -> dict[tuple[float, str], list[bool]]:
    """Whether each log is decoded, by rate and regime. The episodes are the same at every rate."""
    rng = generator(chunk.seed, NAME, chunk.code, chunk.identity)
    make = _repetition_episodes if chunk.code == "repetition" else _coded_episodes
    key, payload, episodes = make(rng, chunk.code, chunk.episodes)
    outcomes = {}
    for rate in chunk.rates:
        kept = [[step for step in episode if rng.random() >= rate] for episode in episodes]
        logs = {
            SINGLE: kept,
            GLOBAL: [[step for log in kept for step in log]],
            TRUNCATED: [_cut(episode, rate) for episode in episodes],
        }
        for regime, some in logs.items():
            outcomes[rate, regime] = [_decoded(log, chunk.code, key, payload) for log in some]
    return outcomes


@dataclass(frozen=True, slots=True)
class _Step:
    """A logged step, and as bits of an integer the payloads that explain it."""

    record: StepRecord
    explaining: int


_Episodes = tuple[SharedKey, int, list[list[_Step]]]
_ALL = (1 << (1 << PAYLOAD_LEN)) - 1


def _coded_episodes(rng: Random, scheme: str, count: int) -> _Episodes:
    """Episodes of one identity, each of which names it when nothing is lost."""
    key, payload = random_key(rng), rng.getrandbits(PAYLOAD_LEN)
    reader = Verifier(key, payload_len=PAYLOAD_LEN, noise=0.0)
    episodes: list[list[_Step]] = []
    while len(episodes) < count:
        records = Agent(TOOLBENCH, key, payload, PAYLOAD_LEN, scheme).log(rng, STEPS)
        steps = [_Step(step.record, _explaining(step.reading)) for step in reader.take_in(records).steps]
        if _decoded(steps, scheme, key, payload):
            episodes.append(steps)
    return key, payload, episodes


def _explaining(reading: Reading | None) -> int:
    if reading is None:
        raise RuntimeError("an agent's own step is always possible under its key")
    return sum([1 << m for m in range(1 << PAYLOAD_LEN) if reading.e_value(m) > 0])


def _repetition_episodes(rng: Random, code: str, count: int) -> _Episodes:
    key, payload = random_key(rng), rng.getrandbits(PAYLOAD_LEN)
    episodes: list[list[_Step]] = []
    while len(episodes) < count:
        session = RepetitionSession(key, payload, payload_len=PAYLOAD_LEN, rng=rng)
        steps = [_Step(session.choose(TOOLBENCH.draw(rng).as_weights()).record, _ALL) for _ in range(STEPS)]
        if _decoded(steps, code, key, payload):
            episodes.append(steps)
    return key, payload, episodes


def _cut(episode: list[_Step], rate: float) -> list[_Step]:
    """The same share is lost, all of it at the end."""
    return episode[: round(len(episode) * (1 - rate))]


def _decoded(steps: list[_Step], code: str, key: SharedKey, payload: int) -> bool:
    """RLNC: one payload explains what is left, and it is the right one. Repetition: an intact run survives."""
    if code == "repetition":
        stream = surviving_bits([step.record for step in steps], key)
        return contains_intact_segment(stream, payload, payload_len=PAYLOAD_LEN)
    return reduce(and_, [step.explaining for step in steps], _ALL) == 1 << payload


Cells = dict[tuple[str, float], Tally]


def _claims(by_cell: Cells) -> list[Claim]:
    claims = []
    rates = sorted({rate for _, rate in by_cell})
    for rate in [rate for rate in rates if rate in (0.5, 0.8)]:
        shares = {code: _share(by_cell[code, rate], SINGLE) for code in EPISODES}
        claims.append(
            Claim(
                f"{rate:.0%} of the records lost, one episode: AgentMark-R decodes {shares['R']:.1%}, AgentMark-F "
                f"{shares['F']:.1%}, repetition {shares['repetition']:.1%}.",
                shares["R"] >= shares["F"] > shares["repetition"],
                aim=True,
            )
        )
    claims.append(_cut_off_claim(by_cell, [rate for rate in rates if rate in (0.5, 0.6, 0.8)]))
    nothing = [_share(by_cell[code, 1.0], regime) for code in EPISODES for regime in (SINGLE, GLOBAL)]
    claims.append(Claim("From nothing, nothing is decoded.", not any(nothing)))
    return claims


def _cut_off_claim(by_cell: Cells, rates: list[float]) -> Claim:
    """The other half of Fig. 5: what is left is one piece, which is what a repetition code needs."""
    shares = {rate: {code: _share(by_cell[code, rate], TRUNCATED) for code in EPISODES} for rate in rates}
    told = [
        f"{rate:.0%} cut off: AgentMark-R decodes {of['R']:.1%}, AgentMark-F {of['F']:.1%}, repetition "
        f"{of['repetition']:.1%}"
        for rate, of in shares.items()
    ]
    return Claim(
        f"One episode whose end is cut off, so that what is left is one piece: {'; '.join(told)} (aim: both decode "
        "more often than repetition).",
        all(of["R"] > of["repetition"] < of["F"] for of in shares.values()),
        aim=True,
    )


def _share(tally: Tally, regime: str) -> float:
    return tally.successes[regime] / tally.trials[regime]


def _text(tally: Tally, regime: str) -> str:
    interval = wilson_interval(tally.successes[regime], tally.trials[regime])
    return f"{_share(tally, regime):.3f} ({interval.low:.3f} to {interval.high:.3f})"


def _table(by_cell: Cells, rates: tuple[float, ...]) -> Table:
    cells = [(regime, code) for regime in (SINGLE, GLOBAL, TRUNCATED) for code in EPISODES]
    columns = ["lost", *[f"{LABELS[code]}, {regime}" for regime, code in cells]]
    rows: list[list[Cell]] = [
        [f"{rate:.1%}", *[_text(by_cell[code, rate], regime) for regime, code in cells]] for rate in rates
    ]
    note = (
        f"ToolBench-like lists (10 behaviors, Dirichlet 0.055), {STEPS} steps an episode, an 8-bit identity. "
        f"{IDENTITIES} identities with {EPISODES['F']} episodes each (repetition: {EPISODES['repetition']}, as in the "
        "paper) that decode when nothing is lost; each loses records once at every rate. The repetition code is given "
        "the benefit of the doubt: an intact run of the payload counts even though its reader would not know where it "
        "begins. Share decoded, Wilson 95 %."
    )
    return Table("Decoded after losses", columns, rows, note)


def _figure(by_cell: Cells, rates: tuple[float, ...]) -> Figure:
    curves = []
    for regime in (SINGLE, GLOBAL):
        for code in EPISODES:
            tallies = [by_cell[code, rate] for rate in rates]
            spans = [wilson_interval(tally.successes[regime], tally.trials[regime]) for tally in tallies]
            curves.append(
                Curve(
                    f"{LABELS[code]}, {regime}",
                    list(rates),
                    [_share(tally, regime) for tally in tallies],
                    [span.low for span in spans],
                    [span.high for span in spans],
                )
            )
    title = "8-bit identity decoded after losses (ToolBench-like lists)"
    return Figure("erasure", title, "share of records lost", "share decoded", curves)


def _data(by_cell: Cells) -> dict[str, object]:
    return {
        "cells": [
            {"code": code, "rate": rate, "successes": tally.successes, "trials": tally.trials}
            for (code, rate), tally in by_cell.items()
        ]
    }
