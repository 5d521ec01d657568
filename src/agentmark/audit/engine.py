"""How logs are taken in: one process here; a batched engine or a cluster behind the same protocol.

Whatever the engine, the state it returns is the same to the bit, and so is the verdict. `PlainEngine` is the reference
that others are compared with.
"""

from collections.abc import Iterable
from typing import Protocol

from agentmark.record import StepRecord
from agentmark.verify.keyring import Keyring
from agentmark.verify.state import LogState, accumulate
from agentmark.verify.work import Work


class Engine(Protocol):
    """Reads the records of several logs under some keys, into one state."""

    def take_in(self, logs: Iterable[Iterable[StepRecord]], keys: Keyring, work: Work | None = None) -> LogState:
        """The state of all logs together, in the order given; with `work`, records beyond it are not read."""


class PlainEngine:
    """One process, one record after the other: a state for each log, merged in their order."""

    def take_in(self, logs: Iterable[Iterable[StepRecord]], keys: Keyring, work: Work | None = None) -> LogState:
        whole = LogState()
        for records in logs:
            whole.merge(accumulate(records, keys, work))
        return whole
