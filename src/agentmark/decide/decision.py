"""What was decided, and in which run."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentmark.elicit.situation import Elicitation
from agentmark.embed.session import Session
from agentmark.record import StepRecord

# Conversations of a run whose decisions are remembered until it is seen what became of them.
MAX_REMEMBERED = 128


@dataclass(slots=True)
class Made:
    """What was decided from one conversation: the last decision, until it was seen what became of it, and every
    behavior that was chosen there."""

    last: "Decision | None" = None
    behaviors: set[str] = field(default_factory=set)


class Memory:
    """What a run remembers of its decisions: here in memory. The gateway, which has several workers and is restarted,
    has one that its store serves."""

    def __init__(self) -> None:
        # By the digest of the conversation that they were made from: the next request shows what became of them.
        self.made: OrderedDict[bytes, Made] = OrderedDict()
        # Decisions whose model call failed, by the digest of their situation: who tries again does not decide again.
        self.failed: dict[bytes, list[Decision]] = {}

    def made_at(self, place: bytes) -> Made | None:
        """What was decided from a conversation."""
        return self.made.get(place)

    def remember_made(self, place: bytes, decision: "Decision") -> None:
        """Several conversations of one run may begin alike: then any of the choices made there may be what one
        shows."""
        made = self.made.setdefault(place, Made())
        made.last = decision.lightened()
        if decision.behavior is not None:
            made.behaviors.add(decision.behavior)
        self.made.move_to_end(place)
        while len(self.made) > MAX_REMEMBERED:
            self.made.popitem(last=False)

    def remember_failed(self, situation: bytes, decision: "Decision") -> None:
        """The call of this decision failed, or was given up."""
        self.failed.setdefault(situation, []).append(decision)

    def take_failed(self, situation: bytes) -> "Decision | None":
        """A decision for the same situation whose call failed: this is its retry."""
        waiting = self.failed.get(situation)
        return waiting.pop() if waiting else None

    def forget_failed(self, *, but: bytes | None = None) -> "list[Decision]":
        """Decisions that nobody tried again, those for one situation left out. They are not remembered any more."""
        forgotten: list[Decision] = []
        for situation in [situation for situation in list(self.failed) if situation != but]:
            forgotten += self.failed.pop(situation, ())
        return forgotten


@dataclass(slots=True)
class Run:
    """One run of an agent: a session of its own, and what must be remembered until its next step."""

    session: Session
    # What every record of this run says of it, beside what the decider says.
    meta: Mapping[str, Any] = field(default_factory=dict)
    # Whether somebody named this run. One that nobody named may be many at once, of which nothing can be remembered.
    is_named: bool = False
    memory: Memory = field(default_factory=Memory, repr=False)
    # What the contexts of this run bind beside session and step.
    context: Mapping[str, object] | None = None


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

    def lightened(self) -> "Decision":
        """Without the replies: thousands of runs are remembered, and a reply may be long."""
        said = self.elicitation
        lighter = replace(said, proposals=None if said.proposals is None else (), replies=(), arguments=None)
        return replace(self, elicitation=lighter, reply=None)
