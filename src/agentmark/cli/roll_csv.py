"""A roll for a spreadsheet."""

import csv
import io
from collections.abc import Sequence

from agentmark.cli.roll_table import notes, row_order, short_name
from agentmark.text import spreadsheet_cell
from agentmark.verify.roll import Roll
from agentmark.verify.stranger import StrangerView, payload_digits


def roll_csv(roll: Roll) -> str:
    """A line for each row, in the order of the table."""
    head = [str(roll.by), "verdict", "identity", "payload", "bound", "used", "set aside", "further identities"]
    lines = [[*head, "pooled for", "files", "notes"]]
    for i in row_order(roll):
        row = roll.rows[i]
        found = row.verdict.found
        best = found[0] if found else None
        lines.append(
            [
                row.name,
                row.verdict.standing,
                best.identity or "" if best else "",
                _digits(best.payload, best.payload_len) if best else "",
                best.bound_text if best else "",
                str(row.used),
                str(row.set_aside),
                "; ".join(map(short_name, found[1:])),
                "" if row.pool is None else short_name(roll.pools[row.pool]),
                "; ".join(row.files),
                notes(roll, i),
            ]
        )
    return _written(lines)


def stranger_csv(by: str, views: Sequence[tuple[str, StrangerView]]) -> str:
    """The decisions alone."""
    lines = [[by, "verdict", "identity", "payload"]]
    for name, view in views:
        names = "; ".join(map(short_name, view.found))
        digits = "; ".join([_digits(identity.payload, identity.payload_len) for identity in view.found])
        lines.append([name, "attributed" if view.accepted else "not attributed", names, digits])
    return _written(lines)


def _digits(payload: int, payload_len: int) -> str:
    """With 0x before them: without it, a spreadsheet takes 12e10 for a number."""
    return f"0x{payload_digits(payload, payload_len)}"


def _written(lines: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[spreadsheet_cell(cell) for cell in line] for line in lines])
    return text.getvalue()
