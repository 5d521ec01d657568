"""Making a disclosure: the holder's side."""

from collections.abc import Iterable

from agentmark.disclosure.digest import record_digest
from agentmark.disclosure.document import Disclosure, Entry, signed_bytes
from agentmark.keys.marking import MarkingKey
from agentmark.record import StepRecord


def disclose(records: Iterable[StepRecord], key: MarkingKey) -> Disclosure:
    """Prove the step keys of these records, as far as they are marked and state this key; once for each digest.

    Only for records of one's own, of sessions that are over. Whoever can have a context of his choice disclosed can
    forge there.
    """
    entries: dict[str, Entry] = {}
    proofs: dict[tuple[bytes, int], bytes] = {}
    for record in records:
        if not record.marked or record.key_id != key.id:
            continue
        step = record.context, record.payload_len
        if step not in proofs:
            proofs[step] = key.prove_step(*step)
        digest = record_digest(record)
        entries[digest] = Entry(digest, *step, proofs[step])
    listed = tuple(entries.values())
    return Disclosure(key.public, listed, key.prove(signed_bytes(key.public, listed)))
