"""A disclosure: for each record its digest and the proof of its step key, signed as a whole by the holder.

Whoever has it can compute the step keys of the contexts in it, for ever: read these steps, and choose as the key would
at these contexts. Hence records are bound by their digests, and nothing else of the exhibit counts for the key.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from agentmark.core.canonical import canonical_bytes
from agentmark.core.ecvrf import PROOF_SIZE
from agentmark.core.errors import AgentMarkError, PayloadError
from agentmark.core.payload import check_payload_len
from agentmark.core.prf import DIGEST_SIZE
from agentmark.core.public_step import disclosure_input
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.files import FileError, read_small_file
from agentmark.keys.errors import KeyFileError
from agentmark.keys.public import PublicKey

DISCLOSURE_VERSION = 1
# An entry has some 380 bytes: room for more than a million.
MAX_DISCLOSURE_SIZE = 1 << 29
_MEMBERS = ("agentmark_disclosure", "public_key", "records", "proof")
_ENTRY_MEMBERS = ("digest", "context", "payload_len", "proof")


class DisclosureError(AgentMarkError, ValueError):
    """A disclosure that is damaged, altered, or not by the holder of the key that it names."""

    def __init__(self, source: str, fault: str) -> None:
        super().__init__(f"disclosure {source}: {fault}")
        self.source = source
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Entry:
    """One record, by its digest, with the proof of the step key at its context and payload length."""

    digest: str
    context: bytes
    payload_len: int
    proof: bytes

    def as_dict(self) -> dict[str, Any]:
        return {
            "digest": self.digest,
            "context": self.context.hex(),
            "payload_len": self.payload_len,
            "proof": self.proof.hex(),
        }


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What was disclosed. `from_dict` checks the holder's signature; the proofs are checked where they are used."""

    public_key: PublicKey
    entries: tuple[Entry, ...]
    proof: bytes
    # Where it came from, for errors.
    source: str = field(default="argument", compare=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a disclosure; refuse one that is damaged, altered, or not by the holder of the key in it."""
        source = str(Path(path))
        try:
            content = parse_json(read_small_file(path, MAX_DISCLOSURE_SIZE))
        except OSError as fault:
            raise DisclosureError(source, f"cannot be read: {fault.strerror}") from None
        except FileError as fault:
            raise DisclosureError(source, fault.fault) from None
        except StrictJsonError as fault:
            raise DisclosureError(source, fault.fault) from None
        return cls.from_dict(content, source=source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new file, a line for each record. An existing file is never overwritten."""
        head = _content(self.public_key, ())
        try:
            with Path(path).open("x", encoding="ascii") as file:
                try:
                    file.write(f'{{"agentmark_disclosure": {head["agentmark_disclosure"]}, ')
                    file.write(f'"public_key": {json.dumps(head["public_key"])}, "records": [')
                    for number, entry in enumerate(self.entries):
                        file.write((",\n" if number else "\n") + json.dumps(entry.as_dict()))
                    file.write(f'\n], "proof": "{self.proof.hex()}"}}\n')
                except OSError:
                    # Half a disclosure is none, and its name must be free for the next try.
                    Path(path).unlink(missing_ok=True)
                    raise
        except FileExistsError:
            raise DisclosureError(str(path), "exists already; choose another name") from None
        except OSError as fault:
            raise DisclosureError(str(path), f"cannot be written: {fault.strerror}") from None
        except ValueError:
            raise DisclosureError(str(path), "is not a name that a file can have") from None

    def as_dict(self) -> dict[str, Any]:
        return _content(self.public_key, self.entries) | {"proof": self.proof.hex()}

    @classmethod
    def from_dict(cls, content: object, *, source: str = "argument") -> Self:
        """Strictly: a member too many, a digest twice or a signature that fails is an error."""
        if not isinstance(content, dict) or "agentmark_disclosure" not in content:
            raise DisclosureError(source, "is not an AgentMark disclosure (JSON with agentmark_disclosure)")
        version = content["agentmark_disclosure"]
        if type(version) is not int or version != DISCLOSURE_VERSION:
            raise DisclosureError(
                source, f"agentmark_disclosure is not {DISCLOSURE_VERSION}, the version that this build reads"
            )
        _check_members(content, _MEMBERS, source, "the disclosure")
        try:
            public_key = PublicKey.from_dict(content["public_key"], source=source)
        except KeyFileError as error:
            raise DisclosureError(source, f"public_key: {error.fault}") from None
        # Else two files would be one disclosure: what is ignored is not signed either.
        _check_members(content["public_key"], tuple(public_key.as_dict()), source, "public_key")
        if not isinstance(content["records"], list):
            raise DisclosureError(source, "records is not a list")
        entries = tuple([_entry(found, i, source) for i, found in enumerate(content["records"])])
        if len({entry.digest for entry in entries}) != len(entries):
            raise DisclosureError(source, "a record is listed twice")
        proof = _hex(content["proof"], PROOF_SIZE, source, "proof")
        if not public_key.signs(signed_bytes(public_key, entries), proof):
            raise DisclosureError(source, "was altered, or is not by the holder of its key: its proof does not hold")
        return cls(public_key, entries, proof, source)


def signed_bytes(public_key: PublicKey, entries: Iterable[Entry]) -> bytes:
    """What the holder signs: all of the disclosure but the signature."""
    return disclosure_input(canonical_bytes(_content(public_key, entries)))


def _content(public_key: PublicKey, entries: Iterable[Entry]) -> dict[str, Any]:
    return {
        "agentmark_disclosure": DISCLOSURE_VERSION,
        "public_key": public_key.as_dict(),
        "records": [entry.as_dict() for entry in entries],
    }


def _entry(content: object, index: int, source: str) -> Entry:
    where = f"records[{index}]"
    if not isinstance(content, dict):
        raise DisclosureError(source, f"{where} is not an object")
    _check_members(content, _ENTRY_MEMBERS, source, where)
    try:
        payload_len = check_payload_len(content["payload_len"])
    except PayloadError as error:
        raise DisclosureError(source, f"{where}.payload_len {error.fault}") from None
    return Entry(
        digest=_hex(content["digest"], DIGEST_SIZE, source, f"{where}.digest").hex(),
        context=_hex(content["context"], DIGEST_SIZE, source, f"{where}.context"),
        payload_len=payload_len,
        proof=_hex(content["proof"], PROOF_SIZE, source, f"{where}.proof"),
    )


def _check_members(content: dict[str, Any], members: tuple[str, ...], source: str, where: str) -> None:
    for name in members:
        if name not in content:
            raise DisclosureError(source, f"{where} has no {name}")
    if len(content) != len(members):
        raise DisclosureError(source, f"{where} has members that are none of version {DISCLOSURE_VERSION}")


def _hex(text: object, size: int, source: str, where: str) -> bytes:
    if not isinstance(text, str) or len(text) != 2 * size or not set(text) <= set("0123456789abcdef"):
        raise DisclosureError(source, f"{where} is not {2 * size} lower-case hexadecimal digits")
    return bytes.fromhex(text)
