"""Utility on ScienceWorld: experiments of up to two hundred actions, success by the simulator's own score."""

from agentmark_lab.experiments.utility.trials import SOURCE, Trials, claims, group_table
from agentmark_lab.kit.equivalence import power_table, utility_table
from agentmark_lab.kit.experiment import Findings
from agentmark_lab.kit.options import Options, Progress

NAME = "scienceworld"
TITLE = "ScienceWorld: success by the simulator's own score, and bits a step"

TRIALS = Trials("scienceworld", seeds=2, more={}, quick_tasks=1)
QUICK = Trials("scienceworld-short", seeds=1, more={}, quick_tasks=1)
# What so many trials can show: episodes are long, and the simulator is slow.
MARGIN = 0.1

NOTE = (
    "ScienceWorld 1.2.3, its 30 types of task, three variations of the test split each, with its simplifications for "
    "ease. A behavior is the template of the next action; the things it is done to are the gold path's when its next "
    "action is of that kind, else those of an admissible action, which is really done, and what it changes stays "
    "changed. The expert is the gold path (3 to 193 actions, 51 on average); it goes back to the room it was in, "
    "undoes what was closed, put down or switched, and finds things that have grown or melted in the meantime."
)


def run(options: Options, progress: Progress) -> Findings:
    trials = QUICK if options.quick else TRIALS
    outcomes = trials.play(options, progress)
    tables = [
        utility_table(outcomes, "ScienceWorld", f"{NOTE} {SOURCE} {TRIALS.note}"),
        group_table(outcomes, "ScienceWorld by topic", SOURCE),
        power_table(outcomes, margin=MARGIN),
    ]
    return Findings(claims(outcomes, margin=MARGIN), tables)
