"""Records and decisions as rows, and back. The same for every database."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentmark.record import StepRecord
from agentmark.store.decision import StoredDecision

# Columns that are searched hold no more than this; what is longer is cut, and told apart by its digest.
MAX_COLUMN_LEN = 200

# Which of the records of one context this is: the decision itself, or one that says what became of it.
DECIDED, OBEYED, NOT_OBEYED = 0, 1, 2

Row = tuple[Any, ...]

# In ASCII: every database holds it, whatever a model or a client put into a name. Made once: that takes longer than a
# small text.
_as_json = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Entry:
    """What one call wants written: all of it or nothing."""

    records: tuple[Row, ...]
    decision: Row | None = None


def column_text(text: str) -> str:
    """Text as a searched column holds it. Databases index only so much, and PostgreSQL's text has no zero byte; what
    is looked for goes the same way. The record's own line is whole."""
    if len(text) <= MAX_COLUMN_LEN and "\0" not in text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[: MAX_COLUMN_LEN // 2]}...{digest}".replace("\0", "\ufffd")


def record_row(record: StepRecord, tenant: str, now: float) -> Row:
    """In the order of `RECORD_COLUMNS`."""
    outcome = {None: DECIDED, True: OBEYED, False: NOT_OBEYED}[record.enforced]
    return (
        tenant,
        column_text(record.session),
        record.step_index,
        record.context,
        outcome,
        column_text(record.key_id),
        record.to_json(),
        now,
    )


RECORD_COLUMNS = ("tenant", "session", "step", "context", "outcome", "key_id", "line", "written_at")
CONTEXT, OUTCOME, LINE = 3, 4, 6

DECISION_COLUMNS = (
    "id",
    "tenant",
    "retry_key",
    "session",
    "place",
    "said",
    "context",
    "request_digest",
    "created_at",
    "expires_at",
    "settled",
    "reply",
    "answer",
)


def decision_row(decision: StoredDecision) -> Row:
    """In the order of `DECISION_COLUMNS`."""
    return (
        decision.id,
        decision.tenant,
        None if decision.retry_key is None else column_text(decision.retry_key),
        column_text(decision.session),
        decision.place,
        _as_json(
            {
                # Whole: the columns are for searching.
                "session": decision.session,
                "retry_key": decision.retry_key,
                "behavior": decision.behavior,
                "names": list(decision.names),
                "method": decision.method,
                "model": decision.model,
            }
        ),
        None if decision.record is None else decision.record.context,
        decision.request_digest,
        decision.created_at,
        decision.expires_at,
        int(decision.settled),
        decision.reply,
        _as_json({"status": decision.status, "headers": decision.headers}),
    )


def decision_of(row: Sequence[Any]) -> StoredDecision:
    """A decision as it was read, with the line of its record and the number of records that take it back."""
    values = dict(zip(DECISION_COLUMNS, row, strict=False))
    line, voids = row[len(DECISION_COLUMNS) :]
    said: Mapping[str, Any] = json.loads(values["said"])
    answer: Mapping[str, Any] = json.loads(values["answer"])
    return StoredDecision(
        id=values["id"],
        tenant=values["tenant"],
        retry_key=said["retry_key"],
        session=said["session"],
        place=bytes(values["place"]),
        behavior=said["behavior"],
        names=tuple(said["names"]),
        method=said["method"],
        model=said["model"],
        record=None if line is None else StepRecord.from_json(line, where=f"decision {values['id']}"),
        request_digest=bytes(values["request_digest"]),
        created_at=values["created_at"],
        expires_at=values["expires_at"],
        settled=bool(values["settled"]),
        voided=bool(voids),
        reply=None if values["reply"] is None else bytes(values["reply"]),
        status=answer["status"],
        headers=tuple((name, value) for name, value in answer["headers"]),
    )
