"""What the experiments on tool use and ScienceWorld share: which trials are played, and what is made of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentmark_lab.kit.agent_loop import BASELINE, POLICIES, RED_GREEN, F, R
from agentmark_lab.kit.campaign import Campaign, Outcome, run_campaign
from agentmark_lab.kit.equivalence import MARGIN, clustered, compare, utility_claims
from agentmark_lab.kit.experiment import Cell, Claim, Table
from agentmark_lab.kit.options import Options, Progress

EPSILONS = (0.05, 0.15)
SOURCE = "P_t is a softened expert, not a language model: 1 - epsilon on what it would do, the rest evenly on all else."


@dataclass(frozen=True, slots=True)
class Trials:
    """`seeds` trials of every task, under all policies and with the marks read back; then `more` trials of the
    baseline and both schemes, by success alone, so that equivalence can be shown. `quick_tasks`: of every group."""

    environment: str
    seeds: int
    more: dict[float, int]
    quick_tasks: int

    def play(self, options: Options, progress: Progress) -> list[Outcome]:
        if options.quick:
            campaign = Campaign(self.environment, EPSILONS, POLICIES, (options.seed,), tasks_a_group=self.quick_tasks)
            return run_campaign(campaign, options, progress)
        first = range(options.seed, options.seed + self.seeds)
        campaigns = [Campaign(self.environment, EPSILONS, POLICIES, tuple(first))]
        for epsilon, trials in self.more.items():
            further = tuple(range(first.stop, first.stop + trials))
            campaigns.append(Campaign(self.environment, (epsilon,), (BASELINE, F, R), further, read=False))
        return [outcome for campaign in campaigns for outcome in run_campaign(campaign, options, progress)]

    @property
    def note(self) -> str:
        if not self.more:
            return f"{self.seeds} trials of each task."
        more = " and ".join([f"{trials} at epsilon {epsilon}" for epsilon, trials in self.more.items()])
        return (
            f"Marks are read back in the first {self.seeds} trials of each task, which red-green plays as well; "
            f"{more} follow for the baseline and both schemes, to show equivalence."
        )


def claims(outcomes: Sequence[Outcome], *, margin: float = MARGIN) -> list[Claim]:
    """For each epsilon: equivalence of both schemes, nobody wrongly named, and what red-green costs."""
    made = []
    for epsilon in EPSILONS:
        at = [outcome for outcome in outcomes if outcome.epsilon == epsilon]
        made += utility_claims(at, f"epsilon {epsilon}", margin=margin)
        loss = compare(at, RED_GREEN)
        made.append(
            Claim(
                f"epsilon {epsilon}: red-green succeeds less often than the baseline: {100 * loss.difference:+.1f} "
                f"points, 95 % interval {100 * loss.interval.low:+.1f} to {100 * loss.interval.high:+.1f}.",
                loss.interval.high < 0,
                aim=True,
            )
        )
    return made


def group_table(outcomes: Sequence[Outcome], title: str, note: str) -> Table:
    """Success and bits by the kind of task, over the trials that all policies have played."""
    rows: list[list[Cell]] = []
    for epsilon in EPSILONS:
        shared = [outcome for outcome in outcomes if outcome.epsilon == epsilon and outcome.read]
        groups = {group: [o for o in shared if o.group == group] for group in {o.group: None for o in shared}}
        rows += [[str(epsilon), group, *_cells(members)] for group, members in {**groups, "all": shared}.items()]
    return Table(title, ["epsilon", "group", *GROUP_COLUMNS], rows, note)


GROUP_COLUMNS = ["tasks", *[f"{policy} %" for policy in POLICIES], "F bits/step", "R bits/step", "F bits/task"]


def _cells(outcomes: Sequence[Outcome]) -> list[Cell]:
    by_policy = {policy: [outcome for outcome in outcomes if outcome.policy == policy] for policy in POLICIES}
    return [
        len({outcome.task for outcome in outcomes}),
        *[clustered(mine, lambda outcome: outcome.success, scale=100) for mine in by_policy.values()],
        bits_a_step(by_policy[F]),
        bits_a_step(by_policy[R]),
        f"{sum([outcome.bits for outcome in by_policy[F]]) / len(by_policy[F]):.2f}",
    ]


def bits_a_step(outcomes: Sequence[Outcome]) -> str:
    return f"{sum([outcome.bits for outcome in outcomes]) / sum([outcome.steps for outcome in outcomes]):.2f}"
