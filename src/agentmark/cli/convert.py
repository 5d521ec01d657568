"""`agentmark convert`."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import (
    EXIT_DONE,
    LOG_HELP,
    add_limit_option,
    file_path,
    limits_of,
    log_source,
    new_command,
    printable,
)
from agentmark.text import counted

if TYPE_CHECKING:
    from agentmark.log.read.summary import LogSummary

# What was passed over is listed up to so many, and counted beyond.
LISTED = 20


def add_parser(commands: Any) -> None:
    from agentmark.log.record_file import LINES, PACKED_LINES, TABLE

    parser = new_command(
        commands,
        "convert",
        "Write the records of logs of any format to one file: JSON lines, or a Parquet table. Needs no key.",
        "examples:\n"
        "  agentmark convert log.jsonl -o log.parquet\n"
        "  agentmark convert exports/ --skip-bad -o all.jsonl.gz\n"
        "  agentmark convert log.parquet -o log.jsonl",
    )
    parser.add_argument(
        "log", type=log_source, nargs="+", help=LOG_HELP + "; several, and folders of them; - is standard input"
    )
    parser.add_argument(
        "-o",
        "--out",
        type=file_path,
        required=True,
        metavar="FILE",
        help=f"a new file, whose ending says what it is: {LINES}, {PACKED_LINES} or {TABLE} (docs/convert.md)",
    )
    parser.add_argument("--skip-bad", action="store_true", help="pass over broken records, and files that are no logs")
    add_limit_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from agentmark.cli.input import given_logs
    from agentmark.cli.progress import ProgressLine
    from agentmark.log.read.open import open_log
    from agentmark.log.record_file import check_record_file, new_record_file

    out: Path = arguments.out
    check_record_file(out)
    summaries: list[LogSummary] = []
    done = 0
    with (
        given_logs(arguments.log, skip_bad=arguments.skip_bad) as found,
        new_record_file(out) as write,
        ProgressLine() as progress,
    ):
        for path in found.files:
            log = open_log(path, skip_bad=arguments.skip_bad, limits=limits_of(arguments))
            for record in log:
                write(record)
                done += 1
                progress.count(done, None, "records")
            summaries.append(log.summary)
    for line in _told(out, done, summaries, found.passed_over):
        print(printable(line))
    return EXIT_DONE


def _told(out: Path, done: int, summaries: "list[LogSummary]", passed_over: tuple[str, ...]) -> Iterator[str]:
    yield f"{out}: {counted(done, 'record')} from {counted(len(summaries), 'file')}"
    checkpoints = sum(len(summary.checkpoints) for summary in summaries)
    if checkpoints:
        yield f"  left out: {counted(checkpoints, 'checkpoint')} of a chain; they stay with the log that they sign"
    skipped = sum(summary.skipped for summary in summaries)
    if skipped:
        yield f"  left out: {counted(skipped, 'entry', 'entries')} without a record"
    sentences = [*passed_over, *(sentence for summary in summaries for sentence in summary.passed_over)]
    for sentence in sentences[:LISTED]:
        yield f"  passed over: {sentence}"
    if len(sentences) > LISTED:
        yield f"  passed over: {len(sentences) - LISTED:,} more"
