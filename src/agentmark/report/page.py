"""The report as one self-contained HTML page: no script, no network. Everything that was read is escaped."""

from typing import cast

from agentmark.report.checking import checking_section
from agentmark.report.details import holders_details, origin, strangers_details
from agentmark.report.first_page import first_page
from agentmark.report.html import opening
from agentmark.report.page_data import SignedFile
from agentmark.report.parts import Report, StrangerReport
from agentmark.report.signature import report_digest
from agentmark.report.style import STYLE, on_every_sheet


def render_report(report: Report | StrangerReport, *, signed: SignedFile | None = None, unfolded: bool = False) -> str:
    """The whole page: the key holder's, or (if the report is for strangers) the one that shows the answer alone.

    `signed` is the signed file that goes with it. `unfolded` shows what a reader could unfold, for paper.
    """
    answer = "attributed" if report["verdict"]["accepted"] else "not attributed"
    parts = [
        opening(f"AgentMark report: {answer}", STYLE + on_every_sheet(report_digest(report))),
        first_page(report),
        checking_section(report, signed, on_paper=unfolded),
        *(
            strangers_details(cast(StrangerReport, report))
            if "view" in report
            else holders_details(report, unfolded=unfolded)
        ),
        origin(report),
        "</html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"
