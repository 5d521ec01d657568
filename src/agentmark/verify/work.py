"""A meter of work. Whoever makes a log decides how hard it is to search; the meter decides how long we do.

Work is counted in operations, each about a microsecond of one core (`core/costs.py`), never in seconds: the same log
gives the same verdict on any machine. Cutting a search short costs power and nothing else. A candidate is judged with
the price of all that could have been named, however it was found and whatever was left untried.
"""

from collections.abc import Iterable
from math import ceil

from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.errors import SettingError

# What reading may spend for each byte of the log on disk. A record of R costs less than this per byte of its line, so
# that a log that is not packed is read in full, however long it is.
READ_PER_BYTE = 3.0


class Work:
    """What has been spent of a limit, and whether something was left undone for it."""

    __slots__ = ("_needed", "_spent", "limit")

    def __init__(self, limit: float = DEFAULT_WORK_LIMIT) -> None:
        self.limit = limit
        self._spent = 0.0
        self._needed: float | None = None

    @property
    def spent(self) -> int:
        """Operations so far."""
        return ceil(self._spent)

    @property
    def left(self) -> float:
        return max(self.limit - self._spent, 0.0)

    @property
    def cut_short(self) -> bool:
        """Whether something was refused."""
        return self._needed is not None

    @property
    def needed(self) -> float | None:
        """The limit under which the cheapest thing that was refused would have been done."""
        return self._needed

    def take(self, operations: float) -> bool:
        """Spend so much if it is left; False, and remembered, if it is not."""
        if self._spent + operations > self.limit:
            self.refuse(operations)
            return False
        self._spent += operations
        return True

    def take_each(self, operations: Iterable[float]) -> list[bool]:
        """`take` for each of these, one after the other: which were done."""
        return [self.take(some) for some in operations]

    def spend(self, operations: float) -> None:
        """What is done in any case: it is bounded by the size of the log, and its price is due all the same."""
        self._spent += operations

    def share(self, part: float) -> "Work":
        """A meter of its own for something that may take this part of the limit; what it spent is to be spent here."""
        return Work(min(part * self.limit, self.left))

    def refuse(self, operations: float) -> None:
        """Something that would have cost so much is left undone."""
        total = self._spent + operations
        self._needed = total if self._needed is None else min(self._needed, total)


def check_work_limit(work_limit: int) -> int:
    """A limit that somebody set; zero would be a verdict that has not looked."""
    if isinstance(work_limit, bool) or not isinstance(work_limit, int) or work_limit < 1:
        raise SettingError("work_limit", f"{work_limit!r} is not a number of operations")
    return work_limit


def reading_work(work_limit: int, size_on_disk: int) -> Work:
    """The meter for reading a log of so many bytes."""
    return Work(max(work_limit, READ_PER_BYTE * size_on_disk))
