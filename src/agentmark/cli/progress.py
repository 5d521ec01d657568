"""How far a command is: a line that is rewritten in place, for people who watch."""

import sys

from agentmark.cli.common import printable, show_progress

CLEARED = "\r\x1b[K"


class ProgressLine:
    """A `Progress` on standard error. Counts are shown on a terminal alone, where a line can be rewritten."""

    def __init__(self) -> None:
        self._on_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shown = False

    def say(self, message: str) -> None:
        self.clear()
        show_progress(message)

    def count(self, done: int, total: int | None, what: str) -> None:
        if self._on_terminal:
            share = f"{done:,}" if total is None else f"{done:,} of {total:,}"
            print(f"\r... {printable(f'{share} {what}')}\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            print(CLEARED, end="", file=sys.stderr, flush=True)
            self._shown = False
