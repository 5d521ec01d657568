"""The decider: mark, way of asking and log in one object.

turn = decider.turn(call)                      # an adapter's way: the reply to hand on is turn.reply
decision = decider.propose(ask, read, names)   # an agent of your own: go on with decision.reply
decision = decider.decide(tools, messages)     # from a stated list: do decision.behavior, then decider.observe(...)

Each has a form to be awaited: aturn, apropose, adecide, aobserve.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import iscoroutinefunction
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, Self

from agentmark.core.distribution import Rational
from agentmark.decide.call import ModelCall
from agentmark.decide.decision import Decision
from agentmark.decide.desk import Desk
from agentmark.decide.driving import aelicited, await_for, elicited, wait_for
from agentmark.decide.turn import Turn, dialogue, only_candidate
from agentmark.decide.writing import PATIENCE_S
from agentmark.elicit.proposals import Proposals
from agentmark.elicit.situation import Candidate, Candidates, Elicitation, Elicitor, Message, Situation, ToolCall
from agentmark.embed.embedder import Embedder
from agentmark.embed.session import Session
from agentmark.errors import SettingError
from agentmark.log.sink import Sink
from agentmark.record import StepRecord

# The default: four replies of the agent's own model, told apart by the tool they call.
SAMPLES = Proposals()


class Decider(Desk):
    """Decides for an agent, one step after the other, in any number of runs at once. Thread-safe."""

    def __init__(
        self,
        marker: Embedder | Session,
        elicitor: Elicitor | Proposals | None = None,
        log: Sink | str | Path | None = None,
        *,
        fallback: Proposals | None = SAMPLES,
        fail: Literal["open", "closed"] = "open",
        meta: Mapping[str, Any] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`elicitor`: where the list comes from. Without one, from the samples of the agent's own model (`Proposals`).

        `log` is a sink, or the path of a JSONL log. When no list can be had, fail `open` leaves the decision to the
        agent, unmarked and logged as such; fail `closed` raises `ElicitationError`. A log that cannot be written is
        counted and said under fail `open`, and raises under `closed`. `fallback`: how the agent's own model is sampled
        where a stated list cannot be had or followed; None, and such steps go unmarked. `meta` goes into every record.
        `patience_s`: how long a step waits for a log that hangs; its record is then written later, if it can be.
        """
        super().__init__(
            marker, elicitor or SAMPLES, log, fallback=fallback, fail=fail, meta=meta, patience_s=patience_s
        )

    # --- an adapter's way ---

    def turn(self, call: ModelCall, *, session: str | None = None, meta: Mapping[str, Any] | None = None) -> Turn:
        """Answer an agent's request to its model. `session` is the id of the agent's run, `meta` for this step's
        record."""
        return wait_for(dialogue(self, call, self.run(session), meta), self, call)

    async def aturn(
        self, call: ModelCall, *, session: str | None = None, meta: Mapping[str, Any] | None = None
    ) -> Turn:
        """The same, without blocking the event loop."""
        return await await_for(dialogue(self, call, self.run(session), meta), self, call)

    # --- an agent of your own, from its model's samples ---

    def propose(
        self,
        ask: Callable[[], Any],
        read: Callable[[Any], Sequence[ToolCall]],
        names: Iterable[str],
        *,
        model: str = "unknown",
        usage: Callable[[Any], tuple[int | None, int | None]] | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        session: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Ask the model several times and go on with `decision.reply`. `ask` makes the agent's call, `read` says which
        tools its reply calls, `names` are the tools on offer.

        `ask` is called from several threads at once (not with `Proposals(at_once=False)`). `usage` says what a reply
        cost: tokens read and written. At temperature 0, or with a fixed seed, every sample would be the same: say so
        here, and the model is asked once and the step goes unmarked.
        """
        if iscoroutinefunction(ask):
            raise SettingError("ask", "is to be awaited: use apropose")
        call = _FunctionCall(read, names, model=model, usage=usage, ask=ask)
        call.temperature, call.seed = temperature, seed
        return _decision_of(self.turn(call, session=session, meta=meta))

    async def apropose(
        self,
        ask: Callable[[], Awaitable[Any]],
        read: Callable[[Any], Sequence[ToolCall]],
        names: Iterable[str],
        *,
        model: str = "unknown",
        usage: Callable[[Any], tuple[int | None, int | None]] | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        session: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Decision:
        """The same with an `ask` to be awaited."""
        call = _FunctionCall(read, names, model=model, usage=usage, aask=ask)
        call.temperature, call.seed = temperature, seed
        return _decision_of(await self.aturn(call, session=session, meta=meta))

    # --- from a stated list ---

    def decide(
        self,
        candidates: Candidates,
        messages: str | Sequence[Message],
        *,
        details: Mapping[str, str] | None = None,
        context: Mapping[str, object] | None = None,
        session: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Ask the elicitor, choose with the mark, log the step; one without a list is logged by `observe`. `details`
        are for prompts that name their parts; `session` is the id of the agent's run."""
        situation = Situation.of(candidates, messages, details)
        elicitor, begun = self._stating(), perf_counter()
        if len(situation.candidates) == 1:
            elicitation = only_candidate(situation)
        else:
            elicitation = elicited(elicitor, situation)
            self.ledger.spent(elicitation, perf_counter() - begun)
        decision = self.choose(self.run(session), situation.names, elicitation, context=context, meta=meta)
        if decision.record is None:
            return self.leave(decision)
        self.write(decision.record)
        return decision

    async def adecide(
        self,
        candidates: Candidates,
        messages: str | Sequence[Message],
        *,
        details: Mapping[str, str] | None = None,
        context: Mapping[str, object] | None = None,
        session: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Decision:
        """The same, without blocking the event loop."""
        situation = Situation.of(candidates, messages, details)
        elicitor, begun = self._stating(), perf_counter()
        if len(situation.candidates) == 1:
            elicitation = only_candidate(situation)
        else:
            elicitation = await aelicited(elicitor, situation)
            self.ledger.spent(elicitation, perf_counter() - begun)
        decision = self.choose(self.run(session), situation.names, elicitation, context=context, meta=meta)
        if decision.record is None:
            return self.leave(decision)
        await self.awrite(decision.record)
        return decision

    def decide_from(
        self,
        weights: Mapping[str, Rational],
        *,
        context: Mapping[str, object] | None = None,
        method: str = "given",
        model: str = "none",
        session: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Choose from a list that is there already."""
        names = Situation.of(list(weights), "").names
        elicitation = Elicitation(method=method, model=model, weights=weights)
        decision = self.choose(self.run(session), names, elicitation, context=context, meta=meta)
        if decision.record is None:
            return self.leave(decision)
        self.write(decision.record)
        return decision

    def observe(self, decision: Decision, behavior: str | None) -> StepRecord | None:
        """Say what the agent really did (None: nothing that counts). Returns the record this added, if any.

        A step that was obeyed is in the log already. One that was not is logged again with `enforced: false`, which
        takes it out of the evidence. A decision that was left to the agent is logged now, unmarked.
        """
        record = self.outcome(decision, behavior)
        self.write(record)
        return record

    async def aobserve(self, decision: Decision, behavior: str | None) -> StepRecord | None:
        """The same, without blocking the event loop."""
        record = self.outcome(decision, behavior)
        await self.awrite(record)
        return record

    def _stating(self) -> Elicitor:
        if isinstance(self.elicitor, Proposals):
            raise SettingError(
                "elicitor",
                "proposals are replies of the agent's own model: use an adapter or propose(); for decide(), give an"
                " elicitor that states a list",
            )
        return self.elicitor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _FunctionCall(ModelCall):
    """The call of an agent that has no framework: a function that makes it."""

    upstream = "own"

    def __init__(
        self,
        read: Callable[[Any], Sequence[ToolCall]],
        names: Iterable[str],
        *,
        model: str,
        usage: Callable[[Any], tuple[int | None, int | None]] | None,
        ask: Callable[[], Any] | None = None,
        aask: Callable[[], Awaitable[Any]] | None = None,
    ) -> None:
        if isinstance(names, str):
            raise SettingError("names", "is one text; give a list of names")
        self.model = model
        self.request = None
        self._usage = usage
        self._ask = ask
        self._aask = aask
        self._read = read
        self._names = list(names)

    def candidates(self) -> list[Candidate]:
        return [Candidate(name) for name in self._names]

    def conversation(self) -> list[Message]:
        return []

    def read(self, reply: Any) -> Sequence[ToolCall]:
        return self._read(reply)

    def tokens(self, reply: Any) -> tuple[int | None, int | None]:
        return (None, None) if self._usage is None else self._usage(reply)

    def send(self, request: Any, *, sampled: bool) -> Any:
        return super().send(request, sampled=sampled) if self._ask is None else self._ask()

    async def asend(self, request: Any, *, sampled: bool) -> Any:
        return await super().asend(request, sampled=sampled) if self._aask is None else await self._aask()


def _decision_of(turn: Turn) -> Decision:
    """The decision with the reply to go on with, also where the step went unmarked."""
    decision = turn.decision
    if decision is None:
        raise SettingError("names", "there are none: nothing is to be decided")
    return decision if decision.reply is turn.reply else replace(decision, reply=turn.reply)
