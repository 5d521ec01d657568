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
    "samplers": "agentmark.lab.samplers",
    "capacity_entropy": "agentmark.lab.capacity_entropy",
    "speed": "agentmark.lab.speed",
    "validity": "agentmark.lab.validity",
    "evidence_power": "agentmark.lab.evidence_power",
    "single_episode": "agentmark.lab.single_episode",
    "rewriting": "agentmark.lab.rewriting",
    "rewording": "agentmark.lab.rewording",
    "splices": "agentmark.lab.splices",
    "registry_scale": "agentmark.lab.registry_scale",
    "erasure": "agentmark.lab.erasure",
    "language_model": "agentmark.lab.language_model",
    "model_utility": "agentmark.lab.model_utility",
    "weaker_views": "agentmark.lab.weaker_views",
    "attacks": "agentmark.lab.attacks",
    "alfworld": "agentmark.lab.alfworld",
    "toolbench": "agentmark.lab.toolbench",
    "bfcl": "agentmark.lab.bfcl",
    "agentdojo": "agentmark.lab.agentdojo",
    "scienceworld": "agentmark.lab.scienceworld",
    "identification": "agentmark.lab.identification",
    "oasis": "agentmark.lab.oasis",
    "synthid": "agentmark.lab.synthid",
    "elicitation": "agentmark.lab.elicitation",
    "calibration": "agentmark.lab.calibration",
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
