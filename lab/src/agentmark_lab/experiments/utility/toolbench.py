"""Utility and capacity on ToolBench's queries (Table 1, T1 to T6), by an offline proxy that is not a pass rate."""

from agentmark_lab.experiments.utility.trials import (
    SOURCE,
    claims,
    data,
    group_table,
    judged_tables,
    own_plan,
    play,
)
from agentmark_lab.kit.equivalence import utility_table
from agentmark_lab.kit.experiment import Cell, Findings, Table
from agentmark_lab.kit.options import Options, Progress
from agentmark_lab.kit.plan import Plan

NAME = "toolbench"
TITLE = "ToolBench: success by an offline proxy, and bits a step"

OWN_TASKS = "--queries"
OWN_ENVIRONMENT = "toolbench-own"
QUICK_TASKS = 4

PROXY = (
    "Success is an offline proxy, not a pass rate: every gold API was called, and then Finish, within ten decisions. "
    "The queries and their candidate APIs are real; replies are recorded or simulated, and decide nothing."
)

# Table 1 of the paper: DeepSeek-Chat, judged by a language model; 20 tasks of each subset and 50 of T5, three runs.
# Success of the baseline, of red-green and of AgentMark-F; bits/step and bits/task of AgentMark-F.
PAPER: dict[str, list[Cell]] = {
    "T1": [61.7, 60.0, 60.0, 0.51, 5.28],
    "T2": [58.3, 61.7, 61.7, 0.48, 4.89],
    "T3": [66.7, 60.0, 60.0, 0.46, 4.62],
    "T4": [73.3, 66.7, 71.7, 0.49, 5.10],
    "T5": [49.3, 49.3, 50.0, 0.48, 4.85],
    "T6": [50.0, 53.3, 55.0, 0.49, 4.90],
    "all": [59.9, 58.5, 59.7, 0.49, 4.93],
}
PAPER_COLUMNS = ["baseline %", "red-green %", "AgentMark-F %", "F bits/step", "F bits/task"]


def run(options: Options, progress: Progress) -> Findings:
    plan = own_plan(Plan.of(NAME), options, OWN_ENVIRONMENT)
    played = play(plan, options, progress, quick_tasks=QUICK_TASKS)
    note = f"{PROXY} {SOURCE} {played.note}"
    groups = group_table(played, "ToolBench by subset", note)
    tables = [
        utility_table(played.outcomes, "ToolBench (offline proxy)", note),
        groups if options.own else beside_the_paper(groups),
        *judged_tables(played),
    ]
    return Findings(claims(played), tables, data(played))


def beside_the_paper(table: Table) -> Table:
    """The same rows, with the paper's figures for each subset."""
    rows = [[*row, *PAPER[str(row[1])]] for row in table.rows]
    note = (
        f"{PROXY} {SOURCE} The columns of the paper were typed in from its Table 1: another agent (DeepSeek-Chat), "
        "another success (a language model's verdict), other counts of tasks, and an unweighted mean as its average. "
        "They stand here for the order of magnitude, and are not compared."
    )
    return Table(
        f"{table.title}, beside the paper's Table 1",
        [*table.columns, *[f"paper: {name}" for name in PAPER_COLUMNS]],
        rows,
        note,
    )
