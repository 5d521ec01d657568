"""What a gateway has to remember of a decision: for a client that tries again, and for edits seen later."""

from dataclasses import dataclass, field

from agentmark.record import StepRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """One decision of a gateway. Stored under its `id`: stored again, it replaces what may change (`Store.record`).

    Times are seconds since 1970. What the model was asked is never in here; what it replied is, if a gateway keeps
    replies for clients that try again, and only until `expires_at`.
    """

    # The gateway's own name for the request: a UUID, for instance. Unique over all gateways of a store.
    id: str
    # The tenant's name; empty where the gateway has no tenants.
    tenant: str = ""
    # What a client that tries again is known by; None if it can not be. Two tenants may have the same.
    retry_key: str | None = None
    session: str
    # A digest of the conversation that the decision was made from.
    place: bytes = b""
    # What was chosen; None if the agent was left to decide for itself.
    behavior: str | None = None
    # What could have been chosen.
    names: tuple[str, ...] = ()
    # How the list was elicited, and from which model.
    method: str = ""
    model: str = ""
    # The decision's record as it was first written; None where there was none. It is written by the call of
    # `Store.record` that it is handed to with the decision, or was by an earlier one.
    record: StepRecord | None = None
    # A digest of the request, to tell a retry from another request under the same retry key.
    request_digest: bytes = b""
    created_at: float
    # From then on it is no answer to a retry, and the reply is deleted.
    expires_at: float
    # Whether it was seen what became of it: what is changed in a conversation after that is history.
    settled: bool = False
    # Read back only: whether the store holds a record that takes this step out of the evidence (`enforced: false`).
    voided: bool = False
    # The whole reply, to be sent again as it is, if it may be; and what goes with it.
    reply: bytes | None = field(default=None, repr=False)
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
