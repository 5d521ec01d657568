"""The page of one identity in a report on many sessions. It is made from the extract alone, which names nobody else."""

from collections import Counter
from collections.abc import Sequence
from html import escape

from agentmark.report.numbers import count_text
from agentmark.report.outcomes import USED
from agentmark.report.page_data import SignedFile
from agentmark.report.pieces import NAME_LEN, SENTENCE_LEN, bullets, facts, rounded, table, text
from agentmark.report.roll_charts import evidence_bars
from agentmark.report.roll_content import FAMILYWISE, IdentityPoolPart, IdentityReport, IdentityRowPart
from agentmark.report.roll_pieces import (
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

# Where the rest is that a page leaves out.
WHERE = "the data of this page"


def render_identity(report: IdentityReport, *, signed: SignedFile | None = None) -> str:
    """The page. `signed` is the signed file of the same extract, if there is one."""
    who, digest = report["who"], report_digest(report)
    return page(
        f"AgentMark report: {who['identity'] or '0x' + who['payload']}",
        digest,
        [
            heading("AgentMark report on one identity", report),
            f'<div class="panel verdict yes"><p>{text(report["sentence"], SENTENCE_LEN)}</p></div>',
            _glance(report),
            _evidence(report),
            _rows(report),
            _pools(report),
            _damage(report),
            _not_proved(report),
            checking(report, command_block(report["command"]), digest, signed),
            _remarks(report),
            files_table(report["inputs"], where=WHERE),
        ],
    )


def _glance(report: IdentityReport) -> str:
    word, rows = report["by"], report["rows"]
    records, used = sum([row["records"] for row in rows]), sum([row["used"] for row in rows])
    basis = f"{count_text(len(rows), word)} with {count_text(records, 'record')}: {used:,} used"
    pairs = [
        ("Who", _who(report)),
        ("How sure, of each", _of_each(report)),
        ("How sure, of all", _of_all(report)),
        ("On what", f"{basis}, {records - used:,} set aside"),
        *made_with(report, report["noise_rates"]),
    ]
    return facts(pairs)


def _who(report: IdentityReport) -> str:
    who = report["who"]
    if who["payload_len"] == 0:
        return "<span class=big>the holder of this key</span><br>The mark carries no identity."
    title = f"0x{escape(who['payload'])}" if who["identity"] is None else text(who["identity"], 2 * NAME_LEN)
    as_text = f"; as text: {text(who['text'])}" if who["identity"] is None and who["text"] is not None else ""
    payload = f"payload 0x{escape(who['payload'])}, {who['payload_len']} bits{as_text}"
    return f"<span class=big>{title}</span><br>{payload}{revoked(who['revoked_at'])}"


def _of_each(report: IdentityReport) -> str:
    who = report["who"]
    bound = f"{escape(who['bound_in_words'])} (<span class=rate>{escape(who['bound'])}</span>)"
    if not report["rows"]:
        return f"No {report['by']} is named by itself. Of the group: chance does as well at most {bound}."
    return (
        f"At most {bound} for the weakest of them: so often a log made without this key, or with it for another "
        "identity, would do as well by chance."
    )


def _of_all(report: IdentityReport) -> str:
    word, correction = report["by"], report["correction"]
    said = promise(correction, word, report["judged"])
    if correction["kind"] == FAMILYWISE:
        return f"{said} Those of this page are among them, and the price of all questions is in each bound."
    return f"{said} The bound of each {word} is its own, before the number of questions is counted."


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
        "line, the less chance explains it: each bit above the line halves the bound. The line is what it takes to "
        "name somebody, with the number of identities and of questions paid for.</p>"
    )


def _rows(report: IdentityReport) -> str:
    rows, word = report["rows"], report["by"]
    if not rows:
        return ""
    mixed, with_files = any(row["mixed"] for row in rows), word == "session"
    heads = ["#", word, "bits", "needed", "bound", "steps used", "set aside"]
    heads += (["its own, at least"] if mixed else []) + (["files"] if with_files else [])
    cells = [_row_cells(row, mixed=mixed, with_files=with_files) for row in rows[:MOST_ROWS]]
    note = (
        f"<p class=soft>Where a number stands under “its own, at least”, the {word} also holds steps of somebody else: "
        "so many of its used steps, or more, are of this identity.</p>"
    )
    numbers = (0, *range(2, 8 if mixed else 7))
    return (
        f"<h2>Its {word}s</h2>{table(heads, cells, numbers=numbers, css='roll')}"
        f"{more(len(rows) - len(cells), word, where=WHERE)}{note if mixed else ''}"
    )


def _row_cells(row: IdentityRowPart, *, mixed: bool, with_files: bool) -> Sequence[str]:
    return [
        f"{row['number']:,}",
        text(row["name"]),
        rounded(row["evidence_bits"] or "0"),
        rounded(row["level_bits"] or "0"),
        escape(row["bound"] or "1"),
        f"{row['used']:,}",
        f"{row['set_aside']:,}",
        *([f"{row['at_least_steps']:,}" if row["mixed"] else "-"] if mixed else []),
        *([file_list(row["files"])] if with_files else []),
    ]


def _pools(report: IdentityReport) -> str:
    if not report["pools"]:
        return ""
    word, with_files = report["by"], report["by"] == "session"
    said = "".join(f"<p>{_pool_words(pool, word)}</p>" for pool in report["pools"])
    heads = ["#", word, "steps used", "set aside", *(["files"] if with_files else [])]
    cells = [
        [
            f"{row['number']:,}",
            text(row["name"]),
            f"{row['used']:,}",
            f"{row['set_aside']:,}",
            *([file_list(row["files"])] if with_files else []),
        ]
        for row in report["pooled"][:MOST_ROWS]
    ]
    return (
        f"<h2>{word.capitalize()}s that speak for it in a group only</h2>{said}"
        f"<p>Each of these is too short to be judged alone. <b>None of them is proved by itself to be of this "
        "identity</b>, and none should be held against anybody by itself.</p>"
        f"{table(heads, cells, numbers=(0, 2, 3), css='roll')}"
        f"{more(len(report['pooled']) - len(cells), word, where=WHERE)}"
    )


def _pool_words(pool: IdentityPoolPart, word: str) -> str:
    speak = "speaks" if len(pool["rows"]) == 1 else "speak"
    return (
        f"{count_text(pool['among'], word)} of those judged {'is' if pool['among'] == 1 else 'are'} too short alone. "
        f"That at least one of them is of this identity is shown with {rounded(pool['evidence_bits'])} bits of "
        f"evidence, where {rounded(pool['level_bits'])} were needed: chance does as well at most "
        f"{escape(pool['bound_in_words'])} (<span class=rate>{escape(pool['bound'])}</span>). "
        f"{count_text(len(pool['rows']), word)} {speak} for it."
    )


def _damage(report: IdentityReport) -> str:
    word = report["by"]
    found = [
        (row["number"], row["name"], finding)
        for row in [*report["rows"], *report["pooled"]]
        for finding in row["tampering"]
    ]
    over = [f"passed over: {text(line, SENTENCE_LEN)}" for line in report["passed_over"]]
    listed = findings_table(found, word, where=WHERE) + (long_list(over, "line", where=WHERE) if over else "")
    return f"<h2>Signs of tampering or damage</h2>{listed or f'<p>None was found in these {word}s.</p>'}"


def _not_proved(report: IdentityReport) -> str:
    word = report["by"]
    outcomes = sum((Counter(row["outcomes"]) for row in report["rows"]), Counter[str]())
    del outcomes[USED]
    points = [FORGERY]
    if outcomes:
        reasons = ", ".join(f"{count:,} {escape(outcome)}" for outcome, count in outcomes.most_common())
        records = count_text(outcomes.total(), "record")
        points.append(f"{records} in these {word}s speak for nobody and were set aside: {reasons}.")
    if any(row["mixed"] for row in report["rows"]):
        points.append(f"Not every step of a {word} that also holds steps of somebody else is of this identity.")
    points.append(
        f"A {word} that is not listed here is not shown to be somebody else's: it may be too short or too damaged."
    )
    points.append(
        "The evidence on this page is for those who hold the key, and for those they report to. Whoever may ask for "
        "such pages about logs of their own making could learn to forge."
    )
    return f"<h2>What it does not prove</h2>{bullets(points)}"


def _remarks(report: IdentityReport) -> str:
    """On the command, and on what is missing."""
    word, left_out = report["by"], report["left_out"]
    said = []
    if report["folder"]:
        said.append("FOLDER holds the files that are listed below, and no others.")
    said.append(
        f"Judged without the others, these {word}s have fewer questions to pay for, so that bounds may come out "
        "smaller than here."
    )
    said.append(f"The whole report has the SHA-256 <code>{escape(report['whole'])}</code>.")
    if left_out:
        names = count_text(left_out, "name, option or finding is", "names, options or findings are")
        said.append(f"{names} left out of this page, since somebody else is named there. The whole report has them.")
    return "".join(f"<p class=soft>{sentence}</p>" for sentence in said)
