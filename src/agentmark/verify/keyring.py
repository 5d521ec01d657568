"""Which key reads which record."""

from collections.abc import Iterable
from copy import copy
from hashlib import blake2b

from agentmark.core.prf import DIGEST_SIZE
from agentmark.disclosure.check import DisclosedSteps
from agentmark.errors import SettingError
from agentmark.keys.key import Key
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord

KEYRING_CHECK = b"agentmark/1 keyring check"
CHECK_SIZE = 16
# No context has this digest: those are hashes under a label of their own.
SEAL_CONTEXT = blake2b(b"agentmark/1 keyring seal", digest_size=DIGEST_SIZE).digest()
SEAL_SIZE = 32


# What reads records: a key with its secret, or what its holder disclosed.
AnyKey = Key | DisclosedSteps


class Keyring:
    """The keys of one question. Each record is read with the key it names, or all with one key."""

    def __init__(self, keys: AnyKey | Iterable[AnyKey], *, any_key_id: bool = False) -> None:
        """`any_key_id` reads every record with the one key given, for logs whose key ids were altered or lost."""
        held = list(keys) if isinstance(keys, Iterable) else [keys]
        if not held:
            raise SettingError("key", "a verifier needs at least one")
        if any_key_id and len(held) > 1:
            raise SettingError("any_key_id", "reads all records with one key; pass exactly one")
        if any_key_id and isinstance(held[0], DisclosedSteps):
            raise SettingError("any_key_id", "a disclosure proves records with the key id that they state")
        self._by_id: dict[str, AnyKey] = {key.id: key for key in held}
        self._any_key: AnyKey | None = held[0] if any_key_id else None

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the keys, in the order given."""
        return tuple(self._by_id)

    def key_for(self, record: StepRecord) -> AnyKey | None:
        """None for a record of another key: its randomness is not ours to recompute."""
        return self.key_of(record.key_id)

    def key_of(self, key_id: str) -> AnyKey | None:
        """The key that reads the records that name this one."""
        return self._any_key or self._by_id.get(key_id)

    @property
    def disclosed(self) -> frozenset[str]:
        """The ids of the keys that are read by what their holders disclosed."""
        return frozenset([key_id for key_id, key in self._by_id.items() if isinstance(key, DisclosedSteps)])

    def is_disclosed(self, record: StepRecord) -> bool:
        """Whether the record is read by what its key's holder disclosed."""
        return isinstance(self.key_for(record), DisclosedSteps)

    def strangers(self) -> "Keyring":
        """Fresh random keys in place of these: what they find in a log is what a stranger's key finds in it. Shared
        keys serve for marking keys too: a step key of either is 32 bytes that nobody foresees."""
        twin = copy(self)
        twin._by_id = {key_id: SharedKey.generate() for key_id in self._by_id}
        twin._any_key = SharedKey.generate() if self._any_key is not None else None
        return twin

    @property
    def check(self) -> bytes:
        """A value that only the same keys have, and that says nothing of them: what was read with others shows."""
        state = blake2b(KEYRING_CHECK + b"\0", digest_size=CHECK_SIZE)
        for key_id, key in sorted(self._by_id.items()):
            state.update(key_id.encode("utf-8") + b"\0" + _check_value(key))
        if self._any_key is not None:
            state.update(b"any key id\0" + _check_value(self._any_key))
        return state.digest()

    def seal(self, data: bytes) -> bytes:
        """A tag on bytes: whoever does not hold these keys can neither make one nor alter what it stands on."""
        sealing = blake2b(KEYRING_CHECK + b"\0", digest_size=DIGEST_SIZE)
        for _, key in sorted(self._by_id.items()):
            if isinstance(key, DisclosedSteps):
                raise SettingError("keys", "a disclosure holds no secret, and seals nothing")
            sealing.update(key.step_key(SEAL_CONTEXT, 0))
        return blake2b(data, key=sealing.digest(), digest_size=SEAL_SIZE).digest()


def _check_value(key: AnyKey) -> bytes:
    return key.check if isinstance(key, DisclosedSteps) else key.step_key(bytes(DIGEST_SIZE), 0)
