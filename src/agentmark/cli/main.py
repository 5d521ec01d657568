"""The command line: `agentmark COMMAND --help`. Exit 0 attributed (or done), 1 not attributed, 2 bad input."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from agentmark.cli import calibrate, chain, demo, embed, identity, inspect, keygen, lab, monitor, power, signing, verify
from agentmark.cli.common import EXIT_BAD_INPUT, EXIT_BROKEN_PIPE, EXIT_FAULT, EXIT_INTERRUPTED, printable
from agentmark.cli.streams import OUTPUT, safe_streams
from agentmark.core.errors import AgentMarkError
from agentmark.errors import SettingError
from agentmark.keys.secret import without_secrets
from agentmark.version import __version__

COMMANDS = (keygen, identity, embed, verify, monitor, inspect, power, signing, chain, calibrate, demo)

# Longer errors repeat a file or an argument rather than say what is wrong with it.
MAX_ERROR_LEN = 2000


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `agentmark` command."""
    words = sys.argv[1:] if argv is None else argv
    with safe_streams():
        return _answer(words)


def _answer(words: Sequence[str]) -> int:
    try:
        _check_words(words)
        arguments = _parser(words).parse_args(words)
        status = int(arguments.run(arguments))
        # Here, and not when Python ends: a full disk must not look like success.
        if sys.stdout is not None:
            sys.stdout.flush()
    except AgentMarkError as error:
        print(f"agentmark: {_worded(str(error))}", file=sys.stderr)
    except BrokenPipeError:
        # The reader of our output has gone, as in `agentmark inspect LOG | head`. That is its right.
        _drop_output()
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        print("agentmark: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except OSError as error:
        if error.filename == OUTPUT:
            _drop_output()
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        print(f"agentmark: {_worded(f'{where}{error.strerror or error}')}", file=sys.stderr)
    except Exception:
        # A fault of ours must not look like "not attributed", which is Python's own exit status for it.
        traceback.print_exc()
        return EXIT_FAULT
    else:
        return status
    return EXIT_BAD_INPUT


def _check_words(words: Sequence[str]) -> None:
    if any("\0" in word for word in words):
        raise SettingError("arguments", "hold a zero byte, which no argument can")
    # Python's parser takes the two dashes for the end of the options, and falls over what is then missing.
    if any(word.startswith("-") and word.endswith("=--") for word in words):
        raise SettingError("arguments", "an option cannot have the value --")


def _worded(message: str) -> str:
    """An error as it is shown: one line, without what may be a secret, and not as long as what it quotes."""
    shown = printable(without_secrets(message))
    if len(shown) <= MAX_ERROR_LEN:
        return shown
    half = MAX_ERROR_LEN // 2
    return f"{shown[:half]} ... {shown[-half:]}"


def _drop_output() -> None:
    """What is left to write goes nowhere: Python would try once more at its end, and complain."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """Words that are refused are quoted as the other errors quote them. Subcommands are parsers of the same kind."""

    def error(self, message: str) -> NoReturn:
        super().error(_worded(message))


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="agentmark",
        description="Hide an identity in an agent's decisions, each as likely as before; read it back from its log.",
    )
    parser.add_argument("--version", action="version", version=f"agentmark {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    # The lab is another distribution, and takes a while to load: it is not touched unless it is meant.
    if words[:1] == ["lab"]:
        lab.add_installed(commands)
    else:
        lab.add_parser(commands)
    return parser
