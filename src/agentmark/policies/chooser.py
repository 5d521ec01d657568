"""What every policy has in common."""

import random
import secrets
from typing import Protocol

from agentmark.core.context import context_digest, context_fields
from agentmark.core.distribution import BehaviorDistribution, Probabilities
from agentmark.core.schemes import DEFAULT_SCHEME
from agentmark.embed.session import SESSION_NONCE_SIZE, Choice
from agentmark.record import StepRecord


class Chooser(Protocol):
    """One decision at a time. A marked `Session` is one."""

    def choose(self, weights: Probabilities) -> Choice: ...


class PeerLog:
    """Writes the records of a policy that is not AgentMark: the verifier sees them as unmarked."""

    def __init__(
        self, policy: str, *, key_id: str = "none", payload_len: int = 0, rng: random.Random | None = None
    ) -> None:
        """`rng` draws the session's nonce, for runs that shall repeat."""
        self.session = secrets.token_hex(SESSION_NONCE_SIZE) if rng is None else rng.randbytes(SESSION_NONCE_SIZE).hex()
        self._policy = policy
        self._key_id = key_id
        self._payload_len = payload_len
        self._next_step = 0

    def next_context(self) -> bytes:
        """The digest of the step about to be taken."""
        return context_digest(context_fields(self.session, self._next_step))

    def write(self, distribution: BehaviorDistribution, behavior: str) -> Choice:
        """Log the step and move to the next."""
        record = StepRecord(
            scheme=DEFAULT_SCHEME,
            key_id=self._key_id,
            payload_len=self._payload_len,
            session=self.session,
            step_index=self._next_step,
            context=self.next_context(),
            distribution=distribution,
            behavior=behavior,
            marked=False,
            reason=f"policy: {self._policy}",
        )
        self._next_step += 1
        return Choice(behavior, record)
