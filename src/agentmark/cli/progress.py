"""How far a command is: one line on standard error that is rewritten in place, where somebody watches a terminal."""

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from agentmark.cli.common import printable, show_progress
from agentmark.cli.streams import unguarded

# Nobody reads faster than this, and what is done sooner needs no line.
PAUSE_S = 0.1
# Before so long, how long the rest will take is a guess.
SETTLED_S = 1.0
DEFAULT_WIDTH = 80
BAR_WIDTH = 10
# What is counted in bytes is shown in larger units.
BYTES_READ = "bytes read"


class ProgressLine:
    """`agentmark.audit.progress.Progress` for a terminal. Leaving it as a context manager takes the line away.

    Where standard error is no terminal, counting is silent and only `say` is heard: a file needs no moving line.
    """

    def __init__(self, stream: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = unguarded(sys.stderr if stream is None else stream)
        self._clock = clock
        self._watched = _is_terminal(self._stream)
        self._what = ""
        self._began = self._told = clock()
        self._first = 0
        self._shown = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def say(self, message: str) -> None:
        """A line that stays."""
        self.clear()
        show_progress(message)

    def count(self, done: int, total: int | None, what: str) -> None:
        """So many of these are done; `total` is None while nobody knows it."""
        if not self._watched:
            return
        now = self._clock()
        if what != self._what:
            self._what, self._began, self._first = what, now, done
        if now - self._told < PAUSE_S:
            return
        self._told = now
        self._show(self._worded(done, total, now - self._began))

    def bar(self, done: int, total: int, what: str, *, steps: int | None = None) -> None:
        """So much of a whole is done. `steps` are the records in it so far, since this began to be told."""
        if not self._watched:
            return
        now = self._clock()
        if what != self._what:
            self._what, self._began, self._first = what, now, done
        if now - self._told < PAUSE_S:
            return
        self._told = now
        self._show(self._drawn(done, total, now - self._began, steps))

    def clear(self) -> None:
        """Take the line away, so that a result can stand in its place."""
        if self._shown:
            self._write("\r" + " " * self._shown + "\r")
            self._shown = 0

    def _worded(self, done: int, total: int | None, elapsed: float) -> str:
        words = f"... {done:,}" if total is None else f"... {done:,} of {total:,}"
        words += f" {printable(self._what)}"
        rate = (done - self._first) / elapsed if elapsed > 0 else 0.0
        if elapsed < SETTLED_S or rate <= 0:
            return words
        words += f", {rate:,.0f} a second" if rate >= 1 else f", {1 / rate:,.0f} s each"
        return words if total is None or done >= total else f"{words}, {_duration((total - done) / rate)} left"

    def _drawn(self, done: int, total: int, elapsed: float, steps: int | None) -> str:
        share = min(1.0, done / total) if total else 1.0
        full = int(BAR_WIDTH * share)
        words = f"[{'#' * full}{'.' * (BAR_WIDTH - full)}] {100 * share:3.0f} %  "
        told = (_size(done), _size(total)) if self._what == BYTES_READ else (f"{done:,}", f"{total:,}")
        words += f"{told[0]} of {told[1]} {printable(self._what).removeprefix('bytes ')}"
        if elapsed < SETTLED_S:
            return words
        if steps:
            words += f", {steps / elapsed:,.0f} steps/s"
        elif done > self._first:
            words += f", {(done - self._first) / elapsed:,.0f} a second"
        rate = (done - self._first) / elapsed
        return words if done >= total or rate <= 0 else f"{words}, {_duration((total - done) / rate)} left"

    def _show(self, words: str) -> None:
        # The last column is left free: writing there makes some terminals begin a new line.
        words = words[: max(1, _width(self._stream) - 1)]
        self._write("\r" + words.ljust(self._shown))
        self._shown = len(words)

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()


def _size(count: int) -> str:
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def _duration(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole / 3600:.1f} h"


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _width(stream: TextIO | None) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH if stream is not None else DEFAULT_WIDTH
    except (OSError, ValueError):
        return DEFAULT_WIDTH
