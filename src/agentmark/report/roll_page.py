"""The report on many sessions as pages: an overview, and one for each identity that speaks of nobody else.

As every page of ours: self-contained, no script, no network, everything that was read is escaped.
"""

from collections.abc import Sequence
from html import escape

from agentmark.report.numbers import count_text
from agentmark.report.outcomes import OUTCOME_MEANING, USED
from agentmark.report.page_data import SignedFile
from agentmark.report.pieces import SENTENCE_LEN, bullets, facts, paragraph, table, text
from agentmark.report.roll_charts import CountRow, count_rows
from agentmark.report.roll_content import FAMILYWISE, IdentityPart, PoolPart, RollReport, RowPart
from agentmark.report.roll_identity import identity_reports
from agentmark.report.roll_identity_page import render_identity
from agentmark.report.roll_pieces import (
    DATA,
    FORGERY,
    MOST_ROWS,
    checking,
    command_block,
    file_list,
    files_table,
    findings_table,
    heading,
    long_list,
    made_with,
    more,
    page,
    promise,
    revoked,
)
from agentmark.report.signature import report_digest
from agentmark.text import shell_word
from agentmark.verify.verdict import Standing

INDEX = "index.html"
# Identities beyond these are in the data alone; the picture shows fewer.
MOST_IDENTITIES, MOST_DRAWN = 200, 12
NOTE_LEN = 4000
SHORT_PAYLOAD = 16
# A longer command than this is hundreds of files.
WHOLE_COMMAND = 1500

_STANDINGS = {
    Standing.ATTRIBUTED: ("yes", "names an identity"),
    Standing.TOO_SHORT: ("maybe", "too few usable steps to name anybody, whoever made it"),
    Standing.NOT_ATTRIBUTED: ("no", "judged, and no identity explains enough of it"),
    Standing.NOTHING_USABLE: ("none", "holds no record that can be read with this key"),
}


def render_roll(report: RollReport, *, signed: SignedFile | None = None) -> dict[str, str]:
    """File name -> page: the overview (index.html), and the page of each identity.

    `signed` is the signed file of the whole report, if there is one. Then the extract of each identity is taken to lie
    signed by the same key beside its page (`signed_name`).
    """
    pages = {INDEX: render_overview(report, signed=signed)}
    for part, extract in zip(report["identities"], identity_reports(report), strict=True):
        own = None if signed is None else SignedFile(name=signed_name(part["page"]), public_key=signed.public_key)
        pages[part["page"]] = render_identity(extract, signed=own)
    return pages


def signed_name(name: str) -> str:
    """What the signed file is called that goes with a page or with data: identity-01-acme.signed.json."""
    return f"{name.rsplit('.', maxsplit=1)[0]}.signed.json"


def render_overview(report: RollReport, *, signed: SignedFile | None = None) -> str:
    """The overview. It names everybody who is named; the pages of identities do not."""
    digest = report_digest(report)
    title = f"AgentMark report on {count_text(report['summary']['rows'], report['by'])}"
    return page(
        title,
        digest,
        [
            heading(title, report),
            _outcome_panel(report),
            _glance(report),
            f"<h2>What came out</h2>{_outcome_chart(report)}",
            _identity_table(report),
            _certainty(report),
            _not_proved(report),
            _row_table(report),
            _record_table(report),
            _damage(report),
            checking(report, _command(report), digest, signed),
            files_table(report["inputs"]),
        ],
    )


def _outcome_panel(report: RollReport) -> str:
    css = "yes" if report["identities"] else "no"
    lines = "".join(f"<p>{line}</p>" for line in _plain_words(report))
    return f'<div class="panel verdict {css}">{lines}</div>'


def _plain_words(report: RollReport) -> list[str]:
    """What came out, as one would say it."""
    summary, word = report["summary"], report["by"]
    if not summary["rows"]:
        return [f"There was no {word} to judge."]
    counts = summary["standings"]
    said = []
    named = counts.get(Standing.ATTRIBUTED, 0)
    if named:
        whom = _count(_named_identities(report), "identity", "identities")
        said.append(f"<b>{named:,}</b> {_are(named)} attributed to {whom}")
    short, pooled = counts.get(Standing.TOO_SHORT, 0), summary["pooled"]
    if short:
        together = ""
        if pooled:
            whom = _count(len(report["pools"]), "identity", "identities")
            together = f", and {pooled:,} of these {'speaks' if pooled == 1 else 'speak'} for {whom} together"
        said.append(f"<b>{short:,}</b> {_are(short)} too short to name anybody alone{together}")
    refused = counts.get(Standing.NOT_ATTRIBUTED, 0)
    if refused:
        said.append(f"<b>{refused:,}</b> {_are(refused)} explained by no identity")
    unusable = counts.get(Standing.NOTHING_USABLE, 0)
    if unusable:
        said.append(f"<b>{unusable:,}</b> {'holds' if unusable == 1 else 'hold'} nothing that this key can read")
    judged = f"{count_text(summary['rows'], word)} {'was' if summary['rows'] == 1 else 'were'} judged."
    if not report["identities"]:
        judged += " Nobody is named."
    return [judged, f"{'; '.join(said)}."]


def _named_identities(report: RollReport) -> int:
    return sum(bool(part["rows"]) for part in report["identities"])


def _glance(report: RollReport) -> str:
    pairs = [
        ("Who", _who_list(report)),
        ("How sure", promise(report["correction"], report["by"], report["summary"]["rows"])),
        ("On what", _on_what(report)),
        ("Asked", _asked(report)),
        *made_with(report, report["question"]["noise_rates"]),
        ("Data", f"<code>{DATA}</code> has all that these pages show, and what they leave out"),
    ]
    if report["note"] is not None:
        pairs.append(("Note of the author", paragraph(report["note"], NOTE_LEN)))
    return facts(pairs)


def _who_list(report: RollReport) -> str:
    if not report["identities"]:
        return "nobody: no identity is named in this report"
    listed = [f"{_link(part)} ({_how_many(part)})" for part in report["identities"][:MOST_DRAWN]]
    left = len(report["identities"]) - len(listed)
    return "<br>".join(listed) + (f"<br>and {count_text(left, 'more identity', 'more identities')}" if left else "")


def _how_many(part: IdentityPart) -> str:
    said = f"{len(part['rows']):,}"
    return f"{said}, and {len(part['pooled_rows']):,} in a group" if part["pooled_rows"] else said


def _on_what(report: RollReport) -> str:
    summary, logs = report["summary"], [file for file in report["inputs"] if file["kind"] == "log"]
    sizes = [file["size"] for file in logs]
    size = "" if None in sizes else f" ({sum([size or 0 for size in sizes]):,} bytes)"
    used = summary["outcomes"].get(USED, 0)
    files = f'<a href="#files">{count_text(len(logs), "file")}</a>{size}, each with its SHA-256 below; ' if logs else ""
    records = f"{count_text(summary['records'], 'record')}, of which {used:,} could be used and "
    return f"{files}{records}{summary['records'] - used:,} were set aside"


def _asked(report: RollReport) -> str:
    question, word = report["question"], report["by"]
    if question["claim"] is not None:
        taken_as = "" if question["claim_taken_as"] is None else f", taken as {escape(question['claim_taken_as'])}"
        return f"of each {word}: is it {text(question['claim'])}{taken_as}?"
    known = question["registry_size"]
    among = "" if known is None else f" The registry holds {count_text(known, 'identity', 'identities')}."
    return f"of each {word}: whose is it?{among}"


def _outcome_chart(report: RollReport) -> str:
    """How many are whose, and how many are nobody's and why, on one scale."""
    summary, identities = report["summary"], report["identities"]
    if not summary["rows"]:
        return ""
    rows = [
        CountRow(
            label=part["identity"] or f"payload 0x{part['payload']}",
            said=_how_many(part),
            first=len(part["rows"]),
            second=len(part["pooled_rows"]),
            css_class="r",
        )
        for part in identities[:MOST_DRAWN]
    ]
    rest = identities[MOST_DRAWN:]
    if rest:
        label, first = (
            count_text(len(rest), "more identity", "more identities"),
            sum(len(part["rows"]) for part in rest),
        )
        second = sum(len(part["pooled_rows"]) for part in rest)
        rows.append(CountRow(label=label, said=f"{first + second:,}", first=first, second=second, css_class="r"))
    pooled = summary["pooled"]
    short = summary["standings"].get(Standing.TOO_SHORT, 0) - pooled
    colours = {Standing.TOO_SHORT: "c4", Standing.NOT_ATTRIBUTED: "bad", Standing.NOTHING_USABLE: "c5"}
    for standing, css in colours.items():
        count = short if standing is Standing.TOO_SHORT else summary["standings"].get(standing, 0)
        if count:
            label = "too short, and in no group" if standing is Standing.TOO_SHORT and pooled else standing.value
            rows.append(CountRow(label=label, said=f"{count:,}", first=count, second=0, css_class=css))
    legend = ['<span class="key block r">named by itself</span>'] if identities else []
    if pooled:
        legend.append('<span class="key block together r">too short alone, speaks for it in a group</span>')
    chart = count_rows(rows, summary["rows"], title=f"{report['by']}s by identity, and those that name nobody")
    keys = f"<p class=legend>{''.join(legend)}</p>" if legend else ""
    return f"<figure class=panel>{chart}{keys}</figure>"


def _identity_table(report: RollReport) -> str:
    identities, word = report["identities"], report["by"]
    if not identities:
        return ""
    heads = ("identity", "payload", f"{word}s", "in a group", "steps used", "largest bound")
    rows = [
        (
            f"{_link(part)}{revoked(part['revoked_at'])}",
            _payload(part),
            f"{len(part['rows']):,}",
            f"{len(part['pooled_rows']):,}",
            f"{part['steps']:,}",
            escape(part["bound"]),
        )
        for part in identities[:MOST_IDENTITIES]
    ]
    return (
        f"<h2>The identities</h2>{table(heads, rows, numbers=(2, 3, 4, 5))}"
        f"{more(len(identities) - len(rows), 'identity', 'identities')}"
        "<p class=soft>This overview names everybody who was found. The page of an identity speaks of no other, and "
        "may be handed to them by itself.</p>"
    )


def _certainty(report: RollReport) -> str:
    correction, word = report["correction"], report["by"]
    if correction["kind"] == FAMILYWISE:
        price = f"the number of questions ({correction['questions']:,}) is part of every bound in this report"
        meaning = (
            "<p>A bound says how often pure chance would do as well: a log made without this key, or with it for "
            f"another identity, would have to agree with the key by luck at step after step. Since many {word}s were "
            f"judged, luck had many tries, and each had to pay for all of them: {price}. So the promise is about all "
            f"names together, and does not weaken with the number of {word}s.</p>"
        )
    else:
        meaning = (
            f"<p>This is a promise about the list of names, not about each: among very many {word}s it names more than "
            "the stricter promise (that no name at all is wrong) could, and accepts that a few of them may be wrong. "
            f"The bound beside a {word} is that {word}'s own, before the number of questions "
            f"({correction['questions']:,}) is counted; a name you must rely on alone should be judged alone.</p>"
        )
    return (
        "<h2>How sure is this?</h2>"
        f"<p><b>{promise(correction, word, report['summary']['rows'])}</b></p>{meaning}"
        f"<p class=soft>The rule in use: {text(correction['explained'], SENTENCE_LEN)}.</p>"
    )


def _not_proved(report: RollReport) -> str:
    word, summary = report["by"], report["summary"]
    used = summary["outcomes"].get(USED, 0)
    points = [FORGERY]
    if summary["records"] > used:
        points.append(
            f"{summary['records'] - used:,} of {count_text(summary['records'], 'record')} were set aside and speak for "
            f"nobody. Each {word} below says how many of its own, and the table of records says why."
        )
    if report["pools"]:
        points.append(
            f"The {word}s that speak for an identity in a group are too short alone. The claim is that <em>at least "
            f"one</em> of the short {word}s is of this identity; which of them, nobody has shown."
        )
    mixed = sum(len(row["named"]) > 1 for row in report["rows"])
    if mixed:
        verb = "holds" if mixed == 1 else "hold"
        points.append(
            f"{count_text(mixed, word)} {verb} steps of more than one identity. Not every step in such a {word} is of "
            "the identity that is named: its page says how many are at the least."
        )
    points.append(
        f"A {word} that names nobody is not shown to be anybody else's. It may be too short, too damaged, unmarked, or "
        "made with another key."
    )
    return f"<h2>What it does not prove</h2>{bullets(points)}"


def _row_table(report: RollReport) -> str:
    word, rows = report["by"], report["rows"]
    if not rows:
        return ""
    identities = {part["number"]: part for part in report["identities"]}
    pools = {pool["number"]: pool for pool in report["pools"]}
    with_files = word == "session"
    heads = ("#", word, "standing", "identity", "bound", "steps used", "set aside", *(["files"] if with_files else []))
    cells = [_row_cells(row, identities, pools, with_files=with_files) for row in rows[:MOST_ROWS]]
    standings = "; ".join(
        f"<b class={css}>{standing.value}</b>: {meaning}"
        for standing, (css, meaning) in _STANDINGS.items()
        if standing in report["summary"]["standings"]
    )
    return (
        f"<h2>All {word}s</h2><p class=soft>{standings}.</p>"
        f"{table(heads, cells, numbers=(0, 4, 5, 6), css='roll')}{more(len(rows) - len(cells), word)}"
    )


def _row_cells(
    row: RowPart, identities: dict[int, IdentityPart], pools: dict[int, PoolPart], *, with_files: bool
) -> Sequence[str]:
    css, _ = _STANDINGS[Standing(row["standing"])]
    named = [_link(identities[part["identity"]]) for part in row["named"]]
    if row["pool"] is not None:
        named.append(f"in a group: {_link(identities[pools[row['pool']]['identity']])}")
    files = [file_list(row["files"])] if with_files else []
    return (
        f"{row['number']:,}",
        text(row["name"]),
        f"<b class={css}>{escape(row['standing'])}</b>",
        "<br>".join(named) or "-",
        "<br>".join(escape(part["bound"]) for part in row["named"]) or "-",
        f"{row['used']:,}",
        f"{row['set_aside']:,}",
        *files,
    )


def _record_table(report: RollReport) -> str:
    if not report["summary"]["records"]:
        return ""
    rows = [
        (escape(outcome), f"{count:,}", OUTCOME_MEANING.get(outcome, ""))
        for outcome, count in _by_outcome(report).items()
    ]
    return f"<h2>What became of the records</h2>{table(('outcome', 'records', 'meaning'), rows, numbers=(1,))}"


def _by_outcome(report: RollReport) -> dict[str, int]:
    """Used ones first, then those that were set aside, the commonest first."""
    outcomes = report["summary"]["outcomes"]
    order = sorted(outcomes, key=lambda outcome: (outcome != USED, -outcomes[outcome], outcome))
    return {outcome: outcomes[outcome] for outcome in order}


def _damage(report: RollReport) -> str:
    word = report["by"]
    found, cut_short = [], []
    for row in report["rows"]:
        notes = list(row["tampering"])
        if row["shared_contexts"]:
            notes.append(f"copies of {count_text(row['shared_contexts'], 'record')} stand under another {word} as well")
        found += [(row["number"], row["name"], note) for note in notes]
        cut_short += [(row["number"], row["name"], row["work_note"])] if row["work_note"] is not None else []
    of_files = [text(finding, SENTENCE_LEN) for finding in report["findings"]]
    listed = (long_list(of_files, "finding") if of_files else "") + findings_table(found, word)
    parts = [f"<h2>Signs of tampering or damage</h2>{listed or '<p>None was found.</p>'}"]
    if report["passed_over"]:
        over = [text(line, SENTENCE_LEN) for line in report["passed_over"]]
        parts.append(f"<h2>What was passed over</h2>{long_list(over, 'line')}")
    if cut_short:
        parts.append(f"<h2>Where the work limit ended the search</h2>{findings_table(cut_short, word)}")
    return "".join(parts)


def _command(report: RollReport) -> str:
    """As it is, or, if that is hundreds of files, with a folder in their place."""
    if len(report["command"]) <= WHOLE_COMMAND:
        return command_block(report["command"])
    words = ["agentmark verify FOLDER", *[shell_word(word) for option in report["options"] for word in option]]
    return (
        f"{command_block(' '.join(words))}<p class=soft>FOLDER holds the files that are listed below. The command as "
        f"it was given, with every file, is in <code>{DATA}</code>.</p>"
    )


def _link(part: IdentityPart) -> str:
    """The page's name is made of small letters, digits and hyphens alone."""
    name = text(part["identity"]) if part["identity"] is not None else f"0x{escape(part['payload'])}"
    if part["payload_len"] == 0:
        name = "the holder of this key"
    return f'<a href="{escape(part["page"])}">{name}</a>'


def _payload(part: IdentityPart) -> str:
    # A short one stays in one piece; a long one has to break.
    css = " class=rate" if len(part["payload"]) <= SHORT_PAYLOAD else ""
    return f"<code{css}>0x{escape(part['payload'])}</code>"


def _count(count: int, one: str, several: str) -> str:
    return f"<b>{count:,}</b> {one if count == 1 else several}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
