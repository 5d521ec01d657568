"""The report on many sessions as pages: an overview, and one for each identity that speaks of nobody else.

As every page of ours: self-contained, no script, no network, everything that was read is escaped.
"""

from collections.abc import Iterable, Sequence
from html import escape

from agentmark.report.content import InputFile
from agentmark.report.html import isolated, opening
from agentmark.report.numbers import count_text, rate_in_words
from agentmark.report.roll_charts import ROLL_CHART_STYLE, CountRow, count_rows, evidence_bars
from agentmark.report.roll_content import (
    FAMILYWISE,
    CorrectionPart,
    IdentityPart,
    IdentityPoolPart,
    IdentityReport,
    IdentityRowPart,
    PoolPart,
    RollReport,
    RowPart,
)
from agentmark.report.roll_identity import identity_reports
from agentmark.report.signature import report_digest
from agentmark.report.style import STYLE
from agentmark.text import JOINERS, spelled_out
from agentmark.verify.intake import Outcome
from agentmark.verify.verdict import Standing

INDEX = "index.html"
DATA = "roll.json"
# Beyond these, a page says how many there are and where: a browser has to show it, and somebody has to print it.
MOST_ROWS, MOST_IDENTITIES, MOST_FILES, MOST_FINDINGS, MOST_BARS = 500, 200, 500, 100, 12
FILES_IN_ROW = 2
NAME_LEN, SENTENCE_LEN, NOTE_LEN = 48, 450, 4000

ROLL_STYLE = (
    STYLE
    + ROLL_CHART_STYLE
    + """
a { color:var(--f); } main > h2 { scroll-margin-top:1rem; }
.verdict p + p { margin-top:.5rem; font-size:1.05rem; }
.note { white-space:pre-wrap; } td.name { min-width:9rem; } .roll { font-size:.88rem; } .roll td b { font-weight:600; }
.wide { fill:inherit; }
@media (max-width: 560px) { .wide { display:none; } }
@media print { a { color:inherit; text-decoration:none; } thead { display:table-header-group; } }
"""
)

_STANDINGS = {
    Standing.ATTRIBUTED: ("yes", "names an identity"),
    Standing.TOO_SHORT: ("maybe", "too few usable steps to name anybody, whoever made it"),
    Standing.NOT_ATTRIBUTED: ("no", "long enough, and no identity explains it"),
    Standing.NOTHING_USABLE: ("none", "holds no record that can be read with this key"),
}


def render_roll(report: RollReport) -> dict[str, str]:
    """File name -> page: the overview (index.html), and the page of each identity."""
    pages = {INDEX: _overview(report)}
    for part, extract in zip(report["identities"], identity_reports(report), strict=True):
        pages[part["page"]] = _identity_page(extract)
    return pages


# The overview ---------------------------------------------------------------------------------------------------------


def _overview(report: RollReport) -> str:
    summary, word = report["summary"], report["by"]
    return _page(
        f"AgentMark report on {count_text(summary['rows'], word)}",
        [
            f"<h1>AgentMark report on {count_text(summary['rows'], word)}, {escape(report['made_at'])}</h1>",
            _outcome_panel(report),
            _glance(report),
            "<h2>What came out</h2>",
            _outcome_chart(report),
            _identity_table(report),
            _certainty(report),
            _not_proved(report),
            _row_table(report),
            _record_table(report),
            _damage(report),
            _repeat(report),
            _files(report["inputs"], word),
        ],
    )


def _outcome_panel(report: RollReport) -> str:
    css = "yes" if report["identities"] else "no"
    first, *more = _plain_words(report)
    return f'<div class="panel verdict {css}"><p>{first}</p>{"".join(f"<p>{line}</p>" for line in more)}</div>'


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
        said.append(f"<b>{refused:,}</b> {_are(refused)} long enough, but no identity explains {_them(refused)}")
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
    facts: list[tuple[str, str]] = [
        ("Who", _who_list(report)),
        ("How sure", _promise(report["correction"], report["by"], report["summary"]["rows"])),
        ("On what", _on_what(report)),
        ("Asked", _asked(report)),
        ("Key ids", ", ".join(f"<code>{_text(key)}</code>" for key in report["keys"]) or "-"),
    ]
    facts += _case(report["case_number"], report["author"])
    if report["note"] is not None:
        facts.append(("Note of the author", f"<span class=note>{_lines(report['note'])}</span>"))
    return _facts(facts)


def _who_list(report: RollReport) -> str:
    if not report["identities"]:
        return "nobody: no identity is named in this report"
    listed = [f"{_link(part)} ({_how_many(part)})" for part in report["identities"][:MOST_BARS]]
    more = len(report["identities"]) - len(listed)
    return "<br>".join(listed) + (f"<br>and {count_text(more, 'more identity', 'more identities')}" if more else "")


def _how_many(part: IdentityPart) -> str:
    said = f"{len(part['rows']):,}"
    return f"{said}, and {len(part['pooled_rows']):,} in a group" if part["pooled_rows"] else said


def _on_what(report: RollReport) -> str:
    summary, logs = report["summary"], [file for file in report["inputs"] if file["kind"] == "log"]
    sizes = [file["size"] for file in logs]
    size = "" if None in sizes else f" ({sum([size or 0 for size in sizes]):,} bytes)"
    used = summary["outcomes"].get(Outcome.USED, 0)
    files = f'<a href="#files">{count_text(len(logs), "file")}</a>{size}, each with its SHA-256 below; ' if logs else ""
    records = f"{count_text(summary['records'], 'record')}, of which {used:,} could be used and "
    return f"{files}{records}{summary['records'] - used:,} were set aside"


def _asked(report: RollReport) -> str:
    question, word = report["question"], report["by"]
    if question["claim"] is not None:
        taken_as = "" if question["claim_taken_as"] is None else f", taken as {escape(question['claim_taken_as'])}"
        return f"of each {word}: is it {_text(question['claim'])}{taken_as}?"
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
        for part in identities[:MOST_BARS]
    ]
    rest = identities[MOST_BARS:]
    if rest:
        label, first = (
            count_text(len(rest), "more identity", "more identities"),
            sum(len(part["rows"]) for part in rest),
        )
        second = sum(len(part["pooled_rows"]) for part in rest)
        rows.append(CountRow(label=label, said=f"{first + second:,}", first=first, second=second, css_class="r"))
    short = summary["standings"].get(Standing.TOO_SHORT, 0) - summary["pooled"]
    colours = {Standing.TOO_SHORT: "c4", Standing.NOT_ATTRIBUTED: "bad", Standing.NOTHING_USABLE: "c5"}
    for standing, css in colours.items():
        count = short if standing is Standing.TOO_SHORT else summary["standings"].get(standing, 0)
        if count:
            rows.append(CountRow(label=standing.value, said=f"{count:,}", first=count, second=0, css_class=css))
    legend = ['<span class="key block r">named by itself</span>'] if identities else []
    if summary["pooled"]:
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
            f"{_link(part)}{_revoked(part['revoked_at'])}",
            f"<code>0x{escape(part['payload'])}</code>",
            f"{len(part['rows']):,}",
            f"{len(part['pooled_rows']):,}",
            f"{part['steps']:,}",
            escape(part["bound"]),
        )
        for part in identities[:MOST_IDENTITIES]
    ]
    return (
        f"<h2>The identities</h2>{_table(heads, rows, numbers=(2, 3, 4, 5))}"
        f"{_more(len(identities) - len(rows), 'identity', 'identities')}"
        "<p class=soft>This overview names everybody who was found. The page of an identity speaks of no other, and "
        "may be handed to them by itself.</p>"
    )


def _certainty(report: RollReport) -> str:
    correction, word = report["correction"], report["by"]
    if correction["kind"] == FAMILYWISE:
        price = f"its share of all {correction['questions']:,} questions is in every bound of this report"
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
        f"<p><b>{_promise(correction, word, report['summary']['rows'])}</b></p>{meaning}"
        f"<p class=soft>The rule in use: {_text(correction['explained'], SENTENCE_LEN)}.</p>"
    )


def _promise(correction: CorrectionPart, word: str, judged: int) -> str:
    level = escape(correction["level"])
    chance = escape(rate_in_words(float(correction["level"])))
    if correction["kind"] == FAMILYWISE:
        what = f"the {word} is" if judged == 1 else f"any of the {judged:,} {word}s is"
        return f"The chance that {what} given a wrong name is at most {chance} ({level})."
    return f"Of the names in this report, at most a share of {level} is expected to be wrong ({chance}, on average)."


def _not_proved(report: RollReport) -> str:
    word, summary = report["by"], report["summary"]
    used = summary["outcomes"].get(Outcome.USED, 0)
    points = [_FORGERY]
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
    return f"<h2>What it does not prove</h2>{_list(points)}"


_FORGERY = (
    "Whoever holds the key can write records that carry any identity. The report shows that the records were chosen "
    "with the key; that nobody misused the key has to be shown by other means."
)


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
        f"{_table(heads, cells, numbers=(0, 4, 5, 6), css='roll')}{_more(len(rows) - len(cells), word)}"
    )


def _row_cells(
    row: RowPart, identities: dict[int, IdentityPart], pools: dict[int, PoolPart], *, with_files: bool
) -> Sequence[str]:
    css, _ = _STANDINGS[Standing(row["standing"])]
    named = [_link(identities[part["identity"]]) for part in row["named"]]
    if row["pool"] is not None:
        named.append(f"in a group: {_link(identities[pools[row['pool']]['identity']])}")
    files = [_file_list(row["files"])] if with_files else []
    return (
        f"{row['number']:,}",
        _text(row["name"]),
        f"<b class={css}>{escape(row['standing'])}</b>",
        "<br>".join(named) or "-",
        "<br>".join(escape(part["bound"]) for part in row["named"]) or "-",
        f"{row['used']:,}",
        f"{row['set_aside']:,}",
        *files,
    )


def _file_list(files: Sequence[str]) -> str:
    shown = [_text(path, 2 * NAME_LEN) for path in files[:FILES_IN_ROW]]
    more = len(files) - len(shown)
    return "<br>".join([*shown, *([f"and {more:,} more"] if more else [])]) or "-"


def _record_table(report: RollReport) -> str:
    if not report["summary"]["records"]:
        return ""
    rows = [
        (escape(outcome), f"{count:,}", _OUTCOMES.get(outcome, "")) for outcome, count in _by_outcome(report).items()
    ]
    return f"<h2>What became of the records</h2>{_table(('outcome', 'records', 'meaning'), rows, numbers=(1,))}"


def _by_outcome(report: RollReport) -> dict[str, int]:
    """Used ones first, then those that were set aside, the commonest first."""
    outcomes = report["summary"]["outcomes"]
    order = sorted(outcomes, key=lambda outcome: (outcome != Outcome.USED, -outcomes[outcome], outcome))
    return {outcome: outcomes[outcome] for outcome in order}


_OUTCOMES = {
    Outcome.USED.value: "evidence, for or against",
    Outcome.IMPOSSIBLE.value: "no identity leads to this choice under this key: altered, or made by another",
    Outcome.UNREADABLE.value: "the probabilities are missing, and the scheme needs them",
    Outcome.DUPLICATE.value: "a copy of a record that counts once",
    Outcome.CONFLICTING.value: "copies that disagree; none of them counts",
    Outcome.UNMARKED.value: "the step was taken without the mark, for the reason in its record",
    Outcome.NOT_ENFORCED.value: "the agent did not do what was chosen",
    Outcome.OTHER_KEY.value: "states a key that was not given",
    Outcome.OTHER_LENGTH.value: "states another payload length",
    Outcome.NOT_READ.value: "reading it would have cost more than the work limit",
}


def _damage(report: RollReport) -> str:
    word = report["by"]
    said = [_text(finding, SENTENCE_LEN) for finding in report["findings"]]
    for row in report["rows"]:
        notes = [*row["tampering"], *([f"work limit: {row['work_note']}"] if row["work_note"] else [])]
        if row["shared_contexts"]:
            notes.append(
                f"{count_text(row['shared_contexts'], 'record')} also stand under another {word}: copied or moved"
            )
        said += [f"{word} {row['number']:,} ({_text(row['name'])}): {_text(note, SENTENCE_LEN)}" for note in notes]
    over = [_text(line, SENTENCE_LEN) for line in report["passed_over"]]
    parts = ["<h2>Signs of tampering or damage</h2>"]
    parts.append(_long_list(said, "finding") if said else "<p>None was found.</p>")
    if over:
        parts.append(f"<h2>What was passed over</h2>{_long_list(over, 'line')}")
    return "".join(parts)


def _repeat(report: RollReport) -> str:
    rates = ", ".join(map(escape, report["question"]["noise_rates"]))
    facts = [
        ("Made", escape(report["made_at"])),
        ("Versions", _versions(report["versions"])),
        ("Noise rates allowed for", rates),
        ("Data of this report", f"<code>{DATA}</code>: all that these pages show, and the rows that they leave out"),
        ("SHA-256 of that data", f"<code>{report_digest(report)}</code>"),
    ]
    return (
        f"<h2>How to repeat and check it</h2><pre class=panel>{_text(report['command'], 20 * SENTENCE_LEN)}</pre>"
        f"{_facts(facts)}{_checks('roll.signed.json')}"
    )


# The page of an identity ----------------------------------------------------------------------------------------------


def _identity_page(report: IdentityReport) -> str:
    return _page(
        f"AgentMark report: {report['who']['identity'] or '0x' + report['who']['payload']}",
        [
            f"<h1>AgentMark report on one identity, {escape(report['made_at'])}</h1>",
            f'<div class="panel verdict yes"><p>{_text(report["sentence"], SENTENCE_LEN)}</p></div>',
            _who(report),
            _evidence(report),
            _own_rows(report),
            _own_pools(report),
            _own_damage(report),
            _own_limits(report),
            _own_repeat(report),
            _files(report["inputs"], report["by"]),
        ],
    )


def _who(report: IdentityReport) -> str:
    who, word, correction = report["who"], report["by"], report["correction"]
    if who["payload_len"] == 0:
        name = "<span class=big>the holder of this key</span><br>The mark carries no identity."
    else:
        payload = f"payload 0x{escape(who['payload'])}, {who['payload_len']} bits"
        as_text = f"; as text: {_text(who['text'])}" if who["identity"] is None and who["text"] is not None else ""
        title = f"0x{escape(who['payload'])}" if who["identity"] is None else _text(who["identity"], 2 * NAME_LEN)
        name = f"<span class=big>{title}</span><br>{payload}{as_text}"
    facts = [("Who", f"{name}{_revoked(who['revoked_at'])}")]
    each = (
        f"At most {escape(who['bound_in_words'])} ({escape(who['bound'])}) for the weakest of them: so often a log "
        "made without this key, or for another identity, would do as well by chance."
    )
    facts.append(("How sure, of each", each))
    facts.append(("How sure, of all", _of_all(correction, word, report["judged"])))
    records = sum([row["records"] for row in report["rows"]])
    used = sum([row["used"] for row in report["rows"]])
    what = f"{count_text(len(report['rows']), word)} with {count_text(records, 'record')}: {used:,} used"
    facts.append(("On what", f"{what}, {records - used:,} set aside"))
    facts.append(("Key ids", ", ".join(f"<code>{_text(key)}</code>" for key in report["keys"]) or "-"))
    facts += _case(report["case_number"], report["author"])
    return _facts(facts)


def _of_all(correction: CorrectionPart, word: str, judged: int) -> str:
    promise = _promise(correction, word, judged)
    if correction["kind"] == FAMILYWISE:
        return f"{promise} Those of this page are among them; the price of all questions is in each bound."
    return f"{promise} The bound of each {word} is its own, before the number of questions is counted."


def _evidence(report: IdentityReport) -> str:
    points = [
        (float(row["evidence_bits"]), float(row["level_bits"]))
        for row in report["rows"]
        if row["evidence_bits"] is not None and row["level_bits"] is not None
    ]
    if not points:
        return ""
    word = report["by"]
    return (
        f"<h2>The evidence of each {word}</h2><figure class=panel>{evidence_bars(points, noun=word)}</figure>"
        f"<p class=soft>One column for each {word} that is named by itself. The higher it stands above the dashed "
        "line, the less chance explains it: each bit above the line halves the bound. The line is what it takes to name "
        "somebody, with the number of identities and of questions paid for.</p>"
    )


def _own_rows(report: IdentityReport) -> str:
    rows, word = report["rows"], report["by"]
    if not rows:
        return ""
    mixed = any(row["mixed"] for row in rows)
    with_files = word == "session"
    heads = ["#", word, "bits", "needed", "bound", "steps used", "set aside"]
    heads += ["its own, at least"] if mixed else []
    heads += ["files"] if with_files else []
    cells = [
        [
            f"{row['number']:,}",
            _text(row["name"]),
            _bits(row["evidence_bits"]),
            _bits(row["level_bits"]),
            escape(row["bound"] or "-"),
            f"{row['used']:,}",
            f"{row['set_aside']:,}",
            *([f"{row['at_least_steps']:,}" if row["mixed"] else "-"] if mixed else []),
            *([_file_list(row["files"])] if with_files else []),
        ]
        for row in rows[:MOST_ROWS]
    ]
    note = (
        f"<p class=soft>Where there is a number under “its own, at least”, the {word} also holds steps of somebody "
        "else: so many or more of its used steps are of this identity.</p>"
        if mixed
        else ""
    )
    numbers = range(2, 8 if mixed else 7)
    return (
        f"<h2>Its {word}s</h2>{_table(heads, cells, numbers=(0, *numbers), css='roll')}"
        f"{_more(len(rows) - len(cells), word)}{note}"
    )


def _own_pools(report: IdentityReport) -> str:
    if not report["pools"]:
        return ""
    word = report["by"]
    said = "".join(f"<p>{_pool_words(pool, word)}</p>" for pool in report["pools"])
    with_files = word == "session"
    heads = ["#", word, "steps used", "set aside", *(["files"] if with_files else [])]
    cells = [_pooled_cells(row, with_files=with_files) for row in report["pooled"][:MOST_ROWS]]
    return (
        f"<h2>{word.capitalize()}s that speak for it in a group only</h2>{said}"
        f"<p>Each of these is too short to be judged alone. <b>None of them is proved to be of this identity by "
        "itself</b>, and none should be held against anybody by itself.</p>"
        f"{_table(heads, cells, numbers=(0, 2, 3), css='roll')}{_more(len(report['pooled']) - len(cells), word)}"
    )


def _pool_words(pool: IdentityPoolPart, word: str) -> str:
    return (
        f"{count_text(pool['among'], word)} of those judged {'is' if pool['among'] == 1 else 'are'} too short alone. "
        f"That at least one of them is of this identity is shown with {_bits(pool['evidence_bits'])} bits of evidence, "
        f"where {_bits(pool['level_bits'])} were needed: chance does as well at most {escape(pool['bound_in_words'])} "
        f"({escape(pool['bound'])}). {count_text(len(pool['rows']), word)} "
        f"{'speaks' if len(pool['rows']) == 1 else 'speak'} for it:"
    )


def _pooled_cells(row: IdentityRowPart, *, with_files: bool) -> Sequence[str]:
    files = [_file_list(row["files"])] if with_files else []
    return (f"{row['number']:,}", _text(row["name"]), f"{row['used']:,}", f"{row['set_aside']:,}", *files)


def _own_damage(report: IdentityReport) -> str:
    word = report["by"]
    said = [
        f"{word} {row['number']:,} ({_text(row['name'])}): {_text(finding, SENTENCE_LEN)}"
        for row in [*report["rows"], *report["pooled"]]
        for finding in row["tampering"]
    ]
    listed = _long_list(said, "finding") if said else f"<p>None was found in these {word}s.</p>"
    return f"<h2>Signs of tampering or damage</h2>{listed}"


def _own_limits(report: IdentityReport) -> str:
    word = report["by"]
    aside = sum([row["set_aside"] for row in report["rows"]])
    points = [_FORGERY]
    if aside:
        reasons: dict[str, int] = {}
        for row in report["rows"]:
            for outcome, count in row["outcomes"].items():
                if outcome != Outcome.USED:
                    reasons[outcome] = reasons.get(outcome, 0) + count
        listed = ", ".join(f"{count:,} {escape(outcome)}" for outcome, count in sorted(reasons.items()))
        points.append(f"{count_text(aside, 'record')} in these {word}s were set aside and speak for nobody: {listed}.")
    if any(row["mixed"] for row in report["rows"]):
        points.append(f"Not every step of a {word} that also holds steps of somebody else is of this identity.")
    points.append(
        f"A {word} that is not listed here is not shown to be somebody else's: it may be too short or too damaged."
    )
    points.append(
        "The evidence on this page is for those who hold the key, and for those they report to. Whoever may ask for "
        "such pages about logs of their own making could learn to forge."
    )
    return f"<h2>What it does not prove</h2>{_list(points)}"


def _own_repeat(report: IdentityReport) -> str:
    folder = (
        "<p>FOLDER holds the files that are listed below, and no others.</p>" if " FOLDER" in report["command"] else ""
    )
    left_out = ""
    if report["left_out"]:
        left_out = (
            f"<p class=soft>{count_text(report['left_out'], 'name or note', 'names or notes')} "
            f"{'is' if report['left_out'] == 1 else 'are'} left out of this page, because somebody else is named "
            "in it. The whole report has them.</p>"
        )
    facts = [
        ("Made", escape(report["made_at"])),
        ("Versions", _versions(report["versions"])),
        ("Noise rates allowed for", ", ".join(map(escape, report["noise_rates"]))),
        ("SHA-256 of this page's data", f"<code>{report_digest(report)}</code>"),
        ("SHA-256 of the whole report", f"<code>{escape(report['whole'])}</code>"),
    ]
    return (
        f"<h2>How to repeat and check it</h2><pre class=panel>{_text(report['command'], 20 * SENTENCE_LEN)}</pre>"
        f"{folder}<p class=soft>Judged without the others, these {report['by']}s have fewer questions to pay for: the "
        "bounds may come out smaller than here. Other records in the same files are judged with them.</p>"
        f"{left_out}{_facts(facts)}{_checks('the signed file of this identity (.signed.json)')}"
    )


# Both -----------------------------------------------------------------------------------------------------------------


def _page(title: str, parts: Iterable[str]) -> str:
    body = "\n".join(part for part in parts if part)
    return f"{opening(_title(title), ROLL_STYLE)}\n<main>\n{body}\n</main></html>\n"


def _title(text: str) -> str:
    """A browser shows it in its frame: no more of it than fits, and nothing that steers."""
    return spelled_out(text[: NAME_LEN + 24], keep=JOINERS)


def _checks(signed: str) -> str:
    return (
        "<p class=soft>To check a file: <code>sha256sum FILE</code> must print the SHA-256 that is listed for it. To "
        f"check a signature: <code>agentmark check-report</code> with {signed} and <code>--public-key</code> prints "
        "the SHA-256 of the data that was signed, which must be the one above. The signature says who made the report, "
        "not that it is right.</p>"
    )


def _case(case_number: str | None, author: str | None) -> list[tuple[str, str]]:
    facts = [] if case_number is None else [("Case", _text(case_number, 2 * NAME_LEN))]
    return [*facts, *([] if author is None else [("Author", _text(author, 2 * NAME_LEN))])]


def _files(inputs: Sequence[InputFile], word: str) -> str:
    if not inputs:
        return ""
    rows = [
        (
            f"{i:,}",
            f"{escape(file['kind'])}: {_text(file['path'], SENTENCE_LEN)}",
            "-" if file["size"] is None else f"{file['size']:,}",
            f"<code>{escape(file['sha256'] or 'not a regular file')}</code>",
        )
        for i, file in enumerate(inputs[:MOST_FILES], start=1)
    ]
    return (
        f"<h2 id=files>The files</h2>{_table(('#', 'file', 'bytes', 'SHA-256'), rows, numbers=(0, 2))}"
        f"{_more(len(inputs) - len(rows), 'file')}"
    )


def _link(part: IdentityPart) -> str:
    """The page's name is made of small letters, digits and hyphens alone."""
    name = _text(part["identity"]) if part["identity"] is not None else f"0x{escape(part['payload'])}"
    if part["payload_len"] == 0:
        name = "the holder of this key"
    return f'<a href="{escape(part["page"])}">{name}</a>'


def _revoked(revoked_at: str | None) -> str:
    return "" if revoked_at is None else f"<br><span class=soft>revoked {_text(revoked_at)}</span>"


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{escape(name)} {escape(version)}" for name, version in versions.items())


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{name}<dd>{fact}' for name, fact in facts)}</dl>"


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}' for item in items)}</ul>"


def _long_list(items: Sequence[str], word: str) -> str:
    return f"{_list(items[:MOST_FINDINGS])}{_more(len(items) - MOST_FINDINGS, word)}"


def _more(left: int, word: str, several: str | None = None) -> str:
    if left <= 0:
        return ""
    further = count_text(left, f"further {word}", f"further {several or word + 's'}")
    return f"<p class=soft>{further} not listed here; they count in all figures, and <code>{DATA}</code> has them.</p>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int], css: str = "") -> str:
    """Cells are HTML. On a phone each row becomes a block, and each cell but the first says what it is."""
    right = [" class=n" if i in numbers else "" for i in range(len(heads))]
    opened = [f"<td{right[i]}" + (f' data-label="{head}">' if i else ">") for i, head in enumerate(heads)]
    head = "".join(f"<th scope=col{right[i]}>{head}" for i, head in enumerate(heads))
    body = "\n".join("<tr>" + "".join(start + cell for start, cell in zip(opened, row, strict=True)) for row in rows)
    return f'<table class="fold {css}"><thead><tr>{head}</thead><tbody>{body}</tbody></table>'


def _count(count: int, one: str, several: str) -> str:
    return f"<b>{count:,}</b> {one if count == 1 else several}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _bits(bits: str | None) -> str:
    return "-" if bits is None else f"{float(bits):,.1f}"


def _lines(text: str) -> str:
    """A note may have paragraphs."""
    cut = text if len(text) <= NOTE_LEN else f"{text[:NOTE_LEN]}…"
    return "\n".join(isolated(line) for line in cut.splitlines())


def _text(text: str, limit: int = NAME_LEN) -> str:
    return isolated(text, limit)
