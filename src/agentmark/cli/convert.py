"""`agentmark convert`."""

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import (
    EXIT_DONE,
    LOG_HELP,
    add_limit_option,
    file_path,
    limits_of,
    new_command,
    printable,
)
from agentmark.errors import SettingError
from agentmark.text import counted

if TYPE_CHECKING:
    from agentmark.log.read.summary import LogSummary
    from agentmark.record import StepRecord

# What was passed over is listed up to so many, and counted beyond.
LISTED = 20
LINES, PACKED_LINES, TABLE = ".jsonl", ".jsonl.gz", ".parquet"


def add_parser(commands: Any) -> None:
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
        "log", type=file_path, nargs="+", help=LOG_HELP + "; several, and folders of them; - is standard input"
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

    out: Path = arguments.out
    new_writer = _writer_for(out)
    if out.exists():
        raise SettingError("--out", f"{out} exists; nothing is written over")
    summaries: list[LogSummary] = []
    done = 0
    with (
        given_logs(arguments.log, skip_bad=arguments.skip_bad) as found,
        _put_in_place(out) as kept,
        new_writer(kept) as write,
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


_Write = Callable[["StepRecord"], None]


def _writer_for(out: Path) -> Any:
    """What writes such a file: a context manager around a function that takes records."""
    for ending, writer in ((LINES, _lines), (PACKED_LINES, _packed_lines), (TABLE, _table)):
        if out.name.endswith(ending) and out.name != ending:
            return writer
    raise SettingError("--out", f"{out} does not end in {LINES}, {PACKED_LINES} or {TABLE}")


@contextmanager
def _lines(path: Path) -> Iterator[_Write]:
    with path.open("xb") as file:
        yield lambda record: _write_line(file, record)


@contextmanager
def _packed_lines(path: Path) -> Iterator[_Write]:
    import gzip

    # Without a name or a time in it: the same records make the same file.
    with path.open("xb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        yield lambda record: _write_line(packed, record)


def _write_line(file: Any, record: "StepRecord") -> None:
    file.write(record.to_json().encode("utf-8") + b"\n")


@contextmanager
def _table(path: Path) -> Iterator[_Write]:
    from agentmark.log.parquet import ParquetRecords

    with ParquetRecords(path) as table:
        yield table.write


@contextmanager
def _put_in_place(out: Path) -> Iterator[Path]:
    """Where to write, until all is written: half a file is never left under the name that was asked for."""
    kept = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        yield kept
        if out.exists():
            raise SettingError("--out", f"{out} exists; nothing is written over")
        kept.rename(out)
    finally:
        with suppress(FileNotFoundError):
            kept.unlink()
