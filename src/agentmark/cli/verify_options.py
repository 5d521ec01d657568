"""The options of `agentmark verify`. What they ask for is loaded when it is done (`verify.py`)."""

import argparse
from pathlib import Path
from typing import Any

from agentmark.cli.common import LOG_HELP, add_key_option, add_limit_option, file_name, log_source, new_command, text
from agentmark.cli.judging_options import add_reading_options, add_threshold_option, add_work_limit_option
from agentmark.cli.public_options import add_public_options
from agentmark.cli.verify_report import ALL, add_report_options
from agentmark.verify.defaults import DEFAULT_OFFSETS, SEGMENTED_UNASKED

# What `--by` takes: those of `verify.roll.By`, and all at once.
BY = ("session", "file", ALL)


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "verify",
        "Read the identity from whatever is left of a log.",
        "Where there is more than one session, each is judged by itself (docs/sessions.md).\n"
        "exit status: 0 attributed (with several sessions: any of them), 1 judged and not attributed, 2 bad input,\n"
        "             3 nothing usable in it: empty, of other keys, all unmarked\n"
        "examples:\n"
        "  agentmark verify log.jsonl --key key.json --registry registry.jsonl\n"
        "  agentmark verify logs/ --key key.json --registry registry.jsonl --report report/ --csv table.csv\n"
        "  agentmark verify log.jsonl --key key.json --registry registry.jsonl --claim tenant-0042\n"
        "  agentmark verify log.jsonl --key key.json --report report.html\n"
        "  agentmark verify log.jsonl --key key.json --report answer.html --for-stranger\n"
        "  agentmark verify log.jsonl --disclosure log.disclosure.json --public-key marking.pub.json\n"
        "  agentmark verify part.jsonl --key key.json --find-offset --session ID",
    )
    parser.add_argument(
        "log", type=log_source, nargs="+", help=LOG_HELP + "; several, and folders of them; - is standard input"
    )
    add_key_option(parser, several=True)
    parser.add_argument("--registry", type=Path, metavar="FILE", help="names of the identities")
    parser.add_argument(
        "--claim",
        type=text,
        metavar="PAYLOAD",
        help="only ask whether it is this identity: a number, 0x..., or a name in the registry (which goes before a "
        "number); without a registry also text that fits",
    )
    parser.add_argument("--payload-len", type=int, metavar="BITS", help="default: what most steps state")
    add_threshold_option(parser)
    add_reading_options(parser)
    parser.add_argument(
        "--find-offset",
        action="store_true",
        help="the records are consecutive steps of one session (--session) that have lost their numbers and digests: "
        "find their place in it. Every place tried is paid for",
    )
    parser.add_argument(
        "--session",
        type=text,
        action="append",
        metavar="ID",
        help="judge this session alone; the beginning of its id will do; again for each. With --find-offset: the "
        "session the records are from, as it is",
    )
    parser.add_argument(
        "--by",
        choices=BY,
        help="what is judged by itself: each session (the default where there is more than one), each file, or "
        "nothing: all records pooled into one verdict, as is right for what one agent left behind",
    )
    parser.add_argument("--pool", action="store_true", help="the same as --by all")
    parser.add_argument(
        "--fdr",
        type=float,
        metavar="RATE",
        help="of many sessions, allow on average this share of the names to be wrong, in place of the promise of "
        "--threshold for all of them together",
    )
    parser.add_argument(
        "--offsets",
        type=int,
        metavar="N",
        help=f"with --find-offset: how many places to try, from the first step on (default {DEFAULT_OFFSETS})",
    )
    add_work_limit_option(
        parser,
        "what looking for the payload may cost, in operations of about a microsecond (default %(default)s), and "
        "reading a packed log; a verdict that was cut short says so",
    )
    parser.add_argument(
        "--skip-bad", action="store_true", help="judge the rest: pass over broken records, and files that are no logs"
    )
    add_limit_option(parser)
    parser.add_argument("--control", action="store_true", help="also read the log with a random key, for comparison")
    add_public_options(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the verdict as JSON; with --report or --signed, the whole report. Of several sessions, a line for "
        "each and a last one for all of them",
    )
    parser.add_argument(
        "--csv", type=file_name, metavar="FILE", help="write a line for each session or file; - is standard output"
    )
    parser.add_argument(
        "--report",
        type=file_name,
        metavar="FILE",
        help="write a report: one HTML page, or data if the name ends in .json; of several sessions, a folder "
        "(FOLDER/) with an overview and a page for each identity",
    )
    parser.add_argument(
        "--segments",
        action="store_true",
        help="in a report, also look for stretches of several identities, however long it takes (by default only in "
        f"logs of up to {SEGMENTED_UNASKED} records that show signs of it)",
    )
    parser.add_argument(
        "--for-stranger",
        action="store_true",
        help="show only what somebody may see who does not hold the key: whether an identity is named, and which; "
        "no evidence, in print or in the report (docs/verdict.md says why)",
    )
    parser.add_argument("--signed", type=Path, metavar="FILE", help="write the report as signed JSON")
    parser.add_argument("--signing-key", type=Path, metavar="FILE", help="for --signed: see `agentmark signing-key`")
    add_report_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from agentmark.cli.verify import run as verify

    return verify(arguments)
