"""Utility on AgentDojo's user tasks, without attacks: each task checks the world and the answer itself."""

from agentmark_lab.experiments.utility.trials import SOURCE, Trials, claims, group_table
from agentmark_lab.kit.equivalence import power_table, utility_table
from agentmark_lab.kit.experiment import Findings
from agentmark_lab.kit.options import Options, Progress

NAME = "agentdojo"
TITLE = "AgentDojo: success by each task's own check, and bits a step"

TRIALS = Trials("agentdojo", seeds=3, more={0.05: 40, 0.15: 76}, quick_tasks=3)

NOTE = (
    "AgentDojo v1.2.2, 97 user tasks, no attacks. A behavior is the next tool or the answer. Arguments are the ground "
    "truth's when its plan holds the tool; any other tool is really called, with arguments of some other call of it, "
    "and what it changes stays changed. The answer is the ground truth's once every planned call was made, else empty."
    " Red-green is compared with the same trials of the baseline, fewer than all."
)


def run(options: Options, progress: Progress) -> Findings:
    outcomes = TRIALS.play(options, progress)
    tables = [
        utility_table(outcomes, "AgentDojo", f"{NOTE} {SOURCE} {TRIALS.note}"),
        group_table(outcomes, "AgentDojo by suite", f"The trials that all policies have played. {SOURCE}"),
        power_table(outcomes),
    ]
    return Findings(claims(outcomes), tables)
