"""The details of a report, for experts: all that the verdict rests on."""

from collections.abc import Sequence
from html import escape

from agentmark.report.chain_section import chain_section
from agentmark.report.finding_section import control_section, finding_section, found_section, identity_fact
from agentmark.report.first_page import FILES_SHOWN, note_is_cut
from agentmark.report.growth_section import evidence_chart, rank_chart
from agentmark.report.numbers import count_text
from agentmark.report.outcomes import OUTCOME_MEANING
from agentmark.report.parts import Report, SegmentPart, StrangerReport, VerdictPart
from agentmark.report.pieces import SENTENCE_LEN, bullets, evidence, facts, paragraph, rounded, table, text
from agentmark.report.provenance import InputFile
from agentmark.report.signature import report_digest
from agentmark.report.step_table import step_section

SEGMENT_COLOURS = 6


def holders_details(report: Report, *, unfolded: bool) -> list[str]:
    return [
        "<h2 class=experts>Details, for experts</h2>",
        _in_one_sentence(report),
        control_section(report),
        found_section(report["verdict"]),
        finding_section(report),
        evidence_chart(report),
        rank_chart(report),
        _segments(report),
        _findings(report),
        chain_section(report),
        _outcomes(report["verdict"]),
        _ownership(report),
        step_section(report, unfolded=unfolded),
        "<p class=soft>The control uses a fresh random key, so its figures differ from run to run. All others repeat."
        "</p>",
    ]


def strangers_details(report: StrangerReport) -> list[str]:
    verdict, claim = report["verdict"], report["question"]["claim"]
    pairs = [("Identity", identity_fact(verdict))]
    if claim is not None:
        pairs.append(("Claim under test", text(claim)))
    pairs += [("Revoked", text(found["revoked_at"])) for found in verdict["found"] if found["revoked_at"] is not None]
    bound = (
        f"an identity is named only at a bound of {escape(verdict['threshold'])} or less. It covers logs made without "
        "this key and logs made with it for another identity."
    )
    pairs.append(("Threshold", bound))
    notes = [*report["findings"], *[f"passed over: {line}" for line in report["passed_over"]]]
    listed = bullets(text(note, SENTENCE_LEN) for note in notes)
    return [
        "<h2 class=experts>Details, for experts</h2>",
        _in_one_sentence(report),
        f"<h2>The finding</h2>{facts(pairs)}",
        f"<h2>What was not read</h2>{listed}" if notes else "",
        "<p class=soft>This report is for readers who do not hold the key: it gives the answer, and no evidence. What "
        "each record says for or against an identity would teach a forger what to write.</p>",
    ]


def _in_one_sentence(report: Report | StrangerReport) -> str:
    """The verdict as the command prints it and the data state it."""
    return f"<div class=panel><p>{text(report['verdict']['sentence'], 2 * SENTENCE_LEN)}</p></div>"


def _segments(report: Report) -> str:
    segments = report["segments"]
    if not segments:
        return ""
    owners = list(dict.fromkeys(part["payload"] for part in segments if part["payload"] is not None))
    total = sum(part["steps"] for part in segments)
    strip = "".join(
        f'<span class="{_segment_css(part, owners)}" style=width:{100 * part["steps"] / total:.2f}%></span>'
        for part in segments
    )
    heads = ("whose", "records", "from", "to", "steps", "bits", "bound")
    rows = [_segment_row(part, _segment_css(part, owners)) for part in segments]
    return (
        "<h2>Stretches of the log</h2>"
        "<p class=soft>The log, in its order, divided into stretches of one identity each, or of none that is proved. "
        "Every border and every identity tried is paid for.</p><div class=strip role=img aria-label="
        f'"{count_text(len(segments), "stretch", "stretches")}">{strip}</div>{table(heads, rows, numbers=(4, 5, 6))}'
    )


def _segment_css(part: SegmentPart, owners: Sequence[str | None]) -> str:
    return "none" if part["payload"] is None else f"c{owners.index(part['payload']) % SEGMENT_COLOURS}"


def _segment_row(part: SegmentPart, css: str) -> Sequence[str]:
    whose = "not attributed"
    if part["payload"] is not None:
        payload = f"0x{escape(part['payload'])}"
        whose = f"{text(part['identity'])} ({payload})" if part["identity"] is not None else payload
    return (
        f'<span class="swatch {css}"></span>{whose}',
        f"{part['first_step']:,} to {part['last_step']:,}",
        text(part["first_record"]),
        text(part["last_record"]),
        f"{part['steps']:,}",
        evidence(part["evidence_bits"]),
        escape(part["bound"]),
    )


def _findings(report: Report) -> str:
    findings = [text(finding, SENTENCE_LEN) for finding in report["findings"]]
    findings += [f"passed over: {text(line, SENTENCE_LEN)}" for line in report["passed_over"]]
    if findings:
        return f"<h2>Signs of tampering or damage</h2>{bullets(findings)}"
    return (
        "<h2>Signs of tampering or damage</h2><p>None: no altered context, no copies that disagree, no line that was "
        "cut short or broken.</p>"
    )


def _outcomes(verdict: VerdictPart) -> str:
    rows = [
        (escape(outcome), f"{count:,}", OUTCOME_MEANING.get(outcome, ""))
        for outcome, count in verdict["outcomes"].items()
    ]
    listed = table(("outcome", "records", "meaning"), rows, numbers=(1,)) if rows else "<p>There were no records.</p>"
    return f"<h2>What became of the records</h2>{listed}"


def _ownership(report: Report) -> str:
    ownership = report["ownership"]
    if report["verdict"]["used"] == 0:
        return ""
    said = "<p>Not computed: there is no candidate.</p>"
    if ownership is not None and ownership["evidence_bits"] is None:
        said = "<p>None: a step rules it out.</p>"
    elif ownership is not None:
        said = (
            f"<p><b>{evidence(ownership['evidence_bits'])} bits</b>, less {rounded(ownership['bits_paid'])} for the "
            f"identities that were tried: {escape(ownership['bound_in_words'])} ({escape(ownership['bound'])}).</p>"
        )
    return (
        "<h2>Was it made with this key at all?</h2>"
        f"{said}<p class=soft>A separate question, with evidence of its own that is not part of the verdict. It counts "
        "the full surprise of every choice, so it is often larger. But it holds only against logs made without this "
        "key: it cannot tell one identity of this key from another.</p>"
    )


def origin(report: Report | StrangerReport) -> str:
    """How the report was made; what had no room on the first page stands here in full."""
    keys = ", ".join(f"<code>{text(key)}</code>" for key in report["keys"]) or "-"
    versions = ", ".join(f"{escape(name)} {escape(version)}" for name, version in report["versions"].items())
    registry = report["question"]["registry_size"]
    pairs = [
        ("Made", escape(report["made_at"])),
        ("Versions", versions),
        ("Key ids", keys),
        ("Registry", "none" if registry is None else count_text(registry, "identity", "identities")),
        ("Noise rates allowed for", ", ".join(map(escape, report["question"]["noise_rates"]))),
        ("SHA-256 of this report's data", f"<code>{report_digest(report)}</code>"),
    ]
    note, files = report["note"], report["inputs"]
    parts = [f"<h2>How it was made</h2>{facts(pairs)}"]
    if len(files) > FILES_SHOWN:
        parts.append("<h2>Files</h2>" + table(("file", "bytes", "SHA-256"), map(_input_row, files), numbers=(1,)))
    if note is not None and note_is_cut(note):
        parts.append(f"<h2>The author's note</h2><p>{paragraph(note)}</p>")
    return "\n".join(parts)


def _input_row(file: InputFile) -> Sequence[str]:
    return (
        f"{escape(file['kind'])}: {text(file['path'], SENTENCE_LEN)}",
        "-" if file["size"] is None else f"{file['size']:,}",
        f"<code>{escape(file['sha256'] or 'not a regular file')}</code>",
    )
