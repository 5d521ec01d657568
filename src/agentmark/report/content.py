"""A verdict and what it rests on, put together as a report (docs/report.md)."""

import platform
from collections.abc import Iterable, Sequence
from math import log2

from agentmark.core.theory import false_positive_rate
from agentmark.report.chain_part import ChainPart
from agentmark.report.curves import growth_part, rank_part
from agentmark.report.disclosed_part import Carried
from agentmark.report.numbers import bits_text, rate_in_words, rate_text
from agentmark.report.parts import (
    CONSISTENT,
    CONTRADICTING,
    ERASED,
    IMPOSSIBLE_STEP,
    REPORT_VERSION,
    STRANGERS_VIEW,
    UNSETTLED,
    FoundPart,
    NamedPart,
    OwnershipPart,
    PlacePart,
    QuestionPart,
    Report,
    RunnerUpPart,
    SegmentPart,
    StepPart,
    StrangerReport,
    StrangerVerdictPart,
    VerdictPart,
)
from agentmark.report.provenance import Provenance
from agentmark.verify.intake import COUNTED_AGAINST, Intake, Outcome
from agentmark.verify.stranger import StrangerView
from agentmark.verify.verdict import FoundIdentity, Placement, Segment, StepFinding, Verdict
from agentmark.version import __version__

# Records beyond these are counted, not shown; so are candidates of one step.
MAX_STEPS = 2000
MAX_CANDIDATES = 20


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
    carried: Carried | None = None,
) -> Report:
    """Put a verdict, its control and the steps it rests on together.

    `intake` is that of the same records. `place` is the session in which a segment was placed, and what
    `Verifier.locate` said. `findings` are sentences on tampering beside the verdict's own. `carried`: in public
    mode, what the verdict rests on and is repeated from.
    """
    segments = tuple(segments)
    return Report(
        agentmark_report=REPORT_VERSION,
        made_at=provenance.made_at_text,
        case_number=provenance.case_number,
        author=provenance.author,
        note=provenance.note,
        versions=_versions(),
        command=provenance.command,
        keys=list(provenance.key_ids),
        inputs=list(provenance.inputs),
        question=_question_part(claim, claim_taken_as, registry_size, noise_rates, place),
        verdict=_verdict_part(verdict),
        rests_on=None if carried is None else carried.rests_on,
        disclosed=None if carried is None else carried.part(_named(verdict, segments)),
        ownership=_ownership_part(verdict),
        control=_verdict_part(control),
        growth=growth_part(verdict, intake, noise_rates),
        rank_growth=rank_part(intake),
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
        made_at=provenance.made_at_text,
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
            found=[
                NamedPart(
                    payload=named["payload"],
                    identity=named["identity"],
                    revoked_at=named["revoked_at"],
                    text=named["text"],
                )
                for named in said["found"]
            ],
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


def _versions() -> dict[str, str]:
    return {"agentmark": __version__, "python": platform.python_version()}


def _place_part(session: str, place: Placement) -> PlacePart:
    return PlacePart(session=session, offsets_tried=place.tried, offset=place.offset)


def _broken_chains(chains: Iterable[ChainPart]) -> list[str]:
    return [f"the chain of {chain['log']}: {chain['sentence']}" for chain in chains if not chain["intact"]]


def _named(verdict: Verdict, segments: Iterable[Segment]) -> list[int]:
    """Everyone who is named anywhere in the report."""
    owners = [segment.payload for segment in segments if segment.payload is not None]
    return list(dict.fromkeys([*[found.payload for found in verdict.found], *owners]))


def _verdict_part(verdict: Verdict) -> VerdictPart:
    """A view of `Verdict.as_dict` with its numbers as text."""
    said = verdict.as_dict()
    second = said["runner_up"]
    return VerdictPart(
        accepted=said["accepted"],
        standing=said["standing"],
        sentence=said["sentence"],
        found=[_found_part(identity) for identity in verdict.found],
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
        used=verdict.counted_steps,
        agreeing=said["agreeing"],
        contradicting=said["contradicting"],
        unexplained=verdict.unexplained,
        records=said["records"],
        outcomes=dict(sorted(said["outcomes"].items())),
        bits_needed=bits_text(said["bits_needed"]),
        steps_needed=said["steps_needed"],
        work=f"{said['work']:.1e}",
        work_note=said["work_note"],
        runner_up=None if second is None else RunnerUpPart(evidence_bits=bits_text(second["evidence_bits"])),
    )


def _found_part(found: FoundIdentity) -> FoundPart:
    said = found.as_dict()
    return FoundPart(
        payload=said["payload"],
        identity=said["identity"],
        revoked_at=said["revoked_at"],
        text=said["text"],
        evidence_bits=bits_text(said["evidence_bits"]),
        bits_paid=_bits(said["bits_paid"]),
        bound=rate_text(said["false_positive_rate"]),
        bound_in_words=rate_in_words(said["false_positive_rate"]),
        at_least_steps=said["at_least_steps"],
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
    if finding.outcome in COUNTED_AGAINST:
        return CONTRADICTING
    if finding.outcome is not Outcome.USED:
        return ERASED
    if finding.agrees is None:
        return UNSETTLED
    return CONSISTENT if finding.agrees else CONTRADICTING


def _hex(payload: int | None, payload_len: int) -> str | None:
    return None if payload is None else f"{payload:0{-(-payload_len // 4)}x}"


def _bits(bits: float) -> str:
    return bits_text(bits) or "0.000"
