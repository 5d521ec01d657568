"""One session for each run of the agent, however many go on at once."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from agentmark.decide.decision import Run
from agentmark.decide.forks import renew_in_forks
from agentmark.elicit.situation import one_line
from agentmark.embed.session import Session

# Runs that are remembered. One that was forgotten goes on as a new session: that costs nothing but its memory.
MAX_RUNS = 4096

# Documented names in `meta`: who did it, for whom, and in which run of the agent.
PERFORMED_BY, ON_BEHALF_OF, RUN_ID = "performed_by", "on_behalf_of", "run_id"


class Runs:
    """Runs by the id that the agent's framework gives them. Thread-safe.

    The id goes into the records' `meta`. It does not name the session: ids come back (a thread is resumed, a process
    starts anew), and a context must not (law L4).
    """

    def __init__(self, unnamed: Session, new_session: Callable[[], Session], *, most: int = MAX_RUNS) -> None:
        self.unnamed = Run(unnamed)
        self._new_session = new_session
        self._most = most
        self._named: OrderedDict[str, Run] = OrderedDict()
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        self._lock = threading.Lock()

    def get(self, run_id: str | None) -> tuple[Run, Run | None]:
        """The run of this id, begun if it is new; without one, the run of whatever was not told apart. With it, the
        run that had to be forgotten for it, if any."""
        if run_id is None:
            return self.unnamed, None
        with self._lock:
            run = self._named.get(run_id)
            if run is not None:
                self._named.move_to_end(run_id)
                return run, None
            run = Run(self._new_session(), {RUN_ID: one_line(str(run_id))}, is_named=True)
            self._named[run_id] = run
            is_full = len(self._named) > self._most
            return run, self._named.popitem(last=False)[1] if is_full else None

    def open(self) -> list[Run]:
        """Every run that is remembered."""
        with self._lock:
            return [self.unnamed, *self._named.values()]
