"""The command line: `agentmark COMMAND --help`. Exit 0 attributed (or done), 1 not attributed, 2 bad input."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from agentmark.cli import calibrate, chain, demo, embed, identity, inspect, keygen, lab, monitor, power, signing, verify
from agentmark.cli.common import EXIT_BAD_INPUT, EXIT_BROKEN_PIPE, EXIT_FAULT, EXIT_INTERRUPTED, printable
from agentmark.core.errors import AgentMarkError
from agentmark.version import __version__

COMMANDS = (keygen, identity, embed, verify, monitor, inspect, power, signing, chain, calibrate, demo)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `agentmark` command."""
    words = sys.argv[1:] if argv is None else argv
    try:
        arguments = _parser(words).parse_args(words)
        return int(arguments.run(arguments))
    except AgentMarkError as error:
        print(f"agentmark: {printable(error)}", file=sys.stderr)
    except BrokenPipeError:
        # The reader of our output has gone, as in `agentmark inspect LOG | head`. That is its right.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        print("agentmark: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except OSError as error:
        print(f"agentmark: {printable(error.filename or '')}: {error.strerror}", file=sys.stderr)
    except Exception:
        # A fault of ours must not look like "not attributed", which is Python's own exit status for it.
        traceback.print_exc()
        return EXIT_FAULT
    return EXIT_BAD_INPUT


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
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
