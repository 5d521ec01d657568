"""Issued identities: which name has which payload, and since when."""

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from string import hexdigits
from typing import Any, Self
from unicodedata import is_normalized

from agentmark.core.canonical import is_unicode
from agentmark.core.errors import PayloadError
from agentmark.core.payload import MAX_PAYLOAD_LEN, check_payload_len
from agentmark.core.strict_json import RepeatedNameError, StrictJsonError, parse_json
from agentmark.files import read_small_file
from agentmark.identity.errors import RegistryError
from agentmark.text import first_unprintable
from agentmark.times import utc_now

try:
    import fcntl
except ImportError:  # Windows has no advisory locks of this kind; there a registry has one writer at a time.
    fcntl = None  # type: ignore[assignment]

# Room for more than a million identities; what goes beyond is no registry, or one that never ends.
MAX_REGISTRY_SIZE = 1 << 28
# Names that are like a missing one are looked for only where that takes no time.
COMPARED_NAMES, COMPARED_LEN = 10_000, 100


@dataclass(frozen=True, slots=True)
class Identity:
    """One entry. Times are ISO 8601 in UTC."""

    name: str
    payload: int
    issued_at: str | None = None
    revoked_at: str | None = None


class Registry:
    """Names and payloads, each unique, all of one length. A revoked identity stays: old logs still carry it."""

    def __init__(self, payload_len: int, identities: Iterable[Identity] = ()) -> None:
        self.payload_len = check_payload_len(payload_len)
        self._by_name: dict[str, Identity] = {}
        self._by_payload: dict[int, Identity] = {}
        self._payloads: tuple[int, ...] | None = None
        for identity in identities:
            self.add(identity)

    def add(self, identity: Identity) -> None:
        """Enter an identity; refuse a name or payload that is taken, a payload that is too long, or a name that can
        look like another's."""
        _check_looks(identity.name)
        self._enter(identity)

    def _enter(self, identity: Identity) -> None:
        """Enter an identity that exists already, whatever its name looks like: old logs carry its payload."""
        if not identity.name:
            raise RegistryError("(no name)", "every identity needs a name")
        if not is_unicode(identity.name) or "\n" in identity.name:
            raise RegistryError(repr(identity.name), "a name is one line of text")
        if identity.name in self._by_name:
            raise RegistryError(repr(identity.name), "this name is issued already")
        if not 0 <= identity.payload < 1 << self.payload_len:
            # Not the payload itself: what is far too long for one may be a secret that strayed here.
            raise RegistryError(repr(identity.name), f"its payload does not fit {self.payload_len} bits")
        holder = self._by_payload.get(identity.payload)
        if holder is not None:
            raise RegistryError(repr(identity.name), f"payload {identity.payload:#x} belongs to {holder.name!r}")
        self._by_name[identity.name] = identity
        self._by_payload[identity.payload] = identity
        self._payloads = None

    def issue(self, name: str) -> Identity:
        """Give a new name a random free payload."""
        if len(self) >= 1 << self.payload_len:
            raise RegistryError(repr(name), f"all {len(self)} payloads of {self.payload_len} bits are taken")
        payload = secrets.randbits(self.payload_len) if self.payload_len else 0
        while payload in self._by_payload:
            payload = (payload + 1) % (1 << self.payload_len)
        identity = Identity(name, payload, issued_at=utc_now())
        self.add(identity)
        return identity

    def revoke(self, name: str) -> Identity:
        """Mark an identity as no longer in use."""
        identity = replace(self.named(name), revoked_at=utc_now())
        self._by_name[name] = self._by_payload[identity.payload] = identity
        return identity

    def named(self, name: str) -> Identity:
        identity = self._by_name.get(name)
        if identity is None:
            raise RegistryError(repr(name), f"no such identity{self.names_like(name)}; issue it first")
        return identity

    def names_like(self, name: str) -> str:
        """Names that may have been meant in place of one that is missing, as a part of a sentence; or nothing."""
        if len(self) > COMPARED_NAMES or len(name) > COMPARED_LEN:
            return ""
        close = get_close_matches(name, [known for known in self._by_name if len(known) <= COMPARED_LEN])
        return f", but there is {' and '.join([repr(known) for known in close])}" if close else ""

    @property
    def payloads(self) -> tuple[int, ...]:
        """The payloads in the order of the entries: the same object until one is added, so that what is prepared from
        them can be kept."""
        if self._payloads is None:
            self._payloads = tuple([identity.payload for identity in self])
        return self._payloads

    def holder(self, payload: int) -> Identity | None:
        """Whose payload this is, if anyone's."""
        return self._by_payload.get(payload)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Identity]:
        return iter(self._by_name.values())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a registry: a file of lines, or a SQLite table (.db, .sqlite, .sqlite3, or a file that is one)."""
        if is_table(path):
            from agentmark.identity.table import read_rows

            entries = read_rows(path, MAX_REGISTRY_SIZE)
        else:
            entries = _read_lines(path)
        where, head = next(entries)
        version = head.get("agentmark_registry")
        if type(version) is not int or version != 1:
            raise RegistryError(where, "is not the head of an AgentMark registry of version 1")
        try:
            registry = cls(check_payload_len(head.get("payload_len")))  # type: ignore[arg-type]
        except PayloadError:
            fault = f"payload_len is not an integer, or one outside 0..{MAX_PAYLOAD_LEN}"
            raise RegistryError(where, fault) from None
        for where, entry in entries:
            registry._enter(_identity(entry, where))
        return registry

    @staticmethod
    @contextmanager
    def locked(path: str | os.PathLike[str]) -> Iterator[None]:
        """Hold a registry file while it is read, changed and saved, so that nobody else's change is lost."""
        lock = Path(path).with_name(f"{Path(path).name}.lock")
        with lock.open("w") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the registry: lines are written beside the old file and put in its place, a table in one transaction."""
        width = -(-self.payload_len // 4)
        head = {"agentmark_registry": 1, "payload_len": self.payload_len}
        entries = [
            {
                "name": identity.name,
                "payload": f"{identity.payload:0{width}x}",
                "issued_at": identity.issued_at,
                "revoked_at": identity.revoked_at,
            }
            for identity in self
        ]
        if is_table(path):
            from agentmark.identity.table import write_rows

            write_rows(path, head, entries)
        else:
            _write_lines(path, [head, *entries])


_TABLE_MAGIC = b"SQLite format 3\0"
_TABLE_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a registry is a database: by what the file holds or, as long as it holds nothing, by its suffix."""
    target = Path(path)
    if target.is_file():
        with target.open("rb") as file:
            beginning = file.read(len(_TABLE_MAGIC))
        if beginning:
            return beginning == _TABLE_MAGIC
    return target.suffix in _TABLE_SUFFIXES


def _read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A head line with the payload length, then one identity a line; each with its place for error messages."""
    try:
        # Not splitlines: a name may hold a character that it takes for a line's end.
        lines = read_small_file(path, MAX_REGISTRY_SIZE).decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise RegistryError(str(path), "is not UTF-8 text") from None
    if not lines[0].strip():
        raise RegistryError(str(path), "is empty; a registry starts with a head line")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield f"{path}:{number}", _parse(line, f"{path}:{number}")


def _write_lines(path: str | os.PathLike[str], entries: Sequence[dict[str, Any]]) -> None:
    import tempfile

    target = Path(path)
    try:
        descriptor, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.writelines([json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries])
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(target)
        except OSError:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise RegistryError(str(path), f"cannot be written: {error.strerror}") from None


def _parse(line: str, where: str) -> dict[str, Any]:
    try:
        content = parse_json(line)
    except RepeatedNameError as error:
        raise RegistryError(where, str(error)) from None
    except StrictJsonError:
        raise RegistryError(where, "is not valid JSON") from None
    if not isinstance(content, dict):
        raise RegistryError(where, "is not a JSON object")
    return content


def _identity(content: dict[str, Any], where: str) -> Identity:
    name, payload = content.get("name"), content.get("payload")
    if not isinstance(name, str):
        raise RegistryError(where, "has no name")
    if not isinstance(payload, str) or not payload or not set(payload) <= set(hexdigits):
        # Neither name nor payload is repeated: a secret that strayed into a registry may be either.
        raise RegistryError(where, "its payload is not hexadecimal text")
    for member in ("issued_at", "revoked_at"):
        date = content.get(member)
        if not (date is None or (isinstance(date, str) and is_unicode(date))):
            raise RegistryError(where, f"{member} is not a date as text, or null")
    return Identity(name, int(payload, 16), content.get("issued_at"), content.get("revoked_at"))


def _check_looks(name: str) -> None:
    """Refuse a new name that can look like another's: with what does not print, spaces at its ends, or spelled apart
    in code points only."""
    odd = first_unprintable(name)
    if odd == "\\n":
        raise RegistryError(repr(name), "a name is one line of text")
    if odd is not None:
        raise RegistryError(repr(name), f"{odd} does not print: the name could look like another's")
    if name != name.strip():
        raise RegistryError(repr(name), "begins or ends with a space: it could look like another's name")
    if not is_normalized("NFC", name):
        raise RegistryError(repr(name), "is not in composed form (NFC): it could look like another's name")
