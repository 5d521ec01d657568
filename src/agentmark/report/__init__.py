"""The report: a verdict with all that it rests on, as data, as one page, and signed."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmark.report.chain_part import ChainPart, describe_chain
    from agentmark.report.content import build_report, build_stranger_report
    from agentmark.report.page import render_report
    from agentmark.report.page_data import SignedFile
    from agentmark.report.parts import Report, StrangerReport
    from agentmark.report.pdf import PdfError, find_browser, print_to_pdf
    from agentmark.report.provenance import InputFile, Provenance, describe_file
    from agentmark.report.roll_content import IdentityReport, RollReport, build_roll_report
    from agentmark.report.roll_folder import roll_files
    from agentmark.report.roll_identity import identity_reports
    from agentmark.report.roll_page import render_roll
    from agentmark.report.signature import SignatureOutcome, check_report, judge_signature, report_digest, sign_report

# Imported when first used: whoever wants a verdict and no report loads no page.
_HOMES = {
    "ChainPart": "chain_part",
    "IdentityReport": "roll_content",
    "InputFile": "provenance",
    "PdfError": "pdf",
    "Provenance": "provenance",
    "Report": "parts",
    "RollReport": "roll_content",
    "SignatureOutcome": "signature",
    "SignedFile": "page_data",
    "StrangerReport": "parts",
    "build_report": "content",
    "build_roll_report": "roll_content",
    "build_stranger_report": "content",
    "check_report": "signature",
    "describe_chain": "chain_part",
    "describe_file": "provenance",
    "find_browser": "pdf",
    "identity_reports": "roll_identity",
    "judge_signature": "signature",
    "print_to_pdf": "pdf",
    "render_report": "page",
    "render_roll": "roll_page",
    "report_digest": "signature",
    "roll_files": "roll_folder",
    "sign_report": "signature",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'agentmark.report' has no attribute {name!r}")
    return getattr(import_module(f"agentmark.report.{_HOMES[name]}"), name)


__all__ = [
    "ChainPart",
    "IdentityReport",
    "InputFile",
    "PdfError",
    "Provenance",
    "Report",
    "RollReport",
    "SignatureOutcome",
    "SignedFile",
    "StrangerReport",
    "build_report",
    "build_roll_report",
    "build_stranger_report",
    "check_report",
    "describe_chain",
    "describe_file",
    "find_browser",
    "identity_reports",
    "judge_signature",
    "print_to_pdf",
    "render_report",
    "render_roll",
    "report_digest",
    "roll_files",
    "sign_report",
]
