"""The digest by which a disclosure binds a record: whoever learns a step key from it must not be able to use it."""

from hashlib import blake2b

from agentmark.core.canonical import canonical_bytes
from agentmark.core.prf import DIGEST_SIZE
from agentmark.record import RECORD_VERSION, StepRecord

DISCLOSED_RECORD = b"agentmark/1 disclosed record"


def record_digest(record: StepRecord) -> str:
    """Of all that a verdict rests on: also whether the agent obeyed, since a line that says it did not takes its step
    out. What tools add, drop or rewrite on the way (meta, reasons, links of a chain) is not part of it."""
    weights = record.partial_weights if record.distribution is None else record.distribution.as_weights()
    content = {
        "agentmark": RECORD_VERSION,
        "scheme": record.scheme,
        "key_id": record.key_id,
        "payload_len": record.payload_len,
        "session": record.session,
        "step": record.step_index,
        "context": record.context.hex(),
        "weights": dict(weights) if weights else None,
        "partial": record.partial_weights is not None,
        "choice": record.behavior,
        "marked": record.marked,
        "enforced": record.enforced,
    }
    return blake2b(DISCLOSED_RECORD + b"\0" + canonical_bytes(content), digest_size=DIGEST_SIZE).hexdigest()
