"""Pages that benches write: tables with what they show, under headings, and what they were measured on."""

import sys
from collections.abc import Sequence

from bench.measure import commit, machine

HEADING = "## "


class Table:
    """A table of Markdown, with a title and what it shows."""

    def __init__(self, title: str, said: str, *columns: str) -> None:
        self.title = title
        self._said = said
        self._rows = [columns]

    def add(self, *cells: object) -> None:
        self._rows.append(tuple(map(str, cells)))
        say("  " + " | ".join(map(str, cells)))

    def section(self, measured: str) -> str:
        head, *rows = [f"| {' | '.join(cells)} |" for cells in self._rows]
        rule = "|" + "---|" * len(self._rows[0])
        return "\n".join([f"{HEADING}{self.title}", "", self._said, "", head, rule, *rows, "", measured, ""])


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def measured_on(seed: int, rounds: int) -> str:
    """What stands below a table: the machine, the seed, the rounds, and the commit of the package."""
    said = "1 round" if rounds == 1 else f"{rounds} rounds"
    return f"Measured on {machine()}. Seed {seed}, {said}; commit {commit()}."


def page_with(text: str, sections: Sequence[str]) -> str:
    """The page, in which these sections stand in the place of those with their titles. New ones come behind."""
    head, *old = text.split(f"\n{HEADING}")
    kept = {section.partition("\n")[0]: section.rstrip() for section in old}
    for section in sections:
        content = section.removeprefix(HEADING).rstrip()
        kept[content.partition("\n")[0]] = content
    return "".join([head.rstrip(), "\n", *[f"\n{HEADING}{section}\n" for section in kept.values()]])
