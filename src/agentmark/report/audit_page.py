"""The report on a bulk audit: one page for all of it, and one for each identity, bounded in size whatever was judged.

As every page of ours: self-contained, no script, no network, everything that was read is escaped. The results file has
every row; a page shows the first of them, and says where the rest is.
"""

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from typing import TypedDict

from agentmark.core.canonical import canonical_bytes
from agentmark.report.numbers import count_text
from agentmark.report.outcomes import OUTCOME_MEANING, USED
from agentmark.report.pieces import NAME_LEN, SENTENCE_LEN, bullets, facts, table, text
from agentmark.report.provenance import InputFile
from agentmark.report.roll_charts import CountRow, count_rows
from agentmark.report.roll_content import FAMILYWISE, SLUG_LEN, CorrectionPart
from agentmark.report.roll_pieces import (
    FORGERY,
    MOST_FILES,
    command_block,
    file_list,
    files_table,
    heading,
    long_list,
    made_with,
    page,
    promise,
    revoked,
)
from agentmark.text import spelled_out_json
from agentmark.verify.verdict import Standing

AUDIT_VERSION = 1
INDEX, DATA, INPUTS = "index.html", "audit.json", "inputs.jsonl"
# Identities with a page of their own; rows on such a page; bars of the picture.
MOST_PAGES, MOST_ROWS, MOST_DRAWN = 1000, 1000, 12
SHORT_PAYLOAD = 16

_MEANINGS = {
    Standing.ATTRIBUTED: "an identity is named",
    Standing.TOO_SHORT: "too few usable steps to name anybody, whoever made it",
    Standing.NOT_ATTRIBUTED: "judged, and no identity explains enough of it",
    Standing.NOTHING_USABLE: "no record that these keys can read",
}
_COLOURS = {Standing.TOO_SHORT: "c4", Standing.NOT_ATTRIBUTED: "bad", Standing.NOTHING_USABLE: "c5"}


class AuditRowPart(TypedDict):
    """One group that an identity is named in, or (`pooled`) speaks for it in a pool."""

    name: str
    bound: str
    used: int
    set_aside: int
    mixed: bool
    pooled: bool
    files: list[str]


class AuditIdentityPart(TypedDict):
    """Somebody who is named. `page` is the file of their own page; empty beyond the first thousand."""

    name: str
    identity: str | None
    revoked_at: str | None
    payload: str
    payload_len: int
    rows: int
    pooled_rows: int
    steps: int
    bound: str
    page: str


class AuditFilesPart(TypedDict):
    """What was read. `manifest` is the file with a line for each input, `manifest_sha256` its digest."""

    files: int
    bytes: int
    records: int
    bad_records: int
    bad_files: list[str]
    notes: list[str]
    more_notes: int
    manifest: str
    manifest_sha256: str


class AuditReport(TypedDict):
    """All that the pages show, as data. The rows are in the results file, if there is one."""

    agentmark_audit: int
    made_at: str
    case_number: str | None
    author: str | None
    versions: dict[str, str]
    command: str
    keys: list[str]
    noise_rates: list[str]
    claim: str | None
    claim_taken_as: str | None
    registry_size: int | None
    by: str
    row_word: str
    sentence: str
    correction: CorrectionPart
    rows: int
    standings: dict[str, int]
    outcomes: dict[str, int]
    pooled: int
    pools: list[str]
    identities: list[AuditIdentityPart]
    read: AuditFilesPart
    inputs: list[InputFile]
    results: str | None


def page_name(number: int, identity: AuditIdentityPart, count: int) -> str:
    """identity-01-acme.html: the number makes it unique, on disks too that do not tell letters by their case."""
    slug = re.sub("[^a-z0-9]+", "-", (identity["identity"] or identity["payload"]).lower())[:SLUG_LEN].strip("-")
    return "-".join(["identity", f"{number:0{max(2, len(str(count)))}}", *([slug] if slug else [])]) + ".html"


def audit_files(report: AuditReport, rows: Sequence[Sequence[AuditRowPart]]) -> dict[str, str]:
    """File name -> content: index.html, audit.json, and the page of each identity. `rows` are those of each identity
    that has a page, in the order of the identities."""
    digest = sha256(canonical_bytes(report)).hexdigest()
    files = {INDEX: _overview(report, digest)}
    for identity, mine in zip(report["identities"], rows, strict=False):
        if identity["page"]:
            files[identity["page"]] = _identity_page(report, identity, mine, digest)
    # A file too may be looked at in a terminal.
    files[DATA] = spelled_out_json(json.dumps(report, ensure_ascii=False, indent=1)) + "\n"
    return files


# The whole audit -----------------------------------------------------------------------------------------------------


def _overview(report: AuditReport, digest: str) -> str:
    title = f"AgentMark audit of {count_text(report['rows'], report['row_word'])}"
    css = "yes" if report["identities"] else "no"
    return page(
        title,
        digest,
        [
            heading(title, report),
            f'<div class="panel verdict {css}"><p>{text(report["sentence"], SENTENCE_LEN)}</p></div>',
            _glance(report),
            f"<h2>What came out</h2>{_chart(report)}{_standings(report)}",
            _identities(report),
            _certainty(report),
            _not_proved(report),
            _records(report),
            _damage(report),
            _repeat(report, digest),
            files_table(report["inputs"][:MOST_FILES], where=INPUTS),
            _further_files(report),
        ],
    )


def _glance(report: AuditReport) -> str:
    read = report["read"]
    used = report["outcomes"].get(USED, 0)
    pairs = [
        ("How sure", promise(report["correction"], report["row_word"], report["rows"])),
        (
            "On what",
            f'<a href="#files">{count_text(read["files"], "file")}</a> ({read["bytes"]:,} bytes): '
            f"{count_text(read['records'], 'record')}, of which {used:,} could be used",
        ),
        ("Asked", _asked(report)),
        *made_with(report, report["noise_rates"]),
        ("All rows", _where(report)),
    ]
    return facts(pairs)


def _asked(report: AuditReport) -> str:
    word = report["row_word"]
    if report["claim"] is not None:
        return f"of each {word}: is it {text(report['claim'])}, taken as {escape(report['claim_taken_as'] or '')}?"
    known = report["registry_size"]
    among = "" if known is None else f" The registry holds {count_text(known, 'identity', 'identities')}."
    return f"of each {word}: whose is it?{among}"


def _where(report: AuditReport) -> str:
    if report["results"] is None:
        return "were not kept: this audit was asked for no results file"
    return f"<code>{text(report['results'], 2 * NAME_LEN)}</code> has a row for each {report['row_word']}"


def _chart(report: AuditReport) -> str:
    if not report["rows"]:
        return ""
    identities = report["identities"]
    rows = [
        CountRow(
            label=_short_name(identity),
            said=f"{identity['rows']:,}",
            first=identity["rows"],
            second=identity["pooled_rows"],
            css_class="r",
        )
        for identity in identities[:MOST_DRAWN]
    ]
    rest = identities[MOST_DRAWN:]
    if rest:
        first, second = sum(part["rows"] for part in rest), sum(part["pooled_rows"] for part in rest)
        label = count_text(len(rest), "more identity", "more identities")
        rows.append(CountRow(label=label, said=f"{first:,}", first=first, second=second, css_class="r"))
    for standing, css in _COLOURS.items():
        count = report["standings"].get(standing, 0)
        if count:
            rows.append(CountRow(label=standing.value, said=f"{count:,}", first=count, second=0, css_class=css))
    chart = count_rows(rows, report["rows"], title=f"{report['row_word']}s by identity, and those that name nobody")
    return f"<figure class=panel>{chart}</figure>"


def _standings(report: AuditReport) -> str:
    rows = [
        (standing.value, f"{report['standings'].get(standing, 0):,}", meaning)
        for standing, meaning in _MEANINGS.items()
    ]
    return table(("standing", f"{report['row_word']}s", "meaning"), rows, numbers=(1,))


def _identities(report: AuditReport) -> str:
    identities = report["identities"]
    if not identities:
        return ""
    heads = ("identity", "payload", f"{report['row_word']}s", "in a group", "steps used", "largest bound")
    rows = [
        (
            f"{_link(identity)}{revoked(identity['revoked_at'])}",
            _payload(identity),
            f"{identity['rows']:,}",
            f"{identity['pooled_rows']:,}",
            f"{identity['steps']:,}",
            escape(identity["bound"]),
        )
        for identity in identities[:MOST_PAGES]
    ]
    left = len(identities) - len(rows)
    further = count_text(left, "further identity has", "further identities have")
    said = f"<p class=soft>{further} no page here. <code>{DATA}</code> lists them.</p>" if left else ""
    return f"<h2>The identities</h2>{table(heads, rows, numbers=(2, 3, 4, 5))}{said}"


def _certainty(report: AuditReport) -> str:
    correction, word = report["correction"], report["row_word"]
    questions = count_text(correction["questions"], "question")
    if correction["kind"] == FAMILYWISE:
        meaning = (
            f"Many {word}s are many questions, and luck had a try at each of them. {questions} were asked, and every "
            "name had to pay for all of them: the number is part of every bound here. So the promise is about all "
            f"names together, and does not weaken with the number of {word}s."
        )
    else:
        meaning = (
            f"{questions} were asked. This is a promise about the list of names, not about each: among very many "
            f"{word}s it names more than the stricter promise (that no name at all is wrong) could, and accepts that a "
            f"few may be wrong. The bound beside a {word} is its own, before the number of questions is counted; a "
            "name you must rely on alone should be judged alone."
        )
    return (
        f"<h2>How sure is this?</h2><p><b>{promise(correction, word, report['rows'])}</b></p><p>{meaning}</p>"
        f"<p class=soft>The rule in use: {text(correction['explained'], SENTENCE_LEN)}.</p>"
    )


def _not_proved(report: AuditReport) -> str:
    word = report["row_word"]
    points = [FORGERY]
    points += [text(sentence, SENTENCE_LEN) for sentence in report["pools"][:MOST_DRAWN]]
    points.append(
        f"A {word} that names nobody is not shown to be anybody else's. It may be too short, too damaged, unmarked, or "
        "made with another key."
    )
    return f"<h2>What it does not prove</h2>{bullets(points)}"


def _records(report: AuditReport) -> str:
    outcomes = report["outcomes"]
    order = sorted(outcomes, key=lambda outcome: (outcome != USED, -outcomes[outcome], outcome))
    rows = [(escape(outcome), f"{outcomes[outcome]:,}", OUTCOME_MEANING.get(outcome, "")) for outcome in order]
    if not rows:
        return ""
    return f"<h2>What became of the records</h2>{table(('outcome', 'records', 'meaning'), rows, numbers=(1,))}"


def _damage(report: AuditReport) -> str:
    read = report["read"]
    parts = []
    if read["bad_files"]:
        listed = [text(line, SENTENCE_LEN) for line in read["bad_files"]]
        parts.append(
            f"<h2>Files that were skipped</h2><p>{count_text(len(listed), 'file')} could not be read, and speak for "
            f"nobody here.</p>{long_list(listed, 'file', where=DATA)}"
        )
    if read["notes"]:
        listed = [text(line, SENTENCE_LEN) for line in read["notes"]]
        more = f"<p class=soft>{count_text(read['more_notes'], 'further note')}.</p>" if read["more_notes"] else ""
        parts.append(
            f"<h2>What was passed over</h2><p>{count_text(read['bad_records'], 'record')} broken or cut short.</p>"
            f"{long_list(listed, 'note', where=DATA)}{more}"
        )
    return "".join(parts) or "<h2>Files that were skipped</h2><p>None: every file was read to its end.</p>"


def _repeat(report: AuditReport, digest: str) -> str:
    read = report["read"]
    return (
        "<h2>How to repeat and check it</h2>"
        f"<h3>That this is what the files say</h3>{command_block(report['command'])}"
        "<p class=soft>This takes the secret key, so that only its holder, and whom he trusts with it, can do it.</p>"
        "<h3>That the files are those that were read</h3>"
        f"<p><code>{escape(read['manifest'])}</code> beside this page has a line for each file: its name, size, "
        f"SHA-256 and how many records it held. The SHA-256 of that list is <code>{escape(read['manifest_sha256'])}"
        f"</code>.</p><h3>That this page is the one that was made</h3><p>The SHA-256 of its data "
        f"(<code>{DATA}</code>, as canonical JSON) is <code>{digest}</code>.</p>"
    )


def _further_files(report: AuditReport) -> str:
    left = report["read"]["files"] - len(report["inputs"][:MOST_FILES])
    if left <= 0:
        return ""
    return f"<p class=soft>{count_text(left, 'further file')} in <code>{INPUTS}</code>.</p>"


# One identity --------------------------------------------------------------------------------------------------------


def _identity_page(report: AuditReport, identity: AuditIdentityPart, rows: Sequence[AuditRowPart], digest: str) -> str:
    word = report["row_word"]
    title = f"AgentMark audit: {_short_name(identity)}"
    judged = count_text(report["rows"], word)
    pooled = (
        f"; {count_text(identity['pooled_rows'], f'further {word}')} too short alone, and speak for it together"
        if identity["pooled_rows"]
        else ""
    )
    pairs = [
        ("Payload", _payload(identity)),
        ("Steps used", f"{identity['steps']:,}"),
        ("Largest bound", escape(identity["bound"])),
        ("How sure", promise(report["correction"], word, report["rows"])),
        *made_with(report, report["noise_rates"]),
        ("All rows", _where(report)),
        ("The whole audit", f'<a href="{INDEX}">{judged}</a>'),
    ]
    return page(
        title,
        digest,
        [
            heading("AgentMark audit: one identity", report),
            f'<div class="panel verdict yes"><p>{text(identity["name"], SENTENCE_LEN)}{revoked(identity["revoked_at"])}'
            f"</p><p>Named in {identity['rows']:,} of {judged}{pooled}.</p></div>",
            facts(pairs),
            _row_table(report, identity, rows),
            f"<h2>What it does not prove</h2>{bullets([FORGERY])}",
        ],
    )


def _row_table(report: AuditReport, identity: AuditIdentityPart, rows: Sequence[AuditRowPart]) -> str:
    word = report["row_word"]
    cells = [
        (
            f"{number:,}",
            text(row["name"]) + ("<br><span class=soft>holds steps of others too</span>" if row["mixed"] else ""),
            "in a group" if row["pooled"] else escape(row["bound"]),
            f"{row['used']:,}",
            f"{row['set_aside']:,}",
            file_list(row["files"]),
        )
        for number, row in enumerate(rows, start=1)
    ]
    heads = ("#", word, "bound", "steps used", "set aside", "files")
    left = identity["rows"] + identity["pooled_rows"] - len(rows)
    further = count_text(left, f"further {word} is", f"further {word}s are")
    more = f"<p class=soft>{further} not listed here: {_where(report)}.</p>" if left > 0 else ""
    return f"<h2>The {word}s</h2>{table(heads, cells, numbers=(0, 2, 3, 4), css='roll')}{more}"


def _link(identity: AuditIdentityPart) -> str:
    """The page's name is made of small letters, digits and hyphens alone."""
    name = text(_short_name(identity))
    return f'<a href="{escape(identity["page"])}">{name}</a>' if identity["page"] else name


def _short_name(identity: AuditIdentityPart) -> str:
    if identity["payload_len"] == 0:
        return "the holder of this key"
    return identity["identity"] if identity["identity"] is not None else f"0x{identity['payload']}"


def _payload(identity: AuditIdentityPart) -> str:
    # A short one stays in one piece; a long one has to break.
    css = " class=rate" if len(identity["payload"]) <= SHORT_PAYLOAD else ""
    return f"<code{css}>0x{escape(identity['payload'])}</code>"
