"""No traffic while a command is fuzzed: every connection is refused before it is tried."""

import contextlib
import sys
from collections.abc import Iterator

_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.sendto")
_state = {"closed": False, "hooked": False}


def _refuse(event: str, _: object) -> None:
    if _state["closed"] and event in _EVENTS:
        raise ConnectionRefusedError(111, "Connection refused")


@contextlib.contextmanager
def no_network() -> Iterator[None]:
    """Refuse connections in this process, until the end of the block."""
    if not _state["hooked"]:
        # A hook stays for as long as the process does; it is idle outside of the block.
        sys.addaudithook(_refuse)
        _state["hooked"] = True
    _state["closed"] = True
    try:
        yield
    finally:
        _state["closed"] = False
