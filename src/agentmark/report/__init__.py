"""The report: a verdict with all that it rests on, as data, as one page, and signed."""

from agentmark.report.chain_part import ChainPart, describe_chain
from agentmark.report.content import build_report, build_stranger_report
from agentmark.report.page import render_report
from agentmark.report.parts import Report, StrangerReport
from agentmark.report.provenance import InputFile, Provenance, describe_file
from agentmark.report.signature import check_report, report_digest, sign_report

__all__ = [
    "ChainPart",
    "InputFile",
    "Provenance",
    "Report",
    "StrangerReport",
    "build_report",
    "build_stranger_report",
    "check_report",
    "describe_chain",
    "describe_file",
    "render_report",
    "report_digest",
    "sign_report",
]
