"""One case: what is asked of which logs, and the answer with all that it rests on.

case = Case(logs=[Path("run.jsonl")], keys=[SharedKey.load("key.json")], claim="tenant-0042", control=True)
answer = case.answer()
print(answer.verdict.sentence)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

from agentmark.audit.engine import Engine, PlainEngine
from agentmark.audit.stretches import find_segments
from agentmark.core.costs import DEFAULT_WORK_LIMIT
from agentmark.core.payload import PayloadLike
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.keys.shared import SharedKey
from agentmark.keys.signing import check_public_key
from agentmark.log.read.files import log_files
from agentmark.log.read.limits import DEFAULT_LIMITS, Limits
from agentmark.log.read.open import ReadLog, read_log
from agentmark.record import StepRecord
from agentmark.report.chain_part import ChainPart, describe_chain
from agentmark.report.content import build_report, build_stranger_report
from agentmark.report.parts import Report, StrangerReport
from agentmark.report.provenance import InputFile, Provenance, describe_file
from agentmark.verify.intake import Intake
from agentmark.verify.verdict import DEFAULT_THRESHOLD, Placement, Verdict
from agentmark.verify.verifier import DEFAULT_OFFSETS, MAX_OFFSETS, Verifier
from agentmark.verify.work import Work, reading_work

# The control searches with this part of the work limit.
CONTROL_PART = 3

Progress = Callable[[str], None]


def silent(_: str) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostPlace:
    """The records are consecutive steps of this session that have lost their numbers: find their place in it."""

    session: str
    offsets: int = DEFAULT_OFFSETS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOrder:
    """A report is wanted as well, with the command that repeats the verdict; for which case, by whom, and their note.

    `segments` looks for the stretches of several identities however long it takes. `for_stranger` makes the report for
    those who do not hold the key: the answer alone (`Answer.stranger_report`), and no other report.
    """

    command: str
    segments: bool = False
    for_stranger: bool = False
    case_number: str | None = None
    author: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is asked. Nothing is read before `answer`."""

    # Files, and folders of them, pooled into one log.
    logs: Sequence[str | Path]
    keys: Sequence[SharedKey]
    registry: Registry | None = None
    # The file it came from, for a report to state its digest.
    registry_file: Path | None = None
    # Only ask whether it is this identity: a name in the registry, or whatever a payload can be.
    claim: PayloadLike = None
    payload_len: int | None = None
    threshold: float = DEFAULT_THRESHOLD
    noise: float | None = None
    any_key_id: bool = False
    # What a verdict may cost, in operations of about a microsecond: for looking for a payload; and for reading the
    # records, unless the files are so large that more is due to them (`verify/work.py`).
    work_limit: int = DEFAULT_WORK_LIMIT
    # Judge the rest of a log that holds broken records.
    skip_bad: bool = False
    # What each log may ask of this machine.
    limits: Limits = DEFAULT_LIMITS
    # Also read the log with random keys, for comparison.
    control: bool = False
    place: LostPlace | None = None
    # Who must have signed the checkpoints of a chained log.
    public_keys: Sequence[str] | None = None
    report: ReportOrder | None = None

    def __post_init__(self) -> None:
        """What cannot be meant is refused now, not after the work is done."""
        if self.place is not None and not 1 <= self.place.offsets <= MAX_OFFSETS:
            raise SettingError("offsets", f"{self.place.offsets} is not a number of places from 1 to {MAX_OFFSETS:,}")
        if self.place is not None and self.report is not None and self.report.for_stranger:
            raise SettingError("for_stranger", "a search for a place is many questions at once, and not a stranger's")
        for public_key in self.public_keys or ():
            check_public_key(public_key)
        self.verifier()

    def verifier(self) -> Verifier:
        """The verifier of this question; what it cannot mean is refused here."""
        return Verifier(
            self.keys,
            payload_len=self.payload_len,
            threshold=self.threshold,
            registry=self.registry,
            noise=self.noise,
            any_key_id=self.any_key_id,
            work_limit=self.work_limit,
        )

    def answer(self, *, engine: Engine | None = None, progress: Progress = silent) -> "Answer":
        """Read the logs once, judge them, and (if asked) read them once more with random keys."""
        return _Inquiry(self, engine or PlainEngine(), progress).answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that there is to say: the verdict, what it is compared with, and what else the logs show."""

    verdict: Verdict
    control: Verdict | None = None
    place: Placement | None = None
    chains: Sequence[ChainPart] = ()
    # What was asked about, in the asker's words, and what it was taken for: a typing error must not pass for a name.
    claim: str | None = None
    claim_taken_as: str | None = None
    # What was not read, in sentences.
    passed_over: Sequence[str] = ()
    report: Report | None = None
    stranger_report: StrangerReport | None = None

    def as_dict(self) -> dict[str, Any]:
        """The verdict as plain JSON data, and the rest beside it (docs/verdict.md)."""
        return self.verdict.as_dict() | {
            "claim": None if self.claim is None else {"given": self.claim, "taken_as": self.claim_taken_as},
            "passed_over": list(self.passed_over),
            "control": None if self.control is None else self.control.as_dict(),
            "place": None if self.place is None else {"offset": self.place.offset, "tried": self.place.tried},
            "chains": list(self.chains),
        }


class _Inquiry:
    """One case at work: what was opened for it, and what was found."""

    def __init__(self, case: Case, engine: Engine, progress: Progress) -> None:
        self._case = case
        self._engine = engine
        self._progress = progress
        self._paths = log_files([Path(path) for path in case.logs])
        # Described before they are read, so that a change in between shows.
        self._files = self._described()
        self._logs = [read_log(path, skip_bad=case.skip_bad, limits=case.limits) for path in self._paths]

    def answer(self) -> Answer:
        case = self._case
        verifier = case.verifier()
        parts: list[Sequence[StepRecord]] = [log.records for log in self._logs]
        place = None
        if case.place is not None:
            place = self._locate(verifier, case.place)
            # From here on the records are those of the place that was found, which has been paid for.
            verifier = verifier.for_tries(place.tried)
            parts = [[finding.record for finding in place.verdict.findings]]
        # A place was found by trying verdicts: only a report needs its steps once more.
        needed = place is None or case.report is not None
        intake = verifier.sort_out(self._engine.take_in(parts if needed else [], verifier.keys, self._reading_work()))
        answer = Answer(
            verdict=verifier.judge.verdict(intake, case.claim) if place is None else place.verdict,
            place=place,
            claim=_worded(case.claim),
            claim_taken_as=_taken_as(case.claim, case.registry),
            chains=_chains(self._logs, case.public_keys),
            passed_over=[line for log in self._logs for line in log.summary.passed_over],
        )
        if case.report is not None and case.report.for_stranger:
            answer = replace(answer, stranger_report=self._stranger_report(case.report, answer, verifier))
        wants_whole_report = case.report is not None and not case.report.for_stranger
        if case.control or wants_whole_report:
            strangers = verifier.sort_out(self._engine.take_in(parts, verifier.keys.strangers(), self._reading_work()))
            # A stranger's key finds nothing however long it looks: a part of the work is enough to see that.
            judge = replace(verifier.judge, work_limit=max(1, case.work_limit // CONTROL_PART))
            answer = replace(answer, control=judge.verdict(strangers, case.claim))
        if case.report is not None and wants_whole_report:
            answer = replace(answer, report=self._report(case.report, answer, intake, verifier))
        return answer

    def _reading_work(self) -> Work:
        """What reading may cost follows the size of the files, not of what is packed in them."""
        return reading_work(self._case.work_limit, sum([path.stat().st_size for path in self._paths]))

    def _locate(self, verifier: Verifier, lost: LostPlace) -> Placement:
        self._progress(f"trying {lost.offsets} places in session {lost.session}")
        records = [record for log in self._logs for record in log.records]
        return verifier.locate(lost.session, records, offsets=range(lost.offsets), claim=self._case.claim)

    def _report(self, order: ReportOrder, answer: Answer, intake: Intake, verifier: Verifier) -> Report:
        assert answer.control is not None
        segments, hints = find_segments(
            verifier.judge, intake, answer.verdict, asked=order.segments, progress=self._progress
        )
        lost = self._case.place
        return build_report(
            answer.verdict,
            control=answer.control,
            intake=intake,
            noise_rates=verifier.noise_rates,
            provenance=self._provenance(order, verifier),
            claim=answer.claim,
            claim_taken_as=answer.claim_taken_as,
            registry_size=self._registry_size,
            place=None if lost is None or answer.place is None else (lost.session, answer.place),
            findings=[*hints, *self._changed_files()],
            passed_over=answer.passed_over,
            segments=segments,
            chains=answer.chains,
        )

    def _stranger_report(self, order: ReportOrder, answer: Answer, verifier: Verifier) -> StrangerReport:
        """Of what else was found, only what shows without the key: how the files were read."""
        return build_stranger_report(
            answer.verdict.for_stranger(),
            noise_rates=verifier.noise_rates,
            provenance=self._provenance(order, verifier),
            claim=answer.claim,
            claim_taken_as=answer.claim_taken_as,
            registry_size=self._registry_size,
            findings=self._changed_files(),
            passed_over=answer.passed_over,
        )

    def _provenance(self, order: ReportOrder, verifier: Verifier) -> Provenance:
        return Provenance(
            made_at=datetime.now(UTC),
            command=order.command,
            key_ids=verifier.keys.ids,
            inputs=self._files,
            case_number=order.case_number,
            author=order.author,
            note=order.note,
        )

    @property
    def _registry_size(self) -> int | None:
        return None if self._case.registry is None else len(self._case.registry)

    def _described(self) -> list[InputFile]:
        """Size and digest of every file, if a report is to state them."""
        if self._case.report is None:
            return []
        files = [describe_file("log", path) for path in self._paths]
        if self._case.registry_file is not None:
            files.append(describe_file("registry", self._case.registry_file))
        return files

    def _changed_files(self) -> list[str]:
        """Files that were not the same after reading as before: the digest may not be that of what was judged."""
        return [
            f"{file['path']} changed while it was read; its digest is that of the file before"
            for file, later in zip(self._files, self._described(), strict=True)
            if file != later
        ]


def _worded(claim: PayloadLike) -> str | None:
    """The claim as a report states it: in the asker's own words, or as digits."""
    if claim is None or isinstance(claim, str):
        return claim
    if isinstance(claim, SupportsIndex):
        return f"{index(claim):#x}"
    if isinstance(claim, bytes | bytearray):
        return f"0x{claim.hex()}"
    return "0b" + "".join(map(str, claim))


def _taken_as(claim: PayloadLike, registry: Registry | None) -> str | None:
    """What a claim was read as. Without a registry, a name is text, and its letters are the payload."""
    if claim is None:
        return None
    if isinstance(claim, str):
        return "a name in the registry" if registry is not None else f"text of {8 * len(claim.encode('utf-8'))} bits"
    if isinstance(claim, SupportsIndex):
        return "a number"
    return "bytes" if isinstance(claim, bytes | bytearray) else "bits"


def _chains(logs: Sequence[ReadLog], public_keys: Sequence[str] | None) -> list[ChainPart]:
    """What the chain of each log shows: of those that have one, and of all if somebody is to have signed them."""
    parts = []
    for log in logs:
        found = log.summary
        chained = found.checkpoints or found.bad_checkpoints or any(record.prev for record in log.records)
        if public_keys or chained:
            part = describe_chain(
                log.path,
                log.records,
                found.checkpoints,
                public_keys=public_keys,
                lines=log.lines,
                bad_lines=found.bad_lines,
                bad_checkpoints=found.bad_checkpoints,
            )
            parts.append(part)
    return parts
