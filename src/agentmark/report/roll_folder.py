"""All files of a report on many sessions: the pages, the data of each, and the signed data."""

import json
from typing import Any

from agentmark.keys.signing import SigningKey
from agentmark.report.page_data import SignedFile
from agentmark.report.roll_content import RollReport
from agentmark.report.roll_identity import identity_reports
from agentmark.report.roll_page import render_roll, signed_name
from agentmark.report.roll_pieces import DATA
from agentmark.report.signature import sign_report
from agentmark.text import spelled_out_json


def roll_files(report: RollReport, *, signing_key: SigningKey | None = None) -> dict[str, str]:
    """File name -> content: index.html, roll.json, and for each identity a page and its data, which name nobody else.

    With a key, each of the data has a signed file beside it.
    """
    signed = None if signing_key is None else SignedFile(name=signed_name(DATA), public_key=signing_key.public_key)
    files = render_roll(report, signed=signed)
    data: dict[str, Any] = {DATA: report}
    for part, extract in zip(report["identities"], identity_reports(report), strict=True):
        data[f"{part['page'].removesuffix('.html')}.json"] = extract
    for name, content in data.items():
        files[name] = _as_json(content)
        if signing_key is not None:
            files[signed_name(name)] = _as_json(sign_report(content, signing_key))
    return files


def _as_json(content: Any) -> str:
    # A file too may be looked at in a terminal.
    return spelled_out_json(json.dumps(content, ensure_ascii=False, indent=1)) + "\n"
