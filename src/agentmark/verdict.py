"""What verification found, as frozen data that prints itself."""

from collections import Counter
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any

from agentmark.core.payload import payload_to_text
from agentmark.core.theory import equations_until_full_rank, false_positive_rate
from agentmark.record import StepRecord

DEFAULT_THRESHOLD = 1e-6

# What became of a record. Only USED ones are evidence.
USED = "used"
IMPOSSIBLE = "impossible under this key"
DUPLICATE = "duplicate"
CONFLICTING = "conflicting copies"
UNMARKED = "unmarked"
NOT_ENFORCED = "not enforced"
OTHER_KEY = "other key"
OTHER_LENGTH = "other payload length"


@dataclass(frozen=True, slots=True)
class StepFinding:
    """One record and what became of it; `evidence_bits` is -log2 q_t for a used step."""

    record: StepRecord
    outcome: str
    evidence_bits: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to "what identity does this log carry?", with the bound on its being chance."""

    payload_len: int
    threshold: float
    schemes: tuple[str, ...]
    # None: the log does not settle it (rank too low, or the search over R's symbols is beyond its limit).
    consistent: bool | None
    # A payload that agrees with every used step and is the only one. It counts once `accepted` is true.
    candidate: int | None
    # F: c_t for each step. R: -log2 of the share of symbols that lead to the logged behavior.
    evidence_bits: float
    rank: int
    search_work: int = 0
    search_over_limit: bool = False
    identity: str | None = None
    revoked_at: str | None = None
    context_mismatches: int = 0
    findings: tuple[StepFinding, ...] = field(default=(), repr=False)

    @property
    def equation_count(self) -> float:
        """R = sum of c_t: how many equations the used steps are worth. A whole number for F."""
        return self.evidence_bits

    @property
    def surplus(self) -> float:
        """Evidence beyond what it takes to name a payload."""
        return self.evidence_bits - self.rank

    @property
    def false_positive_rate(self) -> float:
        """Bound on the chance that a log made without this key agrees this well. Exact for F."""
        return false_positive_rate(self.surplus) if self.consistent else 1.0

    @property
    def accepted(self) -> bool:
        return self.candidate is not None and self.false_positive_rate <= self.threshold

    @property
    def payload(self) -> int | None:
        """The identity, or None while it is not accepted."""
        return self.candidate if self.accepted else None

    @property
    def text(self) -> str | None:
        """The payload as text, if it was made from text."""
        return None if self.payload is None else payload_to_text(self.payload, self.payload_len)

    @property
    def counts(self) -> Counter[str]:
        """How many records met which outcome."""
        return Counter(finding.outcome for finding in self.findings)

    @property
    def record_count(self) -> int:
        return len(self.findings)

    @property
    def bits_needed(self) -> float | None:
        """Further evidence expected to be needed for acceptance; None if more of the same would not help."""
        if self.accepted:
            return 0.0
        missing = self.payload_len - log2(self.threshold) - self.evidence_bits
        if self.consistent is False or (self.search_over_limit and missing <= 0):
            return None
        return max(missing, equations_until_full_rank(self.rank, self.payload_len), 0.0)

    @property
    def steps_needed(self) -> int | None:
        """`bits_needed` at the rate of the steps seen so far."""
        bits = self.bits_needed
        if bits is None or self.evidence_bits == 0:
            return 0 if bits == 0.0 else None
        return ceil(bits * self.counts[USED] / self.evidence_bits)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.accepted:
            return f"Attributed to {self._named()}: {self._bound()}."
        return f"Not attributed: {self._why_not()}."

    def _named(self) -> str:
        if self.payload_len == 0:
            return "the holder of this key (the mark carries no identity)"
        digits = f"{self.payload:#0{2 + -(-self.payload_len // 4)}x}"
        if self.identity is not None:
            revoked = f", revoked {self.revoked_at}" if self.revoked_at else ""
            return f"{self.identity!r} (payload {digits}{revoked})"
        if self.text is not None and self.payload_len >= 16:
            return f"payload {digits} (as text: {self.text!r})"
        return f"payload {digits}"

    def _bound(self) -> str:
        return (
            f"a log made without this key agrees this well with probability at most 2^-{self.surplus:.1f} = "
            f"{self.false_positive_rate:.1e} (threshold {self.threshold:.0e})"
        )

    def _why_not(self) -> str:
        used = self.counts[USED]
        if used == 0:
            return f"none of the {self.record_count} records can be used" + self._set_aside()
        if self.consistent is False:
            return f"the {used} usable steps contradict each other, as steps made under another key or identity do"
        if self.search_over_limit and self.bits_needed is None:
            return (
                f"reading {self.payload_len} bits from these {used} steps of scheme R would take "
                f"{self.search_work:.1e} guesses, more than search_limit; use a longer log, or raise the limit"
            )
        more = "" if self.steps_needed is None else f"; about {self.steps_needed} more steps are needed"
        return (
            f"{used} usable steps carry {self.evidence_bits:.1f} bits of evidence, and {self.payload_len} payload bits "
            f"at a bound of {self.threshold:.0e} take {self.payload_len - log2(self.threshold):.0f}{more}"
        )

    def _set_aside(self) -> str:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items())
        return f" ({counts})" if counts else ""

    def as_dict(self) -> dict[str, Any]:
        """The verdict as plain JSON data (docs/verdict.md)."""
        width = -(-self.payload_len // 4)
        return {
            "accepted": self.accepted,
            "sentence": self.sentence,
            "payload": None if self.payload is None else f"{self.payload:0{width}x}",
            "payload_len": self.payload_len,
            "identity": self.identity if self.accepted else None,
            "revoked_at": self.revoked_at if self.accepted else None,
            "text": self.text,
            "false_positive_rate": self.false_positive_rate,
            "threshold": self.threshold,
            "consistent": self.consistent,
            "schemes": list(self.schemes),
            "evidence_bits": self.evidence_bits,
            "rank": self.rank,
            "surplus": self.surplus,
            "bits_needed": self.bits_needed,
            "steps_needed": self.steps_needed,
            "search_work": self.search_work,
            "records": self.record_count,
            "outcomes": dict(self.counts),
            "context_mismatches": self.context_mismatches,
        }
