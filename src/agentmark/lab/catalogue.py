"""Which experiments there are. A module is imported when it is asked for, so that listing names costs nothing."""

from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from agentmark.lab.experiment import Findings

# In the order in which they run and are reported.
EXPERIMENTS = {
    "roundtrip": "agentmark.lab.roundtrip",
    "marginals": "agentmark.lab.marginals",
    "false_positives": "agentmark.lab.false_positives",
    "capacity": "agentmark.lab.capacity",
    "speed": "agentmark.lab.speed",
}


class Experiment(Protocol):
    """What a module of an experiment offers."""

    NAME: str
    TITLE: str

    @staticmethod
    def run(*, quick: bool, seed: int, workers: int, progress: Callable[[str], None]) -> Findings: ...


def load(name: str) -> Experiment:
    """The experiment of this name; KeyError if there is none."""
    return cast(Experiment, import_module(EXPERIMENTS[name]))
