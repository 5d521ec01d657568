"""An expert that knows the calls a task takes: for benchmarks that come with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A call of the ground truth: whose it is, what to send, and what came back when the ground truth was played."""

    function: str
    call: Any
    reply: str


class Script:
    """The planned calls that are still to be made, in their order."""

    def __init__(self, calls: Sequence[Planned]) -> None:
        self._left = list(calls)

    @property
    def next(self) -> Planned | None:
        return self._left[0] if self._left else None

    def planned(self, function: str) -> Planned | None:
        """The first call of this function that is still to be made, also if it is not its turn yet."""
        return next((planned for planned in self._left if planned.function == function), None)

    def made(self, planned: Planned, reply: str) -> None:
        """Cross a call out. One made before its turn counts only if it was answered as in the ground truth."""
        if planned is self.next or planned.reply == reply:
            self._left.remove(planned)
