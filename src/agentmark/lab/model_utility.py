"""The same success with the mark and without it, for a real language model (Table 1): thousands of episodes.

A small model reads a hundred tokens a second, so it is asked once in each situation and its list is kept. Queries with
few tools, of which an agent sees the latest steps, have few situations, and any number of episodes can be played.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from statistics import fmean

from agentmark.elicit.situation import Elicitation, Elicitor, Situation
from agentmark.keys import SharedKey
from agentmark.lab.agent_loop import BASELINE, POLICIES, F, R, Timed, chooser_for, entropy, play
from agentmark.lab.data import work_folder
from agentmark.lab.envs.base import Task, open_environment
from agentmark.lab.experiment import Cell, Claim, Findings, Progress, Table
from agentmark.lab.identification import named_after
from agentmark.lab.models import ModelSpec, models_here
from agentmark.lab.parallel import map_chunks
from agentmark.lab.samples import generator, random_key
from agentmark.lab.sources import Effort, ElicitedLists, ModelAgent
from agentmark.lab.stats import quantile, quantile_interval
from agentmark.lab.utility import AGAINST, MARGIN, Comparison, comparison_claims, points, span, task_interval
from agentmark.record import StepRecord
from agentmark.verdict import DEFAULT_THRESHOLD
from agentmark.verify import Verifier

NAME = "model_utility"
TITLE = "A real language model, thousands of episodes: the same success with the mark (Table 1)"
ASKS_MODELS = True

ENVIRONMENT = "toolbench"
PAYLOAD_LEN = 8
# Of each subset: the first queries with the fewest tools, but at least two, and Finish.
TASKS_A_GROUP, FEWEST = 4, 3
# Planned for a standard error of half a point: the TOST then has a power above nine tenths.
TRIALS, QUICK_TRIALS, QUICK_TASKS = 600, 2, 2
# A trial is one identity that works on every task. So many of their logs are read back.
READ_TRIALS = 40
HISTORY, REPLY_LEN = 3, 80


@dataclass(frozen=True, slots=True)
class Chunk:
    """One task with one model."""

    model: ModelSpec
    task: Task
    seed: int
    trials: int


@dataclass(frozen=True, slots=True)
class Tally:
    """The episodes of a task under one policy; `logs` holds those that are to be read, trial by trial."""

    won: list[bool]
    steps: int
    lost: int
    entropy: float
    choose_us: float
    logs: list[list[StepRecord]]


@dataclass(frozen=True, slots=True)
class Outcome:
    task: Task
    by_policy: dict[str, Tally]
    # Once for each situation.
    asking: Effort


def run(*, quick: bool, seed: int, workers: int, progress: Progress) -> Findings:
    models = models_here(ENVIRONMENT)[: 1 if quick else None]
    tasks = few_tools(1 if quick else TASKS_A_GROUP)[: QUICK_TASKS if quick else None]
    trials = QUICK_TRIALS if quick else TRIALS
    success: list[list[Cell]] = []
    by_group: list[list[Cell]] = []
    cost: list[list[Cell]] = []
    claims: list[Claim] = []
    data: dict[str, object] = {}
    for model in models:
        chunks = [Chunk(model, task, seed, trials) for task in tasks]
        outcomes = map_chunks(run_chunk, chunks, workers=workers, progress=progress, label=model.label)
        logs = {policy: read_back(model, outcomes, policy, seed) for policy in (F, R)}
        success += [_success_row(model.label, outcomes, policy, logs.get(policy)) for policy in POLICIES]
        by_group += _group_rows(model.label, outcomes)
        cost.append(_cost_row(model.label, outcomes))
        claims += _claims(model.label, outcomes, logs)
        data[model.label] = [_plain(outcome) for outcome in outcomes]
    tables = [_success_table(success, tasks, trials), _group_table(by_group), _cost_table(cost)]
    return Findings(claims, tables, data)


def few_tools(a_group: int) -> list[Task]:
    """The first queries of each subset with the fewest tools."""
    environment = open_environment(ENVIRONMENT)
    groups: dict[str, list[tuple[int, Task]]] = {}
    for task in environment.tasks():
        behaviors = len(environment.start(task, seed=0).behaviors)
        if behaviors >= FEWEST:
            groups.setdefault(task.group, []).append((behaviors, task))
    return [
        task
        for members in groups.values()
        for _, task in sorted(members, key=lambda member: member[0])[:a_group]
    ]  # fmt: skip


# The episodes of a task ----------------------------------------------------------------------------------------------


class _ShuffledBySituation:
    """Shows the options in an order that the situation alone decides, so that a run repeats, whatever came before."""

    def __init__(self, model: ModelSpec, seed: int) -> None:
        self._model = model
        self._seed = seed
        self.name = self._elicitor(None).name

    def elicit(self, situation: Situation) -> Elicitation:
        return self._elicitor(situation).elicit(situation)

    async def aelicit(self, situation: Situation) -> Elicitation:
        return await self._elicitor(situation).aelicit(situation)

    def _elicitor(self, situation: Situation | None) -> Elicitor:
        return self._model.open_elicitor(generator(self._seed, NAME, "order", situation))


class _AskedOnce:
    """Asks in each situation once."""

    def __init__(self, lists: ElicitedLists) -> None:
        self._lists = lists
        self._said: dict[str, Elicitation] = {}

    def elicit(self, situation: Situation) -> Elicitation:
        asked = repr(situation)
        if asked not in self._said:
            self._said[asked] = self._lists.elicit(situation)
        return self._said[asked]


def run_chunk(chunk: Chunk) -> Outcome:
    folder = work_folder() / NAME / f"{chunk.model.label.replace('/', '-')}-seed{chunk.seed}"
    lists = ElicitedLists(_ShuffledBySituation(chunk.model, chunk.seed), folder)
    asked_once = _AskedOnce(lists)
    by_policy = {policy: _episodes(chunk, policy, asked_once) for policy in POLICIES}
    return Outcome(chunk.task, by_policy, lists.effort)


def _episodes(chunk: Chunk, policy: str, lists: _AskedOnce) -> Tally:
    environment = open_environment(ENVIRONMENT)
    won, logs = [], []
    steps, lost, entropies, microseconds = 0, 0, 0.0, 0.0
    for trial in range(chunk.trials):
        key, payload = identity(chunk.model, chunk.seed, trial)
        rng = generator(chunk.seed, NAME, chunk.model.label, chunk.task.id, policy, trial)
        chooser = Timed(chooser_for(policy, key=key, payload=payload, payload_len=PAYLOAD_LEN, rng=rng))
        agent = ModelAgent(lists, label=chunk.model.label, history=HISTORY, reply_len=REPLY_LEN)
        played = play(environment.start(chunk.task, seed=trial), agent, chooser, max_steps=environment.max_steps)
        won.append(played.success)
        steps += played.steps
        lost += played.lost
        entropies += sum([entropy(record) for record in played.records])
        microseconds += chooser.microseconds
        if policy in (F, R) and trial < READ_TRIALS:
            logs.append(list(played.records))
    return Tally(won, steps, lost, entropies, microseconds, logs)


def identity(model: ModelSpec, seed: int, trial: int) -> tuple[SharedKey, int]:
    """Whoever works on every task in this trial."""
    rng = generator(seed, NAME, "identity", model.label, trial)
    return random_key(rng), rng.getrandbits(PAYLOAD_LEN)


# Their logs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Log:
    """What a verifier makes of one identity's log. `named_after`: so many decisions, or infinity."""

    decisions: int
    bits: float
    named_after: float
    named: bool
    # Another identity is named; or anyone, with a key that marked nothing here.
    wrong: bool


def read_back(model: ModelSpec, outcomes: Sequence[Outcome], policy: str, seed: int) -> list[Log]:
    tasks = [outcome.by_policy[policy].logs for outcome in outcomes]
    found = []
    for trial, episodes in enumerate(zip(*tasks, strict=True)):
        records = [record for episode in episodes for record in episode]
        key, payload = identity(model, seed, trial)
        verifier = Verifier(key, payload_len=PAYLOAD_LEN)
        verdict = verifier.verify(records)
        stranger, _ = identity(model, seed, trial + len(tasks[0]))
        claimed = [replace(record, key_id=stranger.id) for record in records]
        misled = Verifier(stranger, payload_len=PAYLOAD_LEN).verify(claimed)
        found.append(
            Log(
                len(records),
                sum([reading.evidence_bits for reading in verifier.take_in(records).readings]),
                named_after(records, key, payload),
                verdict.accepted and verdict.payload == payload,
                misled.accepted or (verdict.accepted and verdict.payload != payload),
            )
        )
    return found


# The report ----------------------------------------------------------------------------------------------------------


def compare(outcomes: Sequence[Outcome], policy: str) -> Comparison:
    """Paired by task and trial; a task is one cluster."""
    means = []
    for outcome in outcomes:
        paired = zip(outcome.by_policy[policy].won, outcome.by_policy[BASELINE].won, strict=True)
        means.append(fmean([float(mine) - float(base) for mine, base in paired]))
    pairs = sum([len(outcome.by_policy[policy].won) for outcome in outcomes])
    return Comparison(policy, len(means), pairs, tuple(means))


def _success_row(model: str, outcomes: Sequence[Outcome], policy: str, logs: Sequence[Log] | None) -> list[Cell]:
    mine = [outcome.by_policy[policy] for outcome in outcomes]
    steps = sum([tally.steps for tally in mine])
    episodes = sum([len(tally.won) for tally in mine])
    against: list[Cell] = ["", "", "", ""]
    if policy != BASELINE:
        found = compare(outcomes, policy)
        against = [
            f"{points(found.difference)} ({span(found.interval)})",
            span(found.tost_interval),
            f"{100 * found.standard_error:.2f}" if found.is_normal else "",
            "yes" if found.equivalent() else "not shown",
        ]
    read: list[Cell] = ["", "", ""]
    if logs:
        read = [
            f"{sum([log.bits for log in logs]) / sum([log.decisions for log in logs]):.2f}",
            f"{sum([log.named for log in logs])} of {len(logs)}",
            _decisions([log.named_after for log in logs]),
        ]
    return [
        model,
        policy,
        episodes,
        _percent(mine),
        *against,
        f"{steps / episodes:.1f}",
        sum([tally.lost for tally in mine]),
        f"{sum([tally.entropy for tally in mine]) / steps:.2f}",
        *read,
        f"{sum([tally.choose_us for tally in mine]) / steps:.0f}",
    ]


def _percent(tallies: Sequence[Tally]) -> str:
    means = [fmean(tally.won) for tally in tallies]
    interval = task_interval(means)
    return f"{100 * fmean(means):.1f} ({100 * max(0.0, interval.low):.1f} to {100 * min(1.0, interval.high):.1f})"


def _decisions(values: Sequence[float]) -> str:
    interval = quantile_interval(values, 0.5)
    limits = (quantile(values, 0.5), interval.low, interval.high)
    middle, low, high = ["never" if value == inf else f"{value:.0f}" for value in limits]
    return f"{middle} ({low} to {high})"


def _claims(model: str, outcomes: Sequence[Outcome], logs: dict[str, list[Log]]) -> list[Claim]:
    claims = comparison_claims([compare(outcomes, policy) for policy in (F, R)], model)
    for policy, read in logs.items():
        named = sum([log.named for log in read])
        claims.append(
            Claim(
                f"{model}, {policy}: {named} of {len(read)} identities are named at {DEFAULT_THRESHOLD:g} from their "
                f"{fmean([log.decisions for log in read]):.0f} decisions.",
                named == len(read),
                aim=True,
            )
        )
        wrong = sum([log.wrong for log in read])
        claims.append(Claim(f"{model}, {policy}: {wrong} of {len(read)} logs name anyone else.", wrong == 0))
    return claims


def _success_table(rows: list[list[Cell]], tasks: Sequence[Task], trials: int) -> Table:
    columns = [
        "model", "policy", "episodes", "success of the proxy, %", AGAINST, "TOST interval", "standard error",
        "equivalent within 2", "steps", "lost steps", "entropy/step", "bits/step", "identities named",
        "decisions until named", "choose, us/step",
    ]  # fmt: skip
    note = (
        f"{len(tasks)} real ToolBench queries: of each subset the first with the fewest tools, at least two, and "
        f"Finish. {trials} trials of each, planned for a standard error of half a point. Success is the offline proxy "
        "(every gold API called, then Finish, within ten decisions), not a pass rate. The list is the model's own at "
        f"the first asking; in a situation met before (the same query and latest {HISTORY} steps) it is that list "
        "again, for every policy. Lost steps: the model said nothing that could be used; never replaced. Differences "
        "are paired by task and trial; in brackets 95 % intervals, each task one cluster (Student's t); TOST: 90 %, "
        f"margin {100 * MARGIN:.0f} points. A trial is one {PAYLOAD_LEN}-bit identity that works on all tasks; the "
        f"logs of the first {READ_TRIALS} are read back, named at {DEFAULT_THRESHOLD:g} with every payload paid for, "
        "and shown to a key that marked nothing."
    )
    return Table("A language model with the mark and without it", columns, rows, note)


def _group_rows(model: str, outcomes: Sequence[Outcome]) -> list[list[Cell]]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.task.group, []).append(outcome)
    return [
        [model, group, len(members), *[f"{_mean_success(members, policy):.1f}" for policy in POLICIES]]
        for group, members in groups.items()
    ]


def _mean_success(outcomes: Sequence[Outcome], policy: str) -> float:
    return 100 * fmean([fmean(outcome.by_policy[policy].won) for outcome in outcomes])


def _group_table(rows: list[list[Cell]]) -> Table:
    columns = ["model", "subset", "queries", *[f"{policy} %" for policy in POLICIES]]
    return Table("By subset", columns, rows, "Success of the proxy. Few queries in each: for the eye.")


def _cost_row(model: str, outcomes: Sequence[Outcome]) -> list[Cell]:
    asked = sum([outcome.asking.calls for outcome in outcomes])
    tokens = sum([outcome.asking.input_tokens + outcome.asking.output_tokens for outcome in outcomes])
    seconds = sum([outcome.asking.seconds for outcome in outcomes])
    decisions = sum([tally.steps for outcome in outcomes for tally in outcome.by_policy.values()])
    unusable = sum([outcome.asking.unusable for outcome in outcomes])
    return [model, asked, unusable, f"{tokens / asked:.0f}", f"{seconds / asked:.1f}", f"{seconds / 60:.0f}", decisions]


def _cost_table(rows: list[list[Cell]]) -> Table:
    columns = [
        "model",
        "situations asked",
        "unusable",
        "tokens a list",
        "seconds a list",
        "minutes",
        "decisions played",
    ]
    note = (
        "The time of the first asking, one thread for each process, on a machine with other work. The mark adds no "
        "token: with it and without it an agent asks for the same list, and choosing takes what the first table says."
    )
    return Table("What the model cost", columns, rows, note)


def _plain(outcome: Outcome) -> dict[str, object]:
    """What the result keeps: successes, not logs."""
    won = {policy: sum(tally.won) for policy, tally in outcome.by_policy.items()}
    return {"task": outcome.task.id, "group": outcome.task.group, "won": won, "asking": asdict(outcome.asking)}
