"""The report: a verdict with all that it rests on, as data, as one page, and signed."""

from agentmark.report.chain_part import ChainPart, describe_chain
from agentmark.report.checking import SignedFile
from agentmark.report.content import build_report, build_stranger_report
from agentmark.report.page import render_report
from agentmark.report.parts import Report, StrangerReport
from agentmark.report.pdf import PdfError, find_browser, print_to_pdf
from agentmark.report.provenance import InputFile, Provenance, describe_file
from agentmark.report.roll_content import IdentityReport, RollReport, build_roll_report
from agentmark.report.roll_files import roll_files
from agentmark.report.roll_identity import identity_reports
from agentmark.report.roll_page import render_roll
from agentmark.report.signature import SignatureOutcome, check_report, judge_signature, report_digest, sign_report

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
