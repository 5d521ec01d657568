"""The embedding side: an `Embedder` holds key and identity, a `Session` marks the decisions of one run."""

import os
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentmark.core import scheme_f, scheme_r
from agentmark.core.canonical import canonical_bytes, is_unicode
from agentmark.core.context import context_digest, context_fields
from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution, Probabilities
from agentmark.core.errors import DistributionError, PayloadError, RegistryError, SettingError
from agentmark.core.payload import PayloadLike, payload_to_int
from agentmark.keys import SharedKey
from agentmark.record import SCHEMES, StepRecord
from agentmark.registry import Registry

SESSION_NONCE_SIZE = 16

CONTEXT_REPEATED = "context repeated"
NEAR_TIE = "near tie"


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do, and the record to log."""

    behavior: str
    record: StepRecord


class Embedder:
    """Marks decisions with one identity. Immutable; one serves any number of sessions and threads."""

    def __init__(
        self,
        key: SharedKey,
        payload: PayloadLike = None,
        *,
        payload_len: int | None = None,
        scheme: str = "F",
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

    @property
    def key_id(self) -> str:
        return self._key.id

    def session(self, session_id: str | None = None, *, first_step: int = 0) -> "Session":
        """Start a run under a fresh random nonce. To go on with an interrupted one, pass its id and the next step."""
        if session_id is None:
            session_id = secrets.token_hex(SESSION_NONCE_SIZE)
        elif not session_id:
            raise SettingError("session_id", "is empty; leave it out for a random one")
        if first_step < 0:
            raise SettingError("first_step", f"{first_step} is negative")
        return Session(self, session_id, first_step)

    def choose_in_context(self, distribution: BehaviorDistribution, context: bytes) -> str | None:
        """The deterministic part: the marked behavior for a context digest, or None when this step cannot be marked.

        It neither checks nor remembers that the context is new. `Session.choose` does; call this in its place only to
        reproduce a step.
        """
        step_key = self._key.step_key(context, self.payload_len)
        if self.scheme == "F":
            return scheme_f.encode(distribution, step_key, payload=self._payload, payload_len=self.payload_len).behavior
        return scheme_r.encode(distribution, step_key, payload=self._payload, payload_len=self.payload_len)


class Session:
    """The decisions of one run. Thread-safe; does no I/O, so it can be called from an event loop."""

    def __init__(self, embedder: Embedder, session_id: str, first_step: int) -> None:
        self._embedder = embedder
        self._begin(session_id, first_step)

    def _begin(self, session_id: str, first_step: int) -> None:
        self.id = session_id
        self._next_step = first_step
        self._used: set[bytes] = set()
        self._process = os.getpid()
        self._lock = threading.Lock()

    def choose(
        self,
        weights: Probabilities,
        *,
        step_index: int | None = None,
        context: Mapping[str, object] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Choice:
        """Sample one behavior from `weights`, exactly as likely as they say, and carry the identity in which one.

        `context` binds further facts (an observation, a digest of the history) beside session and step. A context that
        was used before is sampled without a mark. Weights that cannot be used raise `DistributionError`: decide by
        other means and log that with `unmarked`.
        """
        distribution = BehaviorDistribution.quantise(weights)
        meta = _checked_meta(meta)
        claim = self._claim(step_index, context)
        behavior = self._embedder.choose_in_context(distribution, claim.digest) if claim.fresh else None
        reason = None
        if behavior is None:
            reason = NEAR_TIE if claim.fresh else CONTEXT_REPEATED
            behavior = distribution.at(secrets.randbits(WEIGHT_BITS))
        return self._logged(claim, distribution, behavior, reason=reason, meta=meta)

    def unmarked(
        self,
        behavior: str,
        *,
        reason: str,
        weights: Probabilities | None = None,
        step_index: int | None = None,
        context: Mapping[str, object] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Choice:
        """Log a decision that was made without the mark, and why. The verifier counts it as erased."""
        if not reason:
            raise SettingError("reason", "an unmarked step must say why")
        if not isinstance(behavior, str) or not behavior or not is_unicode(behavior):
            raise DistributionError("choice", f"{behavior!r} is not text")
        meta = _checked_meta(meta)
        distribution = None if weights is None else BehaviorDistribution.quantise(weights)
        if distribution is not None and behavior not in distribution.behaviors:
            raise DistributionError("choice", f"{behavior!r} is not among the behaviors")
        return self._logged(self._claim(step_index, context), distribution, behavior, reason=reason, meta=meta)

    def _claim(self, step_index: int | None, extra: Mapping[str, object] | None) -> "_Claim":
        """Take a step index and its context; say whether this context is new (law L4)."""
        if self._process != os.getpid():
            # A forked copy would repeat the contexts of its original: it goes on as a session of its own.
            self._begin(secrets.token_hex(SESSION_NONCE_SIZE), 0)
        with self._lock:
            if step_index is None:
                step_index = self._next_step
            elif type(step_index) is not int or step_index < 0:
                raise SettingError("step_index", f"{step_index!r} is not a step index")
            fields = context_fields(self.id, step_index, extra)
            digest = context_digest(fields)
            fresh = digest not in self._used
            self._used.add(digest)
            self._next_step = max(self._next_step, step_index + 1)
        return _Claim(step_index, fields, digest, fresh)

    def _logged(
        self,
        claim: "_Claim",
        distribution: BehaviorDistribution | None,
        behavior: str,
        *,
        reason: str | None,
        meta: Mapping[str, Any] | None,
    ) -> Choice:
        embedder = self._embedder
        record = StepRecord(
            scheme=embedder.scheme,
            key_id=embedder.key_id,
            payload_len=embedder.payload_len,
            session=self.id,
            step_index=claim.step_index,
            context=claim.digest,
            distribution=distribution,
            behavior=behavior,
            marked=reason is None,
            reason=reason,
            raw_context=claim.fields if embedder.keep_context else None,
            meta=meta,
        )
        return Choice(behavior, record)


def _checked_meta(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Refuse what no record can hold, before a step is spent on it."""
    if meta is None:
        return None
    checked = dict(meta)
    canonical_bytes(checked, field="meta")
    return checked


@dataclass(frozen=True, slots=True)
class _Claim:
    """A step's place: its index, its context, and whether that context is used for the first time."""

    step_index: int
    fields: dict[str, object]
    digest: bytes
    fresh: bool
