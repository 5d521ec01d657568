"""The data of a report inside its own page, as a link that saves it: in public mode the one file is enough to check it.

Such a link loads nothing and runs nothing. Whoever reads the data back compares the whole page with what they come to
(`cli/signing.py`): neither can say anything that the other does not.
"""

import json
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any

from agentmark.core.errors import AgentMarkError
from agentmark.core.strict_json import StrictJsonError, parse_json
from agentmark.report.parts import Report

_LINK = re.compile(
    r'<a download="report\.json" data-signed="(?P<signed>[A-Za-z0-9+/]*=*)" '
    r'href="data:application/json;base64,(?P<data>[A-Za-z0-9+/]+=*)">'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedFile:
    """The signed file that goes with a page: its name, and the key that signed it."""

    name: str
    public_key: str


class PageDataError(AgentMarkError, ValueError):
    """A page from which no report can be read back."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"page: {fault}")
        self.fault = fault


def data_link(report: Report, signed: SignedFile | None, words: str) -> str:
    """A link with these words that saves the report's data."""
    # Whoever makes the page anew has to know which signed file it names. File names need not print.
    named = "" if signed is None else _packed([signed.name, signed.public_key])
    href = f"data:application/json;base64,{_packed(report)}"
    return f'<a download="report.json" data-signed="{named}" href="{href}">{words}</a>'


def page_data(page: str) -> tuple[Any, SignedFile | None]:
    """The report in a page, as it was read, and the signed file that the page names."""
    found = list(_LINK.finditer(page))
    if len(found) != 1:
        raise PageDataError(
            "holds no data of a report: only pages of verdicts by a disclosure do. Check the signed file, or the "
            "report's JSON"
        )
    try:
        report = parse_json(b64decode(found[0]["data"], validate=True))
        signed = parse_json(b64decode(found[0]["signed"], validate=True)) if found[0]["signed"] else None
    except (ValueError, StrictJsonError):
        raise PageDataError("the data of the report in it are damaged; ask its author for the file again") from None
    if signed is None:
        return report, None
    if not isinstance(signed, list) or len(signed) != 2 or not all(isinstance(word, str) for word in signed):
        raise PageDataError("the name of its signed file is damaged; ask its author for the file again")
    return report, SignedFile(name=signed[0], public_key=signed[1])


def _packed(content: Any) -> str:
    return b64encode(json.dumps(content, separators=(",", ":")).encode("ascii")).decode("ascii")
