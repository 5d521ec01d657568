"""The options of `agentmark audit`. What they ask for is loaded when it is done (`audit.py`)."""

import argparse
from pathlib import Path
from typing import Any

from agentmark.cli.common import LOG_HELP, add_key_option, add_limit_option, file_name, file_path, new_command, text
from agentmark.cli.judging_options import add_reading_options, add_threshold_option, add_work_limit_option

BY = ("session", "file", "tenant", "all")


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "audit",
        "Judge every session in many logs at once: millions of steps, in bounded memory, resumable.",
        "A file that cannot be read is named and skipped, and so is a broken record; --strict stops there instead.\n"
        "docs/audits.md says more, and what the columns of the results mean.\n"
        "exit status: 0 attributed (any of them), 1 judged and nobody named, 2 bad input (a file that is skipped is\n"
        "             none, unless nothing is left), 3 nothing usable: empty, of other keys, all unmarked\n"
        "examples:\n"
        "  agentmark audit logs/ --key key.json --registry registry.jsonl --out results.parquet\n"
        "  agentmark audit 'logs/**/*.jsonl.gz' --key key.json --registry registry.jsonl --fdr 0.01 --out results.csv\n"
        "  agentmark audit logs/ --key key.json --out results.parquet --resume\n"
        "  agentmark audit logs/ --key key.json --registry registry.jsonl --by file --report report/",
    )
    parser.add_argument(
        "paths",
        nargs="+",
        type=file_name,
        metavar="PATH",
        help=LOG_HELP + "; files, folders of them, and patterns in quotes ('logs/**/*.gz'). A file that several of "
        "these mean is read once",
    )
    add_key_option(parser, several=True)
    parser.add_argument("--registry", type=Path, metavar="FILE", help="names of the identities")
    parser.add_argument(
        "--by",
        choices=BY,
        default="session",
        help="what is judged by itself: each session (the default), each file, each tenant (by the key that records "
        "state), or nothing: all records are one log, and held at once",
    )
    parser.add_argument(
        "--out",
        type=file_path,
        metavar="FILE",
        help="write a row for each of them: a name that ends in .parquet, .csv or .jsonl",
    )
    parser.add_argument(
        "--claim",
        type=text,
        metavar="PAYLOAD",
        help="only ask which of them are of this identity: a number, 0x..., or a name in the registry",
    )
    promise = parser.add_mutually_exclusive_group()
    promise.add_argument(
        "--familywise",
        action="store_true",
        help="promise of all names together that none is wrong, but with the probability of --threshold: each pays "
        "for the number of questions (the default)",
    )
    promise.add_argument(
        "--fdr",
        type=float,
        metavar="RATE",
        help="allow on average this share of the names to be wrong, in place of that promise",
    )
    add_threshold_option(parser)
    parser.add_argument("--payload-len", type=int, metavar="BITS", help="default: what most steps of each state")
    add_reading_options(parser)
    add_work_limit_option(
        parser, "what looking for payloads may cost, in operations of about a microsecond (default %(default)s)"
    )
    add_limit_option(parser)
    parser.add_argument(
        "--strict", action="store_true", help="stop at the first file or record that is bad, in place of skipping it"
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that share the work (default: one for each core)"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with an audit that was stopped: files that it has read and that are unchanged are not read again",
    )
    parser.add_argument(
        "--work-dir",
        type=file_path,
        metavar="DIR",
        help="where it keeps what it has done (default: beside --out, else a temporary folder). It holds no key, and "
        "is to be kept as confidential as one; removed at the end",
    )
    parser.add_argument("--keep-work-dir", action="store_true", help="leave the working folder where it is")
    parser.add_argument(
        "--engine",
        choices=("fast", "plain"),
        help="how records are read (default: fast, if the extra of that name is installed); the results are the same",
    )
    parser.add_argument(
        "--report",
        type=file_path,
        metavar="DIR",
        help="write a report into this folder: one page for the whole audit, and one for each identity",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from agentmark.cli.audit import run as audit

    return audit(arguments)
