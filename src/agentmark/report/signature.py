"""Signed reports: Ed25519 over the canonical bytes, so that a report can be relied on without the shared key."""

from hashlib import sha256
from typing import Any

from agentmark.core.canonical import canonical_bytes
from agentmark.core.errors import AgentMarkError, ContextError
from agentmark.keys.signing import SigningKey, check_public_key, verify_signature
from agentmark.report.content import REPORT_VERSION, Report, StrangerReport

REPORT_LABEL = b"agentmark/1 report"
ALGORITHM = "Ed25519"


class SignedReportError(AgentMarkError, ValueError):
    """A file that is not a signed report of this version. A wrong signature is no error: it is a finding."""

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

    Without `public_key` it only shows that the holder of the key inside the file signed it, whoever that is.
    """
    report, signature = _parts(signed)
    signer = signature.get("public_key")
    if public_key is not None and signer != check_public_key(public_key):
        return None
    value = signature.get("value")
    if signature.get("algorithm") != ALGORITHM or not isinstance(signer, str) or not isinstance(value, str):
        raise SignedReportError(f"its signature is not of {ALGORITHM} with public_key and value")
    try:
        message = canonical_bytes(report)
    except ContextError as error:
        raise SignedReportError(f"{error.field}: {error.fault}") from None
    return signer if verify_signature(signer, REPORT_LABEL, message, value) else None


def _parts(signed: object) -> tuple[dict[str, Any], dict[str, Any]]:
    report = signed.get("report") if isinstance(signed, dict) else None
    signature = signed.get("signature") if isinstance(signed, dict) else None
    if not isinstance(report, dict) or not isinstance(signature, dict):
        raise SignedReportError("is not a JSON object of report and signature")
    if report.get("agentmark_report") != REPORT_VERSION:
        found = report.get("agentmark_report")
        raise SignedReportError(f"has version {found!r}; this build reads version {REPORT_VERSION}")
    return report, signature
