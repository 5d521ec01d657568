"""Keys for a process that this one starts: through the pipe that starts it, and by no other way."""

from collections.abc import Sequence
from multiprocessing.context import assert_spawning

from agentmark.keys.shared import SharedKey


class HandedKeys:
    """Keys that can be given to a new process as an argument. Anywhere else they refuse to be pickled, as a key does:
    no file and no queue sees them."""

    def __init__(self, keys: Sequence[SharedKey]) -> None:
        self.keys = tuple(keys)

    def __getstate__(self) -> list[bytes]:
        assert_spawning(self)
        return [key._secret for key in self.keys]

    def __setstate__(self, secrets: list[bytes]) -> None:
        self.keys = tuple([SharedKey(secret, source="parent process") for secret in secrets])
