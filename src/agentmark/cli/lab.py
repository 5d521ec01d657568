"""`agentmark lab`: the experiments, once their own distribution is installed."""

from importlib.metadata import entry_points
from typing import Any

from agentmark.cli.common import new_command
from agentmark.core.errors import AgentMarkError

# Where the lab's distribution says which function adds its command to the subparsers.
COMMANDS_GROUP = "agentmark.commands"
SUMMARY = "Experiments: what is claimed, measured on this machine."


class LabMissingError(AgentMarkError):
    """The experiments are a distribution of their own, which is not installed here, or not in this version."""

    def __init__(self, fault: str) -> None:
        super().__init__(
            f"the lab {fault}: in a clone, `make lab` installs it with its environments under .venvs/lab, and "
            "`pip install . ./lab` installs the experiments alone"
        )


def add_parser(commands: Any) -> None:
    """Names the command in the help. The lab itself is loaded only if it is asked for: see `add_installed`."""
    new_command(commands, "lab", SUMMARY)


def add_installed(commands: Any) -> None:
    """Loads the lab and lets it add its command. Whatever is wrong with it, no other command suffers from it."""
    entry = next(iter(entry_points(group=COMMANDS_GROUP, name="lab")), None)
    if entry is None:
        raise LabMissingError("is not installed")
    try:
        add = entry.load()
    except Exception as error:
        raise LabMissingError(f"that is installed does not load ({error})") from error
    add(commands)
