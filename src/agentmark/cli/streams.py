"""Standard output and standard error as every command gets them: nothing that is written there steers a terminal."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from agentmark.text import spelled_out

# What an error calls it that came from writing to it.
OUTPUT = "output"


class SafeStream:
    """A stream of text that spells out what does not print, and what its encoding does not have.

    A last line of defence, so that no command can forget: it cannot know which ends of lines are the command's own.
    Text of others goes through `printable` before it becomes part of a line.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        shown = spelled_out(text, keep="\n")
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        with _named():
            return self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))

    def flush(self) -> None:
        with _named():
            self._stream.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def unguarded(self) -> IO[str]:
        """The stream itself."""
        return self._stream


def unguarded(stream: Any) -> Any:
    """The stream behind a safe one, for a line of our own that is rewritten in place."""
    return stream.unguarded if isinstance(stream, SafeStream) else stream


@contextmanager
def _named() -> Iterator[None]:
    """A full disk is told with what could not be written. That the reader has gone is another matter."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, OUTPUT) from None


@contextmanager
def safe_streams() -> Iterator[None]:
    """Inside, `print` and `sys.stderr` write through safe streams. One that was closed at the start stays so."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(Any, stream and SafeStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
