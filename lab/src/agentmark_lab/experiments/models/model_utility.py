"""Success with the mark and without it, for a real language model (Table 1): thousands of episodes.

A model on two cores reads some tens of tokens a second, so it is asked once in each situation and its list is kept.
Queries with few tools, of whose steps an agent sees the latest, have few situations, and any number of episodes can be
played on their lists. Whether a difference would show is seen on an agent that knows nothing of the lists.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from random import Random
from statistics import fmean

from agentmark.core.distribution import BehaviorDistribution, Probabilities
from agentmark.elicit.situation import Elicitation, Situation
from agentmark.embed.session import Choice
from agentmark.keys.shared import SharedKey
from agentmark.policies import BaselineSession
from agentmark.policies.chooser import Chooser
from agentmark.record import StepRecord
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.verifier import Verifier
from agentmark_lab.envs.base import Task, open_environment
from agentmark_lab.envs.toolbench import FINISH, ToolBench
from agentmark_lab.kit.agent_loop import BASELINE, POLICIES, F, R, Timed, chooser_for, entropy_of, play
from agentmark_lab.kit.draws import generator, random_key
from agentmark_lab.kit.equivalence import AGAINST, MARGIN, Comparison, comparison_claims, points, span, task_interval
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.model_agent import Effort, ElicitedLists, InFixedOrder, ModelAgent
from agentmark_lab.kit.models import ModelSpec, models_here
from agentmark_lab.kit.naming import named_after
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.stats import chi_square_sf, quantile, quantile_interval

NAME = "model_utility"
TITLE = "A small language model, thousands of episodes: success with the mark and without it (Table 1)"
ASKS_MODELS = True

ENVIRONMENT = "toolbench"
PAYLOAD_LEN = 8
# Of each subset: the first queries with the fewest tools among those that offer a tool which is not needed.
TASKS_A_GROUP = 4
# Planned for a standard error of half a point: the TOST then has a power above nine tenths.
TRIALS, QUICK_TRIALS, QUICK_TASKS = 600, 1, 2
# A trial is one identity that works on every task. So many of their logs are read back.
READ_TRIALS = 40
HISTORY, REPLY_LEN = 2, 80
# Takes what is offered, each as likely: what the proxy gives to whoever knows nothing.
UNIFORM = "uniform choice"
ROWS = (*POLICIES, UNIFORM)
# A difference is claimed, or denied, at this level.
LEVEL = 0.001


@dataclass(frozen=True, slots=True)
class Chunk:
    """One task with one model."""

    model: ModelSpec
    task: Task
    seed: int
    trials: int
    work: Path


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
    missing_mass: list[float]


def run(options: Options, progress: Progress) -> Findings:
    models = models_here(options, ENVIRONMENT)[: 1 if options.quick else None]
    tasks = few_tools(options.work, 1 if options.quick else TASKS_A_GROUP)[: QUICK_TASKS if options.quick else None]
    trials = QUICK_TRIALS if options.quick else TRIALS
    success: list[list[Cell]] = []
    by_group: list[list[Cell]] = []
    cost: list[list[Cell]] = []
    claims: list[Claim] = []
    data: dict[str, object] = {}
    for model in models:
        chunks = [Chunk(model, task, options.seed, trials, options.work) for task in tasks]
        outcomes = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label=model.label)
        logs = {policy: read_back(model, outcomes, policy, options.seed) for policy in (F, R)}
        success += [_success_row(model.label, outcomes, policy, logs.get(policy)) for policy in ROWS]
        by_group += _group_rows(model.label, outcomes)
        cost.append(_cost_row(model.label, outcomes))
        claims += _claims(model.label, outcomes, logs)
        data[model.label] = [_plain(outcome) for outcome in outcomes]
    tables = [_success_table(success, tasks, trials), _group_table(by_group), _cost_table(cost)]
    return Findings(claims, tables, data)


def few_tools(work: Path, a_group: int) -> list[Task]:
    """The first queries of each subset with the fewest tools, one of them not needed."""
    environment = ToolBench(work)
    groups: dict[str, list[tuple[int, Task]]] = {}
    for task in environment.tasks():
        query = environment.start(task, seed=0)
        if len(query.behaviors) > len(query.gold | {FINISH}):
            groups.setdefault(task.group, []).append((len(query.behaviors), task))
    return [
        task
        for members in groups.values()
        for _, task in sorted(members, key=lambda member: member[0])[:a_group]
    ]  # fmt: skip


# The episodes of a task ----------------------------------------------------------------------------------------------


class _AskedOnce:
    """Asks in each situation once."""

    def __init__(self, lists: ElicitedLists) -> None:
        self._lists = lists
        self._said: dict[str, Elicitation] = {}

    @property
    def missing_mass(self) -> list[float]:
        """What the model gave to other words than the options, where that is known."""
        return [said.missing_mass for said in self._said.values() if said.missing_mass is not None]

    def elicit(self, situation: Situation) -> Elicitation:
        asked = repr(situation)
        if asked not in self._said:
            self._said[asked] = self._lists.elicit(situation)
        return self._said[asked]


def run_chunk(chunk: Chunk) -> Outcome:
    folder = chunk.work / NAME / f"{chunk.model.label.replace('/', '-')}-seed{chunk.seed}"
    lists = ElicitedLists(InFixedOrder(chunk.model.open_elicitor, f"{chunk.seed} {NAME}"), folder)
    asked_once = _AskedOnce(lists)
    by_policy = {policy: _episodes(chunk, policy, asked_once) for policy in ROWS}
    return Outcome(chunk.task, by_policy, lists.effort, asked_once.missing_mass)


def _episodes(chunk: Chunk, policy: str, lists: _AskedOnce) -> Tally:
    environment = open_environment(ENVIRONMENT, chunk.work)
    won, logs = [], []
    steps, lost, entropies, microseconds = 0, 0, 0.0, 0.0
    for trial in range(chunk.trials):
        key, payload = identity(chunk.model, chunk.seed, trial)
        rng = generator(chunk.seed, NAME, chunk.model.label, chunk.task.id, policy, trial)
        chooser = Timed(_chooser(policy, key, payload, rng))
        agent = ModelAgent(lists, label=chunk.model.label, history=HISTORY, reply_len=REPLY_LEN)
        played = play(environment.start(chunk.task, seed=trial), agent, chooser, max_steps=environment.max_steps)
        won.append(played.success)
        steps += played.steps
        lost += played.lost
        entropies += sum([entropy_of(record) for record in played.records])
        microseconds += chooser.microseconds
        if policy in (F, R) and trial < READ_TRIALS:
            logs.append(list(played.records))
    return Tally(won, steps, lost, entropies, microseconds, logs)


class _UniformChoice:
    def __init__(self, rng: Random) -> None:
        self._session = BaselineSession(rng)

    def choose(self, weights: Probabilities) -> Choice:
        return self._session.choose(dict.fromkeys(BehaviorDistribution.quantise(weights).as_weights(), 1))


def _chooser(policy: str, key: SharedKey, payload: int, rng: Random) -> Chooser:
    if policy == UNIFORM:
        return _UniformChoice(rng)
    return chooser_for(policy, key=key, payload=payload, payload_len=PAYLOAD_LEN, rng=rng)


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
        # The tasks come in another order to each.
        order = generator(seed, NAME, "tasks", trial).sample(range(len(episodes)), len(episodes))
        records = [record for place in order for record in episodes[place]]
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
                named_after(records, key, payload, payload_len=PAYLOAD_LEN),
                verdict.accepted and verdict.payload == payload,
                misled.accepted or (verdict.accepted and verdict.payload != payload),
            )
        )
    return found


# The report ----------------------------------------------------------------------------------------------------------


def compare(outcomes: Sequence[Outcome], policy: str) -> Comparison:
    """The mean difference over tasks; a task is one cluster."""
    means = [_rate(outcome, policy) - _rate(outcome, BASELINE) for outcome in outcomes]
    pairs = sum([len(outcome.by_policy[policy].won) for outcome in outcomes])
    return Comparison(policy, len(means), pairs, tuple(means))


def _rate(outcome: Outcome, policy: str) -> float:
    return fmean(outcome.by_policy[policy].won)


def differs_by_task(outcomes: Sequence[Outcome], policy: str) -> tuple[float, int, float]:
    """H0: in every task the policy succeeds as often as the baseline. Finds what a mean over tasks may hide. The
    statistic of a chi-square test, its degrees of freedom and the p-value."""
    statistic, degrees = 0.0, 0
    for outcome in outcomes:
        mine, base = _rate(outcome, policy), _rate(outcome, BASELINE)
        both = (mine + base) / 2
        if 0 < both < 1:
            statistic += (mine - base) ** 2 * len(outcome.by_policy[policy].won) / (2 * both * (1 - both))
            degrees += 1
    return statistic, degrees, chi_square_sf(statistic, degrees) if degrees else 1.0


def _success_row(model: str, outcomes: Sequence[Outcome], policy: str, logs: Sequence[Log] | None) -> list[Cell]:
    mine = [outcome.by_policy[policy] for outcome in outcomes]
    steps = sum([tally.steps for tally in mine])
    episodes = sum([len(tally.won) for tally in mine])
    against: list[Cell] = [""] * 5
    if policy != BASELINE:
        found = compare(outcomes, policy)
        against = [
            f"{points(found.difference)} ({span(found.interval)})",
            span(found.tost_interval),
            f"{100 * found.standard_error:.2f}" if found.is_normal else "",
            "yes" if found.equivalent() else "not shown",
            f"{differs_by_task(outcomes, policy)[2]:.2g}",
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
        f"{sum([tally.entropy for tally in mine]) / steps:.2f}" if policy != UNIFORM else "",
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
    for policy in (F, R, UNIFORM):
        statistic, degrees, p_value = differs_by_task(outcomes, policy)
        test = f"chi-square {statistic:.1f}, {degrees} degrees of freedom, p = {p_value:.2g}"
        if policy == UNIFORM:
            text = f"{model}: the same test tells an agent apart that knows nothing of the lists ({test})."
            claims.append(Claim(text, p_value < LEVEL, aim=True))
        else:
            claims.append(Claim(f"{model}, {policy}: no task changes beyond chance ({test}).", p_value >= LEVEL))
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
        "equivalent within 2", "p, task by task", "steps", "lost steps", "entropy/step", "bits/step",
        "identities named", "decisions until named", "choose, us/step",
    ]  # fmt: skip
    note = (
        f"{len(tasks)} real ToolBench queries: of each subset the first with the fewest tools among those that offer "
        f"one which is not needed. {trials} trials of each, planned for a standard error of half a point. Success is "
        "the offline proxy (every gold API called, then Finish, within ten decisions), not a pass rate: it is lost by "
        f"finishing too early, hardly by a wrong call, and {UNIFORM} says what it gives to whoever knows nothing. The "
        f"model was asked once in each situation (the query and the latest {HISTORY} steps): all of this is given "
        "these lists, the same for every policy. Lost steps: the model said nothing that could be used; never "
        "replaced. In brackets 95 % intervals, each task one cluster (Student's t); TOST: 90 %, margin "
        f"{100 * MARGIN:.0f} points, of the mean over tasks; task by task: a chi-square test that no task changes, "
        "which also sees what cancels in the mean. Red-green draws its green behaviors anew at each step, so that on "
        "average it changes little where lists are nearly even; what it costs a sure agent is in the tables of the "
        f"softened expert. A trial is one {PAYLOAD_LEN}-bit identity that works on all tasks, in an order of its own; "
        f"the logs of the first {READ_TRIALS} are read back, named at {DEFAULT_THRESHOLD:g} "
        "with every payload paid for, and shown to a key that marked nothing."
    )
    return Table("A language model with the mark and without it", columns, rows, note)


def _group_rows(model: str, outcomes: Sequence[Outcome]) -> list[list[Cell]]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.task.group, []).append(outcome)
    return [
        [model, group, len(members), *[f"{_mean_success(members, policy):.1f}" for policy in ROWS]]
        for group, members in groups.items()
    ]


def _mean_success(outcomes: Sequence[Outcome], policy: str) -> float:
    return 100 * fmean([_rate(outcome, policy) for outcome in outcomes])


def _group_table(rows: list[list[Cell]]) -> Table:
    columns = ["model", "subset", "queries", *[f"{policy} %" for policy in ROWS]]
    return Table("By subset", columns, rows, "Success of the proxy. Few queries in each: for the eye.")


def _cost_row(model: str, outcomes: Sequence[Outcome]) -> list[Cell]:
    asked = sum([outcome.asking.calls for outcome in outcomes])
    tokens = sum([outcome.asking.input_tokens + outcome.asking.output_tokens for outcome in outcomes])
    seconds = sum([outcome.asking.seconds for outcome in outcomes])
    decisions = sum([tally.steps for outcome in outcomes for tally in outcome.by_policy.values()])
    unusable = sum([outcome.asking.unusable for outcome in outcomes])
    missing = [mass for outcome in outcomes for mass in outcome.missing_mass]
    cost = [f"{tokens / asked:.0f}", f"{seconds / asked:.1f}", f"{seconds / 60:.0f}"]
    return [model, asked, unusable, f"{fmean(missing):.2f}" if missing else "", *cost, decisions]


def _cost_table(rows: list[list[Cell]]) -> Table:
    columns = [
        "model",
        "situations asked",
        "unusable",
        "missing mass",
        "tokens a list",
        "seconds a list",
        "minutes",
        "decisions played",
    ]
    note = (
        "The time of the first asking, one thread for each process, on a machine with other work. Missing mass: what "
        "the model gave to other words than the options; the list is the rest, scaled up. A list is what the mark "
        "costs: an agent that would not ask for one saves it (`agentmark lab run language_model`, no induction). "
        "Beyond it the mark adds no token, and choosing takes what the first table says."
    )
    return Table("What the model cost", columns, rows, note)


def _plain(outcome: Outcome) -> dict[str, object]:
    """What the result keeps: successes, not logs."""
    won = {policy: sum(tally.won) for policy, tally in outcome.by_policy.items()}
    return {"task": outcome.task.id, "group": outcome.task.group, "won": won, "asking": asdict(outcome.asking)}
