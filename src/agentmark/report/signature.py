"""Signed reports: Ed25519 over the canonical bytes, so that a report can be relied on without the shared key."""

from hashlib import sha256
from typing import Any, TypedDict

from agentmark.core.canonical import canonical_bytes
from agentmark.core.errors import AgentMarkError, ContextError
from agentmark.keys.signing import SigningKey, check_public_key, verify_signature
from agentmark.report.parts import REPORT_VERSION, Report, StrangerReport
from agentmark.report.shape import shape_fault

REPORT_LABEL = b"agentmark/1 report"
ALGORITHM = "Ed25519"


class SignaturePart(TypedDict):
    algorithm: str
    public_key: str
    value: str


class SignedReportError(AgentMarkError, ValueError):
    """Data that is not a signed report of this version, whoever signed it. A wrong signature is no error: it is a
    finding."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"signed report: {fault}")
        self.fault = fault


def report_digest(report: Report | StrangerReport) -> str:
    """SHA-256 of the canonical bytes: names this report on the page and in the signed file alike."""
    return sha256(canonical_bytes(report)).hexdigest()


def sign_report(report: Report | StrangerReport, key: SigningKey) -> dict[str, Any]:
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
    signed must be a report: exactly its members, of their types, at every level.
    """
    report, signature = _parts(signed)
    signer = signature["public_key"]
    if public_key is not None and signer != check_public_key(public_key):
        return None
    try:
        message = canonical_bytes(report)
    except ContextError as error:
        raise SignedReportError(f"{error.field}: {error.fault}") from None
    if not verify_signature(signer, REPORT_LABEL, message, signature["value"]):
        return None
    fault = shape_fault(report, StrangerReport if "view" in report else Report, "report")
    if fault is not None:
        raise SignedReportError(fault)
    return signer


def _parts(signed: object) -> tuple[dict[str, Any], SignaturePart]:
    if not isinstance(signed, dict) or set(signed) != {"report", "signature"}:
        raise SignedReportError("is not a JSON object of report and signature, and nothing beside them")
    report, signature = signed["report"], signed["signature"]
    fault = shape_fault(signature, SignaturePart, "signature")
    if fault is not None:
        raise SignedReportError(fault)
    if signature["algorithm"] != ALGORITHM:
        raise SignedReportError(f"signature.algorithm is not {ALGORITHM}")
    version = report.get("agentmark_report") if isinstance(report, dict) else None
    if type(version) is not int or version != REPORT_VERSION:
        raise SignedReportError(f"report.agentmark_report is not {REPORT_VERSION}, the version that this build reads")
    return report, signature
