"""The tables of the experiment with a language model on tasks that it can do."""

from collections.abc import Mapping, Sequence
from math import inf, sqrt
from statistics import fmean

from agentmark.core.statistics import normal_quantile
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark_lab.experiments.models.model_judging import Log, PlayedPlace, compared, variance_of_mean
from agentmark_lab.experiments.models.model_plan import ModelPlan, PlannedPlace
from agentmark_lab.experiments.models.model_trials import (
    MARKED,
    NO_INDUCTION,
    PAYLOAD_LEN,
    POLICIES,
    REFERENCES,
    UNIFORM,
    Tally,
)
from agentmark_lab.kit.agent_loop import BASELINE, F
from agentmark_lab.kit.equivalence import AGAINST, points, span
from agentmark_lab.kit.experiment import Cell, Table
from agentmark_lab.kit.model_agent import Effort
from agentmark_lab.kit.stats import quantile, quantile_interval
from agentmark_lab.kit.utility_tests import CUT, FOUND, TITLE, Judged, found_cells, verdict

# Table 4 of the paper (DeepSeek-Chat): success without induction, of AgentMark-F, and of the elicited baseline.
PAPER_SUCCESS: dict[str, list[Cell]] = {"toolbench": [59.6, 59.7, 59.9], "alfworld-id": [83.1, 89.3, 89.5]}
# Table 5: divergence at the first step and overall, model, and pairs of episodes.
PAPER_DIVERGENCE: dict[str, list[Cell]] = {
    "toolbench": ["the paper: DeepSeek-Chat", 0.0701, 0.1764, 542],
    "alfworld-id": ["the paper: Gemini 2.0 Flash", 0.0765, 0.4597, 140],
}


# Of each place and policy.
Logs = Mapping[tuple[str, str], Sequence[Log]]


def success_table(played: Sequence[PlayedPlace], logs: Logs, plan: ModelPlan) -> Table:
    rows = [_success_row(one, policy, logs) for one in played for policy in POLICIES]
    columns = [
        "place", "model", "policy", "episodes", "success, %", "against", AGAINST, "TOST interval", "steps",
        "lost steps", "entropy/step", "bits/step", "identities named", "decisions until named",
    ]  # fmt: skip
    note = (
        "The model was asked once in each situation: for a list, read off its logits for the options' full names, and "
        f"for {plan.replies} replies at temperature 1 that name what it does next, without a word of a list: "
        "this pool stands for the model. Each set of trials asks it anew, with the options in other orders; this table "
        "has all sets together, each trial counting alike. No induction: one of these replies is done. Proposals: "
        f"{plan.samples} of them are drawn, grouped by what they name, a group is chosen with the mark, and one reply "
        "of it is done. Baseline, AgentMark-F and -R, as in the paper: a draw from the list. Red-green and early "
        "stopping bend the list, or the replies, on purpose. Lost steps: the model named nothing that can be done; it "
        "costs a step and is never replaced, for every policy alike. In brackets 95 % intervals over trials: the tasks "
        "were selected, and stand for no others; TOST: 90 %. Differences are from the policy that `against` names. An "
        f"identity of {PAYLOAD_LEN} bits works on every task, in {_each(plan)}; of each policy that is marked "
        f"{_identities(plan)} identities are read back, named at {DEFAULT_THRESHOLD:g} with every payload "
        "paid for, and shown to a key that marked nothing. "
        f"{_where(plan)}"
    )
    return Table("A language model with the mark and without it", columns, rows, note)


def _identities(plan: ModelPlan) -> int:
    return len(plan.sets) * plan.places[0].identities


def _each(plan: ModelPlan) -> str:
    return " and ".join([f"{place.each} episodes of each on {place.title}" for place in plan.places])


def _where(plan: ModelPlan) -> str:
    return (
        "ToolBench: success is the offline proxy (every gold API called, then Finish, within ten decisions), not a "
        "pass rate; every tool of these queries is needed, so that it is lost by finishing too early or never. "
        "ALFWorld: an expert plays up to the last two steps, and the agent takes these two; the first step that does "
        "not lead on ends the episode; what the agent is told of such tasks was settled on the first game, before the "
        "pilot. These are selected, easy tasks and a small model: they show whether the mark "
        f"changes what such a model does, and not how good it is. {plan.note}"
    )


def _success_row(played: PlayedPlace, policy: str, logs: Logs) -> list[Cell]:
    mine = played.tallies(policy)
    steps, episodes = sum([sum(tally.steps) for tally in mine]), sum([len(tally.won) for tally in mine])
    reference = REFERENCES.get(policy, NO_INDUCTION if policy in (BASELINE, UNIFORM) else "")
    against: list[Cell] = ["", "", ""]
    if reference:
        found = compared(policy, mine, played.tallies(reference))
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
    by_task = [tally.won for tally in tallies]
    mean = fmean([fmean(values) for values in by_task])
    error = sqrt(sum([variance_of_mean(values) for values in by_task])) / len(by_task)
    reach = normal_quantile(0.95) * error
    return f"{100 * mean:.1f} ({100 * max(0.0, mean - reach):.1f} to {100 * min(1.0, mean + reach):.1f})"


def _decisions(values: Sequence[float]) -> str:
    interval = quantile_interval(values, 0.5)
    limits = (quantile(values, 0.5), interval.low, interval.high)
    middle, low, high = ["never" if value == inf else f"{value:.0f}" for value in limits]
    return f"{middle} ({low} to {high})"


def judged_table(judged: Sequence[tuple[PlayedPlace, Mapping[str, Sequence[Judged]]]], plan: ModelPlan) -> Table:
    rows = [
        _judged_row(place.place, found) for place, by_policy in judged for sets in by_policy.values() for found in sets
    ]
    columns = ["place", "trials", "policy", "against", *FOUND, "planned chance", "chance", "verdict"]
    note = (
        "Success: both one-sided tests at 5 % within the margin (TOST), over the trials of these tasks. Length: the "
        "same for the steps of all episodes, won or lost. Nothing changes: H0 is that neither success nor length is "
        "distributed otherwise in any task; the smallest p of four (mean over tasks and sum over tasks, of success and "
        f"of length), times four; a difference is seen below {CUT:g}. A policy that passes all three passes, and one "
        "fails where a difference is seen; in between, equivalence is not shown. Each set of trials is judged by "
        "itself. Chance: of a mark to show the same success, and the same length, if there is no difference; the "
        "smaller of the two, as the plan had it, and with the spread of these trials. Planned chance of what bends: "
        "that an effect on success as small as early stopping had by lists in the pilot is seen. "
        f"{plan.note}"
    )
    return Table(TITLE, columns, rows, note)


def _judged_row(place: PlannedPlace, found: Judged) -> list[Cell]:
    pairs, tasks = found.success.episodes, found.success.tasks
    level = found.level
    if found.policy in MARKED:
        planned = min([measure.power(pairs, tasks) for measure in (level.success, level.steps)])
        reached = min(found.success.power(level.success.margin), found.steps.power(level.steps.margin))
        chances = [f"{planned:.2f}", f"{reached:.2f}"]
    else:
        # The smallest of four, paid for.
        chances = [f"{level.success.sight(place.bent, pairs, p_value=CUT / 4):.2f}", ""]
    reference = REFERENCES[found.policy]
    return [place.title, found.label, found.policy, reference, *found_cells(found), *chances, verdict(found)]


def table_4(played: Sequence[PlayedPlace]) -> Table:
    """In the paper's form."""
    rows: list[list[Cell]] = []
    for one in played:
        for trials in one.sets:
            shown = [_percent(trials.tallies(policy)) for policy in (NO_INDUCTION, F, BASELINE)]
            found = compared(BASELINE, trials.tallies(BASELINE), trials.tallies(NO_INDUCTION))
            difference = f"{points(found.difference)} ({span(found.interval)})"
            rows.append([one.place.title, one.model.label, trials.label, *shown, difference])
        paper = PAPER_SUCCESS.get(one.place.environment, [""] * 3)
        rows.append([one.place.title, "the paper: DeepSeek-Chat", "", *paper, ""])
    columns = ["place", "model", "trials", "no induction %", "AgentMark-F %", "baseline %"]
    columns += ["baseline against no induction"]
    note = (
        "The paper's own model, tasks and checks are others: its figures stand here for the eye. Its agent without "
        "induction is greedy; here it is sampled at temperature 1, as the elicited ones are sampled from their lists. "
        "The last column is what asking for a list changes, without any mark; with proposals it does not arise. Some "
        "of it is that a list drops what the model gave to other words, where a reply that names nothing costs a step."
    )
    return Table("No induction (Table 4)", columns, rows, note)


def table_5(played: Sequence[PlayedPlace], plan: ModelPlan) -> Table:
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


def task_table(played: Sequence[PlayedPlace]) -> Table:
    rows: list[list[Cell]] = []
    for one in played:
        for number, planned in enumerate(one.place.tasks):
            for trials in one.sets:
                outcome = trials.outcomes[number]
                pilot = [f"{100 * planned.pilot:.0f}", f"{100 * planned.uniform:.1f}"]
                shown = (NO_INDUCTION, BASELINE, UNIFORM)
                rates = [f"{100 * fmean(outcome.by_policy[policy].won):.1f}" for policy in shown]
                rows.append([one.place.title, planned.id, trials.label, outcome.situations, *pilot, *rates])
    columns = ["place", "task", "trials", "situations", "pilot %", "pilot, uniform %"]
    columns += ["no induction %", "baseline %", "uniform %"]
    note = (
        "Pilot: what its own lists led to expect, asked with another seed; tasks were chosen by these, others left "
        "out. Each set of trials asks the model anew, with the options in other orders: what it does differs by that."
    )
    return Table("Task by task", columns, rows, note)


def cost_table(played: Sequence[PlayedPlace]) -> Table:
    rows: list[list[Cell]] = []
    for one in played:
        lists, replies = [outcome.lists for outcome in one.outcomes], [outcome.replies for outcome in one.outcomes]
        missing = [mass for outcome in one.outcomes for mass in outcome.missing_mass]
        rows.append([one.place.title, "a list", *_cost(lists), f"{fmean(missing):.2f}" if missing else ""])
        rows.append([one.place.title, "a reply", *_cost(replies), ""])
    columns = ["place", "asked for", "asked", "unusable", "tokens each", "seconds each", "minutes", "missing mass"]
    note = (
        "Of the first run of lists in each set, and of the replies: the time of the first asking, one thread, on a "
        "machine with other work; replies of a pool read their prompt once. A situation that no policy of a kind came "
        "to was not asked. Unusable: no list; or a reply that names no option. Missing mass: what the model gave to "
        "other words than the options; the list is the rest, scaled up. A list is what an elicited mark costs; "
        "proposals cost as many more replies as are drawn. Beyond that the mark adds no token."
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
