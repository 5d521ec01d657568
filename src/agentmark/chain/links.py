"""Links: the digests by which each record of a session names the one before it (docs/chain.md)."""

from dataclasses import dataclass
from hashlib import blake2b

from agentmark.core.canonical import canonical_bytes
from agentmark.core.prf import DIGEST_SIZE
from agentmark.keys.signing import is_hex
from agentmark.record import StepRecord

# A label for every use, so that no digest of one kind can pass for another.
LINK = b"agentmark/1 chain"
START = b"agentmark/1 chain start"


def link_digest(record: StepRecord) -> str:
    """What the next record of the session carries as `prev`: the digest of this one, its own `prev` included."""
    content = record.as_dict()
    # Member by member, because each may be nested as deeply as canonical JSON allows. The names are ASCII.
    members = [canonical_bytes(name) + b":" + canonical_bytes(content[name], field=name) for name in sorted(content)]
    return labelled_digest(LINK, b"{" + b",".join(members) + b"}")


def start_digest(session: str) -> str:
    """What the first record of a session carries as `prev`, so that a removed head shows."""
    return labelled_digest(START, session.encode("utf-8"))


def labelled_digest(label: bytes, data: bytes) -> str:
    return blake2b(label + b"\0" + data, digest_size=DIGEST_SIZE).hexdigest()


def is_digest(value: object) -> bool:
    """True for a digest as text: 64 lower-case hexadecimal digits."""
    return is_hex(value, DIGEST_SIZE)


@dataclass(frozen=True, slots=True)
class Link:
    """A chained record, reduced to what its chain needs. `number` is its line, or its place among the records."""

    number: int
    step: int
    digest: str
    prev: str
