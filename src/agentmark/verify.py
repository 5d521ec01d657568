"""The verifying side: from whatever is left of a log to a verdict (spec, section 9)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import fsum

from agentmark.core import scheme_f, scheme_r
from agentmark.core.errors import SettingError
from agentmark.core.linear import LinearSystem
from agentmark.core.payload import check_payload_len
from agentmark.core.rlnc import Equation
from agentmark.core.scheme_r import SymbolConstraint
from agentmark.core.symbol_search import DEFAULT_SEARCH_LIMIT, search_payloads
from agentmark.keys import SharedKey
from agentmark.record import StepRecord
from agentmark.registry import Registry
from agentmark.verdict import (
    CONFLICTING,
    DEFAULT_THRESHOLD,
    DUPLICATE,
    IMPOSSIBLE,
    NOT_ENFORCED,
    OTHER_KEY,
    OTHER_LENGTH,
    UNMARKED,
    USED,
    StepFinding,
    Verdict,
)


class Verifier:
    """Reads identities back. Any subset of records, in any order, from any number of sessions, by the same call."""

    def __init__(
        self,
        key: SharedKey | Iterable[SharedKey],
        *,
        payload_len: int | None = None,
        threshold: float = DEFAULT_THRESHOLD,
        registry: Registry | None = None,
        any_key_id: bool = False,
        search_limit: int = DEFAULT_SEARCH_LIMIT,
    ) -> None:
        """Several keys serve logs that cross a key rotation: each record is read with the key it names.

        `payload_len` is by default the one that most records state. `any_key_id` reads every record with the one key
        given, for logs whose key ids were altered or lost.
        """
        keys = [key] if isinstance(key, SharedKey) else list(key)
        if not keys:
            raise SettingError("key", "a verifier needs at least one")
        if any_key_id and len(keys) > 1:
            raise SettingError("any_key_id", "reads all records with one key; pass exactly one")
        if not 0 < threshold < 1:
            raise SettingError("threshold", f"{threshold} is not between 0 and 1")
        if payload_len is None and registry is not None:
            payload_len = registry.payload_len
        if registry is not None and payload_len != registry.payload_len:
            raise SettingError("payload_len", f"{payload_len} differs from the registry's {registry.payload_len}")
        self._keys = {key.id: key for key in keys}
        self._any_key = keys[0] if any_key_id else None
        self.payload_len = None if payload_len is None else check_payload_len(payload_len)
        self.threshold = threshold
        self._registry = registry
        self._search_limit = search_limit

    def verify(self, records: Iterable[StepRecord]) -> Verdict:
        """Judge a log. "No watermark here" is a verdict; only broken input raises."""
        return self._judge(records, self._keys, self._any_key)

    def control(self, records: Iterable[StepRecord]) -> Verdict:
        """The same log read with fresh random keys: what a stranger's key finds in it."""
        keys = {key_id: SharedKey.generate() for key_id in self._keys}
        return self._judge(records, keys, SharedKey.generate() if self._any_key else None)

    def _judge(
        self, records: Iterable[StepRecord], keys: Mapping[str, SharedKey], any_key: SharedKey | None
    ) -> Verdict:
        log = list(records)

        # (1) Set aside records of other keys: their randomness is not ours to recompute.
        key_of = [any_key or keys.get(record.key_id) for record in log]
        outcomes: list[str | None] = [OTHER_KEY if key is None else None for key in key_of]

        # (2) Fix the payload length, and set aside records of another.
        payload_len = self.payload_len
        if payload_len is None:
            payload_len = _stated_payload_len(log, outcomes)
        for i, record in enumerate(log):
            if outcomes[i] is None and record.payload_len != payload_len:
                outcomes[i] = OTHER_LENGTH

        # (3) Steps without the mark, or that the agent did not obey, are erasures.
        _set_aside_erasures(log, outcomes)

        # (4) A context counts once (L4). Copies that disagree cannot both be genuine: none of them counts.
        _set_aside_copies(log, outcomes)

        # (5) Recompute the draws of every step that is left, and read what it says of the payload.
        reading = _Reading(payload_len)
        findings = []
        for record, key, outcome in zip(log, key_of, outcomes, strict=True):
            if outcome is not None or key is None:
                findings.append(StepFinding(record, outcome or OTHER_KEY))
                continue
            bits = reading.add(record, key)
            findings.append(StepFinding(record, IMPOSSIBLE) if bits is None else StepFinding(record, USED, bits))

        # (6) Solve for the payload; (7) the verdict states the bound, and accepts below the threshold.
        consistent, candidate, work, over_limit = reading.solve(self._search_limit)
        holder = self._registry.holder(candidate) if self._registry is not None and candidate is not None else None
        return Verdict(
            payload_len=payload_len,
            threshold=self.threshold,
            schemes=tuple(sorted({f.record.scheme for f in findings if f.outcome == USED})),
            consistent=consistent,
            candidate=candidate,
            evidence_bits=reading.evidence_bits,
            rank=reading.rank,
            search_work=work,
            search_over_limit=over_limit,
            identity=holder.name if holder else None,
            revoked_at=holder.revoked_at if holder else None,
            context_mismatches=sum(record.context_matches() is False for record in log),
            findings=tuple(findings),
        )


@dataclass(slots=True)
class _Reading:
    """What the steps say of the payload: linear equations from F, sets of symbols from R."""

    payload_len: int
    system: LinearSystem = field(init=False)
    rows: LinearSystem = field(init=False)
    constraints: list[SymbolConstraint] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.system = LinearSystem(self.payload_len)
        # All coefficient rows of both schemes, for their rank: the number of payload bits that the log speaks of.
        self.rows = LinearSystem(self.payload_len)

    def add(self, record: StepRecord, key: SharedKey) -> float | None:
        """Evidence in bits, or None when this key cannot have made the step."""
        if record.distribution is None:
            return None
        step_key = key.step_key(record.context, self.payload_len)
        if record.scheme == "F":
            equations = scheme_f.decode(record.distribution, step_key, record.behavior, payload_len=self.payload_len)
            if equations is None:
                return None
            for equation in equations:
                self.system.update(equation)
                self.rows.update(Equation(equation.coefficients, 0))
            return float(len(equations))
        constraint = scheme_r.decode(record.distribution, step_key, record.behavior, payload_len=self.payload_len)
        if constraint is None:
            return None
        self.constraints.append(constraint)
        for row in constraint.rows:
            self.rows.update(Equation(row, 0))
        return constraint.evidence_bits

    @property
    def evidence_bits(self) -> float:
        # An exact sum, so that the order of the records cannot show in its last bits.
        return self.system.equation_count + fsum([constraint.evidence_bits for constraint in self.constraints])

    @property
    def rank(self) -> int:
        return self.rows.rank

    def solve(self, search_limit: int) -> tuple[bool | None, int | None, int, bool]:
        """Whether the steps agree, the one payload they agree on, and what the search over R's symbols took."""
        if not self.system.consistent:
            return False, None, 0, False
        if not self.constraints:
            return True, self.system.solution(), 0, False
        result = search_payloads(self.system, self.constraints, limit=search_limit)
        if result.undetermined or result.over_limit:
            return None, None, result.work, result.over_limit
        return bool(result.payloads), result.unique, result.work, False


def _stated_payload_len(log: list[StepRecord], outcomes: list[str | None]) -> int:
    """The length that most of our records state; the longer one if two are as common."""
    stated = Counter(record.payload_len for record, outcome in zip(log, outcomes, strict=True) if outcome is None)
    return max(stated, key=lambda length: (stated[length], length), default=0)


def _set_aside_erasures(log: list[StepRecord], outcomes: list[str | None]) -> None:
    # A later copy of a record may say that the agent did not obey: it speaks for all copies of that step.
    disobeyed = {
        record.context
        for record, outcome in zip(log, outcomes, strict=True)
        if outcome is None and record.enforced is False
    }
    for i, record in enumerate(log):
        if outcomes[i] is not None:
            continue
        if not record.marked:
            outcomes[i] = UNMARKED
        elif record.context in disobeyed:
            outcomes[i] = NOT_ENFORCED


def _set_aside_copies(log: list[StepRecord], outcomes: list[str | None]) -> None:
    first: dict[bytes, int] = {}
    conflicting = set()
    for i, record in enumerate(log):
        if outcomes[i] is not None:
            continue
        seen = first.setdefault(record.context, i)
        if seen == i:
            continue
        original = log[seen]
        if (record.scheme, record.behavior, record.distribution, record.key_id) != (
            original.scheme,
            original.behavior,
            original.distribution,
            original.key_id,
        ):
            conflicting.add(record.context)
        outcomes[i] = DUPLICATE
    for i, record in enumerate(log):
        if outcomes[i] in (None, DUPLICATE) and record.context in conflicting:
            outcomes[i] = CONFLICTING
