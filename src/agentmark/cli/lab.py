"""`agentmark lab`: the experiments, once their own distribution is installed."""

import argparse
from importlib.metadata import entry_points
from typing import Any

from agentmark.cli.common import new_command
from agentmark.core.errors import AgentMarkError

# Other distributions add commands here: a function that takes the subparsers, as `add_parser` does.
COMMANDS_GROUP = "agentmark.commands"


class LabMissingError(AgentMarkError):
    """The experiments are a distribution of their own, which is not installed here."""

    def __init__(self) -> None:
        super().__init__(
            "the lab is not installed: in a clone, `make lab` installs it with its environments under .venvs/lab, "
            "and `pip install . ./lab` installs the experiments alone"
        )


def add_parser(commands: Any) -> None:
    for entry in entry_points(group=COMMANDS_GROUP, name="lab"):
        entry.load()(commands)
        return
    parser = new_command(commands, "lab", "Experiments: what is claimed, measured on this machine (not installed).")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    raise LabMissingError
