"""Does the mark hurt the agent? Success and length by policy, paired by task and seed, with equivalence tests (Table 1,
eq. 4)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist, fmean, mode, stdev

from agentmark.core.statistics import Interval, normal_quantile
from agentmark_lab.kit.agent_loop import BASELINE, RED_GREEN, F, R
from agentmark_lab.kit.episodes import Outcome
from agentmark_lab.kit.experiment import Cell, Table
from agentmark_lab.kit.stats import exact_interval, student_interval, student_quantile

# Two success rates that differ by less are the same to a user.
MARGIN = 0.02
# Of fewer tasks that differ, a mean is not yet normal.
FEW = 10


@dataclass(frozen=True, slots=True)
class Comparison:
    """A policy against the baseline: the mean difference over tasks, each task one cluster."""

    policy: str
    tasks: int
    episodes: int
    # Mean difference of each task.
    means: tuple[float, ...]
    # Of success, which is a share; else of a length, which has no bounds to fall back on.
    is_share: bool = True

    @property
    def difference(self) -> float:
        return fmean(self.means)

    @property
    def interval(self) -> Interval:
        return self.at(0.95)

    @property
    def tost_interval(self) -> Interval:
        """90 %: the two one-sided tests at 5 % both reject exactly if it lies within the margin (TOST)."""
        return self.at(0.90)

    def at(self, confidence: float) -> Interval:
        interval = task_interval if self.is_share else student_interval
        return interval(self.means, confidence=confidence)

    def equivalent(self, margin: float = MARGIN) -> bool:
        return -margin < self.tost_interval.low and self.tost_interval.high < margin

    @property
    def is_normal(self) -> bool:
        """Whether enough tasks differ for a standard error to say something."""
        return _deviating(self.means) >= FEW

    @property
    def standard_error(self) -> float:
        return stdev(self.means) / sqrt(len(self.means))

    def power(self, margin: float = MARGIN) -> float:
        """The chance that so many trials show equivalence when there is no difference at all."""
        reach = NormalDist().cdf(margin / self.standard_error - student_quantile(0.90, self.tasks - 1))
        return max(0.0, 2 * reach - 1)

    def pairs_for(self, power: float, margin: float = MARGIN) -> int:
        """How many pairs of episodes, spread over the tasks like these, give that chance."""
        enough = margin / (student_quantile(0.90, self.tasks - 1) + normal_quantile(power))
        return ceil(self.episodes * (self.standard_error / enough) ** 2)


def succeeded(outcome: Outcome) -> float:
    return float(outcome.success)


def length(outcome: Outcome) -> float:
    """Steps of the episode, however it ended: the paper's Len, a proxy for time and cost."""
    return float(outcome.steps)


Value = Callable[[Outcome], float]


def compare(outcomes: Iterable[Outcome], policy: str, value: Value = succeeded) -> Comparison:
    """Pair by task and seed (and epsilon, if several are given), average within a task, then over tasks.

    A trial that only one of the two policies has played is left out.
    """
    by_task = paired(outcomes, policy, value)
    means = [fmean(mine) - fmean(base) for mine, base in by_task.values()]
    episodes = sum([len(mine) for mine, _ in by_task.values()])
    return Comparison(policy, len(means), episodes, tuple(means), is_share=value is succeeded)


def paired(
    outcomes: Iterable[Outcome], policy: str, value: Value = succeeded
) -> dict[str, tuple[list[float], list[float]]]:
    """Of each task: the values of the policy, and those of the baseline in the same trials."""
    by_place: dict[tuple[str, int, float], dict[str, float]] = defaultdict(dict)
    for outcome in outcomes:
        if outcome.policy in (policy, BASELINE):
            by_place[outcome.task, outcome.seed, outcome.epsilon][outcome.policy] = value(outcome)
    by_task: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for (task, _, _), values in by_place.items():
        if len(values) == 2:
            by_task[task][0].append(values[policy])
            by_task[task][1].append(values[BASELINE])
    return dict(by_task)


def task_interval(means: Sequence[float], *, confidence: float = 0.95) -> Interval:
    """Of a mean over tasks (Student's t). Where few tasks differ from the others their spread says little, and the
    interval reaches as far as the share of tasks that may differ, to either side (Clopper and Pearson)."""
    if _deviating(means) >= FEW:
        return student_interval(means, confidence=confidence)
    usual = mode(means)
    below, above = sum([mean < usual for mean in means]), sum([mean > usual for mean in means])
    low = exact_interval(below, len(means), confidence=confidence).high
    high = exact_interval(above, len(means), confidence=confidence).high
    return Interval(usual - low, usual + high)


def _deviating(means: Sequence[float]) -> int:
    """Tasks other than most."""
    usual = mode(means)
    return sum([mean != usual for mean in means])


AGAINST = "against the baseline, points"
COLUMNS = [
    "epsilon",
    "policy",
    "episodes",
    "success %",
    AGAINST,
    "steps",
    "steps against the baseline",
    "steps (successes)",
    "bits/step",
    "bits/task",
    "entropy/step",
    "identity from one episode",
    "accepted at 1e-6",
    "green %",
    "choose, us/step",
]


def utility_table(outcomes: Sequence[Outcome], title: str, note: str) -> Table:
    """One row for each epsilon and policy."""
    rows: list[list[Cell]] = []
    for epsilon in sorted({outcome.epsilon for outcome in outcomes}):
        at = [outcome for outcome in outcomes if outcome.epsilon == epsilon]
        rows += [_row(at, epsilon, policy) for policy in dict.fromkeys([outcome.policy for outcome in at])]
    of_those_read = " Bits and entropy of a marked policy are of the same trials, those whose marks were read."
    return Table(title, COLUMNS, rows, note + of_those_read)


def _row(at: Sequence[Outcome], epsilon: float, policy: str) -> list[Cell]:
    mine = [outcome for outcome in at if outcome.policy == policy]
    steps = sum([outcome.steps for outcome in mine])
    read = [outcome for outcome in mine if outcome.read]
    read_steps = sum([outcome.steps for outcome in read])
    marked = policy in (F, R)
    against = longer = ""
    if policy != BASELINE:
        found = compare(at, policy)
        against = f"{points(found.difference)} ({span(found.interval)})"
        longer = steps_with_interval(compare(at, policy, length))
    won = [outcome.steps for outcome in mine if outcome.success]
    return [
        str(epsilon),
        policy,
        len(mine),
        clustered(mine, lambda outcome: outcome.success, scale=100),
        against,
        f"{fmean([outcome.steps for outcome in mine]):.1f}",
        longer,
        f"{fmean(won):.1f}" if won else "",
        f"{sum([o.bits for o in read]) / read_steps:.2f}" if marked else "",
        f"{sum([o.bits for o in read]) / len(read):.1f}" if marked else "",
        f"{_entropy_a_step(read if marked else mine):.2f}",
        clustered(read, lambda outcome: outcome.unique, scale=1, digits=3) if marked else "",
        clustered(read, lambda outcome: outcome.accepted, scale=1, digits=3) if marked else "",
        f"{100 * sum([o.green_hits for o in read]) / read_steps:.1f}" if policy in (RED_GREEN, BASELINE) else "",
        f"{sum([o.choose_us for o in mine]) / steps:.0f}",
    ]


def _entropy_a_step(outcomes: Sequence[Outcome]) -> float:
    return sum([outcome.entropy for outcome in outcomes]) / sum([outcome.steps for outcome in outcomes])


def clustered(outcomes: Sequence[Outcome], value: Callable[[Outcome], float], *, scale: float, digits: int = 1) -> str:
    """Mean and 95 % interval; the trials of a task are one cluster."""
    by_task: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        by_task[outcome.task].append(float(value(outcome)))
    means = [fmean(values) for values in by_task.values()]
    interval = task_interval(means)
    low, high = max(0.0, interval.low), min(1.0, interval.high)
    return f"{scale * fmean(means):.{digits}f} ({scale * low:.{digits}f} to {scale * high:.{digits}f})"


def steps_with_interval(found: Comparison, *, confidence: float = 0.95) -> str:
    interval = found.at(confidence)
    return f"{found.difference:+.2f} ({interval.low:+.2f} to {interval.high:+.2f})"


def points(share: float) -> str:
    return f"{100 * share:+.1f}"


def span(interval: Interval) -> str:
    return f"{points(interval.low)} to {points(interval.high)}"
