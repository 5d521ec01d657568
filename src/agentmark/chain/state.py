"""What a signer has written since its last checkpoint, as lines of a file of its own (docs/chain.md).

A log cannot say who wrote it: links are not keyed. So a signer notes the link of every record before it appends it, in
lines that nobody makes or changes without the signing key. To cut some off at the end, nobody needs it.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from agentmark.chain.checkpoint import Checkpoint, Statement
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.keys.signing import SigningKey
from agentmark.record import RecordError

STATE_VERSION = 1
STATE_MEMBER = "agentmark_signer"
# A label for every use of the key, so that no tag of one kind can pass for another.
STATE_TAG = b"agentmark/1 signer state"


@dataclass(frozen=True, slots=True)
class Note:
    """A record that is about to be appended: after it, its session is as stated."""

    session: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The record that was noted with this link never reached the log."""

    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignerState:
    """What a signer knows: its last checkpoint, the sessions that have grown since, and what it was about to append."""

    checkpoint: Checkpoint | None = None
    sessions: Mapping[str, Statement] = field(default_factory=dict)
    notes: tuple[Note | Withdrawal, ...] = ()


class StateSeal:
    """Tags the lines of one state file, each together with the tag before it, and tells lines that were so tagged."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key
        self._last_tag = b""

    def rewind(self) -> None:
        """The next line is the first of a file."""
        self._last_tag = b""

    def seal(self, content: SignerState | Note | Withdrawal) -> bytes:
        """The next line. A state stands for all that was said before it; its notes are lines of their own."""
        body = _encode(_as_dict(content)).encode("ascii")
        self._last_tag = self._tag(body)
        return self._last_tag + b" " + body + b"\n"

    def open(self, line: bytes) -> SignerState | Note | Withdrawal | None:
        """What the next line says; None if it is not ours, or does not follow the one before it."""
        tag, _, body = line.removesuffix(b"\n").partition(b" ")
        if not line.endswith(b"\n") or not secrets.compare_digest(tag, self._tag(body)):
            return None
        try:
            content = _from_dict(parse_json(body))
        except (StrictJsonError, RecordError, KeyError, TypeError):
            # Ours, and yet not of this version.
            return None
        self._last_tag = tag
        return content

    def _tag(self, body: bytes) -> bytes:
        return self._key.tag(STATE_TAG, self._last_tag + b"\0" + body)


# ASCII, so that what a terminal shows of it is what it says.
_encode = json.JSONEncoder(separators=(",", ":")).encode


def _as_dict(content: SignerState | Note | Withdrawal) -> dict[str, Any]:
    if isinstance(content, Note):
        return {"session": content.session, "count": content.statement.count, "head": content.statement.head}
    if isinstance(content, Withdrawal):
        return {"withdrawn": content.head}
    return {
        STATE_MEMBER: STATE_VERSION,
        # No line of one file fits another, whichever logs the key signs.
        "salt": secrets.token_hex(16),
        "checkpoint": None if content.checkpoint is None else content.checkpoint.as_dict(),
        "sessions": {session: asdict(statement) for session, statement in content.sessions.items()},
    }


def _from_dict(content: Any) -> SignerState | Note | Withdrawal | None:
    if "session" in content:
        return Note(content["session"], Statement(content["count"], content["head"]))
    if "withdrawn" in content:
        return Withdrawal(content["withdrawn"])
    if content[STATE_MEMBER] != STATE_VERSION:
        return None
    checkpoint = content["checkpoint"]
    return SignerState(
        checkpoint=None if checkpoint is None else Checkpoint.from_dict(checkpoint),
        sessions={session: Statement(**statement) for session, statement in content["sessions"].items()},
    )
