"""Which session a request belongs to, which step of it it is, and whether a client asks again: all from the request.

Nothing is kept between requests, so that a restart or a second worker loses nothing. What comes from a conversation is
digested under the key: a record shows it to no one who guesses.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agentmark.core.canonical import is_unicode
from agentmark.elicit.situation import Message
from agentmark.gateway.headers import IDEMPOTENCY_KEY, SESSION_HEADER, Headers, first
from agentmark.keys.key import Key
from agentmark.text import first_unprintable

MAX_SESSION_LEN = 128
# Headers in which agents' own clients name their session or conversation.
_SESSION_HEADERS = (b"session_id", b"session-id", b"x-session-id", b"x-claude-code-session-id", b"conversation_id")
# Headers with which a client says how often it has asked before.
RETRY_COUNTS = (b"x-stainless-retry-count", b"x-retry-count", b"x-amz-retry-count")


def session_of(
    headers: Sequence[tuple[bytes, bytes]], body: Mapping[str, Any], messages: Sequence[Message], key: Key
) -> str:
    """The session: what the agent says it is, else the API's own id of the conversation, else how it began."""
    named = first(headers, SESSION_HEADER)
    if named is not None:
        said = named.decode("utf-8", "replace").strip()
        if 0 < len(said) <= MAX_SESSION_LEN and is_unicode(said) and first_unprintable(said) is None:
            return said
        if said:
            return keyed_digest(key, "named session", named).hex()
    found = _conversation_id(headers, body)
    if found is not None:
        return keyed_digest(key, "conversation", found.encode("utf-8", "replace")).hex()
    return keyed_digest(key, "beginning", _beginning(messages)).hex()


def step_of(messages: Sequence[Message]) -> int:
    """The number of turns that the model has had in this conversation."""
    roles = [message.get("role") for message in messages]
    begun = [role == "assistant" and before != "assistant" for before, role in zip([None, *roles], roles, strict=False)]
    return sum(begun)


def keyed_digest(key: Key, label: str, content: bytes) -> bytes:
    """Eight bytes that only the holder of the key can make."""
    parts = [key.argument_digest(f"(gateway {label} {part})", content) for part in range(2)]
    return bytes.fromhex("".join(parts))


class Retry:
    """What a client that asks again is known by."""

    def __init__(self, headers: Headers, raw: bytes, path: str, key: Key) -> None:
        named = first(headers, IDEMPOTENCY_KEY)
        counts = [first(headers, name) for name in RETRY_COUNTS]
        stated = next((count for count in counts if count is not None), None)
        can_be_one = named is not None or stated is not None
        self.request_digest = keyed_digest(key, "request", path.encode() + b"\0" + raw) if can_be_one else b""
        # Whether the client names its requests: then the same name is the same request, as often as it comes.
        self.is_named = named is not None
        if named is not None:
            # Together with what is asked: another request under the same name does not hide the first.
            self.key: str | None = keyed_digest(key, "idempotency key", self.request_digest + named).hex()
        else:
            # A body alone is not a name: agents ask the same thing twice, and mean it.
            self.key = None if stated is None else self.request_digest.hex()
        self.is_one = named is not None or (stated or b"0").strip() not in (b"", b"0")


def _conversation_id(headers: Sequence[tuple[bytes, bytes]], body: Mapping[str, Any]) -> str | None:
    conversation = body.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    metadata = body.get("metadata")
    said = metadata if isinstance(metadata, Mapping) else {}
    in_headers = [value.decode("latin-1") for name in _SESSION_HEADERS if (value := first(headers, name))]
    ids = [conversation, *in_headers, said.get("session_id"), said.get("user_id"), body.get("previous_response_id")]
    return next((found for found in ids if isinstance(found, str) and found), None)


def _beginning(messages: Sequence[Message]) -> bytes:
    """What was said before the model's first turn."""
    import json

    begun = []
    for message in messages:
        if message.get("role") == "assistant":
            break
        begun.append(message)
    return json.dumps(begun, sort_keys=True, default=str).encode()
