"""Signed checkpoints: how many records each session has, and where its chain ends (docs/chain.md)."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from agentmark.chain.links import is_digest, labelled_digest
from agentmark.core.canonical import MAX_SAFE_INTEGER, canonical_bytes, is_unicode
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.keys.signing import PUBLIC_KEY_SIZE, SIGNATURE_SIZE, SigningKey, is_hex, verify_signature
from agentmark.record import RecordError, RecordVersionError

CHECKPOINT_VERSION = 1
CHECKPOINT_MEMBER = "agentmark_checkpoint"

# A label for every use, so that no digest or signature of one kind can pass for another.
CHECKPOINT_DIGEST = b"agentmark/1 checkpoint digest"
CHECKPOINT_SIGNATURE = b"agentmark/1 checkpoint signature"


@dataclass(frozen=True, slots=True)
class Statement:
    """What a checkpoint says of one session: how many linked records, and the digest of the last."""

    count: int
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A signed line in the log. It states the sessions that grew since the checkpoint before it."""

    sessions: Mapping[str, Statement]
    total: int
    previous: str | None
    time: str
    public_key: str
    signature: str
    line: int | None = field(default=None, compare=False)

    @classmethod
    def sign(
        cls, key: SigningKey, sessions: Mapping[str, Statement], *, total: int, previous: str | None, time: str
    ) -> Self:
        """State and sign. The same arguments give the same line: Ed25519 draws no randomness."""
        unsigned = cls(
            sessions=sessions, total=total, previous=previous, time=time, public_key=key.public_key, signature=""
        )
        return replace(unsigned, signature=key.sign(CHECKPOINT_SIGNATURE, unsigned._signed_bytes()))

    @property
    def digest(self) -> str:
        """What the next checkpoint carries as `previous`; keep it elsewhere to pin the log up to here."""
        return labelled_digest(CHECKPOINT_DIGEST, canonical_bytes(self.as_dict()))

    def is_genuine(self) -> bool:
        """Whether the holder of `public_key` signed exactly this. Whose key that is, is another question."""
        return verify_signature(self.public_key, CHECKPOINT_SIGNATURE, self._signed_bytes(), self.signature)

    def _signed_bytes(self) -> bytes:
        content = self.as_dict()
        del content["signature"]
        return canonical_bytes(content)

    def as_dict(self) -> dict[str, Any]:
        return {
            CHECKPOINT_MEMBER: CHECKPOINT_VERSION,
            "sessions": {session: asdict(statement) for session, statement in self.sessions.items()},
            "total": self.total,
            "previous": self.previous,
            "time": self.time,
            "public_key": self.public_key,
            "signature": self.signature,
        }

    def to_json(self) -> str:
        """One line of JSON, without its newline."""
        return json.dumps(self.as_dict(), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes, *, where: str = "?", line: int | None = None) -> Self:
        """Parse and validate one line; the signature is judged later."""
        try:
            content = parse_json(text)
        except StrictJsonError:
            raise RecordError(where, "checkpoint", "is not valid JSON, or names a member twice") from None
        return cls.from_dict(content, where=where, line=line)

    @classmethod
    def from_dict(cls, content: object, *, where: str = "?", line: int | None = None) -> Self:
        """Validate a parsed checkpoint. Nothing is repaired: the first fault is raised, with its field."""
        if not isinstance(content, dict) or CHECKPOINT_MEMBER not in content:
            raise RecordError(where, CHECKPOINT_MEMBER, "is missing: not a checkpoint")
        version = content[CHECKPOINT_MEMBER]
        if type(version) is not int or version != CHECKPOINT_VERSION:
            raise RecordVersionError(where, CHECKPOINT_MEMBER, version, f"version {CHECKPOINT_VERSION}")
        for name in sorted(content.keys() ^ _CHECKPOINT_FIELDS.keys(), key=str):
            raise RecordError(where, str(name), "is missing" if name in _CHECKPOINT_FIELDS else "is not a field of it")
        for name, (is_valid, expected) in _CHECKPOINT_FIELDS.items():
            if not is_valid(content[name]):
                raise RecordError(where, name, f"is not {expected}")
        stated = {session: Statement(**statement) for session, statement in content["sessions"].items()}
        given = {name: content[name] for name in ("total", "previous", "time", "public_key", "signature")}
        return cls(sessions=stated, **given, line=line)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 < value <= MAX_SAFE_INTEGER


def _is_statements(value: object) -> bool:
    return isinstance(value, dict) and all(
        session
        and is_unicode(session)
        and isinstance(statement, dict)
        and statement.keys() == {"count", "head"}
        and _is_count(statement["count"])
        and is_digest(statement["head"])
        for session, statement in value.items()
    )


# One spelling, or nearly: what else ISO 8601 allows, other languages read differently or not at all.
_UTC = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|\+00:00)")


def _is_utc(value: object) -> bool:
    if not isinstance(value, str) or not _UTC.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


_CHECKPOINT_FIELDS: dict[str, tuple[Callable[[object], bool], str]] = {
    CHECKPOINT_MEMBER: (_is_count, "a version"),
    "sessions": (_is_statements, "an object of sessions, each with its count and head"),
    "total": (_is_count, "a count"),
    "previous": (lambda value: value is None or is_digest(value), "a digest or null"),
    "time": (_is_utc, "a time in UTC"),
    "public_key": (lambda value: is_hex(value, PUBLIC_KEY_SIZE), f"{2 * PUBLIC_KEY_SIZE} hexadecimal digits"),
    "signature": (lambda value: is_hex(value, SIGNATURE_SIZE), f"{2 * SIGNATURE_SIZE} hexadecimal digits"),
}
