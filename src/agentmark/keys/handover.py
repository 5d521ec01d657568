"""Keys for a process that this one starts: through the pipe that starts it, and by no other way."""

from collections.abc import Sequence
from multiprocessing.context import assert_spawning

from agentmark.keys.key import Key
from agentmark.keys.secret import Secret
from agentmark.keys.shared import SharedKey


class HandedKeys:
    """Keys that can be given to a new process as an argument. Anywhere else they refuse to be pickled, as a key does:
    no file and no queue sees them."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys = tuple(keys)

    def __getstate__(self) -> list[tuple[bool, bytes]]:
        assert_spawning(self)
        return [(isinstance(key, SharedKey), key._secret) for key in self.keys if isinstance(key, Secret)]

    def __setstate__(self, secrets: list[tuple[bool, bytes]]) -> None:
        self.keys = tuple([_key(secret, is_shared=is_shared) for is_shared, secret in secrets])


def _key(secret: bytes, *, is_shared: bool) -> Key:
    if is_shared:
        return SharedKey(secret, source="parent process")
    from agentmark.keys.marking import MarkingKey

    return MarkingKey(secret, source="parent process")
