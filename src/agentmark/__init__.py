"""AgentMark: an identity hidden in an agent's decisions, as likely as they were, and read back from its log."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmark.core.distribution import BehaviorDistribution
    from agentmark.core.errors import (
        AgentMarkError,
        ContextError,
        DistributionError,
        ElicitationError,
        KeyFileError,
        PayloadError,
        RecordError,
        RecordVersionError,
        RegistryError,
        SettingError,
    )
    from agentmark.decide import Decider, Decision
    from agentmark.embed import Choice, Embedder, Session
    from agentmark.keys import SharedKey
    from agentmark.log import LogReader, LogWriter
    from agentmark.record import StepRecord
    from agentmark.registry import Identity, Registry
    from agentmark.verdict import Verdict
    from agentmark.verify import Verifier

__version__ = "0.1.0"

# Where each public name lives. It is imported when it is first used: an agent that only marks loads no verifier.
_HOMES = {
    "AgentMarkError": "agentmark.core.errors",
    "BehaviorDistribution": "agentmark.core.distribution",
    "Choice": "agentmark.embed",
    "ContextError": "agentmark.core.errors",
    "Decider": "agentmark.decide",
    "Decision": "agentmark.decide",
    "DistributionError": "agentmark.core.errors",
    "ElicitationError": "agentmark.core.errors",
    "Embedder": "agentmark.embed",
    "Identity": "agentmark.registry",
    "KeyFileError": "agentmark.core.errors",
    "LogReader": "agentmark.log",
    "LogWriter": "agentmark.log",
    "PayloadError": "agentmark.core.errors",
    "RecordError": "agentmark.core.errors",
    "RecordVersionError": "agentmark.core.errors",
    "Registry": "agentmark.registry",
    "RegistryError": "agentmark.core.errors",
    "Session": "agentmark.embed",
    "SettingError": "agentmark.core.errors",
    "SharedKey": "agentmark.keys",
    "StepRecord": "agentmark.record",
    "Verdict": "agentmark.verdict",
    "Verifier": "agentmark.verify",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'agentmark' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "AgentMarkError",
    "BehaviorDistribution",
    "Choice",
    "ContextError",
    "Decider",
    "Decision",
    "DistributionError",
    "ElicitationError",
    "Embedder",
    "Identity",
    "KeyFileError",
    "LogReader",
    "LogWriter",
    "PayloadError",
    "RecordError",
    "RecordVersionError",
    "Registry",
    "RegistryError",
    "Session",
    "SettingError",
    "SharedKey",
    "StepRecord",
    "Verdict",
    "Verifier",
    "__version__",
]
