"""Key and identity in one object, from which any number of runs are marked."""

import logging
import secrets

from agentmark.core.costs import longest_open_payload
from agentmark.core.distribution import BehaviorDistribution
from agentmark.core.errors import PayloadError
from agentmark.core.payload import PayloadLike, payload_to_int
from agentmark.core.schemes import DEFAULT_SCHEME, SCHEMES
from agentmark.embed.session import SESSION_NONCE_SIZE, Session
from agentmark.errors import SettingError
from agentmark.identity.errors import RegistryError
from agentmark.identity.registry import Registry
from agentmark.keys.key import Key

_logger = logging.getLogger(__name__)


class Embedder:
    """Marks decisions with one identity. Immutable; one serves any number of sessions and threads."""

    def __init__(
        self,
        key: Key,
        payload: PayloadLike = None,
        *,
        payload_len: int | None = None,
        scheme: str = DEFAULT_SCHEME,
        registry: Registry | None = None,
        keep_context: bool = False,
    ) -> None:
        """`payload`: a name in the registry, or a number, bytes, bits, or text that fits `payload_len` bits.

        `keep_context` also logs the raw context, which makes tampering visible and may hold private text.
        """
        if scheme not in SCHEMES:
            raise SettingError("scheme", f"{scheme!r} is none of {', '.join(SCHEMES)}")
        if registry is not None and isinstance(payload, str):
            if payload_len not in (None, registry.payload_len):
                raise PayloadError(f"payload_len {payload_len} differs from the registry's {registry.payload_len}")
            identity = registry.named(payload)
            if identity.revoked_at is not None:
                raise RegistryError(repr(payload), f"was revoked at {identity.revoked_at} and marks nothing any more")
            payload, payload_len = identity.payload, registry.payload_len
        self._payload, self.payload_len = payload_to_int(payload, payload_len)
        self._key = key
        self.scheme = scheme
        self.keep_context = keep_context
        if registry is None and not self.readable_unnamed:
            _logger.warning(
                "a payload of %d bits under scheme %s is read back only with a registry or a claim; "
                "without one, up to %d bits are",
                self.payload_len,
                scheme,
                longest_open_payload(is_linear=SCHEMES[scheme].is_linear),
            )

    @property
    def readable_unnamed(self) -> bool:
        """Whether a verifier can find this payload in a clean log when nobody tells it what to look for, within its
        default work limit. A registry, or a claim, reads any length."""
        return self.payload_len <= longest_open_payload(is_linear=SCHEMES[self.scheme].is_linear)

    @property
    def key_id(self) -> str:
        return self._key.id

    def session(self, session_id: str | None = None, *, first_step: int = 0) -> Session:
        """Start a run under a fresh random nonce. To go on with an interrupted one, pass its id and the next step."""
        if session_id is None:
            session_id = secrets.token_hex(SESSION_NONCE_SIZE)
        elif not session_id:
            raise SettingError("session_id", "is empty; leave it out for a random one")
        if first_step < 0:
            raise SettingError("first_step", f"{first_step} is negative")
        return Session(self, session_id, first_step)

    def argument_digest(self, session_id: str, arguments: bytes) -> str:
        """What stands for a call's arguments in the name of a behavior."""
        return self._key.argument_digest(session_id, arguments)

    def choose_in_context(self, distribution: BehaviorDistribution, context: bytes) -> str | None:
        """The deterministic part: the marked behavior for a context digest, or None when this step cannot be marked.

        It neither checks nor remembers that the context is new. `Session.choose` does; call this in its place only to
        reproduce a step.
        """
        step_key = self._key.step_key(context, self.payload_len)
        return SCHEMES[self.scheme].choose(distribution, step_key, payload=self._payload, payload_len=self.payload_len)
