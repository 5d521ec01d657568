"""The public half of a marking key: whoever has it checks what the holder proves, and can mark nothing with it."""

import json
import os
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from agentmark.core import ecvrf
from agentmark.core.edwards25519 import POINT_SIZE
from agentmark.core.prf import DIGEST_SIZE
from agentmark.core.public_step import key_id_input, key_id_of, step_input, step_key_of
from agentmark.files import FileError, read_small_file
from agentmark.keys.errors import KeyFileError
from agentmark.keys.secret import json_or_none

PUBLIC_KEY_FILE_VERSION = 1
FINGERPRINT = b"agentmark/1 public key"
# A file has some 350 bytes.
MAX_FILE_SIZE = 1 << 16
_MEMBERS = "agentmark_public_key, id, public_key, id_proof"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A point, the key id that records state, and the proof that the id is this key's. Build one with `of` or `load`:
    they check."""

    point: bytes
    id_proof: bytes
    id: str

    @classmethod
    def of(cls, point: bytes, id_proof: bytes, *, source: str = "argument") -> Self:
        """Check the point and the proof: what is crooked is refused here, once."""
        if not is_public_key(point):
            raise KeyFileError(source, "its public key is no point of prime order")
        output = proof_output(point, key_id_input(), id_proof)
        if output is None:
            raise KeyFileError(source, "its proof of the key id does not hold")
        return cls(point, id_proof, key_id_of(output))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a public key file; refuse one that is damaged, or whose id is another key's."""
        source = str(Path(path))
        try:
            content = json_or_none(read_small_file(path, MAX_FILE_SIZE))
        except OSError as fault:
            raise KeyFileError(source, f"cannot be read: {fault.strerror}") from None
        except FileError as fault:
            raise KeyFileError(source, fault.fault) from None
        return cls.from_dict(content, source=source)

    @classmethod
    def from_dict(cls, content: object, *, source: str = "argument") -> Self:
        """The members of a public key file."""
        if isinstance(content, dict) and "secret" in content:
            raise KeyFileError(source, "holds a secret: a public key file has none; hand out the .pub.json file")
        if not isinstance(content, dict) or "public_key" not in content or "agentmark_public_key" not in content:
            raise KeyFileError(source, f"is not an AgentMark public key file (JSON with {_MEMBERS})")
        version = content["agentmark_public_key"]
        if type(version) is not int or version != PUBLIC_KEY_FILE_VERSION:
            raise KeyFileError(
                source, f"agentmark_public_key is not {PUBLIC_KEY_FILE_VERSION}, the version that this build reads"
            )
        key = cls.of(_hex(content, "public_key", source), _hex(content, "id_proof", source), source=source)
        if content.get("id") != key.id:
            raise KeyFileError(source, "its id is not that of its public key")
        return key

    def as_dict(self) -> dict[str, Any]:
        return {
            "agentmark_public_key": PUBLIC_KEY_FILE_VERSION,
            "id": self.id,
            "public_key": self.point.hex(),
            "id_proof": self.id_proof.hex(),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new file, for anyone to read. An existing file is never overwritten."""
        try:
            with Path(path).open("x", encoding="utf-8") as file:
                file.write(json.dumps(self.as_dict()) + "\n")
        except FileExistsError:
            raise KeyFileError(str(path), "exists already; choose another name") from None
        except (OSError, ValueError) as fault:
            raise KeyFileError(str(path), f"cannot be written: {fault}") from None

    @property
    def fingerprint(self) -> str:
        """What stands for this key where its existence is put on record: 64 hexadecimal digits."""
        return fingerprint_of(self.point)

    def step_key(self, context_digest: bytes, payload_len: int, proof: bytes) -> bytes | None:
        """K_t of one step, if this proof of it holds; None if not."""
        output = proof_output(self.point, step_input(context_digest, payload_len), proof)
        return None if output is None else step_key_of(output)

    def signs(self, message: bytes, proof: bytes) -> bool:
        """Whether this is the holder's proof of these bytes."""
        return proof_output(self.point, message, proof) is not None


def fingerprint_of(point: bytes) -> str:
    """The fingerprint of a public key, whether the key is checked or not."""
    return blake2b(FINGERPRINT + b"\0" + point, digest_size=DIGEST_SIZE).hexdigest()


def is_public_key(point: bytes) -> bool:
    """Whether this is a point of prime order: by libsodium where it is installed, else in plain Python."""
    if find_spec("nacl") is not None:
        from agentmark.keys.vrf import has_prime_order

        return len(point) == POINT_SIZE and has_prime_order(point)
    return ecvrf.is_public_key(point)


def proof_output(point: bytes, alpha: bytes, proof: bytes) -> bytes | None:
    """beta if the proof holds: by libsodium where it is installed, else in plain Python; the answers are the same."""
    if find_spec("nacl") is not None:
        from agentmark.keys.vrf import proof_output as with_sodium

        return with_sodium(point, alpha, proof)
    return ecvrf.proof_output(point, alpha, proof)


def _hex(content: dict[str, Any], name: str, source: str) -> bytes:
    text = content.get(name)
    if not isinstance(text, str) or len(text) % 2 or not set(text) <= set("0123456789abcdef"):
        raise KeyFileError(source, f"{name} is not lower-case hexadecimal")
    return bytes.fromhex(text)
