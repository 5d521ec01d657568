"""Locks and threads do not survive a fork: a lock may be held for ever in the child, a thread is not there at all."""

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """Something that holds locks or threads."""

    def renew(self) -> None:
        """Begin with fresh ones. Called in a forked child, before anything else runs in it."""


_holders: "WeakSet[Renewable]" = WeakSet()


def renew_in_forks(holder: Renewable) -> None:
    """See to it that the holder is renewed in every child of this process, as long as it lives."""
    _holders.add(holder)


def _renew_all() -> None:
    for holder in list(_holders):
        holder.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
