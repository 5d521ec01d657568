"""What a verdict of public mode is repeated from: records, disclosures and the question, as a part of its report.

With it whoever receives the report needs neither the secret nor any other file (`audit/repeat.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from agentmark.disclosure.basis import PublicBasis
from agentmark.disclosure.document import Disclosure
from agentmark.identity.registry import Identity, Registry
from agentmark.record import StepRecord
from agentmark.verify.stranger import payload_digits

# A report carries so many records, and so many entries of disclosures: some nine megabytes. Of a longer log the files
# themselves have to be sent.
MAX_CARRIED = 10_000
# Each disclosure has a key and a signature of its own to be checked, some 20 ms in plain Python.
MAX_DISCLOSURES = 500


class PublicKeyPart(TypedDict):
    agentmark_public_key: int
    id: str
    public_key: str
    id_proof: str


class EntryPart(TypedDict):
    digest: str
    context: str
    payload_len: int
    proof: str


class DisclosurePart(TypedDict):
    """A disclosure, as its file has it."""

    agentmark_disclosure: int
    public_key: PublicKeyPart
    records: list[EntryPart]
    proof: str


class TenantPart(TypedDict):
    """Whose a public key is, by the registry of public keys that was given."""

    name: str
    key_id: str
    registered_at: str
    revoked_at: str | None


class IdentityPart(TypedDict):
    """Which number a name stands for: of those who are named, and of a claim."""

    name: str
    payload: str
    revoked_at: str | None


class AskedPart(TypedDict):
    """The question, as far as the report does not state it elsewhere. Numbers with a fraction are text."""

    payload_len: int | None
    threshold: str
    noise: str | None
    work_limit: int
    reading_limit: int
    segments: bool
    # False if some sessions of the logs were chosen: what else was disclosed may then be in the others.
    all_sessions: bool


class RestsOnPart(TypedDict):
    """Against whom the verdict holds: which statement, in a sentence, and what it takes."""

    statement: str
    sentence: str
    keys_registered: int
    tenants: list[TenantPart]


class DisclosedPart(TypedDict):
    """Everything that the verdict follows from. `records` are lines, as in a log."""

    identities: list[IdentityPart]
    asked: AskedPart
    disclosures: list[DisclosurePart]
    records: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a report may carry, before it is known who is named."""

    basis: PublicBasis
    disclosures: Sequence[Disclosure]
    records: Sequence[StepRecord]
    asked: AskedPart
    registry: Registry | None = None
    # A name in the registry that was claimed.
    claim: str | None = None

    @property
    def rests_on(self) -> RestsOnPart:
        return RestsOnPart(
            statement=self.basis.statement.value,
            sentence=self.basis.sentence,
            keys_registered=self.basis.keys_registered,
            tenants=[
                TenantPart(
                    name=tenant.name,
                    key_id=tenant.public_key.id,
                    registered_at=tenant.registered_at,
                    revoked_at=tenant.revoked_at,
                )
                for tenant in self.basis.tenants
            ],
        )

    def part(self, named: Iterable[int]) -> DisclosedPart | None:
        """The part of the report in which these payloads are named; None if it is more than a report carries."""
        entries = sum([len(disclosure.entries) for disclosure in self.disclosures])
        if not is_carried(records=len(self.records), entries=entries, disclosures=len(self.disclosures)):
            return None
        return DisclosedPart(
            identities=self._identities(named),
            asked=self.asked,
            disclosures=[_disclosure_part(disclosure) for disclosure in self.disclosures],
            # What tools add, and links of a chain, are no part of what is judged.
            records=[replace(record, meta=None, prev=None).to_json() for record in self.records],
        )

    def _identities(self, named: Iterable[int]) -> list[IdentityPart]:
        if self.registry is None:
            return []
        held: dict[str, Identity] = {}
        for payload in named:
            holder = self.registry.holder(payload)
            if holder is not None:
                held[holder.name] = holder
        if self.claim is not None:
            held[self.claim] = self.registry.named(self.claim)
        return [
            IdentityPart(
                name=identity.name,
                payload=payload_digits(identity.payload, self.registry.payload_len),
                revoked_at=identity.revoked_at,
            )
            for identity in held.values()
        ]


def is_carried(*, records: int, entries: int, disclosures: int) -> bool:
    """Whether a report carries so much. One that does is judged again in a minute or two, in plain Python."""
    return max(records, entries) <= MAX_CARRIED and disclosures <= MAX_DISCLOSURES


def _disclosure_part(disclosure: Disclosure) -> DisclosurePart:
    said = disclosure.as_dict()
    return DisclosurePart(
        agentmark_disclosure=said["agentmark_disclosure"],
        public_key=said["public_key"],
        records=said["records"],
        proof=said["proof"],
    )
