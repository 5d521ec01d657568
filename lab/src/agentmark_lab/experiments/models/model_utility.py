"""A real language model on tasks that it can do: its lists, its own replies, and both with the mark (Tables 1, 4, 5).

A model on two cores reads some tens of tokens a second, so it is asked once in each situation: for a list, and for a
pool of replies in which it names what it does, without a list. Tasks with few situations repeat them, and any number of
episodes can be played on what it said. Tasks, trials and margins were planned before (`plans/model_utility.toml`);
whether a difference would show is seen on policies that bend what the model says, under the same tests.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import erfc, inf, sqrt
from statistics import fmean, pvariance

from agentmark.core.statistics import Interval, normal_quantile
from agentmark.record import StepRecord
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.verifier import Verifier
from agentmark_lab.envs.base import Task, open_environment
from agentmark_lab.experiments.models.model_plan import ModelPlan, PlannedPlace
from agentmark_lab.experiments.models.model_trials import (
    BENT,
    BY_LIST,
    BY_REPLY,
    MARKED,
    NO_INDUCTION,
    PAYLOAD_LEN,
    POLICIES,
    REFERENCES,
    UNIFORM,
    Chunk,
    Outcome,
    Tally,
    identity,
    run_chunk,
)
from agentmark_lab.kit.agent_loop import BASELINE
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.draws import generator
from agentmark_lab.kit.equivalence import AGAINST, Comparison, points, span
from agentmark_lab.kit.experiment import Cell, Claim, Findings, Table
from agentmark_lab.kit.model_agent import Effort
from agentmark_lab.kit.models import ModelSpec, models_here
from agentmark_lab.kit.naming import named_after
from agentmark_lab.kit.options import DEFAULT_ENVIRONMENT, Options, Progress
from agentmark_lab.kit.parallel import map_chunks
from agentmark_lab.kit.presets import GGUF_VARIABLE
from agentmark_lab.kit.stats import quantile, quantile_interval
from agentmark_lab.kit.task_test import task_test
from agentmark_lab.kit.utility_tests import CUT, Judged, steps_text, verdict as verdict_of

NAME = "model_utility"
TITLE = "A real language model on tasks that it can do: lists, its own replies, and the mark (Tables 1, 4, 5)"
ASKS_MODELS = True

QUICK_TASKS, QUICK_TRIALS, QUICK_REPLIES = 1, 2, 4

# Table 4 of the paper (DeepSeek-Chat): success without induction, of AgentMark-F, and of the elicited baseline.
PAPER_SUCCESS: dict[str, list[Cell]] = {"toolbench": [59.6, 59.7, 59.9], "alfworld-id": [83.1, 89.3, 89.5]}
# Table 5: divergence at the first step and overall, model, and pairs of episodes.
PAPER_DIVERGENCE: dict[str, list[Cell]] = {
    "toolbench": ["the paper: DeepSeek-Chat", 0.0701, 0.1764, 542],
    "alfworld-id": ["the paper: Gemini 2.0 Flash", 0.0765, 0.4597, 140],
}


@dataclass(frozen=True, slots=True)
class PlayedPlace:
    """All that one model did in one place."""

    model: ModelSpec
    place: PlannedPlace
    chunks: list[Chunk]
    outcomes: list[Outcome]

    @property
    def where(self) -> str:
        return f"{self.model.label} on {self.place.title}"

    def tallies(self, policy: str) -> list[Tally]:
        return [outcome.by_policy[policy] for outcome in self.outcomes]


def run(options: Options, progress: Progress) -> Findings:
    plan = ModelPlan.of(NAME)
    model = _model(plan, options)
    if options.quick:
        plan = plan.quick(tasks=QUICK_TASKS, trials=QUICK_TRIALS, replies=QUICK_REPLIES)
    played = [_played(plan, place, model, options, progress) for place in _places(plan, options)]
    logs = {(one.place.environment, policy): read_back(one, policy) for one in played for policy in MARKED}
    judged = [(one, judge(one, policy)) for one in played for policy in REFERENCES]
    tables = [
        _success_table(played, logs, plan),
        _judged_table(judged, plan),
        _table_4(played),
        _table_5(played, plan),
        _task_table(played),
        _cost_table(played),
    ]
    data = {"plan": plan.data, "outcomes": {one.where: [_plain(outcome) for outcome in one.outcomes] for one in played}}
    return Findings(_claims(played, judged, logs, quick=options.quick), tables, data)


def _model(plan: ModelPlan, options: Options) -> ModelSpec:
    """The one that the tasks were chosen for; one that was asked for; for a quick look any."""
    models = models_here(options, DEFAULT_ENVIRONMENT)
    if options.quick or options.model is not None:
        return models[0]
    for model in models:
        if model.label == plan.model:
            return model
    raise MissingError(f"the model {plan.model}, for which the tasks were chosen", f"set {GGUF_VARIABLE} to its file")


def _places(plan: ModelPlan, options: Options) -> list[PlannedPlace]:
    """For a quick look those that are installed."""
    found = []
    for place in plan.places:
        try:
            open_environment(place.environment, options.work)
        except MissingError:
            if not options.quick:
                raise
        else:
            found.append(place)
    if not found:
        raise MissingError("an environment", "run `make lab` and use .venvs/lab/bin/agentmark")
    return found


def _played(
    plan: ModelPlan, place: PlannedPlace, model: ModelSpec, options: Options, progress: Progress
) -> PlayedPlace:
    groups = {task.id: task.group for task in open_environment(place.environment, options.work).tasks()}
    chunks = [
        Chunk(model, plan, place, Task(one.id, groups[one.id]), options.seed, options.work) for one in place.tasks
    ]
    label = f"{model.label}, {place.title}"
    outcomes = map_chunks(run_chunk, chunks, workers=options.workers, progress=progress, label=label)
    return PlayedPlace(model, place, chunks, outcomes)


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


def read_back(played: PlayedPlace, policy: str) -> list[Log]:
    """The log of each identity: all its episodes, in an order of its own."""
    chunk = played.chunks[0]
    tasks = [tally.logs for tally in played.tallies(policy)]
    each = chunk.place.each
    found = []
    for number in range(chunk.place.read // each):
        episodes = [log for logs in tasks for log in logs[number * each : (number + 1) * each]]
        order = generator(chunk.seed, NAME, "episodes", number).sample(episodes, len(episodes))
        found.append(_read(chunk, number, [record for episode in order for record in episode]))
    return found


def _read(chunk: Chunk, number: int, records: Sequence[StepRecord]) -> Log:
    key, payload = identity(chunk, number)
    verifier = Verifier(key, payload_len=PAYLOAD_LEN)
    verdict = verifier.verify(records)
    stranger, _ = identity(chunk, number + chunk.place.read)
    claimed = [replace(record, key_id=stranger.id) for record in records]
    misled = Verifier(stranger, payload_len=PAYLOAD_LEN).verify(claimed)
    return Log(
        len(records),
        sum([reading.evidence_bits for reading in verifier.take_in(records).readings]),
        named_after(records, key, payload, payload_len=PAYLOAD_LEN),
        verdict.accepted and verdict.payload == payload,
        misled.accepted or (verdict.accepted and verdict.payload != payload),
    )


# The tests -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfTheseTasks(Comparison):
    """A comparison on tasks that were selected and stand for no others: what varies is the trials within each, which
    share nothing. `error`: the standard error of the mean over tasks."""

    error: float = 0.0

    def at(self, confidence: float) -> Interval:
        reach = normal_quantile((1 + confidence) / 2) * self.error
        return Interval(self.difference - reach, self.difference + reach)

    @property
    def p_value(self) -> float:
        """Two-sided, of H0 that the means are the same; 1 where nothing varies."""
        return erfc(abs(self.difference) / self.error / sqrt(2)) if self.error else 1.0


def judge(played: PlayedPlace, policy: str) -> Judged:
    """A policy against the one that it must not be told apart from."""
    mine, reference = played.tallies(policy), played.tallies(REFERENCES[policy])
    success, steps = _compared(policy, mine, reference), _compared(policy, mine, reference, of_steps=True)
    p_values = {
        "success": success.p_value,
        "success by task": task_test([(_won(a), _won(b)) for a, b in zip(mine, reference, strict=True)]).p_value,
        "steps": steps.p_value,
        "steps by task": task_test([(_taken(a), _taken(b)) for a, b in zip(mine, reference, strict=True)]).p_value,
    }
    return Judged(played.place.title, played.place.level, policy, success, steps, p_values)


def _compared(
    policy: str, mine: Sequence[Tally], reference: Sequence[Tally], *, of_steps: bool = False
) -> OfTheseTasks:
    values = _taken if of_steps else _won
    pairs = [(values(a), values(b)) for a, b in zip(mine, reference, strict=True)]
    means = tuple([fmean(a) - fmean(b) for a, b in pairs])
    error = sqrt(sum([_variance(a) + _variance(b) for a, b in pairs])) / len(pairs)
    episodes = sum([len(a) for a, _ in pairs])
    return OfTheseTasks(policy, len(means), episodes, means, is_share=not of_steps, error=error)


def _variance(values: Sequence[float]) -> float:
    """Of their mean."""
    return pvariance(values) / len(values)


def _won(tally: Tally) -> list[float]:
    return [float(won) for won in tally.won]


def _taken(tally: Tally) -> list[float]:
    return [float(steps) for steps in tally.steps]


# The report ----------------------------------------------------------------------------------------------------------


def _claims(
    played: Sequence[PlayedPlace],
    judged: Sequence[tuple[PlayedPlace, Judged]],
    logs: dict[tuple[str, str], list[Log]],
    *,
    quick: bool,
) -> list[Claim]:
    """A quick look has too few trials to show anything: what it must not show is still a claim."""
    claims = []
    for one in played:
        of_place = [found for place, found in judged if place is one]
        claims += [claim for found in of_place if found.policy in MARKED for claim in _mark_claims(one, found)]
        claims += [_bent_claim(one, found) for found in of_place if found.policy in BENT]
        claims += [_uniform_claim(one, policy) for policy in (NO_INDUCTION, BASELINE)]
        claims += [_induction_claim(one)]
        for policy in MARKED:
            claims += _log_claims(one, policy, logs[one.place.environment, policy])
    return [replace(claim, aim=claim.aim or (quick and not claim.holds)) for claim in claims]


def _mark_claims(played: PlayedPlace, found: Judged) -> list[Claim]:
    reference = REFERENCES[found.policy]
    level = found.level
    return [
        Claim(
            f"{played.where}: {found.policy} succeeds as often as {reference} within {100 * level.success.margin:g} "
            f"points (TOST): {_difference(found.success)}, {found.success.episodes:,} pairs of episodes in "
            f"{found.success.tasks} tasks.",
            found.same_success,
            aim=True,
        ),
        Claim(
            f"{played.where}: {found.policy} takes as many steps as {reference} within {level.steps.margin:g} (TOST): "
            f"{steps_text(found.steps)}.",
            found.same_steps,
            aim=True,
        ),
        Claim(
            f"{played.where}: no task is seen to change under {found.policy} against {reference}, neither in success "
            f"nor in length: p = {found.p_value:.2g} (a difference is seen below {CUT:g}).",
            not found.is_seen,
        ),
    ]


def _difference(found: Comparison) -> str:
    return f"{points(found.difference)} points (90 % {span(found.tost_interval)})"


def _bent_claim(played: PlayedPlace, found: Judged) -> Claim:
    return Claim(
        f"{played.where}: {found.policy} does not pass the same tests against {REFERENCES[found.policy]}: "
        f"{_difference(found.success)}, {steps_text(found.steps)} steps, p = {found.p_value:.2g}.",
        not found.passes,
        aim=True,
    )


def _uniform_claim(played: PlayedPlace, policy: str) -> Claim:
    """That there is something to lose."""
    found = _compared(policy, played.tallies(policy), played.tallies(UNIFORM))
    return Claim(
        f"{played.where}: {policy} succeeds more often than a uniform agent: {_rate(played, policy)} against "
        f"{_rate(played, UNIFORM)} %, {points(found.difference)} points (95 % {span(found.interval)}).",
        found.interval.low > 0,
        aim=True,
    )


def _rate(played: PlayedPlace, policy: str) -> str:
    return f"{100 * fmean([fmean(tally.won) for tally in played.tallies(policy)]):.1f}"


def _induction_claim(played: PlayedPlace) -> Claim:
    """What asking for a list changes, before any mark. Nothing says that it is nothing: it is an aim."""
    found = _compared(BASELINE, played.tallies(BASELINE), played.tallies(NO_INDUCTION))
    return Claim(
        f"{played.where}: asking for a list changes success by at most {100 * played.place.success.margin:g} points "
        f"(TOST): elicited baseline against no induction {_difference(found)}.",
        found.equivalent(played.place.success.margin),
        aim=True,
    )


def _log_claims(played: PlayedPlace, policy: str, logs: Sequence[Log]) -> list[Claim]:
    named, wrong = sum([log.named for log in logs]), sum([log.wrong for log in logs])
    return [
        Claim(
            f"{played.where}, {policy}: {named} of {len(logs)} identities are named at {DEFAULT_THRESHOLD:g} from the "
            f"{fmean([log.decisions for log in logs]):.0f} decisions of {played.place.each} episodes of each task.",
            named == len(logs),
            aim=True,
        ),
        Claim(f"{played.where}, {policy}: {wrong} of {len(logs)} logs name anyone else.", wrong == 0),
    ]


def _success_table(played: Sequence[PlayedPlace], logs: dict[tuple[str, str], list[Log]], plan: ModelPlan) -> Table:
    rows = [_success_row(one, policy, logs) for one in played for policy in POLICIES]
    columns = [
        "place", "model", "policy", "episodes", "success, %", "against", AGAINST, "TOST interval", "steps",
        "lost steps", "entropy/step", "bits/step", "identities named", "decisions until named",
    ]  # fmt: skip
    note = (
        "The model was asked once in each situation: for a list, read off its logits for the options' full names, and "
        f"for {plan.replies} replies at temperature 1 that name what it does next, without a word of a list. No "
        "induction: one of these replies is done. Proposals: "
        f"{plan.samples} of them are drawn, grouped by what they name, a group is chosen with the mark, and one reply "
        "of it is done. Baseline, AgentMark-F and -R, as in the paper: a draw from the list. Red-green and early "
        "stopping bend the list, or the replies, on purpose. Lost steps: the model named nothing that can be done; it "
        "costs a step and is never replaced, for every policy alike. In brackets 95 % intervals over trials: the tasks "
        "were selected, and stand for no others; TOST: 90 %. A trial is one identity of "
        f"{PAYLOAD_LEN} bits that works on every task; the first {plan.places[0].read} of each policy are read back "
        f"and named at {DEFAULT_THRESHOLD:g} with every payload paid for, and are shown to a key that marked nothing. "
        f"{_where(plan)}"
    )
    return Table("A language model with the mark and without it", columns, rows, note)


def _where(plan: ModelPlan) -> str:
    return (
        "ToolBench: success is the offline proxy (every gold API called, then Finish, within ten decisions), not a "
        "pass rate; every tool of these queries is needed, so that it is lost by finishing too early or never. "
        "ALFWorld: an expert plays up to the last two steps, and the agent takes these two; the first step that does "
        "not lead on ends the episode. These are selected, easy tasks and a small model: they show whether the mark "
        f"changes what such a model does, and not how good it is. {plan.sentence}"
    )


def _success_row(played: PlayedPlace, policy: str, logs: dict[tuple[str, str], list[Log]]) -> list[Cell]:
    mine = played.tallies(policy)
    steps, episodes = sum([sum(tally.steps) for tally in mine]), sum([len(tally.won) for tally in mine])
    reference = REFERENCES.get(policy, NO_INDUCTION if policy in (BASELINE, UNIFORM) else "")
    against: list[Cell] = ["", "", ""]
    if reference:
        found = _compared(policy, mine, played.tallies(reference))
        against = [reference, f"{points(found.difference)} ({span(found.interval)})", span(found.tost_interval)]
    read: list[Cell] = ["", "", ""]
    if policy in MARKED:
        of_policy = logs[played.place.environment, policy]
        read = [
            f"{sum([log.bits for log in of_policy]) / max(1, sum([log.decisions for log in of_policy])):.2f}",
            f"{sum([log.named for log in of_policy])} of {len(of_policy)}",
            _decisions([log.named_after for log in of_policy]),
        ]
    return [
        played.place.title,
        played.model.label,
        policy,
        episodes,
        _percent(mine),
        *against,
        f"{steps / episodes:.2f}",
        sum([tally.lost for tally in mine]),
        f"{sum([tally.entropy for tally in mine]) / steps:.2f}" if policy not in (NO_INDUCTION, UNIFORM) else "",
        *read,
    ]


def _percent(tallies: Sequence[Tally]) -> str:
    values = [_won(tally) for tally in tallies]
    mean, error = fmean([fmean(won) for won in values]), sqrt(sum([_variance(won) for won in values])) / len(values)
    reach = normal_quantile(0.975) * error
    return f"{100 * mean:.1f} ({100 * max(0.0, mean - reach):.1f} to {100 * min(1.0, mean + reach):.1f})"


def _decisions(values: Sequence[float]) -> str:
    interval = quantile_interval(values, 0.5)
    limits = (quantile(values, 0.5), interval.low, interval.high)
    middle, low, high = ["never" if value == inf else f"{value:.0f}" for value in limits]
    return f"{middle} ({low} to {high})"


def _judged_table(judged: Sequence[tuple[PlayedPlace, Judged]], plan: ModelPlan) -> Table:
    rows: list[list[Cell]] = [
        [
            place.place.title,
            found.policy,
            REFERENCES[found.policy],
            found.success.episodes,
            f"{points(found.success.difference)} ({span(found.success.tost_interval)})",
            _shown(found.same_success, f"within {100 * found.level.success.margin:g} points"),
            steps_text(found.steps),
            _shown(found.same_steps, f"within {found.level.steps.margin:g} steps"),
            f"{found.p_value:.2g}",
            min(found.p_values, key=lambda name: found.p_values[name]),
            f"{found.level.success.power(found.success.episodes, found.success.tasks):.2f}",
            verdict_of(found),
        ]
        for place, found in judged
    ]
    columns = [
        "place", "policy", "against", "pairs of episodes", "success, points (90 % interval)", "same success",
        "steps (90 % interval)", "same length", "p, nothing changes", "smallest of four", "planned chance", "verdict",
    ]  # fmt: skip
    note = (
        "Success: both one-sided tests at 5 % within the margin (TOST), over the trials of these tasks. Length: the same "
        "for the steps of all episodes, won or lost. Nothing changes: H0 is that neither success nor length is distributed "
        "otherwise in any task; the smallest p of four (mean over tasks and sum over tasks, of success and of length), "
        f"times four; a difference is seen below {CUT:g}. A policy that passes all three passes, and one fails where a "
        "difference is seen; in between, equivalence is not shown. Planned chance: of showing the same success, if "
        f"there is no difference. {plan.sentence}"
    )
    return Table("What the mark must pass and a biasing watermark must fail", columns, rows, note)


def _shown(is_shown: bool, what: str) -> str:
    return what if is_shown else f"not shown {what}"


def _table_4(played: Sequence[PlayedPlace]) -> Table:
    """In the paper's form."""
    shown = (NO_INDUCTION, MARKED[2], BASELINE)
    rows: list[list[Cell]] = []
    for one in played:
        paper = PAPER_SUCCESS.get(one.place.environment, [""] * 3)
        rows.append([one.place.title, one.model.label, *[_percent(one.tallies(policy)) for policy in shown], ""])
        rows.append([one.place.title, "the paper: DeepSeek-Chat", *paper, ""])
        rows[-2][-1] = _points_between(one, BASELINE, NO_INDUCTION)
    columns = ["place", "model", "no induction %", "AgentMark-F %", "baseline %", "baseline against no induction"]
    note = (
        "The paper's own model, tasks and checks are others: its figures stand here for the eye. Its agent without "
        "induction is greedy; here it is sampled at temperature 1, as the elicited ones are sampled from their lists. "
        "A difference between the first and the last column is what asking for a list changes, without any mark; with "
        "proposals it does not arise."
    )
    return Table("No induction (Table 4)", columns, rows, note)


def _points_between(played: PlayedPlace, policy: str, reference: str) -> str:
    found = _compared(policy, played.tallies(policy), played.tallies(reference))
    return f"{points(found.difference)} ({span(found.interval)})"


def _table_5(played: Sequence[PlayedPlace], plan: ModelPlan) -> Table:
    rows: list[list[Cell]] = []
    for one in played:
        first = [fmean([pair[0] for pair in outcome.divergences if pair]) for outcome in one.outcomes]
        overall = [fmean([step for pair in outcome.divergences for step in pair]) for outcome in one.outcomes]
        pairs = sum([len(outcome.divergences) for outcome in one.outcomes])
        rows.append([one.place.title, one.model.label, f"{fmean(first):.4f}", f"{fmean(overall):.4f}", pairs])
        if one.place.environment in PAPER_DIVERGENCE:
            rows.append([one.place.title, *PAPER_DIVERGENCE[one.place.environment]])
    note = (
        f"Jensen-Shannon divergence in bits between the lists of {plan.runs} runs, step by step until one of the two "
        "episodes ends; means over pairs, then tasks. Each run was asked for every list anew, with the options in "
        "another order. At the first step the situation is the same; later the episodes have branched. Steps of "
        "options that differ are far apart for that alone. The paper's: other models, tasks and lengths."
    )
    return Table(
        "Stability of the lists across runs (Table 5)", ["place", "model", "first step", "overall", "pairs"], rows, note
    )


def _task_table(played: Sequence[PlayedPlace]) -> Table:
    rows: list[list[Cell]] = []
    for one in played:
        for planned, outcome in zip(one.place.tasks, one.outcomes, strict=True):
            rates = [
                f"{100 * fmean(outcome.by_policy[policy].won):.1f}" for policy in (NO_INDUCTION, BASELINE, UNIFORM)
            ]
            rows.append(
                [
                    one.place.title,
                    planned.id,
                    outcome.situations,
                    f"{100 * planned.pilot:.0f}",
                    f"{100 * planned.uniform:.1f}",
                    *rates,
                ]
            )
    columns = [
        "place",
        "task",
        "situations",
        "pilot %",
        "pilot, uniform %",
        "no induction %",
        "baseline %",
        "uniform %",
    ]
    note = (
        "Pilot: what its own lists led to expect, asked with another seed; tasks were chosen by these, others left out."
    )
    return Table("Task by task", columns, rows, note)


def _cost_table(played: Sequence[PlayedPlace]) -> Table:
    rows: list[list[Cell]] = []
    for one in played:
        lists, replies = [outcome.lists for outcome in one.outcomes], [outcome.replies for outcome in one.outcomes]
        missing = [mass for outcome in one.outcomes for mass in outcome.missing_mass]
        rows.append([one.place.title, "a list", *_cost(lists), f"{fmean(missing):.2f}" if missing else ""])
        rows.append([one.place.title, "a reply", *_cost(replies), ""])
    columns = ["place", "asked for", "asked", "unusable", "tokens each", "seconds each", "minutes", "missing mass"]
    note = (
        "The time of the first asking, one thread, on a machine with other work; replies of a pool read their prompt "
        "once. Unusable: no list; or a reply that names no option. Missing mass: what the model gave to other words "
        "than the options; the list is the rest, scaled up. A list is what an elicited mark costs; proposals cost as "
        "many more replies as are drawn. Beyond that the mark adds no token."
    )
    return Table("What the model cost", columns, rows, note)


def _cost(efforts: Sequence[Effort]) -> list[Cell]:
    asked = max(1, sum([one.calls for one in efforts]))
    tokens, seconds = (
        sum([one.input_tokens + one.output_tokens for one in efforts]),
        sum([one.seconds for one in efforts]),
    )
    return [
        asked,
        sum([one.unusable for one in efforts]),
        f"{tokens / asked:.0f}",
        f"{seconds / asked:.1f}",
        f"{seconds / 60:.0f}",
    ]


def _plain(outcome: Outcome) -> dict[str, object]:
    """What the result keeps: successes and steps, not logs."""
    cells = {policy: f"{sum(t.won)}/{len(t.won)} {sum(t.steps)}" for policy, t in outcome.by_policy.items()}
    efforts = {"lists": asdict(outcome.lists), "replies": asdict(outcome.replies)}
    return {"task": outcome.task.id, "group": outcome.task.group, "outcomes": cells, **efforts}
