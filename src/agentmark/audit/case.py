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
from agentmark.report.content import InputFile, Provenance, Report, build_report, describe_file
from agentmark.verify.intake import Intake
from agentmark.verify.search.symbols import DEFAULT_SEARCH_LIMIT
from agentmark.verify.verdict import DEFAULT_THRESHOLD, Placement, Verdict
from agentmark.verify.verifier import DEFAULT_OFFSETS, Verifier

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
    """A report is wanted as well, with the command that repeats the verdict.

    `segments` looks for the stretches of several identities however long it takes.
    """

    command: str
    segments: bool = False


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
    search_limit: int = DEFAULT_SEARCH_LIMIT
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
        if self.place is not None and self.place.offsets < 1:
            raise SettingError("offsets", f"{self.place.offsets} is not a number of places")
        if self.search_limit < 1:
            raise SettingError("search_limit", f"{self.search_limit} is not a number of guesses")
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
            search_limit=self.search_limit,
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
    # What was not read, in sentences.
    passed_over: Sequence[str] = ()
    report: Report | None = None

    def as_dict(self) -> dict[str, Any]:
        """The verdict as plain JSON data, and the rest beside it (docs/verdict.md)."""
        return self.verdict.as_dict() | {
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
        intake = verifier.sort_out(self._engine.take_in(parts if needed else [], verifier.keys))
        answer = Answer(
            verdict=verifier.judge.verdict(intake, case.claim) if place is None else place.verdict,
            place=place,
            chains=_chains(self._logs, case.public_keys),
            passed_over=[line for log in self._logs for line in log.summary.passed_over],
        )
        if case.control or case.report is not None:
            strangers = verifier.sort_out(self._engine.take_in(parts, verifier.keys.strangers()))
            answer = replace(answer, control=verifier.judge.verdict(strangers, case.claim))
        if case.report is not None:
            answer = replace(answer, report=self._report(case.report, answer, intake, verifier))
        return answer

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
            provenance=Provenance(
                made_at=datetime.now(UTC), command=order.command, key_ids=verifier.keys.ids, inputs=self._files
            ),
            claim=_worded(self._case.claim),
            registry_size=None if self._case.registry is None else len(self._case.registry),
            place=None if lost is None or answer.place is None else (lost.session, answer.place),
            findings=[*hints, *self._changed_files()],
            passed_over=answer.passed_over,
            segments=segments,
            chains=answer.chains,
        )

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
