"""The report as plain data: what the page shows and a signature covers (docs/report.md)."""

import hashlib
import os
import platform
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log2
from pathlib import Path
from typing import TypedDict

from agentmark.core.evidence import Evidence
from agentmark.core.linear import LinearSystem
from agentmark.core.rlnc import Equation
from agentmark.core.schemes import SCHEMES
from agentmark.core.theory import false_positive_rate
from agentmark.report.chain_part import ChainPart
from agentmark.report.numbers import bits_text, rate_in_words, rate_text
from agentmark.verify.intake import Intake, Outcome
from agentmark.verify.stranger import StrangerView
from agentmark.verify.verdict import Placement, Segment, StepFinding, Verdict
from agentmark.version import __version__

REPORT_VERSION = 1
# How a report for those who do not hold the key says so.
STRANGERS_VIEW = "stranger"
# Records beyond these are counted, not shown; so are candidates of one step, and points of a curve are thinned out.
MAX_STEPS = 2000
MAX_CANDIDATES = 20
MAX_POINTS = 400

CONSISTENT = "consistent"
CONTRADICTING = "contradicting"
IMPOSSIBLE_STEP = "impossible"
ERASED = "erased"
UNSETTLED = "unsettled"


class InputFile(TypedDict):
    """A file that was read. Neither size nor digest if it was a pipe."""

    kind: str
    path: str
    size: int | None
    sha256: str | None


class RunnerUpPart(TypedDict):
    evidence_bits: str | None


class VerdictPart(TypedDict):
    accepted: bool
    sentence: str
    identity: str | None
    revoked_at: str | None
    payload: str | None
    text: str | None
    payload_len: int
    route: str | None
    consistent: bool | None
    schemes: list[str]
    bound: str
    bound_in_words: str
    threshold: str
    evidence_bits: str | None
    bits_paid: str
    surplus_bits: str | None
    level_bits: str
    potential_bits: str
    likely_noise: str
    rank: int
    used: int
    agreeing: int
    contradicting: int
    records: int
    outcomes: dict[str, int]
    bits_needed: str | None
    steps_needed: int | None
    work: str
    work_note: str | None
    runner_up: RunnerUpPart | None


class OwnershipPart(TypedDict):
    evidence_bits: str | None
    bits_paid: str
    bound: str
    bound_in_words: str


class PlacePart(TypedDict):
    session: str
    offsets_tried: int
    offset: int | None


class QuestionPart(TypedDict):
    claim: str | None
    claim_taken_as: str | None
    registry_size: int | None
    noise_rates: list[str]
    place: PlacePart | None


class GrowthPart(TypedDict):
    of: str
    points: list[tuple[int, str | None]]


class RankPart(TypedDict):
    equations: int
    points: list[tuple[int, int]]


class SegmentPart(TypedDict):
    payload: str | None
    identity: str | None
    first_step: int
    last_step: int
    first_record: str
    last_record: str
    steps: int
    evidence_bits: str | None
    bound: str


class StepPart(TypedDict):
    record: int
    session: str
    step: int
    scheme: str
    candidates: list[tuple[str, int]]
    candidates_left_out: int
    choice: str
    finding: str
    outcome: str
    reason: str | None
    evidence_bits: str | None


class Report(TypedDict):
    """All that a report says. No floats, no secrets; every text is as it was read."""

    agentmark_report: int
    made_at: str
    case_number: str | None
    author: str | None
    note: str | None
    versions: dict[str, str]
    command: str
    keys: list[str]
    inputs: list[InputFile]
    question: QuestionPart
    verdict: VerdictPart
    ownership: OwnershipPart | None
    control: VerdictPart
    growth: GrowthPart
    rank_growth: RankPart | None
    findings: list[str]
    passed_over: list[str]
    chains: list[ChainPart]
    segments: list[SegmentPart]
    steps: list[StepPart]
    steps_left_out: int


class StrangerVerdictPart(TypedDict):
    accepted: bool
    sentence: str
    identity: str | None
    revoked_at: str | None
    payload: str | None
    text: str | None
    payload_len: int | None
    threshold: str


class StrangerReport(TypedDict):
    """What a report says to those who do not hold the key: nothing in it moves with a single record, except the files'
    own digests and what could not be read of them."""

    agentmark_report: int
    view: str
    made_at: str
    case_number: str | None
    author: str | None
    note: str | None
    versions: dict[str, str]
    command: str
    keys: list[str]
    inputs: list[InputFile]
    question: QuestionPart
    verdict: StrangerVerdictPart
    findings: list[str]
    passed_over: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a report comes from: when, by which command, with which keys and files; for which case, by whom, and what
    they add in their own words."""

    made_at: datetime
    command: str
    key_ids: Sequence[str] = ()
    inputs: Sequence[InputFile] = ()
    case_number: str | None = None
    author: str | None = None
    note: str | None = None


def describe_file(kind: str, path: str | os.PathLike[str]) -> InputFile:
    """Size and SHA-256 of a file. A pipe can be read once only, and not by this."""
    shown = os.fsencode(path).decode("utf-8", "backslashreplace")
    if not stat.S_ISREG(Path(path).stat().st_mode):
        return InputFile(kind=kind, path=shown, size=None, sha256=None)
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return InputFile(kind=kind, path=shown, size=file.tell(), sha256=digest)


def build_report(
    verdict: Verdict,
    *,
    control: Verdict,
    intake: Intake,
    noise_rates: Sequence[float],
    provenance: Provenance,
    claim: str | None = None,
    claim_taken_as: str | None = None,
    registry_size: int | None = None,
    place: tuple[str, Placement] | None = None,
    findings: Iterable[str] = (),
    passed_over: Iterable[str] = (),
    segments: Iterable[Segment] = (),
    chains: Sequence[ChainPart] = (),
) -> Report:
    """Put a verdict, its control and the steps it rests on together.

    `intake` is that of the same records. `place` is the session in which a segment was placed, and what
    `Verifier.locate` said. `findings` are sentences on tampering beside the verdict's own.
    """
    return Report(
        agentmark_report=REPORT_VERSION,
        made_at=_time(provenance),
        case_number=provenance.case_number,
        author=provenance.author,
        note=provenance.note,
        versions=_versions(),
        command=provenance.command,
        keys=list(provenance.key_ids),
        inputs=list(provenance.inputs),
        question=_question_part(claim, claim_taken_as, registry_size, noise_rates, place),
        verdict=_verdict_part(verdict),
        ownership=_ownership_part(verdict),
        control=_verdict_part(control),
        growth=_growth(verdict, intake, noise_rates),
        rank_growth=_rank_growth(intake),
        findings=[*verdict.tampering, *findings, *_broken_chains(chains)],
        passed_over=list(passed_over),
        chains=list(chains),
        segments=[_segment_part(segment, verdict.payload_len) for segment in segments],
        steps=[
            _step_part(number, finding, noise_rates)
            for number, finding in enumerate(verdict.findings[:MAX_STEPS], start=1)
        ],
        steps_left_out=max(0, len(verdict.findings) - MAX_STEPS),
    )


def build_stranger_report(
    view: StrangerView,
    *,
    noise_rates: Sequence[float],
    provenance: Provenance,
    claim: str | None = None,
    claim_taken_as: str | None = None,
    registry_size: int | None = None,
    findings: Iterable[str] = (),
    passed_over: Iterable[str] = (),
) -> StrangerReport:
    """A report on a verdict for those who do not hold the key.

    `findings` and `passed_over` go in as they are: only what shows without the key belongs there.
    """
    said = view.as_dict()
    return StrangerReport(
        agentmark_report=REPORT_VERSION,
        view=STRANGERS_VIEW,
        made_at=_time(provenance),
        case_number=provenance.case_number,
        author=provenance.author,
        note=provenance.note,
        versions=_versions(),
        command=provenance.command,
        keys=list(provenance.key_ids),
        inputs=list(provenance.inputs),
        question=_question_part(claim, claim_taken_as, registry_size, noise_rates, None),
        verdict=StrangerVerdictPart(
            accepted=said["accepted"],
            sentence=said["sentence"],
            identity=said["identity"],
            revoked_at=said["revoked_at"],
            payload=said["payload"],
            text=said["text"],
            payload_len=said["payload_len"],
            threshold=f"{said['threshold']:g}",
        ),
        findings=list(findings),
        passed_over=list(passed_over),
    )


def _question_part(
    claim: str | None,
    claim_taken_as: str | None,
    registry_size: int | None,
    noise_rates: Sequence[float],
    place: tuple[str, Placement] | None,
) -> QuestionPart:
    return QuestionPart(
        claim=claim,
        claim_taken_as=claim_taken_as,
        registry_size=registry_size,
        noise_rates=[f"{rate:g}" for rate in noise_rates],
        place=None if place is None else _place_part(*place),
    )


def _time(provenance: Provenance) -> str:
    return provenance.made_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _versions() -> dict[str, str]:
    return {"agentmark": __version__, "python": platform.python_version()}


def _place_part(session: str, place: Placement) -> PlacePart:
    return PlacePart(session=session, offsets_tried=place.tried, offset=place.offset)


def _broken_chains(chains: Iterable[ChainPart]) -> list[str]:
    return [f"the chain of {chain['log']}: {chain['sentence']}" for chain in chains if not chain["intact"]]


def _verdict_part(verdict: Verdict) -> VerdictPart:
    """A view of `Verdict.as_dict` with its numbers as text."""
    said = verdict.as_dict()
    second = said["runner_up"]
    return VerdictPart(
        accepted=said["accepted"],
        sentence=said["sentence"],
        identity=said["identity"],
        revoked_at=said["revoked_at"],
        payload=said["payload"],
        text=said["text"],
        payload_len=said["payload_len"],
        route=said["route"],
        consistent=said["consistent"],
        schemes=said["schemes"],
        bound=rate_text(said["false_positive_rate"]),
        bound_in_words=rate_in_words(said["false_positive_rate"]),
        threshold=f"{said['threshold']:g}",
        evidence_bits=bits_text(said["evidence_bits"]),
        bits_paid=_bits(said["bits_paid"]),
        surplus_bits=bits_text(said["surplus"]),
        level_bits=_bits(said["bits_paid"] - log2(said["threshold"])),
        potential_bits=_bits(said["potential_bits"]),
        likely_noise=f"{said['likely_noise']:g}",
        rank=said["rank"],
        used=said["outcomes"].get(Outcome.USED.value, 0),
        agreeing=said["agreeing"],
        contradicting=said["contradicting"],
        records=said["records"],
        outcomes=dict(sorted(said["outcomes"].items())),
        bits_needed=bits_text(said["bits_needed"]),
        steps_needed=said["steps_needed"],
        work=f"{said['work']:.1e}",
        work_note=said["work_note"],
        runner_up=None if second is None else RunnerUpPart(evidence_bits=bits_text(second["evidence_bits"])),
    )


def _ownership_part(verdict: Verdict) -> OwnershipPart | None:
    if verdict.ownership_bits is None:
        return None
    # The payload was looked for in the same log, so that its price is due here as well.
    rate = false_positive_rate(max(verdict.ownership_bits - verdict.bits_paid, 0.0))
    return OwnershipPart(
        evidence_bits=bits_text(verdict.ownership_bits),
        bits_paid=_bits(verdict.bits_paid),
        bound=rate_text(rate),
        bound_in_words=rate_in_words(rate),
    )


def _growth(verdict: Verdict, intake: Intake, noise_rates: Sequence[float]) -> GrowthPart:
    """Surplus after each record, in the order of the log: of the candidate, or of what the steps could say.

    The candidate was picked by looking at the whole log, so its evidence alone may grow by that choice. Its surplus
    cannot: 2^surplus is one term of the mean of all e-values, weighted by the prices, which is an e-value at every
    record, whichever term is picked afterwards.
    """
    evidence = Evidence(noise_rates)
    possible = 0.0
    totals: list[float] = []
    for step in intake.steps:
        if step.reading is not None:
            possible += step.reading.evidence_bits
            if verdict.candidate is not None:
                evidence.update(step.reading.e_value(verdict.candidate))
        totals.append((possible if verdict.candidate is None else evidence.bits) - verdict.bits_paid)
    return GrowthPart(
        of="steps" if verdict.candidate is None else "candidate",
        points=[(0, bits_text(-verdict.bits_paid)), *[(i + 1, bits_text(totals[i])) for i in _thinned(len(totals))]],
    )


def _rank_growth(intake: Intake) -> RankPart | None:
    """How many payload bits the equations of linear schemes speak of, after each record; None without equations."""
    system = LinearSystem(intake.payload_len)
    equations = 0
    ranks = []
    for step in intake.steps:
        if step.reading is not None and SCHEMES[step.record.scheme].is_linear:
            equations += len(step.reading.rows)
            for row in step.reading.rows if system.rank < intake.payload_len else ():
                system.update(Equation(row, 0))
        ranks.append(system.rank)
    if equations == 0 or intake.payload_len == 0:
        return None
    return RankPart(equations=equations, points=[(0, 0), *[(i + 1, ranks[i]) for i in _thinned(len(ranks))]])


def _thinned(count: int) -> list[int]:
    """At most about MAX_POINTS positions, evenly spread; the last is always among them."""
    stride = -(-count // MAX_POINTS) or 1
    return [i for i in range(count) if (count - 1 - i) % stride == 0]


def _segment_part(segment: Segment, payload_len: int) -> SegmentPart:
    return SegmentPart(
        payload=_hex(segment.payload, payload_len),
        identity=segment.identity,
        first_step=segment.first + 1,
        last_step=segment.last + 1,
        first_record=segment.first_record,
        last_record=segment.last_record,
        steps=segment.last - segment.first + 1,
        evidence_bits=bits_text(segment.evidence_bits),
        bound=rate_text(segment.false_positive_rate),
    )


def _step_part(number: int, finding: StepFinding, noise_rates: Sequence[float]) -> StepPart:
    record = finding.record
    weights = (
        record.distribution.as_weights() if record.distribution is not None else dict(record.partial_weights or {})
    )
    shown = sorted(weights.items(), key=lambda item: (item[0] != record.behavior, -item[1], item[0]))[:MAX_CANDIDATES]
    # Without room for noise, one contradiction rules the candidate out: no number of bits says that.
    fatal = finding.agrees is False and max(noise_rates) == 0
    return StepPart(
        record=number,
        session=record.session,
        step=record.step_index,
        scheme=record.scheme,
        candidates=sorted(shown, key=lambda item: (-item[1], item[0])),
        candidates_left_out=len(weights) - len(shown),
        choice=record.behavior,
        finding=_finding_name(finding),
        outcome=finding.outcome.value,
        reason=record.reason,
        evidence_bits=bits_text(finding.evidence_bits) if finding.outcome is Outcome.USED and not fatal else None,
    )


def _finding_name(finding: StepFinding) -> str:
    if finding.outcome is Outcome.IMPOSSIBLE:
        return IMPOSSIBLE_STEP
    if finding.outcome is not Outcome.USED:
        return ERASED
    if finding.agrees is None:
        return UNSETTLED
    return CONSISTENT if finding.agrees else CONTRADICTING


def _hex(payload: int | None, payload_len: int) -> str | None:
    return None if payload is None else f"{payload:0{-(-payload_len // 4)}x}"


def _bits(bits: float) -> str:
    return bits_text(bits) or "0.000"
