"""What the experiments on utility share: the trials of the plan, and what is made of them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentmark_lab.kit.agent_loop import CONTROLS, EARLY_STOPPING, POLICIES, F, R
from agentmark_lab.kit.campaign import Campaign, Outcome, playing_code, run_campaign
from agentmark_lab.kit.equivalence import clustered
from agentmark_lab.kit.experiment import Cell, Claim, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.plan import Level, Plan
from agentmark_lab.kit.utility_claims import control_claims, mark_claims
from agentmark_lab.kit.utility_tests import CUT, Judged, judge, judged_table, power_table

SOURCE = "P_t is a softened expert, not a language model: 1 - epsilon on what it would do, the rest evenly on all else."
COMPARED = (*POLICIES, EARLY_STOPPING)
# In a quick run: so few trials, of the first set.
QUICK_TRIALS = 1


@dataclass(frozen=True, slots=True)
class Played:
    """The outcomes of each set of trials, by its name; and the digest of the code that played in each environment."""

    plan: Plan
    sets: dict[str, list[Outcome]]
    environment_of: dict[str, str]
    code: dict[str, str]
    quick: bool
    own: str

    @property
    def outcomes(self) -> list[Outcome]:
        return [outcome for outcomes in self.sets.values() for outcome in outcomes]

    @property
    def read(self) -> list[Outcome]:
        """Those whose marks were read back."""
        return [outcome for outcome in self.outcomes if outcome.read]

    @property
    def judged(self) -> list[Judged]:
        return [
            judge([o for o in outcomes if o.epsilon == level.epsilon], policy, level, label)
            for level in self.plan.levels
            for label, outcomes in self.sets.items()
            for policy in (F, R, *CONTROLS)
        ]

    @property
    def tasks(self) -> int:
        return len({outcome.task for outcome in self.outcomes})

    @property
    def note(self) -> str:
        """How the trials came to be."""
        brought = "" if not self.own else f" The tasks are brought ({self.own}); the pilot's spread is of others."
        return f"{self.plan.sentence}{brought}"

    def at(self, epsilon: float) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.epsilon == epsilon]


def play(plan: Plan, options: Options, progress: Progress, *, quick_tasks: int) -> Played:
    """All trials of the plan; the same, of tasks that somebody brings; or for a quick look a few."""
    if options.quick:
        first = next(iter(plan.sets))
        levels = tuple([replace(level, trials=QUICK_TRIALS, read=QUICK_TRIALS) for level in plan.levels])
        plan = replace(plan, sets={first: plan.sets[first]}, levels=levels)
    sets: dict[str, list[Outcome]] = {}
    environment_of: dict[str, str] = {}
    for number, label in enumerate(plan.sets):
        sets[label] = []
        for campaign in _campaigns(plan, label, options, quick_tasks, is_read=number == 0):
            outcomes = run_campaign(campaign, options, progress)
            sets[label] += outcomes
            environment_of |= dict.fromkeys([outcome.task for outcome in outcomes], campaign.environment)
    code = {environment: playing_code(environment, options.own) for environment in plan.environments}
    return Played(plan, sets, environment_of, code, options.quick, options.own.name if options.own else "")


def _campaigns(plan: Plan, label: str, options: Options, quick_tasks: int, *, is_read: bool) -> list[Campaign]:
    """A set of trials: those whose marks are read, and the others; every trial under every policy."""
    some = quick_tasks if options.quick else None
    found = []
    for environment in plan.environments:
        for level in plan.levels:
            seeds = tuple(plan.seeds(label, level, seed=options.seed))
            read = level.read if is_read else 0
            for part, marks in ((seeds[:read], True), (seeds[read:], False)):
                if part:
                    what = (environment, (level.epsilon,), COMPARED, part, some, marks)
                    found.append(Campaign(*what, own=options.own, plan=plan.digest))
    return found


def own_plan(plan: Plan, options: Options, environment: str) -> Plan:
    """The plan itself; or, where somebody brings tasks, the same trials and margins in the environment of those."""
    return plan if options.own is None else replace(plan, environments=(environment,))


def claims(played: Played) -> list[Claim]:
    """For each epsilon: both schemes pass, nobody is wrongly named, and what biases the list does not pass."""
    judged = played.judged
    made = []
    for level in played.plan.levels:
        at = [one for one in judged if one.level.epsilon == level.epsilon]
        where = f"epsilon {level.epsilon}"
        for policy in (F, R):
            made += mark_claims([one for one in at if one.policy == policy], where, "the baseline")
        made.append(_named_claim(played, level))
        for policy in CONTROLS:
            of_policy = [one for one in at if one.policy == policy]
            made += control_claims(of_policy, where, aim=_is_small(played))
    return made


def _is_small(played: Played) -> bool:
    """A quick look, or tasks that nobody planned for: whatever it shows, nothing has failed."""
    return played.quick or bool(played.own)


def _named_claim(played: Played, level: Level) -> Claim:
    read = [o for o in played.at(level.epsilon) if o.read and o.policy in (F, R)]
    wrong = sum([outcome.wrong for outcome in read])
    text = f"epsilon {level.epsilon}: {wrong} of {len(read):,} marked episodes name another identity."
    return Claim(text, wrong == 0)


HOW_JUDGED = (
    "Success: both one-sided tests at 5 % within the margin (TOST), tasks as clusters. Length: the same for the steps "
    "of all episodes, won or lost (eq. 4 of the paper). Nothing changes: H0 is that neither success nor length is "
    "distributed otherwise in any task; the smallest p of four (mean over tasks and sum over tasks, of success and of "
    f"length), times four; a difference is seen below {CUT:g}. A policy that passes all three passes, and one fails "
    "where a difference is seen; in between, equivalence is not shown. Early stopping is how proposals must not be "
    "made: a third sample is drawn only where the first two differ. It helps the agent, for it favours what is "
    "likeliest, and is a bias all the same."
)


def judged_tables(played: Played) -> list[Table]:
    """Every policy under the tests; and what the trials could show."""
    judged = played.judged
    marked = [one for one in judged if one.policy in (F, R)]
    return [judged_table(judged, f"{HOW_JUDGED} {played.note}"), power_table(marked, played.tasks)]


def data(played: Played) -> dict[str, Any]:
    """What a reader needs to judge by other tests: the plan, which code played, and every task's outcomes."""
    return {"plan": played.plan.data, "playing_code": played.code, "outcomes": outcomes_by_task(played)}


def outcomes_by_task(played: Played) -> dict[str, Any]:
    """By epsilon, set and task: for each policy successes, trials and steps of all trials, as `17/20 93`."""
    found: dict[str, Any] = {"policies": list(COMPARED)}
    for level in played.plan.levels:
        by_set = {}
        for label, outcomes in played.sets.items():
            cells: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
            for outcome in outcomes:
                if outcome.epsilon == level.epsilon:
                    cells[outcome.task][outcome.policy].append(outcome)
            by_set[label] = {task: ", ".join([_tally(mine[p]) for p in COMPARED]) for task, mine in cells.items()}
        found[str(level.epsilon)] = by_set
    return found


def _tally(outcomes: Sequence[Outcome]) -> str:
    won, steps = sum([outcome.success for outcome in outcomes]), sum([outcome.steps for outcome in outcomes])
    return f"{won}/{len(outcomes)} {steps}"


def group_table(played: Played, title: str, note: str) -> Table:
    """Success by the kind of task over all trials, and bits over those that were read."""
    rows: list[list[Cell]] = []
    for level in played.plan.levels:
        at = played.at(level.epsilon)
        groups = {group: [o for o in at if o.group == group] for group in {o.group: None for o in at}}
        rows += [[str(level.epsilon), group, *_cells(members)] for group, members in {**groups, "all": at}.items()]
    return Table(title, ["epsilon", "group", *GROUP_COLUMNS], rows, note)


GROUP_COLUMNS = ["tasks", *[f"{policy} %" for policy in COMPARED], "F bits/step", "R bits/step", "F bits/task"]


def _cells(outcomes: Sequence[Outcome]) -> list[Cell]:
    by_policy = {policy: [outcome for outcome in outcomes if outcome.policy == policy] for policy in COMPARED}
    read = {policy: [outcome for outcome in by_policy[policy] if outcome.read] for policy in (F, R)}
    return [
        len({outcome.task for outcome in outcomes}),
        *[clustered(mine, lambda outcome: outcome.success, scale=100) for mine in by_policy.values()],
        bits_a_step(read[F]),
        bits_a_step(read[R]),
        f"{sum([outcome.bits for outcome in read[F]]) / len(read[F]):.2f}",
    ]


def bits_a_step(outcomes: Sequence[Outcome]) -> str:
    return f"{sum([outcome.bits for outcome in outcomes]) / sum([outcome.steps for outcome in outcomes]):.2f}"
