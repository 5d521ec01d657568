"""`agentmark lab`: the experiments, once their own distribution is installed."""

from importlib.metadata import entry_points
from typing import Any

from agentmark.core.errors import AgentMarkError

# Where the lab's distribution says which function adds its command to the subparsers.
COMMANDS_GROUP = "agentmark.commands"


class LabMissingError(AgentMarkError):
    """The experiments are a distribution of their own, which is not installed here, or not in this version."""

    def __init__(self, fault: str) -> None:
        super().__init__(
            f"the lab {fault}: in a clone, `make lab` installs it with its environments under .venvs/lab, and "
            "`pip install . ./lab` installs the experiments alone"
        )


def add_parser(commands: Any) -> None:
    """Loads the lab and lets it add its command. Whatever is wrong with it, no other command suffers from it."""
    entry = next(iter(entry_points(group=COMMANDS_GROUP, name="lab")), None)
    if entry is None:
        raise LabMissingError("is not installed")
    try:
        add = entry.load()
    except Exception as error:
        raise LabMissingError(f"that is installed does not load ({error})") from error
    add(commands)
