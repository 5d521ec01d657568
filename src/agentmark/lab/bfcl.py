"""Utility on BFCL v4 multi-turn: conversations whose outcome is checked by comparing states and responses."""

from agentmark.lab.experiment import Findings, Progress
from agentmark.lab.tool_use import SOURCE, Trials, claims
from agentmark.lab.utility import power_table, utility_table

NAME = "bfcl"
TITLE = "BFCL multi-turn: success by the official checker, and bits a step"

TRIALS = Trials("bfcl", seeds=5, more={0.05: 20, 0.15: 50}, quick_tasks=1)

NOTE = (
    "BFCL v4, multi-turn base, 200 conversations. A behavior is the next function or the end of the turn. Arguments "
    "are the ground truth's when its plan for the turn holds the function; any other function is really called, with "
    "arguments of some other call of it, and what it changes stays changed."
    " Red-green is compared with the same trials of the baseline, fewer than all."
)


def run(*, quick: bool, seed: int, workers: int, progress: Progress) -> Findings:
    outcomes = TRIALS.play(quick=quick, seed=seed, workers=workers, progress=progress)
    tables = [
        utility_table(outcomes, "BFCL multi-turn base", f"{NOTE} {SOURCE} {TRIALS.note}"),
        power_table(outcomes),
    ]
    return Findings(claims(outcomes), tables)
