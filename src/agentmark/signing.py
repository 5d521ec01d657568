"""Ed25519 signatures (RFC 8032), for those who must not hold the shared key: checkpoints of a log, reports.

Needs the package `cryptography`, which is imported when it is used: pip install agentmark[signed].
"""

import json
import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from agentmark.core.errors import AgentMarkError, KeyFileError
from agentmark.keys import KEY_SIZE, _refuse_weak

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNING_KEY_FILE_VERSION = 1
PUBLIC_KEY_SIZE = 32
SIGNATURE_SIZE = 64


class SigningError(AgentMarkError, ValueError):
    """A signing key that is missing, weak, damaged or readable by others, or no package to sign with."""

    def __init__(self, source: str, fault: str) -> None:
        super().__init__(f"signing key {source}: {fault}")
        self.source = source
        self.fault = fault


class SigningKey:
    """An Ed25519 key pair. It never shows its secret: not in repr, str, format or pickle."""

    __slots__ = ("_private", "_secret", "public_key")

    public_key: str
    _private: "Ed25519PrivateKey"
    _secret: bytes

    def __init__(self, secret: bytes, *, source: str = "argument") -> None:
        """Take 32 random bytes, the seed of RFC 8032. To make new ones use `generate`."""
        _refuse_weak_seed(secret, source)
        private = _private_key(bytes(secret))
        object.__setattr__(self, "_secret", bytes(secret))
        object.__setattr__(self, "_private", private)
        object.__setattr__(self, "public_key", private.public_key().public_bytes_raw().hex())

    @classmethod
    def generate(cls) -> Self:
        """A new key from the operating system's randomness."""
        return cls(secrets.token_bytes(KEY_SIZE))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a signing key file; refuse one that others can read, or that is damaged."""
        source = str(Path(path))
        content = _parse_key_file(_private_bytes(Path(path), source), source)
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
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise SigningError(str(path), "exists already; choose another name") from None
        except OSError as error:
            raise SigningError(str(path), f"cannot be written: {error.strerror}") from None
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(content) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def sign(self, label: bytes, message: bytes) -> str:
        """The signature in hexadecimal. The label says what is signed, so that it serves for nothing else."""
        return self._private.sign(_labelled(label, message)).hex()

    def __repr__(self) -> str:
        return f"SigningKey(public_key={self.public_key!r})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"SigningKey is immutable; cannot set {name}")

    def __getstate__(self) -> NoReturn:
        self.__reduce__()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "SigningKey is not pickled, so that it never reaches a file or a queue; load it where it is needed"
        )


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
    fault = "signatures need the package `cryptography`, which is not installed: pip install agentmark[signed]"
    return SigningError("-", fault)


def _refuse_weak_seed(secret: bytes, source: str) -> None:
    try:
        _refuse_weak(secret, source)
    except KeyFileError as error:
        fault = error.fault.partition(";")[0]
        raise SigningError(source, f"{fault}; make a random one with `agentmark signing-key`") from None


def _private_bytes(path: Path, source: str) -> bytes:
    try:
        # Without waiting for a writer, should the path be a pipe.
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            # The file that was opened is the one that is judged: no second look at the path.
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise SigningError(source, "is not a regular file")
            if os.name == "posix" and mode & 0o077:
                shown = f"{stat.S_IMODE(mode):04o}"
                raise SigningError(source, f"can be read by others (mode {shown}); run `chmod 600 {source}`")
            return file.read()
    except OSError as error:
        raise SigningError(source, f"cannot be read: {error.strerror}") from None


def _parse_key_file(data: bytes, source: str) -> dict[str, Any]:
    content = _json_or_none(data)
    if not isinstance(content, dict) or "secret" not in content or "agentmark_signing_key" not in content:
        fault = "is not an AgentMark signing key file (JSON with agentmark_signing_key, public_key, secret)"
        raise SigningError(source, fault)
    version = content["agentmark_signing_key"]
    if type(version) is not int or version != SIGNING_KEY_FILE_VERSION:
        raise SigningError(source, f"has version {version!r}; this build reads version {SIGNING_KEY_FILE_VERSION}")
    return content


def _json_or_none(data: bytes) -> Any:
    # The parser's own error holds the whole text; it must not travel along as the context of ours.
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _seed_in_file(content: dict[str, Any], source: str) -> bytes:
    if not is_hex(content["secret"], KEY_SIZE):
        raise SigningError(source, f"its secret is not {2 * KEY_SIZE} lower-case hexadecimal digits")
    return bytes.fromhex(content["secret"])
