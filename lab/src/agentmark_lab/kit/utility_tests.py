"""The tests that a mark must pass and a biasing watermark must fail, both halves of the paper's eq. 4: is success the
same, is length the same, and does anything change in any task?"""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmark_lab.kit.episodes import Outcome
from agentmark_lab.kit.equivalence import Comparison, compare, length, paired, points, span, succeeded
from agentmark_lab.kit.experiment import Cell, Table
from agentmark_lab.kit.plan import Level
from agentmark_lab.kit.task_test import mean_p_value, task_test

# Below it a difference is seen. Each of the marks' tests may miss it by chance once in a thousand.
CUT = 0.001


@dataclass(frozen=True, slots=True)
class Judged:
    """One policy against the baseline, at one epsilon, in one set of trials."""

    label: str
    level: Level
    policy: str
    success: Comparison
    steps: Comparison
    # Of H0 that neither success nor length is distributed otherwise in any task: by what was asked.
    p_values: dict[str, float]

    @property
    def p_value(self) -> float:
        """The smallest of all, paid for (Bonferroni)."""
        return min(1.0, len(self.p_values) * min(self.p_values.values()))

    @property
    def same_success(self) -> bool:
        return self.success.equivalent(self.level.success.margin)

    @property
    def same_steps(self) -> bool:
        return self.steps.equivalent(self.level.steps.margin)

    @property
    def is_seen(self) -> bool:
        """Whether a difference shows."""
        return self.p_value < CUT

    @property
    def passes(self) -> bool:
        return self.same_success and self.same_steps and not self.is_seen


def judge(outcomes: Sequence[Outcome], policy: str, level: Level, label: str) -> Judged:
    """By the trials of one set at one epsilon."""
    success, steps = compare(outcomes, policy), compare(outcomes, policy, length)
    p_values = {
        "success": mean_p_value(success.means) if success.is_normal else 1.0,
        "success by task": task_test(list(paired(outcomes, policy, succeeded).values())).p_value,
        "steps": mean_p_value(steps.means),
        "steps by task": task_test(list(paired(outcomes, policy, length).values())).p_value,
    }
    return Judged(label, level, policy, success, steps, p_values)


FOUND = [
    "pairs of episodes",
    "success, points (90 % interval)",
    "same success",
    "steps (90 % interval)",
    "same length",
    "p, nothing changes",
    "smallest of four",
]
COLUMNS = ["epsilon", "trials", "policy", *FOUND, "verdict"]
TITLE = "What the mark must pass and a biasing watermark must fail"
# A margin of steps for which two decimal places are enough.
_COARSE = 0.04
PASSES, FAILS = "passes", "**fails**"


def judged_table(judged: Sequence[Judged], note: str) -> Table:
    """Every policy under the same tests, with the same trials."""
    return Table(TITLE, COLUMNS, [_row(one) for one in judged], note)


def _row(one: Judged) -> list[Cell]:
    return [str(one.level.epsilon), one.label, one.policy, *found_cells(one), verdict(one)]


def found_cells(one: Judged) -> list[Cell]:
    """What the tests found, in the columns `FOUND`."""
    return [
        one.success.episodes,
        f"{points(one.success.difference)} ({span(one.success.tost_interval)})",
        _shown(one.same_success, f"within {100 * one.level.success.margin:g} points"),
        steps_text(one),
        _shown(one.same_steps, f"within {one.level.steps.margin:g} steps"),
        f"{one.p_value:.2g}",
        min(one.p_values, key=lambda name: one.p_values[name]),
    ]


def steps_text(one: Judged, level: str = "") -> str:
    """The difference in length, to a place that its margin can be told from."""
    found, places = one.steps, 2 if one.level.steps.margin >= _COARSE else 3
    difference, low, high = [
        f"{value:+.{places}f}" for value in (found.difference, found.tost_interval.low, found.tost_interval.high)
    ]
    return f"{difference} ({level}{low} to {high})"


def _shown(is_shown: bool, what: str) -> str:
    return what if is_shown else f"not shown {what}"


def verdict(one: Judged) -> str:
    """Equivalence that is not shown is no difference; one that shows is."""
    if one.passes:
        return PASSES
    return FAILS if one.is_seen else "not shown"


def power_table(judged: Sequence[Judged], tasks: int) -> Table:
    """How well the trials can show what they are to show: as planned, and with the spread that they had."""
    rows: list[list[Cell]] = []
    for one in judged:
        for name, found, measure, scale in (
            ("success, points", one.success, one.level.success, 100),
            ("steps", one.steps, one.level.steps, 1),
        ):
            pairs = tasks * one.level.trials
            rows.append(
                [
                    str(one.level.epsilon),
                    one.label,
                    one.policy,
                    name,
                    f"{scale * measure.margin:g}",
                    f"{measure.power(pairs, tasks):.2f}",
                    f"{scale * found.standard_error:.3f}",
                    f"{found.power(measure.margin):.2f}" if found.is_normal else "",
                ]
            )
    columns = ["epsilon", "trials", "policy", "measure", "margin", "planned chance", "standard error", "chance"]
    note = (
        "The chance of showing equivalence if there is no difference at all, by two one-sided tests at 5 %: as the "
        "plan had it from its pilot, and from the standard error of these trials (of the mean difference over tasks)."
    )
    return Table("Power of the equivalence tests", columns, rows, note)
