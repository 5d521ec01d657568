"""The report as one self-contained HTML page: no script, no network. Everything that was read is escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import cast

from agentmark.core.distribution import TOTAL_WEIGHT
from agentmark.report.chain_part import ChainFindingPart, ChainPart
from agentmark.report.charts import Series, line_chart
from agentmark.report.content import (
    CONSISTENT,
    CONTRADICTING,
    ERASED,
    IMPOSSIBLE_STEP,
    UNSETTLED,
    InputFile,
    PlacePart,
    Report,
    SegmentPart,
    StepPart,
    StrangerReport,
    StrangerVerdictPart,
    VerdictPart,
)
from agentmark.report.html import isolated, opening
from agentmark.report.numbers import count_text
from agentmark.report.signature import report_digest
from agentmark.report.style import STYLE
from agentmark.verify.candidates import Route

ROWS_OPEN = 200
CANDIDATES_SHOWN = 6
BAR_WIDTH_PX = 46
SEGMENT_COLOURS = 6
# Long enough for any name that people use; the data has the rest.
NAME_LEN, SENTENCE_LEN = 48, 450

_FINDING_CSS = {
    CONSISTENT: "yes",
    CONTRADICTING: "no",
    IMPOSSIBLE_STEP: "no",
    ERASED: "none",
    UNSETTLED: "maybe",
}


def render_report(report: Report | StrangerReport) -> str:
    """The whole page: the key holder's, or (if the report is for strangers) the one that shows the answer alone."""
    verdict = report["verdict"]
    parts = [
        opening(f"AgentMark report: {'attributed' if verdict['accepted'] else 'not attributed'}", STYLE),
        f"<h1>AgentMark report, {escape(report['made_at'])}</h1>",
        _verdict(verdict),
        *(_strangers_parts(cast(StrangerReport, report)) if "view" in report else _holders_parts(report)),
        "</html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _holders_parts(report: Report) -> list[str]:
    return [
        _controls(report),
        _facts(report),
        _growth(report),
        _rank_growth(report),
        _segments(report),
        _findings(report),
        _chains(report),
        _outcomes(report["verdict"]),
        _ownership(report),
        _steps(report),
        _origin(report),
        "<p class=soft>The control uses a fresh random key, so its figures differ from run to run. All others repeat."
        "</p>",
    ]


def _strangers_parts(report: StrangerReport) -> list[str]:
    verdict, claim = report["verdict"], report["question"]["claim"]
    facts = [("Identity", _identity(verdict))]
    if claim is not None:
        facts.append(("Claim under test", _text(claim)))
    if verdict["revoked_at"] is not None:
        facts.append(("Revoked", _text(verdict["revoked_at"])))
    bound = (
        f"an identity is named only at a bound of {escape(verdict['threshold'])} or less. It covers logs made without "
        "this key and logs made with it for another identity."
    )
    facts.append(("Threshold", bound))
    rows = "".join(f"<dt>{name}<dd>{fact}" for name, fact in facts)
    notes = [*report["findings"], *[f"passed over: {line}" for line in report["passed_over"]]]
    listed = "".join(f"<li>{_text(note, SENTENCE_LEN)}" for note in notes)
    return [
        f"<h2>The finding</h2><dl>{rows}</dl>",
        f"<h2>What was not read</h2><ul>{listed}</ul>" if notes else "",
        _origin(report),
        "<p class=soft>This report is for readers who do not hold the key: it gives the answer, and no evidence. What "
        "each record says for or against an identity would teach a forger what to write.</p>",
    ]


def _verdict(verdict: VerdictPart | StrangerVerdictPart) -> str:
    css = "yes" if verdict["accepted"] else "no"
    return f'<div class="panel verdict {css}"><p>{_text(verdict["sentence"], SENTENCE_LEN)}</p></div>'


def _controls(report: Report) -> str:
    return (
        "<div class=two>"
        f"<div class=panel><h3>With this key</h3>{_reading(report['verdict'])}</div>"
        f"<div class=panel><h3>Control: with a random key</h3>{_reading(report['control'])}</div>"
        "</div><p class=soft>The control reads the same records with a key that was made for this report and thrown "
        "away. It shows what the method says where there is nothing to find.</p>"
    )


def _reading(verdict: VerdictPart) -> str:
    css, answer = ("yes", "attributed") if verdict["accepted"] else ("none", "not attributed")
    impossible = verdict["outcomes"].get("impossible under this key", 0)
    rows = [
        f"<b class={css}>{answer}</b>; bound {escape(verdict['bound'])}",
        f"evidence: {_bits(verdict['evidence_bits'])}, where {_rounded(verdict['level_bits'])} are needed",
        f"{count_text(verdict['used'], 'step')} used, {verdict['contradicting']:,} contradicting, "
        f"{impossible:,} impossible",
        *([f"<b>Work limit:</b> {escape(verdict['work_note'])}"] if verdict["work_note"] else []),
    ]
    return "".join(f"<p>{row}</p>" for row in rows)


def _facts(report: Report) -> str:
    verdict, question = report["verdict"], report["question"]
    facts = [("Identity", _identity(verdict))]
    if question["claim"] is not None:
        taken_as = "" if question["claim_taken_as"] is None else f", taken as {escape(question['claim_taken_as'])}"
        facts.append(("Claim under test", f"{_text(question['claim'])}{taken_as}"))
    if question["place"] is not None:
        facts.append(("Place in its session", _place(question["place"])))
    if verdict["revoked_at"] is not None:
        facts.append(("Revoked", _text(verdict["revoked_at"])))
    facts += [
        (
            "False-positive bound",
            f"<span class=big>{escape(verdict['bound_in_words'])}</span><br>{escape(verdict['bound'])}, "
            f"where {escape(verdict['threshold'])} or less is accepted. It covers logs made without this key and logs "
            "made with it for another identity, whatever the agent did.",
        ),
        ("Evidence", _evidence_fact(verdict)),
        ("Steps", _step_fact(verdict)),
        ("More steps needed", _needed(verdict)),
        ("Runner-up", _runner_up(verdict)),
    ]
    rows = "".join(f"<dt>{name}<dd>{fact}" for name, fact in facts)
    return f"<h2>The finding</h2><dl>{rows}</dl>"


def _identity(verdict: VerdictPart | StrangerVerdictPart) -> str:
    if not verdict["accepted"]:
        return "<span class=big>none named</span>"
    if verdict["payload"] is None:
        return "<span class=big>several, as named above</span>"
    length = f"{verdict['payload_len']} bits"
    if verdict["payload_len"] == 0:
        return "<span class=big>the holder of this key</span><br>The mark carries no identity."
    payload = f"payload 0x{escape(verdict['payload'] or '')}, {length}"
    if verdict["identity"] is not None:
        return f"<span class=big>{_text(verdict['identity'], 2 * NAME_LEN)}</span><br>{payload}"
    if verdict["text"] is not None:
        payload += f"; as text: {_text(verdict['text'])}"
    return f"<span class=big>0x{escape(verdict['payload'] or '')}</span><br>{payload}"


def _place(place: PlacePart) -> str:
    found = "not proved" if place["offset"] is None else f"from step {place['offset']:,} on"
    tried = f"{count_text(place['offsets_tried'], 'place')} tried, each of them paid for"
    return f"{found}, session {_text(place['session'])}; {tried}. Numbers and digests are those of this place."


def _evidence_fact(verdict: VerdictPart) -> str:
    if verdict["used"] == 0:
        return "None: no step could be used."
    if verdict["route"] is None:
        return (
            f"No candidate was found. If every step agreed they would say {_rounded(verdict['potential_bits'])} bits; "
            f"{_rounded(verdict['level_bits'])} are needed."
        )
    if verdict["evidence_bits"] is None:
        return "Ruled out: a step contradicts the candidate, and no noise was allowed for."
    if verdict["route"] == Route.CLAIM and float(verdict["bits_paid"]) == 0:
        price = "nothing was searched, so nothing is paid for naming it"
    else:
        price = f"{_rounded(verdict['bits_paid'])} of them pay for what was tried"
    whom = "the best candidate" if verdict["payload"] is None else f"payload 0x{escape(verdict['payload'])}"
    return (
        f"{_rounded(verdict['evidence_bits'])} bits for {whom}; {price}. "
        f"Found by: {escape(verdict['route'] or '-')}. It takes {_rounded(verdict['level_bits'])} bits."
    )


def _step_fact(verdict: VerdictPart) -> str:
    said = f"{verdict['used']:,} of {count_text(verdict['records'], 'record')} used"
    if verdict["route"] is not None and verdict["used"]:
        said += f": {verdict['agreeing']:,} consistent, {verdict['contradicting']:,} contradicting"
    if verdict["accepted"] and verdict["likely_noise"] != "0":
        said += f". A share of about {float(verdict['likely_noise']):.0%} foreign or altered steps explains them best"
    schemes = " and ".join(verdict["schemes"]) or "-"
    return f"{said}. Scheme {escape(schemes)}, {verdict['payload_len']} payload bits."


def _needed(verdict: VerdictPart) -> str:
    if verdict["accepted"]:
        return "none"
    if verdict["evidence_bits"] is None:
        return "none would help: the candidate is ruled out"
    if verdict["steps_needed"] is None:
        return "not known: more steps like these would not help, or none could be used"
    return f"about {verdict['steps_needed']:,}, if they are like those seen"


def _runner_up(verdict: VerdictPart) -> str:
    second = verdict["runner_up"]
    if second is None or verdict["used"] == 0:
        return "none: no other identity was a candidate"
    return f"not named, since it is below the bound: {_bits(second['evidence_bits'])}"


def _growth(report: Report) -> str:
    growth, verdict = report["growth"], report["verdict"]
    if verdict["used"] == 0:
        return ""
    points = []
    for record, bits in growth["points"]:
        if bits is None:
            break
        points.append((float(record), float(bits)))
    stopped = len(points) < len(growth["points"])
    last = growth["points"][-1][0]
    of_candidate = growth["of"] == "candidate"
    label = "the candidate's surplus" if of_candidate else "what the steps could say if all agreed, less the price"
    css = ("r" if verdict["accepted"] else "bad") if of_candidate else "c5 dash"
    paid = float(verdict["bits_paid"])
    level = float(verdict["level_bits"]) - paid
    chart = line_chart(
        [Series(label, points, css, ends_with_cross=stopped)],
        x_label="records read, in the order of the log",
        y_label="surplus (bits)",
        threshold=(level, f"{level:.1f} bits needed"),
        x_max=float(last),
    )
    price = f", less {paid:.1f} bits for what was tried" if paid else ""
    meaning = _growth_of_candidate(verdict) if of_candidate else "Nobody was a candidate: this is no evidence yet."
    ruled_out = " At ✕ a step rules the candidate out." if stopped else ""
    return (
        f"<h2>How the evidence grows</h2><figure class=panel>{chart}</figure>"
        f"<p class=soft>log2 of the e-value after each record, in bits{price}. The dashed line is what a bound of "
        f"{escape(verdict['threshold'])} takes. {meaning}{ruled_out}</p>"
    )


def _growth_of_candidate(verdict: VerdictPart) -> str:
    """What is proved of the line. It says nothing of evidence without its price: that grows by the choice alone."""
    if verdict["route"] == Route.CLAIM:
        return "If the claim is false, this line ever reaches a height of b bits with probability at most 2^-b."
    return (
        "The candidate was picked by looking at the whole log, and the price covers that: the probability that the "
        "line of any wrong identity ever reaches a height of b bits is at most 2^-b."
    )


def _rank_growth(report: Report) -> str:
    growth, verdict = report["rank_growth"], report["verdict"]
    if growth is None:
        return ""
    points = [(float(record), float(rank)) for record, rank in growth["points"]]
    chart = line_chart(
        [Series("independent equations (rank)", points, "f")],
        x_label="records read, in the order of the log",
        y_label="rank",
        threshold=(verdict["payload_len"], f"{verdict['payload_len']} payload bits"),
    )
    return (
        "<h2>How the identity becomes determined</h2>"
        f"<figure class=panel>{chart}</figure>"
        f"<p class=soft>Scheme F: {count_text(growth['equations'], 'equation')}. At full rank one identity is left at "
        "most; every equation after that confirms or refutes it.</p>"
    )


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
        f'"{count_text(len(segments), "stretch", "stretches")}">{strip}</div>{_table(heads, rows, numbers=(4, 5, 6))}'
    )


def _segment_css(part: SegmentPart, owners: Sequence[str | None]) -> str:
    return "none" if part["payload"] is None else f"c{owners.index(part['payload']) % SEGMENT_COLOURS}"


def _segment_row(part: SegmentPart, css: str) -> Sequence[str]:
    whose = "not attributed"
    if part["payload"] is not None:
        payload = f"0x{escape(part['payload'])}"
        whose = f"{_text(part['identity'])} ({payload})" if part["identity"] is not None else payload
    return (
        f'<span class="swatch {css}"></span>{whose}',
        f"{part['first_step']:,} to {part['last_step']:,}",
        _text(part["first_record"]),
        _text(part["last_record"]),
        f"{part['steps']:,}",
        _evidence(part["evidence_bits"]),
        escape(part["bound"]),
    )


def _findings(report: Report) -> str:
    findings = [_text(finding, SENTENCE_LEN) for finding in report["findings"]]
    findings += [f"passed over: {_text(line, SENTENCE_LEN)}" for line in report["passed_over"]]
    if not findings:
        said = "<p>None: no altered context, no copies that disagree, no line that was cut short or broken.</p>"
    else:
        said = f"<ul>{''.join(f'<li>{finding}' for finding in findings)}</ul>"
    return f"<h2>Signs of tampering or damage</h2>{said}"


def _chains(report: Report) -> str:
    if not report["chains"]:
        return ""
    return (
        "<h2>The chain of the log</h2>"
        f"{''.join(map(_chain, report['chains']))}"
        "<p class=soft>A layer beside the mark: it shows whether records are missing, or are not as they were "
        "written. It is no part of the verdict, and a broken chain never stops the mark from being read.</p>"
    )


def _chain(chain: ChainPart) -> str:
    css = "yes" if chain["intact"] else "no"
    refused = chain["checkpoints_refused"]
    checkpoints = count_text(chain["checkpoints"], "checkpoint") + (f" good, {refused:,} refused" if refused else "")
    facts = [
        ("Log", _text(chain["log"], SENTENCE_LEN)),
        ("Finding", f"<b class={css}>{_text(chain['sentence'], SENTENCE_LEN)}</b>"),
        ("Vouched for", f"{chain['checked']:,} of {count_text(chain['records'], 'record')}; {checkpoints}"),
        ("Signed by", _signers(chain)),
    ]
    if chain["last_checkpoint"] is not None:
        facts.append(("Last checkpoint", f"<code>{escape(chain['last_checkpoint'])}</code>"))
    rows = "".join(f"<dt>{name}<dd>{fact}" for name, fact in facts)
    heads = ("kind", "session", "line", "what was found")
    table = _table(heads, map(_chain_row, chain["findings"]), numbers=(2,), css="chain")
    left_out = chain["findings_left_out"]
    more = f"<p class=soft>{count_text(left_out, 'further finding')} not listed.</p>" if left_out else ""
    return f"<div class=panel><dl>{rows}</dl>{table if chain['findings'] else ''}{more}</div>"


def _signers(chain: ChainPart) -> str:
    if not chain["signers"]:
        return "nobody"
    signers = ", ".join(f"<code>{escape(signer)}</code>" for signer in chain["signers"])
    doubt = "" if chain["trusted_keys"] else "<br>Nobody vouches for this key: none was given to compare it with."
    return f"{signers}{doubt}"


def _chain_row(finding: ChainFindingPart) -> Sequence[str]:
    return (
        escape(finding["kind"]),
        "" if finding["session"] is None else _text(finding["session"][:8]),
        "" if finding["line"] is None else f"{finding['line']:,}",
        _text(finding["sentence"], SENTENCE_LEN),
    )


def _outcomes(verdict: VerdictPart) -> str:
    rows = [
        (escape(outcome), f"{count:,}", _OUTCOME_MEANING.get(outcome, ""))
        for outcome, count in verdict["outcomes"].items()
    ]
    table = _table(("outcome", "records", "meaning"), rows, numbers=(1,)) if rows else "<p>There were no records.</p>"
    return f"<h2>What became of the records</h2>{table}"


_OUTCOME_MEANING = {
    "used": "evidence, for or against",
    "impossible under this key": "no identity leads to this choice under this key: altered, or made by another",
    "weights not logged": "the probabilities are missing, and the scheme needs them",
    "duplicate": "a copy of a record that counts once",
    "conflicting copies": "copies that disagree; none of them counts",
    "unmarked": "the step was taken without the mark, for the reason in its record",
    "not enforced": "the agent did not do what was chosen",
    "other key": "states a key that was not given",
    "other payload length": "states another payload length",
    "not read: work limit": "reading it would have cost more than the work limit",
}


def _ownership(report: Report) -> str:
    ownership = report["ownership"]
    if report["verdict"]["used"] == 0:
        return ""
    said = "<p>Not computed: there is no candidate.</p>"
    if ownership is not None and ownership["evidence_bits"] is None:
        said = "<p>None: a step rules it out.</p>"
    elif ownership is not None:
        said = (
            f"<p><b>{_evidence(ownership['evidence_bits'])} bits</b>, less {_rounded(ownership['bits_paid'])} for the "
            f"identities that were tried: {escape(ownership['bound_in_words'])} ({escape(ownership['bound'])}).</p>"
        )
    return (
        "<h2>Was it made with this key at all?</h2>"
        f"{said}<p class=soft>A separate question, with evidence of its own that is not part of the verdict. It counts "
        "the full surprise of every choice, so it is often larger. But it holds only against logs made without this "
        "key: it cannot tell one identity of this key from another.</p>"
    )


def _steps(report: Report) -> str:
    steps = report["steps"]
    if not steps:
        return ""
    parts = ["<h2>Step by step</h2>", _step_table(steps[:ROWS_OPEN])]
    folded = steps[ROWS_OPEN:]
    if folded:
        first, last = folded[0]["record"], folded[-1]["record"]
        parts.append(f"<details><summary>Records {first:,} to {last:,}</summary>{_step_table(folded)}</details>")
    if report["steps_left_out"]:
        parts.append(
            f"<p class=soft>{count_text(report['steps_left_out'], 'further record')} not listed here (the list ends at "
            f"{len(steps):,}). They count in everything above.</p>"
        )
    return "\n".join(parts)


def _step_table(steps: Sequence[StepPart]) -> str:
    heads = ("#", "session, step", "candidates", "choice", "bits", "finding")
    return _table(heads, map(_step_row, steps), numbers=(0, 4), css="steps")


def _step_row(step: StepPart) -> Sequence[str]:
    finding = escape(step["finding"])
    if step["finding"] == ERASED:
        finding += f": {_text(step['outcome'])}"
    if step["reason"] is not None:
        finding += f" ({_text(step['reason'])})"
    return (
        f"{step['record']:,}",
        f"{_text(step['session'][:8])}, {step['step']:,}",
        _odds(step),
        f"<b>{_text(step['choice'])}</b>",
        "" if step["finding"] in (ERASED, IMPOSSIBLE_STEP) else _evidence(step["evidence_bits"], sign="+"),
        f'<span class="finding {_FINDING_CSS[step["finding"]]}">{finding}</span>',
    )


def _odds(step: StepPart) -> str:
    """P_t as bars: the likeliest candidates, and the one that was chosen wherever it stands."""
    listed = [item for item in step["candidates"] if item[0] == step["choice"]]
    others = [item for item in step["candidates"] if item[0] != step["choice"] and item[1] > 0]
    shown = sorted([*listed, *others[: CANDIDATES_SHOWN - 1]], key=lambda item: -item[1])
    left_out = len(step["candidates"]) - len(shown) + step["candidates_left_out"]
    spans = [_share(name, weight / TOTAL_WEIGHT, chosen=name == step["choice"]) for name, weight in shown]
    if left_out:
        spans.append(f"<span>and {left_out:,} more</span>")
    return f"<div class=odds>{''.join(spans)}</div>" if spans else "<span class=soft>not logged</span>"


def _share(name: str, share: float, *, chosen: bool) -> str:
    css = " class=chosen" if chosen else ""
    percent = "&lt;1%" if 0 < share < 0.005 else f"{share:.0%}"
    return f"<span{css}><i style=width:{BAR_WIDTH_PX * share:.0f}px></i>{_text(name)} <em>{percent}</em></span>"


def _origin(report: Report | StrangerReport) -> str:
    keys = ", ".join(f"<code>{_text(key)}</code>" for key in report["keys"]) or "-"
    versions = ", ".join(f"{escape(name)} {escape(version)}" for name, version in report["versions"].items())
    rates = ", ".join(map(escape, report["question"]["noise_rates"]))
    registry = report["question"]["registry_size"]
    names = "none" if registry is None else count_text(registry, "identity", "identities")
    files = _table(("file", "bytes", "SHA-256"), map(_input_row, report["inputs"]), numbers=(1,))
    return (
        f"<h2>How to reproduce it</h2><pre class=panel>{_text(report['command'], 10 * SENTENCE_LEN)}</pre>"
        f"<dl><dt>Made<dd>{escape(report['made_at'])}<dt>Versions<dd>{versions}<dt>Key ids<dd>{keys}"
        f"<dt>Registry<dd>{names}<dt>Noise rates allowed for<dd>{rates}"
        f"<dt>SHA-256 of this report's data<dd><code>{report_digest(report)}</code></dl>"
        f"{files if report['inputs'] else ''}"
    )


def _input_row(file: InputFile) -> Sequence[str]:
    return (
        f"{escape(file['kind'])}: {_text(file['path'], SENTENCE_LEN)}",
        "-" if file["size"] is None else f"{file['size']:,}",
        f"<code>{escape(file['sha256'] or 'not a regular file')}</code>",
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int], css: str = "") -> str:
    """Cells are HTML. On a phone each row becomes a block, and each cell but the first says what it is."""
    right = [" class=n" if i in numbers else "" for i in range(len(heads))]
    opened = [f"<td{right[i]}" + (f' data-label="{head}">' if i else ">") for i, head in enumerate(heads)]
    head = "".join(f"<th{right[i]}>{head}" for i, head in enumerate(heads))
    body = "\n".join("<tr>" + "".join(start + cell for start, cell in zip(opened, row, strict=True)) for row in rows)
    return f'<table class="fold {css}"><thead><tr>{head}</thead><tbody>{body}</tbody></table>'


def _bits(bits: str | None) -> str:
    return "ruled out" if bits is None else f"{_rounded(bits)} bits"


def _evidence(bits: str | None, *, sign: str = "") -> str:
    return "ruled out" if bits is None else _rounded(bits, sign=sign)


def _rounded(bits: str, *, sign: str = "") -> str:
    # Typographic minus, so that the sign is not lost in a narrow column.
    return f"{round(float(bits), 1) + 0.0:{sign},.1f}".replace("-", "\u2212")


def _text(text: str, limit: int = NAME_LEN) -> str:
    return isolated(text, limit)
