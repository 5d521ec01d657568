"""What the store needs of a database: connections that speak its SQL, and failures in words of ours."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any


class DatabaseError(Exception):
    """A statement or a connection that failed, as a database of either kind says it."""

    def __init__(
        self, text: str, *, passing: bool = False, unsure: bool = False, broken: bool = False, of_entry: bool = False
    ) -> None:
        super().__init__(text)
        # Whether it may pass by itself: another holds a lock, the server starts anew.
        self.passing = passing
        # Whether it is not known if what was to be committed is.
        self.unsure = unsure
        # Whether the connection is of no use any more.
        self.broken = broken
        # Whether it lies in what was to be written, not in the database: then others can still write.
        self.of_entry = of_entry


class Connection(ABC):
    """One connection, for one thread. Every failure of the database is a `DatabaseError`.

    Statements are written once for all databases: parameters as `?`, tables as `@name`.
    """

    @abstractmethod
    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """What a query finds."""

    @abstractmethod
    def stream(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """The same for more rows than fit in memory, as of one moment."""

    @abstractmethod
    def change(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """How many rows a statement changed."""

    @abstractmethod
    def change_each(self, statement: str, rows: Sequence[Sequence[Any]]) -> int:
        """The same statement for each row of parameters; how many rows were changed in all."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """All changes in it or none, on the disk at its end. Another writer is waited for at its beginning."""

    @abstractmethod
    def part(self) -> AbstractContextManager[None]:
        """A part of a transaction that is undone alone if it raises."""

    @abstractmethod
    def alone(self) -> None:
        """In a transaction: whoever else asks for this waits until it has ended."""

    @abstractmethod
    def tidy(self) -> None:
        """Give back the room of what was deleted, as far as that takes no time."""

    @abstractmethod
    def abort(self) -> None:
        """Called by another thread: make a call that does not come back fail."""

    @abstractmethod
    def close(self) -> None: ...


class Database(ABC):
    """A database, before anybody has connected to it."""

    # As messages name it: without user, password or query.
    name: str

    @abstractmethod
    def connect(self) -> Connection:
        """A connection of this thread. `DatabaseError` if it is out of reach; `SettingError` if it is not ours."""

    @abstractmethod
    def check(self) -> None:
        """See that it is a store, and make nothing: for who only reads. `SettingError` if it is not."""

    @abstractmethod
    def set_up(self) -> None:
        """Make the tables if there are none. `SettingError` if it is another's, or of another version."""
