"""How the keys come to the workers of a cluster. A `SharedKey` is not pickled, so what travels says where to find it.

    KeyFiles("/etc/agentmark/key.json")   each worker reads the file: a mounted secret, mode 0600
    KeyVariables("AGENTMARK_KEY")         each worker reads a variable that its operator set
    CarriedKeys(key)                      the secret itself travels in the engine's own messages

With the first two no secret leaves the machines that were given it. The third asks nothing of the workers, and hands
the key to whoever runs the cluster: see docs/scale.md.
"""

from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from typing import Any, Protocol

from agentmark.errors import SettingError
from agentmark.keys.environment import ENVIRONMENT_VARIABLE
from agentmark.keys.shared import SharedKey
from agentmark.verify.keyring import Keyring


class WorkerKeys(Protocol):
    """Travels to the workers, and is the keys there."""

    @property
    def any_key_id(self) -> bool:
        """Whether every record is read with the one key, whatever it states."""

    def keys(self) -> Sequence[SharedKey]:
        """The keys, loaded where this is called."""


class KeyFiles:
    """Key files that every worker, and the driver, find at the same path."""

    def __init__(self, *paths: str | PathLike[str], any_key_id: bool = False) -> None:
        self._paths = tuple([fspath(path) for path in paths])
        self.any_key_id = any_key_id

    def keys(self) -> Sequence[SharedKey]:
        return [SharedKey.load(path) for path in self._paths]

    def __repr__(self) -> str:
        return f"KeyFiles({', '.join(map(repr, self._paths))})"


class KeyVariables:
    """Environment variables that every worker, and the driver, have."""

    def __init__(self, *names: str, any_key_id: bool = False) -> None:
        self._names = names or (ENVIRONMENT_VARIABLE,)
        self.any_key_id = any_key_id

    def keys(self) -> Sequence[SharedKey]:
        return [SharedKey.from_environment(name) for name in self._names]

    def __repr__(self) -> str:
        return f"KeyVariables({', '.join(map(repr, self._names))})"


class CarriedKeys:
    """Keys that travel in what the engine sends to its workers. Nothing prints them; the engine may store them."""

    def __init__(self, keys: SharedKey | Iterable[SharedKey], *, any_key_id: bool = False) -> None:
        self._keys = (keys,) if isinstance(keys, SharedKey) else tuple(keys)
        self.any_key_id = any_key_id

    def keys(self) -> Sequence[SharedKey]:
        return self._keys

    def __reduce__(self) -> tuple[Any, ...]:
        # The one place where a secret is put into a message, because whoever wrote `CarriedKeys` asked for it.
        return _carried, (tuple([key._secret for key in self._keys]), self.any_key_id)

    def __repr__(self) -> str:
        return f"CarriedKeys({', '.join([repr(key.id) for key in self._keys])})"


def _carried(secrets: tuple[bytes, ...], any_key_id: bool) -> CarriedKeys:
    return CarriedKeys([SharedKey(secret, source="carried") for secret in secrets], any_key_id=any_key_id)


def keyring_of(keys: WorkerKeys) -> Keyring:
    """The keyring, where this is called."""
    return Keyring(keys.keys(), any_key_id=keys.any_key_id)


def check_worker_keys(keys: object) -> None:
    """A bare key is refused: that it leaves this machine is said by whoever hands it over."""
    if isinstance(keys, SharedKey | Keyring):
        raise SettingError(
            "keys", "say how they come to the workers: KeyFiles(path), KeyVariables(name) or CarriedKeys(key)"
        )
