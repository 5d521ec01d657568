"""Signed reports: Ed25519 over the canonical bytes, so that a report can be relied on without the shared key."""

from enum import Enum
from hashlib import sha256
from typing import Any, TypedDict

from agentmark.core.canonical import canonical_bytes
from agentmark.core.errors import AgentMarkError, ContextError
from agentmark.keys.signing import SigningKey, check_public_key, verify_signature
from agentmark.report.parts import REPORT_VERSION, Report, StrangerReport
from agentmark.report.roll_content import IDENTITY_VERSION, ROLL_VERSION, IdentityReport, RollReport
from agentmark.report.shape import shape_fault

REPORT_LABEL = b"agentmark/1 report"
ALGORITHM = "Ed25519"

AnyReport = Report | StrangerReport | RollReport | IdentityReport


class SignaturePart(TypedDict):
    algorithm: str
    public_key: str
    value: str


class SignatureOutcome(Enum):
    """What a signature shows. Only with the first may what the file says be relied on."""

    # By the key that was asked for; if none was, by the key that the file states.
    SIGNED = "signed"
    # Not what was signed with the key that the file states.
    ALTERED = "altered"
    # As it was signed, with the key that the file states. That is not the key that was asked for.
    OTHER_KEY = "by another key"
    # The file states another key than was asked for, and is not as that key signed it: altered, or made up.
    NEITHER = "neither"


class SignedReportError(AgentMarkError, ValueError):
    """Data that is not a signed report of this version, whoever signed it. A wrong signature is no error: it is a
    finding."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"signed report: {fault}")
        self.fault = fault


def report_digest(report: AnyReport) -> str:
    """SHA-256 of the canonical bytes: names this report on the page and in the signed file alike."""
    return sha256(canonical_bytes(report)).hexdigest()


def sign_report(report: AnyReport, key: SigningKey) -> dict[str, Any]:
    """The report with its signature beside it."""
    return {
        "report": report,
        "signature": {
            "algorithm": ALGORITHM,
            "public_key": key.public_key,
            "value": key.sign(REPORT_LABEL, canonical_bytes(report)),
        },
    }


def check_report(signed: object, *, public_key: str | None = None) -> str | None:
    """The public key that signed this report, or None when the signature is not of this report or not by that key.

    Without `public_key` it only shows that the holder of the key inside the file signed it, whoever that is. What they
    signed must be a report: exactly its members, of their types, at every level. `judge_signature` says why not.
    """
    outcome, signer = judge_signature(signed, public_key=public_key)
    return signer if outcome is SignatureOutcome.SIGNED else None


def judge_signature(signed: object, *, public_key: str | None = None) -> tuple[SignatureOutcome, str]:
    """What the signature of a file shows, and the public key that the file states."""
    report, signature = _parts(signed)
    signer, value = signature["public_key"], signature["value"]
    asked_for = signer if public_key is None else check_public_key(public_key)
    try:
        message = canonical_bytes(report)
    except ContextError as error:
        raise SignedReportError(f"{error.field}: {error.fault}") from None
    intact = verify_signature(signer, REPORT_LABEL, message, value)
    if signer != asked_for:
        if intact:
            return SignatureOutcome.OTHER_KEY, signer
        # If it is as the asked key signed it, only the key that the file states was changed: altered all the same.
        by_asked = verify_signature(asked_for, REPORT_LABEL, message, value)
        return SignatureOutcome.ALTERED if by_asked else SignatureOutcome.NEITHER, signer
    if not intact:
        return SignatureOutcome.ALTERED, signer
    fault = shape_fault(report, _kind(report), "report")
    if fault is not None:
        raise SignedReportError(fault)
    return SignatureOutcome.SIGNED, signer


def _parts(signed: object) -> tuple[dict[str, Any], SignaturePart]:
    if not isinstance(signed, dict) or set(signed) != {"report", "signature"}:
        raise SignedReportError("is not a JSON object of report and signature, and nothing beside them")
    report, signature = signed["report"], signed["signature"]
    fault = shape_fault(signature, SignaturePart, "signature")
    if fault is not None:
        raise SignedReportError(fault)
    if signature["algorithm"] != ALGORITHM:
        raise SignedReportError(f"signature.algorithm is not {ALGORITHM}")
    _kind(report)
    return report, signature


# The member that says which kind of report it is, and the version of that kind that this build reads.
_ROLLS = {"agentmark_roll": (ROLL_VERSION, RollReport), "agentmark_roll_identity": (IDENTITY_VERSION, IdentityReport)}


def check_version(report: Any) -> None:
    """Refuse a report of a kind or version that this build does not read."""
    _kind(report)


def _kind(report: Any) -> type:
    members = report if isinstance(report, dict) else {}
    single = REPORT_VERSION, StrangerReport if "view" in members else Report
    name = next((name for name in _ROLLS if name in members), "agentmark_report")
    version, kind = _ROLLS.get(name, single)
    stated = members.get(name)
    if type(stated) is not int or stated != version:
        raise SignedReportError(f"report.{name} is not {version}, the version that this build reads")
    return kind
