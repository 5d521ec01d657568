"""`agentmark inspect`."""

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import (
    EXIT_DONE,
    LOG_HELP,
    add_limit_option,
    limits_of,
    log_source,
    new_command,
    print_json,
    printable,
    text,
)
from agentmark.errors import SettingError
from agentmark.text import counted

if TYPE_CHECKING:
    from agentmark.cli.inspected import Group, Inspection, SessionRow
    from agentmark.record import StepRecord

# Sessions and files beyond so many are counted, not listed.
LISTED = 20
# Longer ids are cut in the table. The beginning of one is enough for --session.
SHOWN_ID_LEN = 32


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "inspect",
        "Say what logs hold, session by session. Needs no key.",
        "examples:\n"
        "  agentmark inspect log.jsonl\n"
        "  agentmark inspect folder --skip-bad --json\n"
        "  agentmark inspect folder --session 3f2a --steps 5\n"
        "  zcat log.jsonl.gz | agentmark inspect -",
    )
    parser.add_argument(
        "log", type=log_source, nargs="+", help=LOG_HELP + "; several, and folders of them; - is standard input"
    )
    parser.add_argument(
        "--session", type=text, metavar="ID", help="only this session; the beginning of its id, if no other begins so"
    )
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="also show the first N decisions")
    parser.add_argument("--json", action="store_true", help="print it as JSON, with every session")
    parser.add_argument("--skip-bad", action="store_true", help="pass over broken records, and files that are no logs")
    add_limit_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from agentmark.cli.input import given_logs
    from agentmark.cli.inspected import Inspection
    from agentmark.cli.progress import ProgressLine

    if arguments.steps < 0:
        raise SettingError("--steps", f"{arguments.steps} is not a number of decisions")
    with (
        given_logs(arguments.log, skip_bad=arguments.skip_bad) as found,
        ProgressLine() as progress,
    ):
        inspection = Inspection.read(found, skip_bad=arguments.skip_bad, limits=limits_of(arguments), progress=progress)
    if arguments.session is not None:
        inspection = inspection.only(arguments.session)
    if arguments.json:
        decisions = [record.as_dict() for record in inspection.records[: arguments.steps]]
        print_json(inspection.as_dict() | ({"decisions": decisions} if arguments.steps else {}), indent=2)
        return EXIT_DONE
    for line in [*_lines(inspection), *map(_step_line, inspection.records[: arguments.steps])]:
        print(printable(line))
    return EXIT_DONE


def _lines(inspection: "Inspection") -> Iterator[str]:
    files = inspection.files
    name = files[0].path if len(files) == 1 else counted(len(files), "file")
    yield (
        f"{name}: {counted(len(inspection.records), 'record')}, {inspection.marked:,} marked, "
        f"{counted(len(inspection.sessions), 'session')}"
    )
    if len(files) == 1:
        yield f"  format: {_format(files[0].format, files[0].skipped)}"
    else:
        for file in files[:LISTED]:
            yield f"  {file.path}: {counted(file.record_count, 'record')}, {_format(file.format, file.skipped)}"
        if len(files) > LISTED:
            yield f"  and {counted(len(files) - LISTED, 'more file')} (--json lists all)"
    for outcome, count in inspection.not_counted.items():
        yield f"  not counted: {count} {outcome}"
    for group in inspection.groups:
        yield from _group_lines(group)
    for reason, count in inspection.reasons.items():
        yield f"  unmarked: {count} because of: {reason}"
    for sentence in inspection.passed_over[:LISTED]:
        yield f"  passed over: {sentence}"
    if len(inspection.passed_over) > LISTED:
        yield f"  passed over: {len(inspection.passed_over) - LISTED:,} more (--json lists them)"
    yield from _session_lines(inspection.sessions)


def _format(name: str, skipped: int) -> str:
    without = f", {counted(skipped, 'entry', 'entries')} without a record" if skipped else ""
    return f"{name or 'not recognised'}{without}"


def _group_lines(group: "Group") -> Iterator[str]:
    yield (
        f"  key {group.key_id}, scheme {group.scheme}, payload of {counted(group.payload_len, 'bit')}: "
        f"{counted(group.marked_steps, 'marked step')}"
    )
    if group.marked_steps:
        yield (
            f"    mean candidates {group.mean_candidates:.1f}, mean entropy {group.mean_entropy:.2f} bits, "
            f"expected evidence {group.expected_evidence:,.0f} bits in all"
        )


def _session_lines(sessions: "Sequence[SessionRow]") -> Iterator[str]:
    if not sessions:
        return
    heads = ("session", "steps", "marked", "evidence", "key", "scheme", "bits", "file")
    rows = [
        (
            _cut(printable(row.session)),
            f"{row.steps:,}",
            f"{row.marked_steps:,}",
            f"{row.expected_evidence:,.0f}",
            " ".join(row.key_ids),
            " ".join(row.schemes),
            " ".join(map(str, row.payload_lens)),
            row.files[0] + (f" and {len(row.files) - 1:,} more" if len(row.files) > 1 else ""),
        )
        for row in sessions[:LISTED]
    ]
    widths = [max([len(row[i]) for row in (heads, *rows)]) for i in range(len(heads))]
    yield ""
    for row in (heads, *rows):
        yield "  " + "  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)]).rstrip()
    if len(sessions) > LISTED:
        yield f"  and {counted(len(sessions) - LISTED, 'more session')} (--json lists all; --session ID shows one)"


def _cut(session: str) -> str:
    return session if len(session) <= SHOWN_ID_LEN else f"{session[: SHOWN_ID_LEN - 3]}..."


def _step_line(record: "StepRecord") -> str:
    shares = []
    if record.distribution is not None:
        for name in record.distribution.behaviors:
            shown = f"[{name}]" if name == record.behavior else name
            shares.append(f"{shown} {record.distribution.probability(name):.0%}")
    return f"  {record.where}: {', '.join(shares) or record.behavior}"
