"""What every place for records has in common."""

from typing import Protocol

from agentmark.record import StepRecord


class Sink(Protocol):
    """Where records go: a `LogWriter`, a database, a tracer."""

    def write(self, record: StepRecord) -> None: ...
