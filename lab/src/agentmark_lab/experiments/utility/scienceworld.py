"""Utility on ScienceWorld: experiments of up to two hundred actions, success by the simulator's own score."""

from dataclasses import replace

from agentmark_lab.experiments.utility.trials import SOURCE, claims, data, group_table, judged_tables, play
from agentmark_lab.kit.equivalence import utility_table
from agentmark_lab.kit.experiment import Findings
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.plan import Plan

NAME = "scienceworld"
TITLE = "ScienceWorld: success by the simulator's own score, and bits a step"

NO_OWN_TASKS = "its tasks are part of the simulator"
QUICK_TASKS, QUICK_ENVIRONMENT = 1, "scienceworld-short"

NOTE = (
    "ScienceWorld 1.2.3, its 30 types of task, three variations of the test split each, with its simplifications for "
    "ease. A behavior is the template of the next action; the things it is done to are the gold path's when its next "
    "action is of that kind, else those of an admissible action, which is really done, and what it changes stays "
    "changed. The expert is the gold path (3 to 193 actions, 51 on average); it goes back to the room it was in, "
    "undoes what was closed, put down or switched, and finds things that have grown or melted in the meantime."
)


def run(options: Options, progress: Progress) -> Findings:
    plan = Plan.of(NAME)
    if options.quick:
        plan = replace(plan, environments=(QUICK_ENVIRONMENT,))
    played = play(plan, options, progress, quick_tasks=QUICK_TASKS)
    tables = [
        utility_table(played.outcomes, "ScienceWorld", f"{NOTE} {SOURCE} {played.note}"),
        group_table(played, "ScienceWorld by topic", SOURCE),
        *judged_tables(played),
    ]
    return Findings(claims(played), tables, data(played))
