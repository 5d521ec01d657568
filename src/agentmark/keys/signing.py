"""Ed25519 signatures (RFC 8032), for those who must not hold the shared key: checkpoints of a log, reports.

Needs the package `cryptography`, which is imported when it is used (extra `signed`).
"""

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agentmark.core.errors import AgentMarkError
from agentmark.core.prf import prf
from agentmark.errors import how_to_install
from agentmark.keys.secret import KEY_SIZE, Secret, json_or_none, read_private, weakness, without_secrets, write_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNING_KEY_FILE_VERSION = 1
PUBLIC_KEY_SIZE = 32
SIGNATURE_SIZE = 64
TAG_SIZE = 16


class SigningError(AgentMarkError, ValueError):
    """A signing key that is missing, weak, damaged or readable by others, or no package to sign with."""

    def __init__(self, source: str, fault: str) -> None:
        # As with a shared key: a secret that was given in place of its file is not repeated.
        self.source = without_secrets(source)
        super().__init__(f"signing key {self.source}: {fault}")
        self.fault = fault


class SigningKey(Secret):
    """An Ed25519 key pair. It never shows its secret: not in repr, str, format or pickle."""

    __slots__ = ("_private", "public_key")

    public_key: str
    _private: "Ed25519PrivateKey"

    def __init__(self, secret: bytes, *, source: str = "argument") -> None:
        """Take 32 random bytes, the seed of RFC 8032. To make new ones use `generate`."""
        fault = weakness(secret)
        if fault is not None:
            raise SigningError(source, f"{fault}; make a random one with `agentmark signing-key`")
        private = _private_key(bytes(secret))
        public_key = private.public_key().public_bytes_raw().hex()
        self._set(_secret=bytes(secret), _private=private, public_key=public_key)

    @classmethod
    def generate(cls) -> Self:
        """A new key from the operating system's randomness."""
        return cls(secrets.token_bytes(KEY_SIZE))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a signing key file; refuse one that others can read, or that is damaged."""
        source = str(Path(path))
        content = _parse_key_file(read_private(Path(path), SigningError), source)
        key = cls(_seed_in_file(content, source), source=source)
        if content.get("public_key") != key.public_key:
            raise SigningError(source, "its public key does not belong to its secret")
        return key

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new file with mode 0600. An existing file is never overwritten."""
        content = {
            "agentmark_signing_key": SIGNING_KEY_FILE_VERSION,
            "public_key": self.public_key,
            "secret": self._secret.hex(),
        }
        write_private(path, content, SigningError)

    def sign(self, label: bytes, message: bytes) -> str:
        """The signature in hexadecimal. The label says what is signed, so that it serves for nothing else."""
        return self._private.sign(_labelled(label, message)).hex()

    def tag(self, label: bytes, message: bytes) -> bytes:
        """What only the holder of this key can work out or check, in hexadecimal: for what the signer tells itself."""
        # Another function of the secret than the one that signs (SHA-512, RFC 8032), under a label of its own.
        return prf(self._secret, label, message, size=TAG_SIZE).hex().encode("ascii")

    def __repr__(self) -> str:
        return f"SigningKey(public_key={self.public_key!r})"


def verify_signature(public_key: str, label: bytes, message: bytes, signature: str) -> bool:
    """Whether the signature is that of this message, under this label, by this key. Malformed ones are not."""
    public = _public_key(public_key)
    if public is None or not is_hex(signature, SIGNATURE_SIZE):
        return False
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(bytes.fromhex(signature), _labelled(label, message))
    except InvalidSignature:
        return False
    return True


def check_public_key(public_key: str) -> str:
    """Raise for text that is not the public key of anything, so that a typing error is not taken for a forgery."""
    if _public_key(public_key) is None:
        raise SigningError(repr(public_key), f"is not a public key of {2 * PUBLIC_KEY_SIZE} lower-case hex digits")
    return public_key


def is_hex(text: object, size: int) -> bool:
    """True for exactly `size` bytes in lower-case hexadecimal: one value, one spelling."""
    return isinstance(text, str) and len(text) == 2 * size and set(text) <= set("0123456789abcdef")


def _labelled(label: bytes, message: bytes) -> bytes:
    # Labels hold no zero byte, so that no two pairs of label and message give the same bytes.
    if not label or b"\0" in label:
        raise ValueError(f"{label!r} is not a label")
    return label + b"\0" + message


def _private_key(seed: bytes) -> "Ed25519PrivateKey":
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise _missing_package() from None
    return Ed25519PrivateKey.from_private_bytes(seed)


def _public_key(public_key: str) -> "Ed25519PublicKey | None":
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise _missing_package() from None
    if not is_hex(public_key, PUBLIC_KEY_SIZE):
        return None
    try:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    except ValueError:
        return None


def _missing_package() -> SigningError:
    fault = "signatures need the package `cryptography`, which is not installed"
    return SigningError("-", f"{fault}: {how_to_install('signed')}")


def _parse_key_file(data: bytes, source: str) -> dict[str, Any]:
    """The members of a key file. No value of it is part of an error: any of them may be the secret."""
    content = json_or_none(data)
    if not isinstance(content, dict) or "secret" not in content or "agentmark_signing_key" not in content:
        fault = "is not an AgentMark signing key file (JSON with agentmark_signing_key, public_key, secret)"
        raise SigningError(source, fault)
    version = content["agentmark_signing_key"]
    if type(version) is not int or version != SIGNING_KEY_FILE_VERSION:
        fault = f"agentmark_signing_key is not {SIGNING_KEY_FILE_VERSION}, the version that this build reads"
        raise SigningError(source, fault)
    return content


def _seed_in_file(content: dict[str, Any], source: str) -> bytes:
    if not is_hex(content["secret"], KEY_SIZE):
        raise SigningError(source, f"its secret is not {2 * KEY_SIZE} lower-case hexadecimal digits")
    return bytes.fromhex(content["secret"])
