"""Who has which public key, and since when: the registry of public mode."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from agentmark.core.canonical import is_unicode
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.files import read_small_file, write_text_file
from agentmark.identity.errors import RegistryError
from agentmark.identity.registry import check_looks
from agentmark.keys.errors import KeyFileError
from agentmark.keys.public import PublicKey
from agentmark.times import utc_now

TENANTS_VERSION = 1
HEAD = "agentmark_tenants"
# An entry has some 450 bytes: room for a hundred thousand.
MAX_TENANTS_SIZE = 1 << 26
_MEMBERS = {"name", "public_key", "registered_at", "revoked_at"}


@dataclass(frozen=True, slots=True)
class Tenant:
    """A name and a public key. Times are ISO 8601 in UTC. A revoked key stays: what it marked before is its own."""

    name: str
    public_key: PublicKey
    registered_at: str
    revoked_at: str | None = None


class Tenants:
    """Names and public keys. A name has one key at a time, and a key one name for ever."""

    def __init__(self, tenants: Iterable[Tenant] = ()) -> None:
        self._tenants: list[Tenant] = []
        # Where each key and each name's key of today stand.
        self._of_key: dict[str, int] = {}
        self._of_name: dict[str, int] = {}
        for tenant in tenants:
            self._enter(tenant)

    def register(self, name: str, public_key: PublicKey) -> Tenant:
        """Put a key on record, now. A new key for a name takes that the old one is revoked."""
        check_looks(name)
        tenant = Tenant(name, public_key, utc_now())
        self._enter(tenant)
        return tenant

    def revoke(self, name: str) -> Tenant:
        """Note that a name's key is no longer in use, as of now."""
        place = self._of_name.pop(name, None)
        if place is None:
            raise RegistryError(repr(name), "has no key here that is not revoked")
        self._tenants[place] = replace(self._tenants[place], revoked_at=utc_now())
        return self._tenants[place]

    def with_key(self, key_id: str) -> Tenant | None:
        place = self._of_key.get(key_id)
        return None if place is None else self._tenants[place]

    def registered_by(self, time: datetime | None) -> list[Tenant]:
        """Those whose keys were on record at this time, revoked since or not; all if no time is known."""
        return [tenant for tenant in self._tenants if time is None or parsed_time(tenant.registered_at) <= time]

    def __len__(self) -> int:
        return len(self._tenants)

    def __iter__(self) -> Iterator[Tenant]:
        return iter(self._tenants)

    def _enter(self, tenant: Tenant) -> None:
        holder = self.with_key(tenant.public_key.id)
        if holder is not None:
            raise RegistryError(repr(tenant.name), f"key {tenant.public_key.id} is on record for {holder.name!r}")
        if tenant.name in self._of_name:
            raise RegistryError(repr(tenant.name), "has a key already; revoke it first")
        if tenant.revoked_at is None:
            self._of_name[tenant.name] = len(self._tenants)
        self._of_key[tenant.public_key.id] = len(self._tenants)
        self._tenants.append(tenant)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a registry of public keys; every key in it is checked."""
        try:
            lines = read_small_file(path, MAX_TENANTS_SIZE).decode("utf-8").split("\n")
        except UnicodeDecodeError:
            raise RegistryError(str(path), "is not UTF-8 text") from None
        head = _parsed(lines[0], f"{path}:1")
        version = head.get(HEAD)
        if type(version) is not int or version != TENANTS_VERSION:
            raise RegistryError(
                f"{path}:1", f"is not the head of a registry of public keys of version {TENANTS_VERSION}"
            )
        tenants = cls()
        for number, line in enumerate(lines[1:], start=2):
            if line.strip():
                tenants._enter(_tenant(_parsed(line, f"{path}:{number}"), f"{path}:{number}"))
        return tenants

    def save(self, path: str | os.PathLike[str]) -> None:
        """Written beside the old file and put in its place."""
        draft = Path(path).with_name(f".{Path(path).name}.new")
        lines: list[dict[str, Any]] = [{HEAD: TENANTS_VERSION}]
        lines += [
            {
                "name": tenant.name,
                "public_key": tenant.public_key.as_dict(),
                "registered_at": tenant.registered_at,
                "revoked_at": tenant.revoked_at,
            }
            for tenant in self
        ]
        write_text_file(draft, "".join([json.dumps(line, ensure_ascii=False) + "\n" for line in lines]))
        draft.replace(path)


def is_tenants_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a registry of public keys, by its first line."""
    try:
        with Path(path).open("rb") as file:
            return f'"{HEAD}"'.encode() in file.readline(200)
    except OSError:
        return False


def parsed_time(text: str) -> datetime:
    """ISO 8601; without a zone it is UTC."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _parsed(line: str, where: str) -> dict[str, Any]:
    try:
        content = parse_json(line)
    except StrictJsonError as error:
        raise RegistryError(where, error.fault) from None
    if not isinstance(content, dict):
        raise RegistryError(where, "is not a JSON object")
    return content


def _tenant(content: dict[str, Any], where: str) -> Tenant:
    if set(content) != _MEMBERS or not isinstance(content["name"], str) or not content["name"]:
        raise RegistryError(where, f"is not an object of {', '.join(sorted(_MEMBERS))}")
    if not is_unicode(content["name"]) or "\n" in content["name"]:
        raise RegistryError(where, "its name is not one line of text")
    for member in ("registered_at", "revoked_at"):
        if content[member] is not None or member == "registered_at":
            try:
                parsed_time(content[member])
            except (TypeError, ValueError):
                raise RegistryError(where, f"{member} is not a time in ISO 8601") from None
    try:
        public_key = PublicKey.from_dict(content["public_key"], source=where)
    except KeyFileError as error:
        raise RegistryError(where, f"public_key: {error.fault}") from None
    return Tenant(content["name"], public_key, content["registered_at"], content["revoked_at"])
