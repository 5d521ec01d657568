"""What every key that marks has in common, whether it is shared or has a public half."""

from typing import Protocol


class Key(Protocol):
    """Whatever has an id that records state, and step keys."""

    @property
    def id(self) -> str: ...

    def step_key(self, context_digest: bytes, payload_len: int) -> bytes:
        """K_t for one context and payload length. Whoever holds it can read that step and no other."""

    def argument_digest(self, session: str, arguments: bytes) -> str:
        """Eight hexadecimal digits that tell arguments apart within a session (spec, section 8.1)."""
