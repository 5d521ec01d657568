"""One small record."""

from dataclasses import replace
from typing import Any

from support import TICKET_WEIGHTS

from agentmark import Embedder, SharedKey, StepRecord

KEY = SharedKey(bytes(range(100, 132)))


def a_record(**changes: Any) -> StepRecord:
    record = Embedder(KEY, 5, payload_len=8).session("s1").choose(TICKET_WEIGHTS).record
    return replace(record, **changes)
