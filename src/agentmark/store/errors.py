"""What a store says when it cannot do what it was asked."""

from agentmark.core.errors import AgentMarkError


class StoreError(AgentMarkError, RuntimeError):
    """A database that does not do its work: locked, full, stopped, out of reach. Later calls may succeed.

    `fault` says what a person can do about it; no text of a record, a reply or a credential is in it. `written` is
    False where nothing of the call was written, and None where the connection broke off before the database had said.
    """

    def __init__(self, store: str, fault: str, *, written: bool | None = False) -> None:
        super().__init__(f"{store}: {fault}")
        self.store = store
        self.fault = fault
        self.written = written


class StoreBusyError(StoreError):
    """More is waiting to be written than the database keeps up with. Nothing of the call was written."""


class StoreClosedError(StoreError):
    """The store was closed, or was not started."""


class RepeatedContextError(StoreError):
    """A record whose context the store holds already (law L4). Nothing of the call was written.

    It never passes with time: the decision must be made anew, in another context.
    """
