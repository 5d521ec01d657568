"""Around a model's call: what its reply did is told to the decider, whatever becomes of the call."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from agentmark.decide.decider import Decider
from agentmark.decide.decision import Decision
from agentmark.wire.behaviors import what_was_done


class Reply:
    """The names of the tools that a reply calls; None until there is a reply."""

    calls: Sequence[str] | None = None


@contextmanager
def observed(decider: Decider, decision: Decision | None) -> Iterator[Reply]:
    """Set `calls` of what this yields once the reply is there. A call that fails has done nothing.

    Without a decision there is nothing to observe.
    """
    reply = Reply()
    try:
        yield reply
    finally:
        if decision is not None:
            observe(decider, decision, reply.calls)


def observe(decider: Decider, decision: Decision, calls: Sequence[str] | None) -> None:
    """Tell the decider what a reply did, from the names of the tools it calls; None if there was no reply."""
    done = None if calls is None else what_was_done(calls, decision.behavior)
    decider.observe(decision, done)
