"""Who may use a gateway: tenants, and the API keys that they are known by."""

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from agentmark.core.canonical import is_unicode
from agentmark.errors import SettingError
from agentmark.files import read_small_file
from agentmark.keys.key import Key
from agentmark.keys.load import load_key
from agentmark.text import first_unprintable

# An API key: a prefix that scanners for leaked secrets can look for, a public id to find it by, and 32 random bytes.
# In hexadecimal, so that `keys.secret.without_secrets` keeps it out of messages.
PREFIX = "amk"
ID_SIZE, SECRET_SIZE = 8, 32
_API_KEY = re.compile(rf"{PREFIX}_([0-9a-f]{{{2 * ID_SIZE}}})_([0-9a-f]{{{2 * SECRET_SIZE}}})")

MAX_NAME_LEN = 200
MAX_CREDENTIAL_SIZE = 1 << 16
_ENVIRONMENT_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


class OwnKey(Key, Protocol):
    """A key that others are derived from by name: a shared key, or a marking key."""

    def derive(self, name: str) -> Self: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Who an API key stands for, and what its requests are marked and sent with. Times are seconds since 1970.

    No secret is in here: the key is derived or in a file, the credential in the environment or in a file.
    """

    name: str
    # The identity that its decisions carry, as the registry of the gateway names it.
    identity: str
    # The file of its key (shared, or a marking key with a public half); None: derived from the gateway's key by `name`.
    key_file: str | None = None
    # Where the credential for the upstream is: "env:NAME" or "file:PATH"; None: nothing goes there.
    upstream_credential: str | None = None
    # Limits; None: those of the gateway.
    requests_per_minute: int | None = None
    concurrent_requests: int | None = None
    created_at: float = 0.0
    revoked_at: float | None = None

    def check(self) -> None:
        """Refuse what cannot be a tenant."""
        for field, value in (("tenant", self.name), ("identity", self.identity)):
            if not value or len(value) > MAX_NAME_LEN or not is_unicode(value) or first_unprintable(value) is not None:
                raise SettingError(field, f"{value!r} is not one line of 1 to {MAX_NAME_LEN} characters")
        for field, limit in (
            ("requests_per_minute", self.requests_per_minute),
            ("concurrent_requests", self.concurrent_requests),
        ):
            if limit is not None and (type(limit) is not int or limit < 1):
                raise SettingError(field, f"{limit!r} is not a whole number above zero")
        if self.key_file is not None and not self.key_file:
            raise SettingError("key_file", "is empty")
        if self.upstream_credential is not None:
            _check_reference(self.upstream_credential)

    def key(self, own: OwnKey | None) -> Key:
        """The key that its decisions are marked with. `own` is the gateway's, which tenants' keys are derived from."""
        if self.key_file is not None:
            return load_key(self.key_file)
        if own is None:
            raise SettingError("key", f"tenant {self.name!r} has no key file, and there is no key to derive one from")
        return own.derive(self.name)

    def credential(self, environment: Mapping[str, str] = os.environ) -> str | None:
        """The credential for the upstream, read anew at each call so that it can be renewed; None if it has none."""
        if self.upstream_credential is None:
            return None
        kind, _, place = self.upstream_credential.partition(":")
        return _from_environment(place, environment) if kind == "env" else _from_file(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """What is kept of an API key: nothing that it could be made from again. Times are seconds since 1970."""

    id: str
    tenant: str
    created_at: float
    revoked_at: float | None = None


def new_api_key() -> tuple[str, str, bytes]:
    """An API key that is shown once, its public id, and the digest that is kept of it."""
    key_id, secret = secrets.token_hex(ID_SIZE), secrets.token_hex(SECRET_SIZE)
    text = f"{PREFIX}_{key_id}_{secret}"
    return text, key_id, api_key_digest(text)


def api_key_id(text: str) -> str | None:
    """The public id of an API key; None if it is not one of ours."""
    match = _API_KEY.fullmatch(text)
    return None if match is None else match[1]


def api_key_digest(text: str) -> bytes:
    """What is kept of an API key. A plain hash: 32 random bytes cannot be guessed, however fast one tries."""
    return hashlib.sha256(f"agentmark/1 api key {text}".encode()).digest()


def is_api_key(text: str, digest: bytes | None) -> bool:
    """Whether an API key has this digest. Takes as long if there is none to compare with."""
    kept = digest if digest is not None else bytes(hashlib.sha256().digest_size)
    return hmac.compare_digest(api_key_digest(text), kept) and digest is not None


def _check_reference(reference: str) -> None:
    # What was typed is never quoted: it may be the credential itself.
    kind, _, place = reference.partition(":")
    if kind == "env" and _ENVIRONMENT_NAME.fullmatch(place):
        return
    if kind == "file" and Path(place).is_absolute() and "\0" not in place:
        return
    raise SettingError(
        "upstream_credential", "is neither env:NAME nor file:/ABSOLUTE/PATH; a store never holds a credential itself"
    )


def _from_environment(name: str, environment: Mapping[str, str]) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise SettingError("upstream_credential", f"the environment variable {name} is not set")
    if not _is_one_line(value):
        raise SettingError("upstream_credential", f"the environment variable {name} does not hold one line of ASCII")
    return value


def _from_file(path: str) -> str:
    try:
        mode = Path(path).stat().st_mode
        content = read_small_file(path, MAX_CREDENTIAL_SIZE)
    except OSError as error:
        raise SettingError("upstream_credential", f"{path} cannot be read: {error.strerror}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise SettingError("upstream_credential", f"{path} can be read by others; it needs mode 0600")
    value = content.decode("utf-8", "replace").strip()
    if not _is_one_line(value):
        raise SettingError("upstream_credential", f"{path} does not hold one line of ASCII")
    return value


def _is_one_line(value: str) -> bool:
    """Whether it can stand in a header. What follows a line end there would be a header of its own."""
    return bool(value) and value.isascii() and value.isprintable()
