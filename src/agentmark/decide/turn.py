"""One turn of an agent: its request to its model goes in, the reply it is handed comes out.

Everything that an adapter has to get right stands here once: samples and their choice, lists and the ladder of
forcing, what is sent again when a provider refuses, what is written and counted. An adapter describes its framework's
request as a `ModelCall`; it decides nothing.

The turn is written as a dialogue that yields what it wants done (`Ask`, `Elicit`, `Write`), so that one text serves
callers that wait and callers that await.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, TypeVar

from agentmark.core.canonical import canonical_bytes
from agentmark.decide.call import ModelCall, Spent
from agentmark.decide.decision import Decision, Run
from agentmark.decide.desk import Desk
from agentmark.decide.driving import Ask, Discard, Elicit, Want, Write
from agentmark.decide.forcing import Upstream, may_be_ours, speaks_of_the_choice
from agentmark.elicit.chat import ChatElicitor
from agentmark.elicit.proposals import METHOD, Proposals, behavior_of
from agentmark.elicit.situation import OTHER, Elicitation, Elicitor, Message, Proposal, Situation, ToolCall, whole
from agentmark.record import StepRecord
from agentmark.wire.behaviors import what_was_done
from agentmark.wire.forcing import Rung

Result = TypeVar("Result")

# What an upstream may turn out not to be good for.
LISTS, OBEDIENCE = "lists", "obedience"
# What it may refuse beside ways of forcing: several replies to one request.
SEVERAL = "several replies in one"
# Why a decision was undone.
NOT_KEPT = "its record could not be kept"


@dataclass(slots=True)
class Turn:
    """What comes of a turn. The turn of a live stream is finished by the adapter when the stream is at its end."""

    reply: Any
    desk: Desk
    upstream: Upstream
    decision: Decision | None = None
    # The digest of the conversation that the decision was made from.
    place: bytes = b""
    is_open: bool = False

    def outcome(self, calls: Sequence[ToolCall] | None) -> StepRecord | None:
        """What the reply did (None: it never came to its end), as a record to be written if one is needed."""
        if self.decision is None or not self.is_open:
            return None
        self.is_open = False
        decision = self.decision
        done = None if calls is None else shown(calls, decision, decision.behavior)
        if decision.record is not None and done is not None:
            is_obeyed = done == decision.behavior
            if is_obeyed:
                _remember_made(decision.run, self.place, decision)
            # A sample shows what it does before it is chosen: it says nothing of the model's obedience.
            if decision.elicitation.proposals is None and self.desk.refusals.count(
                self.upstream, OBEDIENCE, failed=not is_obeyed
            ):
                self.desk.ledger.fell_back("forcing is given up", self.upstream[1], "the model goes its own way")
        return self.desk.outcome(decision, done)

    def finish(self, calls: Sequence[ToolCall] | None) -> None:
        """Say what a live stream did; None if it broke off, or was not read to its end."""
        self.desk.write(self.outcome(calls))

    async def afinish(self, calls: Sequence[ToolCall] | None) -> None:
        """The same for callers that await."""
        await self.desk.awrite(self.outcome(calls))


Dialogue = Generator[Want, Any, Turn]


def dialogue(desk: Desk, call: ModelCall, run: Run, meta: Mapping[str, Any] | None = None) -> Dialogue:
    """What happens between an agent's request and the reply it is handed."""
    turn = _Dialogue(desk, call, run, meta)
    return turn.go()


class _Dialogue:
    """The state of one turn."""

    def __init__(self, desk: Desk, call: ModelCall, run: Run, meta: Mapping[str, Any] | None) -> None:
        self.desk = desk
        self.call = call
        self.run = run
        self.meta = self._recordable(meta)
        self.upstream: Upstream = (call.upstream, call.model)
        self.calls = self.input_tokens = self.output_tokens = 0
        self._is_unreadable = False

    def go(self) -> Dialogue:
        situation = self._read_request()
        if situation is None:
            reply = yield from self._as_the_agent_asked()
            return Turn(reply, self.desk, self.upstream)
        self.situation = situation
        self.place = self._safely("the conversation cannot be read", lambda: place_of(situation.messages), b"")
        edited = self._safely("the conversation cannot be read", self._look_back, None)
        yield Write(edited)
        if isinstance(self.desk.elicitor, Proposals) or self._is_past_stating():
            return (yield from self._from_proposals())
        return (yield from self._from_a_stated_list(self.desk.elicitor))

    def _safely(self, what: str, do: Callable[[], Result], otherwise: Result) -> Result:
        """What is only for the mark: if it fails, the agent goes on without (law L11), and somebody is told."""
        try:
            return do()
        except Exception as error:
            if self.desk.fail == "closed":
                raise
            self.desk.ledger.fell_back(what, self.call.model, repr(error))
            return otherwise

    def _recordable(self, meta: Mapping[str, Any] | None) -> dict[str, Any]:
        """What a record can hold of what is said of this step."""
        found = {}
        for name, value in (meta or {}).items():
            checked = self._safely("meta that no record can hold", lambda: canonical_bytes({name: value}), None)  # noqa: B023
            if checked is not None:
                found[name] = value
        return found

    def _read_request(self) -> Situation | None:
        """What is to be decided; None if nothing is, or if the request cannot be read: no reason to break the agent."""
        try:
            candidates = self.call.candidates()
            return Situation.of(candidates, list(self.call.conversation())) if candidates else None
        except Exception as error:
            if self.desk.fail == "closed":
                raise
            self.desk.ledger.unmarked("the request cannot be read", self.call.model, repr(error))
            return None

    def _read(self, reply: Any) -> tuple[ToolCall, ...]:
        """The calls that a reply makes. One that cannot be read did something that nobody knows."""
        try:
            calls = tuple(self.call.read(reply))
            if all(isinstance(call.name, str) for call in calls):
                return calls
            fault = "a call whose name is no text"
        except Exception as error:
            fault = repr(error)
        self._is_unreadable = True
        self.desk.ledger.fell_back("a reply cannot be read", self.call.model, fault)
        return (ToolCall(OTHER),)

    def _is_past_stating(self) -> bool:
        """Whether this upstream has shown that it states no lists, or follows none: then its samples are the list."""
        refusals = self.desk.refusals
        has_failed = [refusals.is_given_up(self.upstream, what) for what in (LISTS, OBEDIENCE)]
        return self.desk.fallback is not None and (any(has_failed) or not self._can_be_forced())

    def _can_be_forced(self) -> bool:
        """Whether there is a way left for each thing that could be chosen: a list that cannot be followed is no use."""
        rungs = self.desk.refusals.rungs(self.upstream)
        ways = [[self._forced_request(name, rung) is not None for rung in rungs] for name in self.situation.names]
        return all(any(found) for found in ways)

    def _forced_request(self, behavior: str, rung: Rung) -> Any | None:
        return self._safely("a request cannot be forced", lambda: self.call.forced(behavior, rung), None)

    def _look_back(self) -> StepRecord | None:
        """See in the conversation whether somebody changed what the agent did last; what is then to be logged."""
        if not self.run.is_named:
            return None
        before, calls = last_turn(self.situation.messages)
        made = self.run.memory.made_at(place_of(before)) if calls else None
        if made is None or made.last is None:
            return None
        decision, done = made.last, self.call.as_done(calls)
        if any(call.name not in decision.names for call in done):
            return None
        seen = [behavior for behavior in made.behaviors if shown(done, decision, behavior) == behavior]
        if seen and decision.behavior not in seen:
            # Another conversation that began alike: this one was not changed either.
            return None
        # Seen once, it is settled: what is changed afterwards is history.
        made.last = None
        return None if seen else self.desk.edit(decision, shown(done, decision, decision.behavior))

    def _as_the_agent_asked(self) -> Generator[Ask, Any, Any]:
        [outcome] = yield Ask([self.call.request])
        if isinstance(outcome, Exception):
            raise outcome
        self._count(outcome)
        return outcome

    # --- samples ---

    def _from_proposals(self) -> Dialogue:
        settings = self.desk.fallback
        if settings is None:
            raise ValueError("a decider without proposals cannot come here")
        call = self.call
        obstacle = call.unrepeatable or settings.obstacle(
            temperature=call.temperature, seed=call.seed, runs_hosted_tools=call.runs_hosted_tools
        )
        if obstacle is not None:
            said = Elicitation(method=METHOD, model=call.model, fault=obstacle)
            return (yield from self._left_to_the_agent(self._choice(said)))
        call.needs_arguments = settings.granularity == "call"
        begun = perf_counter()
        asked_before = self.input_tokens, self.output_tokens
        outcomes = yield from self._samples(settings)
        errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        replies = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
        if not replies:
            # The agent's own error; but a run that ends here has no record, and somebody should know why.
            vain = Elicitation(method=METHOD, model=call.model, samples=0, failed=len(errors))
            self.desk.ledger.spent(vain, perf_counter() - begun)
            self.desk.ledger.fell_back("no sample came", call.model, repr(errors[0]))
            raise errors[0]
        if errors:
            # Those that came are independent samples all the same: the model as it is when it replies.
            self.desk.ledger.fell_back("a sample failed", call.model, repr(errors[0]))
        # A list that was asked for before, in vain, is counted already.
        spent = self.input_tokens - asked_before[0], self.output_tokens - asked_before[1]
        said = replace(self._sampled(replies, settings, spent, perf_counter() - begun), failed=len(errors))
        if self._is_unreadable:
            # Nothing can be told apart: one of the replies is handed on, and no mark is claimed.
            said = replace(said, proposals=None, fault="a reply cannot be read")
        self.desk.ledger.spent(said, said.seconds or 0.0)
        decision = self._choice(said)
        if decision.record is None:
            # Drawn like the others, so as good as any of them.
            yield Discard(replies[1:])
            self.desk.leave(decision)
            return (yield from self._finished(replies[0], decision))
        chosen = decision.reply
        if not (yield Write(decision.record, decision, self.place)):
            # Any of the samples is as good; and what the mark chose is not what is done, as far as chance goes.
            chosen, decision = secrets.choice(replies), self._undone(decision)
        yield Discard([reply for reply in replies if reply is not chosen])
        turn = Turn(self._charged(chosen), self.desk, self.upstream, decision, self.place)
        if decision.record is not None:
            turn.is_open = call.is_live(chosen)
            if not turn.is_open:
                _remember_made(self.run, self.place, decision)
        return turn

    def _samples(self, settings: Proposals) -> Generator[Ask, Any, list[Any]]:
        """Replies and errors, as many as are wanted: in one call where the provider has that, else in one call each."""
        call, replies, why = self.call, [], ""
        is_refused = self.desk.refusals.is_refused(self.upstream, SEVERAL)
        together = None if is_refused else call.several(settings.count)
        if together is not None:
            [outcome] = yield Ask([together], sampled=True)
            if isinstance(outcome, Exception):
                if not may_be_ours(outcome):
                    return [outcome]
                why = str(outcome)
            else:
                self._count(outcome)
                replies = list(call.split(outcome))[: settings.count]
                why = f"{len(replies)} came where {settings.count} were asked for"
        missing = settings.count - len(replies)
        if not missing:
            return replies
        warms_cache = call.warms_cache if settings.warm_cache is None else settings.warm_cache
        outcomes = yield Ask(
            [call.request] * missing, sampled=True, first_alone=warms_cache and not replies, at_once=settings.at_once
        )
        came = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
        for reply in came:
            self._count(reply)
        if together is not None and came:
            # If the agent's own request had failed too, nothing would be known of the other.
            self.desk.refusals.learn(self.upstream, [SEVERAL], why)
            self.desk.ledger.fell_back("samples are asked for one by one", call.model, why)
        return [*replies, *outcomes]

    def _sampled(
        self, replies: Sequence[Any], settings: Proposals, spent: tuple[int, int], seconds: float
    ) -> Elicitation:
        return Elicitation(
            method=METHOD,
            model=self.call.model,
            proposals=tuple([Proposal(calls=self._read(reply), reply=reply) for reply in replies]),
            granularity=settings.granularity,
            samples=len(replies),
            seconds=seconds,
            input_tokens=spent[0] or None,
            output_tokens=spent[1] or None,
        )

    def _choice(self, said: Elicitation) -> Decision:
        names = self.situation.names
        try:
            return self.desk.choose(self.run, names, said, meta=self.meta)
        except Exception as error:
            if self.desk.fail == "closed":
                raise
            logged = f"the choice failed with {type(error).__name__}"
            undecided = replace(said, weights=None, proposals=None, fault=repr(error), logged_fault=logged)
            return Decision(None, undecided, None, self.run, tuple(names), meta={**self.run.meta, **(self.meta or {})})

    def _undone(self, decision: Decision) -> Decision:
        """The decision, not made: its record is lost, and a mark that no log shows is none."""
        if decision.record is not None:
            self.desk.ledger.undone(decision.record, self.call.model)
        self.desk.ledger.unmarked(NOT_KEPT, self.call.model)
        said = replace(decision.elicitation, weights=None, fault=NOT_KEPT)
        return replace(decision, behavior=None, elicitation=said, record=None)

    def _unrecorded(self, decision: Decision) -> Dialogue:
        reply = yield from self._as_the_agent_asked()
        return Turn(self._charged(reply), self.desk, self.upstream, decision, self.place)

    def _left_to_the_agent(self, decision: Decision) -> Dialogue:
        self.desk.leave(decision)
        reply = yield from self._as_the_agent_asked()
        return (yield from self._finished(reply, decision))

    # --- stated lists ---

    def _from_a_stated_list(self, elicitor: Elicitor) -> Dialogue:
        key = place_of([*self.situation.messages, {"names": self.situation.names}])
        for record in self.desk.void_failed(self.run, but=key):
            yield Write(record)
        # A retry of a call that failed: what was decided then is what is done now.
        decision = self.run.memory.take_failed(key)
        if decision is None:
            decision = yield from self._decided(elicitor)
            if not (yield Write(decision.record, decision, self.place)):
                return (yield from self._unrecorded(self._undone(decision)))
        if decision.behavior is None:
            if self.desk.fallback is not None:
                fault = decision.elicitation.fault or "no list"
                self.desk.ledger.fell_back("no list, so the model's own samples are taken", self.call.model, fault)
                return (yield from self._from_proposals())
            return (yield from self._left_to_the_agent(decision))
        try:
            reply = yield from self._forced(decision.behavior)
        except BaseException:
            # Also one that was cancelled, by a time limit of the agent's for instance: nothing was done.
            self.run.memory.remember_failed(key, decision)
            raise
        return (yield from self._finished(reply, decision))

    def _decided(self, elicitor: Elicitor) -> Generator[Elicit, Any, Decision]:
        if len(self.situation.candidates) == 1:
            said = only_candidate(self.situation)
        else:
            begun = perf_counter()
            said = yield Elicit(self._with_own_model(elicitor), self.situation)
            self.desk.ledger.spent(said, perf_counter() - begun)
            self.calls += said.attempts
            self.input_tokens += whole(said.input_tokens) or 0
            self.output_tokens += whole(said.output_tokens) or 0
        decision = self._choice(said)
        if self.desk.refusals.count(self.upstream, LISTS, failed=decision.behavior is None):
            self.desk.ledger.fell_back("lists are given up", self.call.model, said.fault or "no list")
        return decision

    def _with_own_model(self, elicitor: Elicitor) -> Elicitor:
        own = self.call.chat()
        return elicitor.lent(own) if isinstance(elicitor, ChatElicitor) and own is not None else elicitor

    def _forced(self, behavior: str) -> Generator[Ask, Any, Any]:
        """The reply to a request with one way to go, by the surest way that is left; at last, as the agent asked."""
        refused: list[Rung] = []
        why = ""
        for rung in self.desk.refusals.rungs(self.upstream):
            request = self._forced_request(behavior, rung)
            if request is None:
                continue
            [outcome] = yield Ask([request])
            if not isinstance(outcome, Exception):
                self._learn(refused, why)
                self._count(outcome)
                return outcome
            if not may_be_ours(outcome):
                raise outcome
            refused.append(rung)
            why = str(outcome)
            if not speaks_of_the_choice(outcome):
                break
        # If this fails too, the error is the agent's own, and nothing is learned from it.
        reply = yield from self._as_the_agent_asked()
        self._learn(refused, why)
        return reply

    def _learn(self, refused: Sequence[Rung], why: str) -> None:
        if refused:
            self.desk.refusals.learn(self.upstream, refused, why)
            self.desk.ledger.fell_back(f"cannot be forced ({', '.join(refused)})", self.call.model, why)

    # --- either ---

    def _finished(self, reply: Any, decision: Decision) -> Dialogue:
        turn = Turn(reply, self.desk, self.upstream, decision, self.place, is_open=True)
        if not self.call.is_live(reply):
            yield Write(turn.outcome(self._read(reply)))
        turn.reply = self._charged(reply)
        return turn

    def _count(self, reply: Any) -> None:
        unknown: tuple[int | None, int | None] = (None, None)
        read, written = self._safely("usage cannot be read", lambda: self.call.tokens(reply), unknown)
        self.calls += 1
        self.input_tokens += whole(read) or 0
        self.output_tokens += whole(written) or 0

    def _charged(self, reply: Any) -> Any:
        spent = Spent(self.calls, self.input_tokens, self.output_tokens)
        return self._safely("usage cannot be stated", lambda: self.call.charged(reply, spent), reply)


def only_candidate(situation: Situation) -> Elicitation:
    """A decision among one candidate needs no model."""
    return Elicitation(method="only candidate", model="none", weights={situation.names[0]: 1})


def shown(calls: Sequence[ToolCall], decision: Decision, chosen: str | None) -> str:
    """What these calls do, in the words in which that decision was made."""
    if decision.elicitation.proposals is None:
        return what_was_done(calls, chosen)
    by_call = decision.elicitation.granularity == "call"
    digest = decision.run.session.argument_digest if by_call else None
    return behavior_of(calls, frozenset(decision.names), digest)


def _remember_made(run: Run, place: bytes, decision: Decision) -> None:
    """A run that nobody named may be many at once, of which nothing can be told."""
    if run.is_named:
        run.memory.remember_made(place, decision)


def place_of(messages: Sequence[Mapping[str, Any]]) -> bytes:
    """Equal for equal messages. Whoever has it can try messages that it may be of: it is not for logs."""
    return hashlib.blake2b(json.dumps(messages, sort_keys=True, default=str).encode(), digest_size=16).digest()


def last_turn(messages: Sequence[Message]) -> tuple[Sequence[Message], list[ToolCall]]:
    """What the agent's model called last, as the conversation has it now, and what was said before."""
    end = len(messages)
    while end and messages[end - 1].get("role") != "assistant":
        end -= 1
    start = end
    while start and messages[start - 1].get("role") == "assistant":
        start -= 1
    calls = [call for said in messages[start:end] for call in said.get("tool_calls") or ()]
    return messages[:start], [_read_call(call) for call in calls]


def _read_call(call: Mapping[str, Any]) -> ToolCall:
    return ToolCall(str(call.get("name")), call.get("arguments"), str(call.get("id") or ""))
