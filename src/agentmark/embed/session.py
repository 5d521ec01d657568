"""The decisions of one run, each made with the mark if it can be, and recorded either way."""

import os
import secrets
import threading
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agentmark.core.canonical import canonical_bytes, is_unicode
from agentmark.core.context import context_digest, context_fields
from agentmark.core.distribution import WEIGHT_BITS, BehaviorDistribution, Probabilities
from agentmark.core.errors import DistributionError
from agentmark.errors import SettingError
from agentmark.record import StepRecord

SESSION_NONCE_SIZE = 16

# Held while a session begins anew in a forked child, whose threads may all find it forked at once.
_forked = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forked.acquire, after_in_parent=_forked.release, after_in_child=_forked.release)

CONTEXT_REPEATED = "context repeated"
NEAR_TIE = "near tie"


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do, and the record to log."""

    behavior: str
    record: StepRecord


class Marker(Protocol):
    """What a session needs of its `Embedder`: the facts that every record states, and the marked choice itself."""

    scheme: str
    payload_len: int
    keep_context: bool

    @property
    def key_id(self) -> str: ...

    def choose_in_context(self, distribution: BehaviorDistribution, context: bytes) -> str | None: ...

    def argument_digest(self, session_id: str, arguments: bytes) -> str: ...


class Session:
    """The decisions of one run. Thread-safe; does no I/O, so it can be called from an event loop."""

    def __init__(self, marker: Marker, session_id: str, first_step: int) -> None:
        self._marker = marker
        self._begin(session_id, first_step)

    def _begin(self, session_id: str, first_step: int) -> None:
        self.id = session_id
        self._next_step = first_step
        # Steps whose context is session and step alone, and the contexts of those that bind more.
        self._plain_steps = _Steps()
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
        behavior = self._marker.choose_in_context(distribution, claim.digest) if claim.fresh else None
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

    def another(self) -> "Session":
        """A run beside this one, with the same mark and a fresh random nonce."""
        return Session(self._marker, secrets.token_hex(SESSION_NONCE_SIZE), 0)

    def argument_digest(self, arguments: bytes) -> str:
        """What stands for a call's arguments in the names of this session's behaviors (spec, section 8.1)."""
        self._begin_anew_after_fork()
        return self._marker.argument_digest(self.id, arguments)

    def _begin_anew_after_fork(self) -> None:
        """A forked copy would repeat the contexts of its original: it goes on as a session of its own."""
        with _forked:
            if self._process != os.getpid():
                self._begin(secrets.token_hex(SESSION_NONCE_SIZE), 0)

    def _claim(self, step_index: int | None, extra: Mapping[str, object] | None) -> "_Claim":
        """Take a step index and its context; say whether this context is new (law L4)."""
        self._begin_anew_after_fork()
        with self._lock:
            if step_index is None:
                step_index = self._next_step
            elif type(step_index) is not int or step_index < 0:
                raise SettingError("step_index", f"{step_index!r} is not a step index")
            fields = context_fields(self.id, step_index, extra)
            digest = context_digest(fields)
            if extra:
                fresh = digest not in self._used
                self._used.add(digest)
            else:
                fresh = self._plain_steps.add(step_index)
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
        marker = self._marker
        record = StepRecord(
            scheme=marker.scheme,
            key_id=marker.key_id,
            payload_len=marker.payload_len,
            session=self.id,
            step_index=claim.step_index,
            context=claim.digest,
            distribution=distribution,
            behavior=behavior,
            marked=reason is None,
            reason=reason,
            raw_context=claim.fields if marker.keep_context else None,
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


class _Steps:
    """A set of step indices, kept as ranges: a run that counts up is one, however long it gets."""

    def __init__(self) -> None:
        # Where each range begins, and where it ends (not included), in order and without touching.
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, step: int) -> bool:
        """Put a step in; False if it was there."""
        at = bisect_right(self._starts, step)
        if at and step < self._ends[at - 1]:
            return False
        joins_left = at > 0 and self._ends[at - 1] == step
        joins_right = at < len(self._starts) and self._starts[at] == step + 1
        if joins_left and joins_right:
            self._ends[at - 1] = self._ends.pop(at)
            self._starts.pop(at)
        elif joins_left:
            self._ends[at - 1] = step + 1
        elif joins_right:
            self._starts[at] = step
        else:
            self._starts.insert(at, step)
            self._ends.insert(at, step + 1)
        return True

    def __len__(self) -> int:
        """The number of ranges."""
        return len(self._starts)


@dataclass(frozen=True, slots=True)
class _Claim:
    """A step's place: its index, its context, and whether that context is used for the first time."""

    step_index: int
    fields: dict[str, object]
    digest: bytes
    fresh: bool
