"""ALFWorld, Table 1: success, steps and bits under every policy, on the paper's games."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from agentmark_lab.envs.alfworld import MAX_STEPS
from agentmark_lab.experiments.utility.trials import (
    COMPARED,
    Played,
    bits_a_step,
    claims,
    data,
    group_table,
    judged_tables,
    own_plan,
    play,
)
from agentmark_lab.kit.agent_loop import BASELINE, RED_GREEN, F, R
from agentmark_lab.kit.campaign import Outcome
from agentmark_lab.kit.equivalence import task_interval, utility_table
from agentmark_lab.kit.experiment import Cell, Curve, Figure, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.plan import Plan

NAME = "alfworld"
TITLE = "ALFWorld: what a mark costs the agent (Table 1; a softened expert, not a language model)"

SPLITS = {"alfworld-id": "ID", "alfworld-ood": "OOD"}
OWN_TASKS = "--games"
OWN_ENVIRONMENT = "alfworld-own"
QUICK_TASKS = 2
GROUPS = {
    "A1": "look at object in light",
    "A2": "pick and place",
    "A3": "clean, then place",
    "A4": "cool, then place",
    "A5": "heat, then place",
    "A6": "pick two and place",
}
SOURCE = "softened expert, not a language model"
# Beside the paper, which has no early stopping.
SHOWN = (BASELINE, RED_GREEN, F, R)


@dataclass(frozen=True, slots=True)
class Printed:
    """A row of the paper's Table 1 (DeepSeek-Chat): baseline, red-green and AgentMark-F."""

    success: tuple[float, float, float]
    steps: tuple[float, float, float]
    bits_per_step: float
    bits_per_task: float
    green: float | None = None


PAPER = {
    "alfworld-id": {
        "A1": Printed((97.1, 96.2, 97.1), (12.8, 13.8, 11.5), 1.19, 14.2),
        "A2": Printed((98.9, 100.0, 100.0), (10.2, 11.0, 11.0), 1.06, 14.0),
        "A3": Printed((87.3, 94.4, 87.3), (20.1, 16.4, 18.6), 1.23, 30.7),
        "A4": Printed((89.7, 82.0, 91.0), (18.2, 20.5, 17.2), 1.17, 26.4),
        "A5": Printed((94.4, 93.8, 88.9), (17.2, 16.2, 19.4), 1.37, 34.3),
        "A6": Printed((78.5, 60.6, 77.6), (31.9, 39.5, 31.3), 1.28, 37.1),
        "all": Printed((89.5, 78.8, 89.3), (19.7, 26.1, 19.4), 1.19, 25.5, 71.9),
    },
    "alfworld-ood": {
        "A1": Printed((99.4, 99.4, 99.4), (14.5, 11.4, 11.0), 1.38, 30.3),
        "A2": Printed((100.0, 93.8, 97.9), (12.2, 15.1, 13.6), 1.39, 25.5),
        "A3": Printed((91.9, 90.3, 96.8), (18.5, 17.0, 15.2), 1.29, 24.5),
        "A4": Printed((97.6, 90.5, 97.6), (16.2, 17.1, 14.3), 1.18, 22.7),
        "A5": Printed((91.3, 89.1, 91.3), (16.4, 19.3, 17.1), 1.44, 33.4),
        "A6": Printed((94.1, 91.2, 97.1), (22.4, 25.4, 24.1), 1.41, 38.2),
        "all": Printed((96.8, 94.5, 97.5), (15.9, 15.4, 14.1), 1.34, 28.4, 71.5),
    },
}


def run(options: Options, progress: Progress) -> Findings:
    played = play(own_plan(Plan.of(NAME), options, OWN_ENVIRONMENT), options, progress, quick_tasks=QUICK_TASKS)
    note = _note(played)
    if options.own:
        tables = [
            utility_table(played.outcomes, "ALFWorld, games that were brought", note),
            group_table(played, "By kind of task", note),
        ]
    else:
        splits = _splits(played)
        tables = [_beside_the_paper(played, splits)]
        tables += [utility_table(splits[split], f"ALFWorld {name}, by policy", note) for split, name in SPLITS.items()]
        tables.append(utility_table(played.outcomes, f"ALFWorld {'+'.join(SPLITS.values())}, by policy", note))
        tables.append(_by_group(played, splits))
    return Findings(claims(played), [*tables, *judged_tables(played)], data(played), [_figure(played)])


def _splits(played: Played) -> dict[str, list[Outcome]]:
    return {split: [o for o in played.outcomes if played.environment_of[o.task] == split] for split in SPLITS}


def _beside_the_paper(played: Played, splits: dict[str, list[Outcome]]) -> Table:
    """One row for each split and agent; the first is the paper's."""
    rows: list[list[Cell]] = []
    for split, label in SPLITS.items():
        printed = PAPER[split]["all"]
        rows.append(
            [
                label,
                "the paper: DeepSeek-Chat",
                *[f"{value}" for value in printed.success],
                "",
                *[f"{value}" for value in printed.steps],
                "",
                f"{printed.green}",
                f"{printed.bits_per_step}",
                "",
                f"{printed.bits_per_task}",
                "",
            ]
        )
        for level in played.plan.levels:
            at = _by_policy(splits[split], level.epsilon)
            green = _read(at[RED_GREEN])
            rows.append(
                [
                    label,
                    f"expert, epsilon {level.epsilon}",
                    *[f"{100 * fmean([o.success for o in at[policy]]):.1f}" for policy in SHOWN],
                    *[_steps(at[policy]) for policy in SHOWN],
                    f"{100 * sum([o.green_hits for o in green]) / sum([o.steps for o in green]):.1f}",
                    *[bits_a_step(_read(at[policy])) for policy in (F, R)],
                    *[f"{fmean([o.bits for o in _read(at[policy])]):.1f}" for policy in (F, R)],
                ]
            )
    columns = ["split", "agent", *[f"success % {policy}" for policy in SHOWN]]
    columns += [f"steps {policy}" for policy in SHOWN]
    columns += ["green % (red-green)", "bits/step F", "bits/step R", "bits/task F", "bits/task R"]
    means = {label: _paper_means(split, splits) for split, label in SPLITS.items()}
    note = (
        f"Here: a {SOURCE}; steps of successful episodes, as in the paper. The paper's averages are not the means of "
        f"its groups: weighted by their numbers of tasks, they give {means['ID']} (ID) and {means['OOD']} (OOD) for "
        "baseline, red-green and AgentMark-F."
    )
    return Table("ALFWorld beside Table 1 of the paper", columns, rows, note)


def _paper_means(split: str, splits: dict[str, list[Outcome]]) -> str:
    """Success by the paper's own groups, each with the tasks it has."""
    group_of = {outcome.task: outcome.group for outcome in splits[split]}
    sizes = {group: list(group_of.values()).count(group) for group in GROUPS}
    total = sum(sizes.values())
    means = [sum([sizes[group] * PAPER[split][group].success[i] for group in GROUPS]) / total for i in range(3)]
    return ", ".join([f"{mean:.1f}" for mean in means])


def _by_group(played: Played, splits: dict[str, list[Outcome]]) -> Table:
    rows: list[list[Cell]] = []
    for split, label in SPLITS.items():
        for group, name in GROUPS.items():
            printed = PAPER[split][group]
            for level in played.plan.levels:
                at = _by_policy([o for o in splits[split] if o.group == group], level.epsilon)
                rows.append(
                    [
                        label,
                        f"{group}: {name}",
                        str(level.epsilon),
                        len({o.task for o in at[BASELINE]}),
                        " / ".join([f"{100 * fmean([o.success for o in at[policy]]):.1f}" for policy in SHOWN]),
                        " / ".join([str(value) for value in printed.success]),
                        " / ".join([_steps(at[policy]) for policy in SHOWN]),
                        " / ".join([str(value) for value in printed.steps]),
                        " / ".join([bits_a_step(_read(at[policy])) for policy in (F, R)]),
                        str(printed.bits_per_step),
                    ]
                )
    columns = [
        "split",
        "group",
        "epsilon",
        "tasks",
        "success %: base / red-green / F / R",
        "paper: base / red-green / F",
        "steps: base / red-green / F / R",
        "paper: base / red-green / F",
        "bits/step: F / R",
        "paper: F",
    ]
    return Table("ALFWorld by kind of task", columns, rows, f"Here: a {SOURCE}. The paper: DeepSeek-Chat.")


def _figure(played: Played) -> Figure:
    epsilons = [level.epsilon for level in played.plan.levels]
    curves = []
    for policy in COMPARED:
        means, intervals = [], []
        for epsilon in epsilons:
            by_task: dict[str, list[float]] = defaultdict(list)
            for outcome in _by_policy(played.outcomes, epsilon)[policy]:
                by_task[outcome.task].append(float(outcome.success))
            values = [fmean(trials) for trials in by_task.values()]
            means.append(fmean(values))
            intervals.append(task_interval(values))
        lows, highs = [interval.low for interval in intervals], [min(1.0, interval.high) for interval in intervals]
        curves.append(Curve(policy, epsilons, means, lows, highs))
    title = "ALFWorld: success by policy (softened expert)"
    return Figure("alfworld", title, "epsilon: what the agent leaves to chance", "success", curves)


def _note(played: Played) -> str:
    return (
        f"A {SOURCE}. {played.tasks} games, at most {MAX_STEPS} steps. In brackets: 95 % intervals, each game one "
        "cluster; where all games agree, as wide as the share of games that may be otherwise (Clopper-Pearson). "
        "Equivalence is claimed over both splits together. Times of choosing include waiting for a busy processor; "
        f"`agentmark lab run speed` measures them alone. {played.note}"
    )


def _by_policy(outcomes: Sequence[Outcome], epsilon: float) -> dict[str, list[Outcome]]:
    return {policy: [o for o in outcomes if o.epsilon == epsilon and o.policy == policy] for policy in COMPARED}


def _read(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Those whose marks were read back."""
    return [outcome for outcome in outcomes if outcome.read]


def _steps(outcomes: Sequence[Outcome]) -> str:
    won = [outcome.steps for outcome in outcomes if outcome.success]
    return f"{fmean(won):.1f}" if won else ""
