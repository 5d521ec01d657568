"""Marking keys of public mode: a secret that marks, and a public half with which others check what its holder proves.

Needs the package `pynacl` (extra `public`).
"""

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agentmark.core.canonical import is_unicode
from agentmark.core.prf import ARGUMENTS, DIGEST_SIZE, prf
from agentmark.core.public_step import DERIVE_MARKING, VRF_SEED, key_id_input, step_input, step_key_of
from agentmark.keys.errors import KeyFileError
from agentmark.keys.public import PublicKey
from agentmark.keys.secret import KEY_SIZE, Secret, json_or_none, read_private, weakness, write_private
from agentmark.keys.shared import ARGUMENT_DIGEST_SIZE

if TYPE_CHECKING:
    from agentmark.keys.vrf import VrfSecret

MARKING_KEY_FILE_VERSION = 1


class MarkingKey(Secret):
    """Marks and reads as a shared key does; and what it says at a step can be proved. It never shows its secret."""

    __slots__ = ("_vrf", "id", "public")

    id: str
    public: PublicKey
    _vrf: "VrfSecret"

    def __init__(self, secret: bytes, *, source: str = "argument") -> None:
        """Take 32 random bytes. To make new ones use `generate`."""
        from agentmark.keys.vrf import VrfSecret

        fault = weakness(secret)
        if fault is not None:
            raise KeyFileError(source, f"{fault}; make a random one with `agentmark keygen --public`")
        # A seed of its own: one that also signed with Ed25519 would give the secret away.
        vrf = VrfSecret(prf(bytes(secret), VRF_SEED, size=KEY_SIZE))
        public = PublicKey.of(vrf.public_key, vrf.prove(key_id_input()), source=source)
        self._set(_secret=bytes(secret), _vrf=vrf, public=public, id=public.id)

    @classmethod
    def generate(cls) -> Self:
        """A new key from the operating system's randomness."""
        return cls(secrets.token_bytes(KEY_SIZE))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a marking key file; refuse one that others can read, or that is damaged."""
        source = str(Path(path))
        return cls.from_content(json_or_none(read_private(Path(path), KeyFileError)), source=source)

    @classmethod
    def from_content(cls, content: Any, *, source: str) -> Self:
        """The members of a marking key file. No value of it is part of an error: any of them may be the secret."""
        if not isinstance(content, dict) or "secret" not in content or "agentmark_marking_key" not in content:
            raise KeyFileError(source, "is not a marking key file (JSON with agentmark_marking_key, id, secret)")
        version = content["agentmark_marking_key"]
        if type(version) is not int or version != MARKING_KEY_FILE_VERSION:
            raise KeyFileError(
                source, f"agentmark_marking_key is not {MARKING_KEY_FILE_VERSION}, the version that this build reads"
            )
        text = content["secret"]
        if not isinstance(text, str) or not set(text) <= set("0123456789abcdef") or len(text) != 2 * KEY_SIZE:
            raise KeyFileError(source, f"its secret is not {2 * KEY_SIZE} lower-case hexadecimal digits")
        key = cls(bytes.fromhex(text), source=source)
        if content.get("id") != key.id or content.get("public_key") != key.public.point.hex():
            raise KeyFileError(source, "its secret belongs to another key id or public key than it states")
        return key

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new file with mode 0600. The public half has a file of its own: `public.save`."""
        content = {
            "agentmark_marking_key": MARKING_KEY_FILE_VERSION,
            "id": self.id,
            "public_key": self.public.point.hex(),
            "secret": self._secret.hex(),
        }
        write_private(path, content, KeyFileError)

    def derive(self, name: str) -> Self:
        """The key pair of one tenant: who has it can mark in that tenant's name, and in no other's."""
        if not name or not is_unicode(name):
            raise KeyFileError(f"derived from {self.id}", "the name is empty, or holds a lone surrogate")
        secret = prf(self._secret, DERIVE_MARKING, name.encode("utf-8"), size=KEY_SIZE)
        return type(self)(secret, source=f"derived for {name!r}")

    def step_key(self, context_digest: bytes, payload_len: int) -> bytes:
        """K_t for one context and payload length. Whoever holds it can read, and forge, that step and no other."""
        return step_key_of(self._vrf.output(_step_input(context_digest, payload_len)))

    def prove_step(self, context_digest: bytes, payload_len: int) -> bytes:
        """What convinces holders of the public key that the step key is this one. It reveals the step key for ever."""
        return self._vrf.prove(_step_input(context_digest, payload_len))

    def prove(self, message: bytes) -> bytes:
        """A proof of any other input, which begins with its own label: a signature of it."""
        return self._vrf.prove(message)

    def argument_digest(self, session: str, arguments: bytes) -> str:
        """As a shared key's (spec, section 8.1)."""
        name = session.encode("utf-8")
        message = len(name).to_bytes(4, "big") + name + arguments
        return prf(self._secret, ARGUMENTS, message, size=ARGUMENT_DIGEST_SIZE).hex()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MarkingKey):
            return NotImplemented
        return secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"MarkingKey(id={self.id!r})"


def _step_input(context_digest: bytes, payload_len: int) -> bytes:
    if len(context_digest) != DIGEST_SIZE:
        raise ValueError(f"a context digest has {DIGEST_SIZE} bytes, not {len(context_digest)}")
    return step_input(context_digest, payload_len)
