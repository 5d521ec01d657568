"""What the lab asks of an environment, and how it finds one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from agentmark.core.errors import AgentMarkError


class OwnTasksError(AgentMarkError, ValueError):
    """Tasks that somebody brought, and that cannot be played."""

    def __init__(self, place: Path, fault: str) -> None:
        super().__init__(f"{place}: {fault}")


@dataclass(frozen=True, slots=True)
class Task:
    """One task; `group` is the paper's label for its kind (A1 to A6, T1 to T6) or the environment's own."""

    id: str
    group: str


class Episode(Protocol):
    """A task that is being worked on. Behaviors are chosen by name; what it takes to execute one is the episode's."""

    @property
    def goal(self) -> str: ...

    @property
    def observation(self) -> str: ...

    @property
    def behaviors(self) -> Sequence[str]:
        """What can be done now: at least one, each once."""

    @property
    def done(self) -> bool: ...

    @property
    def success(self) -> bool:
        """By the environment's own check."""

    def expert(self) -> str | None:
        """What the environment's expert would do now; None when it is at a loss."""

    def step(self, behavior: str) -> None: ...


class Environment(Protocol):
    """A set of tasks. It is opened once in a process and starts any number of episodes, one at a time. Its class takes
    the work folder, where it may keep what is slow to make."""

    @property
    def max_steps(self) -> int: ...

    def tasks(self) -> Sequence[Task]: ...

    def start(self, task: Task, *, seed: int) -> Episode: ...


# Module and class of each; a module is imported when its environment is opened, and says what it misses.
ENVIRONMENTS = {
    "alfworld-id": "agentmark_lab.envs.alfworld:SeenHouses",
    "alfworld-ood": "agentmark_lab.envs.alfworld:UnseenHouses",
    "toolbench": "agentmark_lab.envs.toolbench:ToolBench",
    "bfcl": "agentmark_lab.envs.bfcl:MultiTurn",
    "agentdojo": "agentmark_lab.envs.agentdojo:AgentDojo",
    "scienceworld": "agentmark_lab.envs.scienceworld:ScienceWorld",
}
# Some tasks of the above, for a quick look where any of them would be a long one.
PARTS = {"scienceworld-short": "agentmark_lab.envs.scienceworld:ShortTasks"}
# The same with tasks that somebody brings; the class takes the file or folder that they are in as well.
OWN = {
    "alfworld-own": "agentmark_lab.envs.alfworld:OwnHouses",
    "toolbench-own": "agentmark_lab.envs.toolbench:OwnQueries",
    "bfcl-own": "agentmark_lab.envs.bfcl:OwnConversations",
}


def of_each_group(tasks: Iterable[Task], count: int) -> list[Task]:
    """The first so many tasks of each group."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.group, []).append(task)
    return [task for members in groups.values() for task in members[:count]]


@cache
def open_environment(name: str, work: Path, own: Path | None = None) -> Environment:
    """The environment of this name, opened once for each process; one of `OWN` with what was brought."""
    made = getattr(import_module(module_of(name)), _table()[name].partition(":")[2])
    return cast(Environment, made(work, own) if own is not None else made(work))


def module_of(name: str) -> str:
    """Where the environment of this name is."""
    return _table()[name].partition(":")[0]


def _table() -> dict[str, str]:
    return {**ENVIRONMENTS, **PARTS, **OWN}
