"""The sidecar's routes: an agent that has a list of its own sends it and gets the choice, and says what it then did.

POST /decide   {"weights": {"search": 3, "answer": 1}, "session": "run 7", "step": 0}
               -> {"decision": "5f...", "choice": "search", "marked": true}
POST /observe  {"decision": "5f...", "did": "answer"}          (null: nothing that counts)
               -> {"recorded": true}
POST /verify   {"session": "run 7"}
               -> {"attributed": true, "steps": 40, ...}
"""

import asyncio
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from agentmark.core.canonical import is_unicode
from agentmark.decide.decision import Decision, Run
from agentmark.elicit.situation import Elicitation, whole
from agentmark.gateway.callers import Caller, Callers, meta_of
from agentmark.gateway.errors import GatewayError
from agentmark.gateway.exchange import Answering
from agentmark.gateway.json_text import json_value
from agentmark.gateway.memory import decision_of
from agentmark.gateway.metrics import Metrics, Names
from agentmark.gateway.sessions import MAX_SESSION_LEN
from agentmark.gateway.settings import Settings
from agentmark.record import StepRecord
from agentmark.store.decision import StoredDecision
from agentmark.store.errors import StoreError
from agentmark.store.store import Store
from agentmark.text import first_unprintable

# Behaviors in one list, and the length of a name.
MAX_BEHAVIORS = 1000
MAX_NAME_LEN = 500
# How long what was decided can be observed.
OBSERVED_S = 24 * 3600.0
# Records that a question over HTTP may be about; for more there is the command.
MAX_JUDGED = 20_000
# And how much text they may be: a record of a thousand behaviors is as much as a hundred others.
MAX_JUDGED_SIZE = 64 * 1024 * 1024
GIVEN = "given"


class Sidecar:
    """What answers /decide, /observe and /verify."""

    def __init__(self, settings: Settings, callers: Callers, store: Store, metrics: Metrics, *, names: Names) -> None:
        self._settings = settings
        self._callers = callers
        self._store = store
        self._metrics = metrics
        self._names = names
        self.routes = {"/decide": self.decide, "/observe": self.observe, "/verify": self.verify}
        # Judging is work for a processor: one question at a time.
        self._judging = asyncio.Lock()

    async def decide(self, caller: Caller, raw: bytes, out: Answering) -> None:
        asked = _object(raw)
        weights = _weights(asked.get("weights"))
        session = _session(asked.get("session")) or uuid4().hex
        step = whole(asked.get("step", 0))
        if step is None:
            raise _bad("step is not a whole number")
        request = uuid4().hex
        run = Run(
            caller.embedder.session(session, first_step=step),
            meta_of(caller),
            is_named=True,
            context={"request": request},
        )
        model = self._names.of(asked.get("model"))
        desk = self._callers.desk(caller, self._settings.way("/decide", model))
        said = Elicitation(method=GIVEN, model=model, weights=weights)
        decision = desk.choose(run, weights, said)
        if decision.record is None or decision.behavior is None:
            raise _bad(decision.elicitation.fault or "weights cannot be used")
        try:
            await self._store.record(decision.record, tenant=caller.tenant, decision=_kept(decision, caller, request))
        except StoreError:
            self._metrics.errors.labels("store").inc()
            desk.ledger.undone(decision.record, model)
            if self._settings.fail == "closed":
                raise GatewayError(503, "the decision cannot be recorded", "store", retry_after_s=1) from None
            # Drawn anew, without the mark: what no log shows is no mark.
            distribution = decision.record.distribution
            behavior = decision.behavior if distribution is None else distribution.at(secrets.randbits(32))
            await _say(out, {"decision": None, "choice": behavior, "marked": False, "reason": "the store failed"})
            return
        self._callers.ledger.kept(decision.record, model)
        answer: dict[str, Any] = {"decision": request, "choice": decision.behavior, "marked": decision.marked}
        if not decision.marked:
            answer["reason"] = decision.record.reason
        await _say(out, answer)

    async def observe(self, caller: Caller, raw: bytes, out: Answering) -> None:
        asked = _object(raw)
        name, did = asked.get("decision"), asked.get("did")
        if not isinstance(name, str) or not isinstance(did, str | None):
            raise _bad("say which decision, and what was done (text, or null)")
        try:
            found = await self._store.find_decision(caller.tenant, _retry_key(name))
            if found is None or found.record is None:
                raise GatewayError(404, "no such decision, or it is too old", "unknown decision")
            run = Run(caller.embedder.session(found.session), meta_of(caller))
            desk = self._callers.desk(caller, self._settings.way("/observe", found.model))
            record = desk.outcome(decision_of(found, run), did)
            if record is not None:
                await self._store.record(record, tenant=caller.tenant)
        except StoreError:
            raise GatewayError(503, "the store does not answer", "store", retry_after_s=1) from None
        await _say(out, {"recorded": record is not None})

    async def verify(self, caller: Caller, raw: bytes, out: Answering) -> None:
        """Judge a session of the caller's own, under the caller's own key. Every question is on record."""
        asked = _object(raw)
        session = _session(asked.get("session"))
        if session is None:
            raise _bad("say which session")
        try:
            await self._store.note_call(caller.tenant, "verify", detail={"session": session})
            async with self._judging:
                answer = await asyncio.to_thread(self._judge, caller, session)
        except StoreError:
            raise GatewayError(503, "the store does not answer", "store", retry_after_s=1) from None
        await _say(out, answer)

    def _judge(self, caller: Caller, session: str) -> dict[str, Any]:
        records: list[StepRecord] = []
        size = 0
        for line in self._store.lines(session=session, tenant=caller.tenant):
            size += len(line)
            if len(records) >= MAX_JUDGED or size > MAX_JUDGED_SIZE:
                said = f"more than {MAX_JUDGED} records, or {MAX_JUDGED_SIZE} bytes of them: use the command verify"
                raise GatewayError(413, said, "too many records")
            records.append(StepRecord.from_json(line))
        if not records:
            return {"session": session, "attributed": False, "records": 0}
        verdict = self._callers.verifier(caller).verify(records, claim=caller.claim)
        return {
            "session": session,
            "attributed": verdict.accepted,
            "identity": caller.identity if verdict.accepted else None,
            "records": len(records),
            "used": verdict.counted_steps,
            "false_positive_rate": verdict.false_positive_rate,
            "threshold": verdict.threshold,
        }


def _kept(decision: Decision, caller: Caller, request: str) -> StoredDecision:
    now = time.time()
    return StoredDecision(
        id=request,
        tenant=caller.tenant,
        retry_key=_retry_key(request),
        session=decision.run.session.id,
        behavior=decision.behavior,
        names=decision.names,
        method=decision.elicitation.method,
        model=decision.elicitation.model,
        record=decision.record,
        created_at=now,
        expires_at=now + OBSERVED_S,
    )


def _retry_key(request: str) -> str:
    return f"decide {request[:64]}"


def _object(raw: bytes) -> Mapping[str, Any]:
    try:
        found = json_value(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _bad("the body is no JSON object")
    return found


def _weights(said: object) -> dict[str, float | int]:
    if not isinstance(said, dict) or not 1 <= len(said) <= MAX_BEHAVIORS:
        raise _bad(f"weights is not an object of 1 to {MAX_BEHAVIORS} behaviors")
    for name, weight in said.items():
        if not isinstance(weight, int | float) or isinstance(weight, bool) or len(name) > MAX_NAME_LEN:
            raise _bad("weights holds something that is no number, or a name that is too long")
    return said


def _session(said: object) -> str | None:
    if said is None:
        return None
    is_usable = isinstance(said, str) and 0 < len(said) <= MAX_SESSION_LEN and is_unicode(said)
    if not is_usable or first_unprintable(str(said)) is not None:
        raise _bad(f"session is not one line of 1 to {MAX_SESSION_LEN} characters")
    return str(said)


def _bad(message: str) -> GatewayError:
    return GatewayError(400, message, "bad request")


async def _say(out: Answering, content: Mapping[str, Any]) -> None:
    await out.whole(200, [(b"content-type", b"application/json")], json.dumps(content).encode())
