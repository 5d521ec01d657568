"""The step context: named fields, canonical bytes, one digest (spec, section 2)."""

from collections.abc import Mapping
from hashlib import blake2b

from agentmark.core.canonical import MAX_SAFE_INTEGER, canonical_bytes
from agentmark.core.errors import ContextError
from agentmark.core.prf import CONTEXT, DIGEST_SIZE

RESERVED_FIELDS = ("session", "step")


def context_fields(session: str, step_index: int, extra: Mapping[str, object] | None = None) -> dict[str, object]:
    """Session nonce and step index make a context unique; `extra` may bind an observation or a history."""
    fields: dict[str, object] = {"session": session, "step": step_index}
    for name, value in (extra or {}).items():
        if name in RESERVED_FIELDS:
            raise ContextError(name, "is set by the session; choose another field name")
        fields[name] = value
    return fields


class Places:
    """The contexts of one session that bind its steps and nothing else. What they share is encoded and hashed once."""

    __slots__ = ("_begun", "_session")

    def __init__(self, session: str) -> None:
        self._session = session
        # "session" stands before "step" in canonical order.
        fields = canonical_bytes({"session": session, "step": 0})
        self._begun = blake2b(CONTEXT + b"\0" + fields.removesuffix(b"0}"), digest_size=DIGEST_SIZE)

    def digest(self, step_index: int) -> bytes:
        """That of `context_fields(session, step_index)`."""
        if type(step_index) is not int or not 0 <= step_index <= MAX_SAFE_INTEGER:
            return context_digest(context_fields(self._session, step_index))
        hashed = self._begun.copy()
        hashed.update(b"%d}" % step_index)
        return hashed.digest()


def context_digest(fields: Mapping[str, object]) -> bytes:
    """BLAKE2b-256 of the label and the canonical bytes. Needs no key, reveals no more than the fields do."""
    if not isinstance(fields, Mapping):
        raise ContextError("$", f"{type(fields).__name__} is not an object of named fields")
    message = CONTEXT + b"\0" + canonical_bytes(dict(fields))
    return blake2b(message, digest_size=DIGEST_SIZE).digest()
