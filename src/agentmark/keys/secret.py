"""What shared keys and signing keys have in common: 32 random bytes that show nowhere but in their owner's file."""

import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from agentmark.core.errors import AgentMarkError
from agentmark.core.strict_json import StrictJsonError, parse_json

KEY_SIZE = 32
# 32 random bytes hold about 30 distinct values; fewer than this happens by chance less than once in 10^12 keys.
MIN_DISTINCT_BYTES = 18

# The error of a kind of key, made from its source and its fault.
Refusal = Callable[[str, str], AgentMarkError]


class Secret:
    """Immutable once made, and never pickled."""

    __slots__ = ("_secret",)

    _secret: bytes

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot set {name}")

    def __getstate__(self) -> NoReturn:
        self.__reduce__()

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(
            f"{kind} is not pickled, so that it never reaches a file or a queue; load it where it is needed"
        )


def weakness(secret: object) -> str | None:
    """Why these cannot be 32 random bytes, or None."""
    if not isinstance(secret, (bytes, bytearray)):
        return f"is {type(secret).__name__}, not bytes"
    if len(secret) != KEY_SIZE:
        return f"has {len(secret)} bytes, not exactly {KEY_SIZE} random ones"
    if all(0x20 <= byte < 0x7F for byte in secret):
        return "is typed text, not random bytes"
    if len(set(secret)) < MIN_DISTINCT_BYTES:
        return "repeats a few bytes"
    return None


def read_private(path: Path, error: Refusal) -> bytes:
    """The content of a file that is its owner's alone; anything else is refused."""
    source = str(path)
    try:
        # Without waiting for a writer, should the path be a pipe.
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            # The file that was opened is the one that is judged: no second look at the path.
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise error(source, "is not a regular file")
            if os.name == "posix" and mode & 0o077:
                shown = f"{stat.S_IMODE(mode):04o}"
                raise error(source, f"can be read by others (mode {shown}); run `chmod 600 {source}`")
            return file.read()
    except OSError as fault:
        raise error(source, f"cannot be read: {fault.strerror}") from None


def write_private(path: str | os.PathLike[str], content: Mapping[str, Any], error: Refusal) -> None:
    """A new file of JSON with mode 0600. An existing file is never overwritten."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise error(str(path), "exists already; choose another name") from None
    except OSError as fault:
        raise error(str(path), f"cannot be written: {fault.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(content) + "\n")
        file.flush()
        os.fsync(file.fileno())


def json_or_none(data: bytes) -> Any:
    """Parsed, or None: what a key file holds is never part of an error."""
    try:
        return parse_json(data)
    except StrictJsonError:
        return None
