"""docs/results.md and docs/results/NAME.md from results/*.json: nothing in them is typed by hand."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentmark_lab.catalogue import EXPERIMENTS, GROUPS, Group
from agentmark_lab.kit.experiment import Cell, Figure, Result, Table
from agentmark_lab.kit.table_figures import figures_of, overviews
from agentmark_lab.report_headlines import HEADLINES
from agentmark_lab.report_utility import filled_in

HEADER = """# Results

Written by `agentmark lab table` from the files in `results/`; each experiment has a page with all its claims, tables,
figures and the command that repeats it, in [the lab](lab.md). With the code that a page names, all but the timings
repeat exactly, for the seed fixes every key, payload and context. Some results are [of earlier
bytes](lab.md#which-bytes-the-results-are-of): with today's code their choices differ. (Language models have a mind of
their own; what they said is kept, and read again.)
In short: [does it hurt my agent, and is the identity found?](utility.md)

A *claim* must hold, or the experiment fails. An *aim* may be missed; every one that was is listed
[at the end](#what-fell-short). Where a claim holds, the tables leave out what it says in brackets; its page has it.
"""

# Written by hand, but for its tables.
UTILITY = "utility.md"

NOTHING_FELL_SHORT = "Nothing: every claim holds, and every aim is met.\n"

# For the result of an experiment that stands in no group.
OTHERS = Group("others", "Results of experiments that stand in no group.", {})

# What runs in the environment of OASIS (make lab-oasis) and not in that of the others (make lab).
NEED_OASIS = ("oasis", "synthid")

# How a sentence begins that tells of a claim or an aim, and how it came out.
_HOLDS, _FAILS, _MET, _MISSED = "Holds: ", "DOES NOT HOLD: ", "Aim met: ", "Aim not met: "
_BRACKETS = re.compile(r" \([^()]*\)")


def load_results(folder: Path) -> list[Result]:
    """All results in a folder, in the order of the catalogue, then by name."""
    order = list(EXPERIMENTS)
    results = [Result.load(path) for path in folder.glob("*.json")]
    return sorted(results, key=lambda r: (order.index(r.name) if r.name in order else len(order), r.name))


def write_pages(results: Sequence[Result], front: Path) -> list[Path]:
    """Write the front page, beside it, in a folder of its name, a page for each result, and the tables of the page on
    utility, where there is one."""
    folder = front.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    pages = {front: render_front(results)}
    pages |= {folder / f"{result.name}.md": render_page(result) for result in results}
    utility = front.with_name(UTILITY)
    if utility.is_file():
        pages[utility] = filled_in(utility.read_text(encoding="utf-8"), results)
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return list(pages)


# The front page


def render_front(results: Sequence[Result]) -> str:
    """What came out, an experiment a line, and everything that fell short."""
    parts = [HEADER, _totals(results)]
    parts += [_picture(figure, "figures") for figure in overviews(results)]
    parts += [_group(group, members) for group, members in _grouped(results) if members]
    return "\n".join([*parts, _shortfall(results)])


def _totals(results: Sequence[Result]) -> str:
    sentences = [claim for result in results for claim in result.claims]
    tally = _Tally.of(sentences)
    return f"{len(results)} experiments: {tally.claims} claims hold, {tally.aims} aims are met.\n"


def _grouped(results: Sequence[Result]) -> list[tuple[Group, list[Result]]]:
    """The groups in their order, each with its results in its order; results of no group come last."""
    sorted_in = []
    for group in GROUPS:
        order = list(group.modules)
        members = [result for result in results if _experiment(result) in group.modules]
        sorted_in.append((group, sorted(members, key=lambda r: order.index(_experiment(r)))))
    known = {name for group in GROUPS for name in group.modules}
    return [*sorted_in, (OTHERS, [result for result in results if _experiment(result) not in known])]


def _experiment(result: Result) -> str:
    """A model that plays elsewhere has a result of its own: language_model-bfcl."""
    return result.name.partition("-")[0]


def _group(group: Group, results: Sequence[Result]) -> str:
    columns = ["experiment", "what came out", "claims", "aims", ""]
    lines = [f"## {group.package.capitalize()}\n", f"{group.question}\n", _line(columns), _line(["---"] * len(columns))]
    for result in results:
        tally = _Tally.of(result.claims)
        drawn = ", ".join([f"[figure](figures/{figure.name}.png)" for figure in figures_of(result)])
        title = f"[{result.title}](results/{result.name}.md)" + (" **(a quick run)**" if result.quick else "")
        lines.append(_line([title, _what_came_out(result), tally.claims, tally.aims, drawn]))
    return "\n".join(lines) + "\n"


def _what_came_out(result: Result) -> str:
    """The claims that are its headlines; where a result has none of them, its first."""
    asked = HEADLINES.get(_experiment(result), ())
    found = [next((claim for claim in result.claims if fragment in claim), None) for fragment in asked]
    shown = [claim for claim in dict.fromkeys(found) if claim is not None] or result.claims[:1]
    return "<br>".join([_in_short(claim) for claim in shown])


def _in_short(sentence: str) -> str:
    """The claim without its brackets and without saying that it holds; one that fell short is given whole."""
    if _fell_short(sentence):
        return _emphasised(sentence)
    return _BRACKETS.sub("", sentence.removeprefix(_HOLDS).removeprefix(_MET))


def _shortfall(results: Sequence[Result]) -> str:
    """Every claim that does not hold and every aim that was missed, in full; failed experiments first."""
    lines = []
    for result in sorted(results, key=lambda r: r.passed):
        missed = [claim for claim in result.claims if _fell_short(claim)]
        if missed:
            lines.append(f"- [{result.title}](results/{result.name}.md)")
            lines += [f"  - {_emphasised(claim)}" for claim in missed]
    return "## What fell short\n\n" + ("\n".join(lines) + "\n" if lines else NOTHING_FELL_SHORT)


@dataclass(frozen=True, slots=True)
class _Tally:
    """How many claims hold and how many aims are met, of how many."""

    claims: str
    aims: str

    @classmethod
    def of(cls, sentences: Sequence[str]) -> "_Tally":
        counts = [len([s for s in sentences if s.startswith(begin)]) for begin in (_HOLDS, _FAILS, _MET, _MISSED)]
        hold, fail, met, missed = counts
        return cls(_share(hold, hold + fail), _share(met, met + missed))


def _share(reached: int, total: int) -> str:
    if not total:
        return ""
    text = f"{reached} of {total}"
    return text if reached == total else f"**{text}**"


# The page of an experiment


def render_page(result: Result) -> str:
    """Everything that is known of one experiment, and how to repeat it."""
    parts = [f"# {result.title}\n", "[All results](../results.md)\n"]
    if result.quick:
        parts.append("**Warning: a quick run, with too few trials to rely on.**\n")
    if not result.passed:
        parts.append("**Warning: not every claim holds.**\n")
    parts.append("\n".join([f"- {_emphasised(claim)}" for claim in result.claims]) + "\n")
    parts += [_picture(figure, "../figures") for figure in figures_of(result)]
    parts += [_table(table) for table in result.tables]
    machine = result.machine
    parts.append(
        "## Repeat it\n\n"
        f"```console\n$ {_where_it_runs(result)}\n```\n\n"
        "How to get this environment: [the lab](../lab.md). "
        f"Seed {result.seed}, {result.seconds:.0f} s (of the last run, if it took up what an earlier one had kept), "
        f"agentmark {result.version}, {machine.python}, {machine.cpu}, {machine.cores} cores, {machine.platform}.\n"
    )
    return "\n".join(parts)


def _where_it_runs(result: Result) -> str:
    """The command with the environment that has what it needs (docs/lab.md)."""
    environment = "oasis" if result.name in NEED_OASIS else "lab"
    return result.command.replace("agentmark lab run", f".venvs/{environment}/bin/agentmark lab run")


def _table(table: Table) -> str:
    lines = [f"## {table.title}\n", _line(table.columns), _line(["---"] * len(table.columns))]
    lines += [_line(row) for row in table.rows]
    if table.note:
        lines.append(f"\n{table.note}")
    return "\n".join(lines) + "\n"


# Both


def _fell_short(sentence: str) -> bool:
    return sentence.startswith((_FAILS, _MISSED))


def _emphasised(sentence: str) -> str:
    """The claim, with how it came out in bold if it fell short."""
    if not _fell_short(sentence):
        return sentence
    outcome, _, text = sentence.partition(": ")
    return f"**{outcome}:** {text}"


def _picture(figure: Figure, folder: str) -> str:
    return f"![{figure.title}]({folder}/{figure.name}.png)\n"


def _line(cells: Sequence[Cell]) -> str:
    return "| " + " | ".join([_text(cell) for cell in cells]) + " |"


def _text(cell: Cell) -> str:
    if isinstance(cell, int):
        return f"{cell:,}"
    return str(cell).replace("|", "\\|").replace("\n", " ")
