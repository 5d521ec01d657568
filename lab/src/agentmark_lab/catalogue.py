"""Which experiments there are. A module is imported when it is asked for, so that listing names costs nothing."""

from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from agentmark_lab.experiment import Findings

# In the order in which they run and are reported.
EXPERIMENTS = {
    "roundtrip": "agentmark_lab.roundtrip",
    "marginals": "agentmark_lab.marginals",
    "false_positives": "agentmark_lab.false_positives",
    "capacity": "agentmark_lab.capacity",
    "samplers": "agentmark_lab.samplers",
    "capacity_entropy": "agentmark_lab.capacity_entropy",
    "speed": "agentmark_lab.speed",
    "validity": "agentmark_lab.validity",
    "evidence_power": "agentmark_lab.evidence_power",
    "single_episode": "agentmark_lab.single_episode",
    "rewriting": "agentmark_lab.rewriting",
    "rewording": "agentmark_lab.rewording",
    "splices": "agentmark_lab.splices",
    "registry_scale": "agentmark_lab.registry_scale",
    "erasure": "agentmark_lab.erasure",
    "language_model": "agentmark_lab.language_model",
    "model_utility": "agentmark_lab.model_utility",
    "weaker_views": "agentmark_lab.weaker_views",
    "attacks": "agentmark_lab.attacks",
    "alfworld": "agentmark_lab.alfworld",
    "toolbench": "agentmark_lab.toolbench",
    "bfcl": "agentmark_lab.bfcl",
    "agentdojo": "agentmark_lab.agentdojo",
    "scienceworld": "agentmark_lab.scienceworld",
    "identification": "agentmark_lab.identification",
    "oasis": "agentmark_lab.oasis",
    "synthid": "agentmark_lab.synthid",
    "elicitation": "agentmark_lab.elicitation",
    "calibration": "agentmark_lab.calibration",
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
