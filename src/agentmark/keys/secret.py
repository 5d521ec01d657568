"""What shared keys and signing keys have in common: 32 random bytes that show nowhere but in their owner's file."""

import json
import os
import re
import shlex
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from agentmark.core.errors import AgentMarkError
from agentmark.core.strict_json import StrictJsonError, parse_json

KEY_SIZE = 32
# 32 random bytes hold about 30 distinct values; fewer than this happens by chance less than once in 10^12 keys.
MIN_DISTINCT_BYTES = 18
# A key file has some 120 bytes.
MAX_KEY_FILE_SIZE = 1 << 16
# Digits that may be a secret, or most of one that was cut when it was copied. Key ids and sessions are shorter.
SECRET_LIKE = re.compile("[0-9A-Fa-f]{48,}")
# User and password in a URL; also in one that was taken for a path, which has one slash the less.
_USER_AND_PASSWORD = re.compile(r"(?<=:)(//?)[^\s/@:]*:[^\s/@]*@")

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


def without_secrets(text: str) -> str:
    """The text of an error without what may be a secret: one that was typed where a file, a name or a number goes."""
    text = _USER_AND_PASSWORD.sub(r"\1", text)
    return SECRET_LIKE.sub(lambda digits: f"({len(digits[0])} hex digits, not shown)", text)


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
            data = file.read(MAX_KEY_FILE_SIZE + 1)
            # What is no key at all, such as a log in the place of one, is told so by whoever parses it.
            if os.name == "posix" and mode & 0o077 and b'"secret"' in data:
                shown = f"{stat.S_IMODE(mode):04o}"
                raise error(source, f"can be read by others (mode {shown}); run `chmod 600 {shlex.quote(source)}`")
    except OSError as fault:
        raise error(source, f"cannot be read: {fault.strerror}") from None
    except ValueError as fault:
        if isinstance(fault, AgentMarkError):
            raise
        raise error(source, "is not a name that a file can have") from None
    if len(data) > MAX_KEY_FILE_SIZE:
        raise error(source, f"is larger than {MAX_KEY_FILE_SIZE:,} bytes, which no key file is")
    return data


def write_private(path: str | os.PathLike[str], content: Mapping[str, Any], error: Refusal) -> None:
    """A new file of JSON with mode 0600. An existing file is never overwritten."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise error(str(path), "exists already; choose another name") from None
    except OSError as fault:
        raise error(str(path), f"cannot be written: {fault.strerror}") from None
    except ValueError:
        raise error(str(path), "is not a name that a file can have") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(content) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as fault:
        # Half a key is no key, and its name must be free for the next try.
        Path(path).unlink(missing_ok=True)
        raise error(str(path), f"cannot be written: {fault.strerror}") from None


def json_or_none(data: bytes) -> Any:
    """Parsed, or None: what a key file holds is never part of an error."""
    try:
        return parse_json(data)
    except StrictJsonError:
        return None
