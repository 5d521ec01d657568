"""F against R in every environment: how soon an identity is named, and what its log withstands."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from math import inf
from pathlib import Path
from random import Random

from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.verifier import Verifier
from agentmark_lab.envs.base import ENVIRONMENTS, open_environment
from agentmark_lab.experiments.verification.views import VIEWS
from agentmark_lab.kit.agent_loop import F, R, chooser_for, play
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.experiment import Cell, Claim, Curve, Figure, Findings, Table
from agentmark_lab.kit.expert_agent import SoftenedExpert
from agentmark_lab.kit.naming import judge_splice, named_after
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import quantile, quantile_interval, share_text
from agentmark_lab.kit.worlds import another_payload, shuffled

NAME = "identification"
TITLE = "Every environment: how soon an identity is named, and what its log withstands"

EPSILON = 0.15
PAYLOAD_LEN = 8
TRIALS, QUICK_TRIALS = 12, 1
# A log is that of one identity over many tasks, until it is this long. One episode is often too short to name anyone.
STEPS, QUICK_STEPS = 240, 40
LOST, FOREIGN = 0.4, 0.1
FULL, CHOSEN, ACTION = "exact", "chosen weight only", "action only"
SEEN = {F: (FULL,), R: (FULL, CHOSEN, ACTION)}


@dataclass(frozen=True, slots=True)
class Chunk:
    environment: str
    policy: str
    steps: int
    seed: int
    trial: int
    work: Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """One identity's log. Steps until it is named, by view; then whether it is named after losses, whether both agents
    of a spliced log are, with the joint, and whether anyone else ever is."""

    environment: str
    policy: str
    steps: dict[str, float]
    episodes: int
    evidence_a_step: float
    damaged: bool
    spliced: bool
    wrong: bool


def run(options: Options, progress: Progress) -> Findings:
    environments, missing = _here(options.work)
    trials, steps = (QUICK_TRIALS, QUICK_STEPS) if options.quick else (TRIALS, STEPS)
    # Trial by trial rather than environment by environment, so that a long one does not come last.
    chunks = [
        Chunk(environment, policy, steps, options.seed, trial, options.work)
        for trial in range(trials)
        for environment in environments
        for policy in (R, F)
    ]
    outcomes = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label="logs")
    return _findings(outcomes, environments, missing, steps)


def _here(work: Path) -> tuple[list[str], list[str]]:
    """The environments that are installed, and what is missing for the others."""
    found, missing = [], []
    for name in ENVIRONMENTS:
        try:
            open_environment(name, work)
        except MissingError as error:
            missing.append(error)
        else:
            found.append(name)
    if not found:
        raise missing[0]
    return found, [str(error) for error in missing]


# A log ---------------------------------------------------------------------------------------------------------------


def run_chunk(chunk: Chunk) -> Outcome:
    rng = generator(chunk.seed, NAME, chunk.environment, chunk.policy, chunk.trial)
    key = random_key(rng)
    payload = rng.getrandbits(PAYLOAD_LEN)
    verifier = Verifier(key, payload_len=PAYLOAD_LEN)
    records, episodes = _log(chunk, key, payload, rng, chunk.steps)
    steps = {
        view: named_after([VIEWS[view](record, rng) for record in records], key, payload, payload_len=PAYLOAD_LEN)
        for view in SEEN[chunk.policy]
    }
    damaged = verifier.verify(_damaged(chunk, records, key, rng))
    other = another_payload(rng, payload, PAYLOAD_LEN)
    # Half of each, with a joint that may lie an eighth of the log to either side.
    cut = chunk.steps // 2 + rng.randint(-chunk.steps // 8, chunk.steps // 8)
    second, _ = _log(chunk, key, other, rng, chunk.steps - cut)
    spliced = judge_splice(verifier.segments([*records[:cut], *second]), [payload, other], [cut])
    return Outcome(
        chunk.environment,
        chunk.policy,
        steps,
        episodes,
        sum([reading.evidence_bits for reading in verifier.take_in(records).readings]) / len(records),
        damaged.accepted and damaged.payload == payload,
        spliced.success,
        (damaged.accepted and damaged.payload != payload) or spliced.invented,
    )


def _log(chunk: Chunk, key: SharedKey, payload: int, rng: Random, steps: int) -> tuple[list[StepRecord], int]:
    """The first steps of an identity that is given one task after another, drawn at random; and over how many."""
    environment = open_environment(chunk.environment, chunk.work)
    tasks = environment.tasks()
    records: list[StepRecord] = []
    episodes = 0
    while len(records) < steps:
        chooser = chooser_for(chunk.policy, key=key, payload=payload, payload_len=PAYLOAD_LEN, rng=rng)
        episode = environment.start(rng.choice(tasks), seed=rng.getrandbits(32))
        records += play(episode, SoftenedExpert(EPSILON), chooser, max_steps=environment.max_steps).records
        episodes += 1
    return records[:steps], episodes


def _damaged(chunk: Chunk, records: Sequence[StepRecord], key: SharedKey, rng: Random) -> list[StepRecord]:
    """Some records are lost, some of a stranger's are mixed in under our key id, and the order is lost."""
    left = rng.sample(list(records), round(len(records) * (1 - LOST)))
    stranger, _ = _log(chunk, random_key(rng), rng.getrandbits(PAYLOAD_LEN), rng, round(len(left) * FOREIGN))
    return shuffled(rng, [*left, *[replace(record, key_id=key.id) for record in stranger]])


# The report ----------------------------------------------------------------------------------------------------------


def _findings(outcomes: Sequence[Outcome], environments: Sequence[str], missing: Sequence[str], limit: int) -> Findings:
    cells = {
        (name, policy): [o for o in outcomes if (o.environment, o.policy) == (name, policy)]
        for name in environments
        for policy in (F, R)
    }
    rows: list[list[Cell]] = []
    for (name, policy), mine in cells.items():
        rows.append(
            [
                name,
                policy,
                len(mine),
                f"{sum([o.evidence_a_step for o in mine]) / len(mine):.2f}",
                *[_steps([o.steps[view] for o in mine], limit) if view in SEEN[policy] else "" for view in SEEN[R]],
                share_text(sum([o.damaged for o in mine]), len(mine)),
                share_text(sum([o.spliced for o in mine]), len(mine)),
            ]
        )
    medians = {place: _median([o.steps[FULL] for o in mine]) for place, mine in cells.items()}
    sooner = [name for name in environments if medians[name, R] < inf and medians[name, R] <= medians[name, F]]
    wrong = sum([outcome.wrong for outcome in outcomes])
    claims = [
        Claim(
            f"R's median is no later than F's in {len(sooner)} of {len(environments)} environments (point estimates; "
            "their intervals are in the table).",
            len(sooner) == len(environments),
            aim=True,
        ),
        Claim(f"In {len(outcomes):,} logs, damaged and spliced, nobody is named who is not in them.", wrong == 0),
    ]
    columns = [
        "environment", "policy", "logs", "bits/step", "steps until named: full list", "chosen weight only",
        "action only", "named after losses", "both agents of a splice",
    ]  # fmt: skip
    note = (
        f"A softened expert (epsilon {EPSILON}), not a language model. Logs of one {PAYLOAD_LEN}-bit identity over "
        f"tasks drawn at random, {limit} steps; named at {DEFAULT_THRESHOLD:g} with every payload paid for, "
        "without knowing that the log is clean. Steps: median with its 95 % interval, then the latest log. Losses: "
        f"{LOST:.0%} of the records are gone, a tenth as many of a stranger's join under our key id, all are shuffled. "
        f"A splice: two agents of about {limit // 2} steps each, both named and nobody else, the joint within 5 steps. "
        "Wilson 95 % intervals. F reads nothing without the full list."
    )
    if missing:
        note += f" Not here: {'; '.join(missing)}."
    table = Table("F against R, by environment", columns, rows, note)
    return Findings(claims, [table], {"logs": [_plain(o) for o in outcomes]}, [_figure(cells, environments, limit)])


def _plain(outcome: Outcome) -> dict[str, object]:
    """JSON has no infinity."""
    steps = {view: None if number == inf else number for view, number in outcome.steps.items()}
    return {**asdict(outcome), "steps": steps}


def _figure(cells: dict[tuple[str, str], list[Outcome]], environments: Sequence[str], limit: int) -> Figure:
    """How many logs are named after so many steps, all environments together."""
    curves = []
    for policy in (F, R):
        for view in SEEN[policy]:
            times = [o.steps[view] for name in environments for o in cells[name, policy]]
            reached = list(accumulate([sum([time == step for time in times]) for step in range(limit + 1)]))
            label = policy if view == FULL else f"{policy}, {view}"
            curves.append(
                Curve(label, [float(step) for step in range(limit + 1)], [count / len(times) for count in reached])
            )
    title = f"Identity named at {DEFAULT_THRESHOLD:g}, all environments (softened expert)"
    return Figure(NAME, title, "steps in the log", "share of logs", curves)


def _median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)


def _steps(values: Sequence[float], limit: int) -> str:
    interval = quantile_interval(values, 0.5)
    middle, low, high, most = [
        f"over {limit}" if value == inf else f"{value:.0f}"
        for value in (_median(values), interval.low, interval.high, max(values))
    ]
    return f"{middle} ({low} to {high}), {most}"
