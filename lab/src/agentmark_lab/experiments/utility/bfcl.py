"""Utility on BFCL v4 multi-turn: conversations whose outcome is checked by comparing states and responses."""

from agentmark_lab.experiments.utility.trials import SOURCE, claims, data, judged_tables, own_plan, play
from agentmark_lab.kit.equivalence import utility_table
from agentmark_lab.kit.experiment import Findings
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.plan import Plan

NAME = "bfcl"
TITLE = "BFCL multi-turn: success by the official checker, and bits a step"

OWN_TASKS = "--conversations"
OWN_ENVIRONMENT = "bfcl-own"
QUICK_TASKS = 1

NOTE = (
    "BFCL v4, multi-turn base, 200 conversations. A behavior is the next function or the end of the turn. Arguments "
    "are the ground truth's when its plan for the turn holds the function; any other function is really called, with "
    "arguments of some other call of it, and what it changes stays changed."
)


def run(options: Options, progress: Progress) -> Findings:
    plan = own_plan(Plan.of(NAME), options, OWN_ENVIRONMENT)
    played = play(plan, options, progress, quick_tasks=QUICK_TASKS)
    table = utility_table(played.outcomes, "BFCL multi-turn base", f"{NOTE} {SOURCE} {played.note}")
    return Findings(claims(played), [table, *judged_tables(played)], data(played))
