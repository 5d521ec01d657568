"""`agentmark chain`. The keys that sign come from `agentmark signing-key`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from agentmark.chain.check import ChainReport, verify_chain
from agentmark.cli.common import EXIT_DONE, add_limit_option, limits_of, new_command, print_json, printable
from agentmark.log.read.open import read_log

EXIT_FINDINGS = 1
# Findings beyond this many are counted, not listed.
LISTED = 30


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "chain",
        "Show what was removed, inserted, altered or moved in a log that was written with a chain, and what its signer "
        "does not vouch for. Needs no secret.",
        "exit status: 0 intact, 1 findings, 2 bad input\n"
        "example:\n  agentmark chain log.jsonl --public-key 64-HEX-DIGITS",
    )
    parser.add_argument("log", type=Path, help="JSON lines, plain or gzip")
    parser.add_argument(
        "--public-key",
        action="append",
        metavar="HEX",
        help="who must have signed the checkpoints; get it from them. Give it again for each key of a rotation",
    )
    parser.add_argument("--anchor", metavar="HEX", help="a checkpoint that the log must hold, as noted down before")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_limit_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    # As what it was written as: a foreign line at its head must not turn it into a log without checkpoints.
    log = read_log(arguments.log, skip_bad=True, as_json_lines=True, limits=limits_of(arguments))
    summary = log.summary
    if summary.bad_lines and not log.entries and not summary.checkpoints:
        raise summary.bad_lines[0]
    report = verify_chain(
        log.records,
        summary.checkpoints,
        arguments.public_key,
        anchor=arguments.anchor,
        lines=log.lines,
        unreadable=[*summary.bad_lines, *summary.bad_checkpoints],
    )
    if arguments.json:
        print_json(report.as_dict() | {"torn_lines": summary.torn_lines}, indent=2)
    else:
        print("\n".join(map(printable, _report_lines(report, trusted=arguments.public_key is not None))))
        for line in summary.torn_lines:
            print(f"passed over: {printable(arguments.log)}:{line}: cut short by a crash", file=sys.stderr)
    return EXIT_DONE if report.intact else EXIT_FINDINGS


def _report_lines(report: ChainReport, *, trusted: bool) -> list[str]:
    lines = [report.sentence, ""]
    for finding in report.findings[:LISTED]:
        session = "" if finding.session is None else f"session {finding.session[:8]}: "
        lines.append(f"  {finding.kind.value:<20}{printable(session + finding.sentence)}")
    if len(report.findings) > LISTED:
        lines.append(f"  and {len(report.findings) - LISTED} more; --json lists all")
    if report.findings:
        lines.append("")
    lines.append(f"  checkpoints         {report.checkpoint_count}, vouching for {report.checked_count} records")
    for signer in report.signers:
        doubt = "" if trusted else " (nobody vouches for this key: pass the one you trust with --public-key)"
        lines.append(f"  signed by           {signer}{doubt}")
    if report.last_checkpoint is not None:
        lines.append(f"  last checkpoint     {report.last_checkpoint} (note it down elsewhere, for --anchor)")
    return lines
