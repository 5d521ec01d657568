"""What the chain of a log shows, as part of a report (docs/chain.md, docs/report.md)."""

import os
from collections.abc import Sequence
from typing import TypedDict

from agentmark.chain.check import verify_chain
from agentmark.chain.checkpoint import Checkpoint
from agentmark.chain.findings import Finding, FindingKind
from agentmark.keys.signing import SigningError
from agentmark.record import RecordError, StepRecord

# Findings beyond these are counted, not listed: `agentmark chain --json` lists all.
MAX_CHAIN_FINDINGS = 200


class ChainFindingPart(TypedDict):
    kind: str
    sentence: str
    session: str | None
    step: int | None
    line: int | None
    count: int | None


class ChainPart(TypedDict):
    log: str
    intact: bool
    sentence: str
    trusted_keys: list[str]
    records: int
    sessions: int
    checked: int
    checkpoints: int
    checkpoints_refused: int
    signers: list[str]
    last_checkpoint: str | None
    findings: list[ChainFindingPart]
    findings_left_out: int


def describe_chain(
    path: str | os.PathLike[str],
    records: Sequence[StepRecord],
    checkpoints: Sequence[Checkpoint],
    *,
    public_keys: Sequence[str] | None = None,
    lines: Sequence[int] | None = None,
    bad_lines: Sequence[RecordError] = (),
    bad_checkpoints: Sequence[RecordError] = (),
) -> ChainPart:
    """Judge the chain of one log. `public_keys` are those who must have signed; `lines` number the records."""
    unreadable = [*bad_lines, *bad_checkpoints]
    unjudged: list[Finding] = []
    try:
        report = verify_chain(records, checkpoints, public_keys, lines=lines, unreadable=unreadable)
    except SigningError as error:
        if public_keys is not None:
            raise
        # Links need no package. That nobody looked at the signatures is said, and stops nothing.
        report = verify_chain(records, (), lines=lines, unreadable=unreadable)
        sentence = f"{len(checkpoints)} checkpoints were not judged: {error.fault}"
        unjudged = [Finding(FindingKind.UNCHECKED, sentence)]
    findings = [*unjudged, *report.findings]
    return ChainPart(
        log=os.fsencode(path).decode("utf-8", "backslashreplace"),
        intact=report.intact,
        sentence=report.sentence,
        trusted_keys=list(public_keys or ()),
        records=report.record_count,
        sessions=report.session_count,
        checked=report.checked_count,
        checkpoints=report.checkpoint_count,
        checkpoints_refused=0 if unjudged else len(checkpoints) + len(bad_checkpoints) - report.checkpoint_count,
        signers=list(report.signers),
        last_checkpoint=report.last_checkpoint,
        findings=[_finding_part(finding) for finding in findings[:MAX_CHAIN_FINDINGS]],
        findings_left_out=max(0, len(findings) - MAX_CHAIN_FINDINGS),
    )


def _finding_part(finding: Finding) -> ChainFindingPart:
    return ChainFindingPart(
        kind=finding.kind.value,
        sentence=finding.sentence,
        session=finding.session,
        step=finding.step,
        line=finding.line,
        count=finding.count,
    )
