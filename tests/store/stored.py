"""Records and decisions to store. Light to load: programs that are started and killed load it each time."""

import os
import time
from dataclasses import replace
from typing import Any

from agentmark.embed.embedder import Embedder
from agentmark.keys.shared import SharedKey
from agentmark.record import StepRecord
from agentmark.store.decision import StoredDecision

_SESSION = Embedder(SharedKey(bytes(range(100, 132))), 5, payload_len=8).session("s1")
RECORD = _SESSION.choose({"Search": 0.40, "Book": 0.25, "Pay": 0.15, "Check-in": 0.12, "Modify": 0.08}).record


def new_record(**changes: Any) -> StepRecord:
    """A record with a context of its own."""
    return replace(RECORD, context=os.urandom(32), **changes)


def decision_of(record: StepRecord, **changes: Any) -> StoredDecision:
    now = time.time()
    values: dict[str, Any] = {
        "id": record.context.hex(),
        "session": record.session,
        "behavior": record.behavior,
        "record": record,
        "created_at": now,
        "expires_at": now + 60,
    }
    return StoredDecision(**{**values, **changes})
