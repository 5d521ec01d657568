"""Shared keys: 32 random bytes or nothing (law L5)."""

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from string import hexdigits
from typing import Any, Self

from agentmark.core.canonical import is_unicode
from agentmark.core.prf import ARGUMENTS, DERIVE, DIGEST_SIZE, KEY_ID, derive_step_key, prf, step_key_state
from agentmark.keys.environment import ENVIRONMENT_VARIABLE
from agentmark.keys.errors import KeyFileError
from agentmark.keys.secret import KEY_SIZE, Secret, json_or_none, read_private, weakness, write_private

KEY_FILE_VERSION = 1
KEYRING_SERVICE = "agentmark"
# Two calls of one step that meet in a digest count as one behavior, which costs a little and bends nothing.
ARGUMENT_DIGEST_SIZE = 4


class SharedKey(Secret):
    """K_sh, shared by the embedder and the verifier. It never shows its secret: not in repr, str, format or pickle."""

    __slots__ = ("id",)

    id: str

    def __init__(self, secret: bytes, *, source: str = "argument") -> None:
        """Take 32 random bytes. To make new ones use `generate`."""
        fault = weakness(secret)
        if fault is not None:
            raise KeyFileError(source, f"{fault}; make a random one with `agentmark keygen`")
        self._set(_secret=bytes(secret), id=prf(bytes(secret), KEY_ID, size=8).hex())

    @classmethod
    def generate(cls) -> Self:
        """A new key from the operating system's randomness."""
        return cls(secrets.token_bytes(KEY_SIZE))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, key_id: str | None = None) -> Self:
        """Read a key file; refuse one that others can read, that is damaged, or whose key is not `key_id`."""
        path = Path(path)
        source = str(path)
        key = cls(_secret_in_file(path, source), source=source)
        if key_id is not None and key_id != key.id:
            raise KeyFileError(source, f"holds key {key.id}, not {key_id}")
        return key

    @classmethod
    def from_environment(
        cls, variable: str = ENVIRONMENT_VARIABLE, *, environment: Mapping[str, str] | None = None
    ) -> Self:
        """Read 64 hexadecimal digits from an environment variable."""
        source = f"${variable}"
        value = (os.environ if environment is None else environment).get(variable)
        if not value:
            raise KeyFileError(source, "is not set")
        return cls(_from_hex(value, source), source=source)

    @classmethod
    def from_keyring(cls, name: str, *, service: str = KEYRING_SERVICE) -> Self:
        """Read 64 hexadecimal digits from the system keyring (needs the package `keyring`)."""
        source = f"keyring {service}/{name}"
        try:
            import keyring
        except ImportError:
            raise KeyFileError(source, "the package `keyring` is not installed: pip install keyring") from None
        value = keyring.get_password(service, name)
        if not value:
            raise KeyFileError(source, "has no such entry")
        return cls(_from_hex(value, source), source=source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new key file with mode 0600. An existing file is never overwritten: losing a key loses its logs."""
        content = {"agentmark_key": KEY_FILE_VERSION, "id": self.id, "secret": self._secret.hex()}
        write_private(path, content, KeyFileError)

    def derive(self, name: str) -> Self:
        """The key of one tenant. It can be handed to an auditor: it opens no other tenant's logs, nor this key."""
        if not name:
            raise KeyFileError(f"derived from {self.id}", "the name is empty")
        if not is_unicode(name):
            raise KeyFileError(f"derived from {self.id}", "the name holds a lone surrogate, which has no bytes")
        return type(self)(
            prf(self._secret, DERIVE, name.encode("utf-8"), size=KEY_SIZE), source=f"derived for {name!r}"
        )

    def step_key(self, context_digest: bytes, payload_len: int) -> bytes:
        """K_t for one context and payload length. Whoever holds it can read that step and no other."""
        if len(context_digest) != DIGEST_SIZE:
            raise ValueError(f"a context digest has {DIGEST_SIZE} bytes, not {len(context_digest)}")
        return derive_step_key(self._secret, context_digest, payload_len)

    def step_key_maker(self, payload_len: int) -> Callable[[bytes], bytes]:
        """`step_key` for many contexts of one payload length: what they have in common is hashed once."""
        start = step_key_state(self._secret, payload_len).copy

        def step_key(context_digest: bytes) -> bytes:
            state = start()
            state.update(context_digest)
            return state.digest()

        return step_key

    def argument_digest(self, session: str, arguments: bytes) -> str:
        """Eight hexadecimal digits that tell arguments apart within a session, and reveal them to no one who guesses
        them without the key (spec, section 8.1)."""
        name = session.encode("utf-8")
        message = len(name).to_bytes(4, "big") + name + arguments
        return prf(self._secret, ARGUMENTS, message, size=ARGUMENT_DIGEST_SIZE).hex()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SharedKey):
            return NotImplemented
        return secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"SharedKey(id={self.id!r})"


def _secret_in_file(path: Path, source: str) -> bytes:
    content = _parse_key_file(read_private(path, KeyFileError), source)
    secret = _from_hex(content["secret"], source)
    stated = content.get("id")
    if stated is not None and len(secret) == KEY_SIZE and stated != prf(secret, KEY_ID, size=8).hex():
        raise KeyFileError(source, "its secret belongs to another key id than the one it states")
    return secret


def _parse_key_file(data: bytes, source: str) -> dict[str, Any]:
    """The members of a key file. No value of it is part of an error: any of them may be the secret."""
    content = json_or_none(data)
    if isinstance(content, dict) and "agentmark_marking_key" in content:
        raise KeyFileError(source, "is a marking key, which has a public half: load it with `MarkingKey.load`")
    if isinstance(content, dict) and "agentmark_public_key" in content:
        raise KeyFileError(source, "is a public key, which has no secret: it marks and reads nothing")
    if not isinstance(content, dict) or "secret" not in content:
        raise KeyFileError(source, "is not an AgentMark key file (JSON with agentmark_key, id, secret)")
    version = content.get("agentmark_key")
    if type(version) is not int or version != KEY_FILE_VERSION:
        raise KeyFileError(source, f"agentmark_key is not {KEY_FILE_VERSION}, the version that this build reads")
    return content


def _from_hex(text: object, source: str) -> bytes:
    if not isinstance(text, str) or not set(text) <= set(hexdigits) or len(text) % 2:
        raise KeyFileError(source, "is not hexadecimal")
    return bytes.fromhex(text)
