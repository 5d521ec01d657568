"""What a stranger may be told of a verdict: the answer, and nothing that moves with a single record.

Evidence, counts and findings answer a question about every record of a log. Whoever may ask about logs of their own
making learns from such answers, record by record, what the key would have chosen, and in the end forges
(docs/verdict.md has the counts). So this view knows the decision and who was named, and two logs with the same
decision look the same in it.
"""

from dataclasses import dataclass
from typing import Any

from agentmark.core.payload import payload_to_text
from agentmark.text import listed

# In a sentence, names beyond this many are counted, not listed.
LISTED = 5


@dataclass(frozen=True, slots=True)
class NamedIdentity:
    """Who is named, and nothing of how clearly."""

    payload: int
    payload_len: int
    # From the registry, if one was given and holds the payload.
    identity: str | None = None
    revoked_at: str | None = None

    @property
    def name(self) -> str:
        """Who it is, in the words of a sentence."""
        return name_of(self.payload, self.payload_len, self.identity, self.revoked_at)

    @property
    def text(self) -> str | None:
        """The payload as text, if its bytes are printable text."""
        return payload_to_text(self.payload, self.payload_len)

    def as_dict(self) -> dict[str, Any]:
        return {
            "payload": payload_digits(self.payload, self.payload_len),
            "payload_len": self.payload_len,
            "identity": self.identity,
            "revoked_at": self.revoked_at,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StrangerView:
    """A verdict for those who do not hold the key (`Verdict.for_stranger`): unless accepted, the threshold alone."""

    accepted: bool
    threshold: float
    # Everyone who is named, in the order of the payloads: who is best moves with single records.
    found: tuple[NamedIdentity, ...] = ()

    @property
    def alone(self) -> NamedIdentity | None:
        """The identity that is named, if there is exactly one: none of several stands for the others."""
        return self.found[0] if len(self.found) == 1 else None

    @property
    def sentence(self) -> str:
        """The verdict in one sentence; all logs that are not accepted get the same one."""
        if not self.found:
            return f"Not attributed: no identity is shown at a bound of {self.threshold!r}."
        names = [identity.name for identity in self.found]
        if len(names) == 1:
            return (
                f"Attributed to {names[0]}: a log made without this key, or for another identity, is named so with "
                f"probability at most {self.threshold!r}."
            )
        return (
            f"{len(names)} identities found: {listed(names, LISTED)}: a log that does not carry one of them is said to "
            f"with probability at most {self.threshold!r}."
        )

    def as_dict(self) -> dict[str, Any]:
        """The view as plain JSON data (docs/verdict.md)."""
        nobody = dict.fromkeys(("payload", "payload_len", "identity", "revoked_at", "text"))
        return {
            "accepted": self.accepted,
            "sentence": self.sentence,
            **(nobody if self.alone is None else self.alone.as_dict()),
            "found": [identity.as_dict() for identity in self.found],
            "threshold": self.threshold,
        }


def name_of(payload: int, payload_len: int, identity: str | None, revoked_at: str | None) -> str:
    """Who a payload is, in the words of a sentence: by name, as text if it is some, by its digits."""
    name, *about = name_parts(payload, payload_len, identity, revoked_at)
    return f"{name} ({', '.join(about)})" if about else name


def name_parts(payload: int, payload_len: int, identity: str | None, revoked_at: str | None) -> list[str]:
    """The name, and what is to be said beside it."""
    if payload_len == 0:
        return ["the holder of this key", "the mark carries no identity"]
    digits = f"payload 0x{payload_digits(payload, payload_len)}"
    if identity is not None:
        return [repr(identity), digits, *([f"revoked {revoked_at}"] if revoked_at else [])]
    text = payload_to_text(payload, payload_len)
    return [digits, f"as text: {text!r}"] if text is not None and payload_len >= 16 else [digits]


def payload_digits(payload: int, payload_len: int) -> str:
    """Hexadecimal, with as many digits as the length takes."""
    return f"{payload:0{-(-payload_len // 4)}x}"
