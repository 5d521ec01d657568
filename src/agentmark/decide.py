"""The decider: elicitor, session and log in one object. Every adapter is a thin shell on it.

decision = decider.decide(tools, messages)     # or: await decider.adecide(...)
...                                            # do decision.behavior (None: decide as you would without AgentMark)
decider.observe(decision, what_was_done)
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from agentmark.core.distribution import Rational
from agentmark.core.errors import DistributionError
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.situation import Candidates, Elicitation, Elicitor, Message, Situation, one_line
from agentmark.embed.embedder import Embedder
from agentmark.embed.session import Session
from agentmark.errors import SettingError
from agentmark.log.jsonl import LogWriter
from agentmark.log.sink import Sink
from agentmark.record import StepRecord

# A decision among one candidate needs no model.
ONLY_CANDIDATE = "only candidate"
# What a log calls a behavior that was not among the candidates.
OTHER = "(other)"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do next. `behavior` is None when no usable list could be had: the agent then decides for itself."""

    behavior: str | None
    elicitation: Elicitation
    # The record that was logged; None while nothing has been decided.
    record: StepRecord | None
    # What could have been done, by name.
    names: tuple[str, ...] = ()

    @property
    def marked(self) -> bool:
        return self.record is not None and self.record.marked

    @property
    def arguments(self) -> Any:
        """The chosen behavior's arguments, where the elicitor asked for them in the same call."""
        stated = self.elicitation.arguments
        return None if stated is None or self.behavior is None else stated.get(self.behavior)


class Decider:
    """Decides for an agent, one step after the other. Thread-safe, as its session is."""

    def __init__(
        self,
        marker: Embedder | Session,
        elicitor: Elicitor,
        log: Sink | str | Path | None = None,
        *,
        fail: Literal["open", "closed"] = "open",
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """`log` is a sink, or the path of a JSONL log. When no list can be had, fail `open` leaves the decision to the
        agent, unmarked and logged as such by `observe`; fail `closed` raises `ElicitationError`. `meta` goes into
        every record.
        """
        if fail not in ("open", "closed"):
            raise SettingError("fail", f"{fail!r} is neither 'open' nor 'closed'")
        self.session = marker.session() if isinstance(marker, Embedder) else marker
        self.elicitor = elicitor
        self._owns_log = isinstance(log, str | Path)
        self.log: Sink | None = LogWriter(log) if isinstance(log, str | Path) else log
        self._fail = fail
        self._meta = dict(meta or {})
        self._lock = threading.Lock()

    def decide(
        self,
        candidates: Candidates,
        messages: str | Sequence[Message],
        *,
        details: Mapping[str, str] | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Decision:
        """Ask the elicitor, choose with the mark, log the step. `details` are for prompts that name their parts."""
        situation = Situation.of(candidates, messages, details)
        elicitation = _without_asking(situation)
        if elicitation is None:
            try:
                elicitation = self.elicitor.elicit(situation)
            except ElicitationError as error:
                elicitation = _failed(error, self.elicitor)
        return self._decided(situation, elicitation, context)

    async def adecide(
        self,
        candidates: Candidates,
        messages: str | Sequence[Message],
        *,
        details: Mapping[str, str] | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Decision:
        """The same, without blocking the event loop while the model is asked."""
        situation = Situation.of(candidates, messages, details)
        elicitation = _without_asking(situation)
        if elicitation is None:
            try:
                elicitation = await self.elicitor.aelicit(situation)
            except ElicitationError as error:
                elicitation = _failed(error, self.elicitor)
        return self._decided(situation, elicitation, context)

    def decide_from(
        self,
        weights: Mapping[str, Rational],
        *,
        context: Mapping[str, object] | None = None,
        method: str = "given",
        model: str = "none",
    ) -> Decision:
        """Choose from a list that is there already."""
        situation = Situation.of(list(weights), "")
        return self._decided(situation, Elicitation(method=method, model=model, weights=weights), context)

    def observe(self, decision: Decision, behavior: str | None) -> StepRecord | None:
        """Say what the agent really did (None: nothing that counts). Returns the record this added, if any.

        A step that was obeyed is in the log already. One that was not is logged again with `enforced: false`, which
        takes it out of the evidence. A decision that was left to the agent is logged now, unmarked.
        """
        if decision.record is None:
            if behavior is None:
                return None
            said = decision.elicitation
            reason = one_line(f"elicitation failed: {said.logged_fault or said.fault}")
            did = _known(behavior, decision)
            record = self.session.unmarked(did, reason=reason, meta={**self._meta, **said.as_meta()}).record
        elif behavior == decision.behavior:
            return None
        else:
            done = {} if behavior is None else {"did": _known(behavior, decision)}
            record = replace(decision.record.with_enforced(False), meta={**(decision.record.meta or {}), **done})
        self._write(record)
        return record

    def close(self) -> None:
        """Close the log, if this decider opened it."""
        if self._owns_log and isinstance(self.log, LogWriter):
            self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decided(
        self, situation: Situation, elicitation: Elicitation, context: Mapping[str, object] | None
    ) -> Decision:
        if elicitation.weights is not None:
            try:
                _check_names(elicitation.weights, situation)
                choice = self.session.choose(
                    elicitation.weights, context=context, meta={**self._meta, **elicitation.as_meta()}
                )
            except DistributionError as error:
                # The field may quote what the model said; the fault is ours.
                logged = f"a list that cannot be used: {error.fault}"
                elicitation = replace(elicitation, weights=None, fault=str(error), logged_fault=logged)
            else:
                self._write(choice.record)
                return Decision(choice.behavior, elicitation, choice.record, tuple(situation.names))
        if self._fail == "closed":
            fault = elicitation.fault or "no list"
            raise ElicitationError(elicitation.method, fault, logged=elicitation.logged_fault)
        return Decision(None, elicitation, None, tuple(situation.names))

    def _write(self, record: StepRecord) -> None:
        if self.log is not None:
            with self._lock:
                self.log.write(record)


def _without_asking(situation: Situation) -> Elicitation | None:
    if len(situation.candidates) > 1:
        return None
    return Elicitation(method=ONLY_CANDIDATE, model="none", weights={situation.candidates[0].name: 1})


def _failed(error: ElicitationError, elicitor: Elicitor) -> Elicitation:
    return Elicitation(method=elicitor.name, model="none", weights=None, fault=error.fault, logged_fault=error.logged)


def _check_names(weights: Mapping[str, Rational], situation: Situation) -> None:
    """An elicitor must speak of the candidates, all of them and no others (law L6)."""
    names = set(situation.names)
    for name in weights:
        if name not in names:
            raise DistributionError(f"weights[{name!r}]", "is no candidate")
    for name in situation.names:
        if name not in weights:
            raise DistributionError(f"weights[{name!r}]", "is missing")


def _known(behavior: str, decision: Decision) -> str:
    """What was done, by name. A name that was not on offer is the model's own text, and stays out of the log."""
    return behavior if behavior in decision.names else OTHER
