"""Which experiments there are. A module is imported when it is asked for, so that listing names costs nothing."""

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from agentmark_lab.kit.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Group:
    """Experiments that belong together: a package of its own, the question that they answer, and the module of each
    experiment by its name."""

    package: str
    question: str
    modules: dict[str, str]


# In the order in which they run and are reported. An experiment's name is what users, results and documents call it.
GROUPS = (
    Group(
        "theory",
        "Do the schemes behave as the closed forms say, and what does a step cost?",
        {
            "roundtrip": "roundtrip",
            "marginals": "marginals",
            "false_positives": "false_positives",
            "capacity": "capacity",
            "samplers": "samplers",
            "capacity_entropy": "capacity_entropy",
            "counts": "counts",
            "speed": "speed",
            "public_costs": "public_costs",
            "log_costs": "log_costs",
        },
    ),
    Group(
        "verification",
        "Does the false-positive bound hold, and how soon is an identity named?",
        {
            "validity": "validity",
            "monitor": "monitor",
            "evidence_power": "evidence_power",
            "single_episode": "single_episode",
            "registry_scale": "registry_scale",
            "weaker_views": "weaker_views",
            "identification": "identification",
            "public": "public_claims",
            "public_grinding": "public_grinding",
        },
    ),
    Group(
        "attacks",
        "What does a log withstand that was damaged, spliced, reworded or forged?",
        {
            "rewriting": "perturbed_lists",
            "rewording": "reworded_observations",
            "splices": "splices",
            "erasure": "erasure",
            "attacks": "attacks",
            "forgers": "forgers",
        },
    ),
    Group(
        "utility",
        "Does an agent still succeed as often? The agent is an expert with a share of chance, epsilon, and no language "
        "model; each experiment is shown at its largest epsilon.",
        {
            "alfworld": "alfworld",
            "toolbench": "toolbench",
            "bfcl": "bfcl",
            "agentdojo": "agentdojo",
            "scienceworld": "scienceworld",
        },
    ),
    Group(
        "models",
        "What changes when a real language model states the lists?",
        {
            "language_model": "language_model",
            "model_utility": "model_utility",
            "elicitation": "elicitation",
            "calibration": "calibration",
            "proposals": "proposals",
            "orders": "orders",
            "injection": "injection",
        },
    ),
    Group(
        "social",
        "Agents on a social platform; and a watermark in an agent's texts beside the one in its behaviors.",
        {"oasis": "oasis", "synthid": "synthid"},
    ),
)
EXPERIMENTS = {
    name: f"agentmark_lab.experiments.{group.package}.{module}"
    for group in GROUPS
    for name, module in group.modules.items()
}


def load(name: str) -> Experiment:
    """The experiment of this name; KeyError if there is none."""
    return cast(Experiment, import_module(EXPERIMENTS[name]))
