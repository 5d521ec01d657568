"""Checking disclosures against an exhibit: which records they prove, and what is to be said of the others."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from agentmark.core.prf import DIGEST_SIZE
from agentmark.disclosure.digest import record_digest
from agentmark.disclosure.document import Disclosure, DisclosureError, Entry
from agentmark.keys.public import PublicKey
from agentmark.record import StepRecord
from agentmark.text import counted, is_or_are


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
    """What one key's disclosures say of records, one by one: in place of the key, where the secret is not at hand.
    Proofs are checked once for each step, when they are first needed."""

    def __init__(self, disclosures: Disclosure | Iterable[Disclosure]) -> None:
        held = [disclosures] if isinstance(disclosures, Disclosure) else list(disclosures)
        if not held or len({disclosure.public_key.id for disclosure in held}) > 1:
            raise DisclosureError("argument", "the disclosures of one key are needed, and of no other")
        self.disclosures = tuple(held)
        self.public_key = held[0].public_key
        self._entries: dict[str, list[Entry]] = defaultdict(list)
        for disclosure in held:
            for entry in disclosure.entries:
                self._entries[entry.digest].append(entry)
        self._contexts = {entry.context for entries in self._entries.values() for entry in entries}
        self._step_keys: dict[tuple[bytes, int, bytes], bytes | None] = {}
        self._check = blake2b(b"".join([disclosure.proof for disclosure in held]), digest_size=DIGEST_SIZE).digest()

    @property
    def id(self) -> str:
        """The key id that records state."""
        return self.public_key.id

    @property
    def check(self) -> bytes:
        """Tells sets of disclosures apart."""
        return self._check

    def missing(self, records: Iterable[StepRecord]) -> str | None:
        """A sentence if some of the disclosed records are not among these. Nothing else shows it, and whoever knows
        the disclosure can pick out what suits an identity."""
        here = {record_digest(record) for record in records if record.key_id == self.id}
        count = len(self._entries.keys() - here)
        if not count:
            return None
        return (
            f"{count:,} of {counted(len(self._entries), 'disclosed record')} {is_or_are(count)} not in the log: taken "
            "out after the disclosure they would leave what suits an identity of somebody's choice"
        )

    def proof_of(self, record: StepRecord) -> StepProof:
        """A record counts only if its digest is listed with its own context and length, and the proof holds there."""
        entries = self._entries.get(record_digest(record), ())
        if not entries:
            return StepProof(Proved.ALTERED if record.context in self._contexts else Proved.NOT_DISCLOSED)
        for entry in entries:
            if (entry.context, entry.payload_len) == (record.context, record.payload_len):
                step_key = self._step_key(entry)
                if step_key is not None:
                    return StepProof(Proved.YES, step_key)
        return StepProof(Proved.NOT_PROVED)

    def _step_key(self, entry: Entry) -> bytes | None:
        step = entry.context, entry.payload_len, entry.proof
        if step not in self._step_keys:
            self._step_keys[step] = self.public_key.step_key(*step)
        return self._step_keys[step]

    def __repr__(self) -> str:
        return f"DisclosedSteps(id={self.id!r}, records={len(self._entries):,})"


def disclosed_steps(disclosures: Iterable[Disclosure], public_keys: Iterable[PublicKey]) -> list[DisclosedSteps]:
    """The disclosures by key. Each must be by one of these keys, and each key must have disclosed something: whose a
    disclosure is, it cannot prove by itself."""
    by_id: dict[str, list[Disclosure]] = {key.id: [] for key in public_keys}
    for disclosure in disclosures:
        if disclosure.public_key.id not in by_id:
            raise DisclosureError(
                disclosure.source, f"is by key {disclosure.public_key.id}, which is none of the public keys given"
            )
        by_id[disclosure.public_key.id].append(disclosure)
    for key_id, held in by_id.items():
        if not held:
            raise DisclosureError(f"of key {key_id}", "there is none among those given")
    return [DisclosedSteps(held) for held in by_id.values()]
