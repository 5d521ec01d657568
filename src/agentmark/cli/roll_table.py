"""A roll as lines for a terminal: who was found, how the rows stand, and a row for each session or file."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from os.path import commonpath
from pathlib import Path
from textwrap import wrap

from agentmark.cli.common import printable
from agentmark.text import counted
from agentmark.verify.correction import FalseDiscovery
from agentmark.verify.intake import Outcome
from agentmark.verify.roll import By, IdentityTotal, Pool, Roll, RollRow
from agentmark.verify.stranger import NamedIdentity, payload_digits
from agentmark.verify.verdict import FoundIdentity, Standing

# The beginning of a session's id, at least; more if others begin the same.
SHORTEST_ID = 8
# What one name may take of a table's width.
WIDEST_NAME = 34
CUT = "..."
# Longer cells push the rest of their line aside; they do not widen every line.
WIDEST_COLUMN = 80
# Where sentences are broken if nobody knows how wide the terminal is.
WIDTH = 100


def roll_lines(roll: Roll, *, width: int | None = None) -> list[str]:
    """All there is to say of a roll. Lines are cut to the width, if there is one."""
    lines = [roll.sentence, ""]
    if roll.totals:
        lines += [*totals_lines(roll, width), ""]
    said = [standings_line(roll), questions_line(roll), *[f"together: {pool.sentence}" for pool in roll.pools]]
    for sentence in said:
        lines += wrap(sentence, width or WIDTH, initial_indent="  ", subsequent_indent="    ")
    return [*map(printable, lines), "", *row_lines(roll, width)]


def totals_lines(roll: Roll, width: int | None) -> list[str]:
    """A line for each identity that is named."""
    pooled = bool(roll.pools)
    head = ["identity", f"{roll.by}s", "steps", "worst bound", *(["+ pooled"] if pooled else [])]
    cells = [
        [
            short_name(total),
            f"{len(total.rows):,}",
            f"{total.steps:,}",
            total.bound_text,
            *([f"{len(total.pooled_rows):,}"] if pooled else []),
        ]
        for total in roll.totals
    ]
    return table([head, *cells], right=(1, 2, 3, 4), width=width)


def standings_line(roll: Roll) -> str:
    """How many rows stand where."""
    counts = roll.standings
    said = [f"{counts[standing]:,} {standing}" for standing in Standing if counts[standing]]
    return ", ".join(said) or "nothing to judge"


def questions_line(roll: Roll) -> str:
    """What was paid for, and what that means."""
    if not roll.questions:
        return "no question was asked: no step can be used"
    asked = f"{counted(roll.questions, 'question')} paid for"
    if isinstance(roll.correction, FalseDiscovery):
        return f"{asked} (false discovery rate): {roll.correction.explained}"
    return f"{asked}: {roll.correction.explained}"


def row_lines(roll: Roll, width: int | None) -> list[str]:
    """A line for each row: those that name somebody by identity, then the others, the least usable last."""
    names = short_row_names(roll)
    head = [roll.by, "verdict", "identity", "bound", "steps", "notes"]
    cells = [
        [names[i], roll.rows[i].verdict.standing, *_named(roll.rows[i]), _steps(roll.rows[i]), notes(roll, i)]
        for i in row_order(roll)
    ]
    return table([list(map(str, head)), *cells], right=(3,), width=width)


def row_order(roll: Roll) -> list[int]:
    """The rows as they are shown: by identity, those of the most rows first; then by standing."""
    rank = {(total.payload, total.payload_len): i for i, total in enumerate(roll.totals)}
    standings = (Standing.ATTRIBUTED, Standing.TOO_SHORT, Standing.NOT_ATTRIBUTED, Standing.NOTHING_USABLE)

    def key(i: int) -> tuple[int, int, int, int]:
        row = roll.rows[i]
        found = row.verdict.found
        who = rank[found[0].payload, found[0].payload_len] if found else 0
        pool = len(roll.pools) if row.pool is None else row.pool
        return standings.index(row.verdict.standing), who, pool, i

    return sorted(range(len(roll.rows)), key=key)


def notes(roll: Roll, i: int) -> str:
    """What else is to be said of a row."""
    row = roll.rows[i]
    verdict = row.verdict
    said = []
    if len(verdict.found) > 1:
        said.append(f"{len(verdict.found):,} identities found: {', '.join(map(short_name, verdict.found))}")
    if row.pool is not None:
        pool = roll.pools[row.pool]
        said.append(f"pooled: speaks for {short_name(pool)} with {len(pool.rows) - 1:,} more")
    if row.shared_contexts:
        said.append(f"{counted(row.shared_contexts, 'step')} also in another {roll.by}")
    if verdict.standing is Standing.TOO_SHORT and row.pool is None and verdict.steps_needed:
        said.append(f"about {counted(verdict.steps_needed, 'more step')} needed")
    if verdict.standing is Standing.NOT_ATTRIBUTED and verdict.work_note is not None:
        said.append("search cut short by the work limit")
    if verdict.standing is Standing.NOTHING_USABLE:
        said.append(
            ", ".join(
                [f"{count:,} {_AS_NOTED.get(outcome, outcome)}" for outcome, count in sorted(verdict.counts.items())]
            )
        )
    elif verdict.counts[Outcome.OTHER_KEY]:
        said.append(f"{verdict.counts[Outcome.OTHER_KEY]:,} {_AS_NOTED[Outcome.OTHER_KEY]}")
    return "; ".join([note for note in said if note])


# Outcomes that need another word behind a number.
_AS_NOTED = {Outcome.OTHER_KEY: "of another key"}


def _named(row: RollRow) -> list[str]:
    found = row.verdict.found
    if not found:
        return ["-", "-"]
    more = f" +{len(found) - 1}" if len(found) > 1 else ""
    return [short_name(found[0]) + more, found[0].bound_text]


def _steps(row: RollRow) -> str:
    return f"{row.used:,}/{row.set_aside:,}" if row.set_aside else f"{row.used:,}"


def short_name(who: FoundIdentity | NamedIdentity | IdentityTotal | Pool) -> str:
    """By name if the registry has one, else by the digits of the payload."""
    if who.identity is not None:
        return who.identity
    return f"0x{payload_digits(who.payload, who.payload_len)}" if who.payload_len else "the key's holder"


def short_row_names(roll: Roll) -> list[str]:
    """The rows' names, shortened so that they stay apart: the beginnings of sessions, the ends of paths."""
    names = [row.name for row in roll.rows]
    if roll.by is By.FILE:
        return [printable(name) for name in _below_common_folder(names)]
    ordered = sorted(names)
    # Names that begin alike stand side by side.
    length = max([SHORTEST_ID, *[_told_apart_at(first, second) for first, second in pairwise(ordered)]])
    return [printable(name[:length]) for name in names]


def _told_apart_at(first: str, second: str) -> int:
    """How many characters it takes to tell these names apart."""
    places = zip(first, second, strict=False)
    return next((i for i, (one, other) in enumerate(places, start=1) if one != other), min(len(first), len(second)) + 1)


def _below_common_folder(paths: Sequence[str]) -> list[str]:
    folders = {str(Path(path).parent) for path in paths}
    try:
        common = commonpath(folders)
    except ValueError:
        # Paths with and without a root have nothing in common.
        common = ""
    return [path[len(common) + 1 :] if common and path.startswith(f"{common}/") else path for path in paths]


def table(rows: Sequence[Sequence[str]], *, right: Iterable[int] = (), width: int | None = None) -> list[str]:
    """Cells in columns, two spaces before each. Names give way first where it is too wide, then the last column."""
    shown = [[printable(cell) for cell in row] for row in rows]
    if width is not None:
        shown = [[_cut(cell, WIDEST_NAME) for cell in row[:-1]] + [row[-1]] for row in shown]
    columns = len(shown[0])
    widths = [min(max(len(row[i]) for row in shown), WIDEST_COLUMN) for i in range(columns)]
    aligned = set(right)
    lines = []
    for row in shown:
        cells = [cell.rjust(widths[i]) if i in aligned else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        line = "  " + "  ".join(cells).rstrip()
        lines.append(line if width is None else _cut(line, width))
    return lines


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - len(CUT), 0)] + CUT
