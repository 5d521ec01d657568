"""What every place for records has in common."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Protocol, Self

from agentmark.errors import SettingError
from agentmark.record import StepRecord


class Sink(Protocol):
    """Where records go: a `LogWriter`, a database, a tracer."""

    def write(self, record: StepRecord) -> None: ...


class FileSink(ABC):
    """A sink that keeps a file open until `close`, or until the end of a `with` block."""

    path: Path

    @abstractmethod
    def write(self, record: StepRecord) -> None:
        """Append one record."""

    @abstractmethod
    def close(self) -> None:
        """Close the file. Again, it does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _closed(self) -> SettingError:
        """What to raise where the file is needed and is not open any more."""
        return SettingError(str(self.path), "is closed")
