"""What came of judging many logs apart, as frozen data: a row for each, and what they come to together.

It holds verdicts, so it is for the holder of the key. `many.judge_roll` makes it.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentmark.core.prf import DIGEST_SIZE
from agentmark.core.theory import false_positive_rate
from agentmark.verify.correction import Correction
from agentmark.verify.intake import Outcome
from agentmark.verify.stranger import name_of, payload_digits
from agentmark.verify.verdict import Standing, Verdict, rate_text


class By(StrEnum):
    """What makes a row."""

    SESSION = "session"
    FILE = "file"
    # Of a bulk audit: by the key that a record states, and all at once.
    TENANT = "tenant"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class RollRow:
    """One session, or one file, and its verdict. The verdict states the threshold and has paid the prices of the whole
    roll: `verdict.accepted` is the answer."""

    # The session's id; the file, when judged by file.
    name: str
    # Where its records were found.
    files: tuple[str, ...]
    verdict: Verdict
    # Which of the roll's pools explains it, if it was too short alone.
    pool: int | None = None
    # Steps whose context stands in another row as well: copies, or steps that were moved. None if there were too many
    # steps to compare.
    shared_contexts: int | None = 0
    # The digests of the contexts of the used steps, one behind the other.
    contexts: bytes = field(default=b"", repr=False)

    @property
    def used(self) -> int:
        """Steps that count."""
        return self.verdict.counts[Outcome.USED]

    @property
    def used_contexts(self) -> frozenset[bytes]:
        """Which steps these are: copies in other rows are the same."""
        starts = range(0, len(self.contexts), DIGEST_SIZE)
        return frozenset([self.contexts[start : start + DIGEST_SIZE] for start in starts])

    @property
    def set_aside(self) -> int:
        """Records that do not."""
        return self.verdict.record_count - self.used

    def as_dict(self, by: By) -> dict[str, Any]:
        """The row as plain JSON data (docs/sessions.md). Like its verdict, it names nobody who is not accepted."""
        return {
            by.value: self.name,
            "files": list(self.files),
            "pool": self.pool,
            "shared_contexts": self.shared_contexts,
            **self.verdict.as_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """An identity that explains logs together which are too short alone.

    The claim is about the group: at least one of the short logs (`among` so many) is of this identity. `rows` are those
    that speak for it; that each of them is, nobody has shown.
    """

    payload: int
    payload_len: int
    # From the registry, if one was given and holds the payload.
    identity: str | None
    revoked_at: str | None
    evidence_bits: float
    bits_paid: float
    rows: tuple[int, ...]
    among: int

    @property
    def false_positive_rate(self) -> float:
        """Bound on the chance that an identity is named so that made none of the short logs."""
        return false_positive_rate(self.evidence_bits - self.bits_paid)

    @property
    def bound_text(self) -> str:
        """The same as text that is rounded up, so that it is still a bound."""
        return rate_text(self.false_positive_rate)

    @property
    def name(self) -> str:
        """Who it is, in the words of a sentence."""
        return name_of(self.payload, self.payload_len, self.identity, self.revoked_at)

    def as_dict(self) -> dict[str, Any]:
        """The pool as plain JSON data."""
        return {
            **_who(self),
            "evidence_bits": self.evidence_bits,
            "bits_paid": self.bits_paid,
            "false_positive_rate": self.false_positive_rate,
            "among": self.among,
            "rows": list(self.rows),
            "sentence": self.sentence,
        }

    @property
    def sentence(self) -> str:
        """What is claimed, and what is not."""
        return (
            f"{self.name} made at least one of the {self.among} that are too short alone (bound {self.bound_text}); "
            f"{len(self.rows)} of them speak for it, and none of these is proved by itself"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityTotal:
    """What the roll holds of one identity."""

    payload: int
    payload_len: int
    identity: str | None
    revoked_at: str | None
    # The rows that it is named for, and the usable steps in them: one that stands in several rows is one.
    rows: tuple[int, ...]
    steps: int
    # The largest bound among these rows, and the pool if there is one.
    worst_rate: float
    # Rows that are too short alone and speak for it together.
    pooled_rows: tuple[int, ...]

    @property
    def bound_text(self) -> str:
        """The worst bound as text that is rounded up."""
        return rate_text(self.worst_rate)

    @property
    def name(self) -> str:
        """Who it is, in the words of a sentence."""
        return name_of(self.payload, self.payload_len, self.identity, self.revoked_at)

    def as_dict(self) -> dict[str, Any]:
        """The total as plain JSON data."""
        return {
            **_who(self),
            "rows": list(self.rows),
            "steps": self.steps,
            "worst_rate": self.worst_rate,
            "pooled_rows": list(self.pooled_rows),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Roll:
    """Many logs, each judged alone, with all questions paid for. Rows stand in the order of their names."""

    by: By
    rows: tuple[RollRow, ...]
    pools: tuple[Pool, ...]
    # What was asked: one question for each row that holds a usable step, and one for the pools if they were looked for.
    questions: int
    correction: Correction
    # Usable steps in rows that are too short alone, and too many to be asked about together.
    not_pooled: int = 0

    @property
    def totals(self) -> tuple[IdentityTotal, ...]:
        """Every identity that is named, those with the most rows first."""
        rows: dict[tuple[int, int], list[int]] = defaultdict(list)
        about: dict[tuple[int, int], tuple[str | None, str | None]] = {}
        rates: dict[tuple[int, int], float] = defaultdict(float)
        for i, row in enumerate(self.rows):
            for found in row.verdict.found:
                who = found.payload, found.payload_len
                rows[who].append(i)
                about[who] = found.identity, found.revoked_at
                rates[who] = max(rates[who], found.false_positive_rate)
        pools = {(pool.payload, pool.payload_len): pool for pool in self.pools}
        for who, pool in pools.items():
            about[who] = pool.identity, pool.revoked_at
            rates[who] = max(rates[who], pool.false_positive_rate)
        totals = [
            IdentityTotal(
                payload=who[0],
                payload_len=who[1],
                identity=about[who][0],
                revoked_at=about[who][1],
                rows=tuple(rows[who]),
                steps=len(set().union(*[self.rows[i].used_contexts for i in rows[who]])),
                worst_rate=rates[who],
                pooled_rows=pools[who].rows if who in pools else (),
            )
            for who in about
        ]
        totals.sort(key=_shown_order)
        return tuple(totals)

    @property
    def standings(self) -> Counter[Standing]:
        """How many rows stand where."""
        return Counter(row.verdict.standing for row in self.rows)

    @property
    def attributed(self) -> bool:
        """Whether anybody is named in it."""
        return bool(self.pools) or any(row.verdict.accepted for row in self.rows)

    @property
    def sentence(self) -> str:
        """The roll in one sentence."""
        named = self.standings[Standing.ATTRIBUTED]
        what = f"{len(self.rows)} {plural(len(self.rows), self.by)}"
        if not self.attributed:
            return f"None of {what} is attributed."
        identities = len(self.totals)
        who = "one identity" if identities == 1 else f"{identities} identities"
        pooled = sum([len(pool.rows) for pool in self.pools])
        also = f"; {pooled} more are too short alone and were pooled" if pooled else ""
        return f"{named} of {what} attributed, to {who}{also}."

    def summary(self) -> dict[str, Any]:
        """All but the rows as plain JSON data. Numbers of rows are their places among all rows, from 0 on."""
        return {
            "by": self.by.value,
            "sentence": self.sentence,
            "rows": len(self.rows),
            "standings": {standing.value: self.standings[standing] for standing in Standing},
            "identities": [total.as_dict() for total in self.totals],
            "pools": [pool.as_dict() for pool in self.pools],
            "questions": self.questions,
            "not_pooled": self.not_pooled,
            "correction": self.correction.as_dict(),
        }


def _shown_order(total: IdentityTotal) -> tuple[int, int, str, int, int]:
    """Those of the most rows first; of equals, by name."""
    return -len(total.rows), -len(total.pooled_rows), total.identity or "", total.payload_len, total.payload


def _who(named: Pool | IdentityTotal) -> dict[str, Any]:
    return {
        "payload": payload_digits(named.payload, named.payload_len),
        "payload_len": named.payload_len,
        "identity": named.identity,
        "revoked_at": named.revoked_at,
    }


def plural(count: int, word: str) -> str:
    """The word for so many of them."""
    return word if count == 1 else f"{word}s"
