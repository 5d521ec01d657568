"""`agentmark audit`: every session of many logs, and what they come to."""

import argparse
import shutil
import sys
from collections.abc import Sequence
from textwrap import wrap

from agentmark.audit.bulk import BulkAudit
from agentmark.audit.bulk_report import ReportAsked
from agentmark.audit.judged import AuditSummary, row_word
from agentmark.cli.common import (
    EXIT_ATTRIBUTED,
    EXIT_NOT_ATTRIBUTED,
    EXIT_NOTHING_USABLE,
    StoreUrl,
    is_server,
    limits_of,
    load_keys,
    print_json,
    printable,
)
from agentmark.cli.input import kept_in_files
from agentmark.cli.judging_options import check_work_limit
from agentmark.cli.progress import ProgressLine
from agentmark.cli.roll import keys_line
from agentmark.cli.roll_table import WIDTH, table
from agentmark.cli.verify import claim_of
from agentmark.core.theory import SMALLEST_RATE
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.log.read.files import shown
from agentmark.text import counted, shell_word
from agentmark.verify.correction import Correction, FalseDiscovery, Familywise
from agentmark.verify.defaults import DEFAULT_THRESHOLD
from agentmark.verify.roll import By
from agentmark.verify.verdict import Standing

# Identities, files and notes beyond these are counted: the results have the rest.
MOST_IDENTITIES, MOST_BAD, MOST_NOTES = 20, 20, 10


def run(arguments: argparse.Namespace) -> int:
    stores = [path for path in arguments.paths if is_server(path)]
    if stores and (arguments.resume or arguments.work_dir is not None or arguments.keep_work_dir):
        raise SettingError("--resume", "a store goes on growing: `agentmark export` it first, and audit the file")
    with kept_in_files([StoreUrl(url) for url in stores]) as kept:
        copies = dict(zip(stores, map(str, kept), strict=True))
        arguments.paths = [copies.get(path, path) for path in arguments.paths]
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    audit = _audit(arguments)
    with ProgressLine() as progress:
        summary = audit.run(progress)
    if arguments.json:
        print_json(summary.as_dict(), indent=2)
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print("\n".join(summary_lines(summary, width=width)))
    for line in _passed_over(summary):
        print(printable(line), file=sys.stderr)
    if summary.attributed:
        return EXIT_ATTRIBUTED
    if summary.nothing_usable:
        print(printable(keys_line(summary.read.key_ids, summary.key_ids_given)), file=sys.stderr)
        return EXIT_NOTHING_USABLE
    return EXIT_NOT_ATTRIBUTED


def _audit(arguments: argparse.Namespace) -> BulkAudit:
    if arguments.fdr is not None:
        if not SMALLEST_RATE <= arguments.fdr < 1:
            raise SettingError("--fdr", f"{arguments.fdr:g} is not a rate from {SMALLEST_RATE:g} to below 1")
        if arguments.threshold != DEFAULT_THRESHOLD:
            raise SettingError("--fdr", "takes the place of --threshold: give one of them")
    check_work_limit(arguments)
    correction: Correction = Familywise(arguments.threshold) if arguments.fdr is None else FalseDiscovery(arguments.fdr)
    registry = Registry.load(arguments.registry) if arguments.registry else None
    return BulkAudit(
        paths=arguments.paths,
        keys=load_keys(arguments),
        registry=registry,
        by=By(arguments.by),
        correction=correction,
        claim=claim_of(arguments.claim, registry),
        payload_len=arguments.payload_len,
        noise=arguments.noise,
        any_key_id=arguments.any_key_id,
        work_limit=arguments.work_limit,
        limits=limits_of(arguments),
        strict=arguments.strict,
        out=arguments.out,
        workers=arguments.workers,
        work_dir=arguments.work_dir,
        resume=arguments.resume,
        keep_work_dir=arguments.keep_work_dir,
        engine=arguments.engine,
        report=None if arguments.report is None else ReportAsked(arguments.report, repeating_command(arguments)),
        own=[*(arguments.key or []), *([] if arguments.registry is None else [arguments.registry])],
    )


def repeating_command(arguments: argparse.Namespace) -> str:
    """The command that gives these rows again. Keys appear as file names, never as secrets."""
    words = ["agentmark", "audit", *map(shown, arguments.paths)]
    words += [word for path in arguments.key or [] for word in ("--key", str(path))]
    for name, default in _REPEATED.items():
        value = getattr(arguments, name)
        if value != default:
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += [word for setting in limits_of(arguments).as_settings() for word in ("--limit", setting)]
    words += [f"--{name.replace('_', '-')}" for name in ("any_key_id", "strict") if getattr(arguments, name)]
    return " ".join(map(shell_word, words))


# Options that make a difference to the rows, with their defaults.
_REPEATED = {
    "registry": None,
    "by": "session",
    "claim": None,
    "fdr": None,
    "threshold": DEFAULT_THRESHOLD,
    "payload_len": None,
    "noise": None,
    "work_limit": DEFAULT_WORK_LIMIT,
    "out": None,
}


# Printing ------------------------------------------------------------------------------------------------------------


def summary_lines(summary: AuditSummary, *, width: int | None = None) -> list[str]:
    """The audit as lines for a terminal."""
    lines = [printable(summary.sentence), ""]
    if summary.totals:
        lines += [*_identity_lines(summary, width), ""]
    lines += table(_standing_cells(summary), right=(1,), width=width)
    said = [summary.promise, *[f"together: {pool.sentence}" for pool in summary.pools]]
    if summary.not_pooled:
        said.append(
            f"not pooled: {counted(summary.not_pooled, 'step')} in {row_word(summary.by)}s that are too short alone "
            "are too many to be asked about together"
        )
    if summary.claim is not None:
        said.append(f"claim: {summary.claim}, taken as {summary.claim_taken_as}")
    lines.append("")
    for sentence in said:
        lines += wrap(printable(sentence), width or WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines


def _identity_lines(summary: AuditSummary, width: int | None) -> list[str]:
    pooled = bool(summary.pools)
    head = ["identity", f"{row_word(summary.by)}s", "steps", "worst bound", *(["+ pooled"] if pooled else [])]
    cells = [
        [
            total.short_name,
            f"{total.rows:,}",
            f"{total.steps:,}",
            total.bound_text,
            *([f"{total.pooled_rows:,}"] if pooled else []),
        ]
        for total in summary.totals[:MOST_IDENTITIES]
    ]
    lines = table([head, *cells], right=(1, 2, 3, 4), width=width)
    left = len(summary.totals) - len(cells)
    return [*lines, f"  and {counted(left, 'more identity', 'more identities')}"] if left else lines


def _standing_cells(summary: AuditSummary) -> Sequence[Sequence[str]]:
    word = row_word(summary.by)
    counts, read = summary.standings, summary.read
    cells = [
        [f"{word}s attributed", f"{counts[Standing.ATTRIBUTED]:,}", ""],
        ["not attributed", f"{counts[Standing.NOT_ATTRIBUTED]:,}", "judged, and no identity explains enough of them"],
        ["not yet decidable", f"{counts[Standing.TOO_SHORT]:,}", "too short to name anybody, whoever made them"],
        ["nothing usable", f"{counts[Standing.NOTHING_USABLE]:,}", "no record that these keys can read"],
        ["records", f"{read.records:,}", f"in {counted(read.shards - len(read.bad_shards), 'file')}"],
        ["bad records", f"{read.bad_records:,}", "passed over"],
        ["bad files", f"{len(read.bad_shards):,}", "skipped"],
    ]
    if read.resumed:
        cells.append(["read before", f"{read.resumed:,}", "files that an earlier run had read"])
    if read.same_files:
        cells.append(["other names", f"{read.same_files:,}", "of files that were read under another name"])
    return cells


def _passed_over(summary: AuditSummary) -> list[str]:
    read = summary.read
    lines = [f"skipped: {bad}" for bad in read.bad_shards[:MOST_BAD]]
    if len(read.bad_shards) > MOST_BAD:
        lines.append(f"skipped: {counted(len(read.bad_shards) - MOST_BAD, 'more file')} (--json lists them)")
    lines += [f"passed over: {note}" for note in read.notes[:MOST_NOTES]]
    left = max(0, len(read.notes) - MOST_NOTES) + read.more_notes
    return [*lines, f"passed over: {counted(left, 'more note')} (--json lists some)"] if left else lines
