"""Against whom a verdict in public mode holds, and on which conditions: one of two statements (spec, section 12.4)."""

from dataclasses import dataclass
from enum import StrEnum
from math import log2
from typing import Any

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

    def __post_init__(self) -> None:
        if not self.public_keys:
            raise SettingError("public_key", "there must be at least one")
        if self.keys_registered < len(self.public_keys):
            raise SettingError(
                "keys_registered", f"{self.keys_registered} is less than the {len(self.public_keys)} keys given"
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
                "nothing against the holder of the key, who could have made them."
            )
        return (
            f"Holds against the holder of {keys} too, on three conditions that the files cannot show: others fixed "
            "contexts, lists and choices without the secret; the public key was on record before the contexts were "
            "drawn; nothing was added to the records or taken from them since. "
            f"{counted(self.keys_registered, 'registered key')}: {log2(self.keys_registered):.1f} bits are paid."
        )

    @property
    def _ids(self) -> str:
        return listed([key.id for key in self.public_keys], LISTED)

    def as_dict(self) -> dict[str, Any]:
        return {
            "statement": self.statement.value,
            "sentence": self.sentence,
            "keys_registered": self.keys_registered if self.statement is Statement.CLAIMED_BY_HOLDER else None,
            "public_keys": [
                {"id": key.id, "public_key": key.point.hex(), "fingerprint": key.fingerprint}
                for key in self.public_keys
            ],
        }
