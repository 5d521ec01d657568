"""What the commands share: exit codes, the parser of one command, and where keys come from.

Every command loads this before it knows what it will do: what takes time to load, the functions load that use it.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.errors import SettingError
from agentmark.text import spelled_out, spelled_out_json

if TYPE_CHECKING:
    from agentmark.keys.key import Key
    from agentmark.log.read.limits import Limits

EXIT_DONE = EXIT_ATTRIBUTED = 0
EXIT_NOT_ATTRIBUTED = 1
EXIT_BAD_INPUT = 2
EXIT_NOTHING_USABLE = 3
EXIT_FAULT = 70
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
EXIT_TERMINATED = 143

EXIT_STATUS_HELP = f"""\
exit status:
  {EXIT_DONE:<4} done; of `verify`, `audit` and `monitor`: attributed
  {EXIT_NOT_ATTRIBUTED:<4} judged, and not attributed; of `chain` and `check-report`: something is wrong with it
  {EXIT_BAD_INPUT:<4} bad input: a file, an option or a key that cannot be used
  {EXIT_NOTHING_USABLE:<4} nothing to judge: the log is empty, of other keys, or all unmarked
  {EXIT_FAULT:<4} a fault of this program
  {EXIT_INTERRUPTED:<4} interrupted (Ctrl-C)
  {EXIT_BROKEN_PIPE:<4} whoever read the output has gone
  {EXIT_TERMINATED:<4} terminated, as services are
`agentmark COMMAND --help` says what a command takes."""

LOG_FILE_HELP = (
    "AgentMark JSON lines, an SQLite log, a gateway's store, a Parquet table of `convert`, OTLP/JSON, or an export of "
    "Langfuse, Phoenix, LangSmith or Inspect; "
    "recognised by content, also if packed with gzip or zstd (docs/logs.md)"
)
LOG_HELP = LOG_FILE_HELP + "; a store on a server by its URL, postgresql://..."


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
    from agentmark.core.canonical import is_unicode

    if not is_unicode(word):
        raise argparse.ArgumentTypeError("is not UTF-8")
    return word


def file_name(word: str) -> str:
    """The type of an argument that is a file or a folder. An empty one, as of a variable that is not set, would be
    taken for the folder that the command runs in."""
    if not word:
        raise argparse.ArgumentTypeError("is empty")
    return word


def file_path(word: str) -> Path:
    """The same as a path. A store on a server is none, and no part of its URL is repeated."""
    if is_server(word):
        raise argparse.ArgumentTypeError("a store on a server is no file here; `agentmark export` writes one")
    return Path(file_name(word))


class StoreUrl(str):
    """A gateway's store on a server, where else a file is named. A password may be in it: it is never printed."""

    __slots__ = ()


def log_source(word: str) -> "Path | StoreUrl":
    """The type of an argument that is a log: a file, a folder, or a store on a server."""
    return StoreUrl(word) if is_server(word) else file_path(word)


def is_server(word: str) -> bool:
    """Whether a word names a store on a server."""
    return word.startswith(("postgresql://", "postgres://"))


def add_key_option(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    from agentmark.keys.environment import ENVIRONMENT_VARIABLE

    more = "; give it again for each key of a rotation" if several else ""
    parser.add_argument(
        "--key",
        type=Path,
        action="append",
        metavar="FILE",
        help=f"key file (default: ${ENVIRONMENT_VARIABLE}, 64 hex digits){more}",
    )


def load_keys(arguments: argparse.Namespace) -> "list[Key]":
    from agentmark.keys.load import load_key
    from agentmark.keys.shared import SharedKey

    if not arguments.key:
        return [SharedKey.from_environment()]
    return [load_key(path) for path in arguments.key]


def load_one_key(arguments: argparse.Namespace) -> "Key":
    keys = load_keys(arguments)
    if len(keys) > 1:
        raise SettingError("--key", "this command takes one")
    return keys[0]


def add_limit_option(parser: argparse.ArgumentParser) -> None:
    """For every command that reads a log; `limits_of` is what was given."""
    from agentmark.log.read.limits import DEFAULT_LIMITS, OPTION

    defaults = ", ".join([f"{name}={value}" for name, value in DEFAULT_LIMITS.as_dict().items()])
    parser.add_argument(
        OPTION,
        action="append",
        metavar="NAME=N",
        help=f"raise what a log may ask of this machine (docs/logs.md); again for each. The defaults: {defaults}",
    )


def limits_of(arguments: argparse.Namespace) -> "Limits":
    from agentmark.log.read.limits import Limits

    return Limits.from_settings(arguments.limit or [])


def printable(text: object) -> str:
    """Text of others for one line of a terminal: what would steer it, end the line, or turn the order of its letters,
    is written as an escape."""
    return spelled_out(str(text))


def print_json(content: Any, *, indent: int | None = None) -> None:
    """JSON on standard output, with the escapes of JSON for what would steer a terminal."""
    import json

    utf8 = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
    print(spelled_out_json(json.dumps(content, ensure_ascii=not utf8, indent=indent)), flush=True)


def show_progress(message: str) -> None:
    """One line on standard error, so that standard output stays the result."""
    print(f"... {printable(message)}", file=sys.stderr, flush=True)
