"""One case: what is asked of which logs, and the answer with all that it rests on.

case = Case(logs=[Path("run.jsonl")], keys=[SharedKey.load("key.json")], claim="tenant-0042", control=True)
answer = case.answer()
print(answer.verdict.sentence)

All records are pooled: right for what one agent left behind. For many sessions there is `roll_case.RollCase`, which
asks the same of each. Both take what `Case.read` has read:

    logs --read--> Material --all records--> LogState --> Verdict --> Answer         (here)
                      |-------a part each--> LogState --> Roll -----> RollAnswer     (`roll_case.py`)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from agentmark.audit.engine import Engine, PlainEngine
from agentmark.audit.material import Material, read_material
from agentmark.audit.progress import Progress, Silent
from agentmark.audit.stretches import find_segments
from agentmark.core.payload import PayloadLike
from agentmark.core.work_limit import DEFAULT_WORK_LIMIT
from agentmark.disclosure.basis import PublicBasis
from agentmark.disclosure.check import DisclosedSteps
from agentmark.errors import SettingError
from agentmark.identity.registry import Registry
from agentmark.keys.signing import check_public_key
from agentmark.log.read.limits import DEFAULT_LIMITS, Limits
from agentmark.record import StepRecord
from agentmark.report.chain_part import ChainPart
from agentmark.report.provenance import Provenance
from agentmark.verify.defaults import DEFAULT_OFFSETS, DEFAULT_THRESHOLD, MAX_OFFSETS
from agentmark.verify.intake import Intake
from agentmark.verify.keyring import AnyKey
from agentmark.verify.verdict import Placement, Verdict
from agentmark.verify.verifier import Verifier
from agentmark.verify.work import Work, reading_work

if TYPE_CHECKING:
    from agentmark.report.disclosed_part import Carried
    from agentmark.report.parts import Report, StrangerReport

# The control reads and searches with this part of the work. Of a long log it then reads a part, and says of how many
# steps it speaks.
CONTROL_PART = 3


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
    # What in the folders cannot be a log, in sentences, if that was looked for before.
    left_out: Sequence[str] = ()
    keys: Sequence[AnyKey]
    # With disclosures in place of keys: what the verdict rests on, and what is paid for it.
    basis: PublicBasis | None = None
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
    # Judge the records of these sessions alone; the beginning of an id will do.
    sessions: Sequence[str] = ()
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
        verifier = Verifier(
            self.keys,
            payload_len=self.payload_len,
            threshold=self.threshold,
            registry=self.registry,
            noise=self.noise,
            any_key_id=self.any_key_id,
            work_limit=self.work_limit,
        )
        return verifier if self.basis is None else verifier.resting_on(self.basis)

    def read(self, progress: Progress | None = None) -> Material:
        """Read the logs, and keep the sessions that are asked about."""
        material = read_material(
            self.logs,
            left_out=self.left_out,
            skip_bad=self.skip_bad,
            limits=self.limits,
            described=self.report is not None,
            registry_file=self.registry_file,
            progress=progress,
        )
        return material.only(self.sessions)

    def answer(
        self,
        material: Material | None = None,
        *,
        engine: Engine | None = None,
        progress: Progress | None = None,
    ) -> "Answer":
        """Read the logs once (unless that was done), judge them, and (if asked) take them in with random keys."""
        progress = progress or Silent()
        return _Inquiry(self, material or self.read(progress), engine or PlainEngine(), progress).answer()

    @property
    def registry_size(self) -> int | None:
        return None if self.registry is None else len(self.registry)

    @property
    def claim_in_words(self) -> str | None:
        """The claim as it was asked."""
        return claim_as_asked(self.claim)

    @property
    def claim_taken_as(self) -> str | None:
        """What it was taken for: a typing error must not pass for a name."""
        return claim_as_taken(self.claim, self.registry)

    def provenance(self, order: ReportOrder, material: Material) -> Provenance:
        """Where a report comes from."""
        return Provenance(
            made_at=datetime.now(UTC),
            command=order.command,
            key_ids=self.verifier().keys.ids,
            inputs=material.evidence,
            case_number=order.case_number,
            author=order.author,
            note=order.note,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that there is to say: the verdict, what it is compared with, and what else the logs show."""

    verdict: Verdict
    # In public mode, against whom it holds.
    basis: PublicBasis | None = None
    # What was disclosed and is not here, in sentences.
    missing: Sequence[str] = ()
    control: Verdict | None = None
    place: Placement | None = None
    chains: Sequence[ChainPart] = ()
    # What was asked about, in the asker's words, and what it was taken for: a typing error must not pass for a name.
    claim: str | None = None
    claim_taken_as: str | None = None
    # What was not read, in sentences.
    passed_over: Sequence[str] = ()
    report: "Report | None" = None
    stranger_report: "StrangerReport | None" = None

    def as_dict(self) -> dict[str, Any]:
        """The verdict as plain JSON data, and the rest beside it (docs/verdict.md)."""
        return self.verdict.as_dict() | {
            "claim": None if self.claim is None else {"given": self.claim, "taken_as": self.claim_taken_as},
            "passed_over": list(self.passed_over),
            "control": None if self.control is None else self.control.as_dict(),
            "place": None if self.place is None else {"offset": self.place.offset, "tried": self.place.tried},
            "chains": list(self.chains),
            "rests_on": None if self.basis is None else self.basis.as_dict() | {"missing": list(self.missing)},
        }


class _Inquiry:
    """One case at work: what was opened for it, and what was found."""

    def __init__(self, case: Case, material: Material, engine: Engine, progress: Progress) -> None:
        self._case = case
        self._material = material
        self._engine = engine
        self._progress = progress

    def answer(self) -> Answer:
        case = self._case
        verifier = case.verifier()
        parts: Sequence[Sequence[StepRecord]] = self._material.records
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
            basis=case.basis,
            missing=self._material.missing(case.keys),
            place=place,
            claim=case.claim_in_words,
            claim_taken_as=case.claim_taken_as,
            chains=self._material.chains(case.public_keys),
            passed_over=self._material.passed_over,
        )
        if case.report is not None and case.report.for_stranger:
            answer = replace(answer, stranger_report=self._stranger_report(case.report, answer, verifier))
        wants_whole_report = case.report is not None and not case.report.for_stranger
        if case.control or wants_whole_report:
            reading = Work(self._reading_work().limit / CONTROL_PART)
            strangers = verifier.sort_out(self._engine.take_in(parts, verifier.keys.strangers(), reading))
            # A stranger's key finds nothing however long it looks: a part of the work is enough to see that.
            judge = replace(verifier.judge, work_limit=max(1, case.work_limit // CONTROL_PART))
            answer = replace(answer, control=judge.verdict(strangers, case.claim))
        if case.report is not None and wants_whole_report:
            answer = replace(answer, report=self._report(case.report, answer, intake, verifier))
        return answer

    def _reading_work(self) -> Work:
        """What reading may cost follows the size of the files, not of what is packed in them."""
        return reading_work(self._case.work_limit, self._material.size_to_read)

    def _locate(self, verifier: Verifier, lost: LostPlace) -> Placement:
        self._progress.say(f"trying {lost.offsets} places in session {lost.session}")
        records = [record for records in self._material.records for record in records]
        return verifier.locate(lost.session, records, offsets=range(lost.offsets), claim=self._case.claim)

    def _report(self, order: ReportOrder, answer: Answer, intake: Intake, verifier: Verifier) -> "Report":
        from agentmark.report.content import build_report

        assert answer.control is not None
        segments, hints = find_segments(
            verifier.judge, intake, answer.verdict, asked=order.segments, progress=self._progress.say
        )
        lost = self._case.place
        return build_report(
            answer.verdict,
            control=answer.control,
            intake=intake,
            noise_rates=verifier.noise_rates,
            provenance=self._case.provenance(order, self._material),
            claim=answer.claim,
            claim_taken_as=answer.claim_taken_as,
            registry_size=self._case.registry_size,
            place=None if lost is None or answer.place is None else (lost.session, answer.place),
            findings=[*hints, *answer.missing, *self._material.changed(self._case.registry_file)],
            passed_over=answer.passed_over,
            segments=segments,
            chains=answer.chains,
            carried=self._carried(order),
        )

    def _carried(self, order: ReportOrder) -> "Carried | None":
        """In public mode, what the verdict can be repeated from without any file but the report."""
        from agentmark.report.disclosed_part import AskedPart, Carried

        case = self._case
        if case.basis is None:
            return None
        named = isinstance(case.claim, str) and case.registry is not None
        return Carried(
            basis=case.basis,
            disclosures=[each for key in case.keys if isinstance(key, DisclosedSteps) for each in key.disclosures],
            records=[record for records in self._material.records for record in records],
            asked=AskedPart(
                payload_len=case.payload_len,
                threshold=repr(case.threshold),
                noise=None if case.noise is None else repr(case.noise),
                work_limit=case.work_limit,
                reading_limit=int(self._reading_work().limit),
                segments=order.segments,
                all_sessions=not case.sessions,
            ),
            registry=case.registry,
            claim=str(case.claim) if named else None,
        )

    def _stranger_report(self, order: ReportOrder, answer: Answer, verifier: Verifier) -> "StrangerReport":
        """Of what else was found, only what shows without the key: how the files were read."""
        from agentmark.report.content import build_stranger_report

        return build_stranger_report(
            answer.verdict.for_stranger(),
            noise_rates=verifier.noise_rates,
            provenance=self._case.provenance(order, self._material),
            claim=answer.claim,
            claim_taken_as=answer.claim_taken_as,
            registry_size=self._case.registry_size,
            findings=self._material.changed(self._case.registry_file),
            passed_over=answer.passed_over,
        )


def claim_as_asked(claim: PayloadLike) -> str | None:
    """The claim as a report states it: in the asker's own words, or as digits."""
    if claim is None or isinstance(claim, str):
        return claim
    if isinstance(claim, SupportsIndex):
        return f"{index(claim):#x}"
    if isinstance(claim, bytes | bytearray):
        return f"0x{claim.hex()}"
    return "0b" + "".join(map(str, claim))


def claim_as_taken(claim: PayloadLike, registry: Registry | None) -> str | None:
    """What a claim was read as. Without a registry, a name is text, and its letters are the payload."""
    if claim is None:
        return None
    if isinstance(claim, str):
        return "a name in the registry" if registry is not None else f"text of {8 * len(claim.encode('utf-8'))} bits"
    if isinstance(claim, SupportsIndex):
        return "a number"
    return "bytes" if isinstance(claim, bytes | bytearray) else "bits"
