"""Utility on AgentDojo's user tasks, without attacks: each task checks the world and the answer itself."""

from agentmark_lab.experiments.utility.trials import SOURCE, claims, data, group_table, judged_tables, play
from agentmark_lab.kit.equivalence import utility_table
from agentmark_lab.kit.experiment import Findings
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.plan import Plan

NAME = "agentdojo"
TITLE = "AgentDojo: success by each task's own check, and bits a step"

NO_OWN_TASKS = "its tasks are code of its package, each with a check of its own"
QUICK_TASKS = 3

NOTE = (
    "AgentDojo v1.2.2, 97 user tasks, no attacks. A behavior is the next tool or the answer. Arguments are the ground "
    "truth's when its plan holds the tool; any other tool is really called, with arguments of some other call of it, "
    "and what it changes stays changed. The answer is the ground truth's once every planned call was made, else empty."
)


def run(options: Options, progress: Progress) -> Findings:
    played = play(Plan.of(NAME), options, progress, quick_tasks=QUICK_TASKS)
    tables = [
        utility_table(played.outcomes, "AgentDojo", f"{NOTE} {SOURCE} {played.note}"),
        group_table(played, "AgentDojo by suite", SOURCE),
        *judged_tables(played),
    ]
    return Findings(claims(played), tables, data(played))
