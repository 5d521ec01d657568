"""What was decided, and in which run."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentmark.elicit.situation import Elicitation
from agentmark.embed.session import Session
from agentmark.record import StepRecord


@dataclass(slots=True)
class Run:
    """One run of an agent: a session of its own, and what must be remembered until its next step."""

    session: Session
    # What every record of this run says of it, beside what the decider says.
    meta: Mapping[str, Any] = field(default_factory=dict)
    # Whether somebody named this run. One that nobody named may be many at once, of which nothing can be remembered.
    is_named: bool = False
    # Decisions by the digest of the conversation that they were made from: the next request shows what became of them.
    made: "OrderedDict[bytes, Made]" = field(default_factory=OrderedDict, repr=False)
    # Decisions whose model call failed, by the digest of their situation: who tries again does not decide again.
    failed: "dict[bytes, list[Decision]]" = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do next. `behavior` is None when no usable list could be had: the agent then decides for itself."""

    behavior: str | None
    elicitation: Elicitation
    # The record that was logged; None while nothing has been decided.
    record: StepRecord | None
    run: Run = field(repr=False, compare=False)
    # What could have been done, by name.
    names: tuple[str, ...] = ()
    # With proposals: the reply to go on with. It does what was decided.
    reply: Any = field(default=None, repr=False)
    # What every record of this step says beside its elicitation.
    meta: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def marked(self) -> bool:
        return self.record is not None and self.record.marked

    @property
    def arguments(self) -> Any:
        """The chosen behavior's arguments, where the elicitor asked for them in the same call."""
        stated = self.elicitation.arguments
        return None if stated is None or self.behavior is None else stated.get(self.behavior)


@dataclass(slots=True)
class Made:
    """What was decided from one conversation: the last decision, until it was seen what became of it, and every
    behavior that was chosen there."""

    last: Decision | None = None
    behaviors: set[str] = field(default_factory=set)
