"""What the commands share: exit codes, the parser of one command, and where keys come from."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentmark.core.canonical import is_unicode
from agentmark.errors import SettingError
from agentmark.keys.shared import ENVIRONMENT_VARIABLE, SharedKey
from agentmark.log.read.limits import DEFAULT_LIMITS, OPTION, Limits
from agentmark.text import spelled_out, spelled_out_json

EXIT_DONE = EXIT_ATTRIBUTED = 0
EXIT_NOT_ATTRIBUTED = 1
EXIT_BAD_INPUT = 2
EXIT_NOTHING_USABLE = 3
EXIT_FAULT = 70
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

LOG_HELP = (
    "AgentMark JSON lines, an SQLite log, OTLP/JSON, or an export of Langfuse, Phoenix, LangSmith or Inspect; "
    "recognised by content, also if packed with gzip or zstd (docs/logs.md)"
)


def new_command(commands: Any, name: str, summary: str, epilog: str = "") -> argparse.ArgumentParser:
    """A subcommand whose help and description are the same sentence."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def text(word: str) -> str:
    """The type of an argument that is text: a name, a session, a claim."""
    if not word:
        raise argparse.ArgumentTypeError("is empty")
    if not is_unicode(word):
        raise argparse.ArgumentTypeError("is not UTF-8")
    return word


def add_key_option(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    more = "; give it again for each key of a rotation" if several else ""
    parser.add_argument(
        "--key",
        type=Path,
        action="append",
        metavar="FILE",
        help=f"key file (default: ${ENVIRONMENT_VARIABLE}, 64 hex digits){more}",
    )


def load_keys(arguments: argparse.Namespace) -> list[SharedKey]:
    if not arguments.key:
        return [SharedKey.from_environment()]
    return [SharedKey.load(path) for path in arguments.key]


def load_one_key(arguments: argparse.Namespace) -> SharedKey:
    keys = load_keys(arguments)
    if len(keys) > 1:
        raise SettingError("--key", "this command takes one")
    return keys[0]


def add_limit_option(parser: argparse.ArgumentParser) -> None:
    """For every command that reads a log; `limits_of` is what was given."""
    defaults = ", ".join([f"{name}={value}" for name, value in asdict(DEFAULT_LIMITS).items()])
    parser.add_argument(
        OPTION,
        action="append",
        metavar="NAME=N",
        help=f"raise what a log may ask of this machine (docs/logs.md); again for each. The defaults: {defaults}",
    )


def limits_of(arguments: argparse.Namespace) -> Limits:
    return Limits.from_settings(arguments.limit or [])


def printable(text: object) -> str:
    """Text of others for one line of a terminal: what would steer it, end the line, or turn the order of its letters,
    is written as an escape."""
    return spelled_out(str(text))


def print_json(content: Any, *, indent: int | None = None) -> None:
    """JSON on standard output, with the escapes of JSON for what would steer a terminal."""
    utf8 = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
    print(spelled_out_json(json.dumps(content, ensure_ascii=not utf8, indent=indent)), flush=True)


def show_progress(message: str) -> None:
    """One line on standard error, so that standard output stays the result."""
    print(f"... {printable(message)}", file=sys.stderr, flush=True)
