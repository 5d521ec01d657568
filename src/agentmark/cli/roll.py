"""`agentmark verify` where there is more than one session: each is judged by itself."""

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agentmark.audit.case import Case
from agentmark.audit.material import Material
from agentmark.audit.progress import Progress
from agentmark.audit.roll_case import RollAnswer, RollCase
from agentmark.cli.common import (
    EXIT_ATTRIBUTED,
    EXIT_NOT_ATTRIBUTED,
    EXIT_NOTHING_USABLE,
    print_json,
    printable,
)
from agentmark.cli.roll_csv import roll_csv, stranger_csv
from agentmark.cli.roll_report import RollReportFiles
from agentmark.cli.roll_table import roll_lines, short_name, short_row_names, table
from agentmark.cli.verify_report import check_output, inputs_of, repeating_options
from agentmark.files import write_text_file
from agentmark.verify.correction import Correction, FalseDiscovery, Familywise
from agentmark.verify.roll import By, Roll
from agentmark.verify.stranger import StrangerView

STDOUT = "-"


def run_roll(arguments: argparse.Namespace, case: Case, material: Material, by: By, progress: Progress) -> int:
    """Judge each session or file, and show it."""
    if arguments.csv not in (None, STDOUT):
        check_output(Path(arguments.csv), inputs_of(arguments))
    files = RollReportFiles(arguments) if case.report is not None else None
    correction: Correction = Familywise(case.threshold) if arguments.fdr is None else FalseDiscovery(arguments.fdr)
    asked = RollCase(
        case=case,
        by=by,
        correction=correction,
        pools=not arguments.for_stranger,
        options=repeating_options(arguments),
    )
    answer = asked.answer(material, progress=progress)
    if files is not None and answer.report is not None:
        files.write(answer.report)
    if arguments.csv is not None:
        _write_csv(arguments, answer.roll)
    if arguments.json:
        _print_json(arguments, answer)
    elif arguments.csv != STDOUT:
        _print_lines(arguments, answer)
    for line in answer.passed_over:
        print(f"passed over: {printable(line)}", file=sys.stderr)
    if answer.roll.attributed:
        return EXIT_ATTRIBUTED
    if answer.nothing_usable and not arguments.for_stranger:
        print(printable(keys_line(answer.key_ids_there, answer.key_ids_given)), file=sys.stderr)
        return EXIT_NOTHING_USABLE
    return EXIT_NOT_ATTRIBUTED


def keys_line(there: Sequence[str], given: Sequence[str]) -> str:
    """Which keys the records state, and which were given: what a wrong key looks like."""
    if not there:
        return f"nothing usable: there is no record at all; the keys given: {', '.join(given)}"
    if set(there) & set(given):
        return "nothing usable: there are records of the key given, and all of them had to be set aside"
    return f"nothing usable: the records state the keys {', '.join(there)}; given: {', '.join(given)}"


# Printing ------------------------------------------------------------------------------------------------------------


def _print_lines(arguments: argparse.Namespace, answer: RollAnswer) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if arguments.for_stranger:
        lines = stranger_lines(answer.roll, width)
    else:
        lines = [*roll_lines(answer.roll, width=width), *_lines_after(answer)]
    print("\n".join(lines))


def _lines_after(answer: RollAnswer) -> list[str]:
    """What is said of files and not of rows, below the table."""
    lines = []
    if answer.claim is not None:
        lookup = "; a name is looked up in a --registry" if str(answer.claim_taken_as).startswith("text") else ""
        lines.append(f"  claim    {answer.claim}, taken as {answer.claim_taken_as}{lookup}")
    if answer.basis is not None:
        lines.append(f"  rests on {answer.basis.sentence}")
    lines += [f"  missing  {sentence}" for sentence in answer.missing]
    lines += [f"  chain    {chain['log']}: {chain['sentence']}" for chain in answer.chains]
    if answer.control is not None:
        control = answer.control
        lines.append(f"  control  with a random key: {control.attributed} of {control.judged} attributed")
    return ["", *map(printable, lines)] if lines else []


def _print_json(arguments: argparse.Namespace, answer: RollAnswer) -> None:
    """A line for each row, and one for all of them together."""
    roll = answer.roll
    if arguments.for_stranger:
        for name, view in _views(roll):
            print_json({roll.by.value: name, **view.as_dict()})
        print_json({"summary": {"by": roll.by.value, "rows": len(roll.rows), "attributed": _attributed(roll)}})
        return
    for row in roll.rows:
        print_json(row.as_dict(roll.by))
    control = answer.control
    summary = roll.summary() | {
        "claim": None if answer.claim is None else {"given": answer.claim, "taken_as": answer.claim_taken_as},
        "passed_over": list(answer.passed_over),
        "control": None if control is None else {"attributed": control.attributed, "judged": control.judged},
        "chains": list(answer.chains),
        "rests_on": None if answer.basis is None else answer.basis.as_dict() | {"missing": list(answer.missing)},
        "key_ids": {"there": list(answer.key_ids_there), "given": list(answer.key_ids_given)},
    }
    print_json({"summary": summary})


def _write_csv(arguments: argparse.Namespace, roll: Roll) -> None:
    content = stranger_csv(roll.by, _views(roll)) if arguments.for_stranger else roll_csv(roll)
    if arguments.csv == STDOUT:
        print(content, end="")
    else:
        write_text_file(arguments.csv, content)


# For those who do not hold the key -----------------------------------------------------------------------------------


def stranger_lines(roll: Roll, width: int | None) -> list[str]:
    """The decision of each row, and nothing that moves with a single record of one that is not attributed."""
    views = _views(roll)
    head = [f"{_attributed(roll)} of {len(views)} {roll.by}s attributed.", ""]
    named = Counter(identity.name for _, view in views for identity in view.found)
    head += [f"  {count} to {name}" for name, count in sorted(named.items(), key=lambda item: (-item[1], item[0]))]
    names = short_row_names(roll)
    rows = [
        [names[i], "attributed" if view.accepted else "not attributed", ", ".join(map(short_name, view.found)) or "-"]
        for i, (_, view) in enumerate(views)
    ]
    return [*map(printable, head), "", *table([[str(roll.by), "verdict", "identity"], *rows], width=width)]


def _views(roll: Roll) -> list[tuple[str, StrangerView]]:
    return [(row.name, row.verdict.for_stranger()) for row in roll.rows]


def _attributed(roll: Roll) -> int:
    return sum([row.verdict.accepted for row in roll.rows])
