"""Groups that were judged: the row of each, and what all rows come to. Rows pass by once; what is kept is bounded."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentmark.audit.results import OUTCOME_COLUMNS, AuditRow
from agentmark.audit.shards import BadShard
from agentmark.text import counted
from agentmark.verify.correction import Correction, FalseDiscovery
from agentmark.verify.intake import Outcome
from agentmark.verify.roll import By, Pool, RollRow, plural
from agentmark.verify.stranger import name_of, payload_digits
from agentmark.verify.verdict import Standing, rate_text


@dataclass(frozen=True, slots=True)
class Named:
    """Somebody who is named in a row."""

    payload: int
    payload_len: int
    identity: str | None
    revoked_at: str | None
    bound: float


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """A row of the results, and everybody who is named in it."""

    row: AuditRow
    found: tuple[Named, ...]
    pool: int | None

    @classmethod
    def of(cls, row: RollRow, pools: Sequence[Pool]) -> "JudgedRow":
        found = [
            Named(each.payload, each.payload_len, each.identity, each.revoked_at, each.false_positive_rate)
            for each in row.verdict.found
        ]
        return cls(AuditRow.of(row, tuple(pools)), tuple(found), row.pool)

    def to_json(self) -> str:
        found = [[each.payload, each.payload_len, each.identity, each.revoked_at, each.bound] for each in self.found]
        return json.dumps([self.row.as_dict(), found, self.pool])

    @classmethod
    def from_json(cls, line: str) -> "JudgedRow":
        row, found, pool = json.loads(line)
        return cls(AuditRow.from_dict(row), tuple([Named(*each) for each in found]), pool)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTotal:
    """What an audit holds of one identity: groups that it is named for, their usable steps, and the worst bound."""

    payload: int
    payload_len: int
    identity: str | None
    revoked_at: str | None
    rows: int
    # A step that stands in several groups counts in each.
    steps: int
    worst_rate: float
    # Groups that are too short alone and speak for it together.
    pooled_rows: int

    @property
    def name(self) -> str:
        """Who it is, in the words of a sentence."""
        return name_of(self.payload, self.payload_len, self.identity, self.revoked_at)

    @property
    def short_name(self) -> str:
        """By name if the registry has one, else by the digits of the payload."""
        if self.identity is not None:
            return self.identity
        return f"0x{payload_digits(self.payload, self.payload_len)}" if self.payload_len else "the key's holder"

    @property
    def bound_text(self) -> str:
        return rate_text(self.worst_rate)

    def as_dict(self) -> dict[str, Any]:
        return {
            "payload": payload_digits(self.payload, self.payload_len),
            "payload_len": self.payload_len,
            "identity": self.identity,
            "revoked_at": self.revoked_at,
            "rows": self.rows,
            "steps": self.steps,
            "worst_rate": self.worst_rate,
            "pooled_rows": self.pooled_rows,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTotals:
    """What was read, of which files, and what of them could not be."""

    # Files that were found, those that could not be read included.
    shards: int = 0
    size: int = 0
    # Files that an earlier run had read.
    resumed: int = 0
    records: int = 0
    bad_records: int = 0
    # Names that are another name of a file that was read.
    same_files: int = 0
    bad_shards: tuple[BadShard, ...] = ()
    # On records that were passed over, and files that changed: some of them, and how many more there are.
    notes: tuple[str, ...] = ()
    more_notes: int = 0
    key_ids: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "files": self.shards,
            "bytes": self.size,
            "files_read_before": self.resumed,
            "records": self.records,
            "bad_records": self.bad_records,
            "same_files": self.same_files,
            "bad_files": [{"file": bad.name, "fault": bad.fault} for bad in self.bad_shards],
            "notes": list(self.notes),
            "more_notes": self.more_notes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSummary:
    """What a whole audit comes to."""

    by: By
    rows: int
    standings: Counter[Standing]
    outcomes: Counter[Outcome]
    pooled: int
    totals: tuple[AuditTotal, ...]
    pools: tuple[Pool, ...]
    # One for each group that holds a usable step, and one for the pools if they were looked for.
    questions: int
    correction: Correction
    read: ReadTotals
    key_ids_given: tuple[str, ...] = ()
    claim: str | None = None
    claim_taken_as: str | None = None
    engine: str = ""
    workers: int = 1
    # Usable steps in groups that are too short alone, and too many to be asked about together.
    not_pooled: int = 0

    @property
    def attributed(self) -> bool:
        """Whether anybody is named in it."""
        return bool(self.pools) or self.standings[Standing.ATTRIBUTED] > 0

    @property
    def nothing_usable(self) -> bool:
        return self.standings[Standing.NOTHING_USABLE] == self.rows

    @property
    def sentence(self) -> str:
        """The audit in one sentence."""
        named = self.standings[Standing.ATTRIBUTED]
        what = f"{self.rows:,} {plural(self.rows, row_word(self.by))}"
        if not self.attributed:
            return f"None of {what} is attributed." if self.rows else "There was nothing to judge."
        to = counted(len(self.totals), "identity", "identities")
        also = f"; {self.pooled:,} more are too short alone and were pooled" if self.pooled else ""
        return f"{named:,} of {what} attributed, to {to}{also}."

    @property
    def promise(self) -> str:
        """What was paid for, and what that means."""
        if not self.questions:
            return "no question was asked: no step can be used"
        kind = " (false discovery rate)" if isinstance(self.correction, FalseDiscovery) else ""
        return f"{counted(self.questions, 'question')} paid for{kind}: {self.correction.explained}"

    def as_dict(self) -> dict[str, Any]:
        """The summary as plain JSON data (docs/audits.md)."""
        return {
            "by": self.by.value,
            "sentence": self.sentence,
            "rows": self.rows,
            "standings": {standing.value: self.standings[standing] for standing in Standing},
            "outcomes": {outcome.value: self.outcomes[outcome] for outcome in Outcome if self.outcomes[outcome]},
            "pooled": self.pooled,
            "not_pooled_steps": self.not_pooled,
            "identities": [total.as_dict() for total in self.totals],
            "pools": [_pool_dict(pool) for pool in self.pools],
            "questions": self.questions,
            "correction": self.correction.as_dict(),
            "claim": None if self.claim is None else {"given": self.claim, "taken_as": self.claim_taken_as},
            "key_ids": {"there": list(self.read.key_ids), "given": list(self.key_ids_given)},
            "read": self.read.as_dict(),
        }


def _pool_dict(pool: Pool) -> dict[str, Any]:
    """Which rows are in it, the rows say."""
    content = pool.as_dict()
    return {name: len(value) if name == "rows" else value for name, value in content.items()}


def row_word(by: By) -> str:
    """What one row is called."""
    return "log" if by is By.ALL else str(by)


@dataclass(slots=True)
class RowTally:
    """Counts rows as they pass by."""

    rows: int = 0
    standings: Counter[Standing] = field(default_factory=Counter)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    pooled: int = 0
    _named: dict[tuple[int, int], Named] = field(default_factory=dict)
    _rows: Counter[tuple[int, int]] = field(default_factory=Counter)
    _steps: Counter[tuple[int, int]] = field(default_factory=Counter)
    _worst: defaultdict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))

    def take(self, judged: JudgedRow) -> None:
        row = judged.row
        self.rows += 1
        self.standings[Standing(row.standing)] += 1
        self.pooled += row.pooled
        self.outcomes[Outcome.USED] += row.used
        for name, outcome in OUTCOME_COLUMNS.items():
            self.outcomes[outcome] += getattr(row, name)
        for named in judged.found:
            identity = named.payload, named.payload_len
            self._named[identity] = named
            self._rows[identity] += 1
            self._steps[identity] += row.used
            self._worst[identity] = max(self._worst[identity], named.bound)

    def merge(self, other: "RowTally") -> None:
        """Count in what was counted elsewhere, of other rows."""
        self.rows += other.rows
        self.standings.update(other.standings)
        self.outcomes.update(other.outcomes)
        self.pooled += other.pooled
        self._named.update(other._named)
        self._rows.update(other._rows)
        self._steps.update(other._steps)
        for identity, rate in other._worst.items():
            self._worst[identity] = max(self._worst[identity], rate)

    def totals(self, pools: Iterable[Pool]) -> tuple[AuditTotal, ...]:
        """Every identity that is named, those with the most rows first."""
        pooled = {(pool.payload, pool.payload_len): pool for pool in pools}
        found = []
        for identity in {**self._named, **pooled}:
            about = self._named.get(identity) or pooled[identity]
            pool = pooled.get(identity)
            rate = self._worst[identity]
            found.append(
                AuditTotal(
                    payload=identity[0],
                    payload_len=identity[1],
                    identity=about.identity,
                    revoked_at=about.revoked_at,
                    rows=self._rows[identity],
                    steps=self._steps[identity],
                    worst_rate=rate if pool is None else max(rate, pool.false_positive_rate),
                    pooled_rows=0 if pool is None else len(pool.rows),
                )
            )
        found.sort(key=lambda t: (-t.rows, -t.pooled_rows, t.identity or "", t.payload_len, t.payload))
        return tuple(found)
