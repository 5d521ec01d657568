"""ALFWorld, Table 1: success, steps and bits under every policy, on the paper's games."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from agentmark_lab.envs.alfworld import MAX_STEPS
from agentmark_lab.experiments.utility.trials import bits_a_step
from agentmark_lab.kit.agent_loop import BASELINE, POLICIES, RED_GREEN, F, R
from agentmark_lab.kit.campaign import Campaign, Outcome, run_campaign
from agentmark_lab.kit.equivalence import compare, power_table, task_interval, utility_claims, utility_table
from agentmark_lab.kit.experiment import Cell, Claim, Curve, Figure, Findings, Table
from agentmark_lab.kit.options import Options, Progress

NAME = "alfworld"
TITLE = "ALFWorld: what a mark costs the agent (Table 1; a softened expert, not a language model)"

SPLITS = {"alfworld-id": "ID", "alfworld-ood": "OOD"}
# The third is as unsure as it takes for the baseline to need about as many steps as the paper's agent.
EPSILONS = (0.05, 0.15, 0.5)
TRIALS = 3
# Where some episodes fail, the baseline and both schemes play on, by success alone, so that equivalence can be shown.
UNSURE, MORE_TRIALS = 0.5, 6
GROUPS = {
    "A1": "look at object in light",
    "A2": "pick and place",
    "A3": "clean, then place",
    "A4": "cool, then place",
    "A5": "heat, then place",
    "A6": "pick two and place",
}
SOURCE = "softened expert, not a language model"


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


def campaigns(split: str, *, seed: int, quick: bool) -> list[Campaign]:
    """What is played in a split."""
    if quick:
        return [Campaign(split, EPSILONS, POLICIES, (seed,), tasks_a_group=2)]
    return [
        Campaign(split, EPSILONS, POLICIES, tuple(range(seed, seed + TRIALS))),
        Campaign(
            split,
            (UNSURE,),
            (BASELINE, F, R),
            tuple(range(seed + TRIALS, seed + TRIALS + MORE_TRIALS)),
            read=False,
        ),
    ]


def run(options: Options, progress: Progress) -> Findings:
    played = {
        split: [
            outcome
            for campaign in campaigns(split, seed=options.seed, quick=options.quick)
            for outcome in run_campaign(campaign, options, progress)
        ]
        for split in SPLITS
    }
    return _findings(played)


def _findings(played: dict[str, list[Outcome]]) -> Findings:
    both = [outcome for outcomes in played.values() for outcome in outcomes]
    claims: list[Claim] = []
    for epsilon in EPSILONS:
        at = [outcome for outcome in both if outcome.epsilon == epsilon]
        claims += utility_claims(at, f"Epsilon {epsilon}, ID and OOD together")
        claims.append(_red_green_claim(at, epsilon))
    tables = [_beside_the_paper(played)]
    for split, label in SPLITS.items():
        tables.append(utility_table(played[split], f"ALFWorld {label}, by policy", _note(played[split])))
    tables += [power_table(both), _by_group(played)]
    return Findings(claims, tables, {"comparisons": _comparisons(played)}, [_figure(both)])


def _red_green_claim(at: Sequence[Outcome], epsilon: float) -> Claim:
    found = compare(at, RED_GREEN)
    low, high = 100 * found.interval.low, 100 * found.interval.high
    return Claim(
        f"Epsilon {epsilon}, ID and OOD together: red-green changes success by {100 * found.difference:+.1f} points "
        f"({low:+.1f} to {high:+.1f}), {found.episodes:,} pairs of episodes.",
        high < 0,
        aim=True,
    )


def _beside_the_paper(played: dict[str, list[Outcome]]) -> Table:
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
        for epsilon in EPSILONS:
            at = _by_policy(played[split], epsilon)
            red_green = at[RED_GREEN]
            rows.append(
                [
                    label,
                    f"expert, epsilon {epsilon}",
                    *[f"{100 * fmean([o.success for o in at[policy]]):.1f}" for policy in POLICIES],
                    *[_steps(at[policy]) for policy in POLICIES],
                    f"{100 * sum([o.green_hits for o in red_green]) / sum([o.steps for o in red_green]):.1f}",
                    *[bits_a_step(_read(at[policy])) for policy in (F, R)],
                    *[f"{fmean([o.bits for o in _read(at[policy])]):.1f}" for policy in (F, R)],
                ]
            )
    columns = ["split", "agent", *[f"success % {policy}" for policy in POLICIES]]
    columns += [f"steps {policy}" for policy in POLICIES]
    columns += ["green % (red-green)", "bits/step F", "bits/step R", "bits/task F", "bits/task R"]
    means = {label: _paper_means(split, played) for split, label in SPLITS.items()}
    note = (
        f"Here: a {SOURCE}; steps of successful episodes, as in the paper. The paper's averages are not the means of "
        f"its groups: weighted by their numbers of tasks, they give {means['ID']} (ID) and {means['OOD']} (OOD) for "
        "baseline, red-green and AgentMark-F."
    )
    return Table("ALFWorld beside Table 1 of the paper", columns, rows, note)


def _paper_means(split: str, played: dict[str, list[Outcome]]) -> str:
    """Success by the paper's own groups, each with the tasks it has."""
    group_of = {outcome.task: outcome.group for outcome in played[split]}
    sizes = {group: list(group_of.values()).count(group) for group in GROUPS}
    total = sum(sizes.values())
    means = [sum([sizes[group] * PAPER[split][group].success[i] for group in GROUPS]) / total for i in range(3)]
    return ", ".join([f"{mean:.1f}" for mean in means])


def _by_group(played: dict[str, list[Outcome]]) -> Table:
    rows: list[list[Cell]] = []
    for split, label in SPLITS.items():
        for group, name in GROUPS.items():
            printed = PAPER[split][group]
            for epsilon in EPSILONS:
                at = _by_policy([o for o in _read(played[split]) if o.group == group], epsilon)
                rows.append(
                    [
                        label,
                        f"{group}: {name}",
                        str(epsilon),
                        len({o.task for o in at[BASELINE]}),
                        " / ".join([f"{100 * fmean([o.success for o in at[policy]]):.1f}" for policy in POLICIES]),
                        " / ".join([str(value) for value in printed.success]),
                        " / ".join([_steps(at[policy]) for policy in POLICIES]),
                        " / ".join([str(value) for value in printed.steps]),
                        " / ".join([bits_a_step(at[policy]) for policy in (F, R)]),
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


def _figure(outcomes: Sequence[Outcome]) -> Figure:
    curves = []
    for policy in POLICIES:
        means, intervals = [], []
        for epsilon in EPSILONS:
            by_task: dict[str, list[float]] = defaultdict(list)
            for outcome in _by_policy(outcomes, epsilon)[policy]:
                by_task[outcome.task].append(float(outcome.success))
            values = [fmean(trials) for trials in by_task.values()]
            means.append(fmean(values))
            intervals.append(task_interval(values))
        lows, highs = [interval.low for interval in intervals], [min(1.0, interval.high) for interval in intervals]
        curves.append(Curve(policy, list(EPSILONS), means, lows, highs))
    title = "ALFWorld: success by policy (softened expert)"
    return Figure("alfworld", title, "epsilon: what the agent leaves to chance", "success", curves)


def _note(outcomes: Sequence[Outcome]) -> str:
    shared = _read(outcomes)
    tasks, trials = len({outcome.task for outcome in shared}), len({outcome.seed for outcome in shared})
    more = len({outcome.seed for outcome in outcomes}) - trials
    return (
        f"A {SOURCE}. {tasks} games, at most {MAX_STEPS} steps, {trials} trials of each; {more} more at epsilon "
        f"{UNSURE} for the baseline and both schemes, by success alone. In brackets: 95 % intervals, each game one "
        "cluster; where all games agree, as wide as the share of games that may be otherwise (Clopper-Pearson). "
        "Equivalence is claimed over both splits together. Times of choosing include waiting for a busy processor; "
        "`agentmark lab run speed` measures them alone."
    )


def _comparisons(played: dict[str, list[Outcome]]) -> list[dict[str, Any]]:
    rows = []
    both = [outcome for outcomes in played.values() for outcome in outcomes]
    for split, played_there in [*played.items(), ("both", both)]:
        for epsilon in EPSILONS:
            at = [outcome for outcome in played_there if outcome.epsilon == epsilon]
            for policy in (RED_GREEN, F, R):
                found = compare(at, policy)
                rows.append(
                    {
                        "split": split,
                        "epsilon": epsilon,
                        "policy": policy,
                        "tasks": found.tasks,
                        "pairs": found.episodes,
                        "difference": found.difference,
                        "interval": [found.interval.low, found.interval.high],
                        "tost_interval": [found.tost_interval.low, found.tost_interval.high],
                        "equivalent": found.equivalent(),
                        "power": found.power() if found.is_normal else None,
                    }
                )
    return rows


def _by_policy(outcomes: Sequence[Outcome], epsilon: float) -> dict[str, list[Outcome]]:
    return {policy: [o for o in outcomes if o.epsilon == epsilon and o.policy == policy] for policy in POLICIES}


def _read(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Those whose marks were read back: the trials that all policies have played."""
    return [outcome for outcome in outcomes if outcome.read]


def _steps(outcomes: Sequence[Outcome]) -> str:
    won = [outcome.steps for outcome in outcomes if outcome.success]
    return f"{fmean(won):.1f}" if won else ""
