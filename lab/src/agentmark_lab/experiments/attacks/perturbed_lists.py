"""The verifier's lists are not the embedder's (the paper's rewriting condition): identities from what still agrees."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmark.core.statistics import wilson_interval
from agentmark.record import StepRecord
from agentmark.verify.verifier import Verifier
from agentmark_lab.experiments.attacks.mismatch import TOLD_NOISE, Match, Tally, identify, match_of
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table, aims_in_words
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import share_text
from agentmark_lab.kit.worlds import ALFWORLD, Agent, perturbed, perturbed_list, shuffled

NAME = "rewriting"
TITLE = "Lists elicited again from reworded observations: identities all the same"

# The paper's Table 2: how often the behavior, and the extracted bit string, are the same after rewriting.
PAPER_BEHAVIOR_MATCH = 0.4945
PAPER_BIT_MATCH = 0.1684
FOREIGN_STEPS = 80
# Steps of each pooled log: F needs many more.
POOLED_LOG = {"F": 2560, "R": 10}
POOLS = (1, 2, 4, 8, 16)
POOL_LEN = 8


@dataclass(frozen=True, slots=True)
class Effort:
    calibration: int
    identify: dict[tuple[str, int], int]
    foreign: int
    pools: dict[str, int]


GRIDS = {
    ("F", 8): (1280, 2560, 5120, 10240, 20480, 40960),
    ("R", 8): (10, 15, 20, 30, 40, 60, 80),
    ("F", 16): (5120, 10240, 20480, 40960),
    ("R", 16): (15, 20, 30, 40, 60),
}
FULL = Effort(10_000, {("F", 8): 20, ("R", 8): 100, ("F", 16): 10, ("R", 16): 40}, 100, {"F": 12, "R": 50})
QUICK = Effort(300, {("F", 8): 0, ("R", 8): 2, ("F", 16): 0, ("R", 16): 0}, 1, {"F": 0, "R": 2})


def run(options: Options, progress: Progress) -> Findings:
    effort = QUICK if options.quick else FULL
    progress("finding the noise that the paper's rewriting amounts to")
    match = calibrate(effort.calibration, options.seed)
    chunks = []
    for (scheme, length), trials in effort.identify.items():
        chunks += _chunks("identify", scheme, length, trials=trials, seed=options.seed, sigma=match.sigma)
    chunks += _chunks("foreign", "R", 16, trials=effort.foreign, seed=options.seed, sigma=match.sigma)
    for scheme, trials in effort.pools.items():
        chunks += _chunks("pool", scheme, POOL_LEN, trials=trials, seed=options.seed, sigma=match.sigma)
    # The longest first.
    chunks.sort(key=lambda chunk: -chunk.payload_len)
    parts = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label="rewritten logs")
    tallies: dict[tuple[str, str, int, int], Tally] = {}
    for chunk, part in zip(chunks, parts, strict=True):
        for steps, tally in part.items():
            tallies.setdefault((chunk.kind, chunk.scheme, chunk.payload_len, steps), Tally()).add(tally)
    return _findings(match, dict(sorted(tallies.items())))


# How much noise ------------------------------------------------------------------------------------------------------


def calibrate(steps: int, seed: int) -> Match:
    """The sigma at which F's choice is the same as often as in the paper, by halving."""
    low, high = 0.0, 8.0
    match = measure_match(high, steps, seed)
    for _ in range(10):
        middle = (low + high) / 2
        match = measure_match(middle, steps, seed)
        if match.behavior_f > PAPER_BEHAVIOR_MATCH:
            low = middle
        else:
            high = middle
    return match


def measure_match(sigma: float, steps: int, seed: int) -> Match:
    rng = generator(seed, NAME, "calibrate")
    key = random_key(rng)
    drawn = (ALFWORLD.draw(rng) for _ in range(steps))
    return match_of(((one, perturbed_list(one, rng, sigma)) for one in drawn), key, rng, sigma=sigma)


# Logs ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    kind: str
    scheme: str
    payload_len: int
    trials: int
    seed: int
    number: int
    sigma: float


def _chunks(kind: str, scheme: str, length: int, *, trials: int, seed: int, sigma: float) -> list["Chunk"]:
    size = max(1, trials // 10)
    return [
        Chunk(kind, scheme, length, min(size, trials - start), seed, start, sigma) for start in range(0, trials, size)
    ]


def run_chunk(chunk: Chunk) -> dict[int, Tally]:
    rng = generator(chunk.seed, NAME, chunk.kind, chunk.scheme, chunk.payload_len, chunk.number)
    tallies: dict[int, Tally] = {}
    for _ in range(chunk.trials):
        key = random_key(rng)
        payload = rng.getrandbits(chunk.payload_len)
        agent = Agent(ALFWORLD, key, payload, chunk.payload_len, chunk.scheme)
        verifier = Verifier(key, payload_len=chunk.payload_len)
        if chunk.kind == "foreign":
            half = FOREIGN_STEPS // 2
            mixed = shuffled(rng, agent.log(rng, half) + agent.foreign_log(rng, half))
            _count(tallies.setdefault(FOREIGN_STEPS, Tally()), verifier, mixed, payload)
        elif chunk.kind == "pool":
            logs = [
                [perturbed(record, rng, chunk.sigma) for record in agent.log(rng, POOLED_LOG[chunk.scheme])]
                for _ in range(POOLS[-1])
            ]
            for count in POOLS:
                pooled = [record for log in logs[:count] for record in log]
                _count(tallies.setdefault(count, Tally()), verifier, pooled, payload)
        else:
            grid = GRIDS[chunk.scheme, chunk.payload_len]
            records = [perturbed(record, rng, chunk.sigma) for record in agent.log(rng, grid[-1])]
            tallies = tallies or {count: Tally() for count in grid}
            identify(records, payload, verifier, TOLD_NOISE[chunk.scheme], tallies)
    return tallies


def _count(tally: Tally, verifier: Verifier, records: Sequence[StepRecord], payload: int) -> None:
    """Judge with the whole verifier; a log too short for it to look for candidates names none."""
    verdict = verifier.verify(records)
    tally.trials += 1
    tally.identified += verdict.candidate == payload
    tally.accepted += verdict.payload == payload
    tally.wrong += verdict.accepted and verdict.payload != payload


# The report ----------------------------------------------------------------------------------------------------------


def _findings(match: Match, tallies: dict[tuple[str, str, int, int], Tally]) -> Findings:
    claims = [
        Claim(
            f"Log-normal noise of sigma {match.sigma:.2f} on every weight gives F's choice the paper's match of "
            f"{PAPER_BEHAVIOR_MATCH} ({match.behavior_f:.3f} of {match.steps:,} steps, within 0.03).",
            abs(match.behavior_f - PAPER_BEHAVIOR_MATCH) <= 0.03,
        ),
        Claim(
            f"F's bit strings then match in {match.bits_f:.3f} of the marked steps (paper: {PAPER_BIT_MATCH}).",
            abs(match.bits_f - PAPER_BIT_MATCH) <= 0.05,
            aim=True,
        ),
        Claim(
            f"R's choice is then still the same in {match.behavior_r:.3f} of the steps (aim: three in four).",
            match.behavior_r >= 0.75 - 0.02,
            aim=True,
        ),
    ]
    foreign = tallies["foreign", "R", 16, FOREIGN_STEPS]
    interval = wilson_interval(foreign.identified, foreign.trials)
    claims.append(
        Claim(
            f"R, L = 16, {FOREIGN_STEPS} steps of which half are foreign (full lists): the identity is the most likely "
            f"one in {foreign.identified} of {foreign.trials} logs ({interval.low:.2f} to {interval.high:.2f}), and "
            f"accepted at 1e-6 in {foreign.accepted} (aim: identified by 80 steps, that is in at least half).",
            2 * foreign.identified >= foreign.trials,
            aim=True,
        )
    )
    claims += [_from_steps_claim(*case, tallies) for case in GRIDS if _growing(*case, tallies)]
    pooled = [scheme for scheme in ("F", "R") if ("pool", scheme, POOL_LEN, 1) in tallies]
    claims += [_pooling_claim(scheme, tallies) for scheme in pooled]
    wrong = sum([tally.wrong for tally in tallies.values()])
    claims.append(
        Claim(f"No rewritten, pooled or half foreign log is accepted as another identity: {wrong}.", not wrong)
    )
    rows: list[list[Cell]] = []
    for (kind, scheme, length, steps), tally in tallies.items():
        if kind == "identify":
            counts = (tally.identified, tally.accepted, tally.told)
            shares = [share_text(count, tally.trials, digits=3) for count in counts]
            rows.append([scheme, length, steps, tally.trials, *shares])
    pool_rows: list[list[Cell]] = [
        [
            scheme,
            count,
            count * POOLED_LOG[scheme],
            tally.trials,
            share_text(tally.identified, tally.trials, digits=3),
            share_text(tally.accepted, tally.trials, digits=3),
        ]
        for (kind, scheme, _, count), tally in tallies.items()
        if kind == "pool"
    ]
    foreign_row: list[Cell] = [
        "R",
        16,
        FOREIGN_STEPS,
        foreign.trials,
        share_text(foreign.identified, foreign.trials, digits=3),
        share_text(foreign.accepted, foreign.trials, digits=3),
    ]
    match_row: list[Cell] = [
        f"{match.sigma:.3f}",
        f"{match.behavior_f:.3f}",
        f"{match.bits_f:.3f}",
        f"{match.agree_f:.3f}",
        f"{match.chance_f:.3f}",
        f"{match.behavior_r:.3f}",
        f"{match.divergence:.2f}",
    ]
    tables = [
        Table(
            "What the noise leaves",
            [
                "sigma",
                "F: same choice",
                "F: same bit string",
                "F: agrees",
                "F: any other agrees",
                "R: same choice",
                "KL divergence (bits)",
            ],
            [match_row],
            f"ALFWorld-like lists, {match.steps:,} steps; same step key and payload, weights perturbed. Bit strings: "
            "of the steps that carry bits, those from which the logged choice reads the same equations. Agrees: of the "
            "steps from which equations are read, those whose equations the identity satisfies, and any other identity "
            "by chance. The difference is all that is left to decode from, and far less than the bit strings that "
            "match suggest. The paper has 0.4945, 0.1684 and a divergence of 3.2."
            + aims_in_words(
                {
                    f"F's bit strings as in the paper ({match.bits_f:.3f}; aim 0.168 within 0.05)": claims[1].holds,
                    f"R's choice the same in three of four steps ({match.behavior_r:.3f})": claims[2].holds,
                    f"R, L = 16, half foreign, identified by {FOREIGN_STEPS} steps": claims[3].holds,
                }
            ),
        ),
        Table(
            "Identities from rewritten logs",
            ["scheme", "L", "steps", "logs", "most likely is right", "accepted at 1e-6", "accepted, noise told"],
            rows,
            "One log grows. Most likely: by one transform at the noise rate told (F 0.95, R 0.3). Accepted: the "
            "evidence for the identity pays for L bits and 1e-6, under the default mixture (rates to 0.95) or at the "
            "rate told. Wilson 95 % intervals.",
        ),
        Table(
            "Half of the steps foreign",
            ["scheme", "L", "steps", "logs", "most likely is right", "accepted at 1e-6"],
            [foreign_row],
            "Full lists, not rewritten; half of the steps are an agent's without the key, under our key id, in random "
            "order; through the whole verifier. Wilson 95 % intervals.",
        ),
        Table(
            "Pooled rewritten logs",
            ["scheme", "logs pooled", "steps", "trials", "candidate is right", "accepted at 1e-6"],
            pool_rows,
            f"Logs of {POOLED_LOG['F']} (F) or {POOLED_LOG['R']} (R) steps of one identity of {POOL_LEN} bits, "
            "through the whole verifier; nested pools.",
        ),
    ]
    data = {
        "sigma": match.sigma,
        "behavior_match": match.behavior_f,
        "bit_match": match.bits_f,
        "race_match": match.behavior_r,
        "cells": [
            {
                "kind": kind,
                "scheme": scheme,
                "payload_len": length,
                "steps": steps,
                "trials": tally.trials,
                "identified": tally.identified,
                "accepted": tally.accepted,
                "told": tally.told,
            }
            for (kind, scheme, length, steps), tally in tallies.items()
        ],
    }
    return Findings(claims, tables, data)


def _growing(scheme: str, length: int, tallies: dict[tuple[str, str, int, int], Tally]) -> dict[int, Tally]:
    """The cells of the logs that grow, by their steps."""
    return {key[3]: tally for key, tally in tallies.items() if key[:3] == ("identify", scheme, length)}


def _from_steps_claim(scheme: str, length: int, tallies: dict[tuple[str, str, int, int], Tally]) -> Claim:
    """From how many steps on nine logs in ten are identified, and accepted."""
    cells = _growing(scheme, length, tallies)
    identified = [steps for steps, tally in cells.items() if 10 * tally.identified >= 9 * tally.trials]
    accepted = [steps for steps, tally in cells.items() if 10 * tally.accepted >= 9 * tally.trials]
    last = max(cells)
    return Claim(
        f"{scheme}, L = {length}, rewritten: in at least nine of ten of {cells[last].trials} logs the transform "
        f"identifies from {_first(identified, last)} steps on, and the mixture accepts at 1e-6 from "
        f"{_first(accepted, last)} on.",
        bool(identified and accepted),
        aim=True,
    )


def _first(steps: Sequence[int], last: int) -> str:
    return f"{min(steps):,}" if steps else f"more than {last:,}"


def _pooling_claim(scheme: str, tallies: dict[tuple[str, str, int, int], Tally]) -> Claim:
    pools = [tallies["pool", scheme, POOL_LEN, count] for count in POOLS]
    limits = [wilson_interval(tally.identified, tally.trials) for tally in pools]
    monotone = all(a.low <= b.high for i, a in enumerate(limits) for b in limits[i + 1 :])
    shares = ", ".join([f"{tally.identified / tally.trials:.2f}" for tally in pools])
    counts = ", ".join(map(str, POOLS))
    return Claim(
        f"{scheme}: pooling more rewritten logs never names fewer right candidates, up to Wilson's 95 % intervals: "
        f"{shares} of {pools[0].trials} with {counts} logs of {POOLED_LOG[scheme]} steps.",
        monotone,
    )
