"""What a request has to know of earlier ones, from the store: nothing is remembered in the process."""

from agentmark.decide.decision import Decision, Made, Memory, Run
from agentmark.decide.turn import last_turn, place_of
from agentmark.elicit.proposals import DIGEST_SIGN, METHOD
from agentmark.elicit.situation import Elicitation, Message
from agentmark.gateway.sessions import keyed_digest
from agentmark.keys.key import Key
from agentmark.store.decision import StoredDecision
from agentmark.store.store import Store


class StoredMemory(Memory):
    """The memory of one request: what the store said of the decisions that matter to it."""

    def __init__(self) -> None:
        super().__init__()
        self._retried: Decision | None = None
        # What was decided last from the conversation before this one, as the store has it.
        self.before: StoredDecision | None = None

    async def look_up(self, store: Store, tenant: str, messages: list[Message], *, run: Run, key: Key) -> None:
        """Ask the store what was decided where this conversation's last turn was made."""
        earlier, calls = last_turn(messages)
        if not calls:
            return
        place = place_of(earlier)
        found = await store.decisions_at(tenant, run.session.id, kept_place(key, place))
        standing = [stored for stored in found if not stored.voided]
        if not standing or standing[0].settled:
            return
        self.before = standing[0]
        made = Made(last=decision_of(standing[0], run))
        made.behaviors |= {stored.behavior for stored in standing if stored.behavior is not None}
        self.made[place] = made

    def retry(self, decision: Decision) -> None:
        """This request is one that failed, asked again: what was decided then is what is done now."""
        self._retried = decision

    def take_failed(self, situation: bytes) -> Decision | None:
        retried, self._retried = self._retried, None
        return retried

    def remember_made(self, place: bytes, decision: Decision) -> None:
        """It is in the store, since its record was written."""

    def remember_failed(self, situation: bytes, decision: Decision) -> None:
        """So is this."""


def kept_place(key: Key, place: bytes) -> bytes:
    """A place as the store keeps it: nobody without the key can try conversations against it."""
    return keyed_digest(key, "place", place)


def decision_of(stored: StoredDecision, run: Run) -> Decision:
    """A stored decision as the turn knows one."""
    is_sampled = stored.method == METHOD
    by_call = is_sampled and DIGEST_SIGN in (stored.behavior or "")
    said = Elicitation(
        method=stored.method,
        model=stored.model,
        proposals=() if is_sampled else None,
        granularity="call" if by_call else "tool",
    )
    return Decision(stored.behavior, said, stored.record, run, stored.names)
