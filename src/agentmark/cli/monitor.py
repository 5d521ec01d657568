"""The options of `agentmark monitor`. What they ask for is loaded when it is done (`watch.py`)."""

import argparse
from pathlib import Path
from typing import Any

from agentmark.cli.common import LOG_FILE_HELP, add_key_option, add_limit_option, file_path, new_command
from agentmark.cli.judging_options import add_reading_options, add_threshold_option
from agentmark.errors import SettingError

DEFAULT_EVERY = 1000
DEFAULT_POLL_S = 1.0


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "monitor",
        "Watch a log that grows, and raise an alarm that is valid however often one looks (docs/monitor.md).",
        "exit status: 0 alarm (attributed), 1 no alarm, 2 bad input, 3 nothing usable,\n"
        "             130 interrupted, 143 terminated\n"
        "examples:\n"
        "  agentmark monitor log.jsonl --key key.json --registry registry.jsonl --state watch.state\n"
        "  agentmark monitor log.jsonl --key key.json --claim 0x2a --payload-len 16 --follow --state watch.state\n"
        "  tail -F log.jsonl | agentmark monitor - --key key.json --registry registry.jsonl --json",
    )
    parser.add_argument(
        "log",
        type=file_path,
        nargs="+",
        help=LOG_FILE_HELP + "; several, and folders of them, are read in turn; - is standard input, as JSON lines",
    )
    add_key_option(parser, several=True)
    parser.add_argument("--registry", type=Path, metavar="FILE", help="watch for the identities in it, as it is now")
    parser.add_argument(
        "--claim",
        metavar="PAYLOAD",
        help="watch for this identity alone: a number, 0x..., or a name in the registry; without one also text",
    )
    parser.add_argument(
        "--payload-len",
        type=int,
        metavar="BITS",
        help="only records of this length count (default: each length that comes up, the later the dearer)",
    )
    add_threshold_option(parser, "how probable a false alarm may be, over the whole life of the log")
    add_reading_options(parser)
    parser.add_argument(
        "--follow", action="store_true", help="go on as the files grow (JSON lines; they need not be there yet)"
    )
    parser.add_argument(
        "--poll",
        type=float,
        default=DEFAULT_POLL_S,
        metavar="SECONDS",
        help="with --follow: how often to look for more (default %(default)g)",
    )
    add_limit_option(parser)
    parser.add_argument("--until-alarm", action="store_true", help="stop at the first alarm")
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="go on from this file if it is there, and keep what is known in it: a restart must not forget. As "
        "confidential as the key, and never to be replaced by an older copy",
    )
    parser.add_argument(
        "--every",
        type=int,
        default=DEFAULT_EVERY,
        metavar="N",
        help="print a status line, and keep the state, after every N records (default %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print lines of JSON")
    parser.add_argument(
        "--for-stranger",
        action="store_true",
        help="print only whether there is an alarm and for whom: those who write the log must see nothing more",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.every < 1:
        raise SettingError("--every", f"{arguments.every} is not a number of records")
    if not 0 < arguments.poll < float("inf"):
        raise SettingError("--poll", f"{arguments.poll} is not a time to wait")

    from agentmark.cli.watch import watch

    return watch(arguments)
