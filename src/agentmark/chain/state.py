"""What a signer has written since its last checkpoint, as lines of a file of its own (docs/chain.md).

A log cannot say who wrote it: links are not keyed. So a signer notes the link of every record before it appends it, in
lines that nobody makes or changes without the signing key. Only cutting them off at the end goes without it.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agentmark.chain.checkpoint import Checkpoint, Statement
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.keys.signing import SigningKey

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
    notes: Sequence[Note | Withdrawal] = ()


class StateSeal:
    """Tags the lines of one state file, each together with the tag before it, and tells lines that were so tagged."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key
        self._last_tag = b""

    def begin(self, state: SignerState) -> bytes:
        """The first line of a new file. What it states is not in doubt; notes come after it."""
        self._last_tag = b""
        content = {
            STATE_MEMBER: STATE_VERSION,
            # No line of one file fits another, whichever logs the key signs.
            "file": secrets.token_hex(16),
            "checkpoint": None if state.checkpoint is None else state.checkpoint.as_dict(),
            "sessions": {session: asdict(statement) for session, statement in state.sessions.items()},
        }
        return self._sealed(content)

    def note(self, note: Note | Withdrawal) -> bytes:
        if isinstance(note, Withdrawal):
            return self._sealed({"withdrawn": note.head})
        return self._sealed({"session": note.session, "count": note.statement.count, "head": note.statement.head})

    def open_first(self, line: bytes) -> SignerState | None:
        """What a first line states; None if it is not ours."""
        self._last_tag = b""
        content = self._opened(line)
        if content is None or content.get(STATE_MEMBER) != STATE_VERSION:
            return None
        checkpoint = content["checkpoint"]
        return SignerState(
            checkpoint=None if checkpoint is None else Checkpoint.from_dict(checkpoint),
            sessions={session: Statement(**statement) for session, statement in content["sessions"].items()},
        )

    def open_note(self, line: bytes) -> Note | Withdrawal | None:
        """What a further line states; None if it is not ours, or does not follow the one that was read before it."""
        content = self._opened(line)
        if content is None:
            return None
        if "withdrawn" in content:
            return Withdrawal(content["withdrawn"])
        return Note(content["session"], Statement(content["count"], content["head"]))

    def _sealed(self, content: Mapping[str, Any]) -> bytes:
        body = json.dumps(content, separators=(",", ":")).encode("ascii")
        self._last_tag = self._tag(body)
        return self._last_tag + b" " + body + b"\n"

    def _opened(self, line: bytes) -> dict[str, Any] | None:
        tag, _, body = line.removesuffix(b"\n").partition(b" ")
        if not line.endswith(b"\n") or not secrets.compare_digest(tag, self._tag(body)):
            return None
        try:
            content = parse_json(body)
        except StrictJsonError:
            return None
        self._last_tag = tag
        return content if isinstance(content, dict) else None

    def _tag(self, body: bytes) -> bytes:
        return self._key.tag(STATE_TAG, self._last_tag + b"\0" + body)
