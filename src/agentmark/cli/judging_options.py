"""Options that mean the same wherever logs are judged: `verify`, `audit`, `monitor` and `check-report`."""

import argparse

from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.errors import SettingError
from agentmark.verify.defaults import DEFAULT_THRESHOLD


def add_threshold_option(
    parser: argparse.ArgumentParser, meaning: str = "accept only below this false-positive bound"
) -> None:
    parser.add_argument("--threshold", type=float, default=DEFAULT_THRESHOLD, help=f"{meaning} (default %(default)g)")


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """How records are read."""
    parser.add_argument(
        "--noise",
        type=float,
        metavar="RATE",
        help="share of foreign or altered steps to expect (default: a mixture of rates; 0 tolerates none)",
    )
    parser.add_argument(
        "--any-key-id", action="store_true", help="read all records with this key, whatever id they state"
    )


def add_work_limit_option(parser: argparse.ArgumentParser, meaning: str) -> None:
    """`check_work_limit` refuses what is none."""
    parser.add_argument("--work-limit", type=int, default=DEFAULT_WORK_LIMIT, metavar="N", help=meaning)


def check_work_limit(arguments: argparse.Namespace) -> None:
    if arguments.work_limit < 1:
        raise SettingError("--work-limit", f"{arguments.work_limit} is not a number of operations")
