"""One turn of an agent: its request to its model goes in, the reply it is handed comes out.

Everything that an adapter has to get right stands here once: samples and their choice, lists and the ladder of
forcing, what is sent again when a provider refuses, what is written and counted. An adapter describes its framework's
request as a `ModelCall`; it decides nothing.

The turn is written as a dialogue that yields what it wants done (`Ask`, `Elicit`, `Write`), so that one text serves
callers that wait and callers that await.
"""

import asyncio
import hashlib
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from agentmark.core.canonical import canonical_bytes
from agentmark.decide.decision import Decision, Made, Run
from agentmark.decide.desk import Desk
from agentmark.decide.forcing import Upstream, may_be_ours, speaks_of_the_choice
from agentmark.elicit.chat import Chat, ChatElicitor
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.proposals import METHOD, Proposals, behavior_of
from agentmark.elicit.situation import (
    OTHER,
    Candidate,
    Elicitation,
    Elicitor,
    Message,
    Proposal,
    Situation,
    ToolCall,
    whole,
)
from agentmark.errors import SettingError
from agentmark.record import StepRecord
from agentmark.wire.behaviors import what_was_done
from agentmark.wire.forcing import Rung

Result = TypeVar("Result")

# What an upstream may turn out not to be good for.
LISTS, OBEDIENCE = "lists", "obedience"
# What it may refuse beside ways of forcing: several replies to one request.
SEVERAL = "several replies in one"
# Conversations of a run whose decisions are remembered until it is seen what became of them.
MAX_REMEMBERED = 128


@dataclass(frozen=True, slots=True)
class Spent:
    """What a whole turn cost: every call of the model, samples that were not used and side calls included."""

    calls: int
    input_tokens: int
    output_tokens: int


class ModelCall(ABC):
    """One request of an agent to its model, as an adapter sees it. Requests and replies are the framework's own."""

    # Where the request goes, and the model it names: what a refusal is remembered for.
    upstream: str
    model: str
    # The request as the agent made it.
    request: Any
    # None where it is not known.
    temperature: float | None = None
    seed: int | None = None
    # Whether tools that run at the provider are on offer: they would run once for each sample.
    runs_hosted_tools: bool = False
    # Why the request must not be sent several times, where there is another reason.
    unrepeatable: str | None = None
    # Set by the turn: whether samples are told apart by their arguments too. Then a stream shows what it does at its
    # end, though a single call may have begun before.
    needs_arguments: bool = False
    # Whether the others should wait for the first sample, which puts the prompt into the provider's cache.
    warms_cache: bool = False

    @abstractmethod
    def candidates(self) -> Sequence[Candidate]:
        """What the request leaves to decide; nothing: it goes through untouched."""

    @abstractmethod
    def conversation(self) -> Sequence[Message]:
        """The conversation as elicitors read it."""

    @abstractmethod
    def read(self, reply: Any) -> Sequence[ToolCall]:
        """The calls that a reply makes. Of a live stream, it is not asked."""

    def as_done(self, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """What became of the calls that the agent's model made last, where the framework keeps a person's edit apart
        from the conversation."""
        return calls

    def forced(self, behavior: str, rung: Rung) -> Any | None:
        """The request with one way to go, its tools untouched; None if there is no such way here."""
        return None

    def several(self, count: int) -> Any | None:
        """The request for so many replies in one, which reads the prompt once; None if there is no such way here."""
        return None

    def split(self, reply: Any) -> Sequence[Any]:
        """A reply of several as so many replies, in order."""
        return [reply]

    def chat(self) -> Chat | None:
        """The agent's own model, lent for side calls: the same client, host, model and credentials."""
        return None

    def tokens(self, reply: Any) -> tuple[int | None, int | None]:
        """What a reply says of its cost: tokens read, tokens written."""
        return None, None

    def charged(self, reply: Any, spent: Spent) -> Any:
        """The reply with the usage of the whole turn, where the framework adds up what its replies say."""
        return reply

    def is_live(self, reply: Any) -> bool:
        """Whether a reply is a stream of which the rest is still to come: then the adapter finishes the turn."""
        return False

    def discard(self, reply: Any) -> None:  # noqa: B027 (most replies need no closing)
        """Let go of a sample that is not used: close its stream."""

    async def adiscard(self, reply: Any) -> None:
        self.discard(reply)

    def send(self, request: Any, *, sampled: bool) -> Any:
        """Ask the model. `sampled`: a stream is read until it has shown what it does."""
        raise NotImplementedError(f"{type(self).__name__} is asked asynchronously")

    async def asend(self, request: Any, *, sampled: bool) -> Any:
        """The same for callers that await."""
        raise NotImplementedError(f"{type(self).__name__} is asked synchronously")


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
        done = None if calls is None else what_was_done(calls, decision.behavior)
        if decision.record is not None and done is not None:
            is_obeyed = done == decision.behavior
            if is_obeyed:
                _remember_made(decision.run, self.place, decision)
            if self.desk.refusals.count(self.upstream, OBEDIENCE, failed=not is_obeyed):
                self.desk.ledger.fell_back("forcing is given up", self.upstream[1], "the model goes its own way")
        return self.desk.outcome(decision, done)

    def finish(self, calls: Sequence[ToolCall] | None) -> None:
        """Say what a live stream did; None if it broke off, or was not read to its end."""
        self.desk.write(self.outcome(calls))

    async def afinish(self, calls: Sequence[ToolCall] | None) -> None:
        """The same for callers that await."""
        await self.desk.awrite(self.outcome(calls))


# --- what a turn wants done ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model, all requests at once. The answer is a list of replies and errors."""

    requests: Sequence[Any]
    sampled: bool = False
    first_alone: bool = False
    at_once: bool = True


@dataclass(frozen=True, slots=True)
class Elicit:
    """Ask an elicitor for the list. The answer is its elicitation."""

    elicitor: Elicitor
    situation: Situation


@dataclass(frozen=True, slots=True)
class Write:
    """Log a record."""

    record: StepRecord | None


@dataclass(frozen=True, slots=True)
class Discard:
    """Let go of replies that are not used."""

    replies: Sequence[Any]


Dialogue = Generator[Ask | Elicit | Write | Discard, Any, Turn]


def wait_for(dialogue: Dialogue, desk: Desk, call: ModelCall) -> Turn:
    """Do what a turn wants, in this thread and, for samples, in some beside it."""
    answer: Any = None
    try:
        while True:
            wanted = dialogue.send(answer)
            if isinstance(wanted, Ask):
                answer = _ask(wanted, call)
            elif isinstance(wanted, Elicit):
                answer = elicited(wanted.elicitor, wanted.situation)
            elif isinstance(wanted, Write):
                desk.write(wanted.record)
            else:
                for reply in wanted.replies:
                    # A stream that cannot be closed ends by itself; the agent has its reply.
                    with suppress(Exception):
                        call.discard(reply)
    except StopIteration as done:
        turn: Turn = done.value
        return turn
    finally:
        dialogue.close()


async def await_for(dialogue: Dialogue, desk: Desk, call: ModelCall) -> Turn:
    """The same on the event loop."""
    answer: Any = None
    try:
        while True:
            wanted = dialogue.send(answer)
            if isinstance(wanted, Ask):
                answer = await _ask_async(wanted, call)
            elif isinstance(wanted, Elicit):
                answer = await aelicited(wanted.elicitor, wanted.situation)
            elif isinstance(wanted, Write):
                await desk.awrite(wanted.record)
            else:
                for reply in wanted.replies:
                    with suppress(Exception):
                        await call.adiscard(reply)
    except StopIteration as done:
        turn: Turn = done.value
        return turn
    finally:
        dialogue.close()


def _ask(ask: Ask, call: ModelCall) -> list[Any]:
    def attempt(request: Any) -> Any:
        try:
            return call.send(request, sampled=ask.sampled)
        except Exception as error:
            return error

    alone = 1 if ask.first_alone or len(ask.requests) == 1 else 0
    outcomes = [attempt(request) for request in ask.requests[:alone]]
    others = ask.requests[alone:]
    if not others or (outcomes and isinstance(outcomes[0], Exception)):
        return outcomes
    if not ask.at_once:
        return outcomes + [attempt(request) for request in others]
    return outcomes + _all_of([partial(attempt, request) for request in others])


def _all_of(attempts: Sequence[Callable[[], Any]]) -> list[Any]:
    """What all of them come to, at once. In threads of their own, which an interrupt does not wait for; where none can
    be started, because there are too many or the interpreter is ending, one after the other here."""
    outcomes: list[Any] = [None] * len(attempts)

    def make(number: int) -> None:
        try:
            outcomes[number] = attempts[number]()
        except BaseException as error:
            outcomes[number] = error

    threads: list[threading.Thread] = []
    with suppress(RuntimeError):
        for number in range(len(attempts)):
            # Each in a copy of this context: frameworks keep their configuration there.
            thread = threading.Thread(target=copy_context().run, args=(make, number), daemon=True)
            thread.start()
            threads.append(thread)
    for number in range(len(threads), len(attempts)):
        make(number)
    for thread in threads:
        thread.join()
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
            raise outcome
    return outcomes


async def _ask_async(ask: Ask, call: ModelCall) -> list[Any]:
    async def attempt(request: Any) -> Any:
        try:
            return await call.asend(request, sampled=ask.sampled)
        except Exception as error:
            return error

    alone = 1 if ask.first_alone or len(ask.requests) == 1 else 0
    outcomes = [await attempt(request) for request in ask.requests[:alone]]
    others = ask.requests[alone:]
    if not others or (outcomes and isinstance(outcomes[0], Exception)):
        return outcomes
    if not ask.at_once:
        return outcomes + [await attempt(request) for request in others]
    return outcomes + list(await asyncio.gather(*[attempt(request) for request in others]))


def elicited(elicitor: Elicitor, situation: Situation) -> Elicitation:
    """What an elicitor says; one that fails has said why."""
    try:
        return elicitor.elicit(situation)
    except SettingError:
        raise
    except Exception as error:
        return _failed(error, elicitor)


async def aelicited(elicitor: Elicitor, situation: Situation) -> Elicitation:
    """The same on the event loop."""
    try:
        return await elicitor.aelicit(situation)
    except SettingError:
        raise
    except Exception as error:
        return _failed(error, elicitor)


def _failed(error: Exception, elicitor: Elicitor) -> Elicitation:
    """An upstream that failed, or an elicitor that did, as what it said."""
    model = str(getattr(getattr(elicitor, "endpoint", None), "model", "none"))
    if isinstance(error, ElicitationError):
        return Elicitation(method=elicitor.name, model=model, fault=error.fault, logged_fault=error.logged)
    logged = f"the elicitor raised {type(error).__name__}"
    return Elicitation(method=elicitor.name, model=model, fault=repr(error), logged_fault=logged)


# --- the turn itself -----------------------------------------------------------------------------------------------


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
        self.place = self._safely("the conversation cannot be read", lambda: _digest(situation.messages), b"")
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
        before, calls = _last_turn(self.situation.messages)
        made = self.run.made.get(_digest(before))
        if made is None or made.last is None or not calls:
            return None
        decision, done = made.last, self.call.as_done(calls)
        if any(call.name not in decision.names for call in done):
            return None
        seen = [behavior for behavior in made.behaviors if self._shown(done, decision, behavior) == behavior]
        if seen and decision.behavior not in seen:
            # Another conversation that began alike: this one was not changed either.
            return None
        # Seen once, it is settled: what is changed afterwards is history.
        made.last = None
        return None if seen else self.desk.edit(decision, self._shown(done, decision, decision.behavior))

    def _shown(self, calls: Sequence[ToolCall], decision: Decision, chosen: str | None) -> str:
        """What these calls do, in the words in which that decision was made."""
        if decision.elicitation.proposals is None:
            return what_was_done(calls, chosen)
        by_call = decision.elicitation.granularity == "call"
        return behavior_of(calls, frozenset(decision.names), self.run.session.argument_digest if by_call else None)

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
        yield Write(decision.record)
        yield Discard([reply for reply in replies if reply is not chosen])
        _remember_made(self.run, self.place, decision)
        return Turn(self._charged(chosen), self.desk, self.upstream, decision, self.place)

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

    def _left_to_the_agent(self, decision: Decision) -> Dialogue:
        self.desk.leave(decision)
        reply = yield from self._as_the_agent_asked()
        return (yield from self._finished(reply, decision))

    # --- stated lists ---

    def _from_a_stated_list(self, elicitor: Elicitor) -> Dialogue:
        key = _digest([*self.situation.messages, {"names": self.situation.names}])
        for record in self.desk.void_failed(self.run, but=key):
            yield Write(record)
        # A retry of a call that failed: what was decided then is what is done now.
        waiting = self.run.failed.get(key)
        decision = waiting.pop() if waiting else None
        if decision is None:
            decision = yield from self._decided(elicitor)
            yield Write(decision.record)
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
            self.run.failed.setdefault(key, []).append(decision)
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


def _remember_made(run: Run, place: bytes, decision: Decision) -> None:
    """Several conversations of one run may begin alike: then any of the choices made there may be what one shows.

    A run that nobody named may be many at once, of which nothing can be told.
    """
    if not run.is_named:
        return
    made = run.made.setdefault(place, Made())
    made.last = _lightened(decision)
    if decision.behavior is not None:
        made.behaviors.add(decision.behavior)
    run.made.move_to_end(place)
    while len(run.made) > MAX_REMEMBERED:
        run.made.popitem(last=False)


def _lightened(decision: Decision) -> Decision:
    """Without the replies: thousands of runs are remembered, and a reply may be long."""
    said = decision.elicitation
    lighter = replace(said, proposals=None if said.proposals is None else (), replies=(), arguments=None)
    return replace(decision, elicitation=lighter, reply=None)


def _digest(messages: Sequence[Mapping[str, Any]]) -> bytes:
    """Equal for equal messages. Kept in memory only."""
    return hashlib.blake2b(json.dumps(messages, sort_keys=True, default=str).encode(), digest_size=16).digest()


def _last_turn(messages: Sequence[Message]) -> tuple[Sequence[Message], list[ToolCall]]:
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
