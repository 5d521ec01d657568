"""A request on a deciding route: the turn is made, its decision is durable, and then the first byte goes out."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from agentmark.core.errors import AgentMarkError
from agentmark.decide.decision import Run
from agentmark.decide.desk import Desk
from agentmark.decide.driving import Write, await_for
from agentmark.decide.turn import Turn, dialogue
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.proposals import METHOD
from agentmark.gateway.call import GatewayCall
from agentmark.gateway.callers import Caller, Callers, meta_of
from agentmark.gateway.errors import GatewayError, broken_off
from agentmark.gateway.exchange import Answering, Asked
from agentmark.gateway.headers import for_upstream
from agentmark.gateway.json_text import TooManyPartsError, json_value, model_in
from agentmark.gateway.limits import InTurn
from agentmark.gateway.memory import StoredMemory, decision_of, kept_place
from agentmark.gateway.metrics import NO_NAME, Metrics, Names
from agentmark.gateway.relay import relay, url_at
from agentmark.gateway.sessions import Retry, session_of, step_of
from agentmark.gateway.settings import Settings
from agentmark.gateway.telemetry import Telemetry
from agentmark.gateway.upstream import BrokenReplyError, OversizeError, RefusedError, Reply, Target, Upstreams
from agentmark.record import StepRecord
from agentmark.store.decision import StoredDecision
from agentmark.store.errors import StoreError
from agentmark.store.store import Store
from agentmark.wire.apis import Api

logger = logging.getLogger("agentmark.gateway")

# For how long a decision is the answer to a client that asks again.
RETRY_S = 900.0


@dataclass(slots=True)
class Deciding:
    """What answers the deciding routes."""

    settings: Settings
    callers: Callers
    store: Store
    upstreams: Upstreams
    metrics: Metrics
    names: Names
    background: "Background"
    telemetry: Telemetry
    named: InTurn = field(default_factory=InTurn)

    async def answer(self, asked: Asked, api: Api, caller: Caller, raw: bytes, out: Answering) -> None:
        credential = self.callers.credential(caller)
        body, reason = _object(raw)
        named = model_in(raw) if body is None else body.get("model")
        # Rules go by what the client said, not by its label in the counts: those are bounded, and others share them.
        way = self.settings.way(asked.path, named if isinstance(named, str) and named else NO_NAME)
        model = self.names.of(named)
        url = url_at(way.upstream, asked.target)
        if way.mode == "off":
            reason = "marking is off here"
        if body is not None and reason is None:
            desk = self.callers.desk(caller, way)
            headers = for_upstream(asked.headers, is_read=True, credential=credential)
            call = GatewayCall(
                api,
                raw,
                body,
                target=Target(url, headers, way.upstream),
                upstreams=self.upstreams,
                model=model,
                max_reply=self.settings.max_reply,
                left_out=desk.refusals.left_out((way.upstream, model)),
            )
            reason = call.unmarkable()
            if reason is None:
                try:
                    await _Exchange(self, asked, out, caller=caller, call=call, desk=desk).go()
                except OversizeError:
                    reason = "a reply larger than the limit"
                except AgentMarkError:
                    raise
                except Exception:
                    # A fault of ours costs the mark, not the agent's reply (law L11).
                    logger.exception("a request went unmarked")
                    if self.settings.fail == "closed" or out.is_begun:
                        raise GatewayError(500, "a fault of the gateway", "fault") from None
                    reason = "a fault of the gateway"
                finally:
                    call.close()
                if reason is None:
                    return
        self.metrics.unmarked.labels(reason, model).inc()
        headers = for_upstream(asked.headers, is_read=False, credential=credential)
        await relay(asked, out, self.upstreams, Target(url, headers, way.upstream), raw)


class _Exchange:
    """One marked request: what was decided, what of it is written, and what reached the client."""

    def __init__(
        self, deciding: Deciding, asked: Asked, out: Answering, *, caller: Caller, call: GatewayCall, desk: Desk
    ) -> None:
        self._deciding = deciding
        self._store = deciding.store
        self._settings = deciding.settings
        self._caller = caller
        self._call = call
        self._desk = desk
        self._out = out
        messages = call.conversation()
        self._session = session_of(asked.headers, call.body, messages, caller.key)
        self._retry = Retry(asked.headers, call.request, asked.path, caller.key)
        self._memory = StoredMemory()
        self._id = uuid4().hex
        self._run = Run(
            caller.embedder.session(self._session, first_step=step_of(messages)),
            meta_of(caller),
            is_named=True,
            memory=self._memory,
            context={"request": self._id},
        )
        # The decision as it is kept, from when its record is being written; and whether it came to its end.
        self._kept: StoredDecision | None = None
        self._turn: Turn | None = None
        self._begun = time.perf_counter()
        out.on_start = self._note_first_byte

    async def go(self) -> None:
        if not self._retry.is_named or self._retry.key is None:
            await self._go()
            return
        # Asked again while the first is still answered, it is the same request: it waits, and gets the same.
        async with self._deciding.named.one((self._caller.tenant, self._retry.key)):
            await self._go()

    async def _go(self) -> None:
        try:
            if await self._is_replayed():
                return
            try:
                async with asyncio.timeout(self._settings.upstream_s):
                    turn = self._turn = await self._make_turn()
            except TimeoutError:
                raise GatewayError(504, "the upstream did not answer in time", "upstream timeout") from None
            await self._deliver(turn)
        except RefusedError as refused:
            # The upstream's own error, with all that it says of when to try again.
            reply = refused.reply
            await self._out.whole(reply.status, reply.headers, bytes(reply.content))
        except BrokenReplyError as broken:
            await self._pass_on_broken(broken.reply)
        except ElicitationError as error:
            raise GatewayError(503, f"no list of choices could be had ({error.logged})", "no list") from None
        finally:
            self._settle()

    # --- the turn ---

    async def _make_turn(self) -> Turn:
        memory, run = self._memory, self._run
        await self._ask_store(
            memory.look_up(self._store, self._caller.tenant, self._call.conversation(), run=run, key=self._caller.key)
        )
        return await await_for(dialogue(self._desk, self._call, run), self._desk, self._call, write=self._write)

    async def _write(self, wanted: Write) -> bool:
        """Keep a record; with a decision, False if it is to be undone."""
        record, decision = wanted.record, wanted.decision
        if record is None:
            return True
        kept = None
        if decision is not None:
            kept = self._kept = self._as_kept(wanted)
        elif self._memory.before is not None and (record.meta or {}).get("edited"):
            kept = replace(self._memory.before, settled=True)
        begun = time.perf_counter()
        try:
            await self._store.record(record, tenant=self._caller.tenant, decision=kept)
        except StoreError as error:
            self._deciding.metrics.errors.labels("store").inc()
            logger.error("the store failed: %s", error)
            if decision is None:
                self._desk.ledger.unrecorded(error, self._call.model)
                return True
            if error.written is False:
                self._kept = None
            else:
                # Nobody knows: should it be there after all, it is taken out of the evidence.
                self._void_quietly()
            if self._settings.fail == "closed":
                raise GatewayError(503, "the decision cannot be recorded", "store", retry_after_s=1) from None
            return False
        self._deciding.metrics.stored.observe(time.perf_counter() - begun)
        if decision is not None:
            self._deciding.callers.ledger.kept(record, self._call.model)
        self._deciding.telemetry.recorded(record)
        return True

    def _as_kept(self, wanted: Write) -> StoredDecision:
        decision = wanted.decision
        if decision is None:
            raise ValueError("a write without a decision")
        now = time.time()
        kept = StoredDecision(
            id=self._id,
            tenant=self._caller.tenant,
            retry_key=self._retry.key,
            session=self._session,
            place=kept_place(self._caller.key, wanted.place),
            behavior=decision.behavior,
            names=decision.names,
            method=decision.elicitation.method,
            model=decision.elicitation.model,
            record=decision.record,
            request_digest=self._retry.request_digest,
            created_at=now,
            expires_at=now + RETRY_S,
        )
        reply = decision.reply
        return self._with_reply(kept, reply) if isinstance(reply, Reply) and reply.is_at_end else kept

    def _with_reply(self, kept: StoredDecision, reply: Reply) -> StoredDecision:
        """With the whole reply, where the client names its requests and may ask for the same again."""
        if not self._retry.is_named or not self._settings.keep_replies:
            return kept
        headers = tuple([(key.decode("latin-1"), value.decode("latin-1")) for key, value in reply.headers])
        expires_at = time.time() + self._settings.keep_replies
        return replace(kept, reply=bytes(reply.content), status=reply.status, headers=headers, expires_at=expires_at)

    # --- a client that asks again ---

    async def _is_replayed(self) -> bool:
        """Whether this was answered before, and the same answer went out again."""
        if not self._retry.is_one or self._retry.key is None:
            return False
        found = await self._ask_store(self._store.find_decision(self._caller.tenant, self._retry.key))
        if found is None or found.request_digest != self._retry.request_digest:
            return False
        if found.reply is not None and found.status is not None:
            headers = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in found.headers]
            self._deciding.metrics.replayed.inc()
            await self._out.whole(found.status, headers, found.reply)
            return True
        if found.record is None or found.voided:
            return False
        decision = decision_of(found, self._run)
        if found.method == METHOD:
            # What was chosen then never came to its end. Samples are independent: these are as good.
            await self._write(Write(self._desk.outcome(decision, None)))
        else:
            self._memory.retry(decision)
            self._kept = found
        return False

    # --- the answer ---

    async def _deliver(self, turn: Turn) -> None:
        reply: Reply = turn.reply
        out = self._out
        if reply.is_at_end:
            await out.start(reply.status, reply.headers)
            await out.end(bytes(reply.content))
            return
        await out.start(reply.status, reply.headers)
        if reply.content:
            await out.more(bytes(reply.content))
        is_readable = True
        async for piece in reply.rest():
            if turn.is_open and is_readable:
                is_readable = self._looked_at(reply, piece)
            await out.more(piece)
        is_readable = is_readable and not reply.is_unreadable
        calls = self._call.read(reply) if is_readable and reply.is_finished else None
        # Said before the end is: a client that has the end may ask again at once.
        await self._write(Write(turn.outcome(calls)))
        await out.end()

    def _looked_at(self, reply: Reply, piece: bytes) -> bool:
        try:
            reply.look_at(piece, self._call.api)
        except Exception as error:
            self._desk.ledger.fell_back("a reply cannot be read", self._call.model, type(error).__name__)
            return False
        return True

    async def _pass_on_broken(self, reply: Reply) -> None:
        """What came of a reply that broke off; the connection is cut where the upstream's was. One that came to its end
        without saying so, or says that the provider failed, is handed on to its end."""
        if reply.is_at_end and not self._out.is_begun:
            self._deciding.metrics.unmarked.labels("a stream that says no end", self._call.model).inc()
            await self._out.start(reply.status, reply.headers)
            await self._out.end(bytes(reply.content))
            return
        if not self._out.is_begun:
            await self._out.start(reply.status, reply.headers)
            await self._out.more(bytes(reply.content))
        raise broken_off()

    def _settle(self) -> None:
        """When all is over: a decision whose reply did not come whole to the client takes no part in the evidence."""
        kept, retry = self._kept, self._retry
        if kept is None or kept.record is None:
            return
        if self._out.is_at_end and self._turn is not None:
            if retry.key is not None and not retry.is_named:
                # Nobody will ask for this one again: the next request like it is another.
                done = replace(kept, expires_at=time.time())
                self._deciding.background.start(self._quietly(decision=done))
            return
        if kept.reply is not None or (kept.method != METHOD and retry.key is not None):
            # The client may ask again, and then gets the same.
            return
        self._void()

    def _void(self) -> None:
        """Take the decision out of the evidence, and count it."""
        if self._kept is not None and self._kept.record is not None:
            self._desk.ledger.unfinished(self._call.model)
            self._void_quietly()

    def _void_quietly(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None and kept.record is not None:
            self._deciding.background.start(self._quietly(kept.record.with_enforced(False)))

    async def _quietly(self, *records: StepRecord, decision: StoredDecision | None = None) -> None:
        try:
            await self._store.record(*records, tenant=self._caller.tenant, decision=decision)
        except StoreError as error:
            logger.error("the store failed: %s", error)

    async def _ask_store(self, question: Coroutine[Any, Any, Any]) -> Any:
        """What the store says. One that does not answer costs a memory, not the agent's reply."""
        try:
            return await question
        except StoreError as error:
            self._deciding.metrics.errors.labels("store").inc()
            logger.error("the store failed: %s", error)
            if self._settings.fail == "closed":
                raise GatewayError(503, "the store does not answer", "store", retry_after_s=1) from None
            return None

    def _note_first_byte(self) -> None:
        upstream = self._call.clock.seconds
        self._deciding.metrics.upstream.observe(upstream)
        added = time.perf_counter() - self._begun - upstream
        route, model = self._call.api.PATH, self._call.model
        self._deciding.metrics.added.labels(route, model).observe(max(0.0, added))
        self._deciding.telemetry.added(max(0.0, added), route, model)


class Background:
    """What is done after an answer went out. Waited for when the gateway stops."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)


def _object(raw: bytes) -> tuple[Mapping[str, Any] | None, str | None]:
    """What a request says; or why it is not read."""
    try:
        found = json_value(raw)
    except TooManyPartsError:
        return None, "the request has more parts than are read"
    except ValueError:
        found = None
    return (found, None) if isinstance(found, dict) else (None, "the request is no JSON object")
