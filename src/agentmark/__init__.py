"""AgentMark: an identity hidden in an agent's decisions, as likely as they were, and read back from its log."""

from agentmark.version import __version__

# Known to type checkers by its name. Importing it would be most of what importing this package takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmark.audit.case import Answer, Case, LostPlace, ReportOrder
    from agentmark.chain.check import ChainReport, verify_chain
    from agentmark.chain.writer import ChainWriter
    from agentmark.core.distribution import BehaviorDistribution
    from agentmark.core.errors import AgentMarkError, ContextError, DistributionError, PayloadError
    from agentmark.decide.decider import Decider
    from agentmark.decide.decision import Decision
    from agentmark.decide.stats import Stats
    from agentmark.disclosure.check import DisclosedSteps
    from agentmark.disclosure.document import Disclosure, DisclosureError
    from agentmark.disclosure.make import disclose
    from agentmark.elicit.errors import ElicitationError
    from agentmark.elicit.proposals import Proposals
    from agentmark.elicit.situation import ToolCall
    from agentmark.embed.embedder import Embedder
    from agentmark.embed.session import Choice, Session
    from agentmark.errors import MissingExtraError, SettingError
    from agentmark.identity.errors import RegistryError
    from agentmark.identity.registry import Identity, Registry
    from agentmark.keys.errors import KeyFileError
    from agentmark.keys.marking import MarkingKey
    from agentmark.keys.public import PublicKey
    from agentmark.keys.shared import SharedKey
    from agentmark.keys.signing import SigningError, SigningKey
    from agentmark.log.jsonl import LogWriter
    from agentmark.log.otel import OtelSink
    from agentmark.log.read.limits import LimitError, Limits
    from agentmark.log.read.open import UnreadLogError, open_log, read_log
    from agentmark.log.rotating import RotatingLog
    from agentmark.log.sink import Sink
    from agentmark.log.sqlite import SqliteLog
    from agentmark.record import RecordError, RecordVersionError, StepRecord
    from agentmark.store.errors import StoreError
    from agentmark.store.open import open_store
    from agentmark.store.store import Store
    from agentmark.verify.monitor import Alarm, Monitor, MonitorStateError, MonitorStatus
    from agentmark.verify.stranger import StrangerView
    from agentmark.verify.verdict import Placement, Segment, Verdict
    from agentmark.verify.verifier import Verifier


# Where each public name lives. It is imported when it is first used: an agent that only marks loads no verifier.
_HOMES = {
    "AgentMarkError": "agentmark.core.errors",
    "Alarm": "agentmark.verify.monitor",
    "Answer": "agentmark.audit.case",
    "BehaviorDistribution": "agentmark.core.distribution",
    "Case": "agentmark.audit.case",
    "ChainReport": "agentmark.chain.check",
    "ChainWriter": "agentmark.chain.writer",
    "Choice": "agentmark.embed.session",
    "ContextError": "agentmark.core.errors",
    "Decider": "agentmark.decide.decider",
    "Decision": "agentmark.decide.decision",
    "DisclosedSteps": "agentmark.disclosure.check",
    "Disclosure": "agentmark.disclosure.document",
    "DisclosureError": "agentmark.disclosure.document",
    "DistributionError": "agentmark.core.errors",
    "ElicitationError": "agentmark.elicit.errors",
    "Embedder": "agentmark.embed.embedder",
    "Identity": "agentmark.identity.registry",
    "KeyFileError": "agentmark.keys.errors",
    "LimitError": "agentmark.log.read.limits",
    "Limits": "agentmark.log.read.limits",
    "LogWriter": "agentmark.log.jsonl",
    "LostPlace": "agentmark.audit.case",
    "MarkingKey": "agentmark.keys.marking",
    "MissingExtraError": "agentmark.errors",
    "Monitor": "agentmark.verify.monitor",
    "MonitorStateError": "agentmark.verify.monitor",
    "MonitorStatus": "agentmark.verify.monitor",
    "OtelSink": "agentmark.log.otel",
    "PayloadError": "agentmark.core.errors",
    "Placement": "agentmark.verify.verdict",
    "Proposals": "agentmark.elicit.proposals",
    "PublicKey": "agentmark.keys.public",
    "RecordError": "agentmark.record",
    "RecordVersionError": "agentmark.record",
    "Registry": "agentmark.identity.registry",
    "RegistryError": "agentmark.identity.errors",
    "ReportOrder": "agentmark.audit.case",
    "RotatingLog": "agentmark.log.rotating",
    "Segment": "agentmark.verify.verdict",
    "Session": "agentmark.embed.session",
    "SettingError": "agentmark.errors",
    "SharedKey": "agentmark.keys.shared",
    "SigningError": "agentmark.keys.signing",
    "SigningKey": "agentmark.keys.signing",
    "Sink": "agentmark.log.sink",
    "SqliteLog": "agentmark.log.sqlite",
    "Stats": "agentmark.decide.stats",
    "StepRecord": "agentmark.record",
    "Store": "agentmark.store.store",
    "StoreError": "agentmark.store.errors",
    "StrangerView": "agentmark.verify.stranger",
    "ToolCall": "agentmark.elicit.situation",
    "UnreadLogError": "agentmark.log.read.open",
    "Verdict": "agentmark.verify.verdict",
    "Verifier": "agentmark.verify.verifier",
    "disclose": "agentmark.disclosure.make",
    "open_log": "agentmark.log.read.open",
    "open_store": "agentmark.store.open",
    "read_log": "agentmark.log.read.open",
    "verify_chain": "agentmark.chain.check",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'agentmark' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "AgentMarkError",
    "Alarm",
    "Answer",
    "BehaviorDistribution",
    "Case",
    "ChainReport",
    "ChainWriter",
    "Choice",
    "ContextError",
    "Decider",
    "Decision",
    "DisclosedSteps",
    "Disclosure",
    "DisclosureError",
    "DistributionError",
    "ElicitationError",
    "Embedder",
    "Identity",
    "KeyFileError",
    "LimitError",
    "Limits",
    "LogWriter",
    "LostPlace",
    "MarkingKey",
    "MissingExtraError",
    "Monitor",
    "MonitorStateError",
    "MonitorStatus",
    "OtelSink",
    "PayloadError",
    "Placement",
    "Proposals",
    "PublicKey",
    "RecordError",
    "RecordVersionError",
    "Registry",
    "RegistryError",
    "ReportOrder",
    "RotatingLog",
    "Segment",
    "Session",
    "SettingError",
    "SharedKey",
    "SigningError",
    "SigningKey",
    "Sink",
    "SqliteLog",
    "Stats",
    "StepRecord",
    "Store",
    "StoreError",
    "StrangerView",
    "ToolCall",
    "UnreadLogError",
    "Verdict",
    "Verifier",
    "__version__",
    "disclose",
    "open_log",
    "open_store",
    "read_log",
    "verify_chain",
]
