"""What was found, beside what a random key finds in the same records."""

from collections.abc import Sequence
from html import escape

from agentmark.report.disclosed_part import RestsOnPart
from agentmark.report.numbers import count_text
from agentmark.report.outcomes import IMPOSSIBLE
from agentmark.report.parts import FoundPart, NamedPart, PlacePart, Report, StrangerVerdictPart, VerdictPart
from agentmark.report.pieces import NAME_LEN, SENTENCE_LEN, bits, evidence, facts, rounded, table, text
from agentmark.verify.candidates import Route


def control_section(report: Report) -> str:
    return (
        "<div class=two>"
        f"<div class=panel><h3>With this key</h3>{_reading(report['verdict'])}</div>"
        f"<div class=panel><h3>Control: with a random key</h3>{_reading(report['control'])}</div>"
        "</div><p class=soft>The control reads the same records with a key that was made for this report and thrown "
        "away. It shows what the method says where there is nothing to find.</p>"
    )


def _reading(verdict: VerdictPart) -> str:
    css, answer = ("yes", "attributed") if verdict["accepted"] else ("none", "not attributed")
    contradicting = f"{verdict['contradicting']:,} contradicting"
    if len(verdict["found"]) > 1:
        contradicting = f"{verdict['unexplained']:,} contradicting all of them"
        answer = f"{len(verdict['found']):,} identities found"
    impossible = verdict["outcomes"].get(IMPOSSIBLE, 0)
    rows = [
        f"<b class={css}>{answer}</b>; bound {escape(verdict['bound'])}",
        f"evidence: {bits(verdict['evidence_bits'])}, where {rounded(verdict['level_bits'])} are needed",
        f"{count_text(verdict['used'], 'step')} used, {contradicting}, {impossible:,} impossible",
        *([f"<b>Work limit:</b> {escape(verdict['work_note'])}"] if verdict["work_note"] else []),
    ]
    return "".join(f"<p>{row}</p>" for row in rows)


def finding_section(report: Report) -> str:
    verdict, question = report["verdict"], report["question"]
    pairs = [("Identity", identity_fact(verdict))]
    if question["claim"] is not None:
        taken_as = "" if question["claim_taken_as"] is None else f", taken as {escape(question['claim_taken_as'])}"
        pairs.append(("Claim under test", f"{text(question['claim'])}{taken_as}"))
    if question["place"] is not None:
        pairs.append(("Place in its session", _place(question["place"])))
    if verdict["found"] and verdict["found"][0]["revoked_at"] is not None:
        pairs.append(("Revoked", text(verdict["found"][0]["revoked_at"])))
    pairs += [
        (
            "False-positive bound",
            f"<span class=big>{escape(verdict['bound_in_words'])}</span><br>{escape(verdict['bound'])}, "
            f"where {escape(verdict['threshold'])} or less is accepted. It covers logs made without this key and logs "
            "made with it for another identity, whatever the agent did.",
        ),
        *([] if report["rests_on"] is None else [("Rests on", _rests_on(report["rests_on"]))]),
        ("Evidence", _evidence_fact(verdict)),
        ("Steps", _step_fact(verdict)),
        *([("Not of this identity", _foreign(report))] if verdict["accepted"] and len(verdict["found"]) < 2 else []),
    ]
    if len(verdict["found"]) > 1:
        return f"<h2>The first of them, in detail</h2>{facts(pairs)}"
    pairs += [("More steps needed", _needed(verdict)), ("Runner-up", _runner_up(verdict))]
    return f"<h2>The finding</h2>{facts(pairs)}"


def _rests_on(part: RestsOnPart) -> str:
    return f"{escape(part['statement'])}. {text(part['sentence'], 3 * SENTENCE_LEN)}"


def identity_fact(verdict: VerdictPart | StrangerVerdictPart) -> str:
    """Whose the figures are: of several, the first's."""
    if not verdict["accepted"]:
        return "<span class=big>none named</span>"
    if verdict["payload_len"] == 0:
        return "<span class=big>the holder of this key</span><br>The mark carries no identity."
    names = [_identity(found) for found in verdict["found"]]
    if "bound" in verdict:
        return f"{names[0]}, {verdict['payload_len']} bits"
    return "<br>".join(names)


def _identity(found: FoundPart | NamedPart) -> str:
    payload = f"payload 0x{escape(found['payload'])}"
    if found["identity"] is not None:
        return f"<span class=big>{text(found['identity'], 2 * NAME_LEN)}</span><br>{payload}"
    if found["text"] is not None:
        payload += f"; as text: {text(found['text'])}"
    return f"<span class=big>0x{escape(found['payload'])}</span><br>{payload}"


def found_section(verdict: VerdictPart) -> str:
    """Everyone who is found, if they are several."""
    if len(verdict["found"]) < 2:
        return ""
    heads = ("identity", "its own steps, at least", "evidence, bits", "less, for naming it", "bound")
    listed = table(heads, [_found_row(found) for found in verdict["found"]], numbers=(1, 2, 3, 4))
    return (
        f"<h2>The identities found</h2>{listed}<p>{_of_none(verdict)}</p>"
        "<p class=soft>Each is judged alone, with the steps of the others counting as foreign. So many steps as "
        "stated, or more, carry the identity: with fewer, the rest would have to reach the level by chance, which has "
        f"a probability of at most {escape(verdict['threshold'])}.</p>"
    )


def _of_none(verdict: VerdictPart) -> str:
    if verdict["unexplained"] == 0:
        return "Every used step agrees with one of them or more."
    return (
        f"At least {verdict['unexplained']:,} of {verdict['used']:,} used steps are of none of them: they contradict "
        "all. Further steps of others agree with one of them by chance."
    )


def _found_row(found: FoundPart) -> Sequence[str]:
    payload = f"payload 0x{escape(found['payload'])}"
    name = payload if found["identity"] is None else f"<b>{text(found['identity'], 2 * NAME_LEN)}</b>, {payload}"
    if found["revoked_at"] is not None:
        name += f", revoked {text(found['revoked_at'])}"
    return (
        name,
        f"{found['at_least_steps']:,}",
        evidence(found["evidence_bits"]),
        rounded(found["bits_paid"]),
        escape(found["bound"]),
    )


def _place(place: PlacePart) -> str:
    found = "not proved" if place["offset"] is None else f"from step {place['offset']:,} on"
    tried = f"{count_text(place['offsets_tried'], 'place')} tried, each of them paid for"
    return f"{found}, session {text(place['session'])}; {tried}. Numbers and digests are those of this place."


def _evidence_fact(verdict: VerdictPart) -> str:
    if verdict["used"] == 0:
        return "None: no step could be used."
    if verdict["route"] is None:
        return (
            f"No candidate was found. If every step agreed they would say {rounded(verdict['potential_bits'])} bits; "
            f"{rounded(verdict['level_bits'])} are needed."
        )
    if verdict["evidence_bits"] is None:
        return "Ruled out: a step contradicts the candidate, and no noise was allowed for."
    if verdict["route"] == Route.CLAIM and float(verdict["bits_paid"]) == 0:
        price = "nothing was searched, so nothing is paid for naming it"
    else:
        price = f"{rounded(verdict['bits_paid'])} of them pay for what was tried"
    whom = "the best candidate" if not verdict["found"] else f"payload 0x{escape(verdict['found'][0]['payload'])}"
    return (
        f"{rounded(verdict['evidence_bits'])} bits for {whom}; {price}. "
        f"Found by: {escape(verdict['route'] or '-')}. It takes {rounded(verdict['level_bits'])} bits."
    )


def _step_fact(verdict: VerdictPart) -> str:
    said = f"{verdict['used']:,} of {count_text(verdict['records'], 'record')} used"
    if verdict["route"] is not None and verdict["used"]:
        said += f": {verdict['agreeing']:,} consistent, {verdict['contradicting']:,} contradicting"
    schemes = " and ".join(verdict["schemes"]) or "-"
    return f"{said}. Scheme {escape(schemes)}, {verdict['payload_len']} payload bits."


def _foreign(report: Report) -> str:
    """How much of the log is not of the identity: what is certain, and what explains the log best, which is more."""
    verdict, rates = report["verdict"], report["question"]["noise_rates"]
    contradicting, used = verdict["contradicting"], verdict["used"]
    said = (
        f"At least {contradicting:,} of {used:,} used steps, namely those that contradict it. Further steps of others "
        "agree with it by chance."
        if contradicting
        else "No used step contradicts it."
    )
    likely = float(verdict["likely_noise"])
    # A rate that was given was not estimated; and the rates tried are few, so that the nearest may be too low.
    if len(rates) > 1 and likely * used >= contradicting > 0:
        tried = ", ".join(f"{float(rate):.0%}" for rate in rates)
        said += (
            f" Of the shares that are tried ({tried}), {likely:.0%} foreign or altered steps, those that agree by "
            "chance included, explains the log best."
        )
    return said


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
    return f"not named, since it is below the bound: {bits(second['evidence_bits'])}"
