"""What `agentmark inspect` finds in logs, without a key."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agentmark.audit.progress import Progress
from agentmark.audit.sessions import find_session
from agentmark.core.schemes import SCHEMES
from agentmark.core.theory import entropy
from agentmark.log.read.files import FoundLogs, shown
from agentmark.log.read.limits import Limits
from agentmark.log.read.open import open_log
from agentmark.record import StepRecord
from agentmark.verify.intake import outcomes_without_key

# How often whoever watches is told, in records.
TOLD_EVERY = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One file that was read."""

    path: str
    format: str
    record_count: int
    # Spans, observations, runs or events that hold no record.
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One session, in whatever files it stands. Several key ids are several agents that chose one name."""

    session: str
    records: int
    # Each once, however many copies of it there are.
    steps: int
    # Those that a verifier with the right key would count.
    marked_steps: int
    key_ids: tuple[str, ...]
    schemes: tuple[str, ...]
    payload_lens: tuple[int, ...]
    # In bits, if every step agrees.
    expected_evidence: float
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The steps of one key, scheme and length: what one verdict would speak of."""

    key_id: str
    scheme: str
    payload_len: int
    marked_steps: int
    mean_candidates: float
    mean_entropy: float
    expected_evidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """All that logs hold, or what they hold of one session."""

    files: tuple[FileRow, ...]
    passed_over: tuple[str, ...]
    records: tuple[StepRecord, ...]
    # The file of each record.
    places: tuple[str, ...]
    # What becomes of each record that no verifier would count.
    outcomes: tuple[str | None, ...]
    # What each of the others says, in bits, if it agrees.
    expected: tuple[float, ...]

    @classmethod
    def read(cls, found: FoundLogs, *, skip_bad: bool, limits: Limits, progress: Progress) -> "Inspection":
        files: list[FileRow] = []
        passed_over = list(found.passed_over)
        records: list[StepRecord] = []
        places: list[str] = []
        for path in found.files:
            log = open_log(path, skip_bad=skip_bad, limits=limits)
            name = shown(path)
            for record in log:
                records.append(record)
                places.append(name)
                if len(records) % TOLD_EVERY == 0:
                    progress.count(len(records), None, "records read")
            held = log.summary
            files.append(FileRow(path=name, format=held.format, record_count=held.record_count, skipped=held.skipped))
            passed_over += held.passed_over
        outcomes = outcomes_without_key(records)
        return cls(
            files=tuple(files),
            passed_over=tuple(passed_over),
            records=tuple(records),
            places=tuple(places),
            outcomes=tuple([None if outcome is None else str(outcome) for outcome in outcomes]),
            # Once: with R it takes longer than to read the record.
            expected=tuple(
                [_expected(r) if outcome is None else 0.0 for r, outcome in zip(records, outcomes, strict=True)]
            ),
        )

    def only(self, wanted: str) -> "Inspection":
        """What there is of one session, by its id or by a beginning that no other has."""
        session = find_session(wanted, {record.session for record in self.records})
        mine = [i for i, record in enumerate(self.records) if record.session == session]
        places = {self.places[i] for i in mine}
        return Inspection(
            files=tuple([file for file in self.files if file.path in places]),
            passed_over=self.passed_over,
            records=tuple([self.records[i] for i in mine]),
            places=tuple([self.places[i] for i in mine]),
            outcomes=tuple([self.outcomes[i] for i in mine]),
            expected=tuple([self.expected[i] for i in mine]),
        )

    @property
    def marked(self) -> int:
        """The records that a verifier would count: each step once, and none that the agent did not obey."""
        return self.outcomes.count(None)

    @property
    def not_counted(self) -> dict[str, int]:
        return dict(sorted(Counter([outcome for outcome in self.outcomes if outcome is not None]).items()))

    @property
    def reasons(self) -> dict[str, int]:
        """Why steps went unmarked."""
        return dict(sorted(Counter([r.reason for r in self.records if r.reason is not None]).items()))

    @property
    def groups(self) -> list[Group]:
        marked: dict[tuple[str, str, int], list[int]] = defaultdict(list)
        for i, record in enumerate(self.records):
            mine = marked[record.key_id, record.scheme, record.payload_len]
            if self.outcomes[i] is None:
                mine.append(i)
        return [self._group(*key, marked[key]) for key in sorted(marked)]

    @property
    def sessions(self) -> list[SessionRow]:
        """In the order of their first records."""
        places: dict[str, list[int]] = defaultdict(list)
        for i, record in enumerate(self.records):
            places[record.session].append(i)
        return [self._row(session, mine) for session, mine in places.items()]

    def _row(self, session: str, mine: Sequence[int]) -> SessionRow:
        records = [self.records[i] for i in mine]
        return SessionRow(
            session=session,
            records=len(records),
            steps=len({(record.key_id, record.context) for record in records}),
            marked_steps=[self.outcomes[i] for i in mine].count(None),
            key_ids=tuple(sorted({record.key_id for record in records})),
            schemes=tuple(sorted({record.scheme for record in records})),
            payload_lens=tuple(sorted({record.payload_len for record in records})),
            expected_evidence=sum([self.expected[i] for i in mine]),
            files=tuple(dict.fromkeys([self.places[i] for i in mine])),
        )

    def _group(self, key_id: str, scheme: str, payload_len: int, marked: Sequence[int]) -> Group:
        lists = [distribution for i in marked if (distribution := self.records[i].distribution) is not None]
        count = max(1, len(marked))
        return Group(
            key_id=key_id,
            scheme=scheme,
            payload_len=payload_len,
            marked_steps=len(marked),
            mean_candidates=sum(map(len, lists)) / count,
            mean_entropy=sum(map(entropy, lists)) / count,
            expected_evidence=sum([self.expected[i] for i in marked]),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "records": len(self.records),
            "marked": self.marked,
            "files": [asdict(file) for file in self.files],
            "not_counted": self.not_counted,
            "unmarked_because_of": self.reasons,
            "groups": [_rounded(asdict(group)) for group in self.groups],
            "passed_over": list(self.passed_over),
            "sessions": [_rounded(asdict(row)) for row in self.sessions],
        }


def _expected(record: StepRecord) -> float:
    return 0.0 if record.distribution is None else SCHEMES[record.scheme].capacity(record.distribution)


def _rounded(content: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in content.items()}
