"""AgentMark: an identity hidden in an agent's decisions, as likely as they were, and read back from its log."""

from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.errors import (
    AgentMarkError,
    ContextError,
    DistributionError,
    KeyFileError,
    PayloadError,
    RecordError,
    RecordVersionError,
    RegistryError,
    SettingError,
)
from agentmark.embed import Choice, Embedder, Session
from agentmark.keys import SharedKey
from agentmark.log import LogReader, LogWriter
from agentmark.record import StepRecord
from agentmark.registry import Identity, Registry
from agentmark.verdict import Verdict
from agentmark.verify import Verifier

__version__ = "0.1.0"

__all__ = [
    "AgentMarkError",
    "BehaviorDistribution",
    "Choice",
    "ContextError",
    "DistributionError",
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
