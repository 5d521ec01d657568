"""Against whom a verdict in public mode holds, and on which conditions: one of two statements (spec, section 12.4)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import log2
from typing import Any

from agentmark.disclosure.tenants import Tenant, Tenants, parsed_time
from agentmark.errors import SettingError
from agentmark.keys.public import PublicKey
from agentmark.text import counted, listed

# In a sentence, key ids beyond this many are counted, not listed.
LISTED = 3


class Statement(StrEnum):
    """What is shown."""

    STRANGERS = "strangers and other tenants"
    CLAIMED_BY_HOLDER = "claimed by its holder"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicBasis:
    """The statement that a verdict rests on, and the public keys with which it was checked."""

    public_keys: tuple[PublicKey, ...]
    statement: Statement = Statement.STRANGERS
    # How many keys the claimant had on record: under each of them he would have claimed.
    keys_registered: int = 1
    # Whose the keys are, by a registry of public keys.
    tenants: tuple[Tenant, ...] = ()

    @classmethod
    def of(
        cls,
        public_keys: tuple[PublicKey, ...],
        *,
        claimed_by_holder: bool = False,
        keys_registered: int | None = None,
        registry: Tenants | None = None,
        drawn_from: datetime | None = None,
    ) -> "PublicBasis":
        """The basis of these keys. With a registry, a claim pays for every key that was on record when the first
        context was drawn (`drawn_from`; all, if that is not known), and a key that came later is refused, as is one
        that is in no registry: what was on record when, nothing else says."""
        found = [] if registry is None else [registry.with_key(key.id) for key in public_keys]
        tenants = tuple([tenant for tenant in found if tenant is not None])
        if not claimed_by_holder:
            return cls(public_keys=public_keys, keys_registered=len(public_keys), tenants=tenants)
        if drawn_from is not None and registry is None:
            raise SettingError(
                "drawn_from", "takes a registry of public keys, which says since when they are on record"
            )
        for key, tenant in zip(public_keys, found, strict=False):
            if tenant is None:
                raise SettingError(
                    "claimed_by_holder",
                    f"key {key.id} is not in the registry of public keys: who makes a key to fit a log can make one "
                    "that fits",
                )
        for tenant in tenants:
            if drawn_from is not None and parsed_time(tenant.registered_at) > drawn_from:
                raise SettingError(
                    "claimed_by_holder",
                    f"the key of {tenant.name!r} was registered at {tenant.registered_at}, after the contexts were "
                    "drawn: who makes a key to fit a log can make one that fits",
                )
        if keys_registered is None:
            keys_registered = len(public_keys) if registry is None else len(registry.registered_by(drawn_from))
        return cls(
            public_keys=public_keys,
            statement=Statement.CLAIMED_BY_HOLDER,
            keys_registered=keys_registered,
            tenants=tenants,
        )

    def __post_init__(self) -> None:
        if not self.public_keys:
            raise SettingError("public_key", "there must be at least one")
        if self.keys_registered < len(self.public_keys):
            raise SettingError(
                "keys_registered", f"{self.keys_registered} is less than the {len(self.public_keys)} keys given"
            )
        if self.statement is Statement.CLAIMED_BY_HOLDER and len(self.public_keys) > 1:
            # Each registered key is one try; each set of them would be one as well, and there are 2^N.
            raise SettingError(
                "claimed_by_holder",
                f"is a claim under one key, and {len(self.public_keys)} disclosed something: which of his keys a "
                "claimant hands in, nobody would pay for. Judge what each of them disclosed by itself",
            )
        if self.statement is Statement.STRANGERS and self.keys_registered > len(self.public_keys):
            raise SettingError("keys_registered", "is paid for by a holder who claims what others made")

    @property
    def tries(self) -> int:
        """How many questions are paid for, of which this is one."""
        return self.keys_registered if self.statement is Statement.CLAIMED_BY_HOLDER else 1

    @property
    def sentence(self) -> str:
        """What the verdict shows against whom, and what it does not."""
        keys = f"key {self._ids}" if len(self.public_keys) == 1 else f"keys {self._ids}"
        if self.statement is Statement.STRANGERS:
            return (
                f"Holds against everyone without the secret of {keys}, other tenants and those who know what was "
                "disclosed included, for records that were fixed before their contexts were disclosed; it shows "
                f"nothing against the holder of the key, who could have made them.{self._revoked}"
            )
        return (
            f"Holds against the holder of {keys} too, on three conditions that the files cannot show: others fixed "
            "contexts, lists and choices, and which key, scheme and length the records state, without the secret; the "
            "public key was on record before the contexts were drawn; nothing was added to the records or taken from "
            "them since, sessions included. "
            f"{counted(self.keys_registered, 'registered key')}: {log2(self.keys_registered):.1f} bits are paid, and "
            "all bits of a payload, whoever is claimed or registered."
            f"{self._revoked}"
        )

    @property
    def _ids(self) -> str:
        names = {tenant.public_key.id: f" of {tenant.name!r}" for tenant in self.tenants}
        return listed([f"{key.id}{names.get(key.id, '')}" for key in self.public_keys], LISTED)

    @property
    def _revoked(self) -> str:
        said = [
            f" The key of {each.name!r} was revoked at {each.revoked_at}." for each in self.tenants if each.revoked_at
        ]
        return "".join(said)

    def as_dict(self) -> dict[str, Any]:
        return {
            "statement": self.statement.value,
            "sentence": self.sentence,
            "keys_registered": self.keys_registered if self.statement is Statement.CLAIMED_BY_HOLDER else None,
            "public_keys": [
                {"id": key.id, "public_key": key.point.hex(), "fingerprint": key.fingerprint}
                for key in self.public_keys
            ],
            "tenants": [
                {
                    "name": tenant.name,
                    "key_id": tenant.public_key.id,
                    "registered_at": tenant.registered_at,
                    "revoked_at": tenant.revoked_at,
                }
                for tenant in self.tenants
            ],
        }
