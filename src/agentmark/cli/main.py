"""The command line: `agentmark COMMAND --help`. A command is loaded when it is named, and no other with it."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from agentmark.cli.common import EXIT_BAD_INPUT, EXIT_BROKEN_PIPE, EXIT_FAULT, EXIT_INTERRUPTED, EXIT_STATUS_HELP
from agentmark.cli.streams import OUTPUT, safe_streams
from agentmark.core.errors import AgentMarkError
from agentmark.errors import SettingError
from agentmark.text import spelled_out
from agentmark.version import __version__

DESCRIPTION = "Hide an identity in an agent's decisions, each as likely as before; read it back from its log."

# What each command is for, in the order of the help. The command itself says the same in its own help.
SUMMARIES = {
    "keygen": "Write a new secret key to a file that only you can read.",
    "identity": "Issue, revoke or list the identities of a registry: a file of lines, or a SQLite table.",
    "embed": "Choose behaviors: weights on standard input, one JSON object a line; choices and records on standard "
    "output.",
    "gateway": "Stand between agents and their model's API, and mark their decisions: change a base URL "
    "(docs/gateway.md).",
    "disclose": "Prove the steps of a log to those who have the public key: for ever, and bound to these records.",
    "verify": "Read the identity from whatever is left of a log.",
    "audit": "Judge every session in many logs at once: millions of steps, in bounded memory, resumable.",
    "monitor": "Watch a log that grows, and raise an alarm that is valid however often one looks (docs/monitor.md).",
    "inspect": "Say what logs hold, session by session. Needs no key.",
    "convert": "Write the records of logs of any format to one file: JSON lines, or a Parquet table. Needs no key.",
    "store": "Make, describe or thin out the store of a gateway: SQLite, or PostgreSQL (docs/store.md).",
    "tenant": "Add, list or revoke the tenants of a gateway, and their API keys.",
    "export": "Write the records of a gateway's store to one file: JSON lines, or a Parquet table.",
    "power": "Say how many steps an identification takes, before deploying. Needs no key.",
    "signing-key": "Write a new Ed25519 key for signing to a file that only you can read, and print its public key.",
    "check-report": "Check a report: its signature, and of a verdict by a disclosure the verdict itself.",
    "chain": "Show what was removed, inserted, altered or moved in a log that was written with a chain, and what its "
    "signer does not vouch for. Needs no secret.",
    "calibrate": "Is the list that a model states the one it acts by? Lists against free choices.",
    "demo": "A courier robot decides, its log is damaged, its identity is read back. Offline, about ten seconds.",
    "lab": "Experiments: what is claimed, measured on this machine.",
}

# Longer errors repeat a file or an argument rather than say what is wrong with it.
MAX_ERROR_LEN = 2000


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `agentmark` command."""
    words = sys.argv[1:] if argv is None else argv
    with safe_streams():
        return _answer(words)


def _answer(words: Sequence[str]) -> int:
    command = _Command(words)
    try:
        _check_words(words)
        arguments = command.parse()
        status = int(arguments.run(arguments))
        # Here, and not when Python ends: a full disk must not look like success.
        if sys.stdout is not None:
            sys.stdout.flush()
    except SettingError as error:
        command.complain(error)
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
    except Exception as error:
        return _fault(error)
    else:
        return status
    return EXIT_BAD_INPUT


def _fault(error: Exception) -> int:
    """A fault of ours must not look like "not attributed", which is Python's own exit status for it."""
    # What Python makes of an interrupt that meets it where a class is made, in a module that is loaded.
    if isinstance(error.__cause__, KeyboardInterrupt):
        print("agentmark: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    import traceback

    traceback.print_exc()
    return EXIT_FAULT


def _check_words(words: Sequence[str]) -> None:
    if any("\0" in word for word in words):
        raise SettingError("arguments", "hold a zero byte, which no argument can")
    # Python's parser takes the two dashes for the end of the options, and falls over what is then missing.
    if any(word.startswith("-") and word.endswith("=--") for word in words):
        raise SettingError("arguments", "an option cannot have the value --")


def _worded(message: str) -> str:
    """An error as it is shown: one line, without what may be a secret, and not as long as what it quotes."""
    from agentmark.keys.secret import without_secrets

    shown = spelled_out(without_secrets(message))
    if len(shown) <= MAX_ERROR_LEN:
        return shown
    half = MAX_ERROR_LEN // 2
    return f"{shown[:half]} ... {shown[-half:]}"


def _drop_output() -> None:
    """What is left to write goes nowhere: Python would try once more at its end, and complain."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# The parser ----------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Words that are refused are quoted as the other errors quote them. Subcommands are parsers of the same kind."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: error: {_worded(message)}\n`{self.prog} --help` says more.\n")


class _Command:
    """What was typed: the command, once it is loaded, and the errors about its options."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._named = words[0] if words and words[0] in SUMMARIES else None
        self._parser: argparse.ArgumentParser | None = None

    def parse(self) -> argparse.Namespace:
        parser = _Parser(
            prog="agentmark",
            description=DESCRIPTION,
            epilog=EXIT_STATUS_HELP,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--version", action="version", version=f"agentmark {__version__}")
        commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
        if self._named is None:
            for name, summary in SUMMARIES.items():
                commands.add_parser(name, help=summary)
            return parser.parse_args(self._words)
        load_command(self._named, commands)
        self._parser = commands.choices[self._named]
        arguments, unknown = parser.parse_known_args(self._words)
        if unknown:
            # By the parser of the command, whose usage shows what there is.
            self._parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return arguments

    def complain(self, error: SettingError) -> None:
        """An option that cannot be meant is answered as the parser answers one that it does not know."""
        # The library names a setting as Python does: payload_len.
        option = error.name if error.name.startswith("--") else f"--{error.name.replace('_', '-')}"
        if self._parser is None or option not in self._parser._option_string_actions:
            print(f"agentmark: {_worded(str(error))}", file=sys.stderr)
            return
        self._parser.print_usage(sys.stderr)
        print(f"{self._parser.prog}: error: {_worded(f'{option}: {error.fault}')}", file=sys.stderr)
        print(f"`{self._parser.prog} --help` says more.", file=sys.stderr)


# Where each command is: the parser of its options, and behind it what it does. The lab is another distribution.
_HOMES: dict[str, Callable[[], Any]] = {
    "keygen": lambda: import_module("agentmark.cli.keygen"),
    "identity": lambda: import_module("agentmark.cli.identity"),
    "embed": lambda: import_module("agentmark.cli.embed"),
    "gateway": lambda: import_module("agentmark.cli.gateway"),
    "disclose": lambda: import_module("agentmark.cli.disclose"),
    "verify": lambda: import_module("agentmark.cli.verify_options"),
    "audit": lambda: import_module("agentmark.cli.audit_options"),
    "monitor": lambda: import_module("agentmark.cli.monitor"),
    "inspect": lambda: import_module("agentmark.cli.inspect"),
    "convert": lambda: import_module("agentmark.cli.convert"),
    "store": lambda: import_module("agentmark.cli.store"),
    "tenant": lambda: import_module("agentmark.cli.tenant"),
    "export": lambda: import_module("agentmark.cli.export"),
    "power": lambda: import_module("agentmark.cli.power"),
    "signing-key": lambda: import_module("agentmark.cli.signing"),
    "check-report": lambda: import_module("agentmark.cli.signing"),
    "chain": lambda: import_module("agentmark.cli.chain"),
    "calibrate": lambda: import_module("agentmark.cli.calibrate"),
    "demo": lambda: import_module("agentmark.cli.demo"),
    "lab": lambda: import_module("agentmark.cli.lab"),
}


def load_command(name: str, commands: Any) -> None:
    """Import what a command needs for its own parser, and add that to the subparsers."""
    _HOMES[name]().add_parser(commands)
