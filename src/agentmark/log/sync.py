"""When a log is forced onto the disk. A killed process loses nothing either way, a power cut what is not there."""

import os
import time
from collections.abc import Callable
from typing import Literal

from agentmark.errors import SettingError

Fsync = Literal["never", "always", "interval"]


class Syncer:
    """Calls fsync as the policy says: `interval` at the first write after so many seconds or records, and at close."""

    def __init__(
        self,
        policy: Fsync = "never",
        *,
        every_s: float = 1.0,
        every_records: int = 1000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if policy not in ("never", "always", "interval"):
            raise SettingError("fsync", f"{policy!r} is none of 'never', 'always', 'interval'")
        if every_s < 0 or every_records < 1:
            raise SettingError("fsync", f"every {every_s} s or {every_records} records is not an interval")
        self.policy = policy
        self._every_s = every_s
        self._every_records = every_records
        self._clock = clock
        self._synced_at = clock()
        self._waiting = 0

    def wrote(self, *descriptors: int) -> None:
        """Call it after each record, with the files that it is in; they are forced onto the disk in this order."""
        self._waiting += 1
        if self.policy == "always" or (self.policy == "interval" and self._is_due()):
            self._sync(descriptors)

    def finish(self, *descriptors: int) -> None:
        """Call it before the files are closed or put aside."""
        if self.policy != "never" and self._waiting:
            self._sync(descriptors)

    def _is_due(self) -> bool:
        return self._waiting >= self._every_records or self._clock() - self._synced_at >= self._every_s

    def _sync(self, descriptors: tuple[int, ...]) -> None:
        for descriptor in descriptors:
            os.fsync(descriptor)
        self._waiting = 0
        self._synced_at = self._clock()


def new_syncer(fsync: bool | Fsync | Syncer) -> Syncer:
    """The policy that a writer was asked for; True and False stand for always and never."""
    if isinstance(fsync, Syncer):
        return fsync
    return Syncer(fsync if isinstance(fsync, str) else "always" if fsync else "never")
