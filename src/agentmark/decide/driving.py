"""What a turn wants done, and two ways to do it: waiting, and awaiting."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from agentmark.decide.call import ModelCall
from agentmark.decide.decision import Decision
from agentmark.decide.desk import Desk
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.situation import Elicitation, Elicitor, Situation
from agentmark.errors import SettingError
from agentmark.record import StepRecord

Result = TypeVar("Result")


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
    """Log a record, and with it the decision that it is of, where it is one. The answer is whether the decision stands:
    False only if its record is lost and whoever keeps records would rather have it undone."""

    record: StepRecord | None
    decision: Decision | None = None
    # The digest of the conversation that the decision was made from.
    place: bytes = b""


@dataclass(frozen=True, slots=True)
class Discard:
    """Let go of replies that are not used."""

    replies: Sequence[Any]


Want = Ask | Elicit | Write | Discard


def wait_for(dialogue: Generator[Want, Any, Result], desk: Desk, call: ModelCall) -> Result:
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
                answer = True
            else:
                for reply in wanted.replies:
                    # A stream that cannot be closed ends by itself; the agent has its reply.
                    with suppress(Exception):
                        call.discard(reply)
    except StopIteration as done:
        result: Result = done.value
        return result
    finally:
        dialogue.close()


async def await_for(
    dialogue: Generator[Want, Any, Result],
    desk: Desk,
    call: ModelCall,
    *,
    write: Callable[[Write], Awaitable[bool]] | None = None,
) -> Result:
    """The same on the event loop. `write` keeps records in place of the desk's log."""
    answer: Any = None
    try:
        while True:
            wanted = dialogue.send(answer)
            if isinstance(wanted, Ask):
                answer = await _ask_async(wanted, call)
            elif isinstance(wanted, Elicit):
                answer = await aelicited(wanted.elicitor, wanted.situation)
            elif isinstance(wanted, Write):
                answer = True
                if write is None:
                    await desk.awrite(wanted.record)
                else:
                    answer = await write(wanted)
            else:
                for reply in wanted.replies:
                    with suppress(Exception):
                        await call.adiscard(reply)
    except StopIteration as done:
        result: Result = done.value
        return result
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
