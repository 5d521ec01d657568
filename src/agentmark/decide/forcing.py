"""What each provider refused: learned from its first refusal, per upstream and model, and not tried again."""

import threading
from collections.abc import Iterable

from agentmark.decide.forks import renew_in_forks
from agentmark.wire.forcing import Rung

# Where a request goes, and the model that it names.
Upstream = tuple[str, str]

# A model that went its own way so often in a row is not instructed any more; nor one asked that gave no list so often.
MAX_FAILURES = 3

# Errors of the moment, or of the credentials: a changed request is not their cause.
_NOT_OURS = (401, 402, 407, 408, 409, 425, 429)
# Failures that may be refusals, if they speak of the choice.
_FAILURES = (500, 501)
# What clients call the errors of a connection, or the errors that these are kinds of.
_BROKEN = ("timeout", "connect", "transport", "network")
# What a provider speaks of when it refuses a forced choice.
_WORDS = (
    "tool_choice",
    "tool choice",
    "toolchoice",
    "forced",
    "thinking",
    "allowed_tools",
    "function_calling",
    "required",
)


class Refusals:
    """Which ways are left for an upstream. Thread-safe."""

    def __init__(self) -> None:
        self.renew()
        renew_in_forks(self)
        self._refused: dict[tuple[Upstream, str], str] = {}
        self._failures: dict[tuple[Upstream, str], int] = {}
        self._left_out: dict[Upstream, set[str]] = {}

    def renew(self) -> None:
        self._lock = threading.Lock()

    def rungs(self, upstream: Upstream) -> list[Rung]:
        """The ways of forcing that are left, the surest first."""
        with self._lock:
            return [rung for rung in Rung if (upstream, rung) not in self._refused]

    def is_refused(self, upstream: Upstream, what: str) -> bool:
        """Whether a rung, or another way of asking, was refused."""
        with self._lock:
            return (upstream, what) in self._refused

    def learn(self, upstream: Upstream, refused: Iterable[str], reason: str) -> None:
        """Remember rungs, or other ways of asking, that were refused."""
        with self._lock:
            self._refused |= {(upstream, what): reason for what in refused}

    def learned(self) -> dict[str, str]:
        """What was refused, and why, for people to read."""
        with self._lock:
            return {f"{host} {model}: {what}": why for ((host, model), what), why in self._refused.items()}

    def left_out(self, upstream: Upstream) -> set[str]:
        """What side calls to this upstream go without: kept by who makes them."""
        with self._lock:
            return self._left_out.setdefault(upstream, set())

    def count(self, upstream: Upstream, what: str, *, failed: bool) -> bool:
        """Note how an attempt went; True if it has failed too often in a row."""
        key = (upstream, what)
        with self._lock:
            self._failures[key] = self._failures.get(key, 0) + 1 if failed else 0
            return self._failures[key] >= MAX_FAILURES

    def is_given_up(self, upstream: Upstream, what: str) -> bool:
        with self._lock:
            return self._failures.get((upstream, what), 0) >= MAX_FAILURES


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error of any client speaks of."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code", "http_status"):
            value = getattr(holder, name, None)
            if type(value) is int and 100 <= value < 600:
                return value
    return None


def may_be_ours(error: Exception) -> bool:
    """Whether a changed request can be the cause of its error. If it can, the request is sent as the agent made it."""
    status = status_of(error)
    if status is not None and status >= 500:
        # Servers whose template for prompts knows no forced choice call that a failure of their own.
        return status in _FAILURES and speaks_of_the_choice(error)
    if status is not None:
        return status >= 400 and status not in _NOT_OURS
    # Without a status: a connection that broke is nobody's choice; what a library refuses to send may be ours.
    kinds = " ".join([kind.__name__.lower() for kind in type(error).__mro__])
    return not isinstance(error, OSError) and not any(word in kinds for word in _BROKEN)


def speaks_of_the_choice(error: Exception) -> bool:
    """Whether an error names what was changed: then the next way of forcing is worth a try."""
    said = f"{error} {getattr(error, 'body', '')} {getattr(error, 'message', '')}".lower()
    return any(word in said for word in _WORDS)
