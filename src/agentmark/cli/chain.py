"""`agentmark chain`. The keys that sign come from `agentmark signing-key`."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import (
    EXIT_DONE,
    EXIT_NOTHING_USABLE,
    LOG_HELP,
    add_limit_option,
    limits_of,
    log_source,
    new_command,
    print_json,
    printable,
)
from agentmark.text import counted

if TYPE_CHECKING:
    from agentmark.chain.check import ChainReport
    from agentmark.log.read.limits import Limits
    from agentmark.log.read.open import ReadLog

EXIT_FINDINGS = 1
# Findings beyond this many are counted, not listed.
LISTED = 30
# What the writers of chains write. Other tools keep the records, and with them the links, but no checkpoint.
CHAINED_FORMAT = "AgentMark JSON lines"


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "chain",
        "Show what was removed, inserted, altered or moved in a log that was written with a chain, and what its signer "
        "does not vouch for. Needs no secret.",
        "A chain runs through one file: each is judged by itself.\n"
        "exit status: 0 intact, 1 findings, 2 bad input, 3 none of the files holds a chain\n"
        "examples:\n  agentmark chain log.jsonl --public-key 64-HEX-DIGITS\n  agentmark chain folder --skip-bad",
    )
    parser.add_argument(
        "log", type=log_source, nargs="+", help=LOG_HELP + "; several, and folders of them; - is standard input"
    )
    parser.add_argument(
        "--public-key",
        action="append",
        metavar="HEX",
        help="who must have signed the checkpoints; get it from them. Give it again for each key of a rotation",
    )
    parser.add_argument("--anchor", metavar="HEX", help="a checkpoint that the log must hold, as noted down before")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON; of several files, as a list")
    parser.add_argument("--skip-bad", action="store_true", help="pass over files that are no logs")
    add_limit_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from agentmark.cli.input import given_logs
    from agentmark.cli.progress import ProgressLine

    limits = limits_of(arguments)
    checks: list[_Check] = []
    with given_logs(arguments.log, skip_bad=arguments.skip_bad) as found, ProgressLine() as progress:
        passed_over = list(found.passed_over)
        for number, path in enumerate(found.files, start=1):
            log = _read(path, limits, skip_bad=arguments.skip_bad)
            checks.append(_Check(log, arguments))
            progress.count(number, len(found.files), "files")
    if arguments.json:
        contents = [check.as_dict() for check in checks]
        print_json(contents[0] if len(contents) == 1 else contents, indent=2)
    else:
        for i, check in enumerate(checks):
            if len(checks) > 1:
                print(("\n" if i else "") + printable(check.name))
            print("\n".join(map(printable, check.lines)))
            passed_over += check.passed_over
    for sentence in passed_over:
        print(f"passed over: {printable(sentence)}", file=sys.stderr)
    return _status(checks)


def _status(checks: "list[_Check]") -> int:
    reports = [check.report for check in checks if check.report is not None]
    if not reports:
        return EXIT_NOTHING_USABLE
    return EXIT_DONE if all(report.intact for report in reports) else EXIT_FINDINGS


def _read(path: Path, limits: "Limits", *, skip_bad: bool) -> "ReadLog":
    """A log as what it was written as: a foreign line at its head must not turn it into one without checkpoints."""
    from agentmark.log.read.open import read_log

    as_lines = read_log(path, skip_bad=True, as_json_lines=True, limits=limits)
    if as_lines.entries or as_lines.summary.checkpoints or not as_lines.summary.bad_lines:
        return as_lines
    # Not one line of it is ours: another format, or no log at all.
    return read_log(path, skip_bad=skip_bad, limits=limits)


class _Check:
    """What the chain of one file shows, or why it has none."""

    def __init__(self, log: "ReadLog", arguments: argparse.Namespace) -> None:
        from agentmark.chain.check import verify_chain
        from agentmark.log.read.files import shown

        summary = log.summary
        self.name = shown(log.path)
        self.report: ChainReport | None = None
        self._trusted = arguments.public_key is not None
        self._torn = list(summary.torn_lines)
        self.passed_over = [f"{self.name}:{line}: is cut short" for line in self._torn]
        self._format = summary.format
        self.without = ""
        if not summary.format:
            self.without = "is no log: " + "; ".join([error.fault for error in summary.bad_lines])
        elif not self._expected(arguments) and summary.format != CHAINED_FORMAT and not _linked(log):
            self.without = (
                f"has no chain: {summary.format} with {counted(len(log.records), 'record')}, none of them linked. "
                f"A chain is written by LogWriter, to a file of {CHAINED_FORMAT}: hand in that file"
            )
        else:
            self.report = verify_chain(
                log.records,
                summary.checkpoints,
                arguments.public_key,
                anchor=arguments.anchor,
                lines=log.lines,
                unreadable=[*summary.bad_lines, *summary.bad_checkpoints],
            )

    @staticmethod
    def _expected(arguments: argparse.Namespace) -> bool:
        """Somebody is known to have signed it: then a log without a chain has lost it."""
        return arguments.public_key is not None or arguments.anchor is not None

    @property
    def lines(self) -> list[str]:
        if self.report is None:
            return [f"{self.name} {self.without}."]
        lines = _report_lines(self.report, trusted=self._trusted)
        if self._format != CHAINED_FORMAT:
            lines.append(f"  format              {self._format}, which keeps links and no checkpoints")
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Of a file without a chain: why there is none."""
        found = {"without": self.without} if self.report is None else self.report.as_dict()
        return {"log": self.name, "format": self._format} | found | {"torn_lines": self._torn}


def _linked(log: "ReadLog") -> bool:
    return any(record.prev for record in log.records)


def _report_lines(report: "ChainReport", *, trusted: bool) -> list[str]:
    lines = [report.sentence, ""]
    for finding in report.findings[:LISTED]:
        session = "" if finding.session is None else f"session {finding.session[:8]}: "
        lines.append(f"  {finding.kind.value:<20}{printable(session + finding.sentence)}")
    if len(report.findings) > LISTED:
        lines.append(f"  and {len(report.findings) - LISTED:,} more; --json lists all")
    if report.findings:
        lines.append("")
    vouched = counted(report.checked_count, "record")
    lines.append(f"  checkpoints         {report.checkpoint_count:,}, vouching for {vouched}")
    for signer in report.signers:
        doubt = "" if trusted else " (nobody vouches for this key: pass the one you trust with --public-key)"
        lines.append(f"  signed by           {signer}{doubt}")
    if report.last_checkpoint is not None:
        lines.append(f"  last checkpoint     {report.last_checkpoint} (note it down elsewhere, for --anchor)")
    return lines
