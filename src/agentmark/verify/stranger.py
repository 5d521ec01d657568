"""What a stranger may be told of a verdict: the answer, and nothing that moves with a single record.

Evidence, counts and findings answer a question about every record of a log. Whoever may ask about logs of their own
making learns from such answers, record by record, what the key would have chosen, and in the end forges
(docs/verdict.md has the counts). So this view knows the decision and who was named, and two logs with the same
decision look the same in it.
"""

from dataclasses import dataclass
from typing import Any

from agentmark.core.payload import payload_to_text


@dataclass(frozen=True, slots=True, kw_only=True)
class StrangerView:
    """A verdict for those who do not hold the key (`Verdict.for_stranger`): unless accepted, the threshold alone."""

    accepted: bool
    threshold: float
    payload: int | None = None
    payload_len: int | None = None
    # From the registry, if one was given and holds the payload.
    identity: str | None = None
    revoked_at: str | None = None

    @property
    def text(self) -> str | None:
        """The payload as text, if its bytes are printable text."""
        return None if self.payload is None else payload_to_text(self.payload, self.payload_len or 0)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence; all logs that are not accepted get the same one."""
        if self.payload is None or self.payload_len is None:
            return f"Not attributed: no identity is shown at a bound of {self.threshold!r}."
        return (
            f"Attributed to {name_of(self.payload, self.payload_len, self.identity, self.revoked_at)}: a log made "
            f"without this key, or for another identity, is named so with probability at most {self.threshold!r}."
        )

    def as_dict(self) -> dict[str, Any]:
        """The view as plain JSON data (docs/verdict.md)."""
        return {
            "accepted": self.accepted,
            "sentence": self.sentence,
            "payload": None if self.payload is None else payload_digits(self.payload, self.payload_len or 0),
            "payload_len": self.payload_len,
            "identity": self.identity,
            "revoked_at": self.revoked_at,
            "text": self.text,
            "threshold": self.threshold,
        }


def name_of(payload: int, payload_len: int, identity: str | None, revoked_at: str | None) -> str:
    """Who a payload is, in the words of a sentence: by name, as text if it is some, by its digits."""
    if payload_len == 0:
        return "the holder of this key (the mark carries no identity)"
    digits = f"0x{payload_digits(payload, payload_len)}"
    if identity is not None:
        revoked = f", revoked {revoked_at}" if revoked_at else ""
        return f"{identity!r} (payload {digits}{revoked})"
    text = payload_to_text(payload, payload_len)
    if text is not None and payload_len >= 16:
        return f"payload {digits} (as text: {text!r})"
    return f"payload {digits}"


def payload_digits(payload: int, payload_len: int) -> str:
    """Hexadecimal, with as many digits as the length takes."""
    return f"{payload:0{-(-payload_len // 4)}x}"
