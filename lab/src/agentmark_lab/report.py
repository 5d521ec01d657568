"""docs/results.md from results/*.json: nothing in it is typed by hand."""

from collections.abc import Sequence
from pathlib import Path

from agentmark_lab.catalogue import EXPERIMENTS
from agentmark_lab.kit.experiment import Cell, Figure, Result, Table
from agentmark_lab.kit.table_figures import figures_of, overviews

HEADER = """# Results

Written by `agentmark lab table` from the files in `results/`. Each section names the command that repeats it; all but
the timings repeat exactly, for the seed fixes every key, payload and context (models behind a URL have a mind of their
own; what they said is kept and read again). A long run takes up what an earlier one
kept: the seconds it states are then those of the rest.
"""


def load_results(folder: Path) -> list[Result]:
    """All results in a folder, in the order of the catalogue, then by name."""
    order = list(EXPERIMENTS)
    results = [Result.load(path) for path in folder.glob("*.json")]
    return sorted(results, key=lambda r: (order.index(r.name) if r.name in order else len(order), r.name))


def render(results: Sequence[Result]) -> str:
    figures = [_picture(figure) for figure in overviews(results)]
    return "\n".join([HEADER, *figures, *[_section(result) for result in results]])


def _section(result: Result) -> str:
    parts = [f"## {result.title}\n"]
    if result.quick:
        parts.append("**Warning: a quick run, with too few trials to rely on.**\n")
    if not result.passed:
        parts.append("**Warning: not every claim holds.**\n")
    parts.append("\n".join([f"- {claim}" for claim in result.claims]) + "\n")
    parts += [_table(table) for table in result.tables]
    parts += [_picture(figure) for figure in figures_of(result)]
    machine = result.machine
    parts.append(
        f"`{result.command}` (seed {result.seed}, {result.seconds:.0f} s, agentmark {result.version}, "
        f"{machine.python}, {machine.cpu}, {machine.cores} cores, {machine.platform})\n"
    )
    return "\n".join(parts)


def _picture(figure: Figure) -> str:
    return f"![{figure.title}](figures/{figure.name}.png)\n"


def _table(table: Table) -> str:
    lines = [f"### {table.title}\n", _line(table.columns), _line(["---"] * len(table.columns))]
    lines += [_line(row) for row in table.rows]
    if table.note:
        lines.append(f"\n{table.note}")
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[Cell]) -> str:
    return "| " + " | ".join([_text(cell) for cell in cells]) + " |"


def _text(cell: Cell) -> str:
    if isinstance(cell, int):
        return f"{cell:,}"
    return str(cell).replace("|", "\\|").replace("\n", " ")
