"""The two tables of docs/utility.md, by the outcomes of every task in the results: no figure in them is typed."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from agentmark_lab.experiments.models.model_trials import BY_LIST, BY_REPLY
from agentmark_lab.kit.agent_loop import BASELINE, EARLY_STOPPING, RED_GREEN, F, R
from agentmark_lab.kit.equivalence import points
from agentmark_lab.kit.experiment import Result

# Each benchmark as the page calls it, in the order of the page.
BENCHMARKS = {
    "alfworld": "[ALFWorld](results/alfworld.md)",
    "toolbench": "[ToolBench](results/toolbench.md) (offline proxy)",
    "bfcl": "[BFCL multi-turn](results/bfcl.md)",
    "agentdojo": "[AgentDojo](results/agentdojo.md)",
    "scienceworld": "[ScienceWorld](results/scienceworld.md)",
}
EXPERTS = (BASELINE, F, R, RED_GREEN, EARLY_STOPPING)
# A language model: where it plays, by the name in its result, and in which two ways it decides.
MODEL = "model_utility"
PLACES = {
    "ToolBench": "[ToolBench](results/model_utility.md), six queries (offline proxy)",
    "ALFWorld": "[ALFWorld](results/model_utility.md), last steps of five games",
}
WAYS = {"its replies": BY_REPLY, "its lists": BY_LIST}

_COLUMNS = "| benchmark | who decides | unmarked | F | R | red-green | early stopping |\n|---|---|---|---|---|---|---|"
_TABLE = r"(<!-- {name}: written by `agentmark lab table` -->\n).*?(\n<!-- end of {name} -->)"


@dataclass(frozen=True, slots=True)
class Tally:
    """The episodes of one task under one policy."""

    won: int
    trials: int
    steps: int

    @classmethod
    def of(cls, text: str) -> "Tally":
        """As results write it: `17/20 93`."""
        won, _, rest = text.partition("/")
        trials, _, steps = rest.partition(" ")
        return cls(int(won), int(trials), int(steps))

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.won + other.won, self.trials + other.trials, self.steps + other.steps)


@dataclass(frozen=True, slots=True)
class Row:
    """One benchmark, in one way to decide: the reference first, then the policies in the order of the columns."""

    benchmark: str
    who: str
    policies: Sequence[Sequence[Tally]]

    def success(self) -> str:
        shares = [[tally.won / tally.trials for tally in tasks] for tasks in self.policies]
        return self._line(f"{100 * fmean(shares[0]):.1f} %", [points(found) for found in _differences(shares)])

    def steps(self) -> str:
        lengths = [[tally.steps / tally.trials for tally in tasks] for tasks in self.policies]
        return self._line(f"{fmean(lengths[0]):.1f}", [f"{found:+.2f}" for found in _differences(lengths)])

    def _line(self, unmarked: str, others: Sequence[str]) -> str:
        return f"| {' | '.join([self.benchmark, self.who, unmarked, *others])} |"


def _differences(values: Sequence[Sequence[float]]) -> list[float]:
    """Of each policy from the reference, as means over tasks."""
    return [fmean([mine - base for mine, base in zip(one, values[0], strict=True)]) for one in values[1:]]


def filled_in(page: str, results: Sequence[Result]) -> str:
    """The page with its tables written anew; where a benchmark has no result, as it is."""
    by_name = {result.name: result for result in results}
    if not {*BENCHMARKS, MODEL} <= {*by_name}:
        return page
    rows = [*_expert_rows(by_name), *_model_rows(by_name[MODEL])]
    for name, line in (("success", Row.success), ("length", Row.steps)):
        page = _replaced(page, name, rows, line)
    return page


def _replaced(page: str, name: str, rows: Sequence[Row], line: Callable[[Row], str]) -> str:
    table = "\n".join([_COLUMNS, *[line(row) for row in rows]])
    return re.sub(_TABLE.format(name=name), lambda match: f"{match[1]}\n{table}\n{match[2]}", page, flags=re.DOTALL)


def _expert_rows(results: Mapping[str, Result]) -> Iterator[Row]:
    """Both sets of trials together, at each epsilon."""
    for name, benchmark in BENCHMARKS.items():
        outcomes = results[name].data["outcomes"]
        for level in results[name].data["plan"]["levels"]:
            sets = outcomes[str(level["epsilon"])].values()
            found = [
                (task, dict(zip(outcomes["policies"], cell.split(", "), strict=True)))
                for tasks in sets
                for task, cell in tasks.items()
            ]
            yield Row(benchmark, f"expert, ε {level['epsilon']}", _tallies(found, EXPERTS))


def _model_rows(result: Result) -> Iterator[Row]:
    for place, benchmark in PLACES.items():
        [sets] = [sets for where, sets in result.data["outcomes"].items() if f" on {place}" in where]
        found = [(one["task"], one["outcomes"]) for outcomes in sets.values() for one in outcomes]
        for way, policies in WAYS.items():
            yield Row(benchmark, f"Qwen2.5-Coder, {way}", _tallies(found, policies))


def _tallies(found: Sequence[tuple[str, Mapping[str, str]]], policies: Sequence[str]) -> list[list[Tally]]:
    """Of each policy those of all tasks: of a task that was found in several sets, their sum."""
    by_task: dict[str, list[Tally]] = {}
    for task, cells in found:
        tallies = [Tally.of(cells[policy]) for policy in policies]
        known = by_task.get(task)
        by_task[task] = tallies if known is None else [a + b for a, b in zip(known, tallies, strict=True)]
    return [[tallies[place] for tallies in by_task.values()] for place in range(len(policies))]
