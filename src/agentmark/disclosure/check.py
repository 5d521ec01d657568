"""Checking a disclosure against an exhibit: which records it proves, and what is to be said of the others."""

from dataclasses import dataclass
from enum import StrEnum

from agentmark.disclosure.digest import record_digest
from agentmark.disclosure.document import Disclosure
from agentmark.record import StepRecord


class Proved(StrEnum):
    """What a disclosure says of a marked record that states its key. All but the first count as disagreeing."""

    YES = "proved"
    NOT_DISCLOSED = "not disclosed"
    ALTERED = "altered since it was disclosed"
    NOT_PROVED = "not proved"


@dataclass(frozen=True, slots=True)
class StepProof:
    """The verdict on one record's proof, and the step key if it holds."""

    proved: Proved
    step_key: bytes | None = None


class DisclosedSteps:
    """Answers for records one by one. Proofs are checked once for each step, when they are first needed."""

    def __init__(self, disclosure: Disclosure) -> None:
        self.public_key = disclosure.public_key
        self._by_digest = {entry.digest: entry for entry in disclosure.entries}
        self._contexts = {entry.context for entry in disclosure.entries}
        self._step_keys: dict[tuple[bytes, int, bytes], bytes | None] = {}

    def proof_of(self, record: StepRecord) -> StepProof:
        """A record counts only if its digest is listed with its own context and length, and the proof holds there."""
        entry = self._by_digest.get(record_digest(record))
        if entry is None:
            return StepProof(Proved.ALTERED if record.context in self._contexts else Proved.NOT_DISCLOSED)
        if (entry.context, entry.payload_len) != (record.context, record.payload_len):
            return StepProof(Proved.NOT_PROVED)
        step = entry.context, entry.payload_len, entry.proof
        if step not in self._step_keys:
            self._step_keys[step] = self.public_key.step_key(*step)
        step_key = self._step_keys[step]
        return StepProof(Proved.NOT_PROVED if step_key is None else Proved.YES, step_key)
